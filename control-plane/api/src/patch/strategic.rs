//! Strategic merge patch: a merge patch that knows the keys of lists, and obeys directives.
//!
//! - `$patch: delete | replace` in an object or an element
//! - `$retainKeys: [names]`: everything else goes
//! - `$setElementOrder/<list>`: the order of the merged list
//! - `$deleteFromPrimitiveList/<list>`: values to take out
//!
//! Order of merged lists: the patch's elements in their order; a live-only element stays before the patch's next one when it
//! stands before it in the live list; elements that only the patch has come first.

use serde_json::{Map, Value};

use super::{PatchError, golang, golang::Plain, path::equal};
use crate::{
    request::body,
    schema::{Strategic, Ty, TypeRef},
};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ORDER: &str = "$setElementOrder/";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

/// Reads a patch from a request body: an object and nothing else.
pub fn parse(text: &[u8]) -> Result<Value, PatchError> {
    let patch = body::json(text).map_err(PatchError::BadRequest)?;
    match patch {
        Value::Object(_) => Ok(patch),
        Value::Null => Ok(Value::Object(Map::new())),
        other => Err(PatchError::BadRequest(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            golang::json_kind(&other)
        ))),
    }
}

/// Merges `patch`, an object, into `object`.
pub fn apply(ty: &TypeRef, object: &Value, patch: &Value) -> Result<Value, PatchError> {
    merge_maps(ty.ty(), object.clone(), patch)
}

fn fail<T>(why: String) -> Result<T, PatchError> {
    Err(PatchError::Internal(why))
}

fn merge_maps(ty: Ty<'_>, live: Value, patch: &Value) -> Result<Value, PatchError> {
    let Some(patch_fields) = patch.as_object() else {
        return Ok(patch.clone());
    };
    match patch_fields.get(PATCH) {
        None => {}
        Some(directive) if directive == "replace" => {
            let mut fields = patch_fields.clone();
            fields.remove(PATCH);
            return Ok(Value::Object(fields));
        }
        Some(directive) if directive == "delete" => return Ok(Value::Object(Map::new())),
        Some(directive) if directive == "merge" => {}
        Some(directive) => {
            return fail(format!(
                "unknown patch type: {} in map: {}",
                Plain(directive),
                Plain(patch)
            ));
        }
    }
    let mut live = match live {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    retain_keys(&mut live, patch_fields)?;
    let mut done = Vec::new();
    for (name, order) in patch_fields {
        if let Some(name) = name.strip_prefix(SET_ORDER)
            && set_order(ty, &mut live, patch_fields, name, order)?
        {
            done.push(name);
        }
    }
    for (name, values) in patch_fields {
        if let Some(name) = name.strip_prefix(DELETE_FROM) {
            delete_from(&mut live, name, values)?;
        }
    }
    for (name, value) in patch_fields {
        if is_directive(name) || done.contains(&name.as_str()) {
            continue;
        }
        if value.is_null() {
            live.remove(name);
            continue;
        }
        let (below, strategic) = field(ty, name);
        let merged = match (live.remove(name), value) {
            (Some(old @ Value::Object(_)), Value::Object(_)) => merge_maps(below, old, value)?,
            (Some(Value::Array(old)), Value::Array(new)) if strategic.is_some_and(|s| s.merge) => {
                let key = strategic.and_then(|strategic| strategic.merge_key.as_deref());
                Value::Array(merge_lists(element(below), old, new, key, None)?)
            }
            _ => without_directives(value),
        };
        live.insert(name.clone(), merged);
    }
    Ok(Value::Object(live))
}

fn is_directive(name: &str) -> bool {
    name == PATCH
        || name == RETAIN_KEYS
        || name.starts_with(SET_ORDER)
        || name.starts_with(DELETE_FROM)
}

fn field<'a>(ty: Ty<'a>, name: &str) -> (Ty<'a>, Option<&'a Strategic>) {
    match ty.map() {
        Some(map) => (
            ty.child(map, name),
            map.field(name).map(|field| &field.strategic),
        ),
        None => (ty.at(crate::schema::ANY), None),
    }
}

