//! What is checked of every object, whatever its kind.

use evenkeel_shared::{field::FieldError, syntax};
use serde_json::{Value, json};

use super::{meta, names};
use crate::kind::Kind;

/// The annotations of one object, keys and values together, in bytes.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// Checks `metadata`: of everything that is created or changed.
pub fn metadata(object: &Value, kind: &Kind) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let generate = meta::text(object, "generateName");
    if !generate.is_empty() {
        for why in names::check(kind.names, generate, true) {
            errors.push(FieldError::invalid(
                "metadata.generateName",
                &json!(generate),
                &why,
            ));
        }
    }
    let name = meta::name(object);
    if name.is_empty() {
        errors.push(FieldError::required(
            "metadata.name",
            "name or generateName is required",
        ));
    } else {
        for why in names::check(kind.names, name, false) {
            errors.push(FieldError::invalid("metadata.name", &json!(name), &why));
        }
    }
    labels(object, &mut errors);
    annotations(object, &mut errors);
    owner_references(object, &mut errors);
    finalizers(object, kind, &mut errors);
    errors
}

fn labels(object: &Value, errors: &mut Vec<FieldError>) {
    let labels = meta::metadata(object)
        .and_then(|metadata| metadata.get("labels"))
        .and_then(Value::as_object);
    for (key, value) in labels.into_iter().flatten() {
        for why in syntax::qualified_name(key) {
            errors.push(FieldError::invalid("metadata.labels", &json!(key), &why));
        }
        for why in syntax::label_value(value.as_str().unwrap_or_default()) {
            errors.push(FieldError::invalid("metadata.labels", value, &why));
        }
    }
}

fn annotations(object: &Value, errors: &mut Vec<FieldError>) {
    let annotations = meta::metadata(object)
        .and_then(|metadata| metadata.get("annotations"))
        .and_then(Value::as_object);
    let mut size = 0;
    for (key, value) in annotations.into_iter().flatten() {
        size += key.len() + value.as_str().map_or(0, str::len);
        for why in syntax::qualified_name(&key.to_lowercase()) {
            errors.push(FieldError::invalid(
                "metadata.annotations",
                &json!(key),
                &why,
            ));
        }
    }
    if size > MAX_ANNOTATIONS {
        errors.push(FieldError::too_long(
            "metadata.annotations",
            MAX_ANNOTATIONS,
        ));
    }
}

fn owner_references(object: &Value, errors: &mut Vec<FieldError>) {
    const PATH: &str = "metadata.ownerReferences";
    let references = meta::list(object, "ownerReferences");
    let mut controller: Option<&Value> = None;
    for reference in references {
        let text = |field: &str| {
            reference
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let version = text("apiVersion");
        if version.is_empty() || version.matches('/').count() > 1 || version.ends_with('/') {
            errors.push(FieldError::invalid(
                format!("{PATH}.apiVersion"),
                &json!(version),
                "version must not be empty",
            ));
        }
        for field in ["kind", "name", "uid"] {
            if text(field).is_empty() {
                errors.push(FieldError::invalid(
                    format!("{PATH}.{field}"),
                    &json!(""),
                    "must not be empty",
                ));
            }
        }
        if version == "v1" && text("kind") == "Event" {
            errors.push(invalid_text(
                PATH,
                &in_order(reference),
                "/v1, Kind=Event is disallowed from being an owner",
            ));
        }
        if reference.get("controller") == Some(&Value::Bool(true)) {
            if let Some(first) = controller {
                let named = |reference: &Value| {
                    format!(
                        "{}/{}",
                        reference["kind"].as_str().unwrap_or_default(),
                        reference["name"].as_str().unwrap_or_default()
                    )
                };
                let all = references
                    .iter()
                    .map(in_order)
                    .collect::<Vec<_>>()
                    .join(",");
                errors.push(invalid_text(
                    PATH,
                    &format!("[{all}]"),
                    &format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
                        named(first),
                        named(reference)
                    ),
                ));
            } else {
                controller = Some(reference);
            }
        }
    }
}

