//! Bootstrap tokens: `id.secret`, kept in Secrets of `kube-system`, as kubeadm and Karmada have them.

use std::{fmt, str::FromStr, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use serde::Deserialize;

use super::{Authenticator, BadCredential, Clock, Credentials, UserInfo, token::SecretText};

/// The type of the Secrets that hold bootstrap tokens.
pub const SECRET_TYPE: &str = "bootstrap.kubernetes.io/token";
/// Where these Secrets live.
pub const NAMESPACE: &str = "kube-system";
/// Behind it comes the token's id in the Secret's name.
pub const SECRET_PREFIX: &str = "bootstrap-token-";
/// Behind it comes the token's id in the name of the user.
pub const USER_PREFIX: &str = "system:bootstrap:";
/// Every bearer of a bootstrap token is in this group.
pub const GROUP: &str = "system:bootstrappers";
/// Holds the annotations of the token's Secret that authenticators hand on, as `extra` of the user.
pub const EXTRA_PREFIX: &str = "bootstrap.evenkeel.io/";

/// A bootstrap token: six and sixteen lower-case letters or digits.
#[derive(Clone)]
pub struct BootstrapToken {
    pub id: String,
    pub secret: SecretText,
}

/// Not of the form `id.secret`. Does not say what was given: it may be a secret of another kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a bootstrap token: six and sixteen lower-case letters or digits with a dot between are expected"
)]
pub struct NotAToken;

impl FromStr for BootstrapToken {
    type Err = NotAToken;

    fn from_str(text: &str) -> Result<Self, NotAToken> {
        let part = |text: &str, length: usize| {
            text.len() == length
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        match text.split_once('.') {
            Some((id, secret)) if part(id, 6) && part(secret, 16) => Ok(Self {
                id: id.into(),
                secret: SecretText::new(secret),
            }),
            _ => Err(NotAToken),
        }
    }
}

impl fmt::Debug for BootstrapToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.[redacted]", self.id)
    }
}

/// The Secret of one token, decoded.
#[derive(Clone, Debug)]
pub struct TokenRecord {
    pub id: String,
    pub secret: SecretText,
    pub description: String,
    /// `None`: it does not expire.
    pub expiration: Option<Timestamp>,
    /// Whether it authenticates requests.
    pub authenticates: bool,
    /// Beyond [`GROUP`].
    pub groups: Vec<String>,
    /// Annotations under [`EXTRA_PREFIX`], without it.
    pub extra: Vec<(String, String)>,
    /// The Secret is being deleted.
    pub deleted: bool,
}

#[derive(Deserialize)]
struct Secret {
    metadata: Metadata,
    #[serde(default, rename = "type")]
    type_: String,
    #[serde(default)]
    data: std::collections::BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    annotations: std::collections::BTreeMap<String, String>,
    #[serde(default)]
    deletion_timestamp: Option<String>,
}

impl TokenRecord {
    /// Decodes a Secret in JSON. The error names the field and never shows a value.
    pub fn decode(json: &[u8]) -> Result<Self, String> {
        let secret: Secret = serde_json::from_slice(json).map_err(|_| "not a Secret".to_owned())?;
        if secret.type_ != SECRET_TYPE {
            return Err(format!("type is not {SECRET_TYPE}"));
        }
        let field = |name: &str| -> Result<Option<String>, String> {
            let Some(encoded) = secret.data.get(name) else {
                return Ok(None);
            };
            let bytes = BASE64_STANDARD
                .decode(encoded)
                .map_err(|_| format!("data[{name}] is not base64"))?;
            String::from_utf8(bytes)
                .map(Some)
                .map_err(|_| format!("data[{name}] is not text"))
        };
        let token_id = field("token-id")?.ok_or("data[token-id] is missing")?;
        let token_secret = field("token-secret")?.ok_or("data[token-secret] is missing")?;
        let token: BootstrapToken = format!("{token_id}.{token_secret}")
            .parse()
            .map_err(|_| "data[token-id] or data[token-secret] is malformed".to_owned())?;
        let expiration = match field("expiration")? {
            None => None,
            Some(text) => Some(
                text.parse::<Timestamp>()
                    .map_err(|_| "data[expiration] is not a time in RFC 3339".to_owned())?,
            ),
        };
        let groups = field("auth-extra-groups")?
            .unwrap_or_default()
            .split(',')
            .map(str::trim)
            .filter(|group| !group.is_empty())
            .map(|group| {
                // As in the reference server: a token can give no group but a bootstrapper's.
                if group.starts_with("system:bootstrappers:") {
                    Ok(group.to_owned())
                } else {
                    Err(
                        "data[auth-extra-groups] holds a group outside system:bootstrappers:"
                            .to_owned(),
                    )
                }
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            id: token.id,
            secret: token.secret,
            description: field("description")?.unwrap_or_default(),
            expiration,
            authenticates: field("usage-bootstrap-authentication")?.as_deref() == Some("true"),
            groups,
            extra: secret
                .metadata
                .annotations
                .into_iter()
                .filter_map(|(name, value)| {
                    Some((name.strip_prefix(EXTRA_PREFIX)?.to_owned(), value))
                })
                .collect(),
            deleted: secret.metadata.deletion_timestamp.is_some(),
        })
    }

    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expiration.is_some_and(|expiration| now >= expiration)
    }
}

