//! Pod, PodTemplate and ReplicationController.

use evenkeel_api::{
    failure::Failure,
    kind::{Column, RequestContext, Strategy},
};
use evenkeel_shared::field::FieldError;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::{
    apps::{containers, images},
    column::{CONTAINERS, IMAGES, age, shown, wide},
    look::{at, child, drop_nothing, fill, is_true, items, number, text},
    pod, print,
};

/// The fields that pods are selected by.
pub const SELECTABLE: &[&str] = &[
    "spec.hostNetwork",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "status.nominatedNodeName",
    "status.phase",
    "status.podIP",
];

pub struct Pod;

impl Strategy for Pod {
    fn default(&self, object: &mut Value) {
        drop_nothing(object);
        pod::pod(object);
    }

    fn prepare_create(&self, _: &RequestContext, object: &mut Value) -> Result<(), Failure> {
        let class = qos_class(object);
        fill(
            object,
            "status",
            json!({"phase": "Pending", "qosClass": class}),
        );
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        pod::spec(at(object, "/spec"), "spec")
    }
}

/// The quality of service that a pod gets by its requests and limits of cpu and memory.
fn qos_class(object: &Value) -> &'static str {
    let containers = items(object, "/spec/containers")
        .iter()
        .chain(items(object, "/spec/initContainers"));
    let (mut any, mut all) = (false, true);
    for container in containers {
        for resource in ["cpu", "memory"] {
            let requested = at(container, &format!("/resources/requests/{resource}"));
            let limited = at(container, &format!("/resources/limits/{resource}"));
            any |= !requested.is_null() || !limited.is_null();
            all &= !limited.is_null() && (requested.is_null() || requested == limited);
        }
    }
    match (any, all) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

pub fn columns() -> Vec<Column> {
    vec![
        shown(
            "Ready",
            "string",
            "The aggregate readiness state of this pod for accepting traffic.",
            |object, _| ready(object).into(),
        ),
        shown(
            "Status",
            "string",
            "The aggregate status of the containers in this pod.",
            |object, _| pod_status(object).into(),
        ),
        shown(
            "Restarts",
            "string",
            "The number of times the containers in this pod have been restarted and when the last container in this pod has restarted.",
            |object, now| restarts(object, now).into(),
        ),
        age(),
        wide(
            "IP",
            "string",
            "podIP address allocated to the pod. Routable at least within the cluster. Empty if not yet allocated.",
            |object, _| or_none(object, "/status/podIP"),
        ),
        wide(
            "Node",
            "string",
            "NodeName indicates in which node this pod is scheduled. If empty, this pod is a candidate for scheduling by the scheduler defined in schedulerName. Once this field is set, the kubelet for this node becomes responsible for the lifecycle of this pod. This field should not be used to express a desire for the pod to be scheduled on a specific node. https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#nodename",
            |object, _| or_none(object, "/spec/nodeName"),
        ),
        wide(
            "Nominated Node",
            "string",
            "nominatedNodeName is set only when this pod preempts other pods on the node, but it cannot be scheduled right away as preemption victims receive their graceful termination periods. This field does not guarantee that the pod will be scheduled on this node. Scheduler may decide to place the pod elsewhere if other nodes become available sooner. Scheduler may also decide to give the resources on this node to a higher priority pod that is created after preemption. As a result, this field may be different than PodSpec.nodeName when the pod is scheduled.",
            |object, _| or_none(object, "/status/nominatedNodeName"),
        ),
        wide(
            "Readiness Gates",
            "string",
            "If specified, all readiness gates will be evaluated for pod readiness. A pod is ready when all its containers are ready AND all conditions specified in the readiness gates have status equal to \"True\" More info: https://git.k8s.io/enhancements/keps/sig-network/580-pod-readiness-gates",
            |object, _| gates(object).into(),
        ),
    ]
}

fn or_none(object: &Value, pointer: &str) -> Value {
    print::or(text(object, pointer), print::NONE).into()
}

/// Init containers that go on running beside the others.
fn sidecars(object: &Value) -> Vec<&str> {
    items(object, "/spec/initContainers")
        .iter()
        .filter(|container| text(container, "/restartPolicy") == "Always")
        .map(|container| text(container, "/name"))
        .collect()
}

fn statuses(object: &Value) -> impl Iterator<Item = &Value> {
    let sidecars = sidecars(object);
    items(object, "/status/initContainerStatuses")
        .iter()
        .filter(move |status| sidecars.contains(&text(status, "/name")))
        .chain(items(object, "/status/containerStatuses"))
}

fn ready(object: &Value) -> String {
    let total = items(object, "/spec/containers").len() + sidecars(object).len();
    let ready = statuses(object)
        .filter(|status| status["ready"] == true && at(status, "/state/terminated").is_null())
        .count();
    format!("{ready}/{total}")
}

fn restarts(object: &Value, now: Timestamp) -> String {
    let count: i64 = statuses(object)
        .map(|status| number(status, "/restartCount"))
        .sum();
    let last = statuses(object)
        .filter_map(|status| print::moment(status, "/lastState/terminated/finishedAt"))
        .max();
    match last {
        Some(last) if count > 0 => {
            format!(
                "{count} ({} ago)",
                print::duration(now.as_second() - last.as_second())
            )
        }
        _ => count.to_string(),
    }
}

