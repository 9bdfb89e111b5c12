//! The bytes that the store keeps and that go on the wire.
//!
//! Every stored object begins `{"apiVersion":"…","kind":"…","metadata":{`. So the items of a list of a built-in kind,
//! which carry neither, are a slice of the stored bytes, and an object in another version differs in its head alone.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use evenkeel_store::{Attributes, Body, Object, Resource};
use serde_json::{Map, Value};

use super::meta;
use crate::kind::{Kind, Registry};

/// `{"apiVersion":"v1","kind":"Secret",`: how every object of a kind begins.
pub fn head(kind: &Kind) -> String {
    format!(
        "{{\"apiVersion\":\"{}\",\"kind\":\"{}\",",
        kind.api_version(),
        kind.kind
    )
}

/// Encodes an object for the store. `metadata.resourceVersion` is left out: the commit knows it.
pub fn encode(object: &Value, kind: &Kind) -> Body {
    let mut json = Vec::with_capacity(512);
    json.extend_from_slice(head(kind).as_bytes());
    json.extend_from_slice(b"\"metadata\":{");
    let version_at = json.len();
    let empty = Map::new();
    let metadata = meta::metadata(object).unwrap_or(&empty);
    fields(&mut json, metadata, &["resourceVersion"]);
    json.push(b'}');
    if let Some(object) = object.as_object() {
        let mark = json.len();
        json.push(b',');
        fields(&mut json, object, &["apiVersion", "kind", "metadata"]);
        if json.len() == mark + 1 {
            json.truncate(mark);
        }
    }
    json.push(b'}');
    json.shrink_to_fit();
    Body {
        json,
        version_at,
        attributes: attributes(object, kind),
    }
}

fn fields(json: &mut Vec<u8>, object: &Map<String, Value>, without: &[&str]) {
    let mut first = true;
    for (name, value) in object {
        if without.contains(&name.as_str()) {
            continue;
        }
        if !first {
            json.push(b',');
        }
        first = false;
        write(json, &Value::String(name.clone()));
        json.push(b':');
        write(json, value);
    }
}

fn write(json: &mut Vec<u8>, value: &Value) {
    // Writing a Value into memory has no way to fail: its keys are text and its numbers are finite.
    let _ = serde_json::to_writer(json, value);
}

/// What selectors look at.
pub fn attributes(object: &Value, kind: &Kind) -> Attributes {
    let labels = meta::metadata(object)
        .and_then(|metadata| metadata.get("labels"))
        .and_then(Value::as_object)
        .map(|labels| {
            labels
                .iter()
                .filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())))
                .collect()
        })
        .unwrap_or_default();
    let mut fields = kind
        .selectable_fields
        .iter()
        .map(|name| {
            let place = kind.field_place(name);
            let value = field(object, place.path);
            let value = if value.is_empty() {
                place.absent.into()
            } else {
                value.into()
            };
            ((*name).into(), value)
        })
        .collect::<Vec<(Box<str>, Box<str>)>>();
    fields.sort();
    Attributes {
        labels,
        fields: fields.into(),
    }
}

/// The text of a dotted path; empty when there is nothing.
fn field(object: &Value, path: &str) -> String {
    let value = path
        .split('.')
        .try_fold(object, |value, part| value.get(part));
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// What the store needs to know of objects that it loads from disk.
pub fn attributes_of(registry: Arc<Registry>) -> evenkeel_store::AttributesOf {
    Arc::new(move |resource: &Resource, json: &[u8]| {
        let table = registry.table();
        let (Some(kind), Ok(object)) = (
            table.find_resource(resource),
            serde_json::from_slice::<Value>(json),
        ) else {
            return Attributes::default();
        };
        attributes(&object, kind)
    })
}

/// A stored object as a value, in the version of `kind`. What the store holds was encoded by this server; anything else
/// there is a damaged store and reads as `null`.
pub fn decode(object: &Object, kind: &Kind) -> Value {
    let mut value: Value = serde_json::from_slice(&object.json).unwrap_or_default();
    if !object.json.starts_with(head(kind).as_bytes())
        && let Some(fields) = value.as_object_mut()
    {
        fields.insert("apiVersion".into(), kind.api_version().into());
        fields.insert("kind".into(), kind.kind.into());
    }
    value
}

/// A stored object's bytes in the version of `kind`: the stored bytes themselves when that is the stored version.
pub fn in_version(object: &Object, head: &str) -> Bytes {
    if object.json.starts_with(head.as_bytes()) {
        return object.json.clone();
    }
    let tail = tail(object);
    let mut json = BytesMut::with_capacity(head.len() + tail.len());
    json.put_slice(head.as_bytes());
    json.put_slice(tail);
    json.freeze()
}

/// A stored object's bytes behind `apiVersion` and `kind`: `"metadata":{…`.
pub fn tail(object: &Object) -> &[u8] {
    const METADATA: &[u8] = b"\"metadata\":{";
    let place = object
        .json
        .windows(METADATA.len())
        .position(|window| window == METADATA)
        .unwrap_or(1);
    &object.json[place..]
}
