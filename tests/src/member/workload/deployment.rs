//! Deployment: one ReplicaSet per template, replaced by rolling.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    Action, Workload, counts, int, name, owner_reference, status_of, template_hash, text,
    transition,
};

const HASH: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";

/// `sets`: the ReplicaSets that the deployment controls.
pub fn plan(deployment: &Value, sets: &[Arc<Value>], now: Timestamp) -> Vec<Action> {
    if deployment.pointer("/metadata/deletionTimestamp").is_some() {
        return Vec::new();
    }
    let wanted = int(deployment, "/spec/replicas").unwrap_or(1);
    let mut actions = Vec::new();
    let current = sets
        .iter()
        .find(|set| template_of(set) == deployment["spec"]["template"]);
    let old = sets
        .iter()
        .filter(|set| current.is_none_or(|current| !Arc::ptr_eq(current, set)))
        .collect::<Vec<_>>();

    if deployment.pointer("/spec/paused") != Some(&Value::Bool(true)) {
        match current {
            None => actions.push(first(deployment, sets, wanted)),
            Some(current) => actions.extend(roll(deployment, current, &old, wanted)),
        }
    }
    if let Some(current) = current {
        let revision = text(
            current,
            "/metadata/annotations/deployment.kubernetes.io~1revision",
        );
        if text(
            deployment,
            "/metadata/annotations/deployment.kubernetes.io~1revision",
        ) != revision
        {
            actions.push(Action::Patch {
                kind: Workload::Deployment,
                namespace: namespace(deployment),
                name: name(deployment).into(),
                patch: json!({"metadata": {"annotations": {REVISION: revision}}}),
            });
        }
    }
    actions.extend(status(deployment, sets, current, wanted, now));
    actions
}

fn namespace(deployment: &Value) -> String {
    text(deployment, "/metadata/namespace")
        .unwrap_or_default()
        .into()
}

/// A set's template as the deployment wrote it.
fn template_of(set: &Value) -> Value {
    let mut template = set["spec"]["template"].clone();
    if let Some(labels) = template
        .pointer_mut("/metadata/labels")
        .and_then(Value::as_object_mut)
    {
        labels.remove(HASH);
    }
    template
}

fn status_int(set: &Value, field: &str) -> i64 {
    set.get("status")
        .and_then(|status| status.get(field))
        .and_then(Value::as_i64)
        .unwrap_or(0)
}

/// `maxSurge` and `maxUnavailable` in pods.
fn bound(deployment: &Value, field: &str, wanted: i64, up: bool) -> i64 {
    let Some(value) = deployment.pointer(&format!("/spec/strategy/rollingUpdate/{field}")) else {
        return i64::from(up);
    };
    if let Some(count) = value.as_i64() {
        return count;
    }
    let percent = value
        .as_str()
        .and_then(|text| text.strip_suffix('%'))
        .and_then(|text| text.parse::<i64>().ok())
        .unwrap_or(25);
    let scaled = wanted * percent;
    if up {
        (scaled + 99) / 100
    } else {
        scaled / 100
    }
}

/// The set of a new template.
fn first(deployment: &Value, sets: &[Arc<Value>], wanted: i64) -> Action {
    let recreate = text(deployment, "/spec/strategy/type") == Some("Recreate");
    let running = sets
        .iter()
        .map(|set| int(set, "/spec/replicas").unwrap_or(0))
        .sum::<i64>();
    let replicas = if sets.is_empty() {
        wanted
    } else if recreate {
        0
    } else {
        (wanted + bound(deployment, "maxSurge", wanted, true) - running).clamp(0, wanted)
    };
    let revision = sets
        .iter()
        .filter_map(|set| {
            text(
                set,
                "/metadata/annotations/deployment.kubernetes.io~1revision",
            )?
            .parse::<u64>()
            .ok()
        })
        .max()
        .unwrap_or(0)
        + 1;
    let hash = template_hash(&deployment["spec"]["template"]);
    let mut template = deployment["spec"]["template"].clone();
    template["metadata"]["labels"][HASH] = hash.as_str().into();
    let mut selector = deployment["spec"]["selector"].clone();
    selector["matchLabels"][HASH] = hash.as_str().into();
    let object = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": format!("{}-{hash}", name(deployment)), "namespace": namespace(deployment),
            "labels": template["metadata"]["labels"],
            "annotations": {REVISION: revision.to_string(), "deployment.kubernetes.io/desired-replicas": wanted.to_string()},
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    });
    Action::Create {
        kind: Workload::ReplicaSet,
        object,
    }
}

