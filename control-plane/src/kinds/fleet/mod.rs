//! The kinds of the fleet: Karmada's API groups, in its shapes.

mod cluster;
mod typed;

use std::sync::Arc;

use evenkeel_api::kind::{Cell, Column, Kind, KindScope};
use evenkeel_shared::{
    overrides::OverrideSpec,
    policy::{ClusterTaintPolicySpec, PropagationSpec},
};
use jiff::Timestamp;
use serde_json::Value;

use self::typed::Typed;
use super::{
    column::custom,
    look::{condition, items, text},
    status,
};

const CATEGORIES: &[&str] = &["karmada-io"];

/// Clusters, Works, bindings and policies.
pub fn kinds() -> Vec<Kind> {
    let mut kinds = vec![cluster::kind()];
    kinds.extend(work());
    kinds.extend(policy());
    kinds.extend(config());
    kinds
}

fn fleet_kind(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
) -> Kind {
    Kind {
        categories: CATEGORIES,
        ..Kind::new(group, version, kind, plural, singular)
    }
}

fn created() -> Column {
    custom(
        "AGE",
        "date",
        0,
        "Custom resource definition column (in JSONPath format): .metadata.creationTimestamp",
        Cell::Age,
    )
}

fn computed(
    name: &'static str,
    description: &'static str,
    print: fn(&Value, Timestamp) -> Value,
) -> Column {
    custom(name, "string", 0, description, Cell::Computed(print))
}

/// The status of a condition; nothing when there is none.
fn state(object: &Value, type_: &str) -> Value {
    condition(object, type_).map_or(Value::Null, |condition| condition["status"].clone())
}

fn work() -> Vec<Kind> {
    let binding_columns = || {
        vec![
            computed(
                "SCHEDULED",
                "Custom resource definition column (in JSONPath format): .status.conditions[?(@.type==\"Scheduled\")].status",
                |object, _| state(object, "Scheduled"),
            ),
            computed(
                "FULLYAPPLIED",
                "Custom resource definition column (in JSONPath format): .status.conditions[?(@.type==\"FullyApplied\")].status",
                |object, _| state(object, "FullyApplied"),
            ),
            created(),
        ]
    };
    vec![
        Kind {
            short_names: &["wk"],
            columns: vec![
                computed(
                    "WORKLOAD-KIND",
                    "Custom resource definition column (in JSONPath format): .spec.workload.manifests[*].kind",
                    |object, _| {
                        let first = items(object, "/spec/workload/manifests").first();
                        first.map_or(Value::Null, |manifest| manifest["kind"].clone())
                    },
                ),
                computed(
                    "APPLIED",
                    "Custom resource definition column (in JSONPath format): .status.conditions[?(@.type==\"Applied\")].status",
                    |object, _| state(object, "Applied"),
                ),
                created(),
            ],
            subresources: vec![status()],
            strategy: Arc::new(typed::WORK),
            ..fleet_kind("work.karmada.io", "v1alpha1", "Work", "works", "work")
        },
        Kind {
            short_names: &["rb"],
            columns: binding_columns(),
            subresources: vec![status()],
            strategy: Arc::new(typed::BINDING),
            ..fleet_kind(
                "work.karmada.io",
                "v1alpha2",
                "ResourceBinding",
                "resourcebindings",
                "resourcebinding",
            )
        },
        Kind {
            short_names: &["crb"],
            scope: KindScope::Cluster,
            columns: binding_columns(),
            subresources: vec![status()],
            strategy: Arc::new(typed::BINDING),
            ..fleet_kind(
                "work.karmada.io",
                "v1alpha2",
                "ClusterResourceBinding",
                "clusterresourcebindings",
                "clusterresourcebinding",
            )
        },
    ]
}

fn policy() -> Vec<Kind> {
    const GROUP: &str = "policy.karmada.io";
    let propagation_columns = || {
        vec![
            computed(
                "CONFLICT-RESOLUTION",
                "Custom resource definition column (in JSONPath format): .spec.conflictResolution",
                |object, _| object["spec"]["conflictResolution"].clone(),
            ),
            computed(
                "PRIORITY",
                "Custom resource definition column (in JSONPath format): .spec.priority",
                |object, _| match &object["spec"]["priority"] {
                    Value::Null => Value::Null,
                    priority => priority.to_string().into(),
                },
            ),
            created(),
        ]
    };
    let propagation: Typed<PropagationSpec> = typed::PROPAGATION;
    let overrides: Typed<OverrideSpec> = typed::OVERRIDES;
    let taints: Typed<ClusterTaintPolicySpec> = typed::TAINTS;
    vec![
        Kind {
            short_names: &["pp"],
            columns: propagation_columns(),
            strategy: Arc::new(propagation),
            ..fleet_kind(
                GROUP,
                "v1alpha1",
                "PropagationPolicy",
                "propagationpolicies",
                "propagationpolicy",
            )
        },
        Kind {
            short_names: &["cpp"],
            scope: KindScope::Cluster,
            columns: propagation_columns(),
            strategy: Arc::new(propagation),
            ..fleet_kind(
                GROUP,
                "v1alpha1",
                "ClusterPropagationPolicy",
                "clusterpropagationpolicies",
                "clusterpropagationpolicy",
            )
        },
        Kind {
            short_names: &["op"],
            columns: vec![created()],
            strategy: Arc::new(overrides),
            ..fleet_kind(
                GROUP,
                "v1alpha1",
                "OverridePolicy",
                "overridepolicies",
                "overridepolicy",
            )
        },
        Kind {
            short_names: &["cop"],
            scope: KindScope::Cluster,
            columns: vec![created()],
            strategy: Arc::new(overrides),
            ..fleet_kind(
                GROUP,
                "v1alpha1",
                "ClusterOverridePolicy",
                "clusteroverridepolicies",
                "clusteroverridepolicy",
            )
        },
        Kind {
            scope: KindScope::Cluster,
            columns: vec![created()],
            strategy: Arc::new(taints),
            ..fleet_kind(
                GROUP,
                "v1alpha1",
                "ClusterTaintPolicy",
                "clustertaintpolicies",
                "clustertaintpolicy",
            )
        },
    ]
}

/// What the reference's agent lists when it starts: kept as they are.
fn config() -> Vec<Kind> {
    const GROUP: &str = "config.karmada.io";
    vec![
        Kind {
            short_names: &["ric"],
            scope: KindScope::Cluster,
            columns: vec![
                computed(
                    "TARGET-API-VERSION",
                    "Custom resource definition column (in JSONPath format): .spec.target.apiVersion",
                    |object, _| text(object, "/spec/target/apiVersion").into(),
                ),
                computed(
                    "TARGET-KIND",
                    "Custom resource definition column (in JSONPath format): .spec.target.kind",
                    |object, _| text(object, "/spec/target/kind").into(),
                ),
                created(),
            ],
            ..fleet_kind(
                GROUP,
                "v1alpha1",
                "ResourceInterpreterCustomization",
                "resourceinterpretercustomizations",
                "resourceinterpretercustomization",
            )
        },
        Kind {
            scope: KindScope::Cluster,
            columns: vec![created()],
            ..fleet_kind(
                GROUP,
                "v1alpha1",
                "ResourceInterpreterWebhookConfiguration",
                "resourceinterpreterwebhookconfigurations",
                "resourceinterpreterwebhookconfiguration",
            )
        },
    ]
}
