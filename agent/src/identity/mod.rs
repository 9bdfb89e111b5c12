//! Who the agent is to the control plane: its key, its certificate, and the authority that it believes.
//!
//! Got once with a bootstrap token ([`enrol`]), kept where the agent runs ([`Store`]), renewed by itself ([`renew`]).

mod discover;
mod enrol;
mod renew;
mod request;
mod store;

use std::{fmt, sync::Arc};

use evenkeel_shared::identity::agent_user;
use jiff::Timestamp;
use rustls::{
    ClientConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use x509_parser::prelude::{FromDer, X509Certificate};

pub use enrol::{Enrolment, obtain};
pub use renew::keep_fresh;
pub use store::Store;

use crate::transport::{self, Credentials, Failure, TrustError};

/// Why the agent has no identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error("the agent has no identity yet and no bootstrap token: give --token or --token-file")]
    NoToken,
    #[error(
        "the agent's certificate expired at {0} and there is no bootstrap token to enrol again: give --token or \
         --token-file"
    )]
    Expired(Timestamp),
    #[error("--token-file {0}: {1}")]
    TokenFile(std::path::PathBuf, String),
    #[error("--ca-file {0}: {1}")]
    CaFile(std::path::PathBuf, String),
    #[error("nothing tells whom to trust: give --ca-pin or --ca-file")]
    NoTrust,
    #[error(
        "the control plane does not show a CA with the pinned key: wrong --ca-pin, or not the right server"
    )]
    PinMismatch,
    #[error(
        "the identity belongs to {found}, not to cluster {wanted}: wrong identity directory, or wrong --cluster-name"
    )]
    Foreign { found: String, wanted: String },
    #[error("the stored identity cannot be used: {0}")]
    Malformed(String),
    #[error("the identity cannot be kept in {place}: {cause}")]
    Store { place: String, cause: String },
    #[error("the control plane denied the certificate: {0}")]
    Denied(String),
    #[error("the control plane did not issue the certificate within {}", humantime::format_duration(*.0))]
    NotIssued(std::time::Duration),
    #[error(transparent)]
    Control(#[from] Failure),
    #[error(transparent)]
    Trust(#[from] TrustError),
    #[error("no key: {0}")]
    Key(#[from] rcgen::Error),
}

impl IdentityError {
    /// Whether trying again cannot help until somebody changes what the agent was told.
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            Self::NoToken
                | Self::Expired(_)
                | Self::NoTrust
                | Self::TokenFile(..)
                | Self::CaFile(..)
                | Self::Foreign { .. }
        )
    }
}

/// Key, certificate and authority. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// PEM of the control plane's CA.
    pub authority: String,
    /// PEM of the key, then the certificate's chain.
    pub client: String,
    /// Validity of the certificate.
    pub not_before: Timestamp,
    /// Validity of the certificate.
    pub not_after: Timestamp,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("not_after", &self.not_after)
            .finish_non_exhaustive()
    }
}

impl Identity {
    /// Reads PEM texts and checks that they are this cluster's.
    pub fn new(authority: String, client: String, cluster: &str) -> Result<Self, IdentityError> {
        let malformed = |what: &str| IdentityError::Malformed(what.to_owned());
        let chain = certificates(&client)?;
        let first = chain.first().ok_or_else(|| malformed("no certificate"))?;
        PrivateKeyDer::from_pem_slice(client.as_bytes())
            .map_err(|_| malformed("no private key"))?;
        if certificates(&authority)?.is_empty() {
            return Err(malformed("no certificate authority"));
        }
        let (_, parsed) = X509Certificate::from_der(first)
            .map_err(|_| malformed("the certificate is not readable"))?;
        let user = parsed
            .subject()
            .iter_common_name()
            .next()
            .and_then(|name| name.as_str().ok())
            .unwrap_or_default();
        if user != agent_user(cluster) {
            return Err(IdentityError::Foreign {
                found: user.to_owned(),
                wanted: cluster.to_owned(),
            });
        }
        let moment =
            |seconds| Timestamp::from_second(seconds).map_err(|_| malformed("impossible validity"));
        let not_before = moment(parsed.validity().not_before.timestamp())?;
        let not_after = moment(parsed.validity().not_after.timestamp())?;
        Ok(Self {
            authority,
            client,
            not_before,
            not_after,
        })
    }

    /// What a connection needs.
    pub fn credentials(&self) -> Result<Credentials, IdentityError> {
        let key = PrivateKeyDer::from_pem_slice(self.client.as_bytes())
            .map_err(|_| IdentityError::Malformed("no private key".to_owned()))?;
        Ok(Credentials {
            tls: self.tls(Some((certificates(&self.client)?, key)))?,
            bearer: None,
        })
    }

    fn tls(
        &self,
        client: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
    ) -> Result<Arc<ClientConfig>, IdentityError> {
        Ok(transport::client_config(
            &certificates(&self.authority)?,
            client,
        )?)
    }
}

/// The certificates of a PEM text, in order.
pub(crate) fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| IdentityError::Malformed(error.to_string()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A self-made identity of `cluster`, valid from `from` to `to` (seconds since 1970).
    pub fn identity(cluster: &str, from: i64, to: i64) -> Result<Identity, IdentityError> {
        let mut params = rcgen::CertificateParams::default();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, agent_user(cluster));
        let date = |seconds: i64| {
            rcgen::date_time_ymd(1970, 1, 1)
                + std::time::Duration::from_secs(seconds.unsigned_abs())
        };
        params.not_before = date(from);
        params.not_after = date(to);
        let key = rcgen::KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        Identity::new(
            certificate.pem(),
            format!("{}{}", key.serialize_pem(), certificate.pem()),
            cluster,
        )
    }

    #[test]
    fn reads_its_own_and_refuses_another_clusters() {
        let own = identity("m1", 1_000, 4_000).unwrap();
        assert_eq!(own.not_before.as_second(), 1_000);
        assert_eq!(own.not_after.as_second(), 4_000);
        assert!(own.credentials().is_ok());
        let error = Identity::new(own.authority.clone(), own.client.clone(), "m2").unwrap_err();
        assert!(
            matches!(&error, IdentityError::Foreign { found, .. } if found.ends_with(":m1")),
            "{error}"
        );
        assert!(!format!("{own:?}").contains("PRIVATE"));
    }

    #[test]
    fn damaged_files_are_told_apart() {
        let own = identity("m1", 1, 2).unwrap();
        let only_certificate = own.authority.clone();
        for (authority, client, what) in [
            (own.authority.as_str(), "", "no certificate"),
            (&own.authority, &only_certificate, "no private key"),
            ("", &own.client, "no certificate authority"),
        ] {
            let error = Identity::new(authority.to_owned(), client.to_owned(), "m1").unwrap_err();
            assert!(error.to_string().contains(what), "{error}");
        }
    }
}
