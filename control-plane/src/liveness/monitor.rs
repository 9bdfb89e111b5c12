//! The loop: notes who was heard, judges everybody every period, writes what has to be written.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use evenkeel_api::{failure::Failure, kind::Kind, local::Client};
use evenkeel_shared::{cluster::Cluster, condition, stamps};
use evenkeel_store::{Key, Store};
use futures::{StreamExt, stream::FuturesUnordered};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::{
    change::{self, EVENT_NAMESPACE, Told},
    checkpoint,
    hearing::Hearing,
    ledger::{Ledger, Overdue},
    metrics::{Metrics, WriteResult},
    verdict::{Knobs, Ready},
};
use crate::{
    clock::{self, Stopwatch},
    fleet::{self, Fleet, Summary},
    worker::Due,
};

/// How often the loop looks up: what is heard and what changed is taken over, and its own pauses are noticed.
const BEAT: Duration = Duration::from_millis(500);
/// How often the times last heard are kept.
const CHECKPOINT: Duration = Duration::from_mins(1);
/// Writes that are under way at a time: they share group commits.
const WRITES: usize = 64;
/// Events that may wait to be written; further ones are dropped and counted. The conditions tell the same.
const WAITING_EVENTS: usize = 20_000;

/// What the monitor works with.
pub struct Monitor {
    pub store: Store,
    pub client: Client,
    pub clusters: Arc<Kind>,
    pub events: Arc<Kind>,
    pub fleet: Arc<Fleet>,
    pub hearing: Arc<Hearing>,
    pub stopwatch: Stopwatch,
    pub knobs: Knobs,
    pub metrics: Metrics,
}

/// One thing that is being written.
enum Done {
    Verdict(Arc<str>, WriteResult),
    Event,
}

type Writing<'a> = FuturesUnordered<Pin<Box<dyn Future<Output = Done> + Send + 'a>>>;

impl Monitor {
    /// Judges until `stop`. The clusters that are there when it starts get a fresh grace period.
    pub async fn run(&self, stop: CancellationToken) {
        let mut memory = Memory::new(self);
        let mut writing = Writing::new();
        let mut beats = tokio::time::interval(BEAT.min(self.knobs.period));
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            while writing.len() < WRITES {
                let Some(write) = memory.next_write(self) else {
                    break;
                };
                writing.push(write);
            }
            tokio::select! {
                () = stop.cancelled() => break,
                _ = beats.tick() => memory.beat(self).await,
                Some(done) = writing.next(), if !writing.is_empty() => memory.done(self, done),
            }
        }
        while writing.next().await.is_some() {}
        memory.keep(self).await;
    }

    /// Says Unknown, unless the cluster was heard or changed in the meantime.
    async fn say_unknown(&self, overdue: Overdue) -> Done {
        let result = self.try_unknown(&overdue).await;
        let result = result.unwrap_or_else(|error| {
            tracing::warn!(cluster = %overdue.cluster, error = %error.message, "cannot say Unknown");
            WriteResult::Failed
        });
        Done::Verdict(overdue.cluster, result)
    }

    async fn try_unknown(&self, overdue: &Overdue) -> Result<WriteResult, Failure> {
        let key = Key::new(fleet::resource(), None, &overdue.cluster);
        if self.hearing.has(&overdue.cluster) {
            return Ok(WriteResult::Overtaken);
        }
        let Some(object) = self.store.get(&key) else {
            return Ok(WriteResult::Overtaken);
        };
        let internal = |error: serde_json::Error| Failure::internal(error.to_string());
        let mut value: Value = serde_json::from_slice(&object.json).map_err(internal)?;
        let cluster: Cluster = serde_json::from_slice(&object.json).map_err(internal)?;
        let standing = cluster
            .condition(stamps::READY)
            .map_or(Ready::Never, |ready| Ready::from_status(&ready.status));
        if standing == Ready::Unknown {
            return Ok(WriteResult::Overtaken);
        }
        let unknown = change::unknown(
            overdue.verdict,
            overdue.silence,
            overdue.heard,
            clock::now(),
        );
        let mut conditions = cluster.status.unwrap_or_default().conditions;
        condition::set(&mut conditions, unknown);
        value["status"]["conditions"] = serde_json::to_value(conditions).map_err(internal)?;
        // Against the revision that was read: whatever the agent writes meanwhile wins.
        match self.client.update_status(&self.clusters, None, value).await {
            Ok(_) => {
                tracing::info!(
                    cluster = %overdue.cluster,
                    reason = overdue.verdict.reason(),
                    silence = %humantime::format_duration(Duration::from_secs(overdue.silence.as_secs())),
                    "a cluster is Unknown"
                );
                Ok(WriteResult::Written)
            }
            Err(failure) if matches!(failure.code.as_u16(), 404 | 409) => {
                Ok(WriteResult::Overtaken)
            }
            Err(failure) => Err(failure),
        }
    }

    async fn tell(&self, told: Told) -> Done {
        if let Err(failure) = self.try_tell(&told).await {
            tracing::warn!(cluster = %told.cluster, reason = told.reason, error = %failure.message, "cannot write an event");
        }
        Done::Event
    }

    async fn try_tell(&self, told: &Told) -> Result<(), Failure> {
        let namespace = Some(EVENT_NAMESPACE);
        let standing = self
            .client
            .get(&self.events, namespace, &told.event_name())
            .await;
        match standing {
            Ok(standing) => {
                let event = told.event(Some(&standing), clock::now());
                self.client.update(&self.events, namespace, event).await?;
            }
            Err(failure) if failure.code.as_u16() == 404 => {
                let event = told.event(None, clock::now());
                self.client.create(&self.events, namespace, event).await?;
            }
            Err(failure) => return Err(failure),
        }
        Ok(())
    }
}

