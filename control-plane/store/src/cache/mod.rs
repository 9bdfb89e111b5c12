//! The watch cache: every object once, as the bytes that go on the wire; recent changes; and who wants to hear of
//! them. All reads are answered here. The engine feeds it through [`Sink`].
//!
//! - [`ring`]: recent changes, for watches that resume and lists at an older revision
//! - [`subscribers`]: who is woken by which change
//! - [`queue`]: what waits for one watcher

pub(crate) mod queue;
pub(crate) mod ring;
pub(crate) mod subscribers;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Bound,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Waker,
};

use parking_lot::{Mutex, RwLock};

use self::{
    queue::Queue,
    ring::{Deletions, Ring},
    subscribers::Subscribers,
};
use crate::{
    Body, CommitError, Event, EventKind, Expired, Key, ListQuery, Listing, Object, Resource,
    Revision, Scope, StoreOptions,
    engine::{Applied, History, Sink},
};

type Objects = BTreeMap<Arc<str>, Arc<Object>>;

/// See the [module](self).
pub(crate) struct Cache {
    contents: RwLock<Contents>,
    /// Locked after `contents`, where both are.
    subscribers: Mutex<Subscribers>,
    /// The revision up to which every event has been put into the queues.
    published: AtomicU64,
    reached: tokio::sync::watch::Sender<Revision>,
    volatile_writes: AtomicU64,
    events: AtomicU64,
    watcher_events: usize,
}

struct Contents {
    objects: HashMap<Resource, Objects>,
    revision: Revision,
    ring: Ring,
    deletions: Deletions,
    /// Objects that were renewed since the last checkpoint.
    renewed: HashSet<Key>,
    count: usize,
    bytes: usize,
    closed: bool,
}

/// How much the cache holds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sizes {
    pub objects: usize,
    pub bytes: usize,
    pub ring_events: usize,
    pub ring_bytes: usize,
    pub watchers: usize,
    pub events: u64,
    pub volatile_writes: u64,
}

impl Cache {
    pub fn new(options: &StoreOptions) -> Self {
        Self {
            contents: RwLock::new(Contents {
                objects: HashMap::new(),
                revision: Revision::default(),
                ring: Ring::new(options.ring_events, options.ring_bytes),
                deletions: Deletions::new(options.deletions, options.deletion_bytes),
                renewed: HashSet::new(),
                count: 0,
                bytes: 0,
                closed: false,
            }),
            subscribers: Mutex::default(),
            published: AtomicU64::new(0),
            reached: tokio::sync::watch::Sender::new(Revision::default()),
            volatile_writes: AtomicU64::new(0),
            events: AtomicU64::new(0),
            watcher_events: options.watcher_events,
        }
    }

    /// Fills in what was stored before: pages of objects, before anything is applied.
    pub fn load(&self, objects: Vec<Arc<Object>>) {
        let mut contents = self.contents.write();
        for object in objects {
            contents.put(object);
        }
    }

    /// Ends the loading: the revision, and the deletions that are remembered.
    pub fn loaded(&self, revision: Revision, history: History) {
        let mut contents = self.contents.write();
        contents.revision = revision;
        contents.ring.start(revision);
        contents.deletions.start(history.floor, history.deletions);
        self.published.store(revision.0, Ordering::Release);
        self.reached.send_replace(revision);
    }

    pub fn revision(&self) -> Revision {
        Revision(self.published.load(Ordering::Acquire))
    }

    pub async fn reached(&self, revision: Revision) {
        let mut receiver = self.reached.subscribe();
        // The sender lives in `self`, so this ends only by the condition.
        let _ = receiver.wait_for(|at| *at >= revision).await;
    }

    pub fn get(&self, key: &Key) -> Option<Arc<Object>> {
        let contents = self.contents.read();
        contents
            .objects
            .get(&key.resource)?
            .get(&key.path)
            .map(Arc::clone)
    }

    pub fn list(
        &self,
        scope: &Scope,
        query: &ListQuery,
        filter: &dyn Fn(&Object) -> bool,
    ) -> Result<Listing, Expired> {
        // The filter runs outside the lock, so that no list holds up a write.
        let (candidates, revision) = self.contents.read().candidates(scope, query)?;
        Ok(Listing::select(candidates, revision, query.limit, filter))
    }

