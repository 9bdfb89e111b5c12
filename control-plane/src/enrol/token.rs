//! Bootstrap tokens for joining: their Secrets, and what is printed for whoever runs the agent.

use std::{fmt::Write as _, time::Duration};

use aws_lc_rs::rand::fill;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use evenkeel_api::access::{
    bootstrap::{self, BootstrapToken, TokenRecord},
    token::SecretText,
};
use evenkeel_shared::identity::BOOTSTRAP_AGENTS_GROUP;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::judge::{BOUND_CLUSTER, bad_cluster_name};

/// How long a token can be used where nothing else is said.
pub const DEFAULT_TTL: Duration = Duration::from_hours(24);
/// Where the Secrets of tokens are.
pub const SECRETS_PATH: &str = "/api/v1/namespaces/kube-system/secrets";

/// What a token is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    pub description: String,
    /// `None`: it does not expire.
    pub ttl: Option<Duration>,
    /// The one cluster that it may enrol. `None`: any that is new.
    pub cluster: Option<String>,
}

/// Why a token cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("cluster name \"{name}\": {reason}")]
    ClusterName { name: String, reason: String },
    #[error("the time to live is out of range")]
    Ttl,
    #[error("the system gives no random numbers")]
    Random,
}

/// A token that was just drawn; its Secret is yet to be created.
#[derive(Clone, Debug)]
pub struct IssuedToken {
    pub token: BootstrapToken,
    pub expiration: Option<Timestamp>,
    secret: SecretText,
}

impl NewToken {
    /// Draws a token.
    pub fn issue(&self, now: Timestamp) -> Result<IssuedToken, TokenError> {
        if let Some(name) = &self.cluster
            && let Some(reason) = bad_cluster_name(name)
        {
            return Err(TokenError::ClusterName {
                name: name.clone(),
                reason,
            });
        }
        let expiration = match self.ttl {
            None => None,
            Some(ttl) if ttl.is_zero() => return Err(TokenError::Ttl),
            Some(ttl) => Some(now.checked_add(ttl).map_err(|_| TokenError::Ttl)?),
        };
        let token = BootstrapToken {
            id: draw(6)?,
            secret: SecretText::new(draw(16)?),
        };
        let encode = |text: &str| Value::from(BASE64_STANDARD.encode(text));
        let mut data = json!({
            "token-id": encode(&token.id),
            "token-secret": encode(token.secret.reveal()),
            "usage-bootstrap-authentication": encode("true"),
            "auth-extra-groups": encode(BOOTSTRAP_AGENTS_GROUP),
        });
        if !self.description.is_empty() {
            data["description"] = encode(&self.description);
        }
        if let Some(expiration) = expiration {
            data["expiration"] = encode(&rfc3339(expiration));
        }
        let mut metadata = json!({
            "name": format!("{}{}", bootstrap::SECRET_PREFIX, token.id),
            "namespace": bootstrap::NAMESPACE,
        });
        if let Some(cluster) = &self.cluster {
            metadata["annotations"] = json!({BOUND_CLUSTER: cluster});
        }
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": bootstrap::SECRET_TYPE,
            "metadata": metadata, "data": data,
        });
        Ok(IssuedToken {
            token,
            expiration,
            secret: SecretText::new(secret.to_string()),
        })
    }
}

impl IssuedToken {
    /// The Secret to create, in JSON.
    pub fn secret(&self) -> &str {
        self.secret.reveal()
    }

    /// `id.secret`: for the eyes of the one who asked for it.
    pub fn text(&self) -> String {
        format!("{}.{}", self.token.id, self.token.secret.reveal())
    }
}

/// Whole seconds, as kubeadm writes them.
fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Random lower-case letters and digits.
fn draw(length: usize) -> Result<String, TokenError> {
    const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut text = String::with_capacity(length);
    while text.len() < length {
        let mut bytes = [0_u8; 32];
        fill(&mut bytes).map_err(|_| TokenError::Random)?;
        // Above the last multiple of 36 the first letters would come more often.
        let letters = bytes
            .iter()
            .filter(|byte| **byte < 252)
            .map(|byte| char::from(ALPHABET[usize::from(byte % 36)]));
        text.extend(letters.take(length - text.len()));
    }
    Ok(text)
}

/// The path of the Secret of a token, by its id.
pub fn secret_path(id: &str) -> String {
    format!("{SECRETS_PATH}/{}{id}", bootstrap::SECRET_PREFIX)
}

/// The tokens among the Secrets of a list, without their secrets' text. Others are left out.
pub fn listed(list: &Value) -> Vec<TokenRecord> {
    list["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|secret| secret["type"] == bootstrap::SECRET_TYPE)
        .filter_map(|secret| TokenRecord::decode(secret.to_string().as_bytes()).ok())
        .collect()
}

/// The one cluster that a token may enrol.
pub fn bound_cluster(record: &TokenRecord) -> Option<&str> {
    let name = BOUND_CLUSTER.strip_prefix(bootstrap::EXTRA_PREFIX)?;
    record
        .extra
        .iter()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.as_str())
}

