//! What must hold of every parser that faces the network, whatever it is given. Each function takes arbitrary bytes;
//! property tests call them on every run, and libFuzzer in `tests/fuzz`.

use evenkeel_api::request::{
    accept::Accept,
    body,
    path::{self, Route},
    query::{ListOptions, Query, WriteOptions},
    syntax,
};
use evenkeel_shared::selector::{FieldSelector, LabelSelector};
use serde_json::Value;

/// How much larger a patched document may be than the document and its patch.
const GROWTH: usize = 64;

/// Paths: what is understood has no empty parts, and nothing is understood twice.
pub fn path(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Some(Route::Resource(found)) = path::parse(text)
        && !found.malformed
    {
        assert!(
            !found.resource.is_empty() && !found.version.is_empty(),
            "{text:?}: {found:?}"
        );
        for part in [&found.namespace, &found.name, &found.subresource]
            .into_iter()
            .flatten()
        {
            assert!(!part.is_empty(), "{text:?}: {found:?}");
        }
    }
}

/// Queries, and the options that they make.
pub fn query(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let query = Query::parse(text);
    for watch in [false, true] {
        let _ = ListOptions::parse(&query, watch);
    }
    for apply in [None, Some(false), Some(true)] {
        let _ = WriteOptions::parse(&query, "Thing", apply);
    }
    let _ = Accept::parse(text);
}

/// Selectors: one that is empty takes everything.
pub fn selector(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(labels) = LabelSelector::parse(text) {
        let takes = labels.matches(|_| Some("1")) || labels.matches(|_| None);
        assert!(takes || !labels.is_empty(), "{text:?}");
    }
    if let Ok(fields) = FieldSelector::parse(text) {
        assert!(fields.matches(|_| "") || !fields.is_empty(), "{text:?}");
        if let Some(name) = fields.required("metadata.name") {
            assert!(
                !fields.matches(|_| "/") || name == "/",
                "{text:?} takes another name than {name}"
            );
        }
    }
}

/// Bodies: JSON is refused exactly when there is something to say about it.
pub fn object(bytes: &[u8]) {
    if body::json(bytes).is_ok() {
        assert_eq!(syntax::problem(bytes), None);
    }
    let _ = body::yaml(bytes);
}

/// JSON patches: bytes are a document and a patch, apart at the first line feed. No patch makes a document grow beyond
/// all bounds.
pub fn json_patch(bytes: &[u8]) {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
        return;
    };
    let (document, patch) = (&bytes[..end], &bytes[end + 1..]);
    let Ok(document) = serde_json::from_slice::<Value>(document) else {
        return;
    };
    if let Ok(patched) = evenkeel_api::patch::json::apply(&document, patch) {
        let size = patched.to_string().len();
        assert!(
            size <= bytes.len() * GROWTH + 1024 * 1024,
            "{} bytes became {size}",
            bytes.len()
        );
    }
    if let Ok(patch) = serde_json::from_slice::<Value>(patch) {
        let merged = evenkeel_api::patch::merge::apply(&document, &patch);
        assert!(
            merged.to_string().len() <= bytes.len() * 6 + 2,
            "a merge is no larger than both"
        );
    }
}
