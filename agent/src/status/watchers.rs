//! What feeds the collector: the member's nodes and pods, its discovery and version, and the Cluster object as it
//! stands in the control plane.

use std::{sync::Arc, time::Duration};

use evenkeel_shared::cluster::Cluster;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Notify, watch};

use super::{
    apis::{Catalogue, discover},
    census::{Census, NodeItem, PodItem},
};
use crate::{
    follow::{Event, Sink},
    transport::{Caller, Failure},
    vitals::Vitals,
};

/// How often discovery and version are asked for.
const DISCOVERY_PERIOD: Duration = Duration::from_secs(30);
/// Requests for more come at most so often.
const DISCOVERY_PAUSE: Duration = Duration::from_secs(2);

/// Takes pods into the census.
pub struct PodSink(pub Arc<Mutex<Census>>);

impl Sink<PodItem> for PodSink {
    async fn take(&mut self, event: Event<PodItem>) {
        let mut census = self.0.lock();
        match event {
            Event::Restart => census.restart_pods(),
            Event::Listed(pod) | Event::Changed(pod) => census.put_pod(&pod),
            Event::Synced => census.pods_listed(),
            Event::Deleted(pod) => census.remove_pod(&pod),
        }
    }

    fn trouble(&mut self, failure: &Failure) {
        tracing::debug!(error = %failure, "the member's pods cannot be watched");
    }
}

/// Takes nodes into the census.
pub struct NodeSink(pub Arc<Mutex<Census>>);

impl Sink<NodeItem> for NodeSink {
    async fn take(&mut self, event: Event<NodeItem>) {
        let mut census = self.0.lock();
        match event {
            Event::Restart => census.restart_nodes(),
            Event::Listed(node) | Event::Changed(node) => census.put_node(node),
            Event::Synced => census.nodes_listed(),
            Event::Deleted(node) => census.remove_node(&node),
        }
    }

    fn trouble(&mut self, failure: &Failure) {
        tracing::debug!(error = %failure, "the member's nodes cannot be watched");
    }
}

/// The Cluster object in the control plane.
#[derive(Clone, Debug)]
pub struct Standing {
    pub cluster: Arc<Cluster>,
    /// It was deleted: the member is no longer of the fleet.
    pub removed: bool,
}

/// Follows the own Cluster object.
pub struct ClusterSink {
    standing: watch::Sender<Standing>,
    vitals: Arc<Vitals>,
    listed: bool,
}

impl ClusterSink {
    pub fn new(standing: watch::Sender<Standing>, vitals: Arc<Vitals>) -> Self {
        Self {
            standing,
            vitals,
            listed: false,
        }
    }

    fn removed(&self) {
        tracing::error!(
            "the Cluster was deleted in the control plane: the agent reports nothing more until it is restarted"
        );
        self.vitals
            .registered(Some("the Cluster was deleted in the control plane"));
        self.standing
            .send_modify(|standing| standing.removed = true);
    }
}

/// Takes a newer Cluster into what is known; an older one changes nothing.
pub fn newer(standing: &mut Standing, cluster: Cluster) -> bool {
    let version = |cluster: &Cluster| -> Option<u64> {
        cluster.metadata.resource_version.as_ref()?.parse().ok()
    };
    let same = cluster.metadata.uid == standing.cluster.metadata.uid;
    if same && version(&cluster) < version(&standing.cluster) {
        return false;
    }
    standing.cluster = Arc::new(cluster);
    true
}

impl Sink<Cluster> for ClusterSink {
    async fn take(&mut self, event: Event<Cluster>) {
        match event {
            Event::Restart => self.listed = false,
            Event::Listed(cluster) | Event::Changed(cluster) => {
                self.listed = true;
                self.standing
                    .send_if_modified(|standing| newer(standing, cluster));
            }
            Event::Synced if !self.listed => self.removed(),
            Event::Synced => {}
            Event::Deleted(_) => self.removed(),
        }
    }

    fn trouble(&mut self, failure: &Failure) {
        tracing::debug!(error = %failure, "the Cluster cannot be watched");
    }
}

/// What the member serves.
#[derive(Clone, Debug, Default)]
pub struct Served {
    pub catalogue: Arc<Catalogue>,
    /// Its git version; `None`: not known yet.
    pub version: Option<String>,
    /// Whether anything was read yet.
    pub known: bool,
}

/// Keeps [`Served`] fresh: every now and then, and when `wanted` asks. What fails leaves what was known.
pub async fn keep_served(member: Caller, served: watch::Sender<Served>, wanted: Arc<Notify>) {
    loop {
        match discover(member.client()).await {
            Ok(fresh) => {
                served.send_if_modified(|served| {
                    let merged = fresh.after(&served.catalogue);
                    let changed = !served.known || merged != *served.catalogue;
                    served.known = true;
                    if changed {
                        served.catalogue = Arc::new(merged);
                    }
                    changed
                });
            }
            Err(failure) => tracing::debug!(error = %failure, "discovery failed"),
        }
        match member.get::<Value>("/version").await {
            Ok(version) => {
                if let Some(version) = version["gitVersion"].as_str() {
                    served.send_if_modified(|served| {
                        let changed = served.version.as_deref() != Some(version);
                        served.version = Some(version.to_owned());
                        changed
                    });
                }
            }
            Err(failure) => tracing::debug!(error = %failure, "version not read"),
        }
        tokio::time::sleep(DISCOVERY_PAUSE).await;
        let _ = tokio::time::timeout(DISCOVERY_PERIOD, wanted.notified()).await;
    }
}