fn element(list: Ty<'_>) -> Ty<'_> {
    list.list()
        .map_or(list.at(crate::schema::ANY), |found| list.at(found.element))
}

fn list_of(value: &Value) -> Result<&Vec<Value>, PatchError> {
    match value {
        Value::Array(items) => Ok(items),
        other => fail(format!(
            "expected a []interface {{}}, but received a {}",
            golang::type_name(other)
        )),
    }
}

fn retain_keys(
    live: &mut Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<(), PatchError> {
    let Some(keys) = patch.get(RETAIN_KEYS) else {
        return Ok(());
    };
    let Some(keys) = keys.as_array() else {
        return fail("invalid patch format of retainKeys".into());
    };
    let is_kept = |name: &str| keys.iter().any(|key| key == name);
    let is_stray = |(name, value): (&String, &Value)| {
        !value.is_null() && !is_directive(name) && !is_kept(name)
    };
    if patch.iter().any(is_stray) {
        return fail("invalid patch format of retainKeys".into());
    }
    live.retain(|name, _| is_kept(name));
    Ok(())
}

fn delete_from(
    live: &mut Map<String, Value>,
    name: &str,
    values: &Value,
) -> Result<(), PatchError> {
    let values = list_of(values)?;
    if let Some(Value::Array(items)) = live.get_mut(name) {
        items.retain(|item| !values.iter().any(|value| equal(value, item)));
    }
    Ok(())
}

/// Merges the list `name` and puts it in the given order. False when neither side has it.
fn set_order(
    ty: Ty<'_>,
    live: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    name: &str,
    order: &Value,
) -> Result<bool, PatchError> {
    let order = list_of(order)?;
    let (below, strategic) = field(ty, name);
    let key = strategic.and_then(|strategic| strategic.merge_key.as_deref());
    let new = match patch.get(name) {
        None | Some(Value::Null) => None,
        Some(new) => Some(list_of(new)?),
    };
    if let Some(new) = new {
        check_order(new, order, key)?;
    }
    if patch.get(name).is_some_and(Value::is_null) {
        return Ok(false);
    }
    let old = match live.get(name) {
        None | Some(Value::Null) => None,
        Some(old) => Some(list_of(old)?.clone()),
    };
    if old.is_none() && new.is_none() {
        return Ok(false);
    }
    let empty = Vec::new();
    let merged = merge_lists(
        element(below),
        old.unwrap_or_default(),
        new.unwrap_or(&empty),
        key,
        Some(order),
    )?;
    live.insert(name.to_owned(), Value::Array(merged));
    Ok(true)
}

/// The patch's elements must stand in the order list, in the same order.
fn check_order(new: &[Value], order: &[Value], key: Option<&str>) -> Result<(), PatchError> {
    let mut rest = order.iter();
    for item in new {
        if item.get(PATCH).is_some() {
            continue;
        }
        identify(item, key)?;
        if !rest.any(|other| is_same(item, other, key)) {
            return fail(format!(
                "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                Plain(&new.to_vec().into()),
                Plain(&order.to_vec().into())
            ));
        }
    }
    Ok(())
}

/// The element's merge key; the element itself where there is none.
fn identify<'a>(item: &'a Value, key: Option<&str>) -> Result<&'a Value, PatchError> {
    match (item, key) {
        (Value::Object(_), Some(key)) => match item.get(key) {
            Some(value) => Ok(value),
            None => fail(format!(
                "map: {} does not contain declared merge key: {key}",
                Plain(item)
            )),
        },
        _ => Ok(item),
    }
}

fn is_same(a: &Value, b: &Value, key: Option<&str>) -> bool {
    match (key, a, b) {
        (Some(key), Value::Object(a), Value::Object(b)) => match (a.get(key), b.get(key)) {
            (Some(a), Some(b)) => equal(a, b),
            _ => false,
        },
        _ => equal(a, b),
    }
}

