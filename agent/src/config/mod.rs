//! What the agent was told, checked. Nothing below this module reads flags, variables or the configuration file.

mod flags;
#[cfg(test)]
mod tests;

use std::{fmt, net::SocketAddr, path::PathBuf, time::Duration};

use evenkeel_shared::syntax;
use http::Uri;

pub use flags::{Command, Flags, LogFormat, Span};

/// The control plane's default grace period: a lease that is renewed more seldom makes a live cluster Unknown.
const GRACE_PERIOD: Duration = Duration::from_secs(40);
/// Longest name of a cluster: its namespace and lease add to it.
const LONGEST_NAME: usize = 48;

/// Why the agent does not start. Each names the flag.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("--config {path}: {reason}")]
    File { path: PathBuf, reason: String },
    #[error("--{flag} is missing: {reason}")]
    Missing {
        flag: &'static str,
        reason: &'static str,
    },
    #[error("--{flag} {value}: {reason}")]
    Refused {
        flag: &'static str,
        value: String,
        reason: String,
    },
}

/// Where the bootstrap token comes from. Never printed.
#[derive(Clone)]
pub enum TokenSource {
    Literal(String),
    File(PathBuf),
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(_) => f.write_str("Literal(..)"),
            Self::File(path) => write!(f, "File({})", path.display()),
        }
    }
}

/// What a control plane is known by before the agent has an identity.
#[derive(Clone, Debug)]
pub enum Trust {
    /// SHA-256 of the CA's SubjectPublicKeyInfo.
    Pin([u8; 32]),
    /// A PEM file.
    CaFile(PathBuf),
}

/// How the member is reached.
#[derive(Clone, Debug)]
pub enum MemberAccess {
    Kubeconfig {
        path: PathBuf,
        context: Option<String>,
    },
    InCluster,
}

/// Where key and certificate are kept.
#[derive(Clone, Debug)]
pub enum IdentityPlace {
    Directory(PathBuf),
    /// A Secret in the member, in the pod's namespace.
    Secret {
        name: String,
    },
}

/// Timings of liveness, all positive and in order.
#[derive(Clone, Debug)]
pub struct Timings {
    pub status_frequency: Duration,
    pub probe_timeout: Duration,
    pub success_threshold: Duration,
    pub failure_threshold: Duration,
    pub lease_duration: Duration,
    pub lease_interval: Duration,
}

/// Everything, checked.
#[derive(Clone, Debug)]
pub struct Settings {
    pub servers: Vec<Uri>,
    pub token: Option<TokenSource>,
    pub trust: Option<Trust>,
    pub cluster: String,
    pub provider: Option<String>,
    pub region: Option<String>,
    pub zones: Option<Vec<String>>,
    pub member: MemberAccess,
    pub identity: IdentityPlace,
    pub timings: Timings,
    pub health_bind: SocketAddr,
    pub log_format: LogFormat,
    pub log_level: String,
}

/// The surroundings that defaults depend on, read once by `main`.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// A pod's service account is at hand.
    pub in_cluster: bool,
    /// The directory for state that the service manager or the desktop gave.
    pub state_home: Option<PathBuf>,
}

/// Reads the flags of a configuration file.
pub fn read_file(path: &std::path::Path) -> Result<Flags, ConfigError> {
    let refused = |reason: String| ConfigError::File {
        path: path.to_owned(),
        reason,
    };
    let text = std::fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
    if text.lines().all(|line| {
        let line = line.trim();
        line.is_empty() || line.starts_with('#') || line == "---"
    }) {
        return Ok(Flags::default());
    }
    serde_saphyr::from_str(&text).map_err(|error| refused(error.to_string()))
}

fn refused<T>(
    flag: &'static str,
    value: impl fmt::Display,
    reason: impl Into<String>,
) -> Result<T, ConfigError> {
    Err(ConfigError::Refused {
        flag,
        value: value.to_string(),
        reason: reason.into(),
    })
}

