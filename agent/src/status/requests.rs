//! What a pod asks for, as the Kubernetes scheduler counts it.
//!
//! Containers and sidecars run together; an init container runs alone beside the sidecars that were started before
//! it. So: the larger of the sum of the former and each step of the latter, per resource; where the pod has requests
//! of its own (cpu, memory, huge pages) they stand in place of that; the overhead is added.

use evenkeel_shared::cluster::ResourceList;
use serde::Deserialize;

/// The part of a pod's spec that counts.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    pub node_name: Option<String>,
    pub containers: Vec<Container>,
    pub init_containers: Option<Vec<Container>>,
    pub resources: Option<Resources>,
    pub overhead: Option<ResourceList>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    pub resources: Option<Resources>,
    pub restart_policy: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Resources {
    pub requests: Option<ResourceList>,
}

fn requests(
    resources: Option<&Resources>,
) -> impl Iterator<Item = (&String, &evenkeel_shared::quantity::Quantity)> {
    resources
        .and_then(|resources| resources.requests.as_ref())
        .into_iter()
        .flatten()
}

/// Adds, per resource.
pub fn add<'a>(
    sum: &mut ResourceList,
    more: impl IntoIterator<Item = (&'a String, &'a evenkeel_shared::quantity::Quantity)>,
) {
    for (name, amount) in more {
        match sum.get_mut(name) {
            Some(total) => *total += *amount,
            None => {
                sum.insert(name.clone(), *amount);
            }
        }
    }
}

fn raise(most: &mut ResourceList, other: &ResourceList) {
    for (name, amount) in other {
        match most.get_mut(name) {
            Some(known) if *known >= *amount => {}
            Some(known) => *known = *amount,
            None => {
                most.insert(name.clone(), *amount);
            }
        }
    }
}

/// What the pod asks for.
pub fn pod_requests(pod: &PodSpec) -> ResourceList {
    let mut running = ResourceList::new();
    for container in &pod.containers {
        add(&mut running, requests(container.resources.as_ref()));
    }
    let mut sidecars = ResourceList::new();
    let mut most = ResourceList::new();
    for container in pod.init_containers.iter().flatten() {
        let own = requests(container.resources.as_ref());
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut running, requests(container.resources.as_ref()));
            add(&mut sidecars, own);
            raise(&mut most, &sidecars);
        } else {
            let mut step = sidecars.clone();
            add(&mut step, own);
            raise(&mut most, &step);
        }
    }
    raise(&mut running, &most);
    for (name, amount) in requests(pod.resources.as_ref()) {
        if name == "cpu" || name == "memory" || name.starts_with("hugepages-") {
            running.insert(name.clone(), *amount);
        }
    }
    add(&mut running, pod.overhead.iter().flatten());
    running
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn cpu(amount: &str) -> Value {
        json!({"resources": {"requests": {"cpu": amount}}})
    }

    fn sidecar(amount: &str) -> Value {
        json!({"resources": {"requests": {"cpu": amount}}, "restartPolicy": "Always"})
    }

    #[test]
    fn as_the_scheduler_counts() {
        for (name, pod, expected) in [
            ("nothing asked for", json!({"containers": [{}]}), None),
            (
                "containers add up",
                json!({"containers": [cpu("1"), cpu("500m")]}),
                Some("1500m"),
            ),
            (
                "a large init step",
                json!({"containers": [cpu("1")], "initContainers": [cpu("3"), cpu("2")]}),
                Some("3"),
            ),
            (
                "a small init step",
                json!({"containers": [cpu("2")], "initContainers": [cpu("1")]}),
                Some("2"),
            ),
            (
                "a sidecar runs beside the containers",
                json!({"containers": [cpu("1")], "initContainers": [sidecar("500m")]}),
                Some("1500m"),
            ),
            (
                "an init step runs beside the sidecars before it",
                json!({"containers": [cpu("1")], "initContainers": [sidecar("1"), cpu("3")]}),
                Some("4"),
            ),
            (
                "and not beside those after it",
                json!({"containers": [cpu("1")], "initContainers": [cpu("3"), sidecar("1")]}),
                Some("3"),
            ),
            (
                "overhead on top",
                json!({"containers": [cpu("1")], "initContainers": [cpu("3")], "overhead": {"cpu": "100m"}}),
                Some("3100m"),
            ),
            (
                "requests of the pod itself",
                json!({"containers": [cpu("1")], "resources": {"requests": {"cpu": "2"}}, "overhead": {"cpu": "1"}}),
                Some("3"),
            ),
            (
                "nulls",
                json!({"containers": [{"resources": null}], "initContainers": null, "overhead": null}),
                None,
            ),
        ] {
            let pod: PodSpec = serde_json::from_value(pod).unwrap();
            let found = pod_requests(&pod).get("cpu").map(ToString::to_string);
            assert_eq!(found.as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn each_resource_by_itself() {
        let pod: PodSpec = serde_json::from_value(json!({
            "containers": [{"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
            "initContainers": [{"resources": {"requests": {"memory": "2Gi", "x.io/gpu": 1}}}],
        }))
        .unwrap();
        let found: Vec<_> = pod_requests(&pod)
            .into_iter()
            .map(|(name, amount)| format!("{name}={amount}"))
            .collect();
        assert_eq!(found, ["cpu=1", "memory=2Gi", "x.io/gpu=1"]);
    }
}
