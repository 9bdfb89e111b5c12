//! Requests for tests.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use evenkeel_shared::identity::AGENTS_GROUP;
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};

use super::{Fleet, request::Subject};

/// A fleet of one cluster, `north`, with id `id-north`, and one claim, on `claimed`.
pub struct OneCluster;

impl Fleet for OneCluster {
    fn has_cluster(&self, name: &str) -> bool {
        name == "north"
    }

    fn cluster_with_id(&self, id: &str) -> Option<String> {
        (id == "id-north").then(|| "north".into())
    }

    fn other_claim(&self, cluster: &str, _: &Subject) -> Option<String> {
        (cluster == "claimed").then(|| "claimed-x7k2p".into())
    }
}

/// A request with this subject, by nobody yet. `change` may alter what is asked for.
pub fn request(
    common_name: &str,
    organizations: &[&str],
    change: impl FnOnce(&mut CertificateParams),
) -> Value {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    for (n, organization) in organizations.iter().enumerate() {
        // rcgen keeps one of each kind, so that a second organization goes by its number.
        let kind = if n == 0 {
            DnType::OrganizationName
        } else {
            DnType::CustomDnType(vec![2, 5, 4, 10])
        };
        params.distinguished_name.push(kind, *organization);
    }
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    change(&mut params);
    let pem = params
        .serialize_request(&KeyPair::generate().unwrap())
        .unwrap()
        .pem()
        .unwrap();
    json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": "x", "creationTimestamp": "2030-01-01T00:00:00Z"},
        "spec": {
            "request": BASE64_STANDARD.encode(pem), "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["digital signature", "client auth"],
        },
    })
}

/// What an agent of this cluster asks for.
pub fn agent_request(cluster: &str) -> Value {
    request(
        &format!("system:karmada:agent:{cluster}"),
        &[AGENTS_GROUP],
        |_| {},
    )
}

/// Puts the maker into a request, as the server does.
pub fn by(mut request: Value, user: &str, groups: &[&str], bound: Option<&str>) -> Value {
    request["spec"]["username"] = user.into();
    request["spec"]["groups"] = groups.into();
    if let Some(bound) = bound {
        request["spec"]["extra"] = json!({super::judge::BOUND_CLUSTER: [bound]});
    }
    request
}
