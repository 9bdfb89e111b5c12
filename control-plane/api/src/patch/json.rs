//! JSON patch (RFC 6902), with the latitude of the reference server: `replace` of an absent member adds it, `copy` from an
//! absent path gives null, and `test` of an absent path against null passes.

use json_patch::{AddOperation, Patch, PatchOperation};
use serde_json::Value;

use super::{PatchError, golang};
use crate::request::body;

/// Operations that a patch may have.
pub const MAX_OPERATIONS: usize = 10_000;
/// What `copy` operations may add to an object, in bytes of JSON.
const MAX_COPIED_BYTES: usize = 3 << 20;

/// Applies the patch in a request body.
pub fn apply(object: &Value, text: &[u8]) -> Result<Value, PatchError> {
    let patch = body::json(text)
        .map_err(|error| PatchError::BadRequest(format!("error decoding patch: {error}")))?;
    let operations = match &patch {
        Value::Array(operations) => operations,
        // As decoded into a list: nothing to do.
        Value::Null => return Ok(object.clone()),
        other => {
            return Err(PatchError::BadRequest(format!(
                "error decoding patch: json: cannot unmarshal {} into Go value of type []handlers.jsonPatchOp",
                golang::json_kind(other)
            )));
        }
    };
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError::TooLarge(format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            operations.len()
        )));
    }
    let Patch(operations) = serde_json::from_value(patch).map_err(|_| PatchError::Rejected)?;
    let mut out = object.clone();
    let mut copied = 0;
    for operation in operations {
        let operation = lenient(&out, operation, &mut copied)?;
        if let Some(operation) = operation {
            json_patch::patch_unsafe(&mut out, &[operation]).map_err(|_| PatchError::Rejected)?;
        }
    }
    Ok(out)
}

/// The operation in the strict form that means the same here; `None` when nothing is left to do.
fn lenient(
    object: &Value,
    operation: PatchOperation,
    copied: &mut usize,
) -> Result<Option<PatchOperation>, PatchError> {
    Ok(Some(match operation {
        PatchOperation::Replace(replace) if is_absent_member(object, replace.path.as_str()) => {
            PatchOperation::Add(AddOperation {
                path: replace.path,
                value: replace.value,
            })
        }
        PatchOperation::Copy(copy) => match object.pointer(copy.from.as_str()) {
            Some(value) => {
                *copied += size(value);
                if *copied > MAX_COPIED_BYTES {
                    return Err(PatchError::Rejected);
                }
                PatchOperation::Copy(copy)
            }
            None if is_absent_member(object, copy.from.as_str()) => {
                PatchOperation::Add(AddOperation {
                    path: copy.path,
                    value: Value::Null,
                })
            }
            None => return Err(PatchError::Rejected),
        },
        PatchOperation::Test(test)
            if test.value.is_null() && is_absent_member(object, test.path.as_str()) =>
        {
            return Ok(None);
        }
        other => other,
    }))
}

/// Whether the path names a member that its parent, an object, does not have.
fn is_absent_member(object: &Value, path: &str) -> bool {
    path.rsplit_once('/').is_some_and(|(parent, _)| {
        object.pointer(path).is_none() && object.pointer(parent).is_some_and(Value::is_object)
    })
}

/// About the bytes that a value takes as JSON.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(size).sum::<usize>() + items.len() + 1,
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| name.len() + 4 + size(value))
            .sum::<usize>(),
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(object: &Value, patch: &Value) -> Result<Value, PatchError> {
        apply(object, patch.to_string().as_bytes())
    }

    #[test]
    fn operations() {
        let object = json!({"a": {"b": 1}, "list": [1, 2]});
        let table = [
            (
                json!([{"op": "add", "path": "/a/c", "value": 2}]),
                Some(json!({"a": {"b": 1, "c": 2}, "list": [1, 2]})),
            ),
            (
                json!([{"op": "add", "path": "/list/-", "value": 3}]),
                Some(json!({"a": {"b": 1}, "list": [1, 2, 3]})),
            ),
            (json!([{"op": "add", "path": "/list/9", "value": 3}]), None),
            (json!([{"op": "add", "path": "/x/y", "value": 3}]), None),
            (json!([{"op": "add", "path": "a", "value": 3}]), None),
            (
                json!([{"op": "replace", "path": "/z", "value": 3}]),
                Some(json!({"a": {"b": 1}, "list": [1, 2], "z": 3})),
            ),
            (
                json!([{"op": "replace", "path": "/list/7", "value": 3}]),
                None,
            ),
            (json!([{"op": "remove", "path": "/z"}]), None),
            (
                json!([{"op": "remove", "path": "/list/0"}]),
                Some(json!({"a": {"b": 1}, "list": [2]})),
            ),
            (
                json!([{"op": "move", "from": "/a/b", "path": "/m"}]),
                Some(json!({"a": {}, "list": [1, 2], "m": 1})),
            ),
            (
                json!([{"op": "copy", "from": "/nope", "path": "/m"}]),
                Some(json!({"a": {"b": 1}, "list": [1, 2], "m": null})),
            ),
            (
                json!([{"op": "test", "path": "/nope", "value": null}]),
                Some(object.clone()),
            ),
            (json!([{"op": "test", "path": "/a/b", "value": 2}]), None),
            (json!([{"op": "bogus", "path": "/a"}]), None),
            (json!([]), Some(object.clone())),
        ];
        for (patch, expected) in table {
            assert_eq!(run(&object, &patch).ok(), expected, "{patch}");
        }
    }

    #[test]
    fn what_is_no_patch() {
        let object = json!({});
        assert_eq!(
            run(&object, &json!({"op": "add"})),
            Err(PatchError::BadRequest(
                "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp".into()
            ))
        );
        assert!(matches!(
            apply(&object, b"nope"),
            Err(PatchError::BadRequest(_))
        ));
        let many = vec![json!({"op": "test", "path": "/a", "value": null}); MAX_OPERATIONS + 1];
        assert!(matches!(
            run(&object, &many.into()),
            Err(PatchError::TooLarge(_))
        ));
    }

    #[test]
    fn copies_do_not_double_without_bound() {
        let object = json!({"a": ["x".repeat(1000)]});
        let mut patch = Vec::new();
        for _ in 0..40 {
            patch.push(json!({"op": "copy", "from": "/a", "path": "/a/-"}));
        }
        assert_eq!(run(&object, &patch.into()), Err(PatchError::Rejected));
    }
}
