//! DaemonSet: one pod on every node that its selector admits.

use serde_json::{Map, Value};

use super::{Action, Pod, Workload, counts, int, name, pod_from, status_of, template_hash, text};

/// What a DaemonSet looks at in a node: its name and labels.
pub struct Place<'a> {
    pub name: &'a str,
    pub labels: &'a Value,
}

/// `pods`: those that the set controls.
pub fn plan(
    set: &Value,
    pods: &[&Pod],
    nodes: &[Place<'_>],
    fresh: &mut dyn FnMut() -> String,
) -> Vec<Action> {
    if set.pointer("/metadata/deletionTimestamp").is_some() {
        return Vec::new();
    }
    let revision = template_hash(&set["spec"]["template"]);
    let selector = set
        .pointer("/spec/template/spec/nodeSelector")
        .and_then(Value::as_object);
    let admitted = nodes
        .iter()
        .filter(|node| {
            selector.is_none_or(|selector| {
                selector
                    .iter()
                    .all(|(key, value)| node.labels.get(key) == Some(value))
            })
        })
        .collect::<Vec<_>>();
    let mut actions = Vec::new();
    for node in &admitted {
        let there = pods
            .iter()
            .any(|pod| pod.node.as_deref() == Some(node.name) && !pod.finished());
        if !there {
            let mut object = pod_from(
                set,
                &format!("{}-{}", name(set), fresh()),
                &[("controller-revision-hash", &revision)],
            );
            // The real controller asks the scheduler through node affinity; the place is the same.
            object["spec"]["nodeName"] = node.name.into();
            actions.push(Action::Create {
                kind: Workload::Pod,
                object,
            });
        }
    }
    let misplaced = |pod: &&&Pod| {
        !admitted
            .iter()
            .any(|node| pod.node.as_deref() == Some(node.name))
    };
    actions.extend(
        pods.iter()
            .filter(misplaced)
            .filter(|pod| !pod.deleting)
            .map(|pod| pod.delete()),
    );
    if pods.iter().all(|pod| pod.ready && !pod.deleting)
        && text(set, "/spec/updateStrategy/type") != Some("OnDelete")
    {
        let outdated = pods
            .iter()
            .find(|pod| pod.revision.as_deref() != Some(revision.as_str()));
        actions.extend(outdated.map(|pod| pod.delete()));
    }

    let size = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let desired = size(admitted.len());
    let ready = size(
        pods.iter()
            .filter(|pod| pod.ready && !misplaced(pod))
            .count(),
    );
    let mut status = Map::new();
    status.insert(
        "currentNumberScheduled".into(),
        size(pods.iter().filter(|pod| !misplaced(pod)).count()).into(),
    );
    status.insert(
        "numberMisscheduled".into(),
        size(pods.iter().filter(misplaced).count()).into(),
    );
    status.insert("desiredNumberScheduled".into(), desired.into());
    status.insert("numberReady".into(), ready.into());
    counts(
        &mut status,
        &[
            (
                "observedGeneration",
                int(set, "/metadata/generation").unwrap_or(0),
            ),
            (
                "updatedNumberScheduled",
                size(
                    pods.iter()
                        .filter(|pod| pod.revision.as_deref() == Some(revision.as_str()))
                        .count(),
                ),
            ),
            ("numberAvailable", ready),
            ("numberUnavailable", (desired - ready).max(0)),
        ],
    );
    actions.extend(status_of(Workload::DaemonSet, set, status));
    actions
}
