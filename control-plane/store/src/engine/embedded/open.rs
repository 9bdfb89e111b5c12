//! Making, checking and locking the file.

use std::{
    fs::{File, OpenOptions},
    io,
    path::Path,
    sync::Arc,
};

use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError, TableError};

use super::{
    file::{Costs, CountedFile},
    layout::{self, DELETIONS, FORMAT, MAGIC, META, Malformed, OBJECTS, STATE},
};
use crate::{OpenError, Revision, StoreOptions, engine::FIRST_REVISION};

/// The name of the file in the data directory.
pub(crate) const FILE_NAME: &str = "store.redb";

/// What a restore is called until it is complete.
pub(crate) const RESTORING_NAME: &str = "store.redb.restoring";

/// A file that was found whole and ours.
pub(super) struct Opened {
    pub database: Database,
    pub revision: Revision,
    pub floor: Revision,
}

pub(super) fn open(
    dir: &Path,
    options: &StoreOptions,
    costs: &Arc<Costs>,
) -> Result<Opened, OpenError> {
    let path = dir.join(FILE_NAME);
    if !path
        .try_exists()
        .map_err(|source| io_error(&path, source))?
    {
        let restoring = dir.join(RESTORING_NAME);
        if restoring.exists() {
            return Err(damaged(
                &restoring,
                "a restore into this directory was interrupted; run it again",
            ));
        }
        make(dir, &path, options)?;
    }
    open_file(&path, options.engine_cache_bytes, costs)
}

/// Opens a file that is there. Every page is read and its checksum compared, so that damage is found now and not when
/// an object is missed.
pub(super) fn open_file(
    path: &Path,
    cache_bytes: usize,
    costs: &Arc<Costs>,
) -> Result<Opened, OpenError> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map_err(|source| io_error(path, source))?;
    let len = file
        .metadata()
        .map_err(|source| io_error(path, source))?
        .len();
    if len == 0 {
        // redb would make a new database of it.
        return Err(damaged(path, "the file is empty"));
    }
    look(path)?;
    let database = database(path, file, cache_bytes, costs)?;
    let (revision, floor) = check(path, &database)?;
    Ok(Opened {
        database,
        revision,
        floor,
    })
}

/// Refuses what is not ours, or newer, before anything writes to it. What a crash left cannot be looked at before it
/// is repaired.
fn look(path: &Path) -> Result<(), OpenError> {
    match Database::builder().set_cache_size(0).open_read_only(path) {
        Ok(database) => check(path, &database).map(|_| ()),
        Err(DatabaseError::RepairAborted) => Ok(()),
        Err(error) => Err(refused(path, error)),
    }
}

fn database(
    path: &Path,
    file: File,
    cache_bytes: usize,
    costs: &Arc<Costs>,
) -> Result<Database, OpenError> {
    let file = CountedFile::new(file, Arc::clone(costs)).map_err(|error| refused(path, error))?;
    let mut builder = Database::builder();
    builder
        .set_cache_size(cache_bytes)
        .set_check_integrity_on_open(true);
    builder
        .create_with_backend(file)
        .map_err(|error| refused(path, error))
}

/// Makes an empty store under another name first, so that a crash leaves a whole file or none.
fn make(dir: &Path, path: &Path, options: &StoreOptions) -> Result<(), OpenError> {
    std::fs::create_dir_all(dir).map_err(|source| io_error(dir, source))?;
    let new = dir.join(format!("{FILE_NAME}.new-{}", std::process::id()));
    make_at(&new, options.engine_cache_bytes)?;
    // Unlike a rename, a link does not replace what another process made meanwhile.
    let linked = std::fs::hard_link(&new, path);
    let removed = std::fs::remove_file(&new);
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        other => other.map_err(|source| io_error(path, source))?,
    }
    removed.map_err(|source| io_error(&new, source))?;
    sync_dir(dir)
}

fn make_at(path: &Path, cache_bytes: usize) -> Result<(), OpenError> {
    let database = new_file(path, cache_bytes)?;
    let made = || -> Result<(), redb::Error> {
        let transaction = database.begin_write()?;
        write_meta(&transaction, FIRST_REVISION, FIRST_REVISION)?;
        transaction.open_table(OBJECTS)?;
        transaction.open_table(DELETIONS)?;
        transaction.open_table(STATE)?;
        transaction.commit()?;
        Ok(())
    };
    made().map_err(|error| failed(path, error))
}

