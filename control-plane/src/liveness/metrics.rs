//! The fleet in numbers.

use std::{sync::atomic::AtomicU64, time::Duration};

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

use super::{ledger::Tally, verdict::Ready};

type Seconds = Gauge<f64, AtomicU64>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByReady {
    ready: ReadyLabel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
enum ReadyLabel {
    None,
    True,
    False,
    Unknown,
}

impl From<Ready> for ReadyLabel {
    fn from(ready: Ready) -> Self {
        match ready {
            Ready::Never => Self::None,
            Ready::True => Self::True,
            Ready::False => Self::False,
            Ready::Unknown => Self::Unknown,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByResult {
    result: WriteResult,
}

/// How a write of the monitor ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum WriteResult {
    /// Unknown was written.
    Written,
    /// The cluster was heard, or changed, in between.
    Overtaken,
    /// The store or the API refused it; the next pass tries again.
    Failed,
}

/// The monitor's metrics.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    clusters: Family<ByReady, Gauge>,
    silence: Seconds,
    transitions: Family<ByReady, Counter>,
    lateness: Seconds,
    lateness_total: Counter<f64, AtomicU64>,
    passes: Pass,
    writes: Family<ByResult, Counter>,
}

/// How long passes take.
#[derive(Clone, Debug)]
struct Pass(Histogram);

impl Default for Pass {
    fn default() -> Self {
        Self(Histogram::new([0.000_1, 0.001, 0.01, 0.1, 1.0]))
    }
}

impl Metrics {
    /// Registers them.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "evenkeel_clusters",
            "Clusters by the status of their Ready condition",
            self.clusters.clone(),
        );
        registry.register_with_unit(
            "evenkeel_cluster_silence_max",
            "The longest time for which a pull-mode cluster was not heard in this run",
            Unit::Seconds,
            self.silence.clone(),
        );
        registry.register(
            "evenkeel_cluster_ready_transitions",
            "Changes of Ready conditions, by what they turned into",
            self.transitions.clone(),
        );
        registry.register_with_unit(
            "evenkeel_monitor_lateness",
            "How late the monitor's last beat was",
            Unit::Seconds,
            self.lateness.clone(),
        );
        registry.register_with_unit(
            "evenkeel_monitor_pauses",
            "Time in which this process did not run as it should, and for which no cluster was blamed",
            Unit::Seconds,
            self.lateness_total.clone(),
        );
        registry.register_with_unit(
            "evenkeel_monitor_pass",
            "How long the monitor's passes over all clusters take",
            Unit::Seconds,
            self.passes.0.clone(),
        );
        registry.register(
            "evenkeel_monitor_writes",
            "Verdicts that the monitor set out to write, by how that ended",
            self.writes.clone(),
        );
    }

    pub(super) fn beat(&self, lateness: Duration, pause: Duration) {
        self.lateness.set(lateness.as_secs_f64());
        self.lateness_total.inc_by(pause.as_secs_f64());
    }

    pub(super) fn pass(&self, tally: &Tally, took: Duration) {
        for (ready, count) in [
            (Ready::Never, tally.never),
            (Ready::True, tally.ready),
            (Ready::False, tally.not_ready),
            (Ready::Unknown, tally.unknown),
        ] {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            let ready = ready.into();
            self.clusters.get_or_create(&ByReady { ready }).set(count);
        }
        self.silence.set(tally.longest_silence.as_secs_f64());
        self.passes.0.observe(took.as_secs_f64());
    }

    pub(super) fn transition(&self, to: Ready) {
        let ready = to.into();
        self.transitions.get_or_create(&ByReady { ready }).inc();
    }

    pub(super) fn written(&self, result: WriteResult) {
        self.writes.get_or_create(&ByResult { result }).inc();
    }
}