/// What keeps an init container from being done, if anything.
fn initializing(object: &Value) -> Option<String> {
    let total = items(object, "/spec/initContainers").len();
    let sidecars = sidecars(object);
    for (i, status) in items(object, "/status/initContainerStatuses")
        .iter()
        .enumerate()
    {
        let ended = at(status, "/state/terminated");
        if !ended.is_null() && number(ended, "/exitCode") == 0 {
            continue;
        }
        if sidecars.contains(&text(status, "/name")) && status["started"] == true {
            continue;
        }
        if !ended.is_null() {
            return Some(format!("Init:{}", exit(ended)));
        }
        let waiting = text(status, "/state/waiting/reason");
        if !waiting.is_empty() && waiting != "PodInitializing" {
            return Some(format!("Init:{waiting}"));
        }
        return Some(format!("Init:{i}/{total}"));
    }
    None
}

fn exit(ended: &Value) -> String {
    let reason = text(ended, "/reason");
    if !reason.is_empty() {
        return reason.to_owned();
    }
    match number(ended, "/signal") {
        0 => format!("ExitCode:{}", number(ended, "/exitCode")),
        signal => format!("Signal:{signal}"),
    }
}

fn pod_status(object: &Value) -> String {
    let mut reason = print::or(
        text(object, "/status/reason"),
        text(object, "/status/phase"),
    )
    .to_owned();
    if items(object, "/status/conditions")
        .iter()
        .any(|c| text(c, "/type") == "PodScheduled" && text(c, "/reason") == "SchedulingGated")
    {
        reason = "SchedulingGated".into();
    }
    let initializing = initializing(object);
    let initialized = is_true(object, "Initialized");
    if let Some(why) = initializing.filter(|_| !initialized) {
        reason = why;
    } else {
        let mut running = false;
        for status in items(object, "/status/containerStatuses").iter().rev() {
            let waiting = text(status, "/state/waiting/reason");
            let ended = at(status, "/state/terminated");
            if !waiting.is_empty() {
                waiting.clone_into(&mut reason);
            } else if !ended.is_null() {
                reason = exit(ended);
            } else if status["ready"] == true && !at(status, "/state/running").is_null() {
                running = true;
            }
        }
        if reason == "Completed" && running {
            reason = if is_true(object, "Ready") {
                "Running"
            } else {
                "NotReady"
            }
            .into();
        }
    }
    if at(object, "/metadata/deletionTimestamp").is_null() {
        return reason;
    }
    if text(object, "/status/reason") == "NodeLost" {
        return "Unknown".into();
    }
    match text(object, "/status/phase") {
        "Succeeded" | "Failed" => reason,
        _ => "Terminating".into(),
    }
}

fn gates(object: &Value) -> String {
    let gates = items(object, "/spec/readinessGates");
    if gates.is_empty() {
        return print::NONE.into();
    }
    let open = gates
        .iter()
        .filter(|gate| is_true(object, text(gate, "/conditionType")));
    format!("{}/{}", open.count(), gates.len())
}

pub struct PodTemplate;

impl Strategy for PodTemplate {
    fn default(&self, object: &mut Value) {
        drop_nothing(object);
        pod::template(object);
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        pod::spec(at(object, "/template/spec"), "template.spec")
    }
}

pub fn template_columns() -> Vec<Column> {
    vec![
        shown("Containers", "string", CONTAINERS, |object, _| {
            print::column(items(object, "/template/spec/containers"), "/name").into()
        }),
        shown("Images", "string", IMAGES, |object, _| {
            print::column(items(object, "/template/spec/containers"), "/image").into()
        }),
        shown(
            "Pod Labels",
            "string",
            "The labels for the pod template",
            |object, _| print::labels(object, "/template/metadata/labels").into(),
        ),
        age(),
    ]
}

pub struct ReplicationController;

impl Strategy for ReplicationController {
    fn default(&self, object: &mut Value) {
        drop_nothing(object);
        let labels = at(object, "/spec/template/metadata/labels").clone();
        if let Some(spec) = child(object, "spec") {
            fill(spec, "replicas", 1);
            if labels.is_object() {
                fill(spec, "selector", labels);
            }
            pod::template(spec);
        }
    }

    fn prepare_create(&self, _: &RequestContext, object: &mut Value) -> Result<(), Failure> {
        fill(object, "status", json!({"replicas": 0}));
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if at(object, "/spec/selector")
            .as_object()
            .is_none_or(serde_json::Map::is_empty)
        {
            errors.push(FieldError::required("spec.selector", ""));
        }
        errors.extend(pod::spec(
            at(object, "/spec/template/spec"),
            "spec.template.spec",
        ));
        errors
    }
}

pub fn replication_columns() -> Vec<Column> {
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
            "The labels of the pods that are counted.",
            |object, _| print::labels(object, "/spec/selector").into(),
        ),
    ]
}
