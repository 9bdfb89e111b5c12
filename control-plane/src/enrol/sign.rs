//! Signing requests for client certificates that were approved.

use std::time::Duration;

use evenkeel_shared::identity::AGENT_SIGNER;
use jiff::Timestamp;
use rcgen::{
    CertificateParams, CertificateSigningRequestParams, ExtendedKeyUsagePurpose, KeyUsagePurpose,
};

use super::request::{CertificateRequest, Subject};
use crate::pki::{Authority, subject};

/// How long client certificates live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// Where a request says nothing.
    pub default: Duration,
    /// Where it asks for more.
    pub max: Duration,
}

/// The least that a request may ask for, as the reference server has it.
const MIN: Duration = Duration::from_mins(10);

impl Default for Lifetimes {
    /// A week, which an agent renews long before, and which outlasts a member that is cut off over some days.
    fn default() -> Self {
        Self {
            default: Duration::from_hours(7 * 24),
            max: Duration::from_hours(30 * 24),
        }
    }
}

impl Lifetimes {
    fn of(self, request: &CertificateRequest) -> Duration {
        let asked = request
            .spec
            .expiration_seconds
            .and_then(|seconds| u64::try_from(seconds).ok())
            .map_or(self.default, Duration::from_secs);
        asked.max(MIN).min(self.max)
    }
}

/// Signs an approved request. The error is for its `Failed` condition.
pub fn sign(
    authority: &Authority,
    request: &CertificateRequest,
    lifetimes: Lifetimes,
    now: Timestamp,
) -> Result<String, String> {
    let wanted = request.subject()?;
    check(request, &wanted)?;
    let parsed = CertificateSigningRequestParams::from_der(&wanted.der.clone().into())
        .map_err(|error| error.to_string())?;
    let mut params = CertificateParams::default();
    params.distinguished_name = subject(
        &wanted.common_name,
        wanted.organizations.first().map(String::as_str),
    );
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.key_usages = request
        .spec
        .usages
        .iter()
        .filter_map(|usage| match usage.as_str() {
            "digital signature" => Some(KeyUsagePurpose::DigitalSignature),
            "key encipherment" => Some(KeyUsagePurpose::KeyEncipherment),
            _ => None,
        })
        .collect();
    let certificate = authority
        .issue(params, &parsed.public_key, lifetimes.of(request), now)
        .map_err(|error| error.to_string())?;
    Ok(crate::pki::certificate_pem(certificate.der()))
}

/// What this signer puts into a certificate: a client's identity and nothing more.
fn check(request: &CertificateRequest, wanted: &Subject) -> Result<(), String> {
    if request.spec.signer_name != AGENT_SIGNER {
        return Err(format!("only {AGENT_SIGNER} signs here"));
    }
    for usage in &request.spec.usages {
        if !matches!(
            usage.as_str(),
            "client auth" | "digital signature" | "key encipherment"
        ) {
            return Err(format!("the usage \"{usage}\" is not a client's"));
        }
    }
    if !request
        .spec
        .usages
        .iter()
        .any(|usage| usage == "client auth")
    {
        return Err("the usage \"client auth\" is missing".into());
    }
    if let Some(extension) = wanted.foreign_extension {
        return Err(format!("a client's certificate carries no {extension}"));
    }
    if wanted.organizations.len() > 1 || wanted.has_more {
        return Err(
            "the subject may hold a common name and one organization, and nothing else".into(),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use evenkeel_api::access::certificate::CertificateAuthenticator;
    use serde_json::{Value, json};

    use super::*;
    use crate::enrol::fixture::{agent_request, request};

    fn now() -> Timestamp {
        "2030-01-01T00:00:00Z".parse().unwrap()
    }

    fn signed(request: &Value) -> Result<(String, Duration), String> {
        let directory = tempfile::tempdir().unwrap();
        let authority = Authority::open_or_create(directory.path(), now()).unwrap();
        let request = CertificateRequest::read(request).unwrap();
        let pem = sign(&authority, &request, Lifetimes::default(), now())?;
        let identity =
            CertificateAuthenticator::identity(pem::parse(pem).unwrap().contents()).unwrap();
        let lifetime = identity.not_after.duration_since(now()).unsigned_abs();
        Ok((identity.user.name, lifetime))
    }

    #[test]
    fn lifetimes_are_honoured_within_bounds() {
        for (asked, hours) in [
            (Value::Null, 7 * 24),
            (json!(3600), 1),
            (json!(31_536_000), 30 * 24),
            (json!(-1), 7 * 24),
        ] {
            let mut request = agent_request("south");
            request["spec"]["expirationSeconds"] = asked.clone();
            let (name, lifetime) = signed(&request).unwrap();
            assert_eq!(name, "system:karmada:agent:south");
            assert_eq!(lifetime, Duration::from_hours(hours), "{asked}");
        }
        let mut request = agent_request("south");
        request["spec"]["expirationSeconds"] = json!(1);
        assert_eq!(signed(&request).unwrap().1, MIN);
    }

    #[test]
    fn what_is_no_clients_identity_is_not_signed() {
        let spec = |field: &str, value: Value| {
            let mut request = agent_request("south");
            request["spec"][field] = value;
            request
        };
        for (request, expected) in [
            (
                spec("signerName", "kubernetes.io/kubelet-serving".into()),
                "signs here",
            ),
            (
                spec("usages", json!(["client auth", "server auth"])),
                "\"server auth\" is not a client's",
            ),
            (
                spec("usages", json!(["digital signature"])),
                "\"client auth\" is missing",
            ),
            (request("alice", &["a", "b"], |_| {}), "one organization"),
            (spec("request", "noise".into()), "not base64"),
        ] {
            let why = signed(&request).unwrap_err();
            assert!(why.contains(expected), "{why}");
        }
    }
}
