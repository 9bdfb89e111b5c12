//! The fixed rule of agents, as the node authorizer's: the agent of a cluster reads and writes exactly what belongs to
//! that cluster, and never lists the fleet.
//!
//! Karmada's own agent asks for more. What of that is its own cluster's is given: its two Secrets, its leases, its
//! Works. Refused on purpose, since each shows one member what belongs to others or to the operator:
//!
//! - the list and watch of all Clusters (it compares ids; here admission does)
//! - the watch of all Services, and of the interpreter configurations
//! - the creation of namespaces (the control plane makes them)
//! - leases and Secrets under any other name

use evenkeel_api::access::{Attributes, Authorizer, Decision, UserInfo};
use evenkeel_shared::{
    identity::{AGENTS_GROUP, agent_cluster},
    names::{CLUSTER_NAMESPACE, SYSTEM_NAMESPACE, execution_namespace},
};

use super::RequesterOf;

/// The behaviour of a request that names one object: the object itself, or a list or watch limited to it.
const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["update", "patch"];

/// The Secrets of a member in `karmada-cluster`: its own token, and the one to impersonate with.
pub fn secrets_of(cluster: &str) -> Vec<String> {
    // A cluster named `a-impersonator` would own, by its name, the second Secret of cluster `a`.
    let own = (!cluster.ends_with("-impersonator")).then(|| cluster.to_owned());
    own.into_iter()
        .chain([format!("{cluster}-impersonator")])
        .collect()
}

/// The election lease of a member's agent in `karmada-system`.
pub fn election_lease(cluster: &str) -> String {
    format!("karmada-agent-{cluster}")
}

/// Whether the agent of `cluster` may do this; what is wrong where it may not. `requester` tells who made a
/// CertificateSigningRequest. What a creation is named, its body says: [`super::admission`] looks at that.
pub fn decide(
    cluster: &str,
    user: &str,
    request: &Attributes,
    requester: &dyn Fn(&str) -> Option<String>,
) -> Result<(), String> {
    let verb = request.verb.as_str();
    if request.resource.is_empty() {
        return if verb == "get" && is_discovery(&request.path) {
            Ok(())
        } else {
            Err(belongs(cluster))
        };
    }
    let named = |name: &str| request.name == name;
    let created = |name: &str| request.name.is_empty() || request.name == name;
    let reads = READ.contains(&verb);
    let writes = WRITE.contains(&verb);
    let own = |name: &str| (reads || writes) && named(name) || verb == "create" && created(name);
    let allowed = match (
        request.group.as_str(),
        request.resource.as_str(),
        request.subresource.as_str(),
    ) {
        ("cluster.karmada.io", "clusters", "") => {
            if reads && request.name.is_empty() {
                return Err(format!(
                    "agents do not list the fleet: limit the request with fieldSelector=metadata.name={cluster}"
                ));
            }
            own(cluster)
        }
        ("cluster.karmada.io", "clusters", "status")
        | ("topology.evenkeel.io", "clustertopologies", "status") => {
            (verb == "get" || writes) && named(cluster)
        }
        ("topology.evenkeel.io", "clustertopologies", "") => own(cluster),
        ("coordination.k8s.io", "leases", "") => match request.namespace.as_str() {
            CLUSTER_NAMESPACE => own(cluster),
            SYSTEM_NAMESPACE => own(&election_lease(cluster)),
            _ => false,
        },
        ("work.karmada.io", "works", subresource @ ("" | "status")) => {
            request.namespace == execution_namespace(cluster)
                && (writes
                    || if subresource.is_empty() {
                        reads
                    } else {
                        verb == "get"
                    })
        }
        ("" | "events.k8s.io", "events", "") => {
            if request.namespace == execution_namespace(cluster) {
                reads || writes || verb == "create"
            } else {
                // Events about objects without a namespace are there; admission sees which are about this cluster.
                request.namespace == "default" && (writes || verb == "create")
            }
        }
        ("", "namespaces", "") => {
            verb == "get"
                && (named(&execution_namespace(cluster))
                    || named(CLUSTER_NAMESPACE)
                    || named(SYSTEM_NAMESPACE))
        }
        ("", "secrets", "") => {
            request.namespace == CLUSTER_NAMESPACE
                && secrets_of(cluster).iter().any(|name| {
                    (verb == "get" || writes) && named(name) || verb == "create" && created(name)
                })
        }
        ("certificates.k8s.io", "certificatesigningrequests", "") => {
            asks_for_certificate(user, request, requester)
        }
        (group, resource, "") => is_self_review(group, resource) && verb == "create",
        _ => false,
    };
    if allowed {
        Ok(())
    } else {
        Err(belongs(cluster))
    }
}

