//! What a binding shows of its copies.

use evenkeel_placement::{decision::Decision, fleet::ClusterView};
use evenkeel_shared::{
    binding::{AggregatedStatusItem, ResourceBinding, ResourceBindingStatus},
    condition, stamps,
    work::{Health, Work},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use super::work::targets;

/// What is said of a copy whose cluster is not Ready.
pub const STALE: &str = "stale: the cluster is not Ready, this is what it reported last";
/// What is said of a copy of which nothing was reported yet.
pub const WAITING: &str = "the agent has not reported on it yet";

/// One item per Work that is to stay, sorted by cluster.
///
/// A copy whose cluster is not Ready is shown as it was reported last, its health Unknown, and is called stale.
pub fn aggregated<'a>(
    works: impl IntoIterator<Item = (&'a str, &'a Work)>,
    cluster: impl Fn(&str) -> Option<&'a ClusterView>,
) -> Vec<AggregatedStatusItem> {
    let mut items = works
        .into_iter()
        .filter(|(_, work)| work.metadata.deletion_timestamp.is_none())
        .map(|(name, work)| {
            let mut item = item(name, work);
            if !cluster(name).is_some_and(|cluster| cluster.ready) {
                item.health = Some(Health::Unknown);
                item.applied_message = match item.applied_message.as_str() {
                    "" => STALE.to_owned(),
                    // Nothing that could be out of date.
                    WAITING => WAITING.to_owned(),
                    reported => format!("{reported} ({STALE})"),
                };
            }
            item
        })
        .collect::<Vec<_>>();
    items.sort_by(|a, b| a.cluster_name.cmp(&b.cluster_name));
    items
}

fn item(cluster: &str, work: &Work) -> AggregatedStatusItem {
    let status = work.status.as_ref();
    let applied = status.and_then(|status| condition::find(&status.conditions, stamps::APPLIED));
    let mut item = AggregatedStatusItem {
        cluster_name: cluster.to_owned(),
        health: Some(Health::Unknown),
        ..AggregatedStatusItem::default()
    };
    match applied {
        Some(applied) if applied.status == "True" => {
            item.applied = true;
            if let Some(reported) = status.and_then(|status| status.manifest_statuses.first()) {
                item.status.clone_from(&reported.status);
                if let Some(health) = &reported.health {
                    item.health = Some(health.clone());
                }
            }
        }
        Some(applied) => item.applied_message.clone_from(&applied.message),
        None => WAITING.clone_into(&mut item.applied_message),
    }
    item
}

/// The items as a template's status is made of them: of a stale one nothing counts as ready or available any more.
pub fn countable(items: &[AggregatedStatusItem]) -> Vec<AggregatedStatusItem> {
    const NOT_WHEN_STALE: &[&str] = &[
        "readyReplicas",
        "availableReplicas",
        "numberReady",
        "numberAvailable",
    ];
    let mut items = items.to_vec();
    for item in &mut items {
        if !item.applied_message.contains(STALE) {
            continue;
        }
        if let Some(status) = item.status.as_mut().and_then(Value::as_object_mut) {
            for field in NOT_WHEN_STALE {
                status.remove(*field);
            }
        }
    }
    items
}

/// The status of a binding as it is to be.
pub fn wanted(
    binding: &ResourceBinding,
    decision: &Decision,
    items: Vec<AggregatedStatusItem>,
    now: Timestamp,
) -> ResourceBindingStatus {
    let mut status = binding.status.clone().unwrap_or_default();
    let generation = binding.metadata.generation.unwrap_or_default();

    let scheduled = condition::new(
        stamps::SCHEDULED,
        if decision.scheduled { "True" } else { "False" },
        decision.reason,
        &decision.message,
        now,
    );
    let changed = condition::set(&mut status.conditions, scheduled);
    if changed || status.scheduler_observed_generation != generation {
        status.last_scheduled_time = Some(Time(condition::whole_second(now)));
    }
    status.scheduler_observed_generation = generation;
    status
        .scheduler_observed_affinity_name
        .clone_from(&decision.affinity_name);

    let targets = targets(binding);
    let applied = !targets.is_empty()
        && items.len() == targets.len()
        && items
            .iter()
            .all(|item| item.applied && targets.contains(item.cluster_name.as_str()));
    let fully_applied = if applied {
        condition::new(
            stamps::FULLY_APPLIED,
            "True",
            stamps::REASON_FULLY_APPLIED,
            "All works have been successfully applied",
            now,
        )
    } else {
        condition::new(
            stamps::FULLY_APPLIED,
            "False",
            stamps::REASON_NOT_FULLY_APPLIED,
            &missing(&targets, &items),
            now,
        )
    };
    condition::set(&mut status.conditions, fully_applied);
    status.aggregated_status = items;
    status
}

/// Which copies are missing, by name, and why where that is known; a handful of them.
fn missing(targets: &std::collections::BTreeSet<&str>, items: &[AggregatedStatusItem]) -> String {
    const NAMED: usize = 5;
    if targets.is_empty() {
        return "No cluster is chosen".into();
    }
    let missing = targets
        .iter()
        .filter_map(
            |target| match items.iter().find(|item| item.cluster_name == **target) {
                None => Some(format!("{target} (no work yet)")),
                Some(item) if item.applied => None,
                Some(item) => Some(format!("{target} ({})", item.applied_message)),
            },
        )
        .collect::<Vec<_>>();
    if missing.is_empty() {
        return "Works of former clusters are still being removed".into();
    }
    let more = missing.len().saturating_sub(NAMED);
    let mut named = missing
        .into_iter()
        .take(NAMED)
        .collect::<Vec<_>>()
        .join(", ");
    if more > 0 {
        named = format!("{named} and {more} more");
    }
    format!("Not applied in {named}")
}
