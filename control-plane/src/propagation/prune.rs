//! What of a template does not travel: what its own server keeps, and what a member fills in by itself.

use serde_json::{Map, Value};

const METADATA: &[&str] = &[
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
    "ownerReferences",
    "finalizers",
];

/// Labels and selector entries that a Job's controller makes.
const JOB_LABELS: &[&str] = &[
    "controller-uid",
    "job-name",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
];

/// Takes out of a template what must not be in a Work. Goes by the kind alone, as the reference does.
pub fn prune(object: &mut Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = map(object, "/metadata") {
        for field in METADATA {
            metadata.remove(*field);
        }
    }
    match object["kind"].as_str().unwrap_or_default() {
        "Deployment" => remove(
            object,
            "/metadata/annotations",
            &[
                "deployment.kubernetes.io/revision",
                "deployment.kubernetes.io/revision-history",
            ],
        ),
        // Finalizers of its own server.
        "Namespace" => remove(object, "", &["spec"]),
        "Job" => job(object),
        "Service" => service(object),
        "ServiceAccount" => service_account(object),
        "Secret" => secret(object),
        "PersistentVolumeClaim" => remove(
            object,
            "/metadata/annotations",
            &["volume.kubernetes.io/selected-node"],
        ),
        _ => {}
    }
}

/// A member makes its own selector; and when it removed the finished copy by itself, it would be created again and
/// again.
fn job(object: &mut Value) {
    remove(object, "/spec", &["ttlSecondsAfterFinished"]);
    if object.pointer("/spec/manualSelector") != Some(&Value::Bool(true)) {
        remove(object, "/spec/selector/matchLabels", JOB_LABELS);
        remove(object, "/spec/template/metadata/labels", JOB_LABELS);
    }
}

/// Addresses are the member's, unless it is asked for none.
fn service(object: &mut Value) {
    if object.pointer("/spec/clusterIP").and_then(Value::as_str) != Some("None") {
        remove(object, "/spec", &["clusterIP", "clusterIPs"]);
    }
}

/// Generated token Secrets belong to this server.
fn service_account(object: &mut Value) {
    let name = object
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let generated = format!("{name}-token-");
    let Some(secrets) = object.get_mut("secrets").and_then(Value::as_array_mut) else {
        return;
    };
    secrets.retain(|secret| {
        !secret["name"]
            .as_str()
            .is_some_and(|name| name.starts_with(&generated))
    });
}

/// The token in it is this server's; a member fills in its own.
fn secret(object: &mut Value) {
    if object["type"] == "kubernetes.io/service-account-token" {
        remove(object, "", &["data"]);
        remove(
            object,
            "/metadata/annotations",
            &["kubernetes.io/service-account.uid"],
        );
    }
}

fn map<'a>(object: &'a mut Value, pointer: &str) -> Option<&'a mut Map<String, Value>> {
    object.pointer_mut(pointer)?.as_object_mut()
}

fn remove(object: &mut Value, pointer: &str, fields: &[&str]) {
    if let Some(map) = map(object, pointer) {
        for field in fields {
            map.remove(*field);
        }
    }
}
