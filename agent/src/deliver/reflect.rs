//! What of an object's status is reported. The usual kinds are cut to what their aggregation uses, the reference's
//! choice field by field; of others the whole status goes.

use evenkeel_shared::stamps::TEMPLATE_GENERATION_ANNOTATION;
use serde_json::{Map, Value, json};

/// What is kept of a kind's status.
struct Shape {
    api_version: &'static str,
    kind: &'static str,
    /// Kept when they say something.
    fields: &'static [&'static str],
    /// Numbers that are always there.
    numbers: &'static [&'static str],
    /// The object's generation and its template's go along.
    generations: bool,
}

const SHAPES: [Shape; 10] = [
    Shape {
        api_version: "apps/v1",
        kind: "Deployment",
        fields: &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
        ],
        numbers: &[],
        generations: true,
    },
    Shape {
        api_version: "apps/v1",
        kind: "ReplicaSet",
        fields: &["observedGeneration", "readyReplicas", "availableReplicas"],
        numbers: &["replicas"],
        generations: true,
    },
    Shape {
        api_version: "apps/v1",
        kind: "StatefulSet",
        fields: &["readyReplicas", "currentReplicas", "updatedReplicas"],
        numbers: &["replicas", "availableReplicas"],
        generations: true,
    },
    Shape {
        api_version: "apps/v1",
        kind: "DaemonSet",
        fields: &[
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
        ],
        numbers: &[
            "currentNumberScheduled",
            "desiredNumberScheduled",
            "numberMisscheduled",
            "numberReady",
        ],
        generations: true,
    },
    Shape {
        api_version: "batch/v1",
        kind: "Job",
        fields: &[
            "active",
            "succeeded",
            "failed",
            "conditions",
            "startTime",
            "completionTime",
        ],
        numbers: &[],
        generations: false,
    },
    Shape {
        api_version: "networking.k8s.io/v1",
        kind: "Ingress",
        fields: &["loadBalancer"],
        numbers: &[],
        generations: false,
    },
    Shape {
        api_version: "v1",
        kind: "Service",
        fields: &["loadBalancer"],
        numbers: &[],
        generations: false,
    },
    Shape {
        api_version: "policy/v1",
        kind: "PodDisruptionBudget",
        fields: &["disruptedPods"],
        numbers: &[
            "currentHealthy",
            "desiredHealthy",
            "disruptionsAllowed",
            "expectedPods",
        ],
        generations: false,
    },
    Shape {
        api_version: "autoscaling/v2",
        kind: "HorizontalPodAutoscaler",
        fields: &["currentReplicas"],
        numbers: &["desiredReplicas"],
        generations: false,
    },
    Shape {
        api_version: "v1",
        kind: "PersistentVolume",
        fields: &["phase", "message", "reason"],
        numbers: &[],
        generations: false,
    },
];

/// Why a status cannot be reported.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReflectError {
    #[error("the status is not an object")]
    NotAnObject,
    #[error("the template's generation is not a number: {0:?}")]
    Generation(String),
}

fn says_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Bool(true) | Value::Object(_) => true,
    }
}

/// What is reported of this object. `None`: nothing.
pub fn reflect(object: &Value) -> Result<Option<Value>, ReflectError> {
    let status = match &object["status"] {
        Value::Null => return Ok(None),
        Value::Object(status) => status,
        _ => return Err(ReflectError::NotAnObject),
    };
    let kind = (&object["apiVersion"], &object["kind"]);
    let Some(shape) = SHAPES
        .iter()
        .find(|shape| kind.0 == shape.api_version && kind.1 == shape.kind)
    else {
        return Ok(Some(object["status"].clone()));
    };
    if shape.kind == "Service" && object["spec"]["type"] != "LoadBalancer" {
        return Ok(None);
    }
    let mut kept = Map::new();
    for field in shape.fields {
        if let Some(value) = status.get(*field).filter(|value| says_something(value)) {
            kept.insert((*field).to_owned(), value.clone());
        }
    }
    for field in shape.numbers {
        let value = status.get(*field).cloned().unwrap_or_else(|| json!(0));
        kept.insert((*field).to_owned(), value);
    }
    if shape.generations {
        let metadata = &object["metadata"];
        if says_something(&metadata["generation"]) {
            kept.insert("generation".to_owned(), metadata["generation"].clone());
        }
        // The reference reports nothing at all without it; then only the comparison with the template is lost.
        if let Some(text) = metadata["annotations"][TEMPLATE_GENERATION_ANNOTATION].as_str() {
            let generation: i64 = text
                .parse()
                .map_err(|_| ReflectError::Generation(text.to_owned()))?;
            kept.insert("resourceTemplateGeneration".to_owned(), json!(generation));
        }
    }
    Ok(Some(Value::Object(kept)))
}