fn scale(set: &Value, replicas: i64) -> Option<Action> {
    (int(set, "/spec/replicas") != Some(replicas)).then(|| Action::Patch {
        kind: Workload::ReplicaSet,
        namespace: namespace(set),
        name: name(set).into(),
        patch: json!({"spec": {"replicas": replicas}}),
    })
}

/// One step of replacing old sets by the current one, within maxSurge and maxUnavailable.
fn roll(deployment: &Value, current: &Arc<Value>, old: &[&Arc<Value>], wanted: i64) -> Vec<Action> {
    let size = |set: &Value| int(set, "/spec/replicas").unwrap_or(0);
    let others = old.iter().map(|set| size(set)).sum::<i64>();
    if others == 0 {
        return scale(current, wanted).into_iter().collect();
    }
    if text(deployment, "/spec/strategy/type") == Some("Recreate") {
        return old.iter().filter_map(|set| scale(set, 0)).collect();
    }
    let surge = bound(deployment, "maxSurge", wanted, true);
    let mut unavailable = bound(deployment, "maxUnavailable", wanted, false);
    if surge == 0 && unavailable == 0 {
        unavailable = 1;
    }
    let mut actions = Vec::new();
    let room = wanted + surge - others - size(current);
    if room > 0 && size(current) < wanted {
        actions.extend(scale(current, (size(current) + room).min(wanted)));
    } else if size(current) > wanted {
        actions.extend(scale(current, wanted));
    }
    // A status may be older than the spec: no more is available than is asked for.
    let available = |set: &Value| status_int(set, "availableReplicas").min(size(set));
    let least = wanted - unavailable;
    let mut room = others + size(current) - least - (size(current) - available(current));
    let mut spare = old.iter().map(|set| available(set)).sum::<i64>() + available(current) - least;
    for set in old {
        // Replicas that are not available hold nothing up.
        let idle = (size(set) - available(set)).clamp(0, room.max(0));
        room -= idle;
        let cut = available(set).clamp(0, spare.min(room).max(0));
        room -= cut;
        spare -= cut;
        if idle + cut > 0 {
            actions.extend(scale(set, size(set) - idle - cut));
        }
    }
    actions
}

fn status(
    deployment: &Value,
    sets: &[Arc<Value>],
    current: Option<&Arc<Value>>,
    wanted: i64,
    now: Timestamp,
) -> Option<Action> {
    let sum = |field: &str| sets.iter().map(|set| status_int(set, field)).sum::<i64>();
    let replicas = sum("replicas");
    let available = sum("availableReplicas");
    let updated = current.map_or(0, |set| status_int(set, "replicas"));
    let unavailable = (wanted.max(replicas) - available).max(0);
    let mut status = Map::new();
    counts(
        &mut status,
        &[
            (
                "observedGeneration",
                int(deployment, "/metadata/generation").unwrap_or(0),
            ),
            ("replicas", replicas),
            ("updatedReplicas", updated),
            ("readyReplicas", sum("readyReplicas")),
            ("availableReplicas", available),
            ("unavailableReplicas", unavailable),
        ],
    );
    let enough = available >= wanted - bound(deployment, "maxUnavailable", wanted, false);
    let minimum = if enough {
        transition(
            deployment,
            "Available",
            true,
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
            now,
        )
    } else {
        transition(
            deployment,
            "Available",
            false,
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
            now,
        )
    };
    let complete = updated == wanted && replicas == wanted && available == wanted;
    let progress = match current {
        Some(set) if complete => transition(
            deployment,
            "Progressing",
            true,
            "NewReplicaSetAvailable",
            &format!("ReplicaSet \"{}\" has successfully progressed.", name(set)),
            now,
        ),
        Some(set) => transition(
            deployment,
            "Progressing",
            true,
            "ReplicaSetUpdated",
            &format!("ReplicaSet \"{}\" is progressing.", name(set)),
            now,
        ),
        None => transition(
            deployment,
            "Progressing",
            true,
            "NewReplicaSetCreated",
            "Created new replica set",
            now,
        ),
    };
    status.insert("conditions".into(), json!([minimum, progress]));
    status_of(Workload::Deployment, deployment, status)
}
