//! Storage engines: what keeps objects, behind one trait.
//!
//! An engine orders transactions, makes them durable and tells the cache of each. It answers no reads while the store
//! serves: those come from the [cache](crate::cache), which the engine fills at the start ([`Engine::range`]) and
//! feeds from then on ([`Engine::follow`]). The trait fits a remote engine too: everything that may wait is async,
//! conditions are on the revision of the last change, and changes made by others arrive by the same [`Sink`].

pub mod embedded;
pub mod memory;

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use futures::future::BoxFuture;

use crate::{Key, Object, Revision, Write};

/// Where a page of objects starts and ends.
#[derive(Clone, Debug, Default)]
pub struct RangeQuery {
    /// Objects behind this key, in the order of resource and path.
    pub after: Option<Key>,
    /// At most so many.
    pub limit: usize,
    /// The revision of the first page, for the pages that follow.
    pub at: Option<Revision>,
}

/// One page of everything that is stored.
#[derive(Debug)]
pub struct Page {
    pub objects: Vec<Arc<Object>>,
    pub revision: Revision,
    pub more: bool,
}

/// What an engine remembers beyond the objects that there are.
#[derive(Debug, Default)]
pub struct History {
    /// No change at or before this one is known any more, save by the objects that are still there.
    pub floor: Revision,
    /// Deletions after it, oldest first: the last states, at the revisions of their deletion.
    pub deletions: Vec<Arc<Object>>,
    /// Small named blobs.
    pub state: Vec<(String, Bytes)>,
}

/// A change that is durable.
#[derive(Clone, Debug)]
pub enum Applied {
    Put(Arc<Object>),
    Delete { key: Key, revision: Revision },
}

/// Takes durable changes in their order.
pub trait Sink: Send + Sync {
    /// Makes one or several whole transactions visible, and returns the objects as they stand after each change (of a
    /// deletion, the last state at the deletion's revision).
    fn apply(&self, changes: Vec<Applied>) -> Vec<Arc<Object>>;
}

/// Why an engine did not make a transaction.
#[derive(Debug, thiserror::Error)]
pub enum TransactError {
    /// The precondition on this object did not hold.
    #[error("precondition failed for {0:?}")]
    Conflict(Key),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Why an engine did not answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EngineError {
    /// More is waiting than may wait.
    #[error("too many writes are waiting")]
    Busy,
    #[error("the store is closed")]
    Closed,
    /// A page at a revision that the engine does not keep.
    #[error("revision {0} is not kept any more")]
    Compacted(Revision),
    /// What the engine met: an I/O error, damage. What was asked for may or may not have been done.
    #[error("{0}")]
    Failed(Arc<str>),
}

impl EngineError {
    #[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
    pub(crate) fn failed(cause: impl ToString) -> Self {
        Self::Failed(cause.to_string().into())
    }
}

/// What an engine did since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Transactions made.
    pub transactions: u64,
    /// Group commits: transactions that were waiting together share one.
    pub commits: u64,
    /// Times that the operating system was asked to put data on disk.
    pub fsyncs: u64,
    /// Bytes handed to the operating system.
    pub written_bytes: u64,
    /// Volatile objects put on disk.
    pub checkpointed: u64,
    /// Transactions that wait.
    pub pending: u64,
}

/// See the [module](self).
pub trait Engine: Send + Sync + 'static {
    /// A page of objects, in the order of their keys. A get is a range of one.
    fn range(&self, query: RangeQuery) -> BoxFuture<'_, Result<Page, EngineError>>;

    /// Hands every transaction from now on to `sink`, before it is acknowledged to whoever asked for it.
    fn follow(&self, sink: Arc<dyn Sink>) -> BoxFuture<'_, Result<History, EngineError>>;

    /// Makes all writes or none, and returns the objects as in [`Sink::apply`]. No key may be written twice.
    fn transact(
        &self,
        writes: Vec<Write>,
    ) -> BoxFuture<'_, Result<Vec<Arc<Object>>, TransactError>>;

    /// Puts the present state of volatile objects on disk, where they still stand at the same revision.
    fn checkpoint(&self, objects: Vec<Arc<Object>>) -> BoxFuture<'_, Result<(), EngineError>>;

    /// Allows the engine to forget deletions up to this revision, when it suits.
    fn compact(&self, floor: Revision);

    /// Keeps a small named blob.
    fn set_state(&self, name: String, value: Bytes) -> BoxFuture<'_, Result<(), EngineError>>;

    /// Writes a copy of everything, at one revision, to a new file.
    fn backup(&self, to: PathBuf) -> BoxFuture<'_, Result<Revision, EngineError>>;

    /// Finishes what was accepted and lets go of files and locks. Everything after it is [`EngineError::Closed`].
    fn close(&self) -> BoxFuture<'_, Result<(), EngineError>>;

    /// Why the engine takes no more writes, when an earlier one failed.
    fn failure(&self) -> Option<EngineError>;

    fn counters(&self) -> Counters;
}

/// The revision that an empty store stands at. 0 and 1 have meanings of their own to clients.
pub const FIRST_REVISION: Revision = Revision(100);
