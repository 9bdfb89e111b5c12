//! Which constraints are refused, and where the fault is: the checks of the real API validation, in its order.

use std::collections::BTreeSet;

use evenkeel_shared::{field::FieldError, syntax};
use k8s_openapi::{
    api::core::v1::TopologySpreadConstraint,
    apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement},
};
use serde_json::{Value, json};

use super::{
    Labels,
    constraint::{DO_NOT_SCHEDULE, SCHEDULE_ANYWAY},
};

const POLICIES: [&str; 2] = ["Honor", "Ignore"];

/// Checks the constraints of a pod as the API server does on creation: the keys of `matchLabelKeys` that the pod
/// carries become part of the selector first. `path` is that of the list (`spec.topologySpreadConstraints`).
pub fn validate_pod(
    constraints: &[TopologySpreadConstraint],
    pod_labels: &Labels,
    path: &str,
) -> Vec<FieldError> {
    let merged: Vec<_> = constraints
        .iter()
        .map(|constraint| merge_keys(constraint, pod_labels))
        .collect();
    validate(&merged, path)
}

/// Checks the constraints of a pod template, which are taken as they stand.
pub fn validate(constraints: &[TopologySpreadConstraint], path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, constraint) in constraints.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let later = &constraints[index + 1..];
        check(constraint, later, &path, &mut errors);
    }
    errors
}

/// The constraint as the API server stores it with a pod.
pub fn merge_keys(
    constraint: &TopologySpreadConstraint,
    pod_labels: &Labels,
) -> TopologySpreadConstraint {
    let mut merged = constraint.clone();
    if let Some(selector) = &mut merged.label_selector {
        for key in constraint.match_label_keys.iter().flatten() {
            if let Some(value) = pod_labels.get(key) {
                selector
                    .match_expressions
                    .get_or_insert_default()
                    .push(LabelSelectorRequirement {
                        key: key.clone(),
                        operator: "In".to_owned(),
                        values: Some(vec![value.clone()]),
                    });
            }
        }
    }
    merged
}

fn check(
    constraint: &TopologySpreadConstraint,
    later: &[TopologySpreadConstraint],
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let action = constraint.when_unsatisfiable.as_str();
    if constraint.max_skew <= 0 {
        errors.push(FieldError::invalid(
            format!("{path}.maxSkew"),
            &json!(constraint.max_skew),
            "must be greater than zero",
        ));
    }
    if constraint.topology_key.is_empty() {
        errors.push(FieldError::required(
            format!("{path}.topologyKey"),
            "can not be empty",
        ));
    }
    if ![DO_NOT_SCHEDULE, SCHEDULE_ANYWAY].contains(&action) {
        errors.push(FieldError::not_supported(
            format!("{path}.whenUnsatisfiable"),
            &json!(action),
            &[DO_NOT_SCHEDULE, SCHEDULE_ANYWAY],
        ));
    }
    let pair = |constraint: &TopologySpreadConstraint| {
        format!(
            "{{{}, {}}}",
            constraint.topology_key, constraint.when_unsatisfiable
        )
    };
    if later.iter().any(|other| pair(other) == pair(constraint)) {
        errors.push(FieldError::duplicate(
            format!("{path}.{{topologyKey, whenUnsatisfiable}}"),
            &json!(pair(constraint)),
        ));
    }
    if let Some(min_domains) = constraint.min_domains {
        let mut wrong = |why: &str| {
            let path = format!("{path}.minDomains");
            errors.push(FieldError::invalid(path, &json!(min_domains), why));
        };
        if min_domains <= 0 {
            wrong("must be greater than zero");
        }
        if action != DO_NOT_SCHEDULE {
            wrong(&format!(
                "can only use minDomains if whenUnsatisfiable={DO_NOT_SCHEDULE}, not {action}"
            ));
        }
    }
    for (field, policy) in [
        ("nodeAffinityPolicy", &constraint.node_affinity_policy),
        ("nodeTaintsPolicy", &constraint.node_taints_policy),
    ] {
        if let Some(policy) = policy
            && !POLICIES.contains(&policy.as_str())
        {
            let path = format!("{path}.{field}");
            errors.push(FieldError::not_supported(path, &json!(policy), &POLICIES));
        }
    }
    check_keys(constraint, path, errors);
    if let Some(selector) = &constraint.label_selector {
        check_selector(selector, &format!("{path}.labelSelector"), errors);
    }
}

fn check_keys(constraint: &TopologySpreadConstraint, path: &str, errors: &mut Vec<FieldError>) {
    let keys = constraint.match_label_keys.as_deref().unwrap_or_default();
    if keys.is_empty() {
        return;
    }
    let Some(selector) = &constraint.label_selector else {
        errors.push(FieldError::forbidden(
            format!("{path}.matchLabelKeys"),
            "must not be specified when labelSelector is not set",
        ));
        return;
    };
    for (index, key) in keys.iter().enumerate() {
        for wrong in syntax::qualified_name(key) {
            let path = format!("{path}.matchLabelKeys[{index}]");
            errors.push(FieldError::invalid(path, &json!(key), &wrong));
        }
    }
    let mut seen: BTreeSet<&str> = selector
        .match_labels
        .iter()
        .flatten()
        .map(|(key, _)| key.as_str())
        .collect();
    for expression in selector.match_expressions.iter().flatten() {
        let key = expression.key.as_str();
        // The path is the real one's: the index stands directly under the constraint.
        if let Some(index) = keys.iter().rposition(|listed| listed == key)
            && seen.contains(key)
        {
            errors.push(FieldError::invalid(
                format!("{path}[{index}]"),
                &json!(key),
                "exists in both matchLabelKeys and labelSelector",
            ));
        }
        seen.insert(key);
    }
}

fn check_selector(selector: &LabelSelector, path: &str, errors: &mut Vec<FieldError>) {
    let mut invalid = |path: String, value: &str, wrong: Vec<String>| {
        let value: Value = value.into();
        errors.extend(
            wrong
                .iter()
                .map(|wrong| FieldError::invalid(path.clone(), &value, wrong)),
        );
    };
    for (key, value) in selector.match_labels.iter().flatten() {
        let path = format!("{path}.matchLabels");
        invalid(path.clone(), key, syntax::qualified_name(key));
        invalid(path, value, syntax::label_value(value));
    }
    for (index, expression) in selector.match_expressions.iter().flatten().enumerate() {
        check_expression(
            expression,
            &format!("{path}.matchExpressions[{index}]"),
            errors,
        );
    }
}

fn check_expression(
    expression: &LabelSelectorRequirement,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let values = expression.values.as_deref().unwrap_or_default();
    match expression.operator.as_str() {
        "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(
            format!("{path}.values"),
            "must be specified when `operator` is 'In' or 'NotIn'",
        )),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::forbidden(
            format!("{path}.values"),
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => errors.push(FieldError::invalid(
            format!("{path}.operator"),
            &json!(other),
            "not a valid selector operator",
        )),
    }
    for wrong in syntax::qualified_name(&expression.key) {
        errors.push(FieldError::invalid(
            format!("{path}.key"),
            &json!(expression.key),
            &wrong,
        ));
    }
    for (index, value) in values.iter().enumerate() {
        for wrong in syntax::label_value(value) {
            errors.push(FieldError::invalid(
                format!("{path}.values[{index}]"),
                &json!(value),
                &wrong,
            ));
        }
    }
}