/// A new, empty database; what was there is gone.
pub(super) fn new_file(path: &Path, cache_bytes: usize) -> Result<Database, OpenError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        // Secrets are in it.
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let file = options
        .open(path)
        .map_err(|source| io_error(path, source))?;
    database(path, file, cache_bytes, &Arc::default())
}

pub(super) fn write_meta(
    transaction: &redb::WriteTransaction,
    revision: Revision,
    floor: Revision,
) -> Result<(), redb::Error> {
    let mut meta = transaction.open_table(META)?;
    meta.insert("magic", MAGIC)?;
    meta.insert("format", FORMAT.to_le_bytes().as_slice())?;
    meta.insert("revision", revision.0.to_le_bytes().as_slice())?;
    meta.insert("floor", floor.0.to_le_bytes().as_slice())?;
    Ok(())
}

/// Whether it is ours, and of a format that we know.
fn check(path: &Path, database: &impl ReadableDatabase) -> Result<(Revision, Revision), OpenError> {
    let transaction = database
        .begin_read()
        .map_err(|error| failed(path, error.into()))?;
    let meta = match transaction.open_table(META) {
        Ok(meta) => meta,
        Err(TableError::Storage(error)) => return Err(failed(path, error.into())),
        Err(_) => return Err(foreign(path, "a database of another program")),
    };
    let value = |name| {
        meta.get(name)
            .map(|value| value.map(|value| value.value().to_vec()))
            .map_err(|error| failed(path, error.into()))
    };
    if value("magic")?.as_deref() != Some(MAGIC) {
        return Err(foreign(path, "a database of another program"));
    }
    let format = value("format")?
        .and_then(|bytes| bytes.try_into().ok())
        .map(u32::from_le_bytes)
        .ok_or_else(|| damaged(path, "it has no format"))?;
    if format != FORMAT {
        return Err(OpenError::Format {
            path: path.to_owned(),
            found: format,
            expected: FORMAT,
        });
    }
    let number = |name| {
        stored_number(&meta, name)
            .map_err(|error| damaged(path, error))?
            .map(Revision)
            .ok_or_else(|| damaged(path, format!("it has no {name}")))
    };
    Ok((number("revision")?, number("floor")?))
}

/// A number of the `meta` table.
pub(super) fn stored_number(
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
    name: &str,
) -> Result<Option<u64>, redb::Error> {
    let Some(value) = meta.get(name)? else {
        return Ok(None);
    };
    layout::number(value.value(), 0)
        .map(Some)
        .map_err(|Malformed(what)| redb::Error::Corrupted(what.into()))
}

/// Makes what was renamed or linked in a directory last.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), OpenError> {
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(|source| io_error(dir, source))
}

fn refused(path: &Path, error: DatabaseError) -> OpenError {
    match error {
        DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => {
            OpenError::Locked {
                path: path.to_owned(),
            }
        }
        DatabaseError::UpgradeRequired(version) => damaged(
            path,
            format!("its file format {version} is older than any that Evenkeel wrote"),
        ),
        DatabaseError::Storage(error) => failed(path, error.into()),
        other => damaged(path, other),
    }
}

fn failed(path: &Path, error: redb::Error) -> OpenError {
    match error {
        redb::Error::Io(source) if source.kind() == io::ErrorKind::InvalidData => {
            foreign(path, source)
        }
        redb::Error::Io(source) => io_error(path, source),
        other => damaged(path, other),
    }
}

pub(crate) fn io_error(path: &Path, source: io::Error) -> OpenError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            OpenError::NotWritable { path, source }
        }
        io::ErrorKind::UnexpectedEof => damaged(&path, "the file is cut off"),
        _ => OpenError::Io { path, source },
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "texts and errors alike, most of them made on the spot"
)]
pub(crate) fn damaged(path: &Path, reason: impl ToString) -> OpenError {
    OpenError::Damaged {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "texts and errors alike, most of them made on the spot"
)]
fn foreign(path: &Path, reason: impl ToString) -> OpenError {
    OpenError::Foreign {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}

/// Storage errors of a file that is being read.
pub(super) fn read_error(path: &Path, error: impl Into<redb::Error>) -> OpenError {
    failed(path, error.into())
}

impl From<Malformed> for StorageError {
    fn from(Malformed(what): Malformed) -> Self {
        Self::Corrupted(what.into())
    }
}
