//! The clusters in memory: each reduced to what controllers look at, parsed once per change.
//!
//! A busy agent writes its status every few seconds, and nearly all of it (counts, summaries) decides nothing. Whoever
//! subscribes is told of a cluster only when its summary changed.

use std::{
    collections::{BTreeMap, HashMap},
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use evenkeel_placement::fleet::{Apis, ClusterView};
use evenkeel_shared::{
    cluster::{ApiEnablement, Cluster, ClusterSpec, ClusterStatus, SyncMode},
    stamps,
};
use evenkeel_store::{EventKind, Object, Resource, Scope, Store};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use parking_lot::{Mutex, RwLock};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    liveness::{
        ledger::Standing,
        verdict::{Mode, Ready},
    },
    worker::Due,
};

/// The store's name for clusters.
pub fn resource() -> Resource {
    Resource::new("cluster.karmada.io", "clusters")
}

/// What controllers look at of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    pub uid: Arc<str>,
    pub mode: Mode,
    /// The Ready condition; `None`: there is none.
    pub ready: Option<Condition>,
    /// Being deleted.
    pub terminating: bool,
    /// It holds this program's finalizer.
    pub held: bool,
    /// As on the object.
    pub taints: Vec<k8s_openapi::api::core::v1::Taint>,
    /// For placement.
    pub view: Arc<ClusterView>,
}

impl Summary {
    pub fn readiness(&self) -> Ready {
        self.ready
            .as_ref()
            .map_or(Ready::Never, |ready| Ready::from_status(&ready.status))
    }

    pub fn standing(&self) -> Standing {
        Standing {
            uid: Arc::clone(&self.uid),
            mode: self.mode,
            ready: self.readiness(),
        }
    }
}

/// All clusters, by name.
#[derive(Default)]
pub struct Fleet {
    clusters: RwLock<BTreeMap<Arc<str>, Arc<Summary>>>,
    subscribers: Mutex<Vec<Due<Arc<str>>>>,
    synced: watch::Sender<bool>,
    /// Lists of what clusters serve, by the hash of their text: most clusters share one.
    apis: Mutex<HashMap<u64, Arc<Apis>>>,
}

impl Fleet {
    pub fn get(&self, name: &str) -> Option<Arc<Summary>> {
        self.clusters.read().get(name).cloned()
    }

    pub fn len(&self) -> usize {
        self.clusters.read().len()
    }

    pub fn is_empty(&self) -> bool {
        self.clusters.read().is_empty()
    }

    /// Every cluster as placement sees it, sorted by name.
    pub fn views(&self) -> Vec<Arc<ClusterView>> {
        self.clusters
            .read()
            .values()
            .map(|summary| Arc::clone(&summary.view))
            .collect()
    }

    /// Whether the store's clusters have been read.
    pub fn is_synced(&self) -> bool {
        *self.synced.borrow()
    }

    /// Until the store's clusters have been read.
    pub async fn synced(&self) {
        // The sender lives as long as this; it cannot be gone.
        let _ = self.synced.subscribe().wait_for(|synced| *synced).await;
    }

    /// The names of clusters that change from now on, and of all that are there.
    pub fn subscribe(&self) -> Due<Arc<str>> {
        let due = Due::default();
        let mut subscribers = self.subscribers.lock();
        due.mark_all(self.clusters.read().keys().cloned());
        subscribers.push(due.clone());
        due
    }

