//! What a verdict and a change of readiness write: conditions, taints, events.

use std::time::Duration;

use evenkeel_shared::{condition, stamps, taint};
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::Taint,
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
};
use serde_json::{Value, json};

use super::verdict::{Ready, Silence};

/// The Ready condition that the monitor writes. `lastTransitionTime` is `now`: the monitor writes only where the status
/// was not Unknown before.
pub fn unknown(
    verdict: Silence,
    silence: Duration,
    heard: Option<Timestamp>,
    now: Timestamp,
) -> Condition {
    let message = match verdict {
        Silence::Stopped => format!(
            "The agent stopped reporting: {}.",
            last_heard(heard, silence)
        ),
        Silence::NeverUpdated => format!(
            "The agent never posted a status: {}.",
            last_heard(heard, silence)
        ),
    };
    condition::new(stamps::READY, "Unknown", verdict.reason(), &message, now)
}

/// When a cluster was last heard, or for how long the control plane has listened in vain.
fn last_heard(heard: Option<Timestamp>, silence: Duration) -> String {
    match heard {
        Some(heard) => format!("it was last heard at {}", condition::whole_second(heard)),
        None => format!(
            "nothing was heard since the control plane began to listen, {} ago",
            humantime::format_duration(Duration::from_secs(silence.as_secs()))
        ),
    }
}

/// The taints of a cluster with this Ready status, or `None` when they are right as they are. `unschedulable` and all
/// others are the user's.
pub fn taints(current: &[Taint], ready: Ready, now: Timestamp) -> Option<Vec<Taint>> {
    let status = (ready != Ready::Never).then(|| ready.as_str());
    let mut taints = current.to_vec();
    let mut changed = false;
    for (key, wanted) in evenkeel_placement::fleet::implied_taints(status) {
        changed |= if wanted {
            taint::add(&mut taints, key, stamps::NO_SCHEDULE, now)
        } else {
            taint::remove(&mut taints, key, stamps::NO_SCHEDULE)
        };
    }
    changed.then_some(taints)
}

/// One thing worth telling of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    pub cluster: String,
    pub uid: String,
    /// In CamelCase, as the condition has it.
    pub reason: String,
    pub message: String,
    /// `Warning`, or else `Normal`.
    pub warning: bool,
}

impl Told {
    /// What a change of the Ready condition tells. `heard`: when the cluster was last heard.
    pub fn readiness(
        cluster: &str,
        uid: &str,
        from: Ready,
        to: &Condition,
        heard: Option<Timestamp>,
    ) -> Self {
        let detail = to.message.trim_end_matches('.');
        let was = match from {
            Ready::Never => String::new(),
            from => format!(" (was {})", from.as_str()),
        };
        let mut message = format!("Ready turned {}{was}: {detail}", to.status);
        if let Some(heard) = heard.filter(|_| to.status != "Unknown") {
            let heard = condition::whole_second(heard);
            message = format!("{message}; last heard at {heard}");
        }
        Self {
            cluster: cluster.to_owned(),
            uid: uid.to_owned(),
            reason: to.reason.clone(),
            message,
            warning: to.status != "True",
        }
    }

    /// The name of its Event: one per cluster and reason, so that repetitions are counted and not piled up.
    pub fn event_name(&self) -> String {
        let key = format!("{}/{}", self.uid, self.reason);
        let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{}.{hash:016x}", self.cluster)
    }

    /// The Event as it is to be, given the one that stands.
    pub fn event(&self, standing: Option<&Value>, now: Timestamp) -> Value {
        let now = Time(condition::whole_second(now));
        let type_ = if self.warning { "Warning" } else { "Normal" };
        if let Some(standing) = standing {
            let mut event = standing.clone();
            let count = standing["count"].as_i64().unwrap_or(1).saturating_add(1);
            event["count"] = count.into();
            event["message"] = self.message.clone().into();
            event["type"] = type_.into();
            event["lastTimestamp"] = json!(now);
            return event;
        }
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": self.event_name(), "namespace": EVENT_NAMESPACE},
            "involvedObject": {
                "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
                "name": self.cluster, "uid": self.uid,
            },
            "reason": self.reason,
            "message": self.message,
            "type": type_,
            "source": {"component": "cluster-monitor"},
            "reportingComponent": "cluster-monitor",
            "reportingInstance": "",
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
        })
    }
}

