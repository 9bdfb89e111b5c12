//! Notes what the API server serves to agents.

use std::{collections::HashMap, sync::Arc, time::Duration};

use evenkeel_api::access::{Attributes, Observer, UserInfo};
use evenkeel_shared::{identity, names};
use parking_lot::Mutex;

use crate::clock::Stopwatch;

/// Who was heard since the monitor last asked, and when.
///
/// Heard is a cluster whose lease was written (whatever time stands in it: a stepped clock is no dead cluster), and one
/// whose own agent wrote its status. Both count when they were served, by this process' monotonic clock.
pub struct Hearing {
    stopwatch: Stopwatch,
    heard: Mutex<HashMap<Arc<str>, Duration>>,
}

impl Hearing {
    pub fn new(stopwatch: Stopwatch) -> Self {
        Self {
            stopwatch,
            heard: Mutex::default(),
        }
    }

    /// Everybody who was heard since the last call.
    pub fn take(&self) -> HashMap<Arc<str>, Duration> {
        std::mem::take(&mut *self.heard.lock())
    }

    /// Whether a cluster was heard since the last [`take`](Self::take).
    pub fn has(&self, cluster: &str) -> bool {
        self.heard.lock().contains_key(cluster)
    }

    fn note(&self, cluster: &str) {
        let now = self.stopwatch.read();
        let mut heard = self.heard.lock();
        match heard.get_mut(cluster) {
            Some(at) => *at = now,
            None => {
                heard.insert(cluster.into(), now);
            }
        }
    }
}

/// The cluster that speaks in a request that was served.
fn speaker<'a>(user: &UserInfo, attributes: &'a Attributes, code: u16) -> Option<&'a str> {
    let written = (200..300).contains(&code)
        && matches!(attributes.verb.as_str(), "create" | "update" | "patch")
        && !attributes.name.is_empty();
    if !written {
        return None;
    }
    let lease = attributes.group == "coordination.k8s.io"
        && attributes.resource == "leases"
        && attributes.subresource.is_empty()
        && attributes.namespace == names::CLUSTER_NAMESPACE;
    let status = attributes.group == "cluster.karmada.io"
        && attributes.resource == "clusters"
        && attributes.subresource == "status"
        && identity::agent_cluster(&user.name, &user.groups) == Some(attributes.name.as_str());
    (lease || status).then_some(attributes.name.as_str())
}

impl Observer for Hearing {
    fn served(&self, user: &Arc<UserInfo>, attributes: &Attributes, code: u16) {
        if let Some(cluster) = speaker(user, attributes, code) {
            self.note(cluster);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_heard() {
        let agent = |cluster: &str| UserInfo {
            name: identity::agent_user(cluster),
            groups: vec![identity::AGENTS_GROUP.into()],
            ..UserInfo::default()
        };
        let admin = UserInfo {
            name: "admin".into(),
            ..UserInfo::default()
        };
        let lease = Attributes {
            verb: "update".into(),
            group: "coordination.k8s.io".into(),
            resource: "leases".into(),
            namespace: "karmada-cluster".into(),
            name: "m1".into(),
            ..Attributes::default()
        };
        let status = Attributes {
            verb: "patch".into(),
            group: "cluster.karmada.io".into(),
            resource: "clusters".into(),
            subresource: "status".into(),
            name: "m1".into(),
            ..Attributes::default()
        };
        let with = |attributes: &Attributes, change: &dyn Fn(&mut Attributes)| {
            let mut attributes = attributes.clone();
            change(&mut attributes);
            attributes
        };
        let table = [
            ("lease by its agent", agent("m1"), lease.clone(), 200, true),
            (
                "lease by another client",
                admin.clone(),
                lease.clone(),
                200,
                true,
            ),
            ("lease refused", agent("m1"), lease.clone(), 409, false),
            (
                "lease read",
                agent("m1"),
                with(&lease, &|a| a.verb = "get".into()),
                200,
                false,
            ),
            (
                "lease deleted",
                admin.clone(),
                with(&lease, &|a| a.verb = "delete".into()),
                200,
                false,
            ),
            (
                "lease elsewhere",
                agent("m1"),
                with(&lease, &|a| a.namespace = "default".into()),
                200,
                false,
            ),
            (
                "status by its agent",
                agent("m1"),
                status.clone(),
                200,
                true,
            ),
            (
                "status by another agent",
                agent("m2"),
                status.clone(),
                200,
                false,
            ),
            ("status by a person", admin, status.clone(), 200, false),
            (
                "spec by its agent",
                agent("m1"),
                with(&status, &|a| a.subresource = String::new()),
                200,
                false,
            ),
        ];
        for (name, user, attributes, code, expected) in table {
            let heard = speaker(&user, &attributes, code) == Some("m1");
            assert_eq!(heard, expected, "{name}");
        }
    }
}
