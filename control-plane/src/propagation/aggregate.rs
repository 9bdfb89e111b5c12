//! The status of a template from those of its copies.

use evenkeel_shared::binding::AggregatedStatusItem;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// A status field that is summed over the members, and whether zero is written.
type Sum = (&'static str, bool);

const DEPLOYMENT: &[Sum] = &[
    ("replicas", false),
    ("readyReplicas", false),
    ("updatedReplicas", false),
    ("availableReplicas", false),
    ("unavailableReplicas", false),
];
const REPLICA_SET: &[Sum] = &[
    ("replicas", true),
    ("readyReplicas", false),
    ("availableReplicas", false),
];
const STATEFUL_SET: &[Sum] = &[
    ("replicas", true),
    ("readyReplicas", false),
    ("updatedReplicas", false),
    ("availableReplicas", true),
    ("currentReplicas", false),
];
const DAEMON_SET: &[Sum] = &[
    ("currentNumberScheduled", true),
    ("numberMisscheduled", true),
    ("desiredNumberScheduled", true),
    ("numberReady", true),
    ("updatedNumberScheduled", false),
    ("numberAvailable", false),
    ("numberUnavailable", false),
];

/// The status that a template gets from its copies', or `None` when it is right as it stands or the kind has no rule.
/// Fields that are not aggregated (a Deployment's conditions) stay as they are.
pub fn aggregate(
    template: &Value,
    items: &[AggregatedStatusItem],
    now: Timestamp,
) -> Option<Value> {
    let status = match template["kind"].as_str()? {
        "Deployment" => summed(template, items, DEPLOYMENT),
        "ReplicaSet" => summed(template, items, REPLICA_SET),
        "StatefulSet" => summed(template, items, STATEFUL_SET),
        "DaemonSet" => summed(template, items, DAEMON_SET),
        "Job" => job(template, items, now)?,
        _ => return None,
    };
    let standing = template
        .get("status")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    (significant(&status) != significant(&standing)).then_some(Value::Object(status))
}

/// Sums the members' numbers. The generation counts as observed once every copy is of the template's generation and
/// its member has acted on it; until then the old one stays.
fn summed(template: &Value, items: &[AggregatedStatusItem], sums: &[Sum]) -> Map<String, Value> {
    let mut status = template
        .get("status")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let reported = items.iter().filter_map(|item| item.status.as_ref());
    for (field, always) in sums {
        let sum = reported
            .clone()
            .map(|status| number(status, field))
            .fold(0_i64, i64::saturating_add);
        if sum != 0 || *always {
            status.insert((*field).to_owned(), sum.into());
        } else {
            status.remove(*field);
        }
    }
    let generation = number(&template["metadata"], "generation");
    let up_to_date = reported
        .filter(|status| {
            number(status, "resourceTemplateGeneration") == generation
                && number(status, "generation") <= number(status, "observedGeneration")
        })
        .count();
    if up_to_date == items.len() && generation != 0 {
        status.insert("observedGeneration".to_owned(), generation.into());
    }
    status
}

/// A Job is complete when all its copies are, and failed when one is; then it is left alone.
fn job(
    template: &Value,
    items: &[AggregatedStatusItem],
    now: Timestamp,
) -> Option<Map<String, Value>> {
    let old = &template["status"];
    if is_true(old, "Complete") || is_true(old, "Failed") {
        return None;
    }
    let reported = || {
        items
            .iter()
            .filter_map(|item| Some((item.cluster_name.as_str(), item.status.as_ref()?)))
    };
    let mut status = Map::new();
    for field in ["active", "succeeded", "failed"] {
        let sum = reported()
            .map(|(_, status)| number(status, field))
            .fold(0_i64, i64::saturating_add);
        if sum != 0 {
            status.insert(field.to_owned(), sum.into());
        }
    }
    let time = |status: &Value, field: &str| status[field].as_str().map(str::to_owned);
    let start = reported()
        .filter_map(|(_, status)| time(status, "startTime"))
        .chain(time(old, "startTime"))
        .min();
    if let Some(start) = start {
        status.insert("startTime".to_owned(), start.into());
    }

    let all = |type_: &str| {
        !items.is_empty()
            && items.iter().all(|item| {
                item.status
                    .as_ref()
                    .is_some_and(|status| is_true(status, type_))
            })
    };
    let failed = reported()
        .filter(|(_, status)| is_true(status, "Failed"))
        .map(|(cluster, _)| cluster)
        .collect::<Vec<_>>();
    let mut conditions = Vec::new();
    let mut condition = |type_: &str, reason: &str, message: String| {
        if let Some(standing) = condition_of(old, type_) {
            conditions.push(standing.clone());
            return;
        }
        let now = evenkeel_shared::condition::whole_second(now).to_string();
        conditions.push(json!({
            "type": type_, "status": "True", "lastProbeTime": now, "lastTransitionTime": now,
            "reason": reason, "message": message,
        }));
    };
    if !failed.is_empty() {
        condition(
            "Failed",
            "JobFailed",
            format!(
                "Job executed failed in member clusters {}",
                failed.join(",")
            ),
        );
    }
    if all("Complete") {
        condition("Complete", "Completed", "Job completed".into());
        let end = reported()
            .filter_map(|(_, status)| time(status, "completionTime"))
            .max();
        if let Some(end) = end {
            status.insert("completionTime".to_owned(), end.into());
        }
    }
    if all("SuccessCriteriaMet") {
        condition(
            "SuccessCriteriaMet",
            "CompletionsReached",
            "All member clusters have met success criteria".into(),
        );
    }
    if !conditions.is_empty() {
        status.insert("conditions".to_owned(), conditions.into());
    }
    Some(status)
}

fn number(value: &Value, field: &str) -> i64 {
    value[field].as_i64().unwrap_or_default()
}

/// The condition of this type, where it is True.
fn condition_of<'a>(status: &'a Value, type_: &str) -> Option<&'a Value> {
    status["conditions"]
        .as_array()?
        .iter()
        .find(|condition| condition["type"] == type_ && condition["status"] == "True")
}

fn is_true(status: &Value, type_: &str) -> bool {
    condition_of(status, type_).is_some()
}

/// A status without what says nothing, to compare by: zero, empty and absent are the same.
fn significant(status: &Map<String, Value>) -> Map<String, Value> {
    status
        .iter()
        .filter(|(_, value)| {
            !matches!(value, Value::Null) && **value != json!(0) && **value != json!([])
        })
        .map(|(field, value)| (field.clone(), value.clone()))
        .collect()
}
