//! The typed merge of an applied configuration into a live object, and the removal of fields from one.

use serde_json::{Map, Value};

use super::{fieldset::FieldSet, path::PathElement, typed::element_key};
use crate::schema::{Form, ListKind, ListType, Ty};

/// Merges `config` into `live`: maps and structs by key, map lists by their keys, sets by value; what is atomic is replaced.
pub(crate) fn merge(ty: Ty<'_>, live: &Value, config: &Value) -> Value {
    match ty.form(config) {
        Form::Map(map) if !map.atomic => {
            let (live_fields, config_fields) = (live.as_object(), config.as_object());
            match (
                live_fields.filter(|fields| !fields.is_empty()),
                config_fields,
            ) {
                (Some(live), Some(config)) => {
                    let mut out = Map::new();
                    for (name, value) in live {
                        let merged = match config.get(name) {
                            Some(config) => merge(ty.child(map, name), value, config),
                            None => value.clone(),
                        };
                        out.insert(name.clone(), merged);
                    }
                    for (name, value) in config {
                        if !live.contains_key(name) {
                            out.insert(name.clone(), value.clone());
                        }
                    }
                    Value::Object(out)
                }
                // A null map has no keys to add.
                (Some(live), None) if config.is_null() => Value::Object(live.clone()),
                _ => config.clone(),
            }
        }
        Form::List(list) if list.kind != ListKind::Atomic => {
            match (
                live.as_array().filter(|items| !items.is_empty()),
                config.as_array(),
            ) {
                (Some(live), Some(config)) => merge_lists(ty, list, live, config),
                (Some(live), None) if config.is_null() => Value::Array(live.clone()),
                _ => config.clone(),
            }
        }
        _ => config.clone(),
    }
}

/// Elements of a list with their keys; an index into it stands for an element.
struct Indexed<'a> {
    items: Vec<(PathElement, &'a Value)>,
    /// Places in `items`, by key; of duplicates the first.
    sorted: Vec<usize>,
}

impl<'a> Indexed<'a> {
    fn new(list: &ListType, items: &'a [Value]) -> Self {
        let items = items
            .iter()
            .filter_map(|item| Some((element_key(list, item).ok()?, item)))
            .collect::<Vec<_>>();
        let mut sorted = (0..items.len()).collect::<Vec<_>>();
        sorted.sort_by(|a, b| items[*a].0.cmp(&items[*b].0));
        sorted.dedup_by(|b, a| items[*a].0 == items[*b].0);
        Self { items, sorted }
    }

    fn find(&self, element: &PathElement) -> Option<usize> {
        self.sorted
            .binary_search_by(|place| self.items[*place].0.cmp(element))
            .ok()
            .map(|place| self.sorted[place])
    }
}

/// The order of the result: the configuration's order rules among its own elements, and live-only elements keep their place
/// before the next element that both have.
fn merge_lists(ty: Ty<'_>, list: &ListType, live: &[Value], config: &[Value]) -> Value {
    let element = ty.at(list.element);
    let (live, config) = (Indexed::new(list, live), Indexed::new(list, config));
    let in_config = live
        .items
        .iter()
        .map(|(key, _)| config.find(key))
        .collect::<Vec<_>>();
    let in_live = config
        .items
        .iter()
        .map(|(key, _)| live.find(key))
        .collect::<Vec<_>>();
    let mut done = vec![false; config.items.len()];
    // The places, in the configuration, of the elements that both have, in its order.
    let mut shared = (0..config.items.len())
        .filter(|place| in_live[*place].is_some())
        .peekable();
    let mut out = Vec::with_capacity(live.items.len().max(config.items.len()));
    let take = |place: usize| match in_live[place] {
        Some(live_place) => merge(element, live.items[live_place].1, config.items[place].1),
        None => config.items[place].1.clone(),
    };
    let (mut l, mut c) = (0, 0);
    while l < live.items.len() || c < config.items.len() {
        if l < live.items.len() && c < config.items.len() {
            if in_config[l] == Some(c) {
                out.push(take(c));
                done[c] = true;
                if shared.peek() == Some(&c) {
                    shared.next();
                }
                l += 1;
                c += 1;
                continue;
            }
            // Both have it, but the configuration has another shared element first.
            if in_config[l].is_some()
                && shared
                    .peek()
                    .is_some_and(|next| in_config[l] != Some(*next))
            {
                l += 1;
                continue;
            }
        }
        if l < live.items.len() {
            match in_config[l] {
                None => {
                    out.push(live.items[l].1.clone());
                    l += 1;
                    continue;
                }
                Some(place) if done[place] => l += 1,
                Some(_) => {}
            }
        }
        if c < config.items.len() {
            out.push(take(c));
            done[c] = true;
            if shared.peek() == Some(&c) {
                shared.next();
            }
            c += 1;
        }
    }
    Value::Array(out)
}

/// The value without the given fields. A list that loses all of its elements goes too (null at the top), a map stays empty.
pub(crate) fn remove(ty: Ty<'_>, value: &Value, fields: &FieldSet) -> Value {
    if fields.is_empty() {
        return value.clone();
    }
    match (ty.form(value), value) {
        (Form::Map(map), Value::Object(object)) if !map.atomic => {
            let mut out = Map::new();
            for (name, value) in object {
                match fields.field(name) {
                    None => {
                        out.insert(name.clone(), value.clone());
                    }
                    Some(node) if node.member => {}
                    Some(node) => {
                        let rest = remove(ty.child(map, name), value, &node.children);
                        if value.is_null() || !rest.is_null() {
                            out.insert(name.clone(), rest);
                        }
                    }
                }
            }
            Value::Object(out)
        }
        (Form::List(list), Value::Array(items)) if list.kind != ListKind::Atomic => {
            let mut out = Vec::with_capacity(items.len());
            for item in items {
                let node = element_key(list, item)
                    .ok()
                    .and_then(|element| fields.get(&element));
                match node {
                    None => out.push(item.clone()),
                    Some(node) if node.member => {}
                    Some(node) => out.push(remove(ty.at(list.element), item, &node.children)),
                }
            }
            if out.is_empty() {
                Value::Null
            } else {
                Value::Array(out)
            }
        }
        _ => value.clone(),
    }
}
