//! Client certificates.

use std::fmt::Write as _;

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{Authenticator, BadCredential, Clock, Credentials, UserInfo};

/// Reads the identity out of a client certificate: common name = user, organizations = groups.
///
/// TLS has verified the chain when the connection was made. Connections and resumed sessions outlive certificates, so
/// validity is looked at again with every request.
pub struct CertificateAuthenticator {
    clock: Clock,
}

/// What a certificate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub user: UserInfo,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
}

impl CertificateAuthenticator {
    pub fn new(clock: Clock) -> Self {
        Self { clock }
    }

    /// Parses a certificate in DER; says nothing of who signed it or whether it is valid now.
    pub fn identity(der: &[u8]) -> Result<Identity, BadCredential> {
        let (_, certificate) = X509Certificate::from_der(der)
            .map_err(|error| BadCredential(format!("unreadable client certificate: {error}")))?;
        let mut names = certificate.subject().iter_common_name();
        let name = names
            .next()
            .and_then(|name| name.as_str().ok())
            .filter(|name| !name.is_empty())
            .ok_or_else(|| BadCredential("client certificate without a common name".into()))?;
        let groups = certificate
            .subject()
            .iter_organization()
            .map(|group| group.as_str().map(str::to_owned))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| {
                BadCredential("client certificate with an unreadable organization".into())
            })?;
        let time = |time: x509_parser::time::ASN1Time| {
            Timestamp::from_second(time.timestamp()).map_err(|_| {
                BadCredential("client certificate with a validity out of range".into())
            })
        };
        let validity = certificate.validity();
        Ok(Identity {
            user: UserInfo {
                name: name.to_owned(),
                uid: String::new(),
                groups,
                extra: [(
                    "authentication.kubernetes.io/credential-id".to_owned(),
                    vec![format!("X509SHA256={}", hex(&Sha256::digest(der)))],
                )]
                .into(),
            },
            not_before: time(validity.not_before)?,
            not_after: time(validity.not_after)?,
        })
    }
}

impl Authenticator for CertificateAuthenticator {
    fn authenticate(
        &self,
        credentials: &Credentials<'_>,
    ) -> Result<Option<UserInfo>, BadCredential> {
        let Some(der) = credentials.certificate else {
            return Ok(None);
        };
        let Identity {
            user,
            not_before,
            not_after,
        } = Self::identity(der)?;
        let now = (self.clock)();
        if now > not_after {
            return Err(BadCredential(format!(
                "client certificate of \"{}\" expired at {not_after}",
                user.name
            )));
        }
        if now < not_before {
            return Err(BadCredential(format!(
                "client certificate of \"{}\" is not valid before {not_before}",
                user.name
            )));
        }
        Ok(Some(user))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