/// A field error whose value is JSON in an order of its own.
fn invalid_text(path: &str, value: &str, why: &str) -> FieldError {
    let mut error = FieldError::invalid(path, &Value::Null, why);
    error.message = format!("Invalid value: {value}: {why}");
    error
}

/// An owner reference as text, its fields in the order of the reference server.
fn in_order(reference: &Value) -> String {
    const ORDER: [&str; 6] = [
        "apiVersion",
        "kind",
        "name",
        "uid",
        "controller",
        "blockOwnerDeletion",
    ];
    let fields = ORDER
        .iter()
        .filter_map(|field| Some(format!("\"{field}\":{}", reference.get(field)?)))
        .collect::<Vec<_>>();
    format!("{{{}}}", fields.join(","))
}

fn finalizers(object: &Value, kind: &Kind, errors: &mut Vec<FieldError>) {
    const STANDARD: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];
    let finalizers = meta::finalizers(object);
    for finalizer in &finalizers {
        for why in syntax::qualified_name(finalizer) {
            errors.push(FieldError::invalid(
                "metadata.finalizers",
                &json!(finalizer),
                &why,
            ));
        }
    }
    if finalizers.contains(&"orphan") && finalizers.contains(&"foregroundDeletion") {
        errors.push(FieldError::invalid(
            "metadata.finalizers",
            &json!(finalizers),
            "finalizer orphan and foregroundDeletion cannot be both set",
        ));
    }
    if kind.builtin {
        for (index, finalizer) in finalizers.iter().enumerate() {
            if !finalizer.contains('/') && !STANDARD.contains(finalizer) {
                errors.push(FieldError::invalid(
                    format!("metadata.finalizers[{index}]"),
                    &json!(finalizer),
                    "name is neither a standard finalizer name nor is it fully qualified",
                ));
            }
        }
    }
}

/// Checks what may not change. The reference server finds each of these twice and says so twice in the causes.
pub fn metadata_update(new: &Value, old: &Value) -> Vec<FieldError> {
    const IMMUTABLE: &str = "field is immutable";
    let mut errors = Vec::new();
    if meta::is_terminating(old) {
        let before = meta::finalizers(old);
        let mut added = meta::finalizers(new)
            .into_iter()
            .filter(|finalizer| !before.contains(finalizer))
            .map(|finalizer| format!("{finalizer:?}"))
            .collect::<Vec<_>>();
        added.sort();
        added.dedup();
        if !added.is_empty() {
            errors.push(FieldError::forbidden(
                "metadata.finalizers",
                &format!(
                    "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                    added.join(", ")
                ),
            ));
        }
    }
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let value = |object: &Value| {
            meta::metadata(object)
                .and_then(|metadata| metadata.get(field))
                .cloned()
                .unwrap_or_default()
        };
        let (now, before) = (value(new), value(old));
        if now != before {
            errors.push(FieldError::invalid(
                format!("metadata.{field}"),
                &now,
                IMMUTABLE,
            ));
        }
    }
    let again = errors.clone();
    errors.extend(again);
    errors
}

/// Owner references of the same owner are kept once; what the client is to be warned of.
pub fn dedup_owners(object: &mut Value) -> Option<String> {
    let references = meta::list(object, "ownerReferences");
    let mut seen: Vec<&str> = Vec::new();
    let mut twice: Vec<&str> = Vec::new();
    let mut kept = Vec::new();
    for reference in references {
        let uid = reference
            .get("uid")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if seen.contains(&uid) {
            twice.push(uid);
        } else {
            seen.push(uid);
            kept.push(reference.clone());
        }
    }
    if twice.is_empty() {
        return None;
    }
    let warning = format!(
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
        twice.join(",")
    );
    meta::set(object, "ownerReferences", kept);
    Some(warning)
}
