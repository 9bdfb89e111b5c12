//! Clusters.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Taint;

use super::{Word, faults, shown, url};
use crate::{
    cluster::{Cluster, ClusterSpec, LocalSecretReference, ResourceModel, SyncMode},
    field::FieldError,
    quantity::Quantity,
    stamps, syntax,
};

/// The longest name of a cluster, in bytes: room for the prefix of its namespace.
const NAME_MAX: usize = 48;

/// The rules of a Cluster.
pub fn cluster(cluster: &Cluster) -> Vec<FieldError> {
    let mut errors = name(cluster.name());
    errors.extend(spec(&cluster.spec));
    errors
}

/// The rules of a change to a Cluster, those of [`cluster`] included.
pub fn cluster_update(new: &Cluster, old: &Cluster) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (path, new, old) in [
        ("metadata.name", &new.metadata.name, &old.metadata.name),
        ("metadata.uid", &new.metadata.uid, &old.metadata.uid),
    ] {
        if new != old {
            errors.push(FieldError::invalid(path, &shown(new), "field is immutable"));
        }
    }
    errors.extend(cluster(new));
    errors
}

fn name(name: &str) -> Vec<FieldError> {
    let path = "metadata.name";
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    if name.contains('.') {
        return vec![FieldError::invalid(
            path,
            &name.into(),
            "must not contain dots",
        )];
    }
    if name.len() > NAME_MAX {
        let why = format!("must be no more than {NAME_MAX} characters");
        return vec![FieldError::invalid(path, &name.into(), &why)];
    }
    faults(path, name, &syntax::dns_label(name))
}

fn spec(spec: &ClusterSpec) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match &spec.sync_mode {
        None => errors.push(FieldError::required("spec.syncMode", "")),
        Some(mode) if mode.text().is_empty() => {
            errors.push(FieldError::required("spec.syncMode", ""));
        }
        Some(_) => {}
    }
    if !matches!(spec.sync_mode, Some(SyncMode::Pull | SyncMode::Push)) {
        let mode = spec
            .sync_mode
            .as_ref()
            .map(SyncMode::as_str)
            .unwrap_or_default();
        errors.push(FieldError::not_supported(
            "spec.syncMode",
            &mode.into(),
            &["Pull", "Push"],
        ));
    }
    if !spec.api_endpoint.is_empty() {
        errors.extend(url::endpoint("spec.apiEndpoint", &spec.api_endpoint));
    }
    errors.extend(secret("spec.secretRef", spec.secret_ref.as_ref()));
    errors.extend(secret(
        "spec.impersonatorSecretRef",
        spec.impersonator_secret_ref.as_ref(),
    ));
    if !spec.proxy_url.is_empty() {
        errors.extend(url::proxy("spec.proxyURL", &spec.proxy_url));
    }
    for (path, value) in [
        ("spec.provider", &spec.provider),
        ("spec.region", &spec.region),
    ] {
        errors.extend(faults(path, value, &syntax::label_value(value)));
    }
    if !spec.zone.is_empty() && !spec.zones.is_empty() {
        let why = "zone and zones cannot co-exist";
        errors.push(FieldError::type_invalid("spec", &shown(&spec.zone), why));
    }
    errors.extend(faults(
        "spec.zone",
        &spec.zone,
        &syntax::label_value(&spec.zone),
    ));
    for (i, zone) in spec.zones.iter().enumerate() {
        errors.extend(faults(
            &format!("spec.zones[{i}]"),
            zone,
            &syntax::label_value(zone),
        ));
    }
    errors.extend(taints(&spec.taints));
    errors.extend(models(&spec.resource_models));
    errors
}

fn secret(path: &str, reference: Option<&LocalSecretReference>) -> Vec<FieldError> {
    let Some(reference) = reference else {
        return Vec::new();
    };
    [
        ("namespace", &reference.namespace),
        ("name", &reference.name),
    ]
    .into_iter()
    .filter(|(_, value)| value.is_empty())
    .map(|(field, _)| FieldError::required(format!("{path}.{field}"), ""))
    .collect()
}

fn taints(taints: &[Taint]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (i, taint) in taints.iter().enumerate() {
        let path = format!("spec.taints[{i}]");
        let key_path = format!("{path}.key");
        errors.extend(faults(
            &key_path,
            &taint.key,
            &syntax::qualified_name(&taint.key),
        ));
        let value = taint.value.as_deref().unwrap_or_default();
        errors.extend(faults(
            &format!("{path}.value"),
            value,
            &syntax::label_value(value),
        ));
        match taint.effect.as_str() {
            "" => errors.push(FieldError::required(format!("{path}.effect"), "")),
            stamps::NO_SCHEDULE | stamps::NO_EXECUTE => {}
            other => errors.push(FieldError::not_supported(
                format!("{path}.effect"),
                &other.into(),
                &[stamps::NO_SCHEDULE, stamps::NO_EXECUTE],
            )),
        }
        if !seen.insert((&taint.key, &taint.effect)) {
            let mut error = FieldError::duplicate(path, &shown(taint));
            error
                .message
                .push_str(": taints must be unique by key and effect pair");
            errors.push(error);
        }
    }
    errors
}

/// The first rule that the classes break.
fn models(models: &[ResourceModel]) -> Option<FieldError> {
    let wrong = |why| {
        Some(FieldError::invalid(
            "spec.resourceModels",
            &shown(&models),
            why,
        ))
    };
    for (i, model) in models.iter().enumerate() {
        if models[..i].iter().any(|other| other.grade == model.grade) {
            return wrong("The grade of each models should not be the same");
        }
        if model.ranges.len() != models[0].ranges.len() {
            return wrong("The number of resource types should be the same");
        }
        for (k, range) in model.ranges.iter().enumerate() {
            if range.max <= range.min {
                return wrong("The max value of each resource must be greater than the min value");
            }
            match i.checked_sub(1).map(|before| &models[before].ranges[k]) {
                None if range.min != Quantity::ZERO => {
                    return wrong("The min value of each resource in the first model should be 0");
                }
                Some(before) if before.name != range.name => {
                    return wrong("The resource types of each models should be the same");
                }
                Some(before) if before.max != range.min => {
                    return wrong(
                        "Model intervals for resources must be contiguous and non-overlapping",
                    );
                }
                _ => {}
            }
        }
    }
    None
}
