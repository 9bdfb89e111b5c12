//! Log lines.

use std::io::IsTerminal;

use tracing_subscriber::{EnvFilter, fmt};

use crate::cli::{Settings, SettingsError, flags::LogFormat};

/// Begins to log, to standard error.
pub fn init(settings: &Settings) -> Result<(), SettingsError> {
    let filter =
        EnvFilter::try_new(&settings.log_level).map_err(|error| SettingsError::Refused {
            flag: "log-level",
            reason: error.to_string(),
        })?;
    let lines = fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    // Another one in the same process (in tests) goes on as it is.
    let _ = match settings.log_format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().try_init(),
    };
    Ok(())
}