fn belongs(cluster: &str) -> String {
    format!("an agent may reach only what belongs to its own cluster, \"{cluster}\"")
}

/// A request for a certificate may be made by anyone who needs one, and seen by whoever made it.
pub(super) fn asks_for_certificate(
    user: &str,
    request: &Attributes,
    requester: &dyn Fn(&str) -> Option<String>,
) -> bool {
    match request.verb.as_str() {
        "create" => true,
        _ if request.name.is_empty() => false,
        // One that is gone answers that it is gone.
        "get" | "list" => requester(&request.name).is_none_or(|requester| requester == user),
        "watch" => requester(&request.name).is_some_and(|requester| requester == user),
        _ => false,
    }
}

pub(super) fn is_self_review(group: &str, resource: &str) -> bool {
    matches!(
        (group, resource),
        (
            "authorization.k8s.io",
            "selfsubjectaccessreviews" | "selfsubjectrulesreviews"
        ) | ("authentication.k8s.io", "selfsubjectreviews")
    )
}

/// What a client reads to learn what is served, and whether it is well.
pub(super) fn is_discovery(path: &str) -> bool {
    let first = path
        .trim_start_matches('/')
        .split('/')
        .next()
        .unwrap_or_default();
    matches!(
        first,
        "api" | "apis" | "openapi" | "version" | "healthz" | "livez" | "readyz"
    )
}

/// Judges agents by the fixed rule, finally, and leaves everybody else to others.
pub struct AgentAuthorizer {
    requester: RequesterOf,
}

impl AgentAuthorizer {
    pub fn new(requester: RequesterOf) -> Self {
        Self { requester }
    }
}

impl Authorizer for AgentAuthorizer {
    fn authorize(&self, user: &UserInfo, attributes: &Attributes) -> Decision {
        if !user.is_in(AGENTS_GROUP) {
            return Decision::NoOpinion;
        }
        let Some(cluster) = agent_cluster(&user.name, &user.groups) else {
            return Decision::Deny(format!(
                "a member of {AGENTS_GROUP} is named after its cluster"
            ));
        };
        match decide(cluster, &user.name, attributes, &*self.requester) {
            Ok(()) => Decision::Allow,
            Err(reason) => Decision::Deny(reason),
        }
    }

