//! The command line: what may be said there, in the environment and in the configuration file.
//!
//! - [`flags`]: the flags of `serve`, which a file may hold too
//! - [`settings`]: what they come to, checked
//! - [`value`]: durations and sizes as people write them
//! - [`remote`]: talking to a control plane that serves, as its administrator
//! - [`token`], [`backup`]: the other commands

pub mod backup;
pub mod flags;
pub mod remote;
pub mod settings;
pub mod token;
pub mod value;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub use flags::ServeFlags;
pub use settings::{Settings, SettingsError};

const ABOUT: &str = "The control plane of a fleet of Kubernetes clusters: an API server that kubectl speaks to, and the \
controllers that watch over the member clusters and bring workloads to them.";

const AFTER_HELP: &str = "\
Every flag can be set in the environment as well (EVENKEEL_DATA_DIR for --data-dir), and in the file that --config
names, as YAML under the flag's name without dashes in front (data-dir: /var/lib/evenkeel). The command line comes
first, then the environment, then the file. Durations are written 10s, 1m30s, 2h.

Examples:
  evenkeel-control-plane --data-dir /var/lib/evenkeel --advertise fleet.example.com
  kubectl --kubeconfig /var/lib/evenkeel/admin.kubeconfig get clusters
  evenkeel-control-plane token create --data-dir /var/lib/evenkeel --cluster-name member1
  evenkeel-control-plane backup --data-dir /var/lib/evenkeel --to /backup/evenkeel.redb";

#[derive(Debug, Parser)]
#[command(
    name = "evenkeel-control-plane",
    version,
    about = ABOUT,
    after_help = AFTER_HELP,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    max_term_width = 110
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub serve: ServeFlags,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve (this is also what happens without a command)
    #[command(after_help = AFTER_HELP)]
    Serve(Box<ServeFlags>),
    /// Make, list and delete the tokens that clusters join with
    Token(token::TokenCommand),
    /// Copy the store into a file, while it serves or not
    Backup(backup::BackupFlags),
    /// Fill an empty data directory from a backup
    Restore(backup::RestoreFlags),
    /// Print the version
    Version,
}

/// Where a running control plane's data is: its administrator's kubeconfig lies there.
#[derive(Clone, Debug, Args)]
pub struct DataDir {
    /// The control plane's data directory
    #[arg(long, env = "EVENKEEL_DATA_DIR", value_name = "DIR")]
    pub data_dir: PathBuf,
}
