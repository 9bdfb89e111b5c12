//! Whom the agent believes: certificate authorities, and at enrolment the pin of one.

use std::sync::Arc;

use parking_lot::Mutex;
use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime},
};
use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};

/// What is wrong with keys or certificates.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("holds no certificate")]
    NoCertificate,
    #[error("not a certificate: {0}")]
    Malformed(String),
    #[error(transparent)]
    Tls(#[from] rustls::Error),
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// TLS that believes these authorities and shows this certificate, if any.
pub fn client_config(
    authorities: &[CertificateDer<'static>],
    identity: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
) -> Result<Arc<ClientConfig>, TrustError> {
    if authorities.is_empty() {
        return Err(TrustError::NoCertificate);
    }
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority.clone())?;
    }
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    Ok(Arc::new(match identity {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key)?,
        None => builder.with_no_client_auth(),
    }))
}

/// Whether the certificate's public key is the pinned one.
pub fn pinned(certificate: &CertificateDer<'_>, pin: &[u8; 32]) -> Result<bool, TrustError> {
    let (_, parsed) = X509Certificate::from_der(certificate)
        .map_err(|error| TrustError::Malformed(error.to_string()))?;
    Ok(Sha256::digest(parsed.public_key().raw).as_slice() == pin)
}

/// The chains that servers showed on an [`unverified`] connection.
#[derive(Clone, Debug, Default)]
pub struct Presented(Arc<Mutex<Vec<CertificateDer<'static>>>>);

impl Presented {
    /// The last chain, end entity first.
    pub fn chain(&self) -> Vec<CertificateDer<'static>> {
        self.0.lock().clone()
    }
}

/// TLS that believes anybody, to read what is public and to see the chain. Nothing secret may go over it.
pub fn unverified() -> Result<(Arc<ClientConfig>, Presented), TrustError> {
    let presented = Presented::default();
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Witness {
            presented: presented.clone(),
            provider: provider(),
        }))
        .with_no_client_auth();
    Ok((Arc::new(config), presented))
}

/// Takes any chain, and remembers it.
#[derive(Debug)]
struct Witness {
    presented: Presented,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Witness {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        *self.presented.0.lock() = std::iter::once(end_entity)
            .chain(intermediates)
            .map(|certificate| certificate.clone().into_owned())
            .collect();
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