impl Settings {
    /// Checks flags, in the order in which `--help` lists them.
    pub fn new(flags: Flags, around: &Surroundings) -> Result<Self, ConfigError> {
        let servers = servers(flags.server.as_deref().unwrap_or_default())?;
        let token = match (flags.token, flags.token_file) {
            (Some(token), _) => {
                check_token(&token)?;
                Some(TokenSource::Literal(token))
            }
            (None, file) => file.map(TokenSource::File),
        };
        let trust = match (flags.ca_pin, flags.ca_file) {
            (Some(pin), _) => Some(Trust::Pin(ca_pin(&pin)?)),
            (None, file) => file.map(Trust::CaFile),
        };
        let cluster = cluster_name(flags.cluster_name)?;
        label_value("cluster-provider", flags.cluster_provider.as_deref())?;
        label_value("cluster-region", flags.cluster_region.as_deref())?;
        for zone in flags.cluster_zones.iter().flatten() {
            label_value("cluster-zones", Some(zone))?;
        }
        let in_pod = flags.kubeconfig.is_none();
        let member = match flags.kubeconfig {
            Some(path) => MemberAccess::Kubeconfig {
                path,
                context: flags.context,
            },
            None if flags.context.is_some() => {
                return refused(
                    "context",
                    flags.context.unwrap_or_default(),
                    "needs --kubeconfig",
                );
            }
            None if around.in_cluster => MemberAccess::InCluster,
            None => {
                return Err(ConfigError::Missing {
                    flag: "kubeconfig",
                    reason: "the agent does not run in a pod, so it must be told how to reach the member",
                });
            }
        };
        let identity = match (flags.identity_dir, flags.identity_secret) {
            (Some(directory), _) => IdentityPlace::Directory(directory),
            (None, Some(name)) if in_pod => IdentityPlace::Secret { name },
            (None, Some(name)) => {
                return refused(
                    "identity-secret",
                    name,
                    "only an agent that runs in the member keeps its identity in a Secret",
                );
            }
            (None, None) if in_pod => IdentityPlace::Secret {
                name: "evenkeel-agent-identity".to_owned(),
            },
            (None, None) => match &around.state_home {
                Some(home) => IdentityPlace::Directory(home.join("evenkeel-agent").join(&cluster)),
                None => {
                    return Err(ConfigError::Missing {
                        flag: "identity-dir",
                        reason: "there is no home directory to keep the agent's key and certificate in",
                    });
                }
            },
        };
        let timings = Timings::new(
            flags.cluster_status_update_frequency,
            flags.probe_timeout,
            flags.cluster_success_threshold,
            flags.cluster_failure_threshold,
            flags.cluster_lease_duration,
            flags.cluster_lease_renew_interval_fraction,
        )?;
        let log_level = flags.log_level.unwrap_or_else(|| "info".to_owned());
        if let Err(error) = tracing_subscriber::EnvFilter::try_new(&log_level) {
            return refused("log-level", log_level, error.to_string());
        }
        Ok(Self {
            servers,
            token,
            trust,
            cluster,
            provider: flags.cluster_provider,
            region: flags.cluster_region,
            zones: flags.cluster_zones,
            member,
            identity,
            timings,
            health_bind: flags
                .health_bind
                .unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 10357))),
            log_format: flags.log_format.unwrap_or_default(),
            log_level,
        })
    }
}

fn servers(urls: &[String]) -> Result<Vec<Uri>, ConfigError> {
    if urls.is_empty() {
        return Err(ConfigError::Missing {
            flag: "server",
            reason: "the URL of the control plane, such as https://10.0.0.1:6443",
        });
    }
    urls.iter()
        .map(|url| {
            let uri: Uri = match url.parse() {
                Ok(uri) => uri,
                Err(error) => return refused("server", url, format!("not a URL: {error}")),
            };
            if uri.scheme_str() != Some("https") {
                return refused("server", url, "must start with https://");
            }
            if uri.host().is_none_or(str::is_empty) {
                return refused("server", url, "names no host");
            }
            if uri.query().is_some() {
                return refused("server", url, "must not have a query");
            }
            Ok(uri)
        })
        .collect()
}

