//! Why a store cannot be opened.

use std::{io, path::PathBuf};

/// Says what is wrong, where, and what can be done. A store that is refused is left as it is.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "{} is in use by another process: stop that one first, or give this one a data directory of its own",
        path.display()
    )]
    Locked { path: PathBuf },
    #[error("cannot write to {}: {source}; the data directory must be writable by the user that this runs as", path.display())]
    NotWritable { path: PathBuf, source: io::Error },
    #[error(
        "{} is damaged: {reason}; it was left as it is: restore a backup into another, empty directory",
        path.display()
    )]
    Damaged { path: PathBuf, reason: String },
    #[error("{} is not a store of Evenkeel: {reason}; it was left as it is", path.display())]
    Foreign { path: PathBuf, reason: String },
    #[error(
        "{} has format {found}, and this version knows format {expected}: start the version that wrote it, or a newer one",
        path.display()
    )]
    Format {
        path: PathBuf,
        found: u32,
        expected: u32,
    },
    #[error("{} is not empty ({entry} is there): restore into an empty directory", path.display())]
    NotEmpty { path: PathBuf, entry: String },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}
