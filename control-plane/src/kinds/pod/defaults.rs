//! Defaults of a pod's spec, as the reference server fills them in.

use evenkeel_shared::quantity::Quantity;
use serde_json::{Value, json};

use crate::kinds::look::{child, each, fill, text};

/// Fills in the template under `spec.template` of a workload.
pub fn template(spec: &mut Value) {
    let Some(template) = child(spec, "template") else {
        return;
    };
    fill(template, "metadata", json!({}));
    if let Some(spec) = child(template, "spec") {
        pod_spec(spec);
    }
}

/// Fills in a Pod.
pub fn pod(object: &mut Value) {
    let Some(spec) = child(object, "spec") else {
        return;
    };
    fill(spec, "enableServiceLinks", true);
    let on_host = spec["hostNetwork"] == true;
    for list in ["containers", "initContainers"] {
        for container in each(spec, list) {
            requests_from_limits(container);
            if on_host {
                for port in each(container, "ports") {
                    let number = port["containerPort"].clone();
                    fill(port, "hostPort", number);
                }
            }
        }
    }
    pod_spec(spec);
}

fn requests_from_limits(container: &mut Value) {
    let limits = container.pointer("/resources/limits").cloned();
    let Some(Value::Object(limits)) = limits else {
        return;
    };
    if let Some(requests) =
        child(container, "resources").and_then(|resources| child(resources, "requests"))
    {
        for (name, amount) in limits {
            fill(requests, &name, amount);
        }
    }
}

fn pod_spec(spec: &mut Value) {
    fill(spec, "restartPolicy", "Always");
    fill(spec, "terminationGracePeriodSeconds", 30);
    fill(spec, "dnsPolicy", "ClusterFirst");
    fill(spec, "securityContext", json!({}));
    fill(spec, "schedulerName", "default-scheduler");
    // The older name of the field is kept beside the newer one.
    for (from, to) in [
        ("serviceAccountName", "serviceAccount"),
        ("serviceAccount", "serviceAccountName"),
    ] {
        if !text(spec, &format!("/{from}")).is_empty() {
            let name = spec[from].clone();
            fill(spec, to, name);
        }
    }
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        each(spec, list).for_each(container);
    }
    each(spec, "volumes").for_each(volume);
}

fn container(container: &mut Value) {
    fill(container, "resources", json!({}));
    fill(container, "terminationMessagePath", "/dev/termination-log");
    fill(container, "terminationMessagePolicy", "File");
    let policy = pull_policy(text(container, "/image"));
    fill(container, "imagePullPolicy", policy);
    for port in each(container, "ports") {
        fill(port, "protocol", "TCP");
    }
    for variable in each(container, "env") {
        if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef") {
            fill(field, "apiVersion", "v1");
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe).filter(|probe| probe.is_object()) {
            fill(probe, "timeoutSeconds", 1);
            fill(probe, "periodSeconds", 10);
            fill(probe, "successThreshold", 1);
            fill(probe, "failureThreshold", 3);
            handler(probe);
            if let Some(grpc) = probe.get_mut("grpc") {
                fill(grpc, "service", "");
            }
        }
    }
    for hook in ["/lifecycle/postStart", "/lifecycle/preStop"] {
        if let Some(hook) = container.pointer_mut(hook) {
            handler(hook);
        }
    }
    for list in ["/resources/limits", "/resources/requests"] {
        if let Some(amounts) = container.pointer_mut(list) {
            canonical(amounts);
        }
    }
}

fn handler(handler: &mut Value) {
    if let Some(get) = handler.get_mut("httpGet") {
        fill(get, "path", "/");
        fill(get, "scheme", "HTTP");
    }
}

/// An image without a tag, or tagged `latest`, is pulled each time.
fn pull_policy(image: &str) -> &'static str {
    let last = image.rsplit('/').next().unwrap_or_default();
    let moving = match last.split_once('@') {
        Some(_) => false,
        None => last.split_once(':').is_none_or(|(_, tag)| tag == "latest"),
    };
    if moving { "Always" } else { "IfNotPresent" }
}

/// Writes amounts in their canonical form; what is no amount stays, for validation to name.
pub fn canonical(amounts: &mut Value) {
    for amount in amounts
        .as_object_mut()
        .into_iter()
        .flat_map(|amounts| amounts.values_mut())
    {
        if let Ok(quantity) = serde_json::from_value::<Quantity>(amount.clone()) {
            *amount = quantity.to_string().into();
        }
    }
}

fn volume(volume: &mut Value) {
    let no_source = volume
        .as_object()
        .is_some_and(|fields| fields.keys().all(|key| key == "name"));
    if no_source {
        fill(volume, "emptyDir", json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(source) {
            fill(source, "defaultMode", 420);
        }
    }
    if let Some(source) = volume.get_mut("hostPath") {
        fill(source, "type", "");
    }
    if let Some(source) = volume.get_mut("downwardAPI") {
        downward(source);
    }
    if let Some(projected) = volume.get_mut("projected") {
        for source in each(projected, "sources") {
            if let Some(token) = source.get_mut("serviceAccountToken") {
                fill(token, "expirationSeconds", 3600);
            }
            if let Some(source) = source.get_mut("downwardAPI") {
                downward(source);
            }
        }
    }
    if let Some(claim) = volume.pointer_mut("/ephemeral/volumeClaimTemplate/spec") {
        fill(claim, "volumeMode", "Filesystem");
    }
}

fn downward(source: &mut Value) {
    for item in each(source, "items") {
        if let Some(field) = item.get_mut("fieldRef") {
            fill(field, "apiVersion", "v1");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moving_images_are_always_pulled() {
        for (image, policy) in [
            ("i", "Always"),
            ("i:latest", "Always"),
            ("i:1", "IfNotPresent"),
            ("h:5000/i", "Always"),
            ("h:5000/i:1", "IfNotPresent"),
            ("i@sha256:00", "IfNotPresent"),
            ("i:latest@sha256:00", "IfNotPresent"),
            ("", "Always"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }

    #[test]
    fn a_pod_asks_for_what_it_is_limited_to() {
        let mut pod_object = json!({"spec": {"containers": [
            {"name": "c", "image": "i:1", "resources": {"limits": {"cpu": "0.5", "memory": "1024Mi"}, "requests": {"cpu": 0.1}}},
        ]}});
        pod(&mut pod_object);
        assert_eq!(
            pod_object["spec"]["containers"][0]["resources"],
            json!({"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "1Gi"}})
        );
    }
}