/// `id.secret`: 6 and 16 lower-case letters and digits. The value is never repeated in the error.
pub fn check_token(token: &str) -> Result<(), ConfigError> {
    let plain = |part: &str, length| {
        part.len() == length
            && part
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    match token.split_once('.') {
        Some((id, secret)) if plain(id, 6) && plain(secret, 16) => Ok(()),
        _ => refused(
            "token",
            "(not shown)",
            "must be 6 characters, a dot and 16 characters, of a-z and 0-9",
        ),
    }
}

fn ca_pin(text: &str) -> Result<[u8; 32], ConfigError> {
    let hash = text.strip_prefix("sha256:").and_then(|hex| {
        let mut hash = [0_u8; 32];
        if hex.len() != 64 || !hex.is_ascii() {
            return None;
        }
        for (byte, pair) in hash.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(hash)
    });
    match hash {
        Some(hash) => Ok(hash),
        None => refused("ca-pin", text, "must be sha256: and 64 hex digits"),
    }
}

fn cluster_name(name: Option<String>) -> Result<String, ConfigError> {
    let Some(name) = name else {
        return Err(ConfigError::Missing {
            flag: "cluster-name",
            reason: "the member's name in the fleet",
        });
    };
    if name.len() > LONGEST_NAME {
        return refused(
            "cluster-name",
            name,
            format!("must be no more than {LONGEST_NAME} characters"),
        );
    }
    match syntax::dns_label(&name).into_iter().next() {
        Some(reason) => refused("cluster-name", name, reason),
        None => Ok(name),
    }
}

fn label_value(flag: &'static str, value: Option<&str>) -> Result<(), ConfigError> {
    match value.and_then(|value| syntax::label_value(value).into_iter().next()) {
        Some(reason) => refused(flag, value.unwrap_or_default(), reason),
        None => Ok(()),
    }
}

impl Timings {
    fn new(
        frequency: Option<Span>,
        probe: Option<Span>,
        success: Option<Span>,
        failure: Option<Span>,
        lease: Option<Span>,
        fraction: Option<f64>,
    ) -> Result<Self, ConfigError> {
        let positive = |flag, span: Option<Span>, seconds| {
            let duration = span.map_or(Duration::from_secs(seconds), |span| span.0);
            if duration.is_zero() {
                return refused(flag, "0s", "must be more than zero");
            }
            Ok(duration)
        };
        let human = |duration| humantime::format_duration(duration).to_string();
        let status_frequency = positive("cluster-status-update-frequency", frequency, 10)?;
        let probe_timeout = positive("probe-timeout", probe, 5)?;
        if probe_timeout >= status_frequency {
            return refused(
                "probe-timeout",
                human(probe_timeout),
                format!(
                    "must be less than --cluster-status-update-frequency ({})",
                    human(status_frequency)
                ),
            );
        }
        let success_threshold = positive("cluster-success-threshold", success, 30)?;
        let failure_threshold = positive("cluster-failure-threshold", failure, 30)?;
        let lease_duration = positive("cluster-lease-duration", lease, 40)?;
        if lease_duration.subsec_nanos() != 0 {
            return refused(
                "cluster-lease-duration",
                human(lease_duration),
                "must be whole seconds",
            );
        }
        let fraction = fraction.unwrap_or(0.25);
        if !(fraction > 0.0 && fraction < 1.0) {
            return refused(
                "cluster-lease-renew-interval-fraction",
                fraction,
                "must be more than 0 and less than 1: the lease has to be renewed before it ends",
            );
        }
        let lease_interval = lease_duration.mul_f64(fraction);
        if lease_interval >= GRACE_PERIOD {
            return refused(
                "cluster-lease-renew-interval-fraction",
                fraction,
                format!(
                    "would renew the lease every {}, and the control plane gives a silent cluster up after {}",
                    human(lease_interval),
                    human(GRACE_PERIOD)
                ),
            );
        }
        Ok(Self {
            status_frequency,
            probe_timeout,
            success_threshold,
            failure_threshold,
            lease_duration,
            lease_interval,
        })
    }
}
