//! The Works of a binding: one per cluster, with what its agent is to apply.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_shared::{
    binding::ResourceBinding,
    names,
    policy::ConflictResolution,
    stamps,
    work::{Work, WorkSpec, WorkloadTemplate},
};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{
    binding::{id_label, is_suspended, permanent_id, references},
    prune::prune,
};

/// The clusters that are to have a Work: those of the decision, and those that bindings depending on this one need.
pub fn targets(binding: &ResourceBinding) -> BTreeSet<&str> {
    let required = binding
        .spec
        .required_by
        .iter()
        .flat_map(|snapshot| &snapshot.clusters);
    binding
        .spec
        .clusters
        .iter()
        .chain(required)
        .map(|target| target.name.as_str())
        .collect()
}

/// The Work of a binding in a cluster, as it is to be. What others put on the one that stands stays.
pub fn wanted(
    template: &Value,
    binding: &ResourceBinding,
    cluster: &str,
    standing: Option<&Work>,
) -> Work {
    let reference = &binding.spec.resource;
    let namespace = names::execution_namespace(cluster);
    let name = names::work_name(&reference.kind, &reference.name, &reference.namespace);
    let work_id = standing
        .and_then(|work| work.metadata.labels.as_ref()?.get(stamps::WORK_ID_LABEL))
        .cloned()
        .unwrap_or_else(|| derived_id(permanent_id(binding), cluster));
    let conflict = match binding.spec.conflict_resolution {
        Some(ConflictResolution::Overwrite) => stamps::CONFLICT_OVERWRITE,
        _ => stamps::CONFLICT_ABORT,
    };
    let ids = BTreeMap::from([
        (
            id_label(&reference.namespace).to_owned(),
            permanent_id(binding).to_owned(),
        ),
        (stamps::WORK_ID_LABEL.to_owned(), work_id),
    ]);
    let mut notes = references(binding.namespace(), binding.name());
    notes.insert(
        stamps::CONFLICT_RESOLUTION_ANNOTATION.to_owned(),
        conflict.to_owned(),
    );

    let mut work = standing.cloned().unwrap_or_default();
    work.status = None;
    work.metadata.name = Some(name.clone());
    work.metadata.namespace = Some(namespace.clone());
    work.metadata
        .labels
        .get_or_insert_default()
        .extend(ids.clone());
    work.metadata
        .annotations
        .get_or_insert_default()
        .extend(notes.clone());
    let finalizers = work.metadata.finalizers.get_or_insert_default();
    // The agent takes it away once the member is rid of the copy.
    if !finalizers
        .iter()
        .any(|name| name == stamps::EXECUTION_FINALIZER)
    {
        finalizers.push(stamps::EXECUTION_FINALIZER.to_owned());
    }
    notes.insert(stamps::WORK_NAMESPACE_ANNOTATION.to_owned(), namespace);
    notes.insert(stamps::WORK_NAME_ANNOTATION.to_owned(), name);
    work.spec = WorkSpec {
        workload: WorkloadTemplate {
            manifests: vec![manifest(template, ids, notes)],
        },
        suspend_dispatching: is_suspended(&binding.spec, cluster),
        preserve_resources_on_deletion: binding.spec.preserve_resources_on_deletion == Some(true),
    };
    work
}

/// The template as a member gets it: pruned, and stamped with whose it is.
pub(super) fn manifest(
    template: &Value,
    ids: BTreeMap<String, String>,
    notes: BTreeMap<String, String>,
) -> Value {
    let uid = template["metadata"]["uid"].as_str().unwrap_or_default();
    let generation = template["metadata"]["generation"]
        .as_i64()
        .unwrap_or_default();
    let mut manifest = template.clone();
    prune(&mut manifest);

    let labels = stamp(&mut manifest, "labels");
    labels.insert(stamps::MANAGED_LABEL.to_owned(), "true".into());
    labels.extend(ids.into_iter().map(|(key, value)| (key, value.into())));
    let managed_labels = joined(labels.keys());

    let annotations = stamp(&mut manifest, "annotations");
    annotations.extend(notes.into_iter().map(|(key, value)| (key, value.into())));
    annotations.insert(stamps::TEMPLATE_UID_ANNOTATION.to_owned(), uid.into());
    annotations.insert(
        stamps::TEMPLATE_GENERATION_ANNOTATION.to_owned(),
        generation.to_string().into(),
    );
    annotations.insert(
        stamps::MANAGED_LABELS_ANNOTATION.to_owned(),
        managed_labels.into(),
    );
    let own = stamps::MANAGED_ANNOTATIONS_ANNOTATION.to_owned();
    let managed = joined(annotations.keys().chain(std::iter::once(&own)));
    annotations.insert(own, managed.into());
    manifest
}

fn stamp<'a>(manifest: &'a mut Value, field: &str) -> &'a mut Map<String, Value> {
    let place = &mut manifest["metadata"][field];
    if !place.is_object() {
        *place = json!({});
    }
    place.as_object_mut().expect("it was just made an object")
}

fn joined<'a>(keys: impl Iterator<Item = &'a String>) -> String {
    let keys = keys.map(String::as_str).collect::<BTreeSet<_>>();
    keys.into_iter().collect::<Vec<_>>().join(",")
}

/// An id that is the same whenever the same Work is made for the same binding.
pub(super) fn derived_id(binding: &str, cluster: &str) -> String {
    let digest = Sha256::digest(format!("{binding}/{cluster}"));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_custom_bytes(bytes)
        .into_uuid()
        .to_string()
}