    fn rules(&self, user: &UserInfo, _namespace: &str) -> evenkeel_api::access::Rules {
        let incomplete = user
            .is_in(AGENTS_GROUP)
            .then(|| "agents are judged by a fixed rule".to_owned());
        evenkeel_api::access::Rules {
            rules: Vec::new(),
            incomplete,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, sync::Arc};

    use super::*;

    const VERBS: [&str; 9] = [
        "get",
        "list",
        "watch",
        "create",
        "update",
        "patch",
        "delete",
        "deletecollection",
        "impersonate",
    ];

    /// Every resource that the control plane serves, and some that it does not, with their subresources.
    const RESOURCES: &[(&str, &str, bool)] = &[
        ("cluster.karmada.io", "clusters", false),
        ("cluster.karmada.io", "clusters/status", false),
        ("cluster.karmada.io", "clusters/proxy", false),
        ("work.karmada.io", "works", true),
        ("work.karmada.io", "works/status", true),
        ("work.karmada.io", "resourcebindings", true),
        ("work.karmada.io", "resourcebindings/status", true),
        ("work.karmada.io", "clusterresourcebindings", false),
        ("policy.karmada.io", "propagationpolicies", true),
        ("policy.karmada.io", "clusterpropagationpolicies", false),
        ("policy.karmada.io", "overridepolicies", true),
        ("policy.karmada.io", "clusteroverridepolicies", false),
        ("policy.karmada.io", "clustertaintpolicies", false),
        (
            "config.karmada.io",
            "resourceinterpretercustomizations",
            false,
        ),
        ("hosted.evenkeel.io", "hostedclusters", false),
        ("topology.evenkeel.io", "clustertopologies", false),
        ("topology.evenkeel.io", "clustertopologies/status", false),
        ("placement.evenkeel.io", "placementexplanations", true),
        ("multicluster.x-k8s.io", "clusterprofiles", true),
        ("", "namespaces", false),
        ("", "namespaces/finalize", false),
        ("", "namespaces/status", false),
        ("", "secrets", true),
        ("", "configmaps", true),
        ("", "events", true),
        ("", "serviceaccounts", true),
        ("", "serviceaccounts/token", true),
        ("", "pods", true),
        ("", "services", true),
        ("", "nodes", false),
        ("", "users", false),
        ("", "groups", false),
        ("events.k8s.io", "events", true),
        ("apps", "deployments", true),
        ("apps", "deployments/scale", true),
        ("batch", "jobs", true),
        ("coordination.k8s.io", "leases", true),
        ("certificates.k8s.io", "certificatesigningrequests", false),
        (
            "certificates.k8s.io",
            "certificatesigningrequests/approval",
            false,
        ),
        (
            "certificates.k8s.io",
            "certificatesigningrequests/status",
            false,
        ),
        ("certificates.k8s.io", "signers", false),
        ("rbac.authorization.k8s.io", "roles", true),
        ("rbac.authorization.k8s.io", "clusterroles", false),
        ("rbac.authorization.k8s.io", "clusterrolebindings", false),
        ("authorization.k8s.io", "selfsubjectaccessreviews", false),
        ("authorization.k8s.io", "selfsubjectrulesreviews", false),
        ("authorization.k8s.io", "subjectaccessreviews", false),
        ("authentication.k8s.io", "selfsubjectreviews", false),
        ("authentication.k8s.io", "tokenreviews", false),
        ("apiextensions.k8s.io", "customresourcedefinitions", false),
    ];

    const NAMESPACES: &[&str] = &[
        "karmada-es-north",
        "karmada-es-south",
        "karmada-es-north2",
        "karmada-es-",
        "karmada-cluster",
        "karmada-system",
        "default",
        "kube-system",
        "kube-public",
        "north",
    ];

    const NAMES: &[&str] = &[
        "",
        "north",
        "south",
        "north2",
        "north-impersonator",
        "south-impersonator",
        "karmada-agent-north",
        "karmada-agent-south",
        "karmada-es-north",
        "karmada-es-south",
        "karmada-cluster",
        "karmada-system",
        "csr-of-north",
        "csr-of-south",
        "csr-of-nobody",
    ];

    /// Everything that the agent of `north` may, written down once more as a list: `verbs group/resource namespace name`.
    const ALLOWED: &str = "
        get,list,watch,create,update,patch cluster.karmada.io/clusters - north
        create                             cluster.karmada.io/clusters - -
        get,update,patch                   cluster.karmada.io/clusters/status - north
        get,list,watch,create,update,patch topology.evenkeel.io/clustertopologies - north
        create                             topology.evenkeel.io/clustertopologies - -
        get,update,patch                   topology.evenkeel.io/clustertopologies/status - north
        get,list,watch,create,update,patch coordination.k8s.io/leases karmada-cluster north
        create                             coordination.k8s.io/leases karmada-cluster -
        get,list,watch,create,update,patch coordination.k8s.io/leases karmada-system karmada-agent-north
        create                             coordination.k8s.io/leases karmada-system -
        get,list,watch,update,patch        work.karmada.io/works karmada-es-north *
        get,update,patch                   work.karmada.io/works/status karmada-es-north *
        get,list,watch,create,update,patch /events karmada-es-north *
        create,update,patch                /events default *
        get,list,watch,create,update,patch events.k8s.io/events karmada-es-north *
        create,update,patch                events.k8s.io/events default *
        get                                /namespaces - karmada-es-north
        get                                /namespaces - karmada-cluster
        get                                /namespaces - karmada-system
        get,create,update,patch            /secrets karmada-cluster north
        get,create,update,patch            /secrets karmada-cluster north-impersonator
        create                             /secrets karmada-cluster -
        create                             certificates.k8s.io/certificatesigningrequests - *
        get,list,watch                     certificates.k8s.io/certificatesigningrequests - csr-of-north
        get,list                           certificates.k8s.io/certificatesigningrequests - csr-of-nobody
        create                             authorization.k8s.io/selfsubjectaccessreviews - *
        create                             authorization.k8s.io/selfsubjectrulesreviews - *
        create                             authentication.k8s.io/selfsubjectreviews - *
    ";

    fn user(name: &str, groups: &[&str]) -> UserInfo {
        UserInfo {
            name: name.into(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
            ..UserInfo::default()
        }
    }

    fn authorizer() -> AgentAuthorizer {
        AgentAuthorizer::new(Arc::new(|name| match name {
            "csr-of-north" => Some("system:karmada:agent:north".into()),
            "csr-of-nobody" => None,
            _ => Some("system:karmada:agent:south".into()),
        }))
    }

    #[test]
    fn the_agent_of_a_cluster_reaches_what_is_its_own_and_nothing_else() {
        let expected = |verb: &str, kind: &str, namespace: &str, name: &str| {
            ALLOWED.lines().any(|line| {
                let words: Vec<_> = line.split_whitespace().collect();
                let [verbs, k, ns, n] = words[..] else {
                    return false;
                };
                let is = |pattern: &str, value: &str| {
                    pattern == "*" || pattern == value || pattern == "-" && value.is_empty()
                };
                verbs.split(',').any(|v| v == verb) && k == kind && is(ns, namespace) && is(n, name)
            })
        };
        let agent = user("system:karmada:agent:north", &[AGENTS_GROUP]);
        let authorizer = authorizer();
        let (mut asked, mut allowed) = (0, BTreeSet::new());
        for &(group, resource, namespaced) in RESOURCES {
            let (plural, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            // A list over all namespaces has none.
            let namespaces = if namespaced {
                [NAMESPACES, &[""]].concat()
            } else {
                vec![""]
            };
            for namespace in namespaces {
                for name in NAMES {
                    for verb in VERBS {
                        let request = Attributes {
                            verb: verb.into(),
                            group: group.into(),
                            version: "v1".into(),
                            resource: plural.into(),
                            subresource: subresource.into(),
                            namespace: namespace.into(),
                            name: (*name).into(),
                            ..Attributes::default()
                        };
                        let decision = authorizer.authorize(&agent, &request);
                        let kind = format!("{group}/{resource}");
                        let expected = expected(verb, &kind, namespace, name);
                        assert_eq!(
                            decision == Decision::Allow,
                            expected,
                            "{verb} {kind} in \"{namespace}\" named \"{name}\": {decision:?}"
                        );
                        assert!(
                            expected || matches!(decision, Decision::Deny(_)),
                            "no RBAC object may widen the rule"
                        );
                        asked += 1;
                        if expected {
                            allowed.insert((verb, kind, namespace, *name));
                        }
                    }
                }
            }
        }
        assert!(
            asked > 20_000 && allowed.len() > 100,
            "{asked} {}",
            allowed.len()
        );
        for (_, kind, namespace, name) in allowed {
            assert!(
                ![namespace, name].iter().any(|part| part.contains("north2"))
                    || kind.ends_with("events")
                    || name == "north2" && namespace == "karmada-es-north"
                    || ["certificatesigningrequests", "reviews"]
                        .iter()
                        .any(|end| kind.ends_with(end)),
                "{kind} {namespace} {name}"
            );
        }
    }

    #[test]
    fn paths_are_discovery_and_health_only() {
        let agent = user("system:karmada:agent:north", &[AGENTS_GROUP]);
        for (verb, path, expected) in [
            ("get", "/api", true),
            ("get", "/apis/apps/v1", true),
            ("get", "/openapi/v3", true),
            ("get", "/version", true),
            ("get", "/readyz", true),
            ("post", "/api", false),
            ("get", "/metrics", false),
            ("get", "/apiserver", false),
            ("get", "/", false),
            ("get", "/debug/pprof", false),
        ] {
            let request = Attributes {
                verb: verb.into(),
                path: path.into(),
                ..Attributes::default()
            };
            let decision = authorizer().authorize(&agent, &request);
            assert_eq!(decision == Decision::Allow, expected, "{verb} {path}");
        }
    }

    #[test]
    fn only_members_of_the_agents_group_with_an_agents_name_are_agents() {
        let request = Attributes {
            verb: "get".into(),
            group: "cluster.karmada.io".into(),
            resource: "clusters".into(),
            name: "north".into(),
            ..Attributes::default()
        };
        for (name, group, expected) in [
            ("system:karmada:agent:north", AGENTS_GROUP, Some(true)),
            ("system:karmada:agent:south", AGENTS_GROUP, Some(false)),
            ("system:karmada:agent:", AGENTS_GROUP, Some(false)),
            ("north", AGENTS_GROUP, Some(false)),
            ("system:karmada:agent:north", "devs", None),
        ] {
            let expected_decision = authorizer().authorize(&user(name, &[group]), &request);
            let outcome = match expected_decision {
                Decision::Allow => Some(true),
                Decision::Deny(_) => Some(false),
                Decision::NoOpinion => None,
            };
            assert_eq!(outcome, expected, "{name} in {group}");
        }
    }

    #[test]
    fn a_cluster_named_as_anothers_impersonator_does_not_own_its_secret() {
        let request = |name: &str| Attributes {
            verb: "get".into(),
            resource: "secrets".into(),
            namespace: "karmada-cluster".into(),
            name: name.into(),
            ..Attributes::default()
        };
        let agent = user("system:karmada:agent:north-impersonator", &[AGENTS_GROUP]);
        let may = |name| authorizer().authorize(&agent, &request(name)) == Decision::Allow;
        assert!(!may("north-impersonator"));
        assert!(may("north-impersonator-impersonator"));
    }
}
