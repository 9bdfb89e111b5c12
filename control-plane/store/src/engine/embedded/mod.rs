//! The engine in one file, on redb: one writer, group commit. A transaction is acknowledged when it is on disk, so it
//! survives kill -9 and the loss of power.
//!
//! `layout` says what is in the file, `file` counts what it costs, `open` makes, checks and locks it, `writer` is the
//! thread that writes a `batch` at a time, and `copy` makes backups.

mod batch;
mod copy;
mod file;
mod layout;
mod open;
mod writer;

use std::{
    ops::Bound,
    path::{Path, PathBuf},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt as _};
use redb::{Database, ReadableDatabase as _, ReadableTable as _};
use tokio::sync::{mpsc, oneshot};

pub use self::layout::FORMAT;
pub(crate) use self::{
    copy::verify_and_advance,
    open::{FILE_NAME, RESTORING_NAME, damaged, io_error, sync_dir},
};
use self::{
    file::Costs,
    layout::{DELETIONS, META, OBJECTS, STATE},
    writer::{Reply, Request, Shared, Writer},
};
use super::{Counters, Engine, EngineError, History, Page, RangeQuery, Sink, TransactError};
use crate::{Object, OpenError, Revision, StoreOptions, Write};

/// See the [module](self).
pub struct EmbeddedEngine {
    /// The writer thread holds the database; when it ends, the file is let go of.
    database: Weak<Database>,
    requests: mpsc::Sender<Request>,
    shared: Arc<Shared>,
    costs: Arc<Costs>,
    closed: AtomicBool,
    options: StoreOptions,
}

impl EmbeddedEngine {
    /// Opens `dir/store.redb`, or makes it.
    pub async fn open(dir: &Path, options: &StoreOptions) -> Result<Self, OpenError> {
        let dir = dir.to_owned();
        let options = options.clone();
        let path = dir.join(FILE_NAME);
        // A damaged file may make redb panic; that ends here too.
        let opened = tokio::task::spawn_blocking(move || Self::open_blocking(&dir, options)).await;
        opened.unwrap_or_else(|panic| Err(damaged(&path, format!("it cannot be read ({panic})"))))
    }

    fn open_blocking(dir: &Path, options: StoreOptions) -> Result<Self, OpenError> {
        let costs = Arc::new(Costs::default());
        let opened = open::open(dir, &options, &costs)?;
        let shared = Arc::new(Shared::default());
        let database = Arc::new(opened.database);
        // Twice the transactions: those are bounded by their own count, and the rest are few.
        let (sender, requests) =
            mpsc::channel(options.max_pending_writes.saturating_mul(2).max(16));
        let writer = Writer {
            database: Arc::clone(&database),
            shared: Arc::clone(&shared),
            requests,
            revision: opened.revision,
            floor: opened.floor.0,
            max_batch_writes: options.max_batch_writes,
            max_batch_bytes: options.max_batch_bytes,
            checkpoint_chunk: options.checkpoint_chunk.max(1),
        };
        let engine = Self {
            database: Arc::downgrade(&database),
            requests: sender,
            shared,
            costs,
            closed: AtomicBool::new(false),
            options,
        };
        thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || writer.run())
            .map_err(|source| OpenError::Io {
                path: dir.join(FILE_NAME),
                source,
            })?;
        Ok(engine)
    }

    fn database(&self) -> Result<Arc<Database>, EngineError> {
        self.database.upgrade().ok_or(EngineError::Closed)
    }

    async fn ask<T, E: From<EngineError>>(
        &self,
        request: impl FnOnce(Reply<T, E>) -> Request,
    ) -> Result<T, E> {
        let (reply, answer) = oneshot::channel();
        self.requests
            .try_send(request(reply))
            .map_err(|error| self.unsent(&error))?;
        answer.await.unwrap_or_else(|_| Err(self.gone().into()))
    }

    fn unsent(&self, error: &mpsc::error::TrySendError<Request>) -> EngineError {
        match error {
            mpsc::error::TrySendError::Full(_) => EngineError::Busy,
            mpsc::error::TrySendError::Closed(_) => self.gone(),
        }
    }

    /// Why the writer is not there.
    fn gone(&self) -> EngineError {
        if self.closed.load(Ordering::Acquire) {
            EngineError::Closed
        } else {
            EngineError::failed("the writer of the store stopped; see the log")
        }
    }

    /// Runs something that reads the file where it may block.
    async fn blocking<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Database, &StoreOptions) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, EngineError> {
        let database = self.database()?;
        let options = self.options.clone();
        tokio::task::spawn_blocking(move || read(&database, &options))
            .await
            .unwrap_or_else(|panic| Err(EngineError::failed(panic)))
    }
}