fn merge_lists(
    ty: Ty<'_>,
    old: Vec<Value>,
    new: &[Value],
    key: Option<&str>,
    order: Option<&[Value]>,
) -> Result<Vec<Value>, PatchError> {
    if old.is_empty() && new.is_empty() {
        return Ok(old);
    }
    let mut kinds = old.iter().chain(new).map(golang::json_kind);
    let first = kinds.next().unwrap_or_default();
    if kinds.any(|kind| kind != first) || first == "null" {
        return fail(format!(
            "list element types are not identical: [{} {}]",
            Plain(&old.into()),
            Plain(&new.to_vec().into())
        ));
    }
    if first == "array" {
        return fail("not supported: lists of lists".into());
    }
    if first != "object" {
        let mut merged = Vec::with_capacity(old.len() + new.len());
        for item in old.iter().chain(new) {
            if !merged.iter().any(|other| equal(other, item)) {
                merged.push(item.clone());
            }
        }
        return Ok(in_order(merged, order.unwrap_or(new), &old, None));
    }
    let Some(key) = key else {
        return fail(format!(
            "cannot merge lists without merge key for {}",
            Plain(&new.to_vec().into())
        ));
    };
    let (mut base, new) = without_special(old, new, key)?;
    let place = base.clone();
    for item in &new {
        identify(item, Some(key))?;
        match base
            .iter()
            .position(|other| is_same(other, item, Some(key)))
        {
            Some(found) => {
                let live = std::mem::take(&mut base[found]);
                base[found] = merge_maps(ty, live, item)?;
            }
            None => base.push(without_directives(item)),
        }
    }
    Ok(in_order(base, order.unwrap_or(&new), &place, Some(key)))
}

/// Acts on the elements with a `$patch` directive: the live elements that stay, and the patch's other elements.
fn without_special(
    mut old: Vec<Value>,
    new: &[Value],
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut plain = Vec::new();
    let mut is_replaced = false;
    for item in new {
        match item.get(PATCH) {
            None => plain.push(item.clone()),
            Some(directive) if directive == "delete" => {
                if item.get(key).is_none() {
                    return fail("delete patch type with no merge key defined".into());
                }
                old.retain(|other| !is_same(other, item, Some(key)));
            }
            Some(directive) if directive == "replace" => is_replaced = true,
            Some(directive) if directive == "merge" => {
                return fail("merging lists cannot yet be specified in the patch".into());
            }
            Some(directive) => {
                return fail(format!(
                    "unknown patch type: {} in map: {}",
                    Plain(directive),
                    Plain(item)
                ));
            }
        }
    }
    if is_replaced {
        return Ok((plain.iter().map(without_directives).collect(), Vec::new()));
    }
    Ok((old, plain))
}

/// Orders a merged list: what is in `patch` as there, the rest as in `live`, interleaved as the module says.
fn in_order(merged: Vec<Value>, patch: &[Value], live: &[Value], key: Option<&str>) -> Vec<Value> {
    let place =
        |list: &[Value], item: &Value| list.iter().position(|other| is_same(other, item, key));
    let (mut first, mut rest): (Vec<_>, Vec<_>) = merged
        .into_iter()
        .partition(|item| place(patch, item).is_some());
    first.sort_by_key(|item| place(patch, item));
    rest.sort_by_key(|item| place(live, item));
    let mut out = Vec::with_capacity(first.len() + rest.len());
    let mut rest = rest.into_iter().peekable();
    for item in first {
        let here = place(live, &item);
        while let Some(before) = rest.next_if(|other| {
            here.is_some_and(|here| place(live, other).is_some_and(|there| there < here))
        }) {
            out.push(before);
        }
        out.push(item);
    }
    out.extend(rest);
    out
}

/// A value that is new, without what only speaks to a merge: directives and nulls.
fn without_directives(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .filter(|(name, value)| !is_directive(name) && !value.is_null())
                .map(|(name, value)| (name.clone(), without_directives(value)))
                .collect(),
        ),
        Value::Array(items) => items
            .iter()
            .filter(|item| item.get(PATCH).is_none())
            .map(without_directives)
            .collect(),
        other => other.clone(),
    }
}
