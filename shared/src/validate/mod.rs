//! The rules that objects of the fleet must keep, with the reference's words and places where it has them.
//!
//! Types are right when these run: [`crate::read`] sees to that.

mod cluster;
mod overrides;
mod placement;
mod policy;
mod url;

use serde_json::Value;

pub use cluster::{cluster, cluster_update};
pub use overrides::override_policy;
pub use placement::{affinity, placement};
pub use policy::{propagation_policy, taint_policy};

use crate::{binding::ResourceBindingSpec, field::FieldError, syntax, work::WorkSpec};

/// The rules of a Work's spec: every manifest says what it is.
pub fn work(spec: &WorkSpec) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (i, manifest) in spec.workload.manifests.iter().enumerate() {
        let path = format!("spec.workload.manifests[{i}]");
        if !manifest.is_object() {
            errors.push(FieldError::type_invalid(
                path,
                manifest,
                "must be an object",
            ));
            continue;
        }
        for field in ["apiVersion", "kind"] {
            if manifest[field].as_str().is_none_or(str::is_empty) {
                errors.push(FieldError::required(format!("{path}.{field}"), ""));
            }
        }
    }
    errors
}

/// The rules of a binding's spec.
pub fn binding(spec: &ResourceBindingSpec) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let resource = &spec.resource;
    for (field, value) in [
        ("apiVersion", &resource.api_version),
        ("kind", &resource.kind),
        ("name", &resource.name),
    ] {
        if value.is_empty() {
            errors.push(FieldError::required(format!("spec.resource.{field}"), ""));
        }
    }
    for (i, target) in spec.clusters.iter().enumerate() {
        if target.name.is_empty() {
            errors.push(FieldError::required(format!("spec.clusters[{i}].name"), ""));
        }
    }
    for (i, task) in spec.graceful_eviction_tasks.iter().enumerate() {
        let path = format!("spec.gracefulEvictionTasks[{i}]");
        for (field, value) in [
            ("fromCluster", &task.from_cluster),
            ("producer", &task.producer),
            ("reason", &task.reason),
        ] {
            if value.is_empty() {
                errors.push(FieldError::required(format!("{path}.{field}"), ""));
            }
        }
        errors.extend(known(task.purge_mode.as_ref(), format!("{path}.purgeMode")));
    }
    errors.extend(known(
        spec.conflict_resolution.as_ref(),
        "spec.conflictResolution",
    ));
    if let Some(rules) = &spec.placement {
        errors.extend(placement(rules, "spec.placement"));
    }
    errors
}

/// A word with known values.
pub(crate) trait Word {
    fn known(&self) -> bool;
    fn text(&self) -> &str;
    fn all() -> &'static [&'static str];
}

macro_rules! word {
    ($($type:ty),* $(,)?) => { $(
        impl Word for $type {
            fn known(&self) -> bool { self.is_known() }
            fn text(&self) -> &str { self.as_str() }
            fn all() -> &'static [&'static str] { Self::KNOWN }
        }
    )* };
}
word!(
    crate::cluster::SyncMode,
    crate::overrides::ImageComponent,
    crate::overrides::OverriderOperator,
    crate::placement::DynamicWeightFactor,
    crate::placement::Rebalance,
    crate::placement::ReplicaDivisionPreference,
    crate::placement::ReplicaSchedulingType,
    crate::placement::SpreadField,
    crate::policy::ActivationPreference,
    crate::policy::ConflictResolution,
    crate::policy::MatchConditionOperator,
    crate::policy::PreemptionBehavior,
    crate::policy::PurgeMode,
    crate::policy::SchedulePrioritySource,
);

/// A word, when there is one, is a known one.
pub(crate) fn known<W: Word>(word: Option<&W>, path: impl Into<String>) -> Option<FieldError> {
    let word = word.filter(|word| !word.known())?;
    Some(FieldError::not_supported(
        path,
        &word.text().into(),
        W::all(),
    ))
}

/// Each fault of a text as an error at a place.
pub(crate) fn faults(path: &str, value: &str, faults: &[String]) -> Vec<FieldError> {
    faults
        .iter()
        .map(|fault| FieldError::invalid(path, &value.into(), fault))
        .collect()
}

/// A JSON pointer is empty or starts with a slash.
pub(crate) fn pointer(path: impl Into<String>, pointer: &str) -> Option<FieldError> {
    (!pointer.is_empty() && !pointer.starts_with('/')).then(|| {
        let why = "JSON pointer must be empty or start with a \"/\"";
        FieldError::invalid(path, &pointer.into(), why)
    })
}

/// Keys and values of labels.
pub(crate) fn labels<'a>(
    path: &str,
    labels: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in labels {
        errors.extend(faults(path, key, &syntax::qualified_name(key)));
        errors.extend(faults(path, value, &syntax::label_value(value)));
    }
    errors
}

/// Keys of annotations; their case does not matter.
pub(crate) fn annotation_keys<'a>(
    path: &str,
    keys: impl IntoIterator<Item = &'a String>,
) -> Vec<FieldError> {
    keys.into_iter()
        .flat_map(|key| faults(path, key, &syntax::qualified_name(&key.to_lowercase())))
        .collect()
}

/// A value to show in an error about a whole struct.
pub(crate) fn shown<T: serde::Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