impl Engine for EmbeddedEngine {
    fn range(&self, query: RangeQuery) -> BoxFuture<'_, Result<Page, EngineError>> {
        self.blocking(move |database, options| range(database, options, &query))
            .boxed()
    }

    fn follow(&self, sink: Arc<dyn Sink>) -> BoxFuture<'_, Result<History, EngineError>> {
        *self.shared.sink.write() = Some(sink);
        self.blocking(history).boxed()
    }

    fn transact(
        &self,
        writes: Vec<Write>,
    ) -> BoxFuture<'_, Result<Vec<Arc<Object>>, TransactError>> {
        async move {
            if let Some(failure) = self.failure() {
                return Err(failure.into());
            }
            let bytes = writes.iter().map(Write::bytes).sum::<usize>();
            let pending = self.shared.pending.fetch_add(1, Ordering::Relaxed);
            let pending_bytes = self
                .shared
                .pending_bytes
                .fetch_add(bytes as u64, Ordering::Relaxed);
            let room = pending < self.options.max_pending_writes as u64
                && (pending_bytes == 0
                    || pending_bytes + bytes as u64 <= self.options.max_pending_bytes as u64);
            let (reply, answer) = oneshot::channel();
            let request = Request::Transact {
                writes,
                bytes,
                reply,
            };
            let refused = if room {
                self.requests
                    .try_send(request)
                    .err()
                    .map(|e| self.unsent(&e))
            } else {
                Some(EngineError::Busy)
            };
            if let Some(error) = refused {
                self.shared.pending.fetch_sub(1, Ordering::Relaxed);
                self.shared
                    .pending_bytes
                    .fetch_sub(bytes as u64, Ordering::Relaxed);
                return Err(error.into());
            }
            answer.await.unwrap_or_else(|_| Err(self.gone().into()))
        }
        .boxed()
    }

    fn checkpoint(&self, objects: Vec<Arc<Object>>) -> BoxFuture<'_, Result<(), EngineError>> {
        self.ask(|reply| Request::Checkpoint { objects, reply })
            .boxed()
    }

    fn compact(&self, floor: Revision) {
        self.shared.floor.fetch_max(floor.0, Ordering::Relaxed);
    }

    fn set_state(&self, name: String, value: Bytes) -> BoxFuture<'_, Result<(), EngineError>> {
        self.ask(|reply| Request::SetState { name, value, reply })
            .boxed()
    }

    fn backup(&self, to: PathBuf) -> BoxFuture<'_, Result<Revision, EngineError>> {
        self.blocking(move |database, _| copy::backup(database, &to))
            .boxed()
    }

    fn close(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        async move {
            if self.closed.swap(true, Ordering::AcqRel) {
                return Ok(());
            }
            match self.ask(|reply| Request::Close { reply }).await {
                Err(EngineError::Closed) => Ok(()),
                other => other,
            }
        }
        .boxed()
    }

    fn failure(&self) -> Option<EngineError> {
        let failure = self.shared.failure.read().clone();
        failure.or_else(|| self.requests.is_closed().then(|| self.gone()))
    }

    fn counters(&self) -> Counters {
        let shared = &self.shared;
        Counters {
            transactions: shared.transactions.load(Ordering::Relaxed),
            commits: shared.commits.load(Ordering::Relaxed),
            fsyncs: self.costs.fsyncs.load(Ordering::Relaxed),
            written_bytes: self.costs.written_bytes.load(Ordering::Relaxed),
            checkpointed: shared.checkpointed.load(Ordering::Relaxed),
            pending: shared.pending.load(Ordering::Relaxed),
        }
    }
}

/// The pages follow each other while nothing is written: only the newest revision is kept.
fn range(
    database: &Database,
    options: &StoreOptions,
    query: &RangeQuery,
) -> Result<Page, EngineError> {
    let transaction = database.begin_read().map_err(EngineError::failed)?;
    let meta = transaction.open_table(META).map_err(EngineError::failed)?;
    let revision = open::stored_number(&meta, "revision")
        .map_err(EngineError::failed)?
        .map_or(super::FIRST_REVISION, Revision);
    if let Some(at) = query.at
        && at != revision
    {
        return Err(EngineError::Compacted(at));
    }
    let after = query.after.as_ref().map(layout::encode_key);
    let lower = after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    let table = transaction
        .open_table(OBJECTS)
        .map_err(EngineError::failed)?;
    let mut rest = table
        .range::<&[u8]>((lower, Bound::Unbounded))
        .map_err(EngineError::failed)?;
    let mut objects: Vec<Arc<Object>> = Vec::new();
    for entry in rest.by_ref().take(query.limit) {
        let (key, value) = entry.map_err(EngineError::failed)?;
        let mut key = layout::decode_key(key.value()).map_err(EngineError::failed)?;
        // Neighbours share the name of their resource.
        if let Some(last) = objects.last()
            && last.key.resource == key.resource
        {
            key.resource = last.key.resource.clone();
        }
        let object =
            layout::decode_object(key, value.value(), options).map_err(EngineError::failed)?;
        objects.push(Arc::new(object));
    }
    Ok(Page {
        objects,
        revision,
        more: rest.next().is_some(),
    })
}

fn history(database: &Database, options: &StoreOptions) -> Result<History, EngineError> {
    let transaction = database.begin_read().map_err(EngineError::failed)?;
    let meta = transaction.open_table(META).map_err(EngineError::failed)?;
    let floor = open::stored_number(&meta, "floor").map_err(EngineError::failed)?;
    let table = transaction
        .open_table(DELETIONS)
        .map_err(EngineError::failed)?;
    let mut deletions = Vec::new();
    for entry in table.iter().map_err(EngineError::failed)? {
        let (_, value) = entry.map_err(EngineError::failed)?;
        deletions
            .push(layout::decode_deletion(value.value(), options).map_err(EngineError::failed)?);
    }
    let table = transaction.open_table(STATE).map_err(EngineError::failed)?;
    let mut state = Vec::new();
    for entry in table.iter().map_err(EngineError::failed)? {
        let (name, value) = entry.map_err(EngineError::failed)?;
        state.push((
            name.value().to_owned(),
            Bytes::copy_from_slice(value.value()),
        ));
    }
    Ok(History {
        floor: floor.map_or(super::FIRST_REVISION, Revision),
        deletions,
        state,
    })
}