/// What the loop remembers.
struct Memory {
    ledger: Ledger,
    changed: Due<Arc<str>>,
    /// The Ready condition of each cluster as it was last seen.
    seen: HashMap<Arc<str>, (Arc<str>, Option<Condition>)>,
    /// From the run before.
    kept: BTreeMap<String, Timestamp>,
    next_pass: Duration,
    next_checkpoint: Duration,
    verdicts: VecDeque<Overdue>,
    /// Verdicts that wait or are being written.
    pending: HashSet<Arc<str>>,
    told: VecDeque<Told>,
}

impl Memory {
    fn new(monitor: &Monitor) -> Self {
        let now = monitor.stopwatch.read();
        let mut ledger = Ledger::new(BEAT.min(monitor.knobs.period));
        ledger.advance(now);
        let kept = monitor
            .store
            .state(checkpoint::NAME)
            .map(|text| checkpoint::decode(&text))
            .unwrap_or_default();
        let mut memory = Self {
            ledger,
            changed: monitor.fleet.subscribe(),
            seen: HashMap::new(),
            kept,
            next_pass: now + monitor.knobs.period,
            next_checkpoint: now + CHECKPOINT,
            verdicts: VecDeque::new(),
            pending: HashSet::new(),
            told: VecDeque::new(),
        };
        memory.take_changes(monitor, now, false);
        memory
    }

    async fn beat(&mut self, monitor: &Monitor) {
        let now = monitor.stopwatch.read();
        let lateness = self.ledger.advance(now);
        monitor.metrics.beat(lateness, self.ledger.pause());
        if !self.ledger.pause().is_zero() {
            let paused = humantime::format_duration(Duration::from_millis(
                u64::try_from(lateness.as_millis()).unwrap_or(u64::MAX),
            ));
            tracing::warn!(%paused, "this process did not run; no cluster is blamed for that time");
        }
        self.take_changes(monitor, now, true);
        let wall = clock::now();
        for (cluster, at) in monitor.hearing.take() {
            let ago = jiff::SignedDuration::try_from(now.saturating_sub(at)).unwrap_or_default();
            let heard = wall.checked_sub(ago).unwrap_or(wall);
            self.ledger.hear(&cluster, at, heard);
        }
        if now >= self.next_pass {
            self.next_pass = now + monitor.knobs.period;
            self.pass(monitor, now);
        }
        if now >= self.next_checkpoint {
            self.next_checkpoint = now + CHECKPOINT;
            self.keep(monitor).await;
        }
    }

    fn pass(&mut self, monitor: &Monitor, began: Duration) {
        for overdue in self.ledger.overdue(&monitor.knobs) {
            if self.pending.insert(Arc::clone(&overdue.cluster)) {
                self.verdicts.push_back(overdue);
            }
        }
        let took = monitor.stopwatch.read().saturating_sub(began);
        monitor.metrics.pass(&self.ledger.tally(), took);
    }

    /// Takes over the clusters that changed; with `tell`, changes of readiness become events.
    fn take_changes(&mut self, monitor: &Monitor, now: Duration, tell: bool) {
        for name in self.changed.take() {
            let Some(summary) = monitor.fleet.get(&name) else {
                self.ledger.forget(&name);
                self.seen.remove(&name);
                continue;
            };
            let heard = self.kept.get(name.as_ref()).copied();
            self.ledger.observe(&name, summary.standing(), now, heard);
            if let Some(told) = self.notice(&name, &summary).filter(|_| tell) {
                monitor.metrics.transition(summary.readiness());
                if self.told.len() < WAITING_EVENTS {
                    self.told.push_back(told);
                }
            }
        }
    }

    /// Remembers how a cluster stands; what there is to tell when its readiness changed.
    fn notice(&mut self, name: &Arc<str>, summary: &Summary) -> Option<Told> {
        let now = (Arc::clone(&summary.uid), summary.ready.clone());
        let before = self.seen.insert(Arc::clone(name), now);
        let before = before
            .filter(|(uid, _)| *uid == summary.uid)
            .and_then(|(_, ready)| ready)
            .map_or(Ready::Never, |ready| Ready::from_status(&ready.status));
        let to = summary.ready.as_ref()?;
        (before != summary.readiness()).then(|| {
            let heard = self.ledger.heard(name);
            Told::readiness(name, &summary.uid, before, to, heard)
        })
    }

    fn next_write<'a>(
        &mut self,
        monitor: &'a Monitor,
    ) -> Option<Pin<Box<dyn Future<Output = Done> + Send + 'a>>> {
        if let Some(overdue) = self.verdicts.pop_front() {
            return Some(Box::pin(monitor.say_unknown(overdue)));
        }
        let told = self.told.pop_front()?;
        Some(Box::pin(monitor.tell(told)))
    }

    fn done(&mut self, monitor: &Monitor, done: Done) {
        if let Done::Verdict(cluster, result) = done {
            self.pending.remove(&cluster);
            monitor.metrics.written(result);
        }
    }

    /// Keeps the times last heard, across this run and the ones before.
    async fn keep(&mut self, monitor: &Monitor) {
        let times = checkpoint::encode(&self.ledger.times_heard());
        if monitor.store.state(checkpoint::NAME).as_ref() == Some(&times) {
            return;
        }
        if let Err(error) = monitor.store.set_state(checkpoint::NAME, times).await {
            tracing::warn!(%error, "the times last heard could not be kept");
        }
    }
}
