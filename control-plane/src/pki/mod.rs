//! Keys and certificates of the control plane: its authority, the certificate it serves, the administrator's kubeconfig.
//!
//! The authority is made on the first start, under `pki/` of the data directory, or is the operator's. The serving
//! certificate lives in memory and is renewed while it serves; the operator's is read again when its files change.
//! Key material is never logged, and no error shows any.

mod authority;
mod error;
mod files;
pub mod kubeconfig;
mod serving;
#[cfg(test)]
mod tests;
mod tls;

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use evenkeel_api::access::Clock;
use jiff::Timestamp;
use parking_lot::Mutex;
use rcgen::SanType;
use rustls::{ServerConfig, pki_types::CertificateDer, server::ProducesTickets};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use x509_parser::prelude::{FromDer as _, X509Certificate};

pub(crate) use authority::certificate_pem;
pub use authority::{Authority, subject};
pub use error::PkiError;
pub use serving::ServingFiles;
pub use tls::{explain, provider};

use serving::Serving;

/// How often expiry is looked at.
const LOOK_PERIOD: Duration = Duration::from_hours(1);
/// The same where the operator's files may change at any time.
const FILES_PERIOD: Duration = Duration::from_mins(1);

/// Files of the operator's own authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorityFiles {
    /// PEM.
    pub certificate: PathBuf,
    /// PEM; needed, since agents and the administrator get their certificates from this authority.
    pub key: PathBuf,
    /// A serving certificate that the authority has signed. Without one, the control plane issues its own.
    pub serving: Option<ServingFiles>,
}

/// Where key material is and what it is for.
#[derive(Clone, Debug)]
pub struct PkiOptions {
    pub data_dir: PathBuf,
    /// The address that the server is bound to (with the real port).
    pub bind: SocketAddr,
    /// Further DNS names and IP addresses that clients reach the server by.
    pub advertise: Vec<String>,
    /// The operator's authority, instead of one of our own.
    pub operator: Option<AuthorityFiles>,
}

/// The key material of a running control plane.
pub struct Pki {
    authority: Arc<Authority>,
    names: Vec<SanType>,
    operator_serving: Option<ServingFiles>,
    admin_kubeconfig: PathBuf,
    server: String,
    ticketer: Arc<dyn ProducesTickets>,
    shown: Mutex<Shown>,
    config: watch::Sender<Arc<ServerConfig>>,
}

/// What is served now.
struct Shown {
    leaf: CertificateDer<'static>,
    not_after: Timestamp,
    /// The last complaint about the operator's files, said once.
    complaint: Option<String>,
}

impl fmt::Debug for Pki {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pki")
            .field("authority", &self.authority)
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// Less than a third of its life is left.
fn is_due(not_after: Timestamp, lifetime: Duration, now: Timestamp) -> bool {
    let left = not_after.duration_since(now);
    left < jiff::SignedDuration::try_from(lifetime / 3).unwrap_or(jiff::SignedDuration::MAX)
}

fn not_after(der: &[u8]) -> Option<Timestamp> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()
}

impl Pki {
    /// Opens or makes everything, and writes the administrator's kubeconfig (`admin.kubeconfig` in the data directory).
    pub fn open(options: &PkiOptions, now: Timestamp) -> Result<Self, PkiError> {
        let authority = Arc::new(match &options.operator {
            None => Authority::open_or_create(&options.data_dir.join("pki"), now)?,
            Some(files) => Authority::load(&files.certificate, &files.key, now)?,
        });
        if is_due(authority.not_after(), Duration::from_hours(365 * 24), now) {
            tracing::warn!(not_after = %authority.not_after(), "the certificate authority expires within months");
        }
        let names = serving::names(
            options.bind.ip(),
            serving::host_name().as_deref(),
            &options.advertise,
        )?;
        let operator_serving = options
            .operator
            .as_ref()
            .and_then(|files| files.serving.clone());
        let serving = match &operator_serving {
            None => Serving::issue(&authority, &names, now)?,
            Some(files) => Serving::load(files, &authority, now)?,
        };
        let ticketer = tls::ticketer()?;
        let config = tls::server_config(&serving, &authority, Arc::clone(&ticketer))?;
        let pki = Self {
            names,
            operator_serving,
            admin_kubeconfig: options.data_dir.join("admin.kubeconfig"),
            server: local_url(options.bind),
            ticketer,
            shown: Mutex::new(Shown {
                leaf: serving.chain[0].clone(),
                not_after: serving.not_after(),
                complaint: None,
            }),
            config: watch::Sender::new(config),
            authority,
        };
        pki.ensure_admin_kubeconfig(now)?;
        Ok(pki)
    }

