//! Protobuf request bodies: the envelope that they come in, and the options of a DELETE. The messages of kinds are
//! decoded by their kinds.

mod json;
mod messages;

use k8s_pb::apimachinery::pkg::{apis::meta::v1 as meta, runtime::Unknown};
use prost::Message as _;
use serde_json::{Value, json};

pub use messages::decoder;

/// Every message begins with this.
const MAGIC: &[u8] = b"k8s\0";

/// The message of an object, out of its envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// `apps/v1`
    pub api_version: String,
    pub kind: String,
    /// The message of that kind.
    pub raw: Vec<u8>,
}

/// Opens an envelope, or says what is wrong with it.
pub fn open(bytes: &[u8]) -> Result<Opened, String> {
    let body = bytes.strip_prefix(MAGIC).ok_or_else(|| {
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
            .to_owned()
    })?;
    let unknown = Unknown::decode(body).map_err(|error| error.to_string())?;
    let encoding = unknown.content_encoding.unwrap_or_default();
    if !encoding.is_empty() {
        return Err(format!("the content encoding {encoding:?} is not offered"));
    }
    let type_ = unknown.type_meta.unwrap_or_default();
    Ok(Opened {
        api_version: type_.api_version.unwrap_or_default(),
        kind: type_.kind.unwrap_or_default(),
        raw: unknown.raw.unwrap_or_default(),
    })
}

/// The options of a DELETE, as their JSON would be.
pub fn delete_options(bytes: &[u8]) -> Result<Value, String> {
    let opened = open(bytes)?;
    let options =
        meta::DeleteOptions::decode(opened.raw.as_slice()).map_err(|error| error.to_string())?;
    let mut value = json!({
        "apiVersion": opened.api_version,
        "kind": opened.kind,
        "dryRun": options.dry_run,
    });
    if let Some(orphan) = options.orphan_dependents {
        value["orphanDependents"] = orphan.into();
    }
    if let Some(policy) = options.propagation_policy {
        value["propagationPolicy"] = policy.into();
    }
    if let Some(preconditions) = options.preconditions {
        value["preconditions"] = json!({});
        if let Some(uid) = preconditions.uid {
            value["preconditions"]["uid"] = uid.into();
        }
        if let Some(version) = preconditions.resource_version {
            value["preconditions"]["resourceVersion"] = version.into();
        }
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use k8s_pb::apimachinery::pkg::runtime::TypeMeta;
    use proptest::prelude::*;

    use super::*;

    fn sealed(kind: &str, raw: Vec<u8>) -> Vec<u8> {
        let unknown = Unknown {
            type_meta: Some(TypeMeta {
                api_version: Some("v1".into()),
                kind: Some(kind.into()),
            }),
            raw: Some(raw),
            ..Unknown::default()
        };
        [MAGIC, &unknown.encode_to_vec()].concat()
    }

    #[test]
    fn delete_options_as_client_libraries_send_them() {
        let options = meta::DeleteOptions {
            propagation_policy: Some("Foreground".into()),
            preconditions: Some(meta::Preconditions {
                uid: Some("u".into()),
                resource_version: None,
            }),
            ..meta::DeleteOptions::default()
        };
        assert_eq!(
            delete_options(&sealed("DeleteOptions", options.encode_to_vec())),
            Ok(json!({
                "apiVersion": "v1", "kind": "DeleteOptions", "dryRun": [],
                "propagationPolicy": "Foreground", "preconditions": {"uid": "u"},
            }))
        );
    }

    proptest! {
        /// Any bytes are opened or refused.
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = open(&bytes);
            let _ = open(&[MAGIC, &bytes].concat());
            let _ = delete_options(&[MAGIC, &bytes].concat());
        }

        /// What was put into an envelope comes out.
        #[test]
        fn opens(raw in proptest::collection::vec(any::<u8>(), 0..64)) {
            let opened = open(&sealed("Secret", raw.clone())).unwrap();
            prop_assert_eq!((opened.kind.as_str(), opened.raw), ("Secret", raw));
        }
    }
}
