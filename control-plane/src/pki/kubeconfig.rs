//! Kubeconfigs: the administrator's, with a client certificate, and the one of cluster-info, without.

use std::{path::Path, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use evenkeel_api::access::{MASTERS, certificate::CertificateAuthenticator};
use jiff::Timestamp;
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose};
use serde::Deserialize;

use super::{Authority, PkiError, authority::subject, files};

/// The user of the administrator's certificate.
pub const ADMIN: &str = "evenkeel-admin";
const LIFETIME: Duration = Duration::from_hours(365 * 24);

/// A kubeconfig with a CA and a server only, as cluster-info publishes it.
pub fn anonymous(server: &str, authority: &Authority) -> String {
    let ca = BASE64_STANDARD.encode(authority.certificate_pem());
    format!(
        "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: {ca}\n    server: {server}\n  name: \"\"\n\
         contexts: null\ncurrent-context: \"\"\nkind: Config\npreferences: {{}}\nusers: null\n"
    )
}

/// What of an existing file decides whether it is still good.
#[derive(Deserialize)]
struct Existing {
    clusters: Vec<NamedCluster>,
    users: Vec<NamedUser>,
}

#[derive(Deserialize)]
struct NamedCluster {
    cluster: Cluster,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    server: String,
    certificate_authority_data: String,
}

#[derive(Deserialize)]
struct NamedUser {
    user: User,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct User {
    client_certificate_data: String,
}

/// Writes the administrator's kubeconfig when there is none, when it expires within a third of its life, or when the
/// server's address or authority changed. Says whether it did.
pub(super) fn ensure_admin(
    path: &Path,
    server: &str,
    authority: &Authority,
    now: Timestamp,
) -> Result<bool, PkiError> {
    if let Some(text) = files::read_if_there(path)?
        && is_good(&text, server, authority, now)
    {
        return Ok(false);
    }
    files::write_private(path, admin(server, authority, now)?.as_bytes())?;
    Ok(true)
}

fn is_good(text: &str, server: &str, authority: &Authority, now: Timestamp) -> bool {
    let Ok(existing) = serde_saphyr::from_str::<Existing>(text) else {
        return false;
    };
    let ([cluster], [user]) = (existing.clusters.as_slice(), existing.users.as_slice()) else {
        return false;
    };
    let certificate = BASE64_STANDARD
        .decode(&user.user.client_certificate_data)
        .ok()
        .and_then(|pem| pem::parse(pem).ok())
        .and_then(|pem| CertificateAuthenticator::identity(pem.contents()).ok());
    cluster.cluster.server == server
        && cluster.cluster.certificate_authority_data
            == BASE64_STANDARD.encode(authority.certificate_pem())
        && certificate.is_some_and(|identity| {
            // One that ends with the authority cannot be renewed into a longer life.
            let renewable = super::is_due(identity.not_after, LIFETIME, now)
                && authority.not_after() > identity.not_after;
            identity.user.name == ADMIN && !renewable
        })
}

fn admin(server: &str, authority: &Authority, now: Timestamp) -> Result<String, PkiError> {
    let key = KeyPair::generate().map_err(|error| PkiError::Issue(error.to_string()))?;
    let mut params = CertificateParams::default();
    params.distinguished_name = subject(ADMIN, Some(MASTERS));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = authority.issue(params, &key, LIFETIME, now)?;
    let encode = |text: String| BASE64_STANDARD.encode(text);
    Ok(format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: evenkeel\n  cluster:\n    server: {server}\n    \
         certificate-authority-data: {ca}\nusers:\n- name: {ADMIN}\n  user:\n    client-certificate-data: {certificate}\n    \
         client-key-data: {key}\ncontexts:\n- name: evenkeel\n  context:\n    cluster: evenkeel\n    user: {ADMIN}\n\
         current-context: evenkeel\npreferences: {{}}\n",
        ca = encode(authority.certificate_pem()),
        certificate = encode(super::authority::certificate_pem(certificate.der())),
        key = encode(key.serialize_pem()),
    ))
}
