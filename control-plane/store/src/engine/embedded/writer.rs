//! The one writer: a thread that makes whatever waits durable with one commit, then tells the cache, then whoever
//! waited. While it is on disk the next batch gathers, so batches grow with the load and nobody waits for a timer.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use parking_lot::RwLock;
use redb::Database;
use tokio::sync::{mpsc, oneshot};

use super::{
    batch::{self, Batch, Made, Transaction},
    layout::{self, DELETIONS, META, OBJECTS, STATE},
};
use crate::{
    Object, Revision, Write,
    engine::{Applied, EngineError, Sink, TransactError},
};

pub(super) type Reply<T, E> = oneshot::Sender<Result<T, E>>;

/// What the writer is asked for.
pub(super) enum Request {
    Transact {
        writes: Vec<Write>,
        bytes: usize,
        reply: Reply<Vec<Arc<Object>>, TransactError>,
    },
    SetState {
        name: String,
        value: Bytes,
        reply: Reply<(), EngineError>,
    },
    Checkpoint {
        objects: Vec<Arc<Object>>,
        reply: Reply<(), EngineError>,
    },
    Close {
        reply: Reply<(), EngineError>,
    },
}

/// What the writer and the handle share.
#[derive(Default)]
pub(super) struct Shared {
    pub sink: RwLock<Option<Arc<dyn Sink>>>,
    pub failure: RwLock<Option<EngineError>>,
    /// Deletions up to this revision may be forgotten.
    pub floor: AtomicU64,
    pub transactions: AtomicU64,
    pub commits: AtomicU64,
    pub checkpointed: AtomicU64,
    pub pending: AtomicU64,
    pub pending_bytes: AtomicU64,
}

pub(super) struct Writer {
    pub database: Arc<Database>,
    pub shared: Arc<Shared>,
    pub requests: mpsc::Receiver<Request>,
    pub revision: Revision,
    /// The floor that is on disk.
    pub floor: u64,
    pub max_batch_writes: usize,
    pub max_batch_bytes: usize,
    pub checkpoint_chunk: usize,
}

/// Volatile objects that wait to be put on disk a chunk at a time.
struct Checkpoint {
    objects: std::vec::IntoIter<Arc<Object>>,
    reply: Reply<(), EngineError>,
}

impl Writer {
    /// Runs until the handle is gone or asks to close.
    pub fn run(mut self) {
        let mut checkpoints = VecDeque::new();
        let mut closing = None;
        while closing.is_none() || !checkpoints.is_empty() {
            let mut batch = Batch::default();
            // With a checkpoint under way there is always something to do.
            let mut next = if checkpoints.is_empty() {
                self.requests.blocking_recv()
            } else {
                self.requests.try_recv().ok()
            };
            if next.is_none() && checkpoints.is_empty() {
                break;
            }
            while let Some(request) = next.take() {
                self.accept(request, &mut batch, &mut checkpoints, &mut closing);
                if closing.is_none() && self.has_room(&batch) {
                    next = self.requests.try_recv().ok();
                }
            }
            self.make(batch, &mut checkpoints);
        }
        self.requests.close();
        while let Ok(request) = self.requests.try_recv() {
            self.refuse(request);
        }
        *self.shared.sink.write() = None;
        // The file is let go of before whoever closes is told.
        drop(self.database);
        if let Some(reply) = closing {
            let _ = reply.send(Ok(()));
        }
    }

    fn has_room(&self, batch: &Batch) -> bool {
        batch.transactions.len() + batch.states.len() < self.max_batch_writes
            && batch.bytes < self.max_batch_bytes
    }

    fn accept(
        &self,
        request: Request,
        batch: &mut Batch,
        checkpoints: &mut VecDeque<Checkpoint>,
        closing: &mut Option<Reply<(), EngineError>>,
    ) {
        match request {
            Request::Transact {
                writes,
                bytes,
                reply,
            } => {
                self.taken(bytes);
                batch.bytes += bytes;
                batch.transactions.push(Transaction {
                    writes,
                    reply,
                    outcome: Ok(0),
                });
            }
            Request::SetState { name, value, reply } => {
                batch.bytes += value.len();
                batch.states.push((name, value, reply));
            }
            Request::Checkpoint { objects, reply } => checkpoints.push_back(Checkpoint {
                objects: objects.into_iter(),
                reply,
            }),
            Request::Close { reply } => *closing = Some(reply),
        }
    }

