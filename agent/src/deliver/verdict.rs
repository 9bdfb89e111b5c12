//! What a Work's status says after its manifests were brought to the member.

use std::collections::BTreeMap;

use evenkeel_shared::{
    condition,
    stamps::{
        APPLIED, DISPATCHING, REASON_APPLIED_FAILED, REASON_APPLIED_SUCCESSFUL, REASON_DISPATCHING,
        REASON_SUSPEND_DISPATCHING,
    },
    work::{Health, ManifestStatus, ResourceIdentifier, Work, WorkStatus},
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::manifest::ObjectKey;

/// Longest message of a condition, in bytes.
const LONGEST_MESSAGE: usize = 4096;

/// What became of one manifest.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// It is in the member, and does so.
    Placed {
        status: Option<Value>,
        health: Health,
    },
    /// It is not, and why.
    Failed(String),
    /// The member could not be asked: nothing new is known.
    Unasked(String),
}

/// One manifest: its place in the Work and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Result {
    pub ordinal: usize,
    /// `None`: it names nothing.
    pub key: Option<ObjectKey>,
    pub plural: String,
    pub fate: Fate,
}

/// The status of a Work that is held.
pub fn suspended(work: &Work, now: Timestamp) -> WorkStatus {
    let mut status = work.status.clone().unwrap_or_default();
    let held = condition::new(
        DISPATCHING,
        "False",
        REASON_SUSPEND_DISPATCHING,
        "Work dispatching is in a suspended state.",
        now,
    );
    condition::set(&mut status.conditions, held);
    status
}

/// The status of a Work whose manifests were looked after. What could not be asked about stays as it was said before;
/// only a Work that nothing was said of yet is told to have failed.
pub fn delivered(work: &Work, results: &[Result], now: Timestamp) -> WorkStatus {
    let mut status = work.status.clone().unwrap_or_default();
    let dispatching = condition::new(
        DISPATCHING,
        "True",
        REASON_DISPATCHING,
        "Work is being dispatched to member clusters.",
        now,
    );
    condition::set(&mut status.conditions, dispatching);
    let known = condition::find(&status.conditions, APPLIED).is_some();
    if let Some(applied) = applied(results, known, now) {
        condition::set(&mut status.conditions, applied);
    }
    let mut before: BTreeMap<_, _> = std::mem::take(&mut status.manifest_statuses)
        .into_iter()
        .map(|manifest| (identity(&manifest.identifier), manifest))
        .collect();
    status.manifest_statuses = results
        .iter()
        .filter_map(|result| {
            let key = result.key.as_ref()?;
            let identifier = identifier(result, key);
            match &result.fate {
                Fate::Placed { status, health } => Some(ManifestStatus {
                    identifier,
                    status: status.clone(),
                    health: Some(health.clone()),
                }),
                Fate::Unasked(_) => {
                    before
                        .remove(&identity(&identifier))
                        .map(|known| ManifestStatus {
                            identifier,
                            ..known
                        })
                }
                Fate::Failed(_) => None,
            }
        })
        .collect();
    status
}

fn applied(
    results: &[Result],
    known: bool,
    now: Timestamp,
) -> Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition> {
    let mut troubles = Vec::new();
    let mut unasked = false;
    for result in results {
        let why = match &result.fate {
            Fate::Placed { .. } => continue,
            Fate::Failed(why) => why,
            Fate::Unasked(why) => {
                unasked = true;
                why
            }
        };
        match &result.key {
            Some(key) => troubles.push(format!("{key}: {why}")),
            None => troubles.push(format!("manifest {}: {why}", result.ordinal)),
        }
    }
    if troubles.is_empty() {
        return Some(condition::new(
            APPLIED,
            "True",
            REASON_APPLIED_SUCCESSFUL,
            "Manifest has been successfully applied",
            now,
        ));
    }
    let only_unasked = unasked
        && results
            .iter()
            .all(|result| !matches!(result.fate, Fate::Failed(_)));
    if only_unasked && known {
        return None;
    }
    let placed = results.len() - troubles.len();
    let mut message = format!(
        "Failed to apply all manifests ({placed}/{}): {}",
        results.len(),
        troubles.join("; ")
    );
    if message.len() > LONGEST_MESSAGE {
        let end = message.floor_char_boundary(LONGEST_MESSAGE - 4);
        message.truncate(end);
        message.push_str(" ...");
    }
    Some(condition::new(
        APPLIED,
        "False",
        REASON_APPLIED_FAILED,
        &message,
        now,
    ))
}

fn identity(identifier: &ResourceIdentifier) -> (String, String, String, String, String) {
    let ResourceIdentifier {
        group,
        version,
        kind,
        namespace,
        name,
        ..
    } = identifier.clone();
    (group, version, kind, namespace, name)
}

