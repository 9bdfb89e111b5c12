//! What the flags come to: with defaults, and checked. Everything that is wrong is named by its flag.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use evenkeel_api::server::Limits;

use super::flags::{LogFormat, ServeFlags};
use crate::{
    liveness::verdict::Knobs,
    pki::{AuthorityFiles, ServingFiles},
};

/// The largest configuration file that is read.
const MAX_FILE: u64 = 1 << 20;

/// Why the program does not start.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("--config: cannot read {path}: {error}", path = path.display())]
    Unreadable {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("--config: {path}: {error}", path = path.display())]
    Malformed { path: PathBuf, error: String },
    #[error("--{flag}: {reason}")]
    Refused { flag: &'static str, reason: String },
}

fn refused<T>(flag: &'static str, reason: impl Into<String>) -> Result<T, SettingsError> {
    Err(SettingsError::Refused {
        flag,
        reason: reason.into(),
    })
}

/// How the control plane runs.
#[derive(Clone, Debug)]
pub struct Settings {
    pub data_dir: PathBuf,
    pub bind: SocketAddr,
    pub advertise: Vec<String>,
    pub authority: Option<AuthorityFiles>,
    pub liveness: Knobs,
    pub limits: Limits,
    pub log_format: LogFormat,
    pub log_level: String,
}

impl Settings {
    /// Reads the file, if one is named, and checks the whole.
    pub fn resolve(flags: ServeFlags) -> Result<Self, SettingsError> {
        let flags = match &flags.config {
            None => flags,
            Some(path) => {
                let file = read(path)?;
                flags.or(file)
            }
        };
        let Some(data_dir) = flags.data_dir.clone() else {
            return refused(
                "data-dir",
                "is required: where the store, the certificate authority and admin.kubeconfig are kept",
            );
        };
        let bind = flags
            .bind
            .unwrap_or_else(|| SocketAddr::from((Ipv4Addr::UNSPECIFIED, 6443)));
        if let Some(name) = flags.advertise.iter().find(|name| name.trim().is_empty()) {
            return refused("advertise", format!("{name:?} is no name"));
        }
        Ok(Self {
            authority: authority(&flags)?,
            liveness: liveness(&flags)?,
            limits: limits(&flags)?,
            log_format: flags.log_format.unwrap_or_default(),
            log_level: flags.log_level.unwrap_or_else(|| "info".into()),
            advertise: flags.advertise,
            data_dir,
            bind,
        })
    }
}

fn read(path: &PathBuf) -> Result<ServeFlags, SettingsError> {
    let unreadable = |error| SettingsError::Unreadable {
        path: path.clone(),
        error,
    };
    let malformed = |error: String| SettingsError::Malformed {
        path: path.clone(),
        error,
    };
    let size = std::fs::metadata(path).map_err(unreadable)?.len();
    if size > MAX_FILE {
        return Err(malformed(format!("{size} bytes is too large")));
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    if text.trim().is_empty() {
        return Ok(ServeFlags::default());
    }
    serde_saphyr::from_str(&text).map_err(|error| malformed(error.to_string()))
}

fn authority(flags: &ServeFlags) -> Result<Option<AuthorityFiles>, SettingsError> {
    let serving = match (&flags.tls_cert, &flags.tls_key) {
        (None, None) => None,
        (Some(certificate), Some(key)) => Some(ServingFiles {
            certificate: certificate.clone(),
            key: key.clone(),
        }),
        (Some(_), None) => return refused("tls-key", "is required with --tls-cert"),
        (None, Some(_)) => return refused("tls-cert", "is required with --tls-key"),
    };
    match (&flags.ca_cert, &flags.ca_key) {
        (Some(certificate), Some(key)) => Ok(Some(AuthorityFiles {
            certificate: certificate.clone(),
            key: key.clone(),
            serving,
        })),
        (Some(_), None) => refused(
            "ca-key",
            "is required with --ca-cert: agents get their certificates from this authority",
        ),
        (None, Some(_)) => refused("ca-cert", "is required with --ca-key"),
        (None, None) if serving.is_some() => refused(
            "tls-cert",
            "needs --ca-cert and --ca-key: agents trust the authority that signed what is served",
        ),
        (None, None) => Ok(None),
    }
}

fn liveness(flags: &ServeFlags) -> Result<Knobs, SettingsError> {
    let defaults = Knobs::default();
    let or =
        |span: Option<super::value::Span>, default: Duration| span.map_or(default, |span| span.0);
    let knobs = Knobs {
        period: or(flags.cluster_monitor_period, defaults.period),
        grace: or(flags.cluster_monitor_grace_period, defaults.grace),
        startup_grace: or(flags.cluster_startup_grace_period, defaults.startup_grace),
    };
    let shown = |duration| humantime::format_duration(duration);
    if knobs.period < Duration::from_millis(100) {
        return refused(
            "cluster-monitor-period",
            format!("{} is too short: at least 100ms", shown(knobs.period)),
        );
    }
    if knobs.grace <= knobs.period {
        return refused(
            "cluster-monitor-grace-period",
            format!(
                "{} is not longer than --cluster-monitor-period ({})",
                shown(knobs.grace),
                shown(knobs.period)
            ),
        );
    }
    if knobs.startup_grace <= knobs.period {
        return refused(
            "cluster-startup-grace-period",
            format!(
                "{} is not longer than --cluster-monitor-period ({})",
                shown(knobs.startup_grace),
                shown(knobs.period)
            ),
        );
    }
    Ok(knobs)
}

fn limits(flags: &ServeFlags) -> Result<Limits, SettingsError> {
    let mut limits = Limits::default();
    for (flag, given, limit) in [
        (
            "max-connections",
            flags.max_connections,
            &mut limits.max_connections,
        ),
        (
            "max-requests-in-flight",
            flags.max_requests_in_flight,
            &mut limits.max_in_flight,
        ),
        ("max-watches", flags.max_watches, &mut limits.max_watches),
    ] {
        match given {
            Some(0) => return refused(flag, "0 would serve nobody"),
            // A semaphore cannot count further.
            Some(count) if count > 1 << 28 => return refused(flag, format!("{count} is too many")),
            Some(count) => *limit = count,
            None => {}
        }
    }
    if let Some(size) = flags.max_request_body {
        limits.max_body = size.0;
    }
    if let Some(span) = flags.request_timeout {
        limits.request_timeout = span.0;
    }
    if let Some(span) = flags.shutdown_timeout {
        limits.drain_timeout = span.0;
    }
    Ok(limits)
}
