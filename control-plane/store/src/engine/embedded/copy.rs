//! Backups: copies of all tables as they stand in one snapshot; and what makes a store of such a copy.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use redb::{
    Database, Key, ReadTransaction, ReadableDatabase as _, ReadableTable as _,
    ReadableTableMetadata as _, TableDefinition, Value,
};

use super::{
    layout::{self, DELETIONS, META, OBJECTS, STATE},
    open::{self, new_file, open_file, read_error, sync_dir, write_meta},
};
use crate::{OpenError, Revision, StoreOptions, engine::EngineError};

/// Rows that are copied with one commit: bounds the memory that a backup takes.
const ROWS: usize = 500;

/// Pages that a copy caches, in bytes.
const CACHE: usize = 4 << 20;

/// Copies everything to a new file, which appears under its name when it is whole.
pub(super) fn backup(database: &Database, to: &Path) -> Result<Revision, EngineError> {
    if to.try_exists().map_err(EngineError::failed)? {
        return Err(EngineError::failed(format!(
            "{} exists already: name a new file",
            to.display()
        )));
    }
    let partial = partial(to);
    let copied = copy(database, &partial).and_then(|revision| {
        std::fs::rename(&partial, to).map_err(EngineError::failed)?;
        let dir = to.parent().filter(|dir| !dir.as_os_str().is_empty());
        sync_dir(dir.unwrap_or(Path::new("."))).map_err(EngineError::failed)?;
        Ok(revision)
    });
    if copied.is_err() {
        // It may not be there; the error that matters is the first one.
        let _ = std::fs::remove_file(&partial);
    }
    copied
}

fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".partial-{}", std::process::id()));
    name.into()
}

fn copy(database: &Database, to: &Path) -> Result<Revision, EngineError> {
    let copy = new_file(to, CACHE).map_err(EngineError::failed)?;
    let snapshot = database.begin_read().map_err(EngineError::failed)?;
    let copied = || -> Result<Revision, redb::Error> {
        let meta = snapshot.open_table(META)?;
        let number = |name| {
            open::stored_number(&meta, name)?
                .map(Revision)
                .ok_or_else(|| redb::Error::Corrupted(format!("no {name} is stored")))
        };
        let revision = number("revision")?;
        table(&snapshot, &copy, OBJECTS)?;
        table(&snapshot, &copy, DELETIONS)?;
        table(&snapshot, &copy, STATE)?;
        // Last, so that a copy that is not whole is no store.
        let transaction = copy.begin_write()?;
        write_meta(&transaction, revision, number("floor")?)?;
        transaction.commit()?;
        Ok(revision)
    };
    copied().map_err(EngineError::failed)
}

fn table<K: Key + 'static, V: Value + 'static>(
    snapshot: &ReadTransaction,
    copy: &Database,
    definition: TableDefinition<'_, K, V>,
) -> Result<(), redb::Error> {
    let source = snapshot.open_table(definition)?;
    let mut rows = source.iter()?;
    loop {
        let transaction = copy.begin_write()?;
        let mut count = 0;
        {
            let mut target = transaction.open_table(definition)?;
            for row in rows.by_ref().take(ROWS) {
                let (key, value) = row?;
                target.insert(key.value(), value.value())?;
                count += 1;
            }
        }
        transaction.commit()?;
        if count < ROWS {
            return Ok(());
        }
    }
}

/// Reads a copied file entirely, and takes its revision ahead by `gap`. Returns the new revision and the number of
/// objects.
///
/// Nothing before the new revision is known any more: clients may hold revisions that were given out after the
/// backup was made.
pub(crate) fn verify_and_advance(
    path: &Path,
    options: &StoreOptions,
    gap: u64,
) -> Result<(Revision, u64), OpenError> {
    let opened = open_file(path, CACHE, &Arc::default())?;
    let database = opened.database;
    let checked = || -> Result<u64, redb::Error> {
        let snapshot = database.begin_read()?;
        let objects = snapshot.open_table(OBJECTS)?;
        let mut count = 0;
        for row in objects.iter()? {
            let (key, value) = row?;
            let key = layout::decode_key(key.value()).map_err(redb::StorageError::from)?;
            layout::decode_object(key, value.value(), options).map_err(redb::StorageError::from)?;
            count += 1;
        }
        if count != objects.len()? {
            return Err(redb::Error::Corrupted("objects are missing".into()));
        }
        Ok(count)
    };
    let count = checked().map_err(|error| read_error(path, error))?;
    let revision = Revision(opened.revision.0.saturating_add(gap));
    let advanced = || -> Result<(), redb::Error> {
        let transaction = database.begin_write()?;
        {
            let mut deletions = transaction.open_table(DELETIONS)?;
            deletions.retain(|_, _| false)?;
        }
        write_meta(&transaction, revision, revision)?;
        transaction.commit()?;
        Ok(())
    };
    advanced().map_err(|error| read_error(path, error))?;
    database.close().map_err(|error| read_error(path, error))?;
    Ok((revision, count))
}
