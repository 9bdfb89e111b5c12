//! The namespaces that everything else counts on.

use std::sync::Arc;

use evenkeel_api::{failure::Failure, kind::Kind, local::Client};
use evenkeel_shared::names;
use serde_json::json;

/// Made when the control plane starts, where they are not there.
pub const NAMESPACES: [&str; 5] = [
    "default",
    "kube-system",
    "kube-public",
    names::CLUSTER_NAMESPACE,
    names::SYSTEM_NAMESPACE,
];

/// Makes what is missing.
pub async fn ensure(client: &Client, namespaces: &Arc<Kind>) -> Result<(), Failure> {
    for name in NAMESPACES {
        if client.get(namespaces, None, name).await.is_ok() {
            continue;
        }
        let namespace = json!({"metadata": {"name": name}});
        match client.create(namespaces, None, namespace).await {
            Ok(_) => {}
            Err(failure) if failure.reason == "AlreadyExists" => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}
