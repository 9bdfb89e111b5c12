//! Who gets the identity of an agent without asking anybody.

use evenkeel_api::access::MASTERS;
use evenkeel_shared::{
    identity::{
        AGENT_SIGNER, AGENTS_GROUP, BOOTSTRAP_AGENTS_GROUP, BOOTSTRAP_GROUP, BOOTSTRAP_USER_PREFIX,
        agent_cluster, cluster_of_user,
    },
    syntax,
};

use super::request::{CertificateRequest, Subject};

/// Among the `extra` of a bootstrap token's user, and the annotations of its Secret: the one cluster that it may enrol.
pub const BOUND_CLUSTER: &str = "bootstrap.evenkeel.io/cluster-name";

/// What may be done with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is for the agent of this cluster, and by whoever has the right to it.
    Approve { cluster: String, why: String },
    /// An administrator decides.
    Ask,
    /// It will never be approved.
    Refuse(String),
    /// Nobody may ask for this.
    Forbid(String),
}

/// What is known of the fleet.
pub trait Fleet {
    fn has_cluster(&self, name: &str) -> bool;
    /// The name of the Cluster with this `spec.id`.
    fn cluster_with_id(&self, id: &str) -> Option<String>;
    /// The name of another request, alive, for the same cluster and another key.
    fn other_claim(&self, cluster: &str, subject: &Subject) -> Option<String>;
}

/// Judges a request by its maker and its content.
pub fn judge(request: &CertificateRequest, fleet: &dyn Fleet) -> Verdict {
    let spec = &request.spec;
    let is_in = |group: &str| spec.groups.iter().any(|member| member == group);
    let newcomer = is_in(BOOTSTRAP_GROUP);
    let agent = is_in(AGENTS_GROUP);
    let subject = match request.subject() {
        Ok(subject) => subject,
        Err(why) => return Verdict::Refuse(why),
    };
    if spec.signer_name == AGENT_SIGNER && subject.organizations.iter().any(|o| o == MASTERS) {
        return Verdict::Forbid(format!(
            "use of {AGENT_SIGNER} signer with {MASTERS} group is not allowed"
        ));
    }
    if !newcomer && !agent {
        return Verdict::Ask;
    }
    let cluster = match wanted_cluster(request, &subject) {
        Ok(cluster) => cluster,
        Err(why) => return Verdict::Refuse(why),
    };
    let outcome = if agent {
        renewal(request, &cluster, fleet)
    } else {
        enrolment(request, &subject, &cluster, fleet)
    };
    match outcome {
        Ok(why) => Verdict::Approve { cluster, why },
        Err(why) => Verdict::Refuse(why),
    }
}

/// The cluster whose agent is to be certified, if the request is exactly for that.
fn wanted_cluster(request: &CertificateRequest, subject: &Subject) -> Result<String, String> {
    let spec = &request.spec;
    if spec.signer_name != AGENT_SIGNER {
        return Err(format!("the signer of agents is {AGENT_SIGNER}"));
    }
    if subject.organizations != [AGENTS_GROUP] || subject.has_more {
        return Err(format!(
            "the subject of an agent has the organization {AGENTS_GROUP}, a common name, and nothing else"
        ));
    }
    let cluster = cluster_of_user(&subject.common_name)
        .ok_or("the common name is not that of an agent: system:karmada:agent:<cluster>")?;
    if let Some(reason) = bad_cluster_name(cluster) {
        return Err(format!(
            "\"{cluster}\" is not the name of a cluster: {reason}"
        ));
    }
    if let Some(extension) = subject.foreign_extension {
        return Err(format!("the request of an agent may not carry {extension}"));
    }
    let mut usages: Vec<_> = spec.usages.iter().map(String::as_str).collect();
    usages.sort_unstable();
    if !matches!(
        usages[..],
        ["client auth", "digital signature"]
            | ["client auth", "digital signature", "key encipherment"]
    ) {
        return Err(
            "the usages of an agent are \"digital signature\", \"client auth\", and \"key encipherment\" if wanted"
                .into(),
        );
    }
    Ok(cluster.to_owned())
}

/// Why this cannot name a cluster.
pub fn bad_cluster_name(name: &str) -> Option<String> {
    if name.len() > 48 {
        return Some("it has more than 48 bytes".into());
    }
    syntax::dns_label(name).into_iter().next()
}

