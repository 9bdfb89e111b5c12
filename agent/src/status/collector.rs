//! The collector's loop: probe, judge, report. Ready waits for nothing else.

use std::{sync::Arc, time::Duration};

use evenkeel_shared::{cluster::Cluster, stamps::READY};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Instant, MissedTickBehavior},
};

use super::{
    census::Census,
    debounce::{Debounce, Published, Thresholds},
    probe::{self, Observation},
    report::{self, Report},
    summary::{node_summary, resource_summary},
    watchers::{Served, Standing, newer},
};
use crate::{
    clock,
    config::Timings,
    metrics,
    register::CLUSTERS,
    transport::{Caller, Failure},
    vitals::Vitals,
};

/// Everything is written again this often, changed or not.
const REASSERT: Duration = Duration::from_mins(5);

/// What the collector works with.
pub struct Collector {
    pub control: Caller,
    pub member: kube::Client,
    pub timings: Timings,
    pub census: Arc<Mutex<Census>>,
    pub served: watch::Receiver<Served>,
    pub standing: watch::Sender<Standing>,
    /// Whether the member is Ready as published, for whoever waits for it.
    pub ready: watch::Sender<bool>,
    pub vitals: Arc<Vitals>,
}

fn published(condition: &Condition) -> Published {
    match condition.status.as_str() {
        "True" => Published::True,
        "False" => Published::False,
        _ => Published::Unknown,
    }
}

/// How long a condition has stood. A clock that was set back makes that nothing.
fn standing_for(condition: &Condition, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(condition.last_transition_time.0)).unwrap_or_default()
}

impl Collector {
    /// Probes and reports for ever. Ends only with the task.
    pub async fn run(self) {
        let begin = Instant::now();
        // Moments are counted from the last transition, so that none lies before zero.
        let (mut debounce, before) = {
            let standing = self.standing.borrow();
            let condition = standing.cluster.condition(READY);
            let now = clock::now();
            let age = condition.map_or(Duration::ZERO, |ready| standing_for(ready, now));
            (Debounce::resume(condition.map(published), age, age), age)
        };
        let mut written = None::<Instant>;
        let mut tick = tokio::time::interval(self.timings.status_frequency);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            let observation = probe::probe(&self.member, self.timings.probe_timeout).await;
            self.tell(&observation);
            let standing = self.standing.borrow().clone();
            if standing.removed {
                continue;
            }
            let condition = standing.cluster.condition(READY);
            let decision = debounce.observe(
                &observation,
                condition.map(published),
                Thresholds {
                    success: self.timings.success_threshold,
                    failure: self.timings.failure_threshold,
                },
                before + begin.elapsed(),
            );
            let now = clock::now();
            let mut report = self.rest(&standing.cluster, now);
            let ready = report::ready(&observation, decision, condition, now);
            let is_ready = ready.status == "True";
            self.ready
                .send_if_modified(|known| std::mem::replace(known, is_ready) != is_ready);
            report.ready = Some(ready);
            let full = written.is_none_or(|written| written.elapsed() >= REASSERT);
            match self.write(&standing.cluster, &report, full).await {
                Ok(true) => written = Some(Instant::now()),
                Ok(false) => {}
                Err(failure) => tracing::warn!(error = %failure, "status not written"),
            }
        }
    }

    fn tell(&self, observation: &Observation) {
        let outcome = if observation.is_healthy() {
            metrics::OK
        } else {
            metrics::FAILED
        };
        self.vitals.metrics.probes.get_or_create(&outcome).inc();
        self.vitals.member(observation.trouble());
    }

    /// Everything but Ready, as far as it is known.
    fn rest(&self, cluster: &Cluster, now: Timestamp) -> Report {
        let served = self.served.borrow().clone();
        let census = self.census.lock();
        let metrics = &self.vitals.metrics;
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        metrics.nodes.set(count(census.node_count()));
        metrics.pods.set(count(census.pod_count()));
        let counted = census.is_complete();
        Report {
            ready: None,
            complete: served
                .known
                .then(|| report::complete(&served.catalogue, now)),
            version: served.version,
            apis: served.known.then(|| served.catalogue.enablements()),
            nodes: counted.then(|| node_summary(&census)),
            resources: counted.then(|| resource_summary(&census, &cluster.spec.resource_models)),
        }
    }

    /// Whether anything was written. A conflict is settled once, by reading again; the next tick is the next try.
    async fn write(&self, cluster: &Cluster, report: &Report, full: bool) -> Result<bool, Failure> {
        let name = cluster.name();
        let path = format!("{CLUSTERS}/{name}/status");
        let Some(patch) = report.patch(cluster, full) else {
            return Ok(false);
        };
        let mut written = self.control.merge::<_, Cluster>(&path, &patch).await;
        if written.as_ref().is_err_and(Failure::is_conflict) {
            let current: Cluster = self.control.get(&format!("{CLUSTERS}/{name}")).await?;
            written = match report.patch(&current, full) {
                Some(patch) => self.control.merge(&path, &patch).await,
                None => Ok(current),
            };
        }
        let writes = &self.vitals.metrics.status_writes;
        match written {
            Ok(cluster) => {
                writes.get_or_create(&metrics::OK).inc();
                self.standing
                    .send_if_modified(|standing| newer(standing, cluster));
                Ok(true)
            }
            Err(failure) => {
                writes.get_or_create(&metrics::FAILED).inc();
                Err(failure)
            }
        }
    }
}
