//! The certificate that the control plane shows: issued by its authority, or the operator's.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::PathBuf,
    time::Duration,
};

use jiff::Timestamp;
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose, SanType};
use rustls::{
    RootCertStore,
    client::verify_server_cert_signed_by_trust_anchor,
    pki_types::{CertificateDer, PrivateKeyDer, UnixTime},
    server::ParsedCertificate,
};

use super::{Authority, PkiError, authority::subject, files, tls};

/// A serving certificate lives this long, in memory only: every start issues a new one.
pub(super) const LIFETIME: Duration = Duration::from_hours(90 * 24);

/// Names under which the control plane is reached inside a Kubernetes cluster.
const SERVICE_NAMES: [&str; 4] = [
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// Files of the operator's own serving certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServingFiles {
    /// PEM: the certificate, then its intermediates.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// A certificate chain with its key.
pub(super) struct Serving {
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
}

/// All names of the serving certificate: the fixed ones, the host's own, the bound address and the advertised ones.
pub(super) fn names(
    bind: IpAddr,
    host: Option<&str>,
    advertise: &[String],
) -> Result<Vec<SanType>, PkiError> {
    let mut names = Vec::new();
    let mut add = |name: SanType| {
        if !names.contains(&name) {
            names.push(name);
        }
    };
    let dns = |name: &str| -> Result<SanType, String> {
        // What may be in a certificate is more than what a client will ever match.
        rustls::pki_types::DnsName::try_from(name.strip_prefix("*.").unwrap_or(name))
            .map_err(|_| "neither an IP address nor a DNS name".to_owned())?;
        name.try_into()
            .map(SanType::DnsName)
            .map_err(|error: rcgen::Error| error.to_string())
    };
    for name in ["localhost"].into_iter().chain(SERVICE_NAMES) {
        add(dns(name).map_err(PkiError::Issue)?);
    }
    add(SanType::IpAddress(Ipv4Addr::LOCALHOST.into()));
    add(SanType::IpAddress(Ipv6Addr::LOCALHOST.into()));
    if !bind.is_unspecified() {
        add(SanType::IpAddress(bind));
    }
    // A host's name may be anything; one that cannot be in a certificate is no name to reach it by.
    if let Some(Ok(name)) = host.map(dns) {
        add(name);
    }
    for name in advertise {
        add(match name.parse::<IpAddr>() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => dns(name).map_err(|reason| PkiError::Advertise {
                name: name.clone(),
                reason,
            })?,
        });
    }
    Ok(names)
}

impl Serving {
    pub fn issue(
        authority: &Authority,
        names: &[SanType],
        now: Timestamp,
    ) -> Result<Self, PkiError> {
        let key = KeyPair::generate().map_err(|error| PkiError::Issue(error.to_string()))?;
        let mut params = CertificateParams::default();
        params.distinguished_name = subject("evenkeel-control-plane", None);
        params.subject_alt_names = names.to_vec();
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = authority.issue(params, &key, LIFETIME, now)?;
        Ok(Self {
            chain: vec![certificate.into(), authority.certificate().clone()],
            key: PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        })
    }

    /// Reads the operator's certificate and key, and checks that clients which trust the authority will accept them.
    pub fn load(
        files_: &ServingFiles,
        authority: &Authority,
        now: Timestamp,
    ) -> Result<Self, PkiError> {
        let path = &files_.certificate;
        let chain: Vec<_> = files::certificates(path, &files::read(path)?)?
            .into_iter()
            .map(CertificateDer::from)
            .collect();
        let key = files::private_key(&files_.key, &files::read(&files_.key)?)?;
        let key = PrivateKeyDer::try_from(key)
            .map_err(|_| PkiError::file(&files_.key, "not a private key of a supported kind"))?;
        let bad = |error: rustls::Error| PkiError::file(path, super::tls::explain(&error));
        let leaf = ParsedCertificate::try_from(&chain[0]).map_err(bad)?;
        let mut roots = RootCertStore::empty();
        roots.add(authority.certificate().clone()).map_err(bad)?;
        let seconds = u64::try_from(now.as_second()).unwrap_or(0);
        verify_server_cert_signed_by_trust_anchor(
            &leaf,
            &roots,
            &chain[1..],
            UnixTime::since_unix_epoch(Duration::from_secs(seconds)),
            tls::provider().signature_verification_algorithms.all,
        )
        .map_err(bad)?;
        rustls::sign::CertifiedKey::from_der(chain.clone(), key.clone_key(), &tls::provider())
            .map_err(|error| PkiError::file(&files_.key, super::tls::explain(&error)))?;
        Ok(Self { chain, key })
    }

    /// When the leaf expires.
    pub fn not_after(&self) -> Timestamp {
        super::not_after(&self.chain[0]).unwrap_or(Timestamp::MIN)
    }
}

/// The name of this host, where the system tells it in a file.
pub(super) fn host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cover_all_ways_to_reach_the_server_once() {
        let names = |bind: &str, host, advertise: &[&str]| {
            names(
                bind.parse().unwrap(),
                host,
                &advertise.iter().map(|&a| a.to_owned()).collect::<Vec<_>>(),
            )
        };
        let fixed = names("0.0.0.0", None, &[]).unwrap();
        assert_eq!(fixed.len(), 7);
        let all = names(
            "10.0.0.7",
            Some("box"),
            &[
                "fleet.example.com",
                "10.0.0.7",
                "*.example.com",
                "2001:db8::1",
            ],
        )
        .unwrap();
        assert_eq!(all.len(), 7 + 5);
        assert_eq!(names("::", Some("under_score!"), &[]).unwrap().len(), 7);
        for bad in ["", "a b", "host:6443", "https://x", "-x", "*"] {
            let error = names("::", None, &[bad]).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("advertised address \"{bad}\"")),
                "{error}"
            );
        }
    }
}
