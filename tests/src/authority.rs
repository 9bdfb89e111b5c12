//! A throwaway certificate authority, and certificates signed by an authority of which the files are at hand.

use std::net::IpAddr;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

/// An authority that can sign.
pub struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, as PEM.
#[derive(Clone, Debug)]
pub struct Identity {
    pub certificate: String,
    pub key: String,
}

/// How long a certificate is good, from now; negative for one that has expired.
#[derive(Clone, Copy, Debug)]
pub struct Validity {
    pub from: jiff::SignedDuration,
    pub until: jiff::SignedDuration,
}

impl Validity {
    /// From an hour ago for a day.
    pub const DAY: Self = Self {
        from: jiff::SignedDuration::from_hours(-1),
        until: jiff::SignedDuration::from_hours(24),
    };
    /// Over since an hour ago.
    pub const OVER: Self = Self {
        from: jiff::SignedDuration::from_hours(-2),
        until: jiff::SignedDuration::from_hours(-1),
    };
}

impl Authority {
    /// A new one of this name.
    pub fn new(name: &str) -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = distinguished(name, &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self {
            certificate,
            issuer: Issuer::new(params, key),
        })
    }

    /// That of the PEM texts of a certificate and its key.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, rcgen::Error> {
        let issuer = Issuer::from_ca_cert_pem(certificate, KeyPair::from_pem(key)?)?;
        Ok(Self {
            certificate: certificate.into(),
            issuer,
        })
    }

    /// PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// A certificate for a server at these addresses.
    pub fn server(&self, addresses: &[IpAddr]) -> Result<Identity, rcgen::Error> {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()])?;
        params
            .subject_alt_names
            .extend(addresses.iter().map(|address| SanType::IpAddress(*address)));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params, "server", &[], Validity::DAY, &KeyPair::generate()?)
    }

    /// A client certificate: `name` is the user, `groups` are its groups.
    pub fn client(
        &self,
        name: &str,
        groups: &[&str],
        validity: Validity,
    ) -> Result<Identity, rcgen::Error> {
        self.client_with(name, groups, validity, &KeyPair::generate()?)
    }

    /// The same over a key that is there: making many identities costs a signature each.
    pub fn client_with(
        &self,
        name: &str,
        groups: &[&str],
        validity: Validity,
        key: &KeyPair,
    ) -> Result<Identity, rcgen::Error> {
        let mut params = CertificateParams::default();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params, name, groups, validity, key)
    }

    fn sign(
        &self,
        mut params: CertificateParams,
        name: &str,
        groups: &[&str],
        validity: Validity,
        key: &KeyPair,
    ) -> Result<Identity, rcgen::Error> {
        params.distinguished_name = distinguished(name, groups);
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyEncipherment,
        ];
        let now = crate::clock::now();
        let date = |offset: jiff::SignedDuration| {
            let seconds = now.as_second().saturating_add(offset.as_secs());
            time::OffsetDateTime::from_unix_timestamp(seconds)
                .unwrap_or(time::OffsetDateTime::UNIX_EPOCH)
        };
        params.not_before = date(validity.from);
        params.not_after = date(validity.until);
        let certificate = params.signed_by(key, &self.issuer)?;
        Ok(Identity {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }
}

impl Identity {
    /// For rustls. Fails on PEM that is not ours.
    pub fn parts(
        &self,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), rustls::Error> {
        let bad = |error: rustls::pki_types::pem::Error| rustls::Error::General(error.to_string());
        let chain = CertificateDer::pem_slice_iter(self.certificate.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .map_err(bad)?;
        Ok((
            chain,
            PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(bad)?,
        ))
    }
}

fn distinguished(name: &str, groups: &[&str]) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    // rcgen keeps one value per type: one group is what agents and administrators have.
    if let Some(group) = groups.first() {
        subject.push(DnType::OrganizationName, *group);
    }
    subject.push(DnType::CommonName, name);
    subject
}

/// A client's TLS configuration: trusts `authority` (PEM), shows `identity` if given, and offers `protocols`.
pub fn client_config(
    authority: &str,
    identity: Option<&Identity>,
    protocols: &[&str],
) -> Result<rustls::ClientConfig, rustls::Error> {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
        roots.add(certificate.map_err(|error| rustls::Error::General(error.to_string()))?)?;
    }
    let builder = rustls::ClientConfig::builder_with_provider(
        rustls::crypto::aws_lc_rs::default_provider().into(),
    )
    .with_safe_default_protocol_versions()?
    .with_root_certificates(roots);
    let mut config = match identity {
        Some(identity) => {
            let (chain, key) = identity.parts()?;
            builder.with_client_auth_cert(chain, key)?
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = protocols
        .iter()
        .map(|protocol| protocol.as_bytes().to_vec())
        .collect();
    Ok(config)
}

/// A server's TLS configuration without client certificates.
pub fn server_config(identity: &Identity) -> Result<rustls::ServerConfig, rustls::Error> {
    let (chain, key) = identity.parts()?;
    let mut config = rustls::ServerConfig::builder_with_provider(
        rustls::crypto::aws_lc_rs::default_provider().into(),
    )
    .with_safe_default_protocol_versions()?
    .with_no_client_auth()
    .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// A certificate signing request as `spec.request` carries it: PEM in base64.
pub fn request(common_name: &str, organization: &str) -> Result<String, rcgen::Error> {
    use base64::{Engine, prelude::BASE64_STANDARD};
    let mut params = CertificateParams::default();
    params.distinguished_name = distinguished(common_name, &[organization]);
    let pem = params.serialize_request(&KeyPair::generate()?)?.pem()?;
    Ok(BASE64_STANDARD.encode(pem))
}
