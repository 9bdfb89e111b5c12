//! The flags, their environment variables and the configuration file: one list of names for all three.

use std::{net::SocketAddr, path::PathBuf, str::FromStr, time::Duration};

use clap::{Args, Parser, ValueEnum};
use serde::Deserialize;

/// The agent of one member cluster of an Evenkeel fleet.
///
/// It dials out to the control plane, so the member needs no open port: it enrols with a bootstrap token, reports the
/// member's status, renews the member's lease, and applies in the member what the control plane placed there.
#[derive(Parser, Debug)]
#[command(
    name = "evenkeel-agent",
    version,
    max_term_width = 110,
    after_help = "Every flag has an environment variable: EVENKEEL_AGENT_ and the flag's name in capitals, dashes as \
underscores.\nA file given by --config holds the same names in YAML. A flag wins over its variable, a variable over the \
file.\n\nExample:\n  evenkeel-agent --server https://10.0.0.1:6443 --token abcdef.0123456789abcdef \\\n    --ca-pin \
sha256:… --cluster-name member1 --kubeconfig member1.kubeconfig --identity-dir /var/lib/evenkeel-agent"
)]
pub struct Command {
    /// A YAML file that holds any of the flags below by name.
    #[arg(long, env = "EVENKEEL_AGENT_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub flags: Flags,
}