    /// Follows the store until `stop`.
    pub async fn run(&self, store: Store, stop: CancellationToken) {
        loop {
            let (listing, mut events) = store.list_and_watch(&Scope::all(resource()));
            self.replace(&listing.objects);
            self.synced.send_replace(true);
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    event = events.next() => match event {
                        None => return,
                        Some(Ok(event)) => match event.kind {
                            EventKind::Deleted => self.remove(event.object.key.name()),
                            EventKind::Added | EventKind::Modified => self.put(&event.object),
                        },
                        // Too slow for a storm of changes: what counts is what is there now.
                        Some(Err(_)) => break,
                    },
                }
            }
        }
    }

    fn replace(&self, objects: &[Arc<Object>]) {
        let present = objects
            .iter()
            .map(|object| object.key.name())
            .collect::<std::collections::HashSet<_>>();
        let gone = self
            .clusters
            .read()
            .keys()
            .filter(|name| !present.contains(name.as_ref()))
            .cloned()
            .collect::<Vec<_>>();
        for name in gone {
            self.remove(&name);
        }
        for object in objects {
            self.put(object);
        }
    }

    fn put(&self, object: &Object) {
        let name: Arc<str> = object.key.name().into();
        let summary = match self.summarize(&object.json) {
            Ok(summary) => Arc::new(summary),
            Err(error) => {
                // Validation keeps such objects out; one from an older version may still be there.
                tracing::warn!(cluster = %name, %error, "a cluster cannot be read and is left alone");
                self.remove(&name);
                return;
            }
        };
        let before = self
            .clusters
            .write()
            .insert(Arc::clone(&name), Arc::clone(&summary));
        if before.as_ref() != Some(&summary) {
            self.tell(&name);
        }
    }

    fn remove(&self, name: &str) {
        if let Some((name, _)) = self.clusters.write().remove_entry(name) {
            self.tell(&name);
        }
    }

    fn tell(&self, name: &Arc<str>) {
        for subscriber in self.subscribers.lock().iter() {
            subscriber.mark(Arc::clone(name));
        }
    }

    /// Reduces a Cluster's JSON.
    pub fn summarize(&self, json: &[u8]) -> Result<Summary, serde_json::Error> {
        let slim: Slim<'_> = serde_json::from_slice(json)?;
        let finalizers = slim.metadata.finalizers.unwrap_or_default();
        let uid = slim.metadata.uid.unwrap_or_default();
        let apis = match slim.status.api_enablements {
            Some(text) => self.apis(text.get())?,
            None => Arc::default(),
        };
        let cluster = Cluster {
            metadata: ObjectMeta {
                name: slim.metadata.name,
                labels: slim.metadata.labels,
                deletion_timestamp: slim.metadata.deletion_timestamp,
                ..ObjectMeta::default()
            },
            spec: slim.spec,
            status: Some(ClusterStatus {
                conditions: slim.status.conditions.unwrap_or_default(),
                ..ClusterStatus::default()
            }),
        };
        let mut view = ClusterView::of(&cluster);
        view.apis = apis;
        Ok(Summary {
            uid: uid.into(),
            mode: match &cluster.spec.sync_mode {
                Some(SyncMode::Push) => Mode::Push,
                _ => Mode::Pull,
            },
            ready: cluster.condition(stamps::READY).cloned(),
            terminating: view.terminating,
            held: finalizers
                .iter()
                .any(|name| name == stamps::CLUSTER_FINALIZER),
            taints: cluster.spec.taints,
            view: Arc::new(view),
        })
    }

    /// The list that this text is, shared with every cluster that has the same.
    fn apis(&self, text: &str) -> Result<Arc<Apis>, serde_json::Error> {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let hash = hasher.finish();
        if let Some(known) = self.apis.lock().get(&hash) {
            return Ok(Arc::clone(known));
        }
        let groups: Vec<ApiEnablement> = serde_json::from_str(text)?;
        let apis = groups
            .iter()
            .flat_map(|group| {
                group
                    .resources
                    .iter()
                    .map(|resource| (group.group_version.clone(), resource.kind.clone()))
            })
            .collect::<Apis>();
        let apis = Arc::new(apis);
        let mut known = self.apis.lock();
        // Lists that no cluster has any more.
        known.retain(|_, apis| Arc::strong_count(apis) > 1);
        known.insert(hash, Arc::clone(&apis));
        Ok(apis)
    }
}

/// The parts of a Cluster's JSON that are parsed: managedFields, for one, are not.
#[derive(Deserialize)]
struct Slim<'a> {
    metadata: SlimMetadata,
    #[serde(default)]
    spec: ClusterSpec,
    #[serde(default, borrow)]
    status: SlimStatus<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SlimMetadata {
    name: Option<String>,
    uid: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    finalizers: Option<Vec<String>>,
    deletion_timestamp: Option<Time>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SlimStatus<'a> {
    conditions: Option<Vec<Condition>>,
    #[serde(borrow)]
    api_enablements: Option<&'a RawValue>,
}
