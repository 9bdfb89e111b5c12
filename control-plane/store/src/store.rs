//! The store: an engine, and the cache that answers for it.

use std::{
    collections::HashMap,
    fmt,
    path::Path,
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    Body, CommitError, Expired, Key, ListQuery, Listing, Object, OpenError, Revision, Scope,
    Statistics, StoreOptions, Watch, Write,
    cache::Cache,
    engine::{
        Engine, EngineError, FIRST_REVISION, History, RangeQuery, Sink, TransactError,
        embedded::EmbeddedEngine, memory::MemoryEngine,
    },
};

/// Objects that are taken over from the engine at a time, at the start.
const LOAD_PAGE: usize = 1_000;

/// A handle to a store; cheap to clone.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    cache: Arc<Cache>,
    engine: Box<dyn Engine>,
    state: RwLock<HashMap<String, Bytes>>,
    upkeep: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl Store {
    /// Opens `dir/store.redb`, or makes it. Must be called in a tokio runtime.
    pub async fn open(dir: &Path, options: StoreOptions) -> Result<Self, OpenError> {
        let engine = EmbeddedEngine::open(dir, &options).await?;
        let opened = Self::over(Box::new(engine), &options).await;
        opened.map_err(|error| OpenError::Damaged {
            path: dir.to_owned(),
            reason: error.to_string(),
        })
    }

    /// A store that lives as long as its handles.
    #[expect(clippy::needless_pass_by_value, reason = "as in `open`")]
    pub fn in_memory(options: StoreOptions) -> Self {
        let cache = Arc::new(Cache::new(&options));
        let engine = MemoryEngine::following(Arc::clone(&cache) as Arc<dyn Sink>);
        let history = History {
            floor: FIRST_REVISION,
            ..History::default()
        };
        cache.loaded(FIRST_REVISION, history);
        Self {
            inner: Arc::new(Inner {
                cache,
                engine: Box::new(engine),
                state: RwLock::default(),
                upkeep: Mutex::default(),
            }),
        }
    }

    /// Fills the cache from an engine and serves from then on.
    async fn over(engine: Box<dyn Engine>, options: &StoreOptions) -> Result<Self, EngineError> {
        let cache = Arc::new(Cache::new(options));
        let mut query = RangeQuery {
            limit: LOAD_PAGE,
            ..RangeQuery::default()
        };
        let revision = loop {
            let page = engine.range(query.clone()).await?;
            query.after = page.objects.last().map(|object| object.key.clone());
            query.at = Some(page.revision);
            cache.load(page.objects);
            if !page.more {
                break page.revision;
            }
        };
        let mut history = engine.follow(Arc::clone(&cache) as Arc<dyn Sink>).await?;
        let state = std::mem::take(&mut history.state).into_iter().collect();
        cache.loaded(revision, history);
        let inner = Arc::new(Inner {
            cache,
            engine,
            state: RwLock::new(state),
            upkeep: Mutex::default(),
        });
        let upkeep = tokio::spawn(upkeep(Arc::downgrade(&inner), options.checkpoint_interval));
        *inner.upkeep.lock() = Some(AbortOnDropHandle::new(upkeep));
        Ok(Self { inner })
    }

    /// The revision of the newest change that can be seen.
    pub fn revision(&self) -> Revision {
        self.inner.cache.revision()
    }

    /// Waits until [`revision`](Self::revision) is this one or a later one.
    pub async fn reached(&self, revision: Revision) {
        self.inner.cache.reached(revision).await;
    }

    pub fn get(&self, key: &Key) -> Option<Arc<Object>> {
        self.inner.cache.get(key)
    }

    /// The objects of a scope that `filter` takes. Fails when `query.at` is further back than the store remembers.
    pub fn list(
        &self,
        scope: &Scope,
        query: &ListQuery,
        filter: &dyn Fn(&Object) -> bool,
    ) -> Result<Listing, Expired> {
        self.inner.cache.list(scope, query, filter)
    }

    /// Makes all writes or none. When this returns they are on disk and every read sees them. Each object gets a
    /// revision of its own, rising in the order of the writes; of a deletion, the last state is returned at the
    /// deletion's revision. When the future is dropped the writes may still be made.
    pub async fn commit(&self, writes: Vec<Write>) -> Result<Vec<Arc<Object>>, CommitError> {
        if writes.is_empty() {
            return Ok(Vec::new());
        }
        if let Some(write) = writes.iter().find(|write| !write.is_sound()) {
            return Err(unsound(&write.key));
        }
        if let Some(twice) = written_twice(&writes) {
            return Err(self.conflict(twice.clone()));
        }
        self.inner
            .engine
            .transact(writes)
            .await
            .map_err(|error| match error {
                TransactError::Conflict(key) => self.conflict(key),
                TransactError::Engine(error) => error.into(),
            })
    }

    fn conflict(&self, key: Key) -> CommitError {
        CommitError::Conflict {
            current: self.get(&key),
            key,
        }
    }

    /// Replaces the body of an object in memory: every reader and watcher sees it at once, its revision stays, and it
    /// is on disk by the next checkpoint. A durable write that was prepared before replaces it like any other state.
    pub fn renew(&self, key: &Key, body: Body) -> Result<Arc<Object>, CommitError> {
        self.renew_if(key, None, body)
    }

    /// The same, only if the object still is the one that the new body was made from: neither another renewal nor a
    /// durable write came in between.
    pub fn renew_from(&self, from: &Arc<Object>, body: Body) -> Result<Arc<Object>, CommitError> {
        self.renew_if(&from.key, Some(from), body)
    }

    fn renew_if(
        &self,
        key: &Key,
        from: Option<&Arc<Object>>,
        body: Body,
    ) -> Result<Arc<Object>, CommitError> {
        if !body.is_sound() {
            return Err(unsound(key));
        }
        self.inner.cache.renew(key, from, body)
    }

    /// Every change in a scope after a revision. One that is not reached yet gives silence until then.
    pub fn watch(&self, scope: &Scope, after: Revision) -> Result<Watch, Expired> {
        let cache = &self.inner.cache;
        let (queue, past) = cache.subscribe(scope, after)?;
        Ok(Watch::new(
            Arc::clone(cache),
            queue,
            scope.clone(),
            after,
            past,
        ))
    }

    /// A scope as it is, and every change from there on.
    pub fn list_and_watch(&self, scope: &Scope) -> (Listing, Watch) {
        let cache = &self.inner.cache;
        let (listing, queue) = cache.list_and_subscribe(scope);
        let after = listing.revision;
        let watch = Watch::new(Arc::clone(cache), queue, scope.clone(), after, Vec::new());
        (listing, watch)
    }

    /// A small blob that was kept under a name: what a controller remembers beside objects.
    pub fn state(&self, name: &str) -> Option<Bytes> {
        self.inner.state.read().get(name).cloned()
    }

    /// Keeps a small blob. It is on disk when this returns, and has no revision.
    pub async fn set_state(&self, name: &str, value: Bytes) -> Result<(), CommitError> {
        self.inner
            .engine
            .set_state(name.to_owned(), value.clone())
            .await?;
        self.inner.state.write().insert(name.to_owned(), value);
        Ok(())
    }

    /// Writes everything, as it stands at one revision, to a new file, while the store serves. The file appears under
    /// its name when it is complete.
    pub async fn backup(&self, to: &Path) -> Result<Revision, EngineError> {
        self.inner.checkpoint().await?;
        self.inner.engine.backup(to.to_owned()).await
    }

    /// Ends all watches, finishes the writes that wait, puts volatile objects on disk and lets go of the files.
    pub async fn close(&self) -> Result<(), EngineError> {
        self.inner.cache.close();
        drop(self.inner.upkeep.lock().take());
        let flushed = self.inner.checkpoint().await;
        let closed = self.inner.engine.close().await;
        match flushed {
            Err(EngineError::Closed) | Ok(()) => closed,
            Err(error) => Err(error),
        }
    }

    /// Why no write can be made any more, when the engine failed: for readiness. Only a restart mends it.
    pub fn failure(&self) -> Option<String> {
        self.inner.engine.failure().map(|error| error.to_string())
    }

    pub fn statistics(&self) -> Statistics {
        let engine = self.inner.engine.counters();
        let cache = self.inner.cache.sizes();
        Statistics {
            writes: engine.transactions,
            commits: engine.commits,
            fsyncs: engine.fsyncs,
            written_bytes: engine.written_bytes,
            pending_writes: engine.pending,
            volatile_writes: cache.volatile_writes,
            checkpointed: engine.checkpointed,
            events: cache.events,
            objects: cache.objects,
            bytes: cache.bytes,
            ring_events: cache.ring_events,
            ring_bytes: cache.ring_bytes,
            watchers: cache.watchers,
        }
    }
}