/// Everything that an agent is told to join.
#[derive(Clone, Debug)]
pub struct Joining<'a> {
    /// `https://host:port`, as the member reaches it.
    pub server: &'a str,
    pub token: &'a IssuedToken,
    /// `sha256:<hex>`.
    pub ca_pin: &'a str,
    /// `None`: to be filled in.
    pub cluster: Option<&'a str>,
}

impl Joining<'_> {
    fn cluster(&self) -> &str {
        self.cluster.unwrap_or("CLUSTER-NAME")
    }

    /// The one line that joins a cluster.
    pub fn command(&self) -> String {
        format!(
            "evenkeel-agent --server {} --token {} --ca-pin {} --cluster-name {}",
            self.server,
            self.token.text(),
            self.ca_pin,
            self.cluster()
        )
    }

    /// A manifest with `{{server}}`, `{{token}}`, `{{ca_pin}}` and `{{cluster_name}}` filled in.
    pub fn manifest(&self, template: &str) -> String {
        let mut filled = String::with_capacity(template.len() + 256);
        let mut rest = template;
        while let Some(start) = rest.find("{{") {
            let (before, from) = rest.split_at(start);
            filled.push_str(before);
            let Some(end) = from.find("}}") else {
                rest = from;
                break;
            };
            let _ = match &from[2..end] {
                "server" => write!(filled, "{}", self.server),
                "token" => write!(filled, "{}", self.token.text()),
                "ca_pin" => write!(filled, "{}", self.ca_pin),
                "cluster_name" => write!(filled, "{}", self.cluster()),
                other => write!(filled, "{{{{{other}}}}}"),
            };
            rest = &from[end + 2..];
        }
        filled.push_str(rest);
        filled
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use evenkeel_api::access::{
        Authenticator as _, Credentials, bootstrap::BootstrapTokenAuthenticator,
    };

    use super::*;

    fn now() -> Timestamp {
        "2030-01-01T00:00:00.5Z".parse().unwrap()
    }

    fn new(cluster: Option<&str>) -> NewToken {
        NewToken {
            description: "for tests".into(),
            ttl: Some(DEFAULT_TTL),
            cluster: cluster.map(Into::into),
        }
    }

    #[test]
    fn an_issued_token_authenticates_as_a_newcomer_bound_to_its_cluster() {
        let issued = new(Some("north")).issue(now()).unwrap();
        let secret = bytes::Bytes::copy_from_slice(issued.secret().as_bytes());
        let user = BootstrapTokenAuthenticator::new(
            Arc::new(move |_, _| Some(secret.clone())),
            Arc::new(now),
        )
        .authenticate(&Credentials {
            certificate: None,
            bearer: Some(&issued.text()),
        })
        .unwrap()
        .unwrap();
        assert_eq!(user.name, format!("system:bootstrap:{}", issued.token.id));
        assert!(user.is_in(BOOTSTRAP_AGENTS_GROUP));
        assert_eq!(user.extra[BOUND_CLUSTER], ["north"]);
        assert!(!format!("{issued:?}").contains(issued.token.secret.reveal()));
    }

    #[test]
    fn tokens_are_listed_without_their_secrets() {
        let issued = new(Some("north")).issue(now()).unwrap();
        let secret: Value = serde_json::from_str(issued.secret()).unwrap();
        let list = json!({"items": [secret, {"type": "Opaque"}]});
        let records = listed(&list);
        assert_eq!(records.len(), 1);
        assert_eq!(records[0].description, "for tests");
        assert_eq!(bound_cluster(&records[0]), Some("north"));
        assert_eq!(
            records[0].expiration.unwrap().to_string(),
            "2030-01-02T00:00:00Z"
        );
        assert!(!format!("{records:?}").contains(issued.token.secret.reveal()));
    }

    #[test]
    fn tokens_differ_and_bad_wishes_are_refused() {
        let token = || new(None).issue(now()).unwrap().text();
        let (a, b) = (token(), token());
        assert_ne!(a, b);
        assert!(a.parse::<BootstrapToken>().is_ok(), "{a}");
        for name in ["", "North", "a/b", "-a"] {
            assert!(matches!(
                new(Some(name)).issue(now()),
                Err(TokenError::ClusterName { .. })
            ));
        }
        for ttl in [Duration::ZERO, Duration::MAX] {
            let outcome = NewToken {
                ttl: Some(ttl),
                ..new(None)
            }
            .issue(now());
            assert!(matches!(outcome, Err(TokenError::Ttl)));
        }
    }

    #[test]
    fn what_is_printed_joins() {
        let issued = new(None).issue(now()).unwrap();
        let joining = Joining {
            server: "https://fleet.example.com:6443",
            token: &issued,
            ca_pin: "sha256:ab",
            cluster: Some("north"),
        };
        assert_eq!(
            joining.command(),
            format!(
                "evenkeel-agent --server https://fleet.example.com:6443 --token {} --ca-pin sha256:ab --cluster-name north",
                issued.text()
            )
        );
        assert_eq!(
            joining.manifest("a: {{server}}\nb: {{cluster_name}} {{ca_pin}} {{other}} {{unclosed"),
            "a: https://fleet.example.com:6443\nb: north sha256:ab {{other}} {{unclosed"
        );
        assert!(joining.manifest("{{token}}").contains(&issued.text()));
    }
}
