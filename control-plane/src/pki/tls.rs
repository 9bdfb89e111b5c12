//! The TLS side of the server.

use std::sync::Arc;

use rustls::{
    CertificateError, RootCertStore, ServerConfig,
    crypto::CryptoProvider,
    server::{NoServerSessionStorage, ProducesTickets, WebPkiClientVerifier},
};

use super::{Authority, PkiError, serving::Serving};

/// The one provider of the workspace.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// What makes session tickets. One for the life of the process, so that reconnecting stays cheap when the certificate
/// changes.
pub(super) fn ticketer() -> Result<Arc<dyn ProducesTickets>, PkiError> {
    Ok(rustls::crypto::aws_lc_rs::Ticketer::new()?)
}

/// Client certificates are optional, and verified against the authority when given.
pub(super) fn server_config(
    serving: &Serving,
    authority: &Authority,
    ticketer: Arc<dyn ProducesTickets>,
) -> Result<Arc<ServerConfig>, PkiError> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.certificate().clone())?;
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider())
        .allow_unauthenticated()
        .build()
        .map_err(|error| PkiError::Tls(rustls::Error::General(error.to_string())))?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(serving.chain.clone(), serving.key.clone_key())?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    // State of sessions is in the tickets, with the clients: nothing is kept here per connection that ended.
    config.ticketer = ticketer;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 1;
    Ok(Arc::new(config))
}

/// The words of an operator for what rustls says of a certificate.
pub fn explain(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(reason) => match reason {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "the certificate has expired".into()
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "the certificate is not valid yet".into()
            }
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "the certificate is not signed by the given authority".into()
            }
            other => format!("the certificate is not usable: {other:?}"),
        },
        rustls::Error::InconsistentKeys(_) => "the key is not the certificate's".into(),
        other => other.to_string(),
    }
}
