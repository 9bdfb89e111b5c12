//! The heartbeat: a Lease in the control plane, renewed whatever the member's state is.

use std::{future::Future, time::Duration};

use evenkeel_shared::names::CLUSTER_NAMESPACE;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    backoff::{Backoff, jittered},
    clock,
    metrics::{self, Metrics},
    transport::{Caller, Failure},
};

/// At most this share of the interval is added to it.
const JITTER: f64 = 0.04;
const RETRY_FIRST: Duration = Duration::from_millis(500);

/// One renewal.
pub trait Renew {
    fn renew(&self, now: Timestamp) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// The member's Lease.
pub struct ClusterLease {
    control: Caller,
    cluster: String,
    /// UID of the Cluster that owns it.
    owner: String,
    duration: Duration,
}

impl ClusterLease {
    pub fn new(control: Caller, cluster: String, owner: String, duration: Duration) -> Self {
        Self {
            control,
            cluster,
            owner,
            duration,
        }
    }

    fn spec(&self, now: Timestamp) -> Value {
        json!({
            "holderIdentity": self.cluster,
            "leaseDurationSeconds": self.duration.as_secs(),
            "renewTime": format!("{now:.6}"),
        })
    }
}

impl Renew for ClusterLease {
    async fn renew(&self, now: Timestamp) -> Result<(), Failure> {
        let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{CLUSTER_NAMESPACE}/leases");
        let path = format!("{leases}/{}", self.cluster);
        let spec = self.spec(now);
        let renewed = self
            .control
            .merge::<_, Value>(&path, &json!({ "spec": spec }))
            .await;
        match renewed {
            Err(failure) if failure.is_not_found() => {
                let lease = json!({
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {
                        "name": self.cluster,
                        "ownerReferences": [{
                            "apiVersion": "cluster.karmada.io/v1alpha1",
                            "kind": "Cluster",
                            "name": self.cluster,
                            "uid": self.owner,
                        }],
                    },
                    "spec": spec,
                });
                self.control.create::<_, Value>(&leases, &lease).await?;
                Ok(())
            }
            renewed => renewed.map(drop),
        }
    }
}

/// Renews every `interval`, now for the first time. What fails is tried again within the interval. Ends only with
/// the task.
pub async fn keep(lease: impl Renew, interval: Duration, metrics: &Metrics) {
    loop {
        let next = Instant::now() + jittered(interval, JITTER);
        let mut backoff = Backoff::new(RETRY_FIRST.min(interval / 8), interval / 4);
        loop {
            let tried = tokio::time::timeout(interval, lease.renew(clock::now())).await;
            let failure = match tried {
                Ok(Ok(())) => {
                    metrics.lease_renewals.get_or_create(&metrics::OK).inc();
                    break;
                }
                Ok(Err(failure)) => failure,
                Err(_) => Failure::Late(interval),
            };
            metrics.lease_renewals.get_or_create(&metrics::FAILED).inc();
            tracing::debug!(error = %failure, "lease not renewed");
            let again = Instant::now() + backoff.wait();
            if again >= next {
                break;
            }
            tokio::time::sleep_until(again).await;
        }
        tokio::time::sleep_until(next).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    /// Notes when it was asked; fails or hangs while told to.
    #[derive(Clone, Default)]
    struct Recorder {
        asked: Arc<Mutex<Vec<Duration>>>,
        until: Duration,
        hangs: bool,
    }

    struct Started(Recorder, Instant);

    impl Renew for Started {
        async fn renew(&self, _: Timestamp) -> Result<(), Failure> {
            let at = self.1.elapsed();
            self.0.asked.lock().push(at);
            if at >= self.0.until {
                return Ok(());
            }
            if self.0.hangs {
                std::future::pending::<()>().await;
            }
            Err(Failure::Silent("connection refused".to_owned()))
        }
    }

    async fn run(recorder: Recorder, for_: Duration) -> (Vec<Duration>, Metrics) {
        let asked = Arc::clone(&recorder.asked);
        let metrics = Metrics::default();
        let lease = Started(recorder, Instant::now());
        let kept = keep(lease, Duration::from_secs(10), &metrics);
        let _ = tokio::time::timeout(for_, kept).await;
        let asked = asked.lock().clone();
        (asked, metrics)
    }

    #[tokio::test(start_paused = true)]
    async fn renews_at_once_and_then_every_interval() {
        let (asked, _) = run(Recorder::default(), Duration::from_mins(10)).await;
        assert_eq!(asked[0], Duration::ZERO);
        assert!((58..=60).contains(&asked.len()), "{}", asked.len());
        for pair in asked.windows(2) {
            let gap = pair[1].saturating_sub(pair[0]).as_secs_f64();
            assert!((10.0..=10.5).contains(&gap), "{gap}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_tried_again_within_the_interval() {
        let recorder = Recorder {
            until: Duration::from_secs(25),
            ..Recorder::default()
        };
        let (asked, metrics) = run(recorder, Duration::from_secs(40)).await;
        let first: Vec<_> = asked.iter().filter(|at| at.as_secs() < 10).collect();
        assert!(first.len() >= 4, "{asked:?}");
        let worked = asked.iter().find(|at| at.as_secs() >= 25).unwrap();
        assert!(worked.as_secs_f64() < 28.0, "{asked:?}");
        let failed = metrics.lease_renewals.get_or_create(&metrics::FAILED).get();
        assert!(failed >= 8, "{failed}");
        assert!(metrics.lease_renewals.get_or_create(&metrics::OK).get() >= 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_that_hangs_is_given_up() {
        let recorder = Recorder {
            until: Duration::from_secs(15),
            hangs: true,
            ..Recorder::default()
        };
        let (asked, metrics) = run(recorder, Duration::from_mins(1)).await;
        assert!(
            metrics.lease_renewals.get_or_create(&metrics::OK).get() >= 3,
            "{asked:?}"
        );
    }
}
