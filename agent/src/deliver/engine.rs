//! All Works: which are to be gone over, when, and what the member's events mean for them.
//!
//! One task holds everything, so nothing is locked. A Work is gone over by at most one task at a time; what happens to
//! its objects meanwhile waits for that task's end.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use evenkeel_shared::{
    names::execution_namespace,
    stamps::{WORK_NAME_ANNOTATION, WORK_NAMESPACE_ANNOTATION},
    work::Work,
};
use serde_json::{Value, json};
use tokio::{
    sync::{Notify, mpsc, watch},
    task::{AbortHandle, JoinSet},
    time::Instant,
};

use super::{
    manifest::{ObjectKey, stamped},
    member::Served,
    reconcile::{Objects, Pass, Placed, Reconciler, version},
};
use crate::{
    backoff::Backoff,
    follow::{Event, Sink, Target, follow},
    metrics,
    status::{apis::Catalogue, watchers},
    transport::{Caller, Failure},
    vitals::Vitals,
};

/// Works that are gone over at the same time.
const AT_ONCE: usize = 8;
const QUEUE: usize = 256;
const RETRY_FIRST: Duration = Duration::from_millis(500);
const RETRY_MOST: Duration = Duration::from_secs(30);
/// Corrections that follow each other faster are a fight, and are spaced out.
const FIGHT: Duration = Duration::from_secs(10);

/// What the engine works with.
pub struct Engine {
    pub cluster: String,
    pub control: Caller,
    pub member: Caller,
    pub served: watch::Receiver<watchers::Served>,
    /// Asks for a new discovery.
    pub discover: Arc<Notify>,
    pub ready: watch::Receiver<bool>,
    pub vitals: Arc<Vitals>,
}

/// News for the engine.
enum News {
    Work(Event<Box<Work>>),
    Object(Served, Event<Value>),
}

struct WorkSink(mpsc::Sender<News>);

impl Sink<Work> for WorkSink {
    async fn take(&mut self, event: Event<Work>) {
        let event = match event {
            Event::Restart => Event::Restart,
            Event::Listed(work) => Event::Listed(Box::new(work)),
            Event::Synced => Event::Synced,
            Event::Changed(work) => Event::Changed(Box::new(work)),
            Event::Deleted(work) => Event::Deleted(Box::new(work)),
        };
        // The engine is gone only when the agent ends.
        let _ = self.0.send(News::Work(event)).await;
    }

    fn trouble(&mut self, failure: &Failure) {
        tracing::debug!(error = %failure, "Works cannot be watched; the last known ones stay");
    }
}

struct ObjectSink(Served, mpsc::Sender<News>);

impl Sink<Value> for ObjectSink {
    async fn take(&mut self, event: Event<Value>) {
        let _ = self.1.send(News::Object(self.0.clone(), event)).await;
    }

    fn trouble(&mut self, failure: &Failure) {
        tracing::debug!(kind = self.0.kind, error = %failure, "placed objects cannot be watched");
    }
}

/// A Work and what is known of its objects.
struct Entry {
    work: Arc<Work>,
    objects: Objects,
    running: bool,
    /// To be gone over again after the running pass.
    again: bool,
    backoff: Backoff,
    due: Option<Instant>,
    /// The last news of objects that came while a pass was running. `None`: deleted.
    waiting: HashMap<ObjectKey, Option<Value>>,
    corrected: Option<Instant>,
    fights: Backoff,
}

impl Entry {
    fn new(work: Arc<Work>) -> Self {
        Self {
            work,
            objects: Objects::new(),
            running: false,
            again: false,
            backoff: Backoff::new(RETRY_FIRST, RETRY_MOST),
            due: None,
            waiting: HashMap::new(),
            corrected: None,
            fights: Backoff::new(Duration::from_secs(1), RETRY_MOST),
        }
    }

    fn rank(&self) -> u8 {
        let manifests = &self.work.spec.workload.manifests;
        let ranks = manifests
            .iter()
            .filter_map(|manifest| ObjectKey::of(manifest).ok())
            .map(|key| key.rank());
        ranks.min().unwrap_or(2)
    }

    /// The manifest of an object, as it is applied.
    fn desired(&self, key: &ObjectKey) -> Option<Value> {
        let manifests = &self.work.spec.workload.manifests;
        let found = manifests.iter().find(|manifest| {
            ObjectKey::of(manifest).is_ok_and(|other| {
                other.api_version == key.api_version
                    && other.kind == key.kind
                    && other.name == key.name
                    && (other.namespace == key.namespace || other.namespace.is_empty())
            })
        });
        found.map(|manifest| stamped(manifest, &self.work))
    }
}

