//! Rules that several kinds share.

use evenkeel_shared::field::FieldError;
use serde_json::Value;

use super::look::at;

fn pointer(path: &str) -> String {
    format!("/{}", path.replace('.', "/"))
}

/// These fields may not change.
pub fn immutable(new: &Value, old: &Value, paths: &[&str]) -> Vec<FieldError> {
    paths
        .iter()
        .filter(|path| at(new, &pointer(path)) != at(old, &pointer(path)))
        .map(|path| FieldError::invalid(*path, at(new, &pointer(path)), "field is immutable"))
        .collect()
}

/// These fields of `spec` may not be negative.
pub fn not_negative(object: &Value, fields: &[&str]) -> Vec<FieldError> {
    fields
        .iter()
        .map(|field| (field, at(object, &format!("/spec/{field}"))))
        .filter(|(_, value)| value.as_i64().is_some_and(|value| value < 0))
        .map(|(field, value)| {
            FieldError::invalid(
                format!("spec.{field}"),
                value,
                "must be greater than or equal to 0",
            )
        })
        .collect()
}

/// This field, when it is there, is one of the known words; the text lists them in the order given.
pub fn one_of(object: &Value, path: &str, known: &[&str]) -> Option<FieldError> {
    let value = at(object, &pointer(path));
    value
        .as_str()
        .is_some_and(|word| !known.contains(&word))
        .then(|| FieldError::not_supported(path, value, known))
}

/// Once `immutable` is set, it stays, and so do these fields.
pub fn frozen(new: &Value, old: &Value, fields: &[&str]) -> Vec<FieldError> {
    if old["immutable"] != true {
        return Vec::new();
    }
    let why = "field is immutable when `immutable` is set";
    let mut errors = Vec::new();
    if new["immutable"] != true {
        errors.push(FieldError::forbidden("immutable", why));
    }
    for field in fields {
        if new[*field] != old[*field] {
            errors.push(FieldError::forbidden(*field, why));
        }
    }
    errors
}
