//! The agent's metrics. Names are `evenkeel_agent_…`; counters end in `_total` on the wire.

use std::sync::atomic::{AtomicI64, AtomicU64};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// Whether something worked.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Outcome {
    pub outcome: &'static str,
}

/// It did.
pub const OK: Outcome = Outcome { outcome: "ok" };
/// It did not.
pub const FAILED: Outcome = Outcome { outcome: "failed" };

/// Everything that is counted.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub probes: Family<Outcome, Counter<u64, AtomicU64>>,
    pub lease_renewals: Family<Outcome, Counter<u64, AtomicU64>>,
    pub status_writes: Family<Outcome, Counter<u64, AtomicU64>>,
    pub works: Family<Outcome, Counter<u64, AtomicU64>>,
    pub drift_corrections: Counter,
    pub watches_reopened: Counter,
    pub control_plane_up: Gauge<i64, AtomicI64>,
    pub control_plane_losses: Counter,
    pub member_up: Gauge<i64, AtomicI64>,
    pub certificate_expiry_seconds: Gauge<i64, AtomicI64>,
    pub certificate_renewals: Family<Outcome, Counter<u64, AtomicU64>>,
    pub nodes: Gauge<i64, AtomicI64>,
    pub pods: Gauge<i64, AtomicI64>,
    pub placed_objects: Gauge<i64, AtomicI64>,
}

impl Metrics {
    /// New metrics, registered.
    pub fn new(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let registry = registry.sub_registry_with_prefix("evenkeel_agent");
        let m = metrics.clone();
        registry.register("probes", "Probes of the member's API server", m.probes);
        registry.register(
            "lease_renewals",
            "Renewals of the member's lease",
            m.lease_renewals,
        );
        registry.register(
            "status_writes",
            "Writes of the member's status",
            m.status_writes,
        );
        registry.register("works", "Works brought to the member", m.works);
        registry.register(
            "drift_corrections",
            "Objects in the member that were changed or deleted by others and set right",
            m.drift_corrections,
        );
        registry.register(
            "watches_reopened",
            "Watches that ended and were opened again",
            m.watches_reopened,
        );
        registry.register(
            "control_plane_up",
            "1 while the control plane answers",
            m.control_plane_up,
        );
        registry.register(
            "control_plane_losses",
            "Times that the control plane stopped answering",
            m.control_plane_losses,
        );
        registry.register(
            "member_up",
            "1 while the member's API server is well",
            m.member_up,
        );
        registry.register(
            "certificate_expiry_seconds",
            "When the agent's certificate ends, in seconds since 1970",
            m.certificate_expiry_seconds,
        );
        registry.register(
            "certificate_renewals",
            "Certificates asked for after the first",
            m.certificate_renewals,
        );
        registry.register("nodes", "Nodes of the member", m.nodes);
        registry.register("pods", "Pods of the member", m.pods);
        registry.register(
            "placed_objects",
            "Objects in the member that Works placed there",
            m.placed_objects,
        );
        metrics
    }
}
