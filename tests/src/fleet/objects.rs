//! The bodies that agents send, with the sizes of real ones.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::member::workload::second;

pub const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";
pub const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/karmada-cluster/leases";

/// A time as leases carry it: microseconds.
pub fn micro(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

pub fn cluster(name: &str, index: usize) -> Value {
    let region = format!("region-{}", index % 8);
    json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name},
        "spec": {
            "id": uuid::Uuid::new_v4().to_string(), "syncMode": "Pull", "apiEndpoint": "https://10.0.0.1:6443",
            "provider": "sim", "zones": [format!("{region}a"), format!("{region}b")], "region": region,
        },
    })
}

pub fn lease(name: &str, now: Timestamp) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "namespace": "karmada-cluster"},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": micro(now)},
    })
}

pub fn renewal(now: Timestamp) -> Value {
    json!({"spec": {"renewTime": micro(now)}})
}

/// A whole status: version, some 150 enabled kinds, conditions and summaries, 7 kB in all. `round` moves the sums, as
/// pods that come and go do.
pub fn status(since: Timestamp, round: u64) -> Value {
    let since = second(since);
    let condition = |type_: &str, reason: &str, message: &str| json!({"type": type_, "status": "True", "reason": reason, "message": message, "lastTransitionTime": since});
    let groups = [
        ("v1", 16),
        ("apps/v1", 5),
        ("batch/v1", 2),
        ("autoscaling/v2", 1),
        ("networking.k8s.io/v1", 6),
        ("policy/v1", 1),
        ("rbac.authorization.k8s.io/v1", 4),
        ("storage.k8s.io/v1", 6),
        ("apiextensions.k8s.io/v1", 1),
        ("example.io/v1", 60),
    ];
    let enablements = groups.map(|(version, count)| {
        let kinds = (0..count).map(|kind| json!({"name": format!("simulatedkinds{kind:02}"), "kind": format!("SimulatedKind{kind:02}")}));
        json!({"groupVersion": version, "resources": kinds.collect::<Vec<_>>()})
    });
    let sums = |cpu: u64, memory: u64, pods: u64| json!({"cpu": format!("{cpu}m"), "memory": format!("{memory}Mi"), "pods": pods.to_string()});
    json!({"status": {
        "kubernetesVersion": "v1.36.2", "apiEnablements": enablements,
        "conditions": [
            condition("CompleteAPIEnablements", "Complete", "all API groups were discovered"),
            condition("Ready", "ClusterReady", "cluster is healthy and ready to accept workloads"),
        ],
        "nodeSummary": {"totalNum": 100, "readyNum": 100},
        "resourceSummary": {
            "allocatable": sums(400_000, 1_600_000, 11_000), "allocated": sums(100_000 + round, 400_000 + round, 1000 + round),
            "allocating": sums(round % 7 * 100, round % 7 * 128, round % 7),
            "allocatableModelings": (0..9).map(|grade| json!({"grade": grade, "count": (round + grade) % 20})).collect::<Vec<_>>(),
        },
    }})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_as_large_as_a_real_one_and_changes_every_round() {
        let since = Timestamp::UNIX_EPOCH;
        let size = status(since, 1).to_string().len();
        assert!((6_500..8_500).contains(&size), "{size} bytes");
        assert_ne!(status(since, 1), status(since, 2));
    }
}
