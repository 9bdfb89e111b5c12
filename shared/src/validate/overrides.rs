//! Override policies.

use super::{annotation_keys, labels, placement, pointer, policy, shown};
use crate::{
    field::FieldError,
    overrides::{
        DocumentPatchOperation, FieldOverrider, OverrideSpec, OverriderOperator, Overriders,
    },
};

/// The rules of an override policy; `namespace` is empty for a cluster-wide one.
pub fn override_policy(spec: &OverrideSpec, namespace: &str) -> Vec<FieldError> {
    let mut errors = policy::selectors(&spec.resource_selectors, namespace);
    let deprecated = spec.overriders != Overriders::default();
    if !spec.override_rules.is_empty() {
        if let Some(clusters) = &spec.target_cluster {
            let why = "overrideRules and targetCluster can't co-exist";
            errors.push(FieldError::invalid(
                "spec.targetCluster",
                &shown(clusters),
                why,
            ));
        }
        if deprecated {
            let why = "overrideRules and overriders can't co-exist";
            errors.push(FieldError::invalid(
                "spec.overriders",
                &shown(&spec.overriders),
                why,
            ));
        }
    }
    if let Some(clusters) = &spec.target_cluster {
        errors.extend(placement::affinity(clusters, "spec.targetCluster"));
    }
    if deprecated {
        errors.extend(overriders(&spec.overriders, "spec.overriders"));
    }
    for (i, rule) in spec.override_rules.iter().enumerate() {
        let path = format!("spec.overrideRules[{i}]");
        errors.extend(overriders(&rule.overriders, &format!("{path}.overriders")));
        if let Some(clusters) = &rule.target_cluster {
            errors.extend(placement::affinity(
                clusters,
                &format!("{path}.targetCluster"),
            ));
        }
    }
    errors
}

fn overriders(overriders: &Overriders, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (i, overrider) in overriders.annotations_overrider.iter().enumerate() {
        let path = format!("{path}.annotationsOverrider[{i}].value");
        errors.extend(annotation_keys(&path, overrider.value.keys()));
    }
    for (i, overrider) in overriders.labels_overrider.iter().enumerate() {
        let path = format!("{path}.labelsOverrider[{i}].value");
        errors.extend(labels(&path, &overrider.value));
    }
    for (i, overrider) in overriders.image_overrider.iter().enumerate() {
        if let Some(predicate) = &overrider.predicate {
            let path = format!("{path}.imageOverrider[{i}].predicate.path");
            errors.extend(pointer(path, &predicate.path));
        }
    }
    for (i, overrider) in overriders.field_overrider.iter().enumerate() {
        errors.extend(field(overrider, &format!("{path}.fieldOverrider[{i}]")));
    }
    errors
}

fn field(overrider: &FieldOverrider, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match (overrider.json.is_empty(), overrider.yaml.is_empty()) {
        (false, false) => {
            let why = "FieldOverrider has both YAML and JSON set. Only one is allowed";
            errors.push(FieldError::invalid(path, &shown(overrider), why));
        }
        (true, true) => {
            errors.push(FieldError::required(
                path,
                "FieldOverrider must have either JSON or YAML set",
            ));
        }
        _ => {}
    }
    errors.extend(pointer(format!("{path}.fieldPath"), &overrider.field_path));
    for (form, operations) in [("json", &overrider.json), ("yaml", &overrider.yaml)] {
        for (i, operation) in operations.iter().enumerate() {
            errors.extend(self::operation(operation, &format!("{path}.{form}[{i}]")));
        }
    }
    errors
}

fn operation(operation: &DocumentPatchOperation, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    errors.extend(pointer(format!("{path}.subPath"), &operation.sub_path));
    let value_path = format!("{path}.value");
    match (&operation.operator, &operation.value) {
        (Some(OverriderOperator::Remove), Some(value)) => {
            let why = "value is not allowed for remove operation";
            errors.push(FieldError::invalid(value_path, value, why));
        }
        (Some(OverriderOperator::Add | OverriderOperator::Replace), None) => {
            let why = "value is required for add or replace operation";
            errors.push(FieldError::invalid(
                value_path,
                &serde_json::Value::Null,
                why,
            ));
        }
        _ => {}
    }
    errors
}
