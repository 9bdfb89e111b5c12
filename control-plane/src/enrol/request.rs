//! A CertificateSigningRequest, read.

use std::collections::BTreeMap;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use x509_parser::{
    certification_request::X509CertificationRequest, extensions::ParsedExtension,
    prelude::FromDer as _,
};

/// Of the object, what decisions need.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CertificateRequest {
    pub metadata: Metadata,
    pub spec: Spec,
    pub status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    pub creation_timestamp: Option<Timestamp>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    /// PEM in base64.
    pub request: String,
    pub signer_name: String,
    pub usages: Vec<String>,
    pub expiration_seconds: Option<i64>,
    pub username: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Status {
    pub conditions: Option<Vec<Condition>>,
    pub certificate: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    #[serde(rename = "type")]
    pub type_: String,
    pub last_update_time: Option<Timestamp>,
}

/// What is asked to be certified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    pub common_name: String,
    pub organizations: Vec<String>,
    /// Something in the subject that is neither of these.
    pub has_more: bool,
    /// The first extension that an identity of a client does not have.
    pub foreign_extension: Option<&'static str>,
    /// SubjectPublicKeyInfo.
    pub public_key: Vec<u8>,
    pub der: Vec<u8>,
}

impl CertificateRequest {
    pub fn read(object: &Value) -> Result<Self, String> {
        Self::deserialize(object).map_err(|error| error.to_string())
    }

    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        self.status
            .conditions
            .iter()
            .flatten()
            .find(|condition| condition.type_ == type_)
    }

    pub fn is_issued(&self) -> bool {
        self.status
            .certificate
            .as_ref()
            .is_some_and(|certificate| !certificate.is_empty())
    }

    /// Parses what is to be signed and checks that its maker holds the key.
    pub fn subject(&self) -> Result<Subject, String> {
        let text = BASE64_STANDARD
            .decode(&self.spec.request)
            .map_err(|_| "spec.request is not base64")?;
        let block = pem::parse(&text).map_err(|_| "spec.request holds no PEM block")?;
        if block.tag() != "CERTIFICATE REQUEST" {
            return Err("spec.request holds no CERTIFICATE REQUEST block".into());
        }
        let (rest, request) = X509CertificationRequest::from_der(block.contents())
            .map_err(|_| "spec.request is not a certificate request in DER")?;
        if !rest.is_empty() {
            return Err("spec.request has something behind the request".into());
        }
        request
            .verify_signature()
            .map_err(|_| "the request is not signed by the key that it is for")?;
        let info = &request.certification_request_info;
        let text = |name: &x509_parser::x509::AttributeTypeAndValue<'_>| {
            name.as_str()
                .map(str::to_owned)
                .map_err(|_| "the subject is not text".to_owned())
        };
        let mut names = info
            .subject
            .iter_common_name()
            .map(text)
            .collect::<Result<Vec<_>, _>>()?;
        let organizations = info
            .subject
            .iter_organization()
            .map(text)
            .collect::<Result<Vec<_>, _>>()?;
        let parts = info.subject.iter_attributes().count();
        if names.len() != 1 {
            return Err("the subject has not exactly one common name".into());
        }
        let foreign_extension = request
            .requested_extensions()
            .into_iter()
            .flatten()
            .find_map(|extension| match extension {
                ParsedExtension::KeyUsage(_) | ParsedExtension::ExtendedKeyUsage(_) => None,
                ParsedExtension::BasicConstraints(constraints) if !constraints.ca => None,
                ParsedExtension::BasicConstraints(_) => Some("an authority's basic constraints"),
                ParsedExtension::SubjectAlternativeName(_) => Some("subject alternative names"),
                _ => Some("an extension that is not offered"),
            });
        Ok(Subject {
            common_name: names.remove(0),
            has_more: parts != 1 + organizations.len(),
            organizations,
            foreign_extension,
            public_key: info.subject_pki.raw.to_vec(),
            der: block.into_contents(),
        })
    }
}