    fn taken(&self, bytes: usize) {
        self.shared.pending.fetch_sub(1, Ordering::Relaxed);
        self.shared
            .pending_bytes
            .fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    fn refuse(&self, request: Request) {
        match request {
            Request::Transact { bytes, reply, .. } => {
                self.taken(bytes);
                let _ = reply.send(Err(EngineError::Closed.into()));
            }
            Request::SetState { reply, .. }
            | Request::Checkpoint { reply, .. }
            | Request::Close { reply } => {
                let _ = reply.send(Err(EngineError::Closed));
            }
        }
    }

    /// One commit, and the answers to all who share it.
    fn make(&mut self, mut batch: Batch, checkpoints: &mut VecDeque<Checkpoint>) {
        let chunk: Vec<_> = checkpoints
            .front_mut()
            .map(|checkpoint| {
                checkpoint
                    .objects
                    .by_ref()
                    .take(self.checkpoint_chunk)
                    .collect()
            })
            .unwrap_or_default();
        let made = match self.failed() {
            Some(error) => Err(error),
            None => self.commit(&mut batch, &chunk).map_err(|error| {
                let error = EngineError::failed(error);
                tracing::error!(%error, "the store failed; no write is taken any more");
                *self.shared.failure.write() = Some(error.clone());
                error
            }),
        };
        let done =
            checkpoints.pop_front_if(|checkpoint| made.is_err() || checkpoint.objects.len() == 0);
        match made {
            Ok(changes) => {
                self.shared
                    .transactions
                    .fetch_add(batch.made(), Ordering::Relaxed);
                let objects = match &*self.shared.sink.read() {
                    Some(sink) if !changes.is_empty() => sink.apply(changes),
                    _ => Vec::new(),
                };
                batch.answer(objects);
                if let Some(checkpoint) = done {
                    let _ = checkpoint.reply.send(Ok(()));
                }
            }
            Err(error) => {
                batch.fail(&error);
                if let Some(checkpoint) = done {
                    let _ = checkpoint.reply.send(Err(error));
                }
            }
        }
    }

    fn failed(&self) -> Option<EngineError> {
        self.shared.failure.read().clone()
    }

    /// Puts a batch on disk. Nothing is committed when nothing changes.
    fn commit(
        &mut self,
        batch: &mut Batch,
        chunk: &[Arc<Object>],
    ) -> Result<Vec<Applied>, redb::Error> {
        let transaction = self.database.begin_write()?;
        let made = {
            let mut objects = transaction.open_table(OBJECTS)?;
            let mut deletions = transaction.open_table(DELETIONS)?;
            let mut made = Made {
                changes: Vec::new(),
                revision: self.revision,
                floor: self.floor,
                checkpointed: 0,
            };
            for transaction in &mut batch.transactions {
                transaction.outcome = batch::apply(
                    &mut objects,
                    &mut deletions,
                    std::mem::take(&mut transaction.writes),
                    &mut made,
                )?;
            }
            for object in chunk {
                let key = layout::encode_key(&object.key);
                // What was written durably since it was renewed is newer.
                if batch::head(&objects, &key)?.is_some_and(|head| head.revision == object.revision)
                {
                    batch::put(&mut objects, &key, object)?;
                    made.checkpointed += 1;
                }
            }
            let floor = self.shared.floor.load(Ordering::Relaxed);
            if floor > made.floor && !made.changes.is_empty() {
                deletions.retain_in(..=floor, |_, _| false)?;
                made.floor = floor;
            }
            made
        };
        if made.changes.is_empty() && batch.states.is_empty() && made.checkpointed == 0 {
            transaction.abort()?;
            return Ok(Vec::new());
        }
        if made.revision != self.revision {
            let mut meta = transaction.open_table(META)?;
            meta.insert("revision", made.revision.0.to_le_bytes().as_slice())?;
            if made.floor != self.floor {
                meta.insert("floor", made.floor.to_le_bytes().as_slice())?;
            }
        }
        if !batch.states.is_empty() {
            let mut states = transaction.open_table(STATE)?;
            for (name, value, _) in &batch.states {
                states.insert(name.as_str(), &**value)?;
            }
        }
        transaction.commit()?;
        self.shared.commits.fetch_add(1, Ordering::Relaxed);
        self.shared
            .checkpointed
            .fetch_add(made.checkpointed, Ordering::Relaxed);
        self.revision = made.revision;
        self.floor = made.floor;
        Ok(made.changes)
    }
}
