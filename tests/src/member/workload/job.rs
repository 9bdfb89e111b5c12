//! Job: pods that run once.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    Action, Phase, Pod, Workload, counts, int, name, pod_from, second, status_of, surplus, text,
};

/// `pods`: those that the job controls.
pub fn plan(
    job: &Value,
    pods: &[&Pod],
    now: Timestamp,
    fresh: &mut dyn FnMut() -> String,
) -> Vec<Action> {
    if job.pointer("/metadata/deletionTimestamp").is_some() {
        return Vec::new();
    }
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let parallelism = int(job, "/spec/parallelism").unwrap_or(1);
    let completions = int(job, "/spec/completions").unwrap_or(parallelism);
    let active = pods
        .iter()
        .copied()
        .filter(|pod| !pod.finished() && !pod.deleting)
        .collect::<Vec<_>>();
    let succeeded = number(
        pods.iter()
            .filter(|pod| pod.phase == Phase::Succeeded)
            .count(),
    );
    let failed = number(pods.iter().filter(|pod| pod.phase == Phase::Failed).count());
    let suspended = job.pointer("/spec/suspend") == Some(&Value::Bool(true));
    let complete = succeeded >= completions;

    let mut actions = Vec::new();
    let target = if suspended || complete {
        0
    } else {
        parallelism.min(completions - succeeded)
    };
    for _ in number(active.len())..target {
        let labels = [
            ("batch.kubernetes.io/job-name", name(job)),
            ("job-name", name(job)),
            ("batch.kubernetes.io/controller-uid", super::uid(job)),
            ("controller-uid", super::uid(job)),
        ];
        actions.push(Action::Create {
            kind: Workload::Pod,
            object: pod_from(job, &format!("{}-{}", name(job), fresh()), &labels),
        });
    }
    let over = usize::try_from(number(active.len()) - target).unwrap_or(0);
    actions.extend(surplus(&active, over));

    let mut status = Map::new();
    let start = text(job, "/status/startTime").map_or_else(|| second(now), Into::into);
    status.insert("startTime".into(), start.into());
    counts(
        &mut status,
        &[
            ("active", number(active.len())),
            ("succeeded", succeeded),
            ("failed", failed),
        ],
    );
    status.insert(
        "ready".into(),
        number(active.iter().filter(|pod| pod.ready).count()).into(),
    );
    status.insert(
        "terminating".into(),
        number(
            pods.iter()
                .filter(|pod| pod.deleting && !pod.finished())
                .count(),
        )
        .into(),
    );
    status.insert("uncountedTerminatedPods".into(), json!({}));
    if complete {
        let end = text(job, "/status/completionTime").map_or_else(|| second(now), Into::into);
        let conditions = ["SuccessCriteriaMet", "Complete"].map(|type_| {
            json!({
                "type": type_, "status": "True", "reason": "CompletionsReached", "lastProbeTime": end,
                "lastTransitionTime": end, "message": "Reached expected number of succeeded pods",
            })
        });
        status.insert("completionTime".into(), end.into());
        status.insert("conditions".into(), json!(conditions));
    }
    actions.extend(status_of(Workload::Job, job, status));
    actions
}