/// Events about cluster-scoped objects live here, as in Kubernetes.
pub const EVENT_NAMESPACE: &str = "default";

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-01-02T03:04:05.678Z".parse().unwrap()
    }

    fn present(taints: &[Taint]) -> Vec<&str> {
        taints.iter().map(|taint| taint.key.as_str()).collect()
    }

    #[test]
    fn taints_follow_the_condition() {
        const NOT_READY: &str = stamps::TAINT_NOT_READY;
        const UNREACHABLE: &str = stamps::TAINT_UNREACHABLE;
        const USERS: &str = stamps::TAINT_UNSCHEDULABLE;
        type Keys = &'static [&'static str];
        let table: &[(&str, Keys, Ready, Option<Keys>)] = &[
            ("a new cluster", &[], Ready::Never, Some(&[NOT_READY])),
            ("still new", &[NOT_READY], Ready::Never, None),
            ("turns True", &[NOT_READY], Ready::True, Some(&[])),
            ("stays True", &[], Ready::True, None),
            ("turns False", &[], Ready::False, Some(&[NOT_READY])),
            (
                "turns Unknown",
                &[NOT_READY],
                Ready::Unknown,
                Some(&[UNREACHABLE]),
            ),
            (
                "comes back False",
                &[UNREACHABLE],
                Ready::False,
                Some(&[NOT_READY]),
            ),
            ("comes back True", &[UNREACHABLE], Ready::True, Some(&[])),
            (
                "the user's stays",
                &[USERS, UNREACHABLE],
                Ready::True,
                Some(&[USERS]),
            ),
        ];
        for (name, current, ready, expected) in table {
            let current = current
                .iter()
                .map(|key| Taint {
                    key: (*key).to_owned(),
                    effect: stamps::NO_SCHEDULE.to_owned(),
                    ..Taint::default()
                })
                .collect::<Vec<_>>();
            let got = taints(&current, *ready, now());
            assert_eq!(
                got.as_deref().map(present),
                expected.map(<[&str]>::to_vec),
                "{name}"
            );
            if let Some(got) = got {
                assert_eq!(taints(&got, *ready, now()), None, "{name}: done is done");
                for taint in got.iter().filter(|taint| !current.contains(taint)) {
                    let added = taint.time_added.as_ref().map(|time| time.0.to_string());
                    assert_eq!(added.as_deref(), Some("2026-01-02T03:04:05Z"), "{name}");
                }
            }
        }
    }

    #[test]
    fn the_condition_names_the_time_last_heard() {
        let heard = "2026-01-02T03:03:24Z".parse().unwrap();
        let condition = unknown(
            Silence::Stopped,
            Duration::from_millis(41_678),
            Some(heard),
            now(),
        );
        assert_eq!(condition.status, "Unknown");
        assert_eq!(condition.reason, "ClusterStatusUnknown");
        assert_eq!(
            condition.message,
            "The agent stopped reporting: it was last heard at 2026-01-02T03:03:24Z."
        );
        let never = unknown(Silence::NeverUpdated, Duration::from_secs(61), None, now());
        assert_eq!(never.reason, "ClusterStatusNeverUpdated");
        assert!(never.message.contains("began to listen, 1m 1s ago"));
    }

    #[test]
    fn a_repeated_event_is_counted() {
        let heard = "2026-01-02T03:03:24Z".parse().unwrap();
        let to = unknown(
            Silence::Stopped,
            Duration::from_secs(41),
            Some(heard),
            now(),
        );
        let told = Told::readiness("m1", "u1", Ready::True, &to, Some(heard));
        assert!(told.message.contains("2026-01-02T03:03:24Z"));
        let first = told.event(None, now());
        assert_eq!(first["count"], 1);
        assert_eq!(first["metadata"]["name"], told.event_name());
        let later = now() + jiff::SignedDuration::from_secs(60);
        let second = told.event(Some(&first), later);
        assert_eq!(second["count"], 2);
        assert_eq!(second["firstTimestamp"], first["firstTimestamp"]);
        assert_eq!(second["lastTimestamp"], "2026-01-02T03:05:05Z");
        let other = Told {
            uid: "u2".into(),
            ..told.clone()
        };
        assert_ne!(other.event_name(), told.event_name());
    }
}
