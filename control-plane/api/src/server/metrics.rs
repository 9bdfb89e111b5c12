//! What the server counts.

use std::sync::atomic::AtomicU64;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

/// By what requests are counted. The resource is empty for paths that name none that is served.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RequestLabels {
    pub verb: &'static str,
    pub group: &'static str,
    pub resource: &'static str,
    pub code: u16,
}

/// By what latencies are told.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct LatencyLabels {
    pub verb: &'static str,
    pub group: &'static str,
    pub resource: &'static str,
}

/// Seconds: from a renewal that costs nothing to a client that waits for a revision.
const BUCKETS: [f64; 11] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.0, 10.0,
];

#[derive(Clone)]
pub(crate) struct Metrics {
    pub requests: Family<RequestLabels, Counter>,
    pub seconds: Family<LatencyLabels, Histogram, fn() -> Histogram>,
    pub in_flight: Gauge,
    pub watches: Gauge,
    pub connections: Gauge,
    pub refused_connections: Counter,
    pub failed_handshakes: Counter,
    pub received_bytes: Counter<u64, AtomicU64>,
    pub sent_bytes: Counter<u64, AtomicU64>,
}

impl Metrics {
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            in_flight: Gauge::default(),
            watches: Gauge::default(),
            connections: Gauge::default(),
            refused_connections: Counter::default(),
            failed_handshakes: Counter::default(),
            received_bytes: Counter::default(),
            sent_bytes: Counter::default(),
        };
        registry.register(
            "evenkeel_api_requests",
            "Requests by verb, resource and status code",
            metrics.requests.clone(),
        );
        registry.register(
            "evenkeel_api_request_seconds",
            "Time to the head of the answer, in seconds, watches aside",
            metrics.seconds.clone(),
        );
        registry.register(
            "evenkeel_api_requests_in_flight",
            "Requests that are being handled, watches aside",
            metrics.in_flight.clone(),
        );
        registry.register(
            "evenkeel_api_watches",
            "Open watches",
            metrics.watches.clone(),
        );
        registry.register(
            "evenkeel_api_connections",
            "Open connections",
            metrics.connections.clone(),
        );
        registry.register(
            "evenkeel_api_connections_refused",
            "Connections closed because too many were open",
            metrics.refused_connections.clone(),
        );
        registry.register(
            "evenkeel_api_tls_handshakes_failed",
            "TLS handshakes that failed or took too long",
            metrics.failed_handshakes.clone(),
        );
        registry.register(
            "evenkeel_api_received_bytes",
            "Bytes of request bodies",
            metrics.received_bytes.clone(),
        );
        registry.register(
            "evenkeel_api_sent_bytes",
            "Bytes of the bodies of answers",
            metrics.sent_bytes.clone(),
        );
        metrics
    }
}
