//! ConfigMap and ResourceQuota.

use evenkeel_api::kind::{Column, Strategy};
use evenkeel_shared::{field::FieldError, syntax};
use serde_json::Value;

use crate::kinds::{
    column::{age, shown},
    look::{at, pairs},
    rules::frozen,
};

pub fn columns() -> Vec<Column> {
    vec![
        shown(
            "Data",
            "string",
            "Data contains the configuration data. Each key must consist of alphanumeric characters, '-', '_' or '.'. Values with non-UTF-8 byte sequences must use the BinaryData field. The keys stored in Data must not overlap with the keys in the BinaryData field, this is enforced during validation process.",
            |object, _| {
                let count = |field| {
                    at(object, field)
                        .as_object()
                        .map_or(0, serde_json::Map::len)
                };
                (count("/data") + count("/binaryData")).into()
            },
        ),
        age(),
    ]
}

/// What is used of what is allowed: `pods: 2/10, cpu: 1/4`.
pub fn quota_columns() -> Vec<Column> {
    vec![
        shown(
            "Request",
            "string",
            "Request represents a minimum amount of cpu/memory that a container may consume.",
            |object, _| quota(object, false).into(),
        ),
        shown(
            "Limit",
            "string",
            "Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node.",
            |object, _| quota(object, true).into(),
        ),
        age(),
    ]
}

fn quota(object: &Value, limits: bool) -> String {
    let used = at(object, "/status/used");
    pairs(object, "/status/hard")
        .iter()
        .filter(|(name, _)| name.starts_with("limits.") == limits)
        .map(|(name, hard)| {
            let used = used[*name].as_str().unwrap_or("0");
            format!("{name}: {used}/{hard}")
        })
        .collect::<Vec<_>>()
        .join(", ")
}

/// The largest ConfigMap or Secret, in bytes of data.
pub const MAX_DATA: usize = 1 << 20;

pub struct ConfigMap;

impl Strategy for ConfigMap {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let mut size = 0;
        for field in ["data", "binaryData"] {
            for (key, value) in pairs(object, &format!("/{field}")) {
                size += value.len();
                for fault in syntax::config_key(key) {
                    errors.push(FieldError::invalid(
                        format!("{field}[{key}]"),
                        &key.into(),
                        &fault,
                    ));
                }
                if field == "binaryData" && !object["data"][key].is_null() {
                    errors.push(FieldError::invalid(
                        format!("data[{key}]"),
                        &key.into(),
                        "duplicate of key present in binaryData",
                    ));
                }
            }
        }
        if size > MAX_DATA {
            errors.push(FieldError::too_long("", MAX_DATA));
        }
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        frozen(new, old, &["data", "binaryData"])
    }
}