fn renewal(
    request: &CertificateRequest,
    cluster: &str,
    fleet: &dyn Fleet,
) -> Result<String, String> {
    let spec = &request.spec;
    if agent_cluster(&spec.username, &spec.groups) != Some(cluster) {
        return Err("an agent may ask for its own certificate only".into());
    }
    if !fleet.has_cluster(cluster) {
        return Err(format!(
            "there is no Cluster \"{cluster}\" any more: join again with a token"
        ));
    }
    Ok("renewal by the agent itself".into())
}

fn enrolment(
    request: &CertificateRequest,
    subject: &Subject,
    cluster: &str,
    fleet: &dyn Fleet,
) -> Result<String, String> {
    let spec = &request.spec;
    let is_in = |group: &str| spec.groups.iter().any(|member| member == group);
    let token = spec
        .username
        .strip_prefix(BOOTSTRAP_USER_PREFIX)
        .filter(|_| is_in(BOOTSTRAP_AGENTS_GROUP))
        .ok_or("this token was not made for enrolling clusters")?;
    match spec.extra.get(BOUND_CLUSTER).map(Vec::as_slice) {
        Some([bound]) if bound == cluster => Ok(format!(
            "enrolment with token {token}, made for this cluster"
        )),
        Some(_) => Err(format!(
            "the token was made for another cluster than \"{cluster}\""
        )),
        None if fleet.has_cluster(cluster) => Err(format!(
            "the name \"{cluster}\" is taken: choose another, or use a token that was made for it"
        )),
        None => match fleet.other_claim(cluster, subject) {
            Some(other) => Err(format!(
                "the name \"{cluster}\" is claimed by {other}: choose another, or use a token that was made for it"
            )),
            None => Ok(format!("enrolment of a new cluster with token {token}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, SanType};
    use serde_json::Value;

    use super::*;
    use crate::enrol::fixture::{OneCluster, agent_request, by, request};

    const TOKEN: &str = "system:bootstrap:abcdef";
    const TOKEN_GROUPS: &[&str] = &[BOOTSTRAP_GROUP, BOOTSTRAP_AGENTS_GROUP];

    fn verdict(request: &Value) -> Verdict {
        judge(&CertificateRequest::read(request).unwrap(), &OneCluster)
    }

    fn newcomer(request: Value, bound: Option<&str>) -> Value {
        by(request, TOKEN, TOKEN_GROUPS, bound)
    }

    #[test]
    fn who_may_be_the_agent_of_which_cluster() {
        let agent = |asker: &str, cluster: &str| {
            by(
                agent_request(cluster),
                &format!("system:karmada:agent:{asker}"),
                &[AGENTS_GROUP],
                None,
            )
        };
        for (what, request, expected) in [
            (
                "a token for its cluster, new",
                newcomer(agent_request("south"), Some("south")),
                Ok("south"),
            ),
            (
                "a token for its cluster, known",
                newcomer(agent_request("north"), Some("north")),
                Ok("north"),
            ),
            (
                "a token for its cluster, claimed",
                newcomer(agent_request("claimed"), Some("claimed")),
                Ok("claimed"),
            ),
            (
                "a token for another cluster",
                newcomer(agent_request("south"), Some("west")),
                Err("made for another cluster than \"south\""),
            ),
            (
                "a token for any, new",
                newcomer(agent_request("south"), None),
                Ok("south"),
            ),
            (
                "a token for any, known",
                newcomer(agent_request("north"), None),
                Err("the name \"north\" is taken"),
            ),
            (
                "a token for any, claimed",
                newcomer(agent_request("claimed"), None),
                Err("the name \"claimed\" is claimed by claimed-x7k2p"),
            ),
            (
                "a token for something else",
                by(agent_request("south"), TOKEN, &[BOOTSTRAP_GROUP], None),
                Err("not made for enrolling"),
            ),
            ("an agent for itself", agent("north", "north"), Ok("north")),
            (
                "an agent for another",
                agent("north", "south"),
                Err("its own certificate only"),
            ),
            (
                "an agent whose cluster is gone",
                agent("south", "south"),
                Err("no Cluster \"south\" any more"),
            ),
            (
                "Karmada's helper with all rights",
                newcomer(agent_request("rbac-generator"), Some("north")),
                Err("another cluster than \"rbac-generator\""),
            ),
        ] {
            match (verdict(&request), expected) {
                (Verdict::Approve { cluster, .. }, Ok(name)) => assert_eq!(cluster, name, "{what}"),
                (Verdict::Refuse(why), Err(part)) => assert!(why.contains(part), "{what}: {why}"),
                (verdict, _) => panic!("{what}: {verdict:?}"),
            }
        }
        let other = by(agent_request("south"), "alice", &["devs"], None);
        assert_eq!(verdict(&other), Verdict::Ask);
        let king = by(
            request("alice", &[MASTERS], |_| {}),
            "alice",
            &["devs"],
            None,
        );
        assert!(matches!(verdict(&king), Verdict::Forbid(_)));
    }

    #[test]
    fn an_agents_request_is_exactly_that() {
        let good = || agent_request("south");
        let subject = |change: fn(&mut CertificateParams)| {
            request("system:karmada:agent:south", &[AGENTS_GROUP], change)
        };
        let spec = |field: &str, value: Value| {
            let mut request = good();
            request["spec"][field] = value;
            request
        };
        for (what, request, expected) in [
            (
                "no organization",
                request("system:karmada:agent:south", &[], |_| {}),
                "has the organization",
            ),
            (
                "two organizations",
                request(
                    "system:karmada:agent:south",
                    &[AGENTS_GROUP, "devs"],
                    |_| {},
                ),
                "has the organization",
            ),
            (
                "another organization",
                request("system:karmada:agent:south", &["devs"], |_| {}),
                "has the organization",
            ),
            (
                "no prefix",
                request("south", &[AGENTS_GROUP], |_| {}),
                "not that of an agent",
            ),
            (
                "no name",
                request("system:karmada:agent:", &[AGENTS_GROUP], |_| {}),
                "not that of an agent",
            ),
            ("a slash", agent_request("a/b"), "not the name of a cluster"),
            (
                "a capital",
                agent_request("South"),
                "not the name of a cluster",
            ),
            (
                "a long name",
                agent_request(&"a".repeat(49)),
                "more than 48 bytes",
            ),
            (
                "a country",
                subject(|params| params.distinguished_name.push(DnType::CountryName, "CH")),
                "nothing else",
            ),
            (
                "a name to serve",
                subject(|params| {
                    params.subject_alt_names = vec![SanType::DnsName("x".try_into().unwrap())];
                }),
                "subject alternative names",
            ),
            (
                "an authority",
                subject(|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained)),
                "an authority's",
            ),
            (
                "another signer",
                spec("signerName", "kubernetes.io/kubelet-serving".into()),
                "the signer of agents is",
            ),
            (
                "to serve",
                spec(
                    "usages",
                    ["server auth", "client auth", "digital signature"][..].into(),
                ),
                "usages",
            ),
            ("no usage", spec("usages", Value::Array(vec![])), "usages"),
            ("noise", spec("request", "%%%".into()), "not base64"),
            ("no PEM", spec("request", "AAAA".into()), "no PEM block"),
        ] {
            match verdict(&newcomer(request, Some("south"))) {
                Verdict::Refuse(why) => assert!(why.contains(expected), "{what}: {why}"),
                verdict => panic!("{what}: {verdict:?}"),
            }
        }
        let encipherment = spec(
            "usages",
            ["key encipherment", "client auth", "digital signature"][..].into(),
        );
        assert!(matches!(
            verdict(&newcomer(encipherment, Some("south"))),
            Verdict::Approve { .. }
        ));
    }

    #[test]
    fn a_request_that_another_key_signed_is_refused() {
        use base64::{Engine as _, prelude::BASE64_STANDARD};
        let mut request = newcomer(agent_request("south"), None);
        let pem = BASE64_STANDARD
            .decode(request["spec"]["request"].as_str().unwrap())
            .unwrap();
        let mut der = pem::parse(pem).unwrap().into_contents();
        let last = der.len() - 1;
        der[last] ^= 1;
        let pem = pem::encode(&pem::Pem::new("CERTIFICATE REQUEST", der));
        request["spec"]["request"] = BASE64_STANDARD.encode(pem).into();
        assert_eq!(
            verdict(&request),
            Verdict::Refuse("the request is not signed by the key that it is for".into())
        );
    }
}
