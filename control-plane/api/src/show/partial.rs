//! Metadata alone.

use evenkeel_store::Object;
use serde_json::{Value, json};

use crate::verb::list::Page;

/// Of a stored object.
pub(crate) fn stored(object: &Object, version: &str) -> Value {
    #[derive(serde::Deserialize)]
    struct Seen {
        metadata: Value,
    }
    let metadata = serde_json::from_slice(&object.json)
        .map(|seen: Seen| seen.metadata)
        .unwrap_or_default();
    with(&metadata, version)
}

/// Of a value.
pub(crate) fn value(object: &Value, version: &str) -> Value {
    with(object.get("metadata").unwrap_or(&json!({})), version)
}

pub(crate) fn with(metadata: &Value, version: &str) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": metadata,
    })
}

/// Of a list. An empty one has `null` for items, as on the reference server.
pub(crate) fn list(page: &Page, version: &str) -> Value {
    let items = page
        .objects
        .iter()
        .map(|object| stored(object, version))
        .collect::<Vec<_>>();
    json!({
        "kind": "PartialObjectMetadataList",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": super::list_metadata(page),
        "items": if items.is_empty() { Value::Null } else { items.into() },
    })
}
