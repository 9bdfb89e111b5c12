//! What the agent wants the Cluster's status to say, and the smallest patch that makes it say so.
//!
//! Only the agent's own fields are ever in the patch. Conditions are a list, which a merge patch replaces whole: so
//! one that changes them names the version of the object that the others' conditions were read from.

use evenkeel_shared::{
    cluster::{ApiEnablement, Cluster, ClusterStatus, NodeSummary, ResourceSummary},
    condition,
    stamps::{COMPLETE_API_ENABLEMENTS, READY, REASON_COMPLETE},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Map, Value, json};

use super::{apis::Catalogue, debounce::Decision, probe::Observation};

/// The agent's own fields. `None`: not known yet, so what stands there stays.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub ready: Option<Condition>,
    pub complete: Option<Condition>,
    pub version: Option<String>,
    pub apis: Option<Vec<ApiEnablement>>,
    pub nodes: Option<NodeSummary>,
    pub resources: Option<ResourceSummary>,
}

/// The Ready condition after an observation. While a change is held back, the published one stays and its message
/// tells of the change.
pub fn ready(
    observation: &Observation,
    decision: Decision,
    published: Option<&Condition>,
    now: Timestamp,
) -> Condition {
    let (held, threshold) = match decision {
        Decision::Hold { held, threshold } => (held, threshold),
        Decision::Publish => {
            let status = if observation.is_healthy() {
                "True"
            } else {
                "False"
            };
            let message = observation.message();
            return condition::new(READY, status, observation.reason(), &message, now);
        }
    };
    let held = format!("{} of {}s", held.as_secs(), threshold.as_secs());
    let message = match observation.trouble() {
        None => format!("{held} healthy again"),
        Some(why) => format!("{held} unhealthy: {why}"),
    };
    let (status, reason) = match published {
        Some(published) => (published.status.as_str(), published.reason.as_str()),
        None => ("Unknown", observation.reason()),
    };
    condition::new(READY, status, reason, &message, now)
}

/// The condition about the list of what the member serves.
pub fn complete(catalogue: &Catalogue, now: Timestamp) -> Condition {
    let reason = catalogue.completeness();
    let (status, message) = if reason == REASON_COMPLETE {
        ("True", "collected the complete API list".to_owned())
    } else {
        let unread: Vec<_> = catalogue.unread().collect();
        let message = if unread.is_empty() {
            "collected an empty API list".to_owned()
        } else {
            format!("not read: {}", unread.join(", "))
        };
        ("False", message)
    };
    condition::new(COMPLETE_API_ENABLEMENTS, status, reason, &message, now)
}

impl Report {
    /// The merge patch for `/status`, or nothing to write. `full` re-asserts everything, changed or not.
    pub fn patch(&self, cluster: &Cluster, full: bool) -> Option<Value> {
        let nothing = ClusterStatus::default();
        let current = cluster.status.as_ref().unwrap_or(&nothing);
        let mut status = Map::new();
        let mut conditions = current.conditions.clone();
        let mut changed = false;
        for wanted in [&self.ready, &self.complete].into_iter().flatten() {
            changed |= condition::set(&mut conditions, wanted.clone());
        }
        let mut patch = Map::new();
        if (changed || full) && !conditions.is_empty() {
            status.insert("conditions".to_owned(), json!(conditions));
            let version = &cluster.metadata.resource_version;
            patch.insert("metadata".to_owned(), json!({ "resourceVersion": version }));
        }
        let mut field = |name: &str, current: Value, wanted: Option<Value>| {
            let Some(wanted) = wanted else { return };
            match difference(&current, &wanted) {
                Some(difference) => status.insert(name.to_owned(), difference),
                None if full => status.insert(name.to_owned(), wanted),
                None => None,
            };
        };
        let version = self.version.as_ref().map(|version| json!(version));
        field(
            "kubernetesVersion",
            json!(current.kubernetes_version),
            version,
        );
        let apis = self.apis.as_ref().map(|apis| json!(apis));
        field("apiEnablements", json!(current.api_enablements), apis);
        let nodes = self.nodes.as_ref().map(|nodes| json!(nodes));
        field("nodeSummary", json!(current.node_summary), nodes);
        let resources = self.resources.as_ref().map(|resources| json!(resources));
        field(
            "resourceSummary",
            json!(current.resource_summary),
            resources,
        );
        if status.is_empty() {
            return None;
        }
        patch.insert("status".to_owned(), Value::Object(status));
        Some(Value::Object(patch))
    }
}

