//! Reading and writing `metadata`.

use serde_json::{Map, Value};

/// `metadata` of an object, or nothing when it has none.
pub fn metadata(object: &Value) -> Option<&Map<String, Value>> {
    object.get("metadata").and_then(Value::as_object)
}

/// `metadata` of an object, made when it is absent or no object.
pub fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Value::Object(fields) = object else {
        unreachable!("made an object just now")
    };
    let metadata = fields
        .entry("metadata")
        .or_insert_with(|| Value::Object(Map::new()));
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    match metadata {
        Value::Object(metadata) => metadata,
        _ => unreachable!("made an object just now"),
    }
}

/// A text field of `metadata`; empty when absent.
pub fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    metadata(object)
        .and_then(|metadata| metadata.get(field))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

pub fn name(object: &Value) -> &str {
    text(object, "name")
}

pub fn namespace(object: &Value) -> &str {
    text(object, "namespace")
}

pub fn uid(object: &Value) -> &str {
    text(object, "uid")
}

pub fn resource_version(object: &Value) -> &str {
    text(object, "resourceVersion")
}

pub fn is_terminating(object: &Value) -> bool {
    !text(object, "deletionTimestamp").is_empty()
}

/// The finalizers, in order.
pub fn finalizers(object: &Value) -> Vec<&str> {
    list(object, "finalizers")
        .iter()
        .filter_map(Value::as_str)
        .collect()
}

/// A list field of `metadata`; empty when absent.
pub fn list<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    metadata(object)
        .and_then(|metadata| metadata.get(field))
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

pub fn set(object: &mut Value, field: &str, value: impl Into<Value>) {
    metadata_mut(object).insert(field.to_owned(), value.into());
}

pub fn remove(object: &mut Value, field: &str) {
    metadata_mut(object).remove(field);
}

/// Puts `from`'s field into `into`, absent when it is absent there.
pub fn copy(into: &mut Value, from: &Value, field: &str) {
    match metadata(from).and_then(|metadata| metadata.get(field)) {
        Some(value) => set(into, field, value.clone()),
        None => remove(into, field),
    }
}

/// Replaces the finalizers; none at all removes the field.
pub fn set_finalizers(object: &mut Value, finalizers: Vec<Value>) {
    if finalizers.is_empty() {
        remove(object, "finalizers");
    } else {
        set(object, "finalizers", finalizers);
    }
}

/// `metadata` fields that mean the same absent and empty are left out, as the reference server does. An empty list of
/// managedFields does not: it asks to forget all owners.
pub fn drop_empty(object: &mut Value) {
    const OMITTED: [&str; 11] = [
        "annotations",
        "finalizers",
        "generateName",
        "labels",
        "namespace",
        "ownerReferences",
        "resourceVersion",
        "uid",
        "deletionTimestamp",
        "creationTimestamp",
        "deletionGracePeriodSeconds",
    ];
    let metadata = metadata_mut(object);
    for field in OMITTED {
        let empty = match metadata.get(field) {
            Some(Value::Null) => true,
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Array(items)) => items.is_empty(),
            Some(Value::Object(entries)) => entries.is_empty(),
            _ => false,
        };
        if empty {
            metadata.remove(field);
        }
    }
    metadata.remove("selfLink");
}
