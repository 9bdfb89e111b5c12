//! Secret: `stringData` goes into `data`, types have keys that they need, and its contents never appear in an error.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use evenkeel_api::{
    failure::Failure,
    kind::{Column, RequestContext, Strategy},
};
use evenkeel_shared::{field::FieldError, syntax};
use serde_json::Value;

use super::config::MAX_DATA;
use crate::kinds::{
    column::{age, shown},
    look::{at, child, drop_field, fill, pairs, text},
    rules::{frozen, immutable},
};

pub fn columns() -> Vec<Column> {
    vec![
        shown(
            "Type",
            "string",
            "Used to facilitate programmatic handling of secret data. More info: https://kubernetes.io/docs/concepts/configuration/secret/#secret-types",
            |object, _| text(object, "/type").into(),
        ),
        shown(
            "Data",
            "string",
            "Data contains the secret data. Each key must consist of alphanumeric characters, '-', '_' or '.'. The serialized form of the secret data is a base64 encoded string, representing the arbitrary (possibly non-string) data value here. Described in https://tools.ietf.org/html/rfc4648#section-4",
            |object, _| {
                at(object, "/data")
                    .as_object()
                    .map_or(0, serde_json::Map::len)
                    .into()
            },
        ),
        age(),
    ]
}

pub struct Secret;

impl Strategy for Secret {
    fn default(&self, object: &mut Value) {
        let texts = pairs(object, "/stringData")
            .into_iter()
            .map(|(key, value)| (key.to_owned(), STANDARD.encode(value)))
            .collect::<Vec<_>>();
        if !texts.is_empty()
            && let Some(data) = child(object, "data")
        {
            for (key, value) in texts {
                data[key] = value.into();
            }
        }
        drop_field(object, "stringData");
        if text(object, "/type").is_empty() {
            drop_field(object, "type");
            fill(object, "type", "Opaque");
        }
    }

    fn prepare_create(&self, _: &RequestContext, object: &mut Value) -> Result<(), Failure> {
        decodable(object)
    }

    fn prepare_update(
        &self,
        _: &RequestContext,
        new: &mut Value,
        _: &Value,
    ) -> Result<(), Failure> {
        decodable(new)
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let mut size = 0;
        for (key, value) in pairs(object, "/data") {
            size += value.len() / 4 * 3;
            for fault in syntax::config_key(key) {
                errors.push(FieldError::invalid(
                    format!("data[{key}]"),
                    &key.into(),
                    &fault,
                ));
            }
        }
        if size > MAX_DATA {
            errors.push(FieldError::too_long("data", MAX_DATA));
        }
        let has = |key: &str| !object["data"][key].is_null();
        let required = |key: &str| FieldError::required(format!("data[{key}]"), "");
        match text(object, "/type") {
            "kubernetes.io/tls" => {
                let missing = ["tls.crt", "tls.key"].into_iter().filter(|key| !has(key));
                errors.extend(missing.map(required));
            }
            "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
                errors.extend(["username", "password"].map(required));
            }
            "kubernetes.io/ssh-auth" if text(object, "/data/ssh-privatekey").is_empty() => {
                errors.push(required("ssh-privatekey"));
            }
            "kubernetes.io/dockerconfigjson" => {
                errors.extend(json_document(object, ".dockerconfigjson"));
            }
            "kubernetes.io/dockercfg" => errors.extend(json_document(object, ".dockercfg")),
            "kubernetes.io/service-account-token" => {
                let name = "kubernetes.io/service-account.name";
                let annotations = at(object, "/metadata/annotations");
                if annotations[name].as_str().is_none_or(str::is_empty) {
                    errors.push(FieldError::required(
                        format!("metadata.annotations[{name}]"),
                        "",
                    ));
                }
            }
            _ => {}
        }
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = immutable(new, old, &["type"]);
        errors.extend(frozen(new, old, &["data"]));
        errors
    }
}

/// Every value is base64.
fn decodable(object: &Value) -> Result<(), Failure> {
    for (_, value) in pairs(object, "/data") {
        if let Err(error) = STANDARD.decode(value) {
            let offset = match error {
                base64::DecodeError::InvalidByte(offset, _)
                | base64::DecodeError::InvalidLastSymbol(offset, _) => offset,
                base64::DecodeError::InvalidLength(length) => length / 4 * 4,
                base64::DecodeError::InvalidPadding => value.len().saturating_sub(1),
            };
            return Err(Failure::bad_request(format!(
                "Secret in version \"v1\" cannot be handled as a Secret: illegal base64 data at input byte {offset}"
            )));
        }
    }
    Ok(())
}

fn json_document(object: &Value, key: &str) -> Option<FieldError> {
    let path = format!("data[{key}]");
    let value = object["data"][key].as_str();
    let Some(value) = value.and_then(|value| STANDARD.decode(value).ok()) else {
        return Some(FieldError::required(path, ""));
    };
    if serde_json::from_slice::<serde::de::IgnoredAny>(&value).is_ok() {
        return None;
    }
    Some(FieldError::invalid(
        path,
        &"<secret contents redacted>".into(),
        "the value is not JSON",
    ))
}