/// A duration as people write it (`10s`, `1m30s`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim_start().starts_with('-') {
            return Err("must not be negative".to_owned());
        }
        humantime::parse_duration(text)
            .map(Self)
            .map_err(|error| format!("not a duration such as 10s or 1m30s: {error}"))
    }
}

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Everything that can be set. All optional here: what is missing is looked for in the file, then defaulted or refused.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Flags {
    /// URL of the control plane; several are tried in turn when one cannot be reached.
    #[arg(
        long,
        env = "EVENKEEL_AGENT_SERVER",
        value_name = "URL",
        value_delimiter = ',',
        help_heading = "Control plane"
    )]
    pub server: Option<Vec<String>>,
    /// Bootstrap token (`id.secret`) to enrol with. Not needed once the agent has its identity.
    #[arg(
        long,
        env = "EVENKEEL_AGENT_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true,
        help_heading = "Control plane"
    )]
    pub token: Option<String>,
    /// File that holds the bootstrap token; read each time it is needed.
    #[arg(
        long,
        env = "EVENKEEL_AGENT_TOKEN_FILE",
        value_name = "FILE",
        conflicts_with = "token",
        help_heading = "Control plane"
    )]
    pub token_file: Option<PathBuf>,
    /// Hash of the public key of the control plane's CA, `sha256:<64 hex digits>`: trust is pinned at enrolment.
    #[arg(
        long,
        env = "EVENKEEL_AGENT_CA_PIN",
        value_name = "PIN",
        help_heading = "Control plane"
    )]
    pub ca_pin: Option<String>,
    /// PEM file with the control plane's CA, in place of a pin.
    #[arg(
        long,
        env = "EVENKEEL_AGENT_CA_FILE",
        value_name = "FILE",
        conflicts_with = "ca_pin",
        help_heading = "Control plane"
    )]
    pub ca_file: Option<PathBuf>,

    /// Name of this member in the fleet: a DNS label of at most 48 characters.
    #[arg(
        long,
        env = "EVENKEEL_AGENT_CLUSTER_NAME",
        value_name = "NAME",
        help_heading = "Member"
    )]
    pub cluster_name: Option<String>,
    /// Who runs the member (`aws`, `onprem`, …), for placement.
    #[arg(
        long,
        env = "EVENKEEL_AGENT_CLUSTER_PROVIDER",
        value_name = "NAME",
        help_heading = "Member"
    )]
    pub cluster_provider: Option<String>,
    /// Region of the member, for placement.
    #[arg(
        long,
        env = "EVENKEEL_AGENT_CLUSTER_REGION",
        value_name = "NAME",
        help_heading = "Member"
    )]
    pub cluster_region: Option<String>,
    /// Zones that the member spans, separated by commas.
    #[arg(
        long,
        env = "EVENKEEL_AGENT_CLUSTER_ZONES",
        value_name = "NAMES",
        value_delimiter = ',',
        help_heading = "Member"
    )]
    pub cluster_zones: Option<Vec<String>>,
    /// Kubeconfig of the member. Without it the agent uses the service account of the pod that it runs in.
    #[arg(
        long,
        env = "EVENKEEL_AGENT_KUBECONFIG",
        value_name = "FILE",
        help_heading = "Member"
    )]
    pub kubeconfig: Option<PathBuf>,
    /// Context of that kubeconfig [default: its current one]
    #[arg(
        long,
        env = "EVENKEEL_AGENT_CONTEXT",
        value_name = "NAME",
        help_heading = "Member"
    )]
    pub context: Option<String>,
    /// Directory for the agent's key and certificate [default: in a pod, a Secret in the member; else
    /// evenkeel-agent/<cluster> in $STATE_DIRECTORY, $XDG_STATE_HOME or ~/.local/state]
    #[arg(
        long,
        env = "EVENKEEL_AGENT_IDENTITY_DIR",
        value_name = "DIR",
        help_heading = "Member"
    )]
    pub identity_dir: Option<PathBuf>,
    /// Name of the Secret for the agent's key and certificate, in the pod's own namespace [default:
    /// evenkeel-agent-identity]
    #[arg(
        long,
        env = "EVENKEEL_AGENT_IDENTITY_SECRET",
        value_name = "NAME",
        conflicts_with = "identity_dir",
        help_heading = "Member"
    )]
    pub identity_secret: Option<String>,

    /// How often the member is probed and its status written if it changed [default: 10s]
    #[arg(
        long,
        env = "EVENKEEL_AGENT_CLUSTER_STATUS_UPDATE_FREQUENCY",
        value_name = "DURATION",
        help_heading = "Liveness"
    )]
    pub cluster_status_update_frequency: Option<Span>,
    /// How long a probe may take, connect included; less than the frequency [default: 5s]
    #[arg(
        long,
        env = "EVENKEEL_AGENT_PROBE_TIMEOUT",
        value_name = "DURATION",
        help_heading = "Liveness"
    )]
    pub probe_timeout: Option<Span>,
    /// How long the member must answer well before Ready turns True [default: 30s]
    #[arg(
        long,
        env = "EVENKEEL_AGENT_CLUSTER_SUCCESS_THRESHOLD",
        value_name = "DURATION",
        help_heading = "Liveness"
    )]
    pub cluster_success_threshold: Option<Span>,
    /// How long the member must fail before Ready turns False [default: 30s]
    #[arg(
        long,
        env = "EVENKEEL_AGENT_CLUSTER_FAILURE_THRESHOLD",
        value_name = "DURATION",
        help_heading = "Liveness"
    )]
    pub cluster_failure_threshold: Option<Span>,
    /// Duration written into the member's lease [default: 40s]
    #[arg(
        long,
        env = "EVENKEEL_AGENT_CLUSTER_LEASE_DURATION",
        value_name = "DURATION",
        help_heading = "Liveness"
    )]
    pub cluster_lease_duration: Option<Span>,
    /// The lease is renewed after this share of its duration, between 0 and 1 [default: 0.25]
    #[arg(
        long,
        env = "EVENKEEL_AGENT_CLUSTER_LEASE_RENEW_INTERVAL_FRACTION",
        value_name = "FRACTION",
        help_heading = "Liveness"
    )]
    pub cluster_lease_renew_interval_fraction: Option<f64>,

    /// Address of /healthz, /readyz and /metrics [default: 127.0.0.1:10357]
    #[arg(
        long,
        env = "EVENKEEL_AGENT_HEALTH_BIND",
        value_name = "ADDRESS",
        help_heading = "Running"
    )]
    pub health_bind: Option<SocketAddr>,
    /// How log lines look [default: text]
    #[arg(
        long,
        env = "EVENKEEL_AGENT_LOG_FORMAT",
        value_enum,
        value_name = "FORMAT",
        help_heading = "Running"
    )]
    pub log_format: Option<LogFormat>,
    /// What is logged: error, warn, info, debug, trace, or a filter such as info,evenkeel_agent::deliver=debug
    /// [default: info]
    #[arg(
        long,
        env = "EVENKEEL_AGENT_LOG_LEVEL",
        value_name = "FILTER",
        help_heading = "Running"
    )]
    pub log_level: Option<String>,
}

macro_rules! first_of {
    ($over:ident, $under:ident, $($field:ident),* $(,)?) => {
        Flags { $($field: $over.$field.or($under.$field)),* }
    };
}

impl Flags {
    /// These, and where they say nothing, `under`. A credential or a trust anchor replaces its counterpart too.
    #[must_use]
    pub fn over(self, mut under: Self) -> Self {
        if self.token.is_some() || self.token_file.is_some() {
            under.token = None;
            under.token_file = None;
        }
        if self.ca_pin.is_some() || self.ca_file.is_some() {
            under.ca_pin = None;
            under.ca_file = None;
        }
        let over = self;
        first_of!(
            over,
            under,
            server,
            token,
            token_file,
            ca_pin,
            ca_file,
            cluster_name,
            cluster_provider,
            cluster_region,
            cluster_zones,
            kubeconfig,
            context,
            identity_dir,
            identity_secret,
            cluster_status_update_frequency,
            probe_timeout,
            cluster_success_threshold,
            cluster_failure_threshold,
            cluster_lease_duration,
            cluster_lease_renew_interval_fraction,
            health_bind,
            log_format,
            log_level,
        )
    }
}
