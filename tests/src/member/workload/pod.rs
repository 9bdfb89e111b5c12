//! Scheduler and kubelet: a pod is bound to a node, then runs.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{second, text};

/// A pod with this tag on an image never becomes ready, as with an image that cannot be pulled.
pub const BROKEN_TAG: &str = ":broken";

/// What becomes of a bound pod: its status. `address` is the address of the node; `completes` is set for pods that
/// run once.
pub fn run(pod: &Value, address: &str, completes: bool, now: Timestamp) -> Value {
    let now = second(now);
    let containers = pod
        .pointer("/spec/containers")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let broken = containers.iter().any(|container| {
        text(container, "/image").is_some_and(|image| image.ends_with(BROKEN_TAG))
    });
    let (phase, ready, reason) = match (broken, completes) {
        (true, _) => ("Pending", "False", Some("ContainersNotReady")),
        (false, true) => ("Succeeded", "False", Some("PodCompleted")),
        (false, false) => ("Running", "True", None),
    };
    let statuses = containers
        .iter()
        .map(|container| {
            let state = match phase {
                "Pending" => json!({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}),
                "Succeeded" => json!({"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}}),
                _ => json!({"running": {"startedAt": now}}),
            };
            json!({
                "name": container["name"], "image": container["image"], "imageID": "", "restartCount": 0,
                "ready": ready == "True", "started": ready == "True", "state": state, "lastState": {},
            })
        })
        .collect::<Vec<_>>();
    let condition = |type_: &str, status: &str, reason: Option<&str>| {
        let mut condition = json!({"type": type_, "status": status, "lastProbeTime": null, "lastTransitionTime": now});
        if let Some(reason) = reason {
            condition["reason"] = reason.into();
        }
        condition
    };
    let own = pod_address(super::name(pod));
    json!({
        "phase": phase,
        "conditions": [
            condition("PodReadyToStartContainers", "True", None),
            condition("Initialized", "True", None),
            condition("Ready", ready, reason),
            condition("ContainersReady", ready, reason),
            condition("PodScheduled", "True", None),
        ],
        "hostIP": address, "hostIPs": [{"ip": address}], "podIP": own, "podIPs": [{"ip": own}], "startTime": now,
        "containerStatuses": statuses, "qosClass": text(pod, "/status/qosClass").unwrap_or("BestEffort"),
    })
}

/// An address in the pods' network, the same for the same name.
fn pod_address(name: &str) -> String {
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    let [_, b, c, d] = hash.to_be_bytes();
    format!("10.{}.{c}.{d}", 128 + b % 64)
}

/// Whether a pod may run on a node with these labels.
pub fn admits(pod: &Value, labels: &Value) -> bool {
    pod.pointer("/spec/nodeSelector")
        .and_then(Value::as_object)
        .is_none_or(|selector| {
            selector
                .iter()
                .all(|(key, value)| labels.get(key) == Some(value))
        })
}
