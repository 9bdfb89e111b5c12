//! `backup` and `restore`.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use evenkeel_store::{Store, StoreOptions};
use http::Method;
use serde_json::json;

use super::{
    DataDir,
    remote::{Remote, RemoteError},
};
use crate::lock::{DirLock, LockError};

/// For a backup to be written.
const WITHIN: Duration = Duration::from_hours(1);

#[derive(Debug, Args)]
pub struct BackupFlags {
    #[command(flatten)]
    pub data: DataDir,
    /// The file to write; it must not be there yet
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
}

#[derive(Debug, Args)]
pub struct RestoreFlags {
    #[command(flatten)]
    pub data: DataDir,
    /// The backup to read
    #[arg(long, value_name = "FILE")]
    pub from: PathBuf,
}

/// Why there is no backup, or nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("--to: {path} is there already", path = .0.display())]
    Exists(PathBuf),
    #[error("--to: {path}: {error}", path = path.display())]
    Path {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error(transparent)]
    Remote(#[from] RemoteError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Open(#[from] evenkeel_store::OpenError),
    #[error("cannot write the backup: {0}")]
    Write(String),
}

/// Writes a backup: through the control plane when it serves, else from its files.
pub async fn backup(flags: &BackupFlags) -> Result<String, BackupError> {
    if flags.to.exists() {
        return Err(BackupError::Exists(flags.to.clone()));
    }
    let to = std::path::absolute(&flags.to).map_err(|error| BackupError::Path {
        path: flags.to.clone(),
        error,
    })?;
    let dir = &flags.data.data_dir;
    match DirLock::take_existing(dir) {
        Ok(lock) => {
            let store = Store::open(dir, StoreOptions::without_attributes()).await?;
            let revision = store
                .backup(&to)
                .await
                .map_err(|error| BackupError::Write(error.to_string()))?;
            store
                .close()
                .await
                .map_err(|error| BackupError::Write(error.to_string()))?;
            drop(lock);
            Ok(format!("{} holds revision {revision}", to.display()))
        }
        Err(LockError::Taken { .. }) => {
            let remote = Remote::open(dir)?;
            let request = json!({"to": to});
            let answer = remote
                .call(Method::POST, crate::backup::PATH, Some(&request), WITHIN)
                .await?;
            Ok(format!(
                "{} holds revision {}, written by the control plane that serves",
                to.display(),
                answer["revision"]
            ))
        }
        Err(error) => Err(error.into()),
    }
}

/// Fills a data directory from a backup.
pub fn restore(flags: &RestoreFlags) -> Result<String, BackupError> {
    let dir = &flags.data.data_dir;
    let restored = evenkeel_store::restore(&flags.from, dir)?;
    Ok(format!(
        "{} holds {} objects at revision {}; the certificate authority and admin.kubeconfig are not part of a backup: \
         copy pki/ as well, or agents have to join anew",
        dir.display(),
        restored.objects,
        restored.revision
    ))
}
