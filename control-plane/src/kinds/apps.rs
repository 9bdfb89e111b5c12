//! `apps/v1`: Deployment, StatefulSet, DaemonSet, ReplicaSet, ControllerRevision, as templates.

use std::sync::Arc;

use evenkeel_api::{
    failure::Failure,
    kind::{Column, FieldPlace, Kind, RequestContext, Strategy, Subresource, SubresourceKind},
};
use evenkeel_shared::field::FieldError;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    builtin,
    column::{CONTAINERS, IMAGES, age, shown, wide},
    look::{at, child, drop_nothing, each, fill, items, number},
    pod, print,
    rules::{immutable, not_negative},
    status,
};

/// The workload kinds.
pub fn kinds() -> Vec<Kind> {
    let workload = |kind, plural, singular, short: &'static [&'static str], columns| Kind {
        short_names: short,
        categories: &["all"],
        columns,
        generation: true,
        unconditional_update: true,
        ..builtin("apps", "v1", kind, plural, singular)
    };
    vec![
        Kind {
            generation: false,
            unconditional_update: true,
            columns: vec![
                shown(
                    "Controller",
                    "string",
                    "Controller of the object",
                    |object, _| controller(object).into(),
                ),
                shown(
                    "Revision",
                    "string",
                    "Revision indicates the revision of the state represented by Data.",
                    |object, _| number(object, "/revision").into(),
                ),
                age(),
            ],
            ..builtin(
                "apps",
                "v1",
                "ControllerRevision",
                "controllerrevisions",
                "controllerrevision",
            )
        },
        Kind {
            subresources: vec![status()],
            strategy: Arc::new(DaemonSet),
            ..workload(
                "DaemonSet",
                "daemonsets",
                "daemonset",
                &["ds"],
                daemon_set_columns(),
            )
        },
        Kind {
            subresources: vec![status(), scale(Some("/spec/selector"))],
            strategy: Arc::new(Deployment),
            ..workload(
                "Deployment",
                "deployments",
                "deployment",
                &["deploy"],
                deployment_columns(),
            )
        },
        Kind {
            subresources: vec![status(), scale(Some("/spec/selector"))],
            strategy: Arc::new(ReplicaSet),
            selectable_fields: &["status.replicas"],
            field_places: &[FieldPlace {
                field: "status.replicas",
                path: "status.replicas",
                absent: "0",
            }],
            ..workload(
                "ReplicaSet",
                "replicasets",
                "replicaset",
                &["rs"],
                replica_set_columns(),
            )
        },
        Kind {
            subresources: vec![status(), scale(Some("/spec/selector"))],
            strategy: Arc::new(StatefulSet),
            ..workload(
                "StatefulSet",
                "statefulsets",
                "statefulset",
                &["sts"],
                stateful_set_columns(),
            )
        },
    ]
}

/// Scale by `spec.replicas`; the selector is the text form of what is at the pointer.
pub fn scale(label_selector: Option<&'static str>) -> Subresource {
    Subresource {
        name: "scale",
        kind: SubresourceKind::Scale {
            spec_replicas: "/spec/replicas",
            status_replicas: "/status/replicas",
            label_selector,
        },
    }
}

fn controller(object: &Value) -> String {
    items(object, "/metadata/ownerReferences")
        .iter()
        .find(|owner| owner["controller"] == true)
        .map_or_else(
            || print::NONE.into(),
            |owner| {
                let api_version = super::look::text(owner, "/apiVersion");
                let group = api_version.split_once('/').map_or("", |(group, _)| group);
                let kind = super::look::text(owner, "/kind").to_lowercase();
                let name = super::look::text(owner, "/name");
                if group.is_empty() {
                    format!("{kind}/{name}")
                } else {
                    format!("{kind}.{group}/{name}")
                }
            },
        )
}

/// Names of the containers of a template.
pub fn containers(object: &Value, _: Timestamp) -> Value {
    print::column(items(object, "/spec/template/spec/containers"), "/name").into()
}

/// Images of the containers of a template.
pub fn images(object: &Value, _: Timestamp) -> Value {
    print::column(items(object, "/spec/template/spec/containers"), "/image").into()
}

/// The selector of a workload.
pub fn selector(object: &Value, _: Timestamp) -> Value {
    print::selector(object, "/spec/selector").into()
}

fn ready(object: &Value, _: Timestamp) -> Value {
    let ready = number(object, "/status/readyReplicas");
    format!("{ready}/{}", number(object, "/spec/replicas")).into()
}

fn deployment_columns() -> Vec<Column> {
    vec![
        shown(
            "Ready",
            "string",
            "Number of the pod with ready state",
            ready,
        ),
        shown(
            "Up-to-date",
            "string",
            "Total number of non-terminating pods targeted by this deployment that have the desired template spec.",
            |object, _| number(object, "/status/updatedReplicas").into(),
        ),
        shown(
            "Available",
            "string",
            "Total number of available non-terminating pods (ready for at least minReadySeconds) targeted by this deployment.",
            |object, _| number(object, "/status/availableReplicas").into(),
        ),
        age(),
        wide("Containers", "string", CONTAINERS, containers),
        wide("Images", "string", IMAGES, images),
        wide(
            "Selector",
            "string",
            "Label selector for pods. Existing ReplicaSets whose pods are selected by this will be the ones affected by this deployment. It must match the pod template's labels.",
            selector,
        ),
    ]
}