/// What an object's news means.
#[derive(Debug, PartialEq, Eq)]
enum Meaning {
    Nothing,
    /// Its status is other than reported.
    Report,
    /// It is not as it was applied.
    Drift,
}

struct State {
    entries: HashMap<String, Entry>,
    /// To be gone over now: by rank, then name.
    queue: BTreeSet<(u8, String)>,
    timers: BTreeSet<(Instant, String)>,
    /// Names of the list that is being read.
    listing: Option<HashSet<String>>,
    /// Objects of the lists that are being read.
    seen: HashMap<Served, HashSet<ObjectKey>>,
    watches: HashMap<Served, AbortHandle>,
}

impl Engine {
    /// Delivers for ever. Ends only with the task.
    pub async fn run(mut self) {
        let (sender, mut news) = mpsc::channel(QUEUE);
        let mut followers = JoinSet::new();
        let namespace = execution_namespace(&self.cluster);
        followers.spawn(follow(
            self.control.client().clone(),
            Target {
                path: format!("/apis/work.karmada.io/v1alpha1/namespaces/{namespace}/works"),
                selector: String::new(),
            },
            self.vitals.metrics.clone(),
            WorkSink(sender.clone()),
        ));
        let mut passes: JoinSet<(String, Pass)> = JoinSet::new();
        let mut state = State {
            entries: HashMap::new(),
            queue: BTreeSet::new(),
            timers: BTreeSet::new(),
            listing: None,
            seen: HashMap::new(),
            watches: HashMap::new(),
        };
        loop {
            state.fire(Instant::now());
            self.start(&mut state, &mut passes);
            let timer = state.timers.first().map(|(due, _)| *due);
            tokio::select! {
                news = news.recv() => match news {
                    Some(News::Work(event)) => state.work(event),
                    Some(News::Object(served, event)) => self.object(&mut state, &served, event),
                    None => return,
                },
                Some(done) = passes.join_next() => match done {
                    Ok((name, pass)) => {
                        self.finished(&mut state, &name, pass);
                        self.watch_placed(&mut state, &mut followers, &sender);
                    }
                    Err(error) => tracing::error!(%error, "a pass over a Work failed"),
                },
                // Both senders live as long as the agent.
                Ok(()) = self.served.changed() => state.retry_all(),
                Ok(()) = self.ready.changed() => {
                    if *self.ready.borrow_and_update() {
                        state.retry_all();
                    }
                }
                () = sleep_until(timer) => {}
            }
        }
    }

    fn start(&self, state: &mut State, passes: &mut JoinSet<(String, Pass)>) {
        let served = self.served.borrow().clone();
        // Before the member was discovered nothing has a path.
        while served.known && passes.len() < AT_ONCE {
            let Some((_, name)) = state.queue.pop_first() else {
                return;
            };
            let Some(entry) = state.entries.get_mut(&name) else {
                continue;
            };
            if entry.running {
                entry.again = true;
                continue;
            }
            entry.running = true;
            let reconciler = Reconciler {
                control: self.control.clone(),
                member: self.member.clone(),
                catalogue: Arc::<Catalogue>::clone(&served.catalogue),
            };
            let (work, objects) = (Arc::clone(&entry.work), entry.objects.clone());
            passes.spawn(async move { (name, reconciler.run(work, objects).await) });
        }
    }

    fn finished(&self, state: &mut State, name: &str, pass: Pass) {
        let works = &self.vitals.metrics.works;
        let outcome = match &pass.unfinished {
            None => metrics::OK,
            Some(why) => {
                tracing::info!(work = name, error = why, "work not finished");
                metrics::FAILED
            }
        };
        works.get_or_create(&outcome).inc();
        if pass.catalogue_missed {
            self.discover.notify_one();
        }
        if pass.retired {
            state.forget(name);
        } else if let Some(entry) = state.entries.get_mut(name) {
            entry.running = false;
            entry.objects = pass.objects;
            if let Some(newer) = pass.work
                && work_version(&newer) >= work_version(&entry.work)
            {
                entry.work = Arc::new(newer);
            }
            let again = std::mem::take(&mut entry.again);
            let retry = pass.unfinished.is_some().then(|| entry.backoff.wait());
            if retry.is_none() {
                entry.backoff.reset();
            }
            for (key, live) in std::mem::take(&mut entry.waiting) {
                self.note(state, name, &key, live.as_ref());
            }
            match retry {
                _ if again => state.enqueue(name),
                Some(wait) => state.schedule(name, Instant::now() + wait),
                None => {}
            }
        }
        if pass.opened {
            state.retry_all();
        }
        let placed: usize = state
            .entries
            .values()
            .map(|entry| entry.objects.len())
            .sum();
        let placed = i64::try_from(placed).unwrap_or(i64::MAX);
        self.vitals.metrics.placed_objects.set(placed);
    }

