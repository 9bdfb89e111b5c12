//! The fixed rule of bootstrap tokens: their bearers may ask for the certificate of an agent, and read what they need to
//! find the control plane. Nothing else.

use evenkeel_api::access::{Attributes, Authorizer, Decision, Rules, UserInfo};
use evenkeel_shared::identity::{BOOTSTRAP_AGENTS_GROUP, BOOTSTRAP_GROUP};

use super::{
    RequesterOf,
    agent::{asks_for_certificate, is_discovery, is_self_review},
};

/// Judges bearers of bootstrap tokens, finally, and leaves everybody else to others.
pub struct NewcomerAuthorizer {
    requester: RequesterOf,
}

impl NewcomerAuthorizer {
    pub fn new(requester: RequesterOf) -> Self {
        Self { requester }
    }
}

impl Authorizer for NewcomerAuthorizer {
    fn authorize(&self, user: &UserInfo, request: &Attributes) -> Decision {
        if !user.is_in(BOOTSTRAP_GROUP) {
            return Decision::NoOpinion;
        }
        let allowed = if request.resource.is_empty() {
            request.verb == "get" && is_discovery(&request.path)
        } else {
            match (
                request.group.as_str(),
                request.resource.as_str(),
                request.subresource.as_str(),
            ) {
                ("certificates.k8s.io", "certificatesigningrequests", "") => {
                    user.is_in(BOOTSTRAP_AGENTS_GROUP)
                        && asks_for_certificate(&user.name, request, &*self.requester)
                }
                ("", "configmaps", "") => {
                    request.verb == "get"
                        && request.namespace == "kube-public"
                        && request.name == "cluster-info"
                }
                (group, resource, "") => {
                    request.verb == "create" && is_self_review(group, resource)
                }
                _ => false,
            }
        };
        if allowed {
            Decision::Allow
        } else {
            Decision::Deny("a bootstrap token may only ask for the certificate of an agent".into())
        }
    }

    fn rules(&self, user: &UserInfo, _namespace: &str) -> Rules {
        Rules {
            rules: Vec::new(),
            incomplete: user
                .is_in(BOOTSTRAP_GROUP)
                .then(|| "bootstrap tokens are judged by a fixed rule".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const CSR: &str = "certificates.k8s.io/certificatesigningrequests";

    #[test]
    fn a_bearer_may_ask_for_a_certificate_and_nothing_else() {
        let authorizer = NewcomerAuthorizer::new(Arc::new(|name| match name {
            "mine" => Some("system:bootstrap:abcdef".into()),
            "theirs" => Some("system:bootstrap:zzzzzz".into()),
            _ => None,
        }));
        let user = |groups: &[&str]| UserInfo {
            name: "system:bootstrap:abcdef".into(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
            ..UserInfo::default()
        };
        let full = user(&[BOOTSTRAP_GROUP, BOOTSTRAP_AGENTS_GROUP]);
        for (verb, kind, namespace, name, expected) in [
            ("create", CSR, "", "", true),
            ("get", CSR, "", "mine", true),
            ("watch", CSR, "", "mine", true),
            ("get", CSR, "", "theirs", false),
            ("watch", CSR, "", "theirs", false),
            ("get", CSR, "", "gone", true),
            ("watch", CSR, "", "gone", false),
            ("list", CSR, "", "", false),
            ("delete", CSR, "", "mine", false),
            (
                "update",
                "certificates.k8s.io/certificatesigningrequests/approval",
                "",
                "mine",
                false,
            ),
            (
                "update",
                "certificates.k8s.io/certificatesigningrequests/status",
                "",
                "mine",
                false,
            ),
            ("get", "/configmaps", "kube-public", "cluster-info", true),
            ("get", "/configmaps", "kube-system", "cluster-info", false),
            ("list", "/configmaps", "kube-public", "", false),
            (
                "get",
                "/secrets",
                "kube-system",
                "bootstrap-token-abcdef",
                false,
            ),
            ("get", "cluster.karmada.io/clusters", "", "north", false),
            (
                "create",
                "authorization.k8s.io/selfsubjectaccessreviews",
                "",
                "",
                true,
            ),
            (
                "create",
                "authorization.k8s.io/subjectaccessreviews",
                "",
                "",
                false,
            ),
        ] {
            let mut parts = kind.splitn(3, '/');
            let mut part = || parts.next().unwrap_or_default().to_owned();
            let request = Attributes {
                verb: verb.into(),
                group: part(),
                resource: part(),
                subresource: part(),
                namespace: namespace.into(),
                name: name.into(),
                ..Attributes::default()
            };
            let decision = authorizer.authorize(&full, &request);
            assert_eq!(
                decision == Decision::Allow,
                expected,
                "{verb} {kind} {name}"
            );
            assert_ne!(decision, Decision::NoOpinion);
            if kind == CSR {
                let other = user(&[BOOTSTRAP_GROUP, "system:bootstrappers:others"]);
                assert_ne!(authorizer.authorize(&other, &request), Decision::Allow);
            }
            let nobody = user(&["system:authenticated"]);
            assert_eq!(authorizer.authorize(&nobody, &request), Decision::NoOpinion);
        }
    }
}
