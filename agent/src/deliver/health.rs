//! Whether an object in the member does what it is there for. A kind without a rule is well when it is there.

use evenkeel_shared::work::Health;
use serde_json::Value;

fn number(object: &Value, pointer: &str) -> i64 {
    object
        .pointer(pointer)
        .and_then(Value::as_i64)
        .unwrap_or_default()
}

/// The controller has seen the newest spec.
fn is_observed(object: &Value) -> bool {
    number(object, "/status/observedGeneration") == number(object, "/metadata/generation")
}

/// A load balancer has an address.
fn has_address(object: &Value) -> bool {
    let entries = object
        .pointer("/status/loadBalancer/ingress")
        .and_then(Value::as_array);
    entries.into_iter().flatten().any(|entry| {
        let given = |name: &str| entry[name].as_str().is_some_and(|text| !text.is_empty());
        given("ip") || given("hostname")
    })
}

fn rule(object: &Value) -> Option<bool> {
    let updated = || number(object, "/status/updatedReplicas");
    let wanted = || number(object, "/spec/replicas");
    let available = || number(object, "/status/availableReplicas");
    let phase = || object.pointer("/status/phase").and_then(Value::as_str);
    Some(
        match (object["apiVersion"].as_str()?, object["kind"].as_str()?) {
            ("apps/v1", "Deployment" | "StatefulSet") => {
                is_observed(object) && updated() >= wanted() && available() >= updated()
            }
            ("apps/v1", "ReplicaSet") => is_observed(object) && available() >= wanted(),
            ("apps/v1", "DaemonSet") => {
                let updated = number(object, "/status/updatedNumberScheduled");
                is_observed(object)
                    && updated >= number(object, "/status/desiredNumberScheduled")
                    && number(object, "/status/numberAvailable") >= updated
            }
            ("v1", "Service") => {
                object.pointer("/spec/type").and_then(Value::as_str) != Some("LoadBalancer")
                    || has_address(object)
            }
            ("networking.k8s.io/v1", "Ingress") => has_address(object),
            ("v1", "PersistentVolumeClaim") => phase() == Some("Bound"),
            ("v1", "Pod") => match phase() {
                Some("Succeeded") => true,
                Some("Running") => object
                    .pointer("/status/conditions")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                    .any(|condition| condition["type"] == "Ready" && condition["status"] == "True"),
                _ => false,
            },
            ("policy/v1", "PodDisruptionBudget") => {
                number(object, "/status/currentHealthy") >= number(object, "/status/desiredHealthy")
            }
            _ => return None,
        },
    )
}

/// How the object is doing.
pub fn health(object: &Value) -> Health {
    match rule(object) {
        Some(false) => Health::Unhealthy,
        Some(true) | None => Health::Healthy,
    }
}