    /// Watches every kind of which something is placed, and no other.
    fn watch_placed(
        &self,
        state: &mut State,
        followers: &mut JoinSet<()>,
        sender: &mpsc::Sender<News>,
    ) {
        while followers.try_join_next().is_some() {}
        let placed: HashSet<&Served> = state
            .entries
            .values()
            .flat_map(|entry| entry.objects.values())
            .map(|placed| &placed.served)
            .collect();
        state.watches.retain(|served, watch| {
            let wanted = placed.contains(served);
            if !wanted {
                watch.abort();
                state.seen.remove(served);
            }
            wanted
        });
        for served in placed {
            if !state.watches.contains_key(served) {
                let watch = followers.spawn(follow(
                    self.member.client().clone(),
                    served.target(),
                    self.vitals.metrics.clone(),
                    ObjectSink(served.clone(), sender.clone()),
                ));
                state.watches.insert(served.clone(), watch);
            }
        }
    }

    fn object(&self, state: &mut State, served: &Served, event: Event<Value>) {
        if !state.watches.contains_key(served) {
            return;
        }
        match event {
            Event::Restart => {
                state.seen.insert(served.clone(), HashSet::new());
            }
            Event::Synced => {
                let Some(seen) = state.seen.remove(served) else {
                    return;
                };
                for (name, key) in state.missing(served, &seen) {
                    self.note(state, &name, &key, None);
                }
            }
            Event::Listed(object) => {
                if let Some(key) = self.object_news(state, served, object, false)
                    && let Some(seen) = state.seen.get_mut(served)
                {
                    seen.insert(key);
                }
            }
            Event::Changed(object) => {
                self.object_news(state, served, object, false);
            }
            Event::Deleted(object) => {
                self.object_news(state, served, object, true);
            }
        }
    }

    fn object_news(
        &self,
        state: &mut State,
        served: &Served,
        mut object: Value,
        deleted: bool,
    ) -> Option<ObjectKey> {
        // The items of a list do not say what they are.
        let fields = object.as_object_mut()?;
        fields.insert("apiVersion".to_owned(), json!(served.api_version));
        fields.insert("kind".to_owned(), json!(served.kind));
        let key = ObjectKey::of(&object).ok()?;
        let annotations = &object["metadata"]["annotations"];
        if annotations[WORK_NAMESPACE_ANNOTATION] != execution_namespace(&self.cluster) {
            return None;
        }
        let name = annotations[WORK_NAME_ANNOTATION].as_str()?.to_owned();
        self.note(state, &name, &key, (!deleted).then_some(&object));
        Some(key)
    }

    /// Takes news of an object of a Work. `None`: it is not there.
    fn note(&self, state: &mut State, name: &str, key: &ObjectKey, live: Option<&Value>) {
        let Some(entry) = state.entries.get_mut(name) else {
            return;
        };
        if entry.running {
            entry.waiting.insert(key.clone(), live.cloned());
            return;
        }
        match meaning(entry, key, live) {
            Meaning::Nothing => {}
            Meaning::Report => state.enqueue(name),
            Meaning::Drift => {
                self.vitals.metrics.drift_corrections.inc();
                tracing::info!(work = name, object = %key, gone = live.is_none(), "set right after a change by others");
                let now = Instant::now();
                let fight = entry
                    .corrected
                    .replace(now)
                    .is_some_and(|last| now - last < FIGHT);
                if fight {
                    let due = now + entry.fights.wait();
                    state.schedule(name, due);
                } else {
                    entry.fights.reset();
                    state.enqueue(name);
                }
            }
        }
    }
}

/// What the news of an object means, taken into what is known of it.
fn meaning(entry: &mut Entry, key: &ObjectKey, live: Option<&Value>) -> Meaning {
    let desired = entry.desired(key);
    let (Some(placed), Some(desired)) = (entry.objects.get_mut(key), desired) else {
        return Meaning::Nothing;
    };
    let Some(live) = live else {
        placed.version = 0;
        return match placed.projection.take() {
            Some(_) => Meaning::Drift,
            None => Meaning::Nothing,
        };
    };
    // Older news than what the last apply answered.
    if version(live) < placed.version {
        return Meaning::Nothing;
    }
    let seen = Placed::seen(placed.served.clone(), &desired, live);
    placed.version = seen.version;
    if placed.projection.is_none() {
        return Meaning::Nothing;
    }
    if placed.projection != seen.projection {
        placed.projection = None;
        return Meaning::Drift;
    }
    if placed.status != seen.status || placed.health != seen.health {
        placed.status = seen.status;
        placed.health = seen.health;
        return Meaning::Report;
    }
    Meaning::Nothing
}

