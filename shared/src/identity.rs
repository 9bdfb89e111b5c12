//! Who an agent is: the names in its client certificate.

/// The group of all agents: the certificate's organization.
pub const AGENTS_GROUP: &str = "system:karmada:agents";
/// An agent's user name (the certificate's common name) is this and the cluster's name.
pub const AGENT_USER_PREFIX: &str = "system:karmada:agent:";
/// A bootstrap token's user name is this and the token's id.
pub const BOOTSTRAP_USER_PREFIX: &str = "system:bootstrap:";
/// The group of all bootstrap tokens.
pub const BOOTSTRAP_GROUP: &str = "system:bootstrappers";
/// The group of the bootstrap tokens that agents enrol with.
pub const BOOTSTRAP_AGENTS_GROUP: &str = "system:bootstrappers:karmada:default-cluster-token";
/// The signer of agents' certificates.
pub const AGENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// The user name of a cluster's agent.
pub fn agent_user(cluster: &str) -> String {
    format!("{AGENT_USER_PREFIX}{cluster}")
}

/// The cluster whose agent has this user name. Groups are the caller's to check ([`is_agent`]).
pub fn cluster_of_user(user: &str) -> Option<&str> {
    user.strip_prefix(AGENT_USER_PREFIX)
        .filter(|cluster| !cluster.is_empty())
}

/// The cluster of an agent, if this user with these groups is one.
pub fn agent_cluster<'a>(user: &'a str, groups: &[String]) -> Option<&'a str> {
    groups
        .iter()
        .any(|group| group == AGENTS_GROUP)
        .then(|| cluster_of_user(user))
        .flatten()
}

/// Whether this user with these groups is an agent.
pub fn is_agent(user: &str, groups: &[String]) -> bool {
    agent_cluster(user, groups).is_some()
}
