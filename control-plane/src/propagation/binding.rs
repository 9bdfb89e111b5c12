//! The binding of a template: what the policy that claims it asks for.

use std::collections::BTreeMap;

use evenkeel_shared::{
    binding::{BindingSuspension, ObjectReference, ResourceBinding, ResourceBindingSpec},
    names,
    policy::{ConflictResolution, PropagationSpec},
    stamps,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::template::Facts;

/// The policy that claims a template.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Empty for a cluster-wide policy.
    pub namespace: String,
    pub name: String,
    /// Its permanent id.
    pub id: String,
    pub spec: PropagationSpec,
}

/// All stamps that tell which policy a binding follows; those of another policy have to go.
const POLICY_LABELS: &[&str] = &[stamps::POLICY_ID_LABEL, stamps::CLUSTER_POLICY_ID_LABEL];
const POLICY_ANNOTATIONS: &[&str] = &[
    stamps::POLICY_NAMESPACE_ANNOTATION,
    stamps::POLICY_NAME_ANNOTATION,
    stamps::CLUSTER_POLICY_NAME_ANNOTATION,
];

/// The label of a binding's permanent id: another one for cluster-scoped templates.
pub fn id_label(namespace: &str) -> &'static str {
    if namespace.is_empty() {
        stamps::CLUSTER_BINDING_ID_LABEL
    } else {
        stamps::BINDING_ID_LABEL
    }
}

/// The finalizer that keeps a binding until its Works are gone.
pub fn finalizer(namespace: &str) -> &'static str {
    if namespace.is_empty() {
        stamps::CLUSTER_BINDING_FINALIZER
    } else {
        stamps::BINDING_FINALIZER
    }
}

/// The permanent id of a binding; empty when something took its label away.
pub fn permanent_id(binding: &ResourceBinding) -> &str {
    label(binding, id_label(binding.namespace()))
}

fn label<'a>(binding: &'a ResourceBinding, key: &str) -> &'a str {
    binding
        .metadata
        .labels
        .as_ref()
        .and_then(|labels| labels.get(key))
        .map_or("", String::as_str)
}

/// Whether a binding is of this template, and not of one of the same kind and name in another group.
pub fn belongs(binding: &ResourceBinding, template: &Facts) -> bool {
    let group = |api_version: &str| {
        api_version
            .split_once('/')
            .map_or(String::new(), |(group, _)| group.to_owned())
    };
    let reference = &binding.spec.resource;
    reference.kind == template.kind
        && reference.name == template.name
        && reference.namespace == template.namespace
        && group(&reference.api_version) == group(&template.api_version)
}

/// The binding as it is to be, but for its clusters: those of `standing`, if there is one.
///
/// What others put on it (labels, annotations, fields that this stage does not own) stays. The permanent id is the uid
/// of the template that it was made for; it stays when template and binding are restored from elsewhere.
pub fn wanted(
    template: &Facts,
    claim: &Claim,
    standing: Option<&ResourceBinding>,
) -> ResourceBinding {
    let mut binding = standing.cloned().unwrap_or_default();
    metadata(&mut binding.metadata, template, claim);
    spec(&mut binding.spec, template, &claim.spec);
    binding
}

