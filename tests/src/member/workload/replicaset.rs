//! ReplicaSet: so many pods of one template.

use serde_json::{Map, Value};

use super::{Action, Pod, Workload, counts, int, name, pod_from, status_of, surplus};

/// `pods`: those that the set controls. `fresh` makes the random ends of pod names.
pub fn plan(set: &Value, pods: &[&Pod], fresh: &mut dyn FnMut() -> String) -> Vec<Action> {
    if set.pointer("/metadata/deletionTimestamp").is_some() {
        return Vec::new();
    }
    let wanted = usize::try_from(int(set, "/spec/replicas").unwrap_or(1)).unwrap_or(0);
    let live = pods
        .iter()
        .copied()
        .filter(|pod| !pod.deleting && !pod.finished())
        .collect::<Vec<_>>();
    let mut actions = Vec::new();
    for _ in live.len()..wanted {
        actions.push(Action::Create {
            kind: Workload::Pod,
            object: pod_from(set, &format!("{}-{}", name(set), fresh()), &[]),
        });
    }
    actions.extend(surplus(&live, live.len().saturating_sub(wanted)));

    let count = |test: fn(&Pod) -> bool| {
        i64::try_from(live.iter().filter(|pod| test(pod)).count()).unwrap_or(i64::MAX)
    };
    let all = count(|_| true);
    let mut status = Map::new();
    status.insert("replicas".into(), all.into());
    counts(
        &mut status,
        &[
            ("fullyLabeledReplicas", all),
            ("readyReplicas", count(|pod| pod.ready)),
            ("availableReplicas", count(|pod| pod.ready)),
            (
                "observedGeneration",
                int(set, "/metadata/generation").unwrap_or(0),
            ),
        ],
    );
    actions.extend(status_of(Workload::ReplicaSet, set, status));
    actions
}
