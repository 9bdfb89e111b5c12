//! JSON merge patch (RFC 7386).

use serde_json::Value;

use super::{PatchError, golang};
use crate::request::body;

/// Reads a patch from a request body: an object and nothing else.
pub fn parse(text: &[u8]) -> Result<Value, PatchError> {
    let patch = body::json(text)
        .map_err(|error| PatchError::BadRequest(format!("error decoding patch: {error}")))?;
    match patch {
        Value::Object(_) => Ok(patch),
        Value::Null => Err(PatchError::BadRequest("Invalid JSON Patch".into())),
        other => Err(PatchError::BadRequest(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            golang::json_kind(&other)
        ))),
    }
}

/// Merges `patch` into `object`: objects by key, null deletes, everything else replaces.
pub fn apply(object: &Value, patch: &Value) -> Value {
    let mut out = object.clone();
    json_patch::merge(&mut out, patch);
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn examples_of_the_rfc() {
        let table = [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (
                json!({"a": "b"}),
                json!({"b": "c"}),
                json!({"a": "b", "b": "c"}),
            ),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (
                json!({"a": "b", "b": "c"}),
                json!({"a": null}),
                json!({"b": "c"}),
            ),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (
                json!({"a": [{"b": "c"}]}),
                json!({"a": [1]}),
                json!({"a": [1]}),
            ),
            (
                json!({"e": null}),
                json!({"a": 1}),
                json!({"e": null, "a": 1}),
            ),
            (
                json!({}),
                json!({"a": {"bb": {"ccc": null}}}),
                json!({"a": {"bb": {}}}),
            ),
        ];
        for (object, patch, expected) in table {
            assert_eq!(apply(&object, &patch), expected, "{object} with {patch}");
        }
    }

    #[test]
    fn only_objects_are_patches() {
        for (body, text) in [
            (
                "[]",
                "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
            ),
            (
                "\"x\"",
                "error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}",
            ),
            ("null", "Invalid JSON Patch"),
        ] {
            assert_eq!(
                parse(body.as_bytes()),
                Err(PatchError::BadRequest(text.into()))
            );
        }
        assert!(parse(b"{bad").is_err());
        assert!(parse(b"").is_err());
    }
}
