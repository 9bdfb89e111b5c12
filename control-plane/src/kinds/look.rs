//! Reading and filling in JSON objects, whatever is really there.

use serde_json::{Map, Value};

/// What is at a pointer; `null` when nothing is.
pub fn at<'a>(object: &'a Value, pointer: &str) -> &'a Value {
    object.pointer(pointer).unwrap_or(&Value::Null)
}

/// The text at a pointer; empty when there is none.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    at(object, pointer).as_str().unwrap_or_default()
}

/// The number at a pointer; 0 when there is none.
pub fn number(object: &Value, pointer: &str) -> i64 {
    at(object, pointer).as_i64().unwrap_or_default()
}

/// The list at a pointer; empty when there is none.
pub fn items<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    at(object, pointer)
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// The pairs of the map of texts at a pointer, in the order of their keys.
pub fn pairs<'a>(object: &'a Value, pointer: &str) -> Vec<(&'a str, &'a str)> {
    at(object, pointer)
        .as_object()
        .map(|map| {
            map.iter()
                .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
                .collect()
        })
        .unwrap_or_default()
}

/// The condition of this type in `status.conditions`.
pub fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
    items(object, "/status/conditions")
        .iter()
        .find(|condition| text(condition, "/type") == type_)
}

/// Whether the condition of this type is True.
pub fn is_true(object: &Value, type_: &str) -> bool {
    condition(object, type_).is_some_and(|condition| text(condition, "/status") == "True")
}

/// Fills in a field that is absent or null.
pub fn fill(object: &mut Value, field: &str, value: impl Into<Value>) {
    if let Some(fields) = object.as_object_mut() {
        let slot = fields.entry(field).or_insert(Value::Null);
        if slot.is_null() {
            *slot = value.into();
        }
    }
}

/// The struct in a field, put there when it is absent or null. `None`: something else is there.
pub fn child<'a>(object: &'a mut Value, field: &str) -> Option<&'a mut Value> {
    fill(object, field, Map::new());
    object.get_mut(field).filter(|child| child.is_object())
}

/// The elements of a list field that are structs.
pub fn each<'a>(object: &'a mut Value, field: &str) -> impl Iterator<Item = &'a mut Value> {
    object
        .get_mut(field)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .filter(|item| item.is_object())
}

/// Drops a field.
pub fn drop_field(object: &mut Value, field: &str) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove(field);
    }
}

/// Drops what the reference server's typed objects do not tell from absent: nulls, and empty lists in structs. The
/// status stays as its writer put it.
pub fn drop_nothing(object: &mut Value) {
    for (name, value) in object.as_object_mut().into_iter().flatten() {
        if name != "status" {
            drop_within(value);
        }
    }
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|name, value| name == "status" || !is_nothing(value));
    }
}

fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

fn drop_within(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|_, value| {
            drop_within(value);
            !is_nothing(value)
        }),
        Value::Array(items) => items.iter_mut().for_each(drop_within),
        _ => {}
    }
}