fn stateful_set_columns() -> Vec<Column> {
    vec![
        shown(
            "Ready",
            "string",
            "Number of the pod with ready state",
            ready,
        ),
        age(),
        wide("Containers", "string", CONTAINERS, containers),
        wide("Images", "string", IMAGES, images),
    ]
}

fn daemon_set_columns() -> Vec<Column> {
    vec![
        shown(
            "Desired",
            "integer",
            "The total number of nodes that should be running the daemon pod (including nodes correctly running the daemon pod). More info: https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/",
            |object, _| number(object, "/status/desiredNumberScheduled").into(),
        ),
        shown(
            "Current",
            "integer",
            "The number of nodes that are running at least 1 daemon pod and are supposed to run the daemon pod. More info: https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/",
            |object, _| number(object, "/status/currentNumberScheduled").into(),
        ),
        shown(
            "Ready",
            "integer",
            "numberReady is the number of nodes that should be running the daemon pod and have one or more of the daemon pod running with a Ready Condition.",
            |object, _| number(object, "/status/numberReady").into(),
        ),
        shown(
            "Up-to-date",
            "integer",
            "The total number of nodes that are running updated daemon pod",
            |object, _| number(object, "/status/updatedNumberScheduled").into(),
        ),
        shown(
            "Available",
            "integer",
            "The number of nodes that should be running the daemon pod and have one or more of the daemon pod running and available (ready for at least spec.minReadySeconds)",
            |object, _| number(object, "/status/numberAvailable").into(),
        ),
        shown(
            "Node Selector",
            "string",
            "NodeSelector is a selector which must be true for the pod to fit on a node. Selector which must match a node's labels for the pod to be scheduled on that node. More info: https://kubernetes.io/docs/concepts/configuration/assign-pod-node/",
            |object, _| print::labels(object, "/spec/template/spec/nodeSelector").into(),
        ),
        age(),
        wide("Containers", "string", CONTAINERS, containers),
        wide("Images", "string", IMAGES, images),
        wide(
            "Selector",
            "string",
            "A label query over pods that are managed by the daemon set. Must match in order to be controlled. It must match the pod template's labels. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors",
            selector,
        ),
    ]
}

fn replica_set_columns() -> Vec<Column> {
    vec![
        shown(
            "Desired",
            "integer",
            "Replicas is the number of desired pods. This is a pointer to distinguish between explicit zero and unspecified. Defaults to 1. More info: https://kubernetes.io/docs/concepts/workloads/controllers/replicaset",
            |object, _| number(object, "/spec/replicas").into(),
        ),
        shown(
            "Current",
            "integer",
            "Replicas is the most recently observed number of non-terminating pods. More info: https://kubernetes.io/docs/concepts/workloads/controllers/replicaset",
            |object, _| number(object, "/status/replicas").into(),
        ),
        shown(
            "Ready",
            "integer",
            "The number of non-terminating pods targeted by this ReplicaSet with a Ready Condition.",
            |object, _| number(object, "/status/readyReplicas").into(),
        ),
        age(),
        wide("Containers", "string", CONTAINERS, containers),
        wide("Images", "string", IMAGES, images),
        wide(
            "Selector",
            "string",
            "Selector is a label query over pods that should match the replica count. Label keys and values that must match in order to be controlled by this replica set. It must match the pod template's labels. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors",
            selector,
        ),
    ]
}

