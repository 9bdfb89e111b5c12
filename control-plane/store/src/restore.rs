//! A store out of a backup.

use std::path::Path;

use crate::{
    OpenError, Revision, StoreOptions,
    engine::embedded::{
        FILE_NAME, RESTORING_NAME, damaged, io_error, sync_dir, verify_and_advance,
    },
};

/// How far the revision of a restored store is ahead of that of its backup: at a thousand writes per second, what is
/// written in eleven days. Revisions that were given out after the backup was made are thus not given out again for
/// other content.
pub const REVISION_GAP: u64 = 1_000_000_000;

/// What was restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The revision that the store stands at now: [`REVISION_GAP`] ahead of the backup.
    pub revision: Revision,
    pub objects: u64,
}

/// Makes a store in a directory that is empty, or not there yet, out of a backup. The backup is read entirely before
/// the store appears; whatever is wrong with it, the directory stays as it was.
///
/// Clients that go on from before are told that their revision expired, and list anew.
pub fn restore(from: &Path, to_dir: &Path) -> Result<Restored, OpenError> {
    std::fs::create_dir_all(to_dir).map_err(|source| io_error(to_dir, source))?;
    for entry in std::fs::read_dir(to_dir).map_err(|source| io_error(to_dir, source))? {
        let entry = entry.map_err(|source| io_error(to_dir, source))?;
        // What an interrupted restore left is replaced.
        if entry.file_name() == RESTORING_NAME {
            continue;
        }
        return Err(OpenError::NotEmpty {
            path: to_dir.to_owned(),
            entry: entry.file_name().to_string_lossy().into_owned(),
        });
    }
    let partial = to_dir.join(RESTORING_NAME);
    let restored = restore_to(from, &partial, to_dir);
    if restored.is_err() {
        // It may not be there; the error that matters is the first one.
        let _ = std::fs::remove_file(&partial);
    }
    restored
}

fn restore_to(from: &Path, partial: &Path, to_dir: &Path) -> Result<Restored, OpenError> {
    std::fs::copy(from, partial).map_err(|source| io_error(from, source))?;
    #[cfg(unix)]
    {
        // Secrets are in it, whoever may read the backup.
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(partial, std::fs::Permissions::from_mode(0o600))
            .map_err(|source| io_error(partial, source))?;
    }
    // A damaged file may make redb panic. Nothing is shared with what panics but the file, which is thrown away.
    let verified = std::panic::catch_unwind(|| {
        verify_and_advance(partial, &StoreOptions::without_attributes(), REVISION_GAP)
    });
    let (revision, objects) = verified
        .unwrap_or_else(|_| Err(damaged(from, "it cannot be read")))
        .map_err(|error| error.about(from))?;
    let path = to_dir.join(FILE_NAME);
    std::fs::rename(partial, &path).map_err(|source| io_error(&path, source))?;
    sync_dir(to_dir)?;
    Ok(Restored { revision, objects })
}

impl OpenError {
    /// The same, about the file that the user knows.
    fn about(mut self, file: &Path) -> Self {
        match &mut self {
            Self::Locked { path }
            | Self::NotWritable { path, .. }
            | Self::Damaged { path, .. }
            | Self::Foreign { path, .. }
            | Self::Format { path, .. }
            | Self::NotEmpty { path, .. }
            | Self::Io { path, .. } => file.clone_into(path),
        }
        self
    }
}
