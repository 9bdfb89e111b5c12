//! The rules of pod templates whose violation a user should hear of here, and not from every member.

use std::collections::BTreeSet;

use evenkeel_shared::{field::FieldError, selector::LabelSelector, syntax};
use serde_json::Value;

use crate::kinds::look::{at, items, pairs, text};

/// The selector of a workload must be there, not be empty, and match its template's labels. `kind` is named in the
/// text.
pub fn selected(object: &Value, kind: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let selector = at(object, "/spec/selector");
    if selector.is_null() {
        errors.push(FieldError::required("spec.selector", ""));
    } else if selector.as_object().is_some_and(serde_json::Map::is_empty) {
        errors.push(FieldError::invalid(
            "spec.selector",
            selector,
            &format!("empty selector is invalid for {kind}"),
        ));
        return errors;
    }
    let labels = pairs(object, "/spec/template/metadata/labels");
    let matches = serde_json::from_value(selector.clone())
        .ok()
        .and_then(|selector| LabelSelector::of(&selector).ok())
        .is_some_and(|selector| {
            selector.matches(|key| labels.iter().find(|(k, _)| *k == key).map(|(_, v)| *v))
        });
    if !matches {
        errors.push(FieldError::invalid(
            "spec.template.metadata.labels",
            at(object, "/spec/template/metadata/labels"),
            "`selector` does not match template `labels`",
        ));
    }
    errors
}

/// The rules of a pod's spec at `path` (`spec.template.spec`).
pub fn spec(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut names = BTreeSet::new();
    if items(spec, "/containers").is_empty() {
        errors.push(FieldError::required(format!("{path}.containers"), ""));
    }
    for list in ["containers", "initContainers"] {
        for (i, container) in items(spec, &format!("/{list}")).iter().enumerate() {
            let path = format!("{path}.{list}[{i}]");
            self::container(container, &path, &mut names, &mut errors);
        }
    }
    let mut volumes = BTreeSet::new();
    for (i, volume) in items(spec, "/volumes").iter().enumerate() {
        let path = format!("{path}.volumes[{i}].name");
        name(text(volume, "/name"), &path, &mut volumes, &mut errors);
    }
    one_of(
        spec,
        "restartPolicy",
        path,
        &["Always", "OnFailure", "Never"],
        &mut errors,
    );
    errors
}

fn name<'a>(
    name: &'a str,
    path: &str,
    taken: &mut BTreeSet<&'a str>,
    errors: &mut Vec<FieldError>,
) {
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    for fault in syntax::dns_label(name) {
        errors.push(FieldError::invalid(path, &name.into(), &fault));
    }
    if !taken.insert(name) {
        errors.push(FieldError::duplicate(path, &name.into()));
    }
}

fn one_of(object: &Value, field: &str, path: &str, known: &[&str], errors: &mut Vec<FieldError>) {
    let value = at(object, &format!("/{field}"));
    if value.as_str().is_some_and(|value| !known.contains(&value)) {
        let mut known = known.to_vec();
        known.sort_unstable();
        errors.push(FieldError::not_supported(
            format!("{path}.{field}"),
            value,
            &known,
        ));
    }
}

fn container<'a>(
    container: &'a Value,
    path: &str,
    names: &mut BTreeSet<&'a str>,
    errors: &mut Vec<FieldError>,
) {
    name(
        text(container, "/name"),
        &format!("{path}.name"),
        names,
        errors,
    );
    if text(container, "/image").is_empty() {
        errors.push(FieldError::required(format!("{path}.image"), ""));
    }
    one_of(
        container,
        "imagePullPolicy",
        path,
        &["Always", "IfNotPresent", "Never"],
        errors,
    );
    let mut taken = BTreeSet::new();
    for (i, port) in items(container, "/ports").iter().enumerate() {
        let path = format!("{path}.ports[{i}]");
        self::port(port, &path, &mut taken, errors);
    }
    for (i, variable) in items(container, "/env").iter().enumerate() {
        let path = format!("{path}.env[{i}]");
        if text(variable, "/name").is_empty() {
            errors.push(FieldError::required(format!("{path}.name"), ""));
        }
        if !text(variable, "/value").is_empty() && !at(variable, "/valueFrom").is_null() {
            errors.push(FieldError::invalid(
                format!("{path}.valueFrom"),
                &"".into(),
                "may not be specified when `value` is not empty",
            ));
        }
    }
}

fn port<'a>(
    port: &'a Value,
    path: &str,
    taken: &mut BTreeSet<&'a str>,
    errors: &mut Vec<FieldError>,
) {
    let name = text(port, "/name");
    let name_path = format!("{path}.name");
    if name.len() > 15 {
        errors.push(FieldError::invalid(
            name_path,
            &name.into(),
            "must be no more than 15 characters",
        ));
    } else if !name.is_empty() && !taken.insert(name) {
        errors.push(FieldError::duplicate(name_path, &name.into()));
    }
    let number = at(port, "/containerPort");
    match number.as_i64().unwrap_or_default() {
        0 => errors.push(FieldError::required(format!("{path}.containerPort"), "")),
        1..=65535 => {}
        _ => errors.push(FieldError::invalid(
            format!("{path}.containerPort"),
            number,
            "must be between 1 and 65535, inclusive",
        )),
    }
    one_of(port, "protocol", path, &["SCTP", "TCP", "UDP"], errors);
}
