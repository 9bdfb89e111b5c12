//! Asking for a certificate: a key, a CertificateSigningRequest, and the wait for its answer.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use evenkeel_shared::identity::{AGENT_SIGNER, AGENTS_GROUP, agent_user};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::IdentityError;
use crate::{backoff::Backoff, transport::Caller};

const PATH: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
/// What the approver expects, exactly.
const USAGES: [&str; 3] = ["digital signature", "key encipherment", "client auth"];
/// From the request to the certificate.
const ISSUE_DEADLINE: Duration = Duration::from_mins(2);

/// What came of an asked-for certificate so far.
#[derive(Debug, PartialEq, Eq)]
enum Progress {
    Issued(String),
    Pending,
    Refused(String),
}

/// Makes a key and has it certified. Returns the PEM of the key and of the chain, in one.
pub async fn certificate(caller: &Caller, cluster: &str) -> Result<String, IdentityError> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::OrganizationName, AGENTS_GROUP);
    params
        .distinguished_name
        .push(DnType::CommonName, agent_user(cluster));
    let pem = params.serialize_request(&key)?.pem()?;
    let name = format!("{cluster}-{:08x}", rand::random::<u32>());
    let mut answer: Value = caller.create(PATH, &body(&name, &pem)).await?;
    let path = format!("{PATH}/{name}");
    let deadline = Instant::now() + ISSUE_DEADLINE;
    let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(5));
    loop {
        match progress(&answer) {
            Progress::Issued(chain) => return Ok(format!("{}{chain}", key.serialize_pem())),
            Progress::Refused(why) => return Err(IdentityError::Denied(why)),
            Progress::Pending => {}
        }
        let wait = backoff.wait();
        if Instant::now() + wait > deadline {
            return Err(IdentityError::NotIssued(ISSUE_DEADLINE));
        }
        tokio::time::sleep(wait).await;
        match caller.get(&path).await {
            Ok(newer) => answer = newer,
            Err(failure) if failure.is_passing() => {}
            Err(failure) => return Err(failure.into()),
        }
    }
}

fn body(name: &str, request: &str) -> Value {
    json!({
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": { "name": name },
        "spec": {
            "request": STANDARD.encode(request),
            "signerName": AGENT_SIGNER,
            "usages": USAGES,
        },
    })
}

fn progress(request: &Value) -> Progress {
    let status = &request["status"];
    for condition in status["conditions"].as_array().into_iter().flatten() {
        if matches!(condition["type"].as_str(), Some("Denied" | "Failed")) {
            let part = |name: &str| condition[name].as_str().unwrap_or_default().to_owned();
            return Progress::Refused(format!("{}: {}", part("reason"), part("message")));
        }
    }
    match status["certificate"].as_str() {
        None | Some("") => Progress::Pending,
        Some(encoded) => match STANDARD
            .decode(encoded)
            .ok()
            .and_then(|pem| String::from_utf8(pem).ok())
        {
            Some(pem) => Progress::Issued(pem),
            None => Progress::Refused("the certificate is not readable".to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_of_a_request() {
        let refused = |why: &str| Progress::Refused(why.to_owned());
        for (status, expected) in [
            (json!(null), Progress::Pending),
            (
                json!({"conditions": [{"type": "Approved"}]}),
                Progress::Pending,
            ),
            (
                json!({"conditions": [{"type": "Denied", "reason": "No", "message": "not yours"}]}),
                refused("No: not yours"),
            ),
            (
                json!({"conditions": [{"type": "Approved"}, {"type": "Failed", "reason": "Signer", "message": "off"}]}),
                refused("Signer: off"),
            ),
            (
                json!({"certificate": STANDARD.encode("PEM")}),
                Progress::Issued("PEM".to_owned()),
            ),
            (
                json!({"certificate": "%%"}),
                refused("the certificate is not readable"),
            ),
        ] {
            assert_eq!(progress(&json!({ "status": status })), expected);
        }
    }
}