fn metadata(metadata: &mut ObjectMeta, template: &Facts, claim: &Claim) {
    metadata.name = Some(names::binding_name(&template.kind, &template.name));
    metadata.namespace = (!template.namespace.is_empty()).then(|| template.namespace.clone());

    let labels = metadata.labels.get_or_insert_default();
    labels.retain(|key, _| !POLICY_LABELS.contains(&key.as_str()));
    let policy_id = if claim.namespace.is_empty() {
        stamps::CLUSTER_POLICY_ID_LABEL
    } else {
        stamps::POLICY_ID_LABEL
    };
    labels.insert(policy_id.to_owned(), claim.id.clone());
    labels
        .entry(id_label(&template.namespace).to_owned())
        .or_insert_with(|| template.uid.clone());

    let annotations = metadata.annotations.get_or_insert_default();
    annotations.retain(|key, _| !POLICY_ANNOTATIONS.contains(&key.as_str()));
    if claim.namespace.is_empty() {
        let key = stamps::CLUSTER_POLICY_NAME_ANNOTATION.to_owned();
        annotations.insert(key, claim.name.clone());
    } else {
        let key = stamps::POLICY_NAMESPACE_ANNOTATION.to_owned();
        annotations.insert(key, claim.namespace.clone());
        let key = stamps::POLICY_NAME_ANNOTATION.to_owned();
        annotations.insert(key, claim.name.clone());
    }

    let finalizers = metadata.finalizers.get_or_insert_default();
    let finalizer = finalizer(&template.namespace);
    if !finalizers.iter().any(|name| name == finalizer) {
        finalizers.push(finalizer.to_owned());
    }
    metadata.owner_references = Some(vec![OwnerReference {
        api_version: template.api_version.clone(),
        kind: template.kind.clone(),
        name: template.name.clone(),
        uid: template.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }]);
}

fn spec(spec: &mut ResourceBindingSpec, template: &Facts, policy: &PropagationSpec) {
    // The resourceVersion of a template changes with its status, which comes from here: it would never come to rest.
    spec.resource = ObjectReference {
        api_version: template.api_version.clone(),
        kind: template.kind.clone(),
        namespace: template.namespace.clone(),
        name: template.name.clone(),
        uid: template.uid.clone(),
        resource_version: String::new(),
    };
    spec.replicas = template.replicas.unwrap_or_default();
    spec.placement = Some(policy.placement.clone());
    spec.propagate_deps = policy.propagate_deps;
    spec.scheduler_name = if policy.scheduler_name.is_empty() {
        stamps::DEFAULT_SCHEDULER.to_owned()
    } else {
        policy.scheduler_name.clone()
    };
    spec.failover.clone_from(&policy.failover);
    spec.conflict_resolution = Some(
        policy
            .conflict_resolution
            .clone()
            .unwrap_or(ConflictResolution::Abort),
    );
    spec.preserve_resources_on_deletion = policy.preserve_resources_on_deletion;
    // Suspension of scheduling is set on the binding itself; that of dispatching comes from the policy.
    let scheduling = spec
        .suspension
        .as_ref()
        .and_then(|suspension| suspension.scheduling);
    let suspension = BindingSuspension {
        dispatching: policy
            .suspension
            .as_ref()
            .and_then(|suspension| suspension.dispatching),
        dispatching_on_clusters: policy
            .suspension
            .as_ref()
            .and_then(|suspension| suspension.dispatching_on_clusters.clone()),
        scheduling,
    };
    spec.suspension = (suspension != BindingSuspension::default()).then_some(suspension);
}

/// Whether delivery to a cluster is held.
pub fn is_suspended(spec: &ResourceBindingSpec, cluster: &str) -> bool {
    spec.suspension.as_ref().is_some_and(|suspension| {
        suspension.dispatching == Some(true)
            || suspension
                .dispatching_on_clusters
                .as_ref()
                .is_some_and(|clusters| clusters.cluster_names.iter().any(|name| name == cluster))
    })
}

/// The annotations by which a Work and its manifest name their binding.
pub fn references(namespace: &str, name: &str) -> BTreeMap<String, String> {
    if namespace.is_empty() {
        [(stamps::CLUSTER_BINDING_NAME_ANNOTATION, name)]
            .map(owned)
            .into()
    } else {
        [
            (stamps::BINDING_NAMESPACE_ANNOTATION, namespace),
            (stamps::BINDING_NAME_ANNOTATION, name),
        ]
        .map(owned)
        .into()
    }
}

fn owned((key, value): (&str, &str)) -> (String, String) {
    (key.to_owned(), value.to_owned())
}
