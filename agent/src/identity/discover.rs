//! Finding the control plane's CA before anything is believed: what is public is read from whoever answers, and only
//! a certificate with the pinned key is kept.

use std::{sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::Uri;
use rustls::pki_types::CertificateDer;
use serde::Deserialize;
use serde_json::Value;

use super::{IdentityError, certificates};
use crate::{
    transport::{Caller, Channel, Credentials, pinned, unverified},
    vitals::Vitals,
};

const CLUSTER_INFO: &str = "/api/v1/namespaces/kube-public/configmaps/cluster-info";
const DEADLINE: Duration = Duration::from_secs(15);

/// The PEM of the authority whose key is pinned: from the public cluster-info, else from the chain that the server
/// shows.
pub async fn authority(
    servers: &[Uri],
    pin: &[u8; 32],
    vitals: &Arc<Vitals>,
) -> Result<String, IdentityError> {
    let (tls, presented) = unverified()?;
    let credentials = Credentials { tls, bearer: None };
    let channel = Channel::new(servers.to_vec(), credentials, Arc::clone(vitals));
    let caller = Caller::new(channel.client(), DEADLINE);
    let info = match caller.get::<Value>(CLUSTER_INFO).await {
        Ok(info) => published(&info),
        Err(failure) if failure.code().is_some() => None,
        Err(failure) => return Err(failure.into()),
    };
    let published = info.as_deref().map_or(Ok(Vec::new()), certificates)?;
    let found = published.into_iter().chain(presented.chain());
    let trusted = matching(found, pin);
    if trusted.is_empty() {
        return Err(IdentityError::PinMismatch);
    }
    Ok(trusted
        .iter()
        .map(|certificate| pem::encode(&pem::Pem::new("CERTIFICATE", certificate.to_vec())))
        .collect())
}

/// Those with the pinned key, each once. What cannot be read cannot be pinned.
fn matching(
    certificates: impl Iterator<Item = CertificateDer<'static>>,
    pin: &[u8; 32],
) -> Vec<CertificateDer<'static>> {
    let mut matching: Vec<_> = certificates
        .filter(|certificate| pinned(certificate, pin).unwrap_or(false))
        .collect();
    matching.dedup();
    matching
}

#[derive(Deserialize)]
struct Kubeconfig {
    clusters: Vec<NamedCluster>,
}

#[derive(Deserialize)]
struct NamedCluster {
    cluster: ClusterEntry,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct ClusterEntry {
    certificate_authority_data: String,
}

/// The CA of the kubeconfig that cluster-info holds.
fn published(info: &Value) -> Option<String> {
    let text = info["data"]["kubeconfig"].as_str()?;
    let kubeconfig: Kubeconfig = serde_saphyr::from_str(text).ok()?;
    let entry = kubeconfig.clusters.into_iter().next()?.cluster;
    let pem = STANDARD.decode(entry.certificate_authority_data).ok()?;
    String::from_utf8(pem).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sha2::{Digest, Sha256};
    use x509_parser::prelude::{FromDer, X509Certificate};

    use super::*;

    #[test]
    fn only_the_pinned_key_is_believed() {
        let ours = super::super::tests::identity("m1", 0, 1).unwrap().authority;
        let theirs = super::super::tests::identity("m1", 0, 1).unwrap().authority;
        let both = certificates(&format!("{theirs}{ours}")).unwrap();
        let (_, parsed) = X509Certificate::from_der(&both[1]).unwrap();
        let pin: [u8; 32] = Sha256::digest(parsed.public_key().raw).into();
        assert_eq!(matching(both.clone().into_iter(), &pin), [both[1].clone()]);
        assert!(matching(both.into_iter(), &[0; 32]).is_empty());
    }

    #[test]
    fn cluster_info_is_read_and_nonsense_is_nothing() {
        let kubeconfig = format!(
            "apiVersion: v1\nclusters:\n- name: \"\"\n  cluster:\n    server: https://x\n    certificate-authority-data: {}\n",
            STANDARD.encode("PEM")
        );
        let info = json!({"data": {"kubeconfig": kubeconfig}});
        assert_eq!(published(&info).as_deref(), Some("PEM"));
        for text in [
            "",
            "clusters: []",
            "clusters: 3",
            "][",
            "clusters: [{cluster: {}}]",
        ] {
            assert_eq!(
                published(&json!({"data": {"kubeconfig": text}})),
                None,
                "{text}"
            );
        }
        assert_eq!(published(&json!({})), None);
    }
}
