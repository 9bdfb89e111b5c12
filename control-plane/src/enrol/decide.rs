//! What is next for a request: approval, a certificate, or its end.

use std::time::Duration;

use evenkeel_shared::identity::AGENT_SIGNER;
use jiff::Timestamp;

use super::{CertificateRequest, Fleet, Verdict, judge};

/// Requests are kept for a while after their end, so that whoever made them can read it: the reference server's times.
const KEEP_ISSUED: Duration = Duration::from_hours(1);
const KEEP_REFUSED: Duration = Duration::from_hours(1);
const KEEP_PENDING: Duration = Duration::from_hours(24);

/// What is to be done with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Approve { cluster: String, why: String },
    Deny(String),
    Sign,
    Remove(&'static str),
    Leave,
}

/// Decides over one request. Level-triggered: the same answer until the request changes or time passes.
pub fn decide(request: &CertificateRequest, fleet: &dyn Fleet, now: Timestamp) -> Action {
    let created = request.metadata.creation_timestamp.unwrap_or(now);
    let since = |type_: &str| {
        request
            .condition(type_)
            .map(|condition| condition.last_update_time.unwrap_or(created))
    };
    let older = |than: Timestamp, keep: Duration| {
        now.duration_since(than) > jiff::SignedDuration::try_from(keep).unwrap_or_default()
    };
    if let Some(refused) = since("Denied").or(since("Failed")) {
        return if older(refused, KEEP_REFUSED) {
            Action::Remove("it was refused a while ago")
        } else {
            Action::Leave
        };
    }
    if let Some(approved) = since("Approved") {
        return if request.is_issued() {
            if older(approved, KEEP_ISSUED) {
                Action::Remove("it was issued a while ago")
            } else {
                Action::Leave
            }
        } else if request.spec.signer_name == AGENT_SIGNER {
            Action::Sign
        } else if older(approved, KEEP_PENDING) {
            Action::Remove("nobody has signed it")
        } else {
            Action::Leave
        };
    }
    if older(created, KEEP_PENDING) {
        return Action::Remove("nobody has approved it");
    }
    match judge(request, fleet) {
        Verdict::Approve { cluster, why } => Action::Approve { cluster, why },
        Verdict::Forbid(why) => Action::Deny(why),
        // What is not an agent's request may be meant for another signer, and is an administrator's to judge.
        Verdict::Refuse(why) if is_fixed(request) => Action::Deny(why),
        Verdict::Refuse(_) | Verdict::Ask => Action::Leave,
    }
}

/// By an agent or a newcomer, who may ask for nothing but an agent's certificate.
fn is_fixed(request: &CertificateRequest) -> bool {
    use evenkeel_shared::identity::{AGENTS_GROUP, BOOTSTRAP_GROUP};
    request
        .spec
        .groups
        .iter()
        .any(|group| group == AGENTS_GROUP || group == BOOTSTRAP_GROUP)
}

#[cfg(test)]
mod tests {
    use evenkeel_shared::identity::{BOOTSTRAP_AGENTS_GROUP, BOOTSTRAP_GROUP};
    use serde_json::{Value, json};

    use super::*;
    use crate::enrol::fixture::{OneCluster, agent_request, by, request};

    #[test]
    fn each_state_has_one_next_step() {
        let newcomer = |name: &str| {
            by(
                agent_request(name),
                "system:bootstrap:abcdef",
                &[BOOTSTRAP_GROUP, BOOTSTRAP_AGENTS_GROUP],
                None,
            )
        };
        let other = || by(request("bob", &["devs"], |_| {}), "alice", &["devs"], None);
        let with = |mut request: Value, types: &[&str], certificate: &str| {
            let conditions: Vec<_> = types
                .iter()
                .map(|type_| json!({"type": type_, "status": "True", "lastUpdateTime": "2030-01-01T12:00:00Z"}))
                .collect();
            request["status"] = json!({"conditions": conditions, "certificate": certificate});
            request
        };
        let foreign = |mut request: Value| {
            request["spec"]["signerName"] = "example.com/own".into();
            request
        };
        let (noon, one, later) = (
            "2030-01-01T12:00:00Z",
            "2030-01-01T13:00:00Z",
            "2030-01-01T13:00:01Z",
        );
        let next_day = "2030-01-02T00:00:01Z";
        for (what, request, now, expected) in [
            ("a newcomer's", newcomer("south"), noon, "Approve"),
            (
                "one for a name that is taken",
                newcomer("north"),
                noon,
                "Deny",
            ),
            ("a user's", other(), noon, "Leave"),
            ("a user's, forgotten", other(), next_day, "Remove"),
            ("approved", with(other(), &["Approved"], ""), noon, "Sign"),
            (
                "approved, for another signer",
                foreign(with(other(), &["Approved"], "")),
                noon,
                "Leave",
            ),
            (
                "issued",
                with(newcomer("south"), &["Approved"], "eA=="),
                one,
                "Leave",
            ),
            (
                "issued long ago",
                with(newcomer("south"), &["Approved"], "eA=="),
                later,
                "Remove",
            ),
            (
                "denied",
                with(newcomer("south"), &["Denied"], ""),
                one,
                "Leave",
            ),
            (
                "denied long ago",
                with(newcomer("south"), &["Denied"], ""),
                later,
                "Remove",
            ),
            (
                "failed",
                with(other(), &["Approved", "Failed"], ""),
                one,
                "Leave",
            ),
            (
                "failed long ago",
                with(other(), &["Approved", "Failed"], ""),
                later,
                "Remove",
            ),
        ] {
            let request = CertificateRequest::read(&request).unwrap();
            let action = decide(&request, &OneCluster, now.parse().unwrap());
            assert!(
                format!("{action:?}").starts_with(expected),
                "{what}: {action:?}"
            );
        }
    }
}