    /// The object in memory gets another body and keeps its revision.
    pub fn renew(
        &self,
        key: &Key,
        from: Option<&Arc<Object>>,
        body: Body,
    ) -> Result<Arc<Object>, CommitError> {
        let mut wakers = Vec::new();
        let object = {
            let mut contents = self.contents.write();
            if contents.closed {
                return Err(CommitError::Unavailable("the store is closed".into()));
            }
            let Some(previous) = contents.find(key).map(Arc::clone) else {
                return Err(CommitError::Conflict {
                    key: key.clone(),
                    current: None,
                });
            };
            if from.is_some_and(|from| !Arc::ptr_eq(from, &previous)) {
                return Err(CommitError::Conflict {
                    key: key.clone(),
                    current: Some(previous),
                });
            }
            let object = Arc::new(Object::assemble(
                previous.key.clone(),
                body,
                previous.revision,
                previous.created,
            ));
            contents.put(Arc::clone(&object));
            contents.renewed.insert(object.key.clone());
            let event = Arc::new(Event {
                kind: EventKind::Modified,
                object: Arc::clone(&object),
                previous: Some(previous),
                revision: object.revision,
            });
            // A watch that starts in the future hears nothing before it, so the time of this event counts, not the
            // revision of its object.
            let now = contents.revision.next();
            self.subscribers.lock().publish(&event, now, &mut wakers);
            object
        };
        self.volatile_writes.fetch_add(1, Ordering::Relaxed);
        wakers.into_iter().for_each(Waker::wake);
        Ok(object)
    }

    /// Takes the objects that were renewed since the last call.
    pub fn take_renewed(&self) -> Vec<Arc<Object>> {
        let mut contents = self.contents.write();
        let keys = std::mem::take(&mut contents.renewed);
        keys.iter()
            .filter_map(|key| contents.find(key).map(Arc::clone))
            .collect()
    }

    /// Marks objects as renewed again, since they could not be put on disk.
    pub fn give_back_renewed(&self, keys: Vec<Key>) {
        self.contents.write().renewed.extend(keys);
    }

    /// The revision up to which deletions are forgotten.
    pub fn floor(&self) -> Revision {
        self.contents.read().deletions.floor()
    }

    /// Subscribes, and returns what already happened after `after`.
    pub fn subscribe(
        &self,
        scope: &Scope,
        after: Revision,
    ) -> Result<(Arc<Queue>, Vec<Arc<Event>>), Expired> {
        let contents = self.contents.read();
        let past = contents.changes(scope, after)?;
        Ok((self.enter(&contents, scope, after), past))
    }

    /// Lists and subscribes at one revision.
    pub fn list_and_subscribe(&self, scope: &Scope) -> (Listing, Arc<Queue>) {
        let contents = self.contents.read();
        let objects = contents.present(scope, None);
        let revision = contents.revision;
        let queue = self.enter(&contents, scope, revision);
        drop(contents);
        let listing = Listing::select(objects, revision, None, &|_| true);
        (listing, queue)
    }

    /// The lock on `contents` keeps events out until the queue is in place.
    fn enter(&self, contents: &Contents, scope: &Scope, after: Revision) -> Arc<Queue> {
        let queue = Arc::new(Queue::new(after, self.watcher_events));
        if contents.closed {
            queue.close();
        } else {
            self.subscribers.lock().insert(scope, Arc::clone(&queue));
        }
        queue
    }

    pub fn unsubscribe(&self, scope: &Scope, queue: &Arc<Queue>) {
        self.subscribers.lock().remove(scope, queue);
    }

    /// Ends all watches; no renewal is taken any more.
    pub fn close(&self) {
        let mut contents = self.contents.write();
        contents.closed = true;
        let wakers = self.subscribers.lock().close();
        drop(contents);
        wakers.into_iter().for_each(Waker::wake);
    }

    pub fn sizes(&self) -> Sizes {
        let contents = self.contents.read();
        Sizes {
            objects: contents.count,
            bytes: contents.bytes,
            ring_events: contents.ring.len(),
            ring_bytes: contents.ring.bytes(),
            watchers: self.subscribers.lock().len(),
            events: self.events.load(Ordering::Relaxed),
            volatile_writes: self.volatile_writes.load(Ordering::Relaxed),
        }
    }
}

impl Sink for Cache {
    fn apply(&self, changes: Vec<Applied>) -> Vec<Arc<Object>> {
        let mut wakers = Vec::new();
        let mut objects = Vec::with_capacity(changes.len());
        let mut contents = self.contents.write();
        let mut subscribers = self.subscribers.lock();
        for change in changes {
            let Some(event) = contents.apply(change) else {
                continue;
            };
            objects.push(Arc::clone(&event.object));
            subscribers.publish(&event, event.revision, &mut wakers);
            contents.ring.push(event);
        }
        drop(subscribers);
        let revision = contents.revision;
        self.published.store(revision.0, Ordering::Release);
        drop(contents);
        self.events
            .fetch_add(objects.len() as u64, Ordering::Relaxed);
        self.reached.send_replace(revision);
        wakers.into_iter().for_each(Waker::wake);
        objects
    }
}

impl Contents {
    fn find(&self, key: &Key) -> Option<&Arc<Object>> {
        self.objects.get(&key.resource)?.get(&key.path)
    }

