//! Node: the simulated members have some; the control plane has none of its own.

use std::collections::BTreeSet;

use evenkeel_api::kind::{Column, Strategy};
use serde_json::{Value, json};

use crate::kinds::{
    column::{age, shown, wide},
    look::{at, condition, fill, items, pairs, text},
    pod, print,
};

pub struct Node;

impl Strategy for Node {
    fn default(&self, object: &mut Value) {
        fill(object, "spec", json!({}));
        for amounts in ["/status/capacity", "/status/allocatable"] {
            if let Some(amounts) = object.pointer_mut(amounts) {
                pod::canonical(amounts);
            }
        }
    }
}

pub fn columns() -> Vec<Column> {
    let info = "From the node's nodeInfo.";
    vec![
        shown("Status", "string", "The status of the node", |object, _| {
            node_status(object).into()
        }),
        shown("Roles", "string", "The roles of the node", |object, _| {
            roles(object).into()
        }),
        age(),
        shown(
            "Version",
            "string",
            "Kubelet Version reported by the node.",
            |object, _| text(object, "/status/nodeInfo/kubeletVersion").into(),
        ),
        wide(
            "Internal-IP",
            "string",
            "List of addresses reachable to the node.",
            |object, _| address(object, "InternalIP").into(),
        ),
        wide(
            "External-IP",
            "string",
            "List of addresses reachable to the node.",
            |object, _| address(object, "ExternalIP").into(),
        ),
        wide("OS-Image", "string", info, |object, _| {
            unknown(object, "/status/nodeInfo/osImage")
        }),
        wide("Kernel-Version", "string", info, |object, _| {
            unknown(object, "/status/nodeInfo/kernelVersion")
        }),
        wide("Container-Runtime", "string", info, |object, _| {
            unknown(object, "/status/nodeInfo/containerRuntimeVersion")
        }),
    ]
}

fn unknown(object: &Value, pointer: &str) -> Value {
    print::or(text(object, pointer), print::UNKNOWN).into()
}

fn node_status(object: &Value) -> String {
    let ready = match condition(object, "Ready") {
        None => "Unknown",
        Some(ready) if text(ready, "/status") == "True" => "Ready",
        Some(_) => "NotReady",
    };
    if at(object, "/spec/unschedulable") == true {
        format!("{ready},SchedulingDisabled")
    } else {
        ready.into()
    }
}

fn roles(object: &Value) -> String {
    let roles = pairs(object, "/metadata/labels")
        .into_iter()
        .filter_map(
            |(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
                Some(role) => Some(role),
                None => (key == "kubernetes.io/role").then_some(value),
            },
        )
        .filter(|role| !role.is_empty())
        .collect::<BTreeSet<_>>();
    let roles = roles.into_iter().collect::<Vec<_>>().join(",");
    print::or(&roles, print::NONE).to_owned()
}

fn address(object: &Value, type_: &str) -> String {
    items(object, "/status/addresses")
        .iter()
        .find(|address| text(address, "/type") == type_)
        .map_or(print::NONE, |address| text(address, "/address"))
        .to_owned()
}
