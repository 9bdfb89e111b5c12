//! The certificate authority: it vouches for the control plane, its administrator and its agents.

use std::{fmt, path::Path, time::Duration};

use aws_lc_rs::rand::fill;
use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData, SerialNumber,
};
use rustls::pki_types::CertificateDer;
use sha2::{Digest as _, Sha256};
use x509_parser::{
    prelude::{FromDer as _, X509Certificate},
    time::ASN1Time,
};

use super::{PkiError, files};

/// Clocks of the two sides may differ by this much at the start of a certificate's life.
const BACKDATE: Duration = Duration::from_mins(5);
/// How long the control plane's own authority lives.
const LIFETIME: Duration = Duration::from_hours(10 * 365 * 24);

/// A certificate and its key. Printing it shows neither key nor certificate.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    not_before: Timestamp,
    not_after: Timestamp,
    pin: String,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority")
            .field("pin", &self.pin)
            .field("not_after", &self.not_after)
            .finish_non_exhaustive()
    }
}

/// A subject: common name, and organization where there is one.
pub fn subject(common_name: &str, organization: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name.push(DnType::CommonName, common_name);
    name
}

fn date(time: Timestamp) -> Result<ASN1Time, PkiError> {
    ASN1Time::from_timestamp(time.as_second()).map_err(|error| PkiError::Issue(error.to_string()))
}

fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}

fn hex_digits(mut text: String, byte: u8) -> String {
    use fmt::Write as _;
    let _ = write!(text, "{byte:02x}");
    text
}

fn random_serial() -> Result<SerialNumber, PkiError> {
    let mut bytes = [0_u8; 16];
    fill(&mut bytes)
        .map_err(|_| PkiError::Issue("the system gives no random numbers".to_owned()))?;
    // A serial number is positive and has no leading zero.
    bytes[0] = (bytes[0] & 0x7f) | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}

impl Authority {
    /// Opens the control plane's own authority in a directory, or makes it when there is none.
    pub fn open_or_create(directory: &Path, now: Timestamp) -> Result<Self, PkiError> {
        files::private_directory(directory)?;
        let (certificate, key) = (directory.join("ca.crt"), directory.join("ca.key"));
        if files::read_if_there(&certificate)?.is_some() {
            return Self::load(&certificate, &key, now);
        }
        // The key goes first: one without a certificate is left by a crash, and nobody has trusted it yet.
        let (certificate_pem, key_pem) = Self::generate(now)?;
        files::write_private(&key, key_pem.as_bytes())?;
        files::write_private(&certificate, certificate_pem.as_bytes())?;
        tracing::info!(directory = %directory.display(), "made a certificate authority");
        Self::load(&certificate, &key, now)
    }

    fn generate(now: Timestamp) -> Result<(String, String), PkiError> {
        let issue = |error: rcgen::Error| PkiError::Issue(error.to_string());
        let key = KeyPair::generate().map_err(issue)?;
        let mut params = CertificateParams::default();
        // No two authorities share a name, so that clients and error texts can tell one from another.
        let serial = random_serial()?;
        let name = serial.as_ref()[..4]
            .iter()
            .copied()
            .fold("evenkeel-ca-".to_owned(), hex_digits);
        params.distinguished_name = subject(&name, None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        params.serial_number = Some(serial);
        params.not_before =
            date(now.checked_sub(BACKDATE).unwrap_or(Timestamp::MIN))?.to_datetime();
        params.not_after = date(later(now, LIFETIME))?.to_datetime();
        let certificate = params.self_signed(&key).map_err(issue)?;
        Ok((certificate.pem(), key.serialize_pem()))
    }

    /// Reads an authority from a certificate file and a key file, and checks that they are one, and good now.
    pub fn load(
        certificate_path: &Path,
        key_path: &Path,
        now: Timestamp,
    ) -> Result<Self, PkiError> {
        let bad = |reason: String| PkiError::file(certificate_path, reason);
        let text = files::read(certificate_path)?;
        let der = files::certificates(certificate_path, &text)?.remove(0);
        let key_der = files::private_key(key_path, &files::read(key_path)?)?;
        let key = KeyPair::try_from(key_der)
            .map_err(|_| PkiError::file(key_path, "not a private key of a supported kind"))?;
        let (not_before, not_after, spki) = {
            let (_, certificate) = X509Certificate::from_der(&der)
                .map_err(|error| bad(format!("not a certificate: {error}")))?;
            if !certificate.is_ca() {
                return Err(bad("not the certificate of an authority".into()));
            }
            if certificate
                .key_usage()
                .ok()
                .flatten()
                .is_some_and(|usage| !usage.value.key_cert_sign())
            {
                return Err(bad("its key may not sign certificates".into()));
            }
            let time = |time: ASN1Time| {
                Timestamp::from_second(time.timestamp())
                    .map_err(|_| bad("validity out of range".into()))
            };
            (
                time(certificate.validity().not_before)?,
                time(certificate.validity().not_after)?,
                certificate.public_key().raw.to_vec(),
            )
        };
        if spki != key.subject_public_key_info() {
            return Err(PkiError::file(
                key_path,
                format!(
                    "not the key of the certificate in {}",
                    certificate_path.display()
                ),
            ));
        }
        if now > not_after {
            return Err(bad(format!("expired at {not_after}")));
        }
        if now < not_before {
            return Err(bad(format!("not valid before {not_before}")));
        }
        let certificate = CertificateDer::from(der);
        let issuer = Issuer::from_ca_cert_der(&certificate, key)
            .map_err(|error| bad(format!("cannot be used to issue: {error}")))?;
        let pin = Sha256::digest(&spki)
            .into_iter()
            .fold("sha256:".to_owned(), hex_digits);
        Ok(Self {
            issuer,
            certificate,
            not_before,
            not_after,
            pin,
        })
    }

    /// Issues a certificate for a public key, from five minutes ago for `lifetime`, but never beyond the authority's
    /// own life. The rest is as `params` say.
    pub fn issue(
        &self,
        mut params: CertificateParams,
        key: &impl PublicKeyData,
        lifetime: Duration,
        now: Timestamp,
    ) -> Result<rcgen::Certificate, PkiError> {
        let not_before = now.checked_sub(BACKDATE).unwrap_or(Timestamp::MIN);
        params.not_before = date(not_before.max(self.not_before))?.to_datetime();
        params.not_after = date(later(now, lifetime).min(self.not_after))?.to_datetime();
        params.serial_number = Some(random_serial()?);
        params.use_authority_key_identifier_extension = true;
        params
            .signed_by(key, &self.issuer)
            .map_err(|error| PkiError::Issue(error.to_string()))
    }

    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    pub fn certificate_pem(&self) -> String {
        certificate_pem(&self.certificate)
    }

    pub fn not_after(&self) -> Timestamp {
        self.not_after
    }

    /// `sha256:` and the hex digest of the public key's SubjectPublicKeyInfo: kubeadm's form.
    pub fn pin(&self) -> &str {
        &self.pin
    }
}

pub(crate) fn certificate_pem(der: &[u8]) -> String {
    pem::encode_config(
        &pem::Pem::new("CERTIFICATE", der),
        pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF),
    )
}
