//! Kubeconfig files, written as JSON (which is YAML).

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::authority::Identity;

/// One cluster, one user with a token, one context; all of this name.
pub fn with_token(name: &str, server: &str, authority: &str, token: &str) -> String {
    write(name, server, authority, &json!({"token": token}))
}

/// The same with a client certificate.
pub fn with_certificate(name: &str, server: &str, authority: &str, identity: &Identity) -> String {
    let encode = |text: &str| BASE64_STANDARD.encode(text);
    let user = json!({
        "client-certificate-data": encode(&identity.certificate), "client-key-data": encode(&identity.key),
    });
    write(name, server, authority, &user)
}

fn write(name: &str, server: &str, authority: &str, user: &Value) -> String {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": server, "certificate-authority-data": BASE64_STANDARD.encode(authority)}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    });
    format!("{config:#}\n")
}

/// The authority (PEM) and the client certificate of a kubeconfig with one cluster and one user.
pub fn read_with_certificate(
    path: &std::path::Path,
) -> Result<(String, Identity), Box<dyn std::error::Error>> {
    let config = serde_saphyr::from_str::<Value>(&std::fs::read_to_string(path)?)?;
    let data = |pointer: &str| -> Result<String, Box<dyn std::error::Error>> {
        let text = config
            .pointer(pointer)
            .and_then(Value::as_str)
            .ok_or_else(|| format!("no {pointer}"))?;
        Ok(String::from_utf8(BASE64_STANDARD.decode(text)?)?)
    };
    let identity = Identity {
        certificate: data("/users/0/user/client-certificate-data")?,
        key: data("/users/0/user/client-key-data")?,
    };
    Ok((
        data("/clusters/0/cluster/certificate-authority-data")?,
        identity,
    ))
}
