//! How much memory a large member takes: 5,000 nodes and 150,000 pods, decoded from JSON into the census.
//!
//! `cargo run --release -p evenkeel-agent --example census`

use evenkeel_agent::status::{
    census::{Census, NodeItem, PodItem},
    summary::{node_summary, resource_summary},
};
use evenkeel_shared::cluster::ResourceModel;
use serde_json::json;
use tokio::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const NODES: u32 = 5_000;
const PODS: u32 = 150_000;
/// Different requests among the pods.
const SHAPES: u32 = 400;

/// Resident memory of this process in kB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|line| line.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or_default()
}

fn main() -> Result<(), serde_json::Error> {
    let before = resident();
    let mut census = Census::default();
    for node in 0..NODES {
        let item: NodeItem = serde_json::from_value(json!({
            "metadata": {"name": format!("node-{node}"), "uid": format!("node-{node}")},
            "status": {
                "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "100Gi"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }))?;
        census.put_node(item);
    }
    let started = Instant::now();
    for pod in 0..PODS {
        let shape = pod % SHAPES;
        let item: PodItem = serde_json::from_value(json!({
            "metadata": {"uid": uuid::Uuid::from_u64_pair(u64::from(pod), 7).to_string(), "name": format!("pod-{pod}")},
            "spec": {
                "nodeName": format!("node-{}", pod % NODES),
                "containers": [
                    {"resources": {"requests": {"cpu": format!("{}m", 10 + shape), "memory": format!("{}Mi", 16 + shape)}}},
                    {"resources": {"requests": {"cpu": "50m", "memory": "64Mi"}}},
                ],
            },
            "status": {"phase": "Running"},
        }))?;
        census.put_pod(&item);
    }
    let loaded = started.elapsed();
    let after = resident();
    let models = serde_json::from_value::<Vec<ResourceModel>>(json!([
        {"grade": 0, "ranges": [{"name": "cpu", "min": "0", "max": "32"}, {"name": "memory", "min": "0", "max": "128Gi"}]},
        {"grade": 1, "ranges": [{"name": "cpu", "min": "32", "max": "1k"}, {"name": "memory", "min": "128Gi", "max": "1Ti"}]},
    ]))?;
    let started = Instant::now();
    let nodes = node_summary(&census);
    let resources = resource_summary(&census, &models);
    let summed = started.elapsed();
    println!(
        "{NODES} nodes, {PODS} pods: {} kB more than the {before} kB before",
        after - before
    );
    println!(
        "loaded in {loaded:?}; summed in {summed:?}; {} kB at the end",
        resident()
    );
    println!(
        "nodes ready: {}; cpu requested: {}",
        nodes.ready_num, resources.allocated["cpu"]
    );
    Ok(())
}
