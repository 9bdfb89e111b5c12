//! One process per data directory.

use std::{
    fs::{File, TryLockError},
    io,
    path::{Path, PathBuf},
};

/// Why a data directory could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("--data-dir: another evenkeel-control-plane is using {path}", path = path.display())]
    Taken { path: PathBuf },
    #[error("--data-dir: {path}: {error}", path = path.display())]
    Unusable { path: PathBuf, error: io::Error },
}

/// Held while a process uses a data directory; the operating system lets go of it when the process ends, however that
/// happens.
#[derive(Debug)]
pub struct DirLock {
    _file: File,
}

impl DirLock {
    /// Makes the directory if need be, and takes it.
    pub fn take(dir: &Path) -> Result<Self, LockError> {
        std::fs::create_dir_all(dir).map_err(|error| unusable(dir, error))?;
        Self::take_existing(dir)
    }

    /// Takes a directory that has to be there.
    pub fn take_existing(dir: &Path) -> Result<Self, LockError> {
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(dir.join("lock"))
            .map_err(|error| unusable(dir, error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(LockError::Taken {
                path: dir.to_owned(),
            }),
            Err(TryLockError::Error(error)) => Err(unusable(dir, error)),
        }
    }
}

fn unusable(dir: &Path, error: io::Error) -> LockError {
    LockError::Unusable {
        path: dir.to_owned(),
        error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_taken_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        assert!(matches!(
            DirLock::take_existing(&path),
            Err(LockError::Unusable { .. })
        ));
        let first = DirLock::take(&path).unwrap();
        assert!(matches!(DirLock::take(&path), Err(LockError::Taken { .. })));
        drop(first);
        assert!(DirLock::take(&path).is_ok());
    }
}