fn work_version(work: &Work) -> u64 {
    let version = work.metadata.resource_version.as_deref();
    version
        .and_then(|version| version.parse().ok())
        .unwrap_or_default()
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

impl State {
    fn work(&mut self, event: Event<Box<Work>>) {
        match event {
            Event::Restart => self.listing = Some(HashSet::new()),
            Event::Listed(work) => {
                if let Some(listing) = &mut self.listing {
                    listing.insert(work.name().to_owned());
                }
                self.put(*work);
            }
            Event::Changed(work) => self.put(*work),
            Event::Synced => {
                let Some(listing) = self.listing.take() else {
                    return;
                };
                let lost: Vec<_> = self
                    .entries
                    .keys()
                    .filter(|name| !listing.contains(*name))
                    .cloned()
                    .collect();
                for name in lost {
                    // Its deletion would have waited for our finalizer. Without it nobody said that the objects are
                    // to go: a control plane that lost its memory must not empty the member.
                    tracing::warn!(
                        work = name,
                        "the Work is gone without having been deleted; its objects stay"
                    );
                    self.forget(&name);
                }
            }
            Event::Deleted(work) => self.forget(work.name()),
        }
    }

    fn put(&mut self, work: Work) {
        let name = work.name().to_owned();
        match self.entries.get_mut(&name) {
            Some(entry) => {
                let same = entry.work.metadata.uid == work.metadata.uid;
                if same && work_version(&work) < work_version(&entry.work) {
                    return;
                }
                if entry.work.spec != work.spec
                    || entry.work.metadata.deletion_timestamp != work.metadata.deletion_timestamp
                {
                    entry.backoff.reset();
                } else if entry.due.is_some() || entry.running {
                    // Only its status or labels changed, most often by the pass that is under way: a retry comes in
                    // its time, and what a pass sees to does not depend on either.
                    entry.work = Arc::new(work);
                    return;
                }
                entry.work = Arc::new(work);
            }
            None => {
                self.entries
                    .insert(name.clone(), Entry::new(Arc::new(work)));
            }
        }
        self.enqueue(&name);
    }

    fn forget(&mut self, name: &str) {
        if let Some(entry) = self.entries.remove(name) {
            if let Some(due) = entry.due {
                self.timers.remove(&(due, name.to_owned()));
            }
            self.queue.remove(&(entry.rank(), name.to_owned()));
        }
    }

    fn enqueue(&mut self, name: &str) {
        let Some(entry) = self.entries.get_mut(name) else {
            return;
        };
        if let Some(due) = entry.due.take() {
            self.timers.remove(&(due, name.to_owned()));
        }
        if entry.running {
            entry.again = true;
        } else {
            self.queue.insert((entry.rank(), name.to_owned()));
        }
    }

    fn schedule(&mut self, name: &str, due: Instant) {
        let Some(entry) = self.entries.get_mut(name) else {
            return;
        };
        let due = match entry.due.take() {
            Some(earlier) => {
                self.timers.remove(&(earlier, name.to_owned()));
                earlier.min(due)
            }
            None => due,
        };
        entry.due = Some(due);
        self.timers.insert((due, name.to_owned()));
    }

    /// What is due goes into the queue.
    fn fire(&mut self, now: Instant) {
        while let Some((due, _)) = self.timers.first()
            && *due <= now
            && let Some((_, name)) = self.timers.pop_first()
        {
            if let Some(entry) = self.entries.get_mut(&name) {
                entry.due = None;
            }
            self.enqueue(&name);
        }
    }

    /// What waits for a retry is tried now: something changed that it may have waited for.
    fn retry_all(&mut self) {
        for (_, name) in std::mem::take(&mut self.timers) {
            if let Some(entry) = self.entries.get_mut(&name) {
                entry.due = None;
                entry.backoff.reset();
            }
            self.enqueue(&name);
        }
    }

    /// Placed objects of a kind that a whole list did not name.
    fn missing(&self, served: &Served, seen: &HashSet<ObjectKey>) -> Vec<(String, ObjectKey)> {
        let mut missing = Vec::new();
        for (name, entry) in &self.entries {
            for (key, placed) in &entry.objects {
                if placed.served == *served && !seen.contains(key) && !placed.shared {
                    missing.push((name.clone(), key.clone()));
                }
            }
        }
        missing
    }
}