/// Finds the JSON of a Secret by namespace and name.
pub type SecretLookup = Arc<dyn Fn(&str, &str) -> Option<bytes::Bytes> + Send + Sync>;

/// Authenticates bearers of bootstrap tokens as `system:bootstrap:<id>`.
pub struct BootstrapTokenAuthenticator {
    secrets: SecretLookup,
    clock: Clock,
}

impl BootstrapTokenAuthenticator {
    pub fn new(secrets: SecretLookup, clock: Clock) -> Self {
        Self { secrets, clock }
    }
}

impl Authenticator for BootstrapTokenAuthenticator {
    fn authenticate(
        &self,
        credentials: &Credentials<'_>,
    ) -> Result<Option<UserInfo>, BadCredential> {
        let Some(token) = credentials
            .bearer
            .and_then(|bearer| bearer.parse::<BootstrapToken>().ok())
        else {
            return Ok(None);
        };
        let bad = |why: &str| BadCredential(format!("bootstrap token {}: {why}", token.id));
        let Some(json) = (self.secrets)(NAMESPACE, &format!("{SECRET_PREFIX}{}", token.id)) else {
            return Ok(None);
        };
        let record = TokenRecord::decode(&json).map_err(|why| bad(&why))?;
        if record.id != token.id {
            return Err(bad("its Secret holds another token-id"));
        }
        if !record.secret.matches(token.secret.reveal()) {
            return Err(bad("wrong secret"));
        }
        if record.deleted {
            return Err(bad("it is being deleted"));
        }
        if record.is_expired((self.clock)()) {
            return Err(bad("it has expired"));
        }
        if !record.authenticates {
            return Err(bad("it may not be used for authentication"));
        }
        let mut groups = vec![GROUP.to_owned()];
        groups.extend(record.groups);
        Ok(Some(UserInfo {
            name: format!("{USER_PREFIX}{}", record.id),
            uid: String::new(),
            groups,
            extra: record
                .extra
                .into_iter()
                .map(|(name, value)| (format!("{EXTRA_PREFIX}{name}"), vec![value]))
                .collect(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn secret(change: impl FnOnce(&mut Value)) -> Value {
        let b64 = |text: &str| BASE64_STANDARD.encode(text);
        let mut secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": SECRET_TYPE,
            "metadata": {"name": "bootstrap-token-abcdef", "namespace": NAMESPACE,
                "annotations": {"bootstrap.evenkeel.io/cluster-name": "north", "other": "x"}},
            "data": {
                "token-id": b64("abcdef"), "token-secret": b64("0123456789abcdef"),
                "usage-bootstrap-authentication": b64("true"),
                "expiration": b64("2030-01-01T00:00:00Z"),
                "auth-extra-groups": b64("system:bootstrappers:a, system:bootstrappers:b"),
            },
        });
        change(&mut secret);
        secret
    }

    fn ask(secret: Option<Value>, bearer: &str, now: &str) -> Result<Option<UserInfo>, String> {
        let now: Timestamp = now.parse().unwrap();
        BootstrapTokenAuthenticator::new(
            Arc::new(move |namespace, name| {
                (namespace == NAMESPACE && name == "bootstrap-token-abcdef")
                    .then(|| secret.as_ref().map(|secret| secret.to_string().into()))
                    .flatten()
            }),
            Arc::new(move || now),
        )
        .authenticate(&Credentials {
            certificate: None,
            bearer: Some(bearer),
        })
        .map_err(|error| error.to_string())
    }

    const GOOD: &str = "abcdef.0123456789abcdef";
    const BEFORE: &str = "2029-12-31T23:59:59Z";

    #[test]
    fn a_good_token_is_a_bootstrapper_with_its_groups_and_bound_name() {
        let user = ask(Some(secret(|_| {})), GOOD, BEFORE).unwrap().unwrap();
        assert_eq!(user.name, "system:bootstrap:abcdef");
        assert_eq!(
            user.groups,
            [
                "system:bootstrappers",
                "system:bootstrappers:a",
                "system:bootstrappers:b"
            ]
        );
        assert_eq!(
            user.extra.into_iter().collect::<Vec<_>>(),
            [(
                "bootstrap.evenkeel.io/cluster-name".to_owned(),
                vec!["north".to_owned()]
            )]
        );
    }

    #[test]
    fn what_is_not_a_bootstrap_token_is_left_to_others() {
        for bearer in [
            "",
            "nonsense",
            "ABCDEF.0123456789abcdef",
            "abcdef.0123456789abcde",
            "abcdef.0123456789abcdef0",
            "abcdef0123456789abcdef",
            "abcdef.0123456789abc.ef",
            "äbcde.0123456789abcdef",
        ] {
            assert_eq!(
                ask(Some(secret(|_| {})), bearer, BEFORE),
                Ok(None),
                "{bearer}"
            );
        }
        assert_eq!(ask(None, GOOD, BEFORE), Ok(None));
    }

    type Change = fn(&mut Value);

    #[test]
    fn bad_tokens_are_refused_with_a_reason_that_shows_no_secret() {
        let b64 = |text: &str| Value::from(BASE64_STANDARD.encode(text));
        let cases: Vec<(&str, Change, &str, &str)> = vec![
            ("abcdef.0123456789abcdeg", |_| {}, BEFORE, "wrong secret"),
            (GOOD, |_| {}, "2030-01-01T00:00:00Z", "it has expired"),
            (
                GOOD,
                |s| {
                    s["data"]
                        .as_object_mut()
                        .unwrap()
                        .remove("usage-bootstrap-authentication");
                },
                BEFORE,
                "it may not be used for authentication",
            ),
            (
                GOOD,
                |s| s["type"] = "Opaque".into(),
                BEFORE,
                "type is not bootstrap.kubernetes.io/token",
            ),
            (
                GOOD,
                |s| s["metadata"]["deletionTimestamp"] = BEFORE.into(),
                BEFORE,
                "it is being deleted",
            ),
            (
                GOOD,
                |s| s["data"]["token-secret"] = "%%%".into(),
                BEFORE,
                "data[token-secret] is not base64",
            ),
            (
                GOOD,
                |s| s["data"]["auth-extra-groups"] = "c3lzdGVtOm1hc3RlcnM=".into(),
                BEFORE,
                "data[auth-extra-groups] holds a group outside system:bootstrappers:",
            ),
            (
                GOOD,
                |s| s["data"]["expiration"] = "c29vbg==".into(),
                BEFORE,
                "data[expiration] is not a time in RFC 3339",
            ),
        ];
        for (bearer, change, now, expected) in cases {
            let error = ask(Some(secret(change)), bearer, now).unwrap_err();
            assert_eq!(error, format!("bootstrap token abcdef: {expected}"));
        }
        let other = secret(|s| s["data"]["token-id"] = b64("zzzzzz"));
        let error = ask(Some(other), GOOD, BEFORE).unwrap_err();
        assert_eq!(
            error,
            "bootstrap token abcdef: its Secret holds another token-id"
        );
        let token: BootstrapToken = GOOD.parse().unwrap();
        assert_eq!(format!("{token:?}"), "abcdef.[redacted]");
        let record = TokenRecord::decode(secret(|_| {}).to_string().as_bytes()).unwrap();
        assert!(!format!("{record:?}").contains("0123456789abcdef"));
    }
}