fn identifier(result: &Result, key: &ObjectKey) -> ResourceIdentifier {
    let (group, version) = key.group_version();
    ResourceIdentifier {
        ordinal: i32::try_from(result.ordinal).unwrap_or(i32::MAX),
        group: group.to_owned(),
        version: version.to_owned(),
        kind: key.kind.clone(),
        resource: result.plural.clone(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
    }
}

/// The object that an identifier names.
pub fn key_of(identifier: &ResourceIdentifier) -> ObjectKey {
    ObjectKey {
        api_version: if identifier.group.is_empty() {
            identifier.version.clone()
        } else {
            format!("{}/{}", identifier.group, identifier.version)
        },
        kind: identifier.kind.clone(),
        namespace: identifier.namespace.clone(),
        name: identifier.name.clone(),
    }
}

/// The merge patch that makes a Work's status say this, or nothing to write. It names the version that it was made
/// from, because conditions are a list and others may have theirs in it.
pub fn patch(work: &Work, wanted: &WorkStatus) -> Option<Value> {
    let nothing = WorkStatus::default();
    let current = work.status.as_ref().unwrap_or(&nothing);
    let mut status = Map::new();
    if current.conditions != wanted.conditions {
        status.insert("conditions".to_owned(), json!(wanted.conditions));
    }
    if current.manifest_statuses != wanted.manifest_statuses {
        status.insert(
            "manifestStatuses".to_owned(),
            json!(wanted.manifest_statuses),
        );
    }
    if status.is_empty() {
        return None;
    }
    Some(json!({
        "metadata": { "resourceVersion": work.metadata.resource_version },
        "status": status,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn result(name: &str, fate: Fate) -> Result {
        Result {
            ordinal: 0,
            key: Some(ObjectKey {
                api_version: "apps/v1".into(),
                kind: "Deployment".into(),
                namespace: "n".into(),
                name: name.into(),
            }),
            plural: "deployments".into(),
            fate,
        }
    }

    fn placed() -> Fate {
        Fate::Placed {
            status: Some(json!({"replicas": 2})),
            health: Health::Healthy,
        }
    }

    fn applied_of(status: &WorkStatus) -> (String, String) {
        let applied = condition::find(&status.conditions, APPLIED).unwrap();
        (applied.status.clone(), applied.message.clone())
    }

    #[test]
    fn all_placed() {
        let work = Work::default();
        let status = delivered(&work, &[result("a", placed())], at(5));
        assert_eq!(
            applied_of(&status),
            (
                "True".into(),
                "Manifest has been successfully applied".into()
            )
        );
        let identifier = &status.manifest_statuses[0].identifier;
        assert_eq!(
            (identifier.group.as_str(), identifier.version.as_str()),
            ("apps", "v1")
        );
        assert_eq!(key_of(identifier), result("a", placed()).key.unwrap());
    }

    #[test]
    fn a_failure_names_the_object_and_the_count() {
        let results = [
            result("a", placed()),
            result("b", Fate::Failed("no room".into())),
        ];
        let status = delivered(&Work::default(), &results, at(5));
        assert_eq!(
            applied_of(&status),
            (
                "False".into(),
                "Failed to apply all manifests (1/2): Deployment n/b: no room".into()
            )
        );
        assert_eq!(status.manifest_statuses.len(), 1);
    }

    #[test]
    fn a_member_that_is_away_changes_nothing_that_is_known() {
        let mut work = Work::default();
        let unasked = || [result("a", Fate::Unasked("connection refused".into()))];
        let first = delivered(&work, &unasked(), at(1));
        assert_eq!(applied_of(&first).0, "False");
        work.status = Some(delivered(&work, &[result("a", placed())], at(2)));
        let later = delivered(&work, &unasked(), at(3));
        assert_eq!(Some(&later), work.status.as_ref());
        assert_eq!(patch(&work, &later), None);
    }

    #[test]
    fn suspension_keeps_what_was_said() {
        let mut work = Work::default();
        work.status = Some(delivered(&work, &[result("a", placed())], at(1)));
        let held = suspended(&work, at(2));
        let dispatching = condition::find(&held.conditions, DISPATCHING).unwrap();
        assert_eq!(dispatching.reason, "SuspendDispatching");
        assert_eq!(applied_of(&held).0, "True");
        assert_eq!(held.manifest_statuses.len(), 1);
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let results = [result("a", Fate::Failed("ä".repeat(5000)))];
        let message = applied_of(&delivered(&Work::default(), &results, at(1))).1;
        assert!(message.len() <= LONGEST_MESSAGE && message.ends_with(" ..."));
    }
}