/// The type of an update strategy, with what goes with `RollingUpdate`. Another type has no such part.
fn rolling(spec: &mut Value, field: &str, parts: &[(&str, Value)]) {
    let Some(strategy) = child(spec, field) else {
        return;
    };
    fill(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate"
        && let Some(rolling) = child(strategy, "rollingUpdate")
    {
        for (name, value) in parts {
            fill(rolling, name, value.clone());
        }
    }
}

fn workload_errors(object: &Value, kind: &str) -> Vec<FieldError> {
    let mut errors = not_negative(
        object,
        &["replicas", "minReadySeconds", "revisionHistoryLimit"],
    );
    errors.extend(pod::selected(object, kind));
    errors.extend(pod::spec(
        at(object, "/spec/template/spec"),
        "spec.template.spec",
    ));
    let policy = at(object, "/spec/template/spec/restartPolicy");
    if ["OnFailure", "Never"].iter().any(|other| policy == other) {
        let path = "spec.template.spec.restartPolicy";
        errors.push(FieldError::not_supported(path, policy, &["Always"]));
    }
    errors
}

struct Deployment;

impl Strategy for Deployment {
    fn default(&self, object: &mut Value) {
        drop_nothing(object);
        let Some(spec) = child(object, "spec") else {
            return;
        };
        fill(spec, "replicas", 1);
        rolling(
            spec,
            "strategy",
            &[("maxUnavailable", json!("25%")), ("maxSurge", json!("25%"))],
        );
        fill(spec, "revisionHistoryLimit", 10);
        fill(spec, "progressDeadlineSeconds", 600);
        pod::template(spec);
    }

    fn prepare_create(&self, _: &RequestContext, object: &mut Value) -> Result<(), Failure> {
        fill(object, "status", json!({}));
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = workload_errors(object, "deployment");
        let strategy = at(object, "/spec/strategy");
        match super::look::text(strategy, "/type") {
            "Recreate" if !at(strategy, "/rollingUpdate").is_null() => {
                errors.push(FieldError::forbidden(
                    "spec.strategy.rollingUpdate",
                    "may not be specified when strategy `type` is 'Recreate'",
                ));
            }
            "Recreate" => {}
            "RollingUpdate" => {
                let zero = |part: &str| {
                    let part = at(strategy, part);
                    part.as_i64() == Some(0) || part.as_str() == Some("0%")
                };
                if zero("/rollingUpdate/maxSurge") && zero("/rollingUpdate/maxUnavailable") {
                    errors.push(FieldError::invalid(
                        "spec.strategy.rollingUpdate.maxUnavailable",
                        at(strategy, "/rollingUpdate/maxUnavailable"),
                        "may not be 0 when `maxSurge` is 0",
                    ));
                }
            }
            other => {
                let value = json!({"Type": other, "RollingUpdate": null});
                errors.push(FieldError::not_supported(
                    "spec.strategy",
                    &value,
                    &["Recreate", "RollingUpdate"],
                ));
            }
        }
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        immutable(new, old, &["spec.selector"])
    }

    fn bumps_generation(&self, new: &Value, old: &Value) -> bool {
        new["spec"] != old["spec"]
            || at(new, "/metadata/annotations") != at(old, "/metadata/annotations")
    }
}

struct ReplicaSet;

impl Strategy for ReplicaSet {
    fn default(&self, object: &mut Value) {
        drop_nothing(object);
        if let Some(spec) = child(object, "spec") {
            fill(spec, "replicas", 1);
            pod::template(spec);
        }
    }

    fn prepare_create(&self, _: &RequestContext, object: &mut Value) -> Result<(), Failure> {
        fill(object, "status", json!({"replicas": 0}));
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        workload_errors(object, "replicaset")
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        immutable(new, old, &["spec.selector"])
    }
}

struct DaemonSet;

impl Strategy for DaemonSet {
    fn default(&self, object: &mut Value) {
        drop_nothing(object);
        if let Some(spec) = child(object, "spec") {
            rolling(
                spec,
                "updateStrategy",
                &[("maxUnavailable", json!(1)), ("maxSurge", json!(0))],
            );
            fill(spec, "revisionHistoryLimit", 10);
            pod::template(spec);
        }
    }

    fn prepare_create(&self, _: &RequestContext, object: &mut Value) -> Result<(), Failure> {
        let status = json!({
            "currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0,
        });
        fill(object, "status", status);
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        workload_errors(object, "daemonset")
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        immutable(new, old, &["spec.selector"])
    }
}

struct StatefulSet;

/// What of a StatefulSet's spec may change.
const STATEFUL_SET_MUTABLE: [&str; 8] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
    "podManagementPolicy",
];

impl Strategy for StatefulSet {
    fn default(&self, object: &mut Value) {
        drop_nothing(object);
        let Some(spec) = child(object, "spec") else {
            return;
        };
        fill(spec, "podManagementPolicy", "OrderedReady");
        rolling(spec, "updateStrategy", &[("partition", json!(0))]);
        fill(spec, "revisionHistoryLimit", 10);
        fill(spec, "replicas", 1);
        if let Some(policy) = child(spec, "persistentVolumeClaimRetentionPolicy") {
            fill(policy, "whenDeleted", "Retain");
            fill(policy, "whenScaled", "Retain");
        }
        pod::template(spec);
        for claim in each(spec, "volumeClaimTemplates") {
            fill(claim, "apiVersion", "v1");
            fill(claim, "kind", "PersistentVolumeClaim");
            if let Some(spec) = child(claim, "spec") {
                fill(spec, "volumeMode", "Filesystem");
            }
            if let Some(status) = child(claim, "status") {
                fill(status, "phase", "Pending");
            }
        }
    }

    fn prepare_create(&self, _: &RequestContext, object: &mut Value) -> Result<(), Failure> {
        fill(
            object,
            "status",
            json!({"replicas": 0, "availableReplicas": 0}),
        );
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        workload_errors(object, "statefulset")
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let rest = |object: &Value| {
            let mut spec = object["spec"].clone();
            for field in STATEFUL_SET_MUTABLE {
                if field != "podManagementPolicy" {
                    super::look::drop_field(&mut spec, field);
                }
            }
            spec
        };
        if rest(new) == rest(old) {
            return Vec::new();
        }
        vec![FieldError::forbidden(
            "spec",
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        )]
    }
}