/// The merge patch from one value to another. `None`: they are the same.
fn difference(from: &Value, to: &Value) -> Option<Value> {
    if from == to {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (from, to) else {
        return Some(to.clone());
    };
    let mut patch = Map::new();
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in new {
        match old.get(name) {
            None => {
                patch.insert(name.clone(), value.clone());
            }
            Some(old) => {
                if let Some(difference) = difference(old, value) {
                    patch.insert(name.clone(), difference);
                }
            }
        }
    }
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn cluster(status: &Value) -> Cluster {
        serde_json::from_value(json!({
            "metadata": {"name": "m1", "resourceVersion": "7"},
            "spec": {},
            "status": status,
        }))
        .unwrap()
    }

    fn healthy(now: i64) -> Report {
        Report {
            ready: Some(ready(
                &Observation::Healthy,
                Decision::Publish,
                None,
                at(now),
            )),
            version: Some("v1.36.2".into()),
            nodes: Some(NodeSummary {
                total_num: 3,
                ready_num: 3,
            }),
            ..Report::default()
        }
    }

    #[test]
    fn nothing_is_written_when_nothing_changed() {
        let patch = healthy(0).patch(&cluster(&json!(null)), false).unwrap();
        let written = cluster(&patch["status"]);
        assert_eq!(healthy(500).patch(&written, false), None);
        let full = healthy(500).patch(&written, true).unwrap();
        assert_eq!(full["status"]["conditions"], patch["status"]["conditions"]);
        assert_eq!(full["status"]["kubernetesVersion"], "v1.36.2");
    }

    #[test]
    fn what_belongs_to_others_is_never_touched() {
        let others = cluster(&json!({
            "remedyActions": ["TrafficControl"],
            "conditions": [{"type": "ServiceDomainNameResolutionReady", "status": "False", "reason": "x",
                            "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        }));
        let patch = healthy(0).patch(&others, false).unwrap();
        assert_eq!(patch["status"].get("remedyActions"), None);
        assert_eq!(patch["status"]["conditions"].as_array().unwrap().len(), 2);
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
    }

    #[test]
    fn a_resource_that_is_gone_is_removed() {
        let mut report = healthy(0);
        report.resources =
            Some(serde_json::from_value(json!({"allocatable": {"cpu": "4"}})).unwrap());
        let old =
            cluster(&json!({"resourceSummary": {"allocatable": {"cpu": "4", "x.io/gpu": "1"}}}));
        let patch = report.patch(&old, false).unwrap();
        assert_eq!(
            patch["status"]["resourceSummary"],
            json!({"allocatable": {"x.io/gpu": null}})
        );
    }

    #[test]
    fn only_numbers_change_without_naming_a_version() {
        let patch = healthy(0).patch(&cluster(&json!(null)), false).unwrap();
        let mut report = healthy(9);
        report.nodes = Some(NodeSummary {
            total_num: 4,
            ready_num: 3,
        });
        let patch = report.patch(&cluster(&patch["status"]), false).unwrap();
        assert_eq!(patch, json!({"status": {"nodeSummary": {"totalNum": 4}}}));
    }

    #[test]
    fn a_held_change_is_told_in_the_message() {
        let hold = Decision::Hold {
            held: Duration::from_secs(3),
            threshold: Duration::from_secs(30),
        };
        let standing = ready(&Observation::Healthy, Decision::Publish, None, at(0));
        let failing = Observation::Unreachable("connection refused".into());
        let held = ready(&failing, hold, Some(&standing), at(3));
        assert_eq!(
            (held.status.as_str(), held.reason.as_str()),
            ("True", "ClusterReady")
        );
        assert_eq!(held.message, "3 of 30s unhealthy: connection refused");
        let fallen = ready(&failing, Decision::Publish, Some(&standing), at(3));
        let back = ready(&Observation::Healthy, hold, Some(&fallen), at(9));
        assert_eq!(
            (back.status.as_str(), back.reason.as_str()),
            ("False", "ClusterNotReachable")
        );
        assert_eq!(back.message, "3 of 30s healthy again");
    }
}
