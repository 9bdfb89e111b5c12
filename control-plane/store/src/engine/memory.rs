//! The engine of stores that live as long as their process: simulated members and unit tests.

use std::{
    collections::BTreeMap,
    ops::Bound,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt as _, ready};
use parking_lot::Mutex;

use super::{
    Applied, Counters, Engine, EngineError, FIRST_REVISION, History, Page, RangeQuery, Sink,
    TransactError,
};
use crate::{Change, Key, Object, Revision, Write};

/// Keeps everything in memory.
#[derive(Default)]
pub struct MemoryEngine {
    inner: Mutex<Inner>,
    transactions: AtomicU64,
}

struct Inner {
    objects: BTreeMap<Key, Arc<Object>>,
    revision: Revision,
    sink: Option<Arc<dyn Sink>>,
    closed: bool,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            revision: FIRST_REVISION,
            sink: None,
            closed: false,
        }
    }
}

impl MemoryEngine {
    /// An engine that has its sink from the start.
    pub fn following(sink: Arc<dyn Sink>) -> Self {
        let engine = Self::default();
        engine.inner.lock().sink = Some(sink);
        engine
    }
}

impl Inner {
    fn transact(&mut self, writes: Vec<Write>) -> Result<Vec<Arc<Object>>, TransactError> {
        if self.closed {
            return Err(EngineError::Closed.into());
        }
        for write in &writes {
            let head = self.objects.get(&write.key).map(|object| object.revision);
            if !write.may_follow(head) {
                return Err(TransactError::Conflict(write.key.clone()));
            }
        }
        let mut changes = Vec::with_capacity(writes.len());
        for write in writes {
            self.revision = self.revision.next();
            let revision = self.revision;
            changes.push(match write.change {
                Change::Put(body) => {
                    let created = self
                        .objects
                        .get(&write.key)
                        .map_or(revision, |old| old.created);
                    let object =
                        Arc::new(Object::assemble(write.key.clone(), body, revision, created));
                    self.objects.insert(write.key, Arc::clone(&object));
                    Applied::Put(object)
                }
                Change::Delete => {
                    self.objects.remove(&write.key);
                    Applied::Delete {
                        key: write.key,
                        revision,
                    }
                }
            });
        }
        Ok(match &self.sink {
            Some(sink) => sink.apply(changes),
            None => Vec::new(),
        })
    }
}

impl Engine for MemoryEngine {
    fn range(&self, query: RangeQuery) -> BoxFuture<'_, Result<Page, EngineError>> {
        let inner = self.inner.lock();
        if let Some(at) = query.at
            && at != inner.revision
        {
            return ready(Err(EngineError::Compacted(at))).boxed();
        }
        let from = query.after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = inner.objects.range((from, Bound::Unbounded));
        let objects = rest
            .by_ref()
            .take(query.limit)
            .map(|(_, object)| Arc::clone(object))
            .collect();
        ready(Ok(Page {
            objects,
            revision: inner.revision,
            more: rest.next().is_some(),
        }))
        .boxed()
    }

    fn follow(&self, sink: Arc<dyn Sink>) -> BoxFuture<'_, Result<History, EngineError>> {
        let mut inner = self.inner.lock();
        inner.sink = Some(sink);
        ready(Ok(History {
            floor: inner.revision,
            ..History::default()
        }))
        .boxed()
    }

    fn transact(
        &self,
        writes: Vec<Write>,
    ) -> BoxFuture<'_, Result<Vec<Arc<Object>>, TransactError>> {
        // The sink is called under the lock: that is what keeps the order.
        let result = self.inner.lock().transact(writes);
        if result.is_ok() {
            self.transactions.fetch_add(1, Ordering::Relaxed);
        }
        ready(result).boxed()
    }

    fn checkpoint(&self, _objects: Vec<Arc<Object>>) -> BoxFuture<'_, Result<(), EngineError>> {
        ready(Ok(())).boxed()
    }

    fn compact(&self, _floor: Revision) {}

    fn set_state(&self, _name: String, _value: Bytes) -> BoxFuture<'_, Result<(), EngineError>> {
        ready(Ok(())).boxed()
    }

    fn backup(&self, _to: PathBuf) -> BoxFuture<'_, Result<Revision, EngineError>> {
        ready(Err(EngineError::failed(
            "a store in memory has nothing to back up from",
        )))
        .boxed()
    }

    fn close(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        let mut inner = self.inner.lock();
        inner.closed = true;
        inner.sink = None;
        ready(Ok(())).boxed()
    }

    fn failure(&self) -> Option<EngineError> {
        None
    }

    fn counters(&self) -> Counters {
        let transactions = self.transactions.load(Ordering::Relaxed);
        Counters {
            transactions,
            commits: transactions,
            ..Counters::default()
        }
    }
}