    /// The TLS configuration to accept connections with; it changes when the certificate does.
    pub fn server_config(&self) -> watch::Receiver<Arc<ServerConfig>> {
        self.config.subscribe()
    }

    pub fn authority(&self) -> &Arc<Authority> {
        &self.authority
    }

    /// `sha256:<hex>` of the authority's public key: what an agent checks before it trusts.
    pub fn ca_pin(&self) -> &str {
        self.authority.pin()
    }

    pub fn ca_pem(&self) -> String {
        self.authority.certificate_pem()
    }

    pub fn admin_kubeconfig(&self) -> &Path {
        &self.admin_kubeconfig
    }

    /// The URL of the server as seen from this host.
    pub fn local_server(&self) -> &str {
        &self.server
    }

    /// When the serving certificate expires.
    pub fn serving_not_after(&self) -> Timestamp {
        self.shown.lock().not_after
    }

    fn ensure_admin_kubeconfig(&self, now: Timestamp) -> Result<(), PkiError> {
        if kubeconfig::ensure_admin(&self.admin_kubeconfig, &self.server, &self.authority, now)? {
            tracing::info!(path = %self.admin_kubeconfig.display(), "wrote the administrator's kubeconfig");
        }
        Ok(())
    }

    /// Renews what is due, and reads the operator's files again. Runs until `stop`.
    pub async fn run(&self, clock: Clock, stop: CancellationToken) {
        let mut look = tokio::time::interval(if self.operator_serving.is_some() {
            FILES_PERIOD
        } else {
            LOOK_PERIOD
        });
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = look.tick() => self.look(clock()),
            }
        }
    }

    /// One look: what fails is told, and what is served stays.
    pub fn look(&self, now: Timestamp) {
        if let Err(error) = self.renew_serving(now) {
            let complaint = error.to_string();
            let mut shown = self.shown.lock();
            if shown.complaint.as_deref() != Some(&complaint) {
                tracing::warn!(%error, not_after = %shown.not_after, "the serving certificate stays as it is");
                shown.complaint = Some(complaint);
            }
        }
        if let Err(error) = self.ensure_admin_kubeconfig(now) {
            tracing::warn!(%error, "the administrator's kubeconfig could not be renewed");
        }
    }

    fn renew_serving(&self, now: Timestamp) -> Result<(), PkiError> {
        let serving = match &self.operator_serving {
            // One that ends with the authority cannot be renewed into a longer life.
            None if is_due(self.serving_not_after(), serving::LIFETIME, now)
                && self.authority.not_after() > self.serving_not_after() =>
            {
                Serving::issue(&self.authority, &self.names, now)?
            }
            None => return Ok(()),
            Some(files) => Serving::load(files, &self.authority, now)?,
        };
        let mut shown = self.shown.lock();
        shown.complaint = None;
        if shown.leaf == serving.chain[0] {
            return Ok(());
        }
        let config = tls::server_config(&serving, &self.authority, Arc::clone(&self.ticketer))?;
        shown.leaf = serving.chain[0].clone();
        shown.not_after = serving.not_after();
        self.config.send_replace(config);
        tracing::info!(not_after = %shown.not_after, "serving certificate renewed");
        Ok(())
    }
}

/// An address that is bound to all interfaces is reached by the loopback one.
fn local_url(bind: SocketAddr) -> String {
    let ip = match bind.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    format!("https://{}", SocketAddr::new(ip, bind.port()))
}
