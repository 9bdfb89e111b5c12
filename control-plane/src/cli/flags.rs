//! The flags of `serve`. A configuration file holds the same ones, under the same names.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, ValueEnum};
use serde::Deserialize;

use super::value::{Size, Span};

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

/// All flags. What is not given is `None`, so that the file can fill it in.
#[derive(Clone, Debug, Default, Args, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ServeFlags {
    /// A YAML file that holds any of these flags
    #[arg(long, env = "EVENKEEL_CONFIG", value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,

    /// Where everything is kept: the store, the certificate authority, admin.kubeconfig. Made if it is not there
    #[arg(long, env = "EVENKEEL_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// The address to serve on [default: 0.0.0.0:6443]
    #[arg(
        long,
        env = "EVENKEEL_BIND",
        value_name = "ADDRESS:PORT",
        help_heading = "Serving"
    )]
    pub bind: Option<SocketAddr>,

    /// A DNS name or IP address that clients and agents reach this server by; may be given several times. The serving
    /// certificate covers them, and the first one is what joining agents are told to dial
    #[arg(
        long,
        env = "EVENKEEL_ADVERTISE",
        value_name = "NAME",
        value_delimiter = ',',
        help_heading = "Serving"
    )]
    pub advertise: Vec<String>,

    /// The certificate authority to use instead of one of our own, PEM; with --ca-key
    #[arg(
        long,
        env = "EVENKEEL_CA_CERT",
        value_name = "FILE",
        help_heading = "Serving"
    )]
    pub ca_cert: Option<PathBuf>,

    /// The authority's key, PEM
    #[arg(
        long,
        env = "EVENKEEL_CA_KEY",
        value_name = "FILE",
        help_heading = "Serving"
    )]
    pub ca_key: Option<PathBuf>,

    /// The certificate to serve, signed by --ca-cert, PEM; read again when it changes. Without it one is issued
    #[arg(
        long,
        env = "EVENKEEL_TLS_CERT",
        value_name = "FILE",
        help_heading = "Serving"
    )]
    pub tls_cert: Option<PathBuf>,

    /// The key of --tls-cert, PEM
    #[arg(
        long,
        env = "EVENKEEL_TLS_KEY",
        value_name = "FILE",
        help_heading = "Serving"
    )]
    pub tls_key: Option<PathBuf>,

    /// How often every cluster's signs of life are looked at [default: 5s]
    #[arg(
        long,
        env = "EVENKEEL_CLUSTER_MONITOR_PERIOD",
        value_name = "DURATION",
        help_heading = "Liveness"
    )]
    pub cluster_monitor_period: Option<Span>,

    /// How long a cluster may be silent before its Ready condition turns Unknown [default: 40s]
    #[arg(
        long,
        env = "EVENKEEL_CLUSTER_MONITOR_GRACE_PERIOD",
        value_name = "DURATION",
        help_heading = "Liveness"
    )]
    pub cluster_monitor_grace_period: Option<Span>,

    /// The same for a cluster that never posted a status [default: 1m]
    #[arg(
        long,
        env = "EVENKEEL_CLUSTER_STARTUP_GRACE_PERIOD",
        value_name = "DURATION",
        help_heading = "Liveness"
    )]
    pub cluster_startup_grace_period: Option<Span>,

    /// Open connections; further ones are closed at once [default: 50000]
    #[arg(
        long,
        env = "EVENKEEL_MAX_CONNECTIONS",
        value_name = "COUNT",
        help_heading = "Limits"
    )]
    pub max_connections: Option<usize>,

    /// Requests that are handled at a time, watches aside; further ones are answered 429 [default: 1000]
    #[arg(
        long,
        env = "EVENKEEL_MAX_REQUESTS_IN_FLIGHT",
        value_name = "COUNT",
        help_heading = "Limits"
    )]
    pub max_requests_in_flight: Option<usize>,

    /// Open watches; further ones are answered 429 [default: 200000]
    #[arg(
        long,
        env = "EVENKEEL_MAX_WATCHES",
        value_name = "COUNT",
        help_heading = "Limits"
    )]
    pub max_watches: Option<usize>,

    /// The body of a request; more is answered 413 [default: 3Mi]
    #[arg(
        long,
        env = "EVENKEEL_MAX_REQUEST_BODY",
        value_name = "BYTES",
        help_heading = "Limits"
    )]
    pub max_request_body: Option<Size>,

    /// How long a request may take, watches aside [default: 1m]
    #[arg(
        long,
        env = "EVENKEEL_REQUEST_TIMEOUT",
        value_name = "DURATION",
        help_heading = "Limits"
    )]
    pub request_timeout: Option<Span>,

    /// How long requests may go on after the order to stop [default: 20s]
    #[arg(
        long,
        env = "EVENKEEL_SHUTDOWN_TIMEOUT",
        value_name = "DURATION",
        help_heading = "Limits"
    )]
    pub shutdown_timeout: Option<Span>,

    /// How log lines are written [default: text]
    #[arg(
        long,
        env = "EVENKEEL_LOG_FORMAT",
        value_enum,
        value_name = "FORMAT",
        help_heading = "Logging"
    )]
    pub log_format: Option<LogFormat>,

    /// What is logged: error, warn, info, debug, trace, or by module (info,evenkeel_control_plane=debug)
    /// [default: info]
    #[arg(
        long,
        env = "EVENKEEL_LOG_LEVEL",
        value_name = "LEVEL",
        help_heading = "Logging"
    )]
    pub log_level: Option<String>,
}

impl ServeFlags {
    /// These flags, and those of the file where they are silent.
    #[must_use]
    pub fn or(self, file: Self) -> Self {
        let advertise = if self.advertise.is_empty() {
            file.advertise
        } else {
            self.advertise
        };
        Self {
            config: self.config,
            data_dir: self.data_dir.or(file.data_dir),
            bind: self.bind.or(file.bind),
            advertise,
            ca_cert: self.ca_cert.or(file.ca_cert),
            ca_key: self.ca_key.or(file.ca_key),
            tls_cert: self.tls_cert.or(file.tls_cert),
            tls_key: self.tls_key.or(file.tls_key),
            cluster_monitor_period: self.cluster_monitor_period.or(file.cluster_monitor_period),
            cluster_monitor_grace_period: self
                .cluster_monitor_grace_period
                .or(file.cluster_monitor_grace_period),
            cluster_startup_grace_period: self
                .cluster_startup_grace_period
                .or(file.cluster_startup_grace_period),
            max_connections: self.max_connections.or(file.max_connections),
            max_requests_in_flight: self.max_requests_in_flight.or(file.max_requests_in_flight),
            max_watches: self.max_watches.or(file.max_watches),
            max_request_body: self.max_request_body.or(file.max_request_body),
            request_timeout: self.request_timeout.or(file.request_timeout),
            shutdown_timeout: self.shutdown_timeout.or(file.shutdown_timeout),
            log_format: self.log_format.or(file.log_format),
            log_level: self.log_level.or(file.log_level),
        }
    }
}