impl Inner {
    /// Puts what was renewed on disk.
    async fn checkpoint(&self) -> Result<(), EngineError> {
        let renewed = self.cache.take_renewed();
        if renewed.is_empty() {
            return Ok(());
        }
        let keys: Vec<_> = renewed.iter().map(|object| object.key.clone()).collect();
        let result = self.engine.checkpoint(renewed).await;
        if result.is_err() {
            // They are still to be put on disk: the next checkpoint tries again.
            self.cache.give_back_renewed(keys);
        }
        result
    }
}

/// What is done from time to time, for as long as the store is there.
async fn upkeep(store: Weak<Inner>, interval: Duration) {
    let mut ticks = tokio::time::interval_at(Instant::now() + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(store) = store.upgrade() else {
            return;
        };
        store.engine.compact(store.cache.floor());
        if let Err(error) = store.checkpoint().await {
            tracing::warn!(%error, "volatile objects could not be put on disk");
        }
    }
}

/// A fault of the caller: nothing that a client sends leads here.
fn unsound(key: &Key) -> CommitError {
    CommitError::Unavailable(format!("the body of {key:?} has no place for its revision"))
}

fn written_twice(writes: &[Write]) -> Option<&Key> {
    if writes.len() == 1 {
        return None;
    }
    let mut keys: Vec<_> = writes.iter().map(|write| &write.key).collect();
    keys.sort_unstable();
    keys.windows(2)
        .find_map(|pair| (pair[0] == pair[1]).then_some(pair[0]))
}

impl From<EngineError> for CommitError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Busy => Self::Busy,
            other => Self::Unavailable(other.to_string()),
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("revision", &self.revision())
            .finish_non_exhaustive()
    }
}