    fn put(&mut self, object: Arc<Object>) -> Option<Arc<Object>> {
        self.bytes += object.json.len();
        let of_resource = match self.objects.get_mut(&object.key.resource) {
            Some(objects) => objects,
            None => self.objects.entry(object.key.resource.clone()).or_default(),
        };
        let previous = of_resource.insert(Arc::clone(&object.key.path), object);
        match &previous {
            Some(previous) => self.bytes -= previous.json.len(),
            None => self.count += 1,
        }
        previous
    }

    fn remove(&mut self, key: &Key) -> Option<Arc<Object>> {
        let previous = self.objects.get_mut(&key.resource)?.remove(&key.path)?;
        self.bytes -= previous.json.len();
        self.count -= 1;
        Some(previous)
    }

    /// `None` when a deletion hits nothing.
    fn apply(&mut self, change: Applied) -> Option<Arc<Event>> {
        let event = match change {
            Applied::Put(object) => {
                self.renewed.remove(&object.key);
                self.revision = object.revision;
                let previous = self.put(Arc::clone(&object));
                Event {
                    kind: match previous {
                        Some(_) => EventKind::Modified,
                        None => EventKind::Added,
                    },
                    revision: object.revision,
                    object,
                    previous,
                }
            }
            Applied::Delete { key, revision } => {
                self.renewed.remove(&key);
                self.revision = revision;
                let previous = self.remove(&key)?;
                let object = Arc::new(previous.at(revision));
                self.deletions.push(Arc::clone(&object));
                Event {
                    kind: EventKind::Deleted,
                    object,
                    previous: Some(previous),
                    revision,
                }
            }
        };
        Some(Arc::new(event))
    }

    /// What a list chooses from: the objects of the scope behind `query.after`, at `query.at`.
    fn candidates(
        &self,
        scope: &Scope,
        query: &ListQuery,
    ) -> Result<(Vec<Arc<Object>>, Revision), Expired> {
        let after = query.after.as_deref();
        let objects = self.present(scope, after);
        match query.at {
            Some(at) if at < self.revision => {
                let undone = self.ring.undo(scope, after, at)?;
                Ok((ring::overlay(objects, undone), at))
            }
            _ => Ok((objects, self.revision)),
        }
    }

    /// The objects of a scope as they are, in the order of their paths.
    fn present(&self, scope: &Scope, after: Option<&str>) -> Vec<Arc<Object>> {
        let Some(objects) = self.objects.get(&scope.resource) else {
            return Vec::new();
        };
        if let (Some(namespace), Some(name)) = (&scope.namespace, &scope.name) {
            let path = format!("{namespace}/{name}");
            return objects
                .get(path.as_str())
                .filter(|_| after.is_none_or(|after| path.as_str() > after))
                .map(Arc::clone)
                .into_iter()
                .collect();
        }
        let bounds = scope.namespace.as_deref().map(namespace_bounds);
        let start = bounds.as_ref().map(|(start, _)| start.as_str());
        let end = bounds.as_ref().map(|(_, end)| end.as_str());
        let lower = match (start, after) {
            (Some(start), Some(after)) if after < start => Bound::Included(start),
            (_, Some(after)) => Bound::Excluded(after),
            (Some(start), None) => Bound::Included(start),
            (None, None) => Bound::Unbounded,
        };
        if let (Some(end), Bound::Excluded(after)) = (end, lower)
            && after >= end
        {
            return Vec::new();
        }
        let upper = end.map_or(Bound::Unbounded, Bound::Excluded);
        objects
            .range::<str, _>((lower, upper))
            .filter(|(_, object)| {
                scope
                    .name
                    .as_deref()
                    .is_none_or(|name| object.key.name() == name)
            })
            .map(|(_, object)| Arc::clone(object))
            .collect()
    }

    /// The changes in a scope after a revision: each of them where the ring reaches back so far, else one for each
    /// object that changed.
    fn changes(&self, scope: &Scope, after: Revision) -> Result<Vec<Arc<Event>>, Expired> {
        if after >= self.ring.floor() {
            return Ok(self.ring.after(scope, after));
        }
        let deleted = self.deletions.after(scope, after)?;
        let mut events: Vec<_> = self
            .present(scope, None)
            .into_iter()
            .filter(|object| object.revision > after)
            .map(|object| {
                let kind = if object.created > after {
                    EventKind::Added
                } else {
                    EventKind::Modified
                };
                (kind, object)
            })
            .chain(deleted.map(|object| (EventKind::Deleted, object)))
            .map(|(kind, object)| {
                Arc::new(Event {
                    kind,
                    revision: object.revision,
                    object,
                    previous: None,
                })
            })
            .collect();
        events.sort_by_key(|event| event.revision);
        Ok(events)
    }
}

/// Paths of a namespace are in `[start, end)`: `/` is followed by `0`.
fn namespace_bounds(namespace: &str) -> (String, String) {
    (format!("{namespace}/"), format!("{namespace}0"))
}
