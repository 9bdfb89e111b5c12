//! Why key material is refused.

use std::path::{Path, PathBuf};

/// Nothing of this shows a key.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    #[error("{}: {source}", path.display())]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
    /// A file is there and is not good.
    #[error("{}: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    #[error("advertised address \"{name}\": {reason}")]
    Advertise { name: String, reason: String },
    #[error("certificate could not be issued: {0}")]
    Issue(String),
    #[error("TLS configuration: {0}")]
    Tls(#[from] rustls::Error),
}

impl PkiError {
    pub(super) fn file(path: &Path, reason: impl Into<String>) -> Self {
        Self::File {
            path: path.into(),
            reason: reason.into(),
        }
    }
}
