//! What propagation needs to know of a template.

use std::collections::BTreeMap;

use evenkeel_placement::claim::Template;
use evenkeel_shared::names;
use serde_json::Value;

/// The facts of a template.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    pub api_version: String,
    pub kind: String,
    /// Empty for a cluster-scoped one.
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub generation: i64,
    pub resource_version: String,
    pub labels: BTreeMap<String, String>,
    pub terminating: bool,
    /// Absent for kinds that have none.
    pub replicas: Option<i32>,
}

impl Facts {
    pub fn of(object: &Value) -> Self {
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let labels = object
            .pointer("/metadata/labels")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect();
        Self {
            api_version: text("/apiVersion"),
            kind: text("/kind"),
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            uid: text("/metadata/uid"),
            generation: object
                .pointer("/metadata/generation")
                .and_then(Value::as_i64)
                .unwrap_or_default(),
            resource_version: text("/metadata/resourceVersion"),
            labels,
            terminating: object.pointer("/metadata/deletionTimestamp").is_some(),
            replicas: replicas(object),
        }
    }

    /// As policies see it.
    pub fn selectable(&self) -> Template<'_> {
        Template {
            api_version: &self.api_version,
            kind: &self.kind,
            namespace: &self.namespace,
            name: &self.name,
            labels: &self.labels,
        }
    }
}

/// How many replicas a workload asks for; `None` for a kind that has none. A Job's are as many as run at a time, and
/// never more than are to complete.
pub fn replicas(object: &Value) -> Option<i32> {
    let number = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_i64)
            .map(|number| i32::try_from(number).unwrap_or(i32::MAX))
    };
    match object["kind"].as_str()? {
        "Deployment" | "StatefulSet" | "ReplicaSet" => Some(number("/spec/replicas").unwrap_or(0)),
        "Job" => {
            let parallelism = number("/spec/parallelism").unwrap_or(0);
            Some(number("/spec/completions").map_or(parallelism, |all| all.min(parallelism)))
        }
        "Pod" => Some(1),
        _ => None,
    }
}

/// Groups whose objects are never templates: what the fleet itself is made of, and what belongs to this server.
const OWN_GROUPS: &[&str] = &[
    "cluster.karmada.io",
    "work.karmada.io",
    "policy.karmada.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "events.k8s.io",
];

/// Kinds of the core group that are not templates either. Namespaces follow what is placed in them.
const OWN_CORE_KINDS: &[&str] = &["Event", "Node", "Namespace"];

/// Whether objects of a kind can be templates.
pub fn is_template_kind(group: &str, kind: &str) -> bool {
    if group.is_empty() {
        return !OWN_CORE_KINDS.contains(&kind);
    }
    !OWN_GROUPS.contains(&group) && !group.ends_with(".evenkeel.io")
}

/// Whether objects in a namespace are never propagated: the fleet's own namespaces, and Kubernetes'.
pub fn is_kept_here(namespace: &str) -> bool {
    names::is_reserved_namespace(namespace) || namespace.starts_with("kube-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_template() {
        assert!(is_template_kind("apps", "Deployment"));
        assert!(is_template_kind("", "ConfigMap"));
        assert!(is_template_kind("rbac.authorization.k8s.io", "ClusterRole"));
        assert!(!is_template_kind("", "Event"));
        assert!(!is_template_kind("", "Namespace"));
        assert!(!is_template_kind("work.karmada.io", "Work"));
        assert!(!is_template_kind("topology.evenkeel.io", "ClusterTopology"));
        assert!(is_kept_here("kube-system"));
        assert!(is_kept_here("karmada-es-m1"));
        assert!(is_kept_here("karmada-cluster"));
        assert!(!is_kept_here("default"));
        assert!(!is_kept_here("kubernetes"));
    }
}
