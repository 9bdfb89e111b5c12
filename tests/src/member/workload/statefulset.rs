//! StatefulSet: numbered pods, made and replaced in order.

use serde_json::{Map, Value, json};

use super::{Action, Pod, Workload, counts, int, name, pod_from, status_of, template_hash, text};

/// `pods`: those that the set controls.
pub fn plan(set: &Value, pods: &[&Pod]) -> Vec<Action> {
    if set.pointer("/metadata/deletionTimestamp").is_some() {
        return Vec::new();
    }
    let wanted = int(set, "/spec/replicas").unwrap_or(1);
    let parallel = text(set, "/spec/podManagementPolicy") == Some("Parallel");
    let revision = format!("{}-{}", name(set), template_hash(&set["spec"]["template"]));
    let ordinal = |pod: &Pod| {
        pod.name
            .strip_prefix(name(set))
            .and_then(|rest| rest.strip_prefix('-'))
            .and_then(|rest| rest.parse::<i64>().ok())
            .unwrap_or(i64::MAX)
    };
    let at = |number: i64| pods.iter().copied().find(|pod| ordinal(pod) == number);

    let mut actions = Vec::new();
    for number in 0..wanted {
        match at(number) {
            Some(pod) if pod.ready || parallel => {}
            Some(_) => break,
            None => {
                let pod_name = format!("{}-{number}", name(set));
                let index = number.to_string();
                let labels = [
                    ("controller-revision-hash", revision.as_str()),
                    ("statefulset.kubernetes.io/pod-name", pod_name.as_str()),
                    ("apps.kubernetes.io/pod-index", index.as_str()),
                ];
                let mut object = pod_from(set, &pod_name, &labels);
                object["spec"]["hostname"] = pod_name.as_str().into();
                if let Some(service) = set.pointer("/spec/serviceName") {
                    object["spec"]["subdomain"] = service.clone();
                }
                actions.push(Action::Create {
                    kind: Workload::Pod,
                    object,
                });
                if !parallel {
                    break;
                }
            }
        }
    }
    actions.extend(
        pods.iter()
            .filter(|pod| ordinal(pod) >= wanted && !pod.deleting)
            .map(|pod| pod.delete()),
    );
    let settled =
        (0..wanted).all(|number| at(number).is_some_and(|pod| pod.ready && !pod.deleting));
    if settled && text(set, "/spec/updateStrategy/type") != Some("OnDelete") {
        let outdated = pods
            .iter()
            .filter(|pod| pod.revision.as_deref() != Some(revision.as_str()))
            .max_by_key(|pod| ordinal(pod));
        actions.extend(outdated.map(|pod| pod.delete()));
    }

    let count = |test: &dyn Fn(&Pod) -> bool| {
        i64::try_from(pods.iter().filter(|pod| test(pod)).count()).unwrap_or(i64::MAX)
    };
    let updated = count(&|pod| pod.revision.as_deref() == Some(revision.as_str()));
    let old = text(set, "/status/currentRevision").unwrap_or(&revision);
    let current = if updated == wanted {
        revision.as_str()
    } else {
        old
    };
    let mut status = Map::new();
    status.insert("replicas".into(), count(&|_| true).into());
    counts(
        &mut status,
        &[
            (
                "observedGeneration",
                int(set, "/metadata/generation").unwrap_or(0),
            ),
            ("readyReplicas", count(&|pod| pod.ready)),
            (
                "currentReplicas",
                count(&|pod| pod.revision.as_deref() == Some(current)),
            ),
            ("updatedReplicas", updated),
        ],
    );
    status.insert("availableReplicas".into(), count(&|pod| pod.ready).into());
    status.insert("currentRevision".into(), json!(current));
    status.insert("updateRevision".into(), json!(revision));
    status.insert("collisionCount".into(), json!(0));
    actions.extend(status_of(Workload::StatefulSet, set, status));
    actions
}
