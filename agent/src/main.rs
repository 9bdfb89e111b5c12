//! `evenkeel-agent`: reads what it is told, and runs until it is told to stop.

use std::{io::IsTerminal, path::PathBuf, process::ExitCode};

use clap::Parser;
use evenkeel_agent::config::{Command, ConfigError, LogFormat, Settings, Surroundings, read_file};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let settings = match settings() {
        Ok(settings) => settings,
        Err(error) => {
            eprintln!("evenkeel-agent: {error}");
            return ExitCode::from(2);
        }
    };
    log_to_stderr(&settings);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(run(settings)),
        Err(error) => Err(error.to_string()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn settings() -> Result<Settings, ConfigError> {
    let command = Command::parse();
    let flags = match &command.config {
        Some(path) => command.flags.over(read_file(path)?),
        None => command.flags,
    };
    Settings::new(flags, &surroundings())
}

/// The one place that looks at variables that are not flags.
fn surroundings() -> Surroundings {
    let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
    Surroundings {
        in_cluster: path("KUBERNETES_SERVICE_HOST").is_some(),
        state_home: path("STATE_DIRECTORY")
            .or_else(|| path("XDG_STATE_HOME"))
            .or_else(|| path("HOME").map(|home| home.join(".local/state"))),
    }
}

fn log_to_stderr(settings: &Settings) {
    let filter = EnvFilter::try_new(&settings.log_level).unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    match settings.log_format {
        LogFormat::Text => lines.init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
}

async fn run(settings: Settings) -> Result<(), String> {
    let stop = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| error.to_string())?;
    let told = stop.clone();
    let agent = evenkeel_agent::run(settings, stop);
    tokio::pin!(agent);
    tokio::select! {
        outcome = &mut agent => return outcome.map_err(|error| error.to_string()),
        _ = terminate.recv() => told.cancel(),
        _ = interrupt.recv() => told.cancel(),
    }
    agent.await.map_err(|error| error.to_string())
}
