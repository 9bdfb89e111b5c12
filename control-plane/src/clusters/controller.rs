//! Does what is decided for clusters.

use std::{sync::Arc, time::Duration};

use evenkeel_api::{
    failure::Failure,
    kind::{Kind, Table},
    local::{Client, Preconditions},
};
use evenkeel_shared::{names, stamps};
use evenkeel_store::{Key, ListQuery, Object, Scope, Store};
use k8s_openapi::api::core::v1::Taint;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::decide::{Action, Left, NamespaceState, State, WorkState, decide};
use crate::{
    clock,
    fleet::{self, Fleet, Summary},
    worker::{self, Turn},
};

/// Clusters that are seen to at a time.
const CONCURRENCY: usize = 32;
/// How often a cluster that is on its way out is looked at.
const ENDING: Duration = Duration::from_millis(500);

/// The kinds that a cluster's comings and goings touch.
#[derive(Clone)]
pub struct Kinds {
    pub clusters: Arc<Kind>,
    pub namespaces: Arc<Kind>,
    pub leases: Arc<Kind>,
    pub secrets: Arc<Kind>,
    pub works: Arc<Kind>,
    pub bindings: Arc<Kind>,
    pub cluster_bindings: Arc<Kind>,
}

impl Kinds {
    /// Out of a server's table; the name of the first one that is not there.
    pub fn of(table: &Table) -> Result<Self, &'static str> {
        let find =
            |group: &str, kind: &'static str| table.find_kind(group, kind).cloned().ok_or(kind);
        Ok(Self {
            clusters: find("cluster.karmada.io", "Cluster")?,
            namespaces: find("", "Namespace")?,
            leases: find("coordination.k8s.io", "Lease")?,
            secrets: find("", "Secret")?,
            works: find("work.karmada.io", "Work")?,
            bindings: find("work.karmada.io", "ResourceBinding")?,
            cluster_bindings: find("work.karmada.io", "ClusterResourceBinding")?,
        })
    }
}

/// Sees to clusters.
pub struct Controller {
    pub store: Store,
    pub client: Client,
    pub fleet: Arc<Fleet>,
    pub kinds: Kinds,
}

impl Controller {
    /// Until `stop`.
    pub async fn run(&self, stop: CancellationToken) {
        let due = self.fleet.subscribe();
        worker::run(due, CONCURRENCY, stop, |name| self.turn(name)).await;
    }

    async fn turn(&self, name: Arc<str>) -> Turn {
        let key = Key::new(fleet::resource(), None, &name);
        let Some(object) = self.store.get(&key) else {
            return Turn::Done;
        };
        // What the store has now, and not what the fleet was told last: writes are made against its revision.
        let Ok(summary) = self.fleet.summarize(&object.json) else {
            return Turn::Done;
        };
        let state = self.state(&name, &summary);
        for step in decide(&state, clock::now()) {
            tracing::debug!(cluster = %name, action = ?step.action, reason = step.reason, "cluster");
            if let Err(failure) = self.act(&object, &step.action).await {
                // What it was decided upon has changed, or is not there any more: the change itself marks it.
                if matches!(failure.code.as_u16(), 404 | 409) {
                    return Turn::Again(ENDING);
                }
                tracing::warn!(cluster = %name, action = ?step.action, error = %failure.message, "cannot see to a cluster");
                return Turn::Failed;
            }
        }
        if summary.terminating {
            Turn::Again(ENDING)
        } else {
            Turn::Done
        }
    }

    fn state(&self, name: &str, summary: &Summary) -> State {
        let namespace = names::execution_namespace(name);
        let mut state = State {
            mode: summary.mode,
            ready: summary.readiness(),
            terminating: summary.terminating,
            held: summary.held,
            taints: summary.taints.clone(),
            namespace: self.namespace(&namespace),
            works: Vec::new(),
            bound: false,
            left: Vec::new(),
        };
        if summary.terminating {
            state.works = self.works(&namespace);
            state.bound = self.is_bound(name);
            state.left = self.left(name);
        }
        state
    }

    fn namespace(&self, name: &str) -> NamespaceState {
        let key = Key::new(self.kinds.namespaces.resource(), None, name);
        let Some(object) = self.store.get(&key) else {
            return NamespaceState::Absent;
        };
        let labelled = object
            .attributes
            .labels
            .iter()
            .any(|(key, value)| &**key == stamps::SYSTEM_LABEL && &**value == "true");
        match serde_json::from_slice::<Terminal>(&object.json) {
            Ok(terminal) if terminal.metadata.deletion_timestamp.is_some() => {
                NamespaceState::Terminating
            }
            _ if labelled => NamespaceState::Active,
            _ => NamespaceState::Unlabelled,
        }
    }

    fn works(&self, namespace: &str) -> Vec<WorkState> {
        let scope = Scope::namespace(self.kinds.works.resource(), namespace);
        self.objects(&scope)
            .iter()
            .map(|object| {
                let held = serde_json::from_slice::<Terminal>(&object.json).is_ok_and(|work| {
                    work.metadata
                        .finalizers
                        .iter()
                        .any(|name| name == stamps::EXECUTION_FINALIZER)
                });
                WorkState {
                    name: object.key.name().to_owned(),
                    held,
                }
            })
            .collect()
    }

    /// Whether a binding's decision still names the cluster.
    fn is_bound(&self, name: &str) -> bool {
        [&self.kinds.bindings, &self.kinds.cluster_bindings]
            .iter()
            .flat_map(|kind| self.objects(&Scope::all(kind.resource())))
            .any(|object| {
                serde_json::from_slice::<Bound>(&object.json).is_ok_and(|binding| {
                    binding
                        .spec
                        .clusters
                        .iter()
                        .any(|target| target.name == name)
                })
            })
    }

    fn left(&self, name: &str) -> Vec<Left> {
        let is_there = |kind: &Kind, name: &str| {
            let key = Key::new(kind.resource(), Some(names::CLUSTER_NAMESPACE), name);
            self.store.get(&key).is_some()
        };
        let mut left = Vec::new();
        if is_there(&self.kinds.leases, name) {
            left.push(Left::Lease);
        }
        for secret in [name.to_owned(), format!("{name}-impersonator")] {
            if is_there(&self.kinds.secrets, &secret) {
                left.push(Left::Secret(secret));
            }
        }
        left
    }

    fn objects(&self, scope: &Scope) -> Vec<Arc<Object>> {
        // A list of now cannot be too old.
        self.store
            .list(scope, &ListQuery::default(), &|_| true)
            .map(|listing| listing.objects)
            .unwrap_or_default()
    }

    async fn act(&self, cluster: &Object, action: &Action) -> Result<(), Failure> {
        let name = cluster.key.name();
        let namespace = names::execution_namespace(name);
        let anyway = Preconditions::default();
        match action {
            Action::CreateNamespace => {
                let object = json!({"metadata": {
                    "name": namespace, "labels": {stamps::SYSTEM_LABEL: "true"},
                }});
                self.client
                    .create(&self.kinds.namespaces, None, object)
                    .await?;
            }
            Action::LabelNamespace => {
                let patch = json!({"metadata": {"labels": {stamps::SYSTEM_LABEL: "true"}}});
                self.client
                    .patch_merge(
                        &self.kinds.namespaces,
                        None,
                        &namespace,
                        None,
                        &patch,
                        stamps::CONTROL_PLANE_MANAGER,
                    )
                    .await?;
            }
            Action::DeleteNamespace => {
                self.client
                    .delete(&self.kinds.namespaces, None, &namespace, &anyway)
                    .await?;
            }
            Action::Update { taints } => self.update(cluster, taints.as_deref()).await?,
            Action::ReleaseWork(work) => {
                let kind = &self.kinds.works;
                self.release(kind, Some(&namespace), work, stamps::EXECUTION_FINALIZER)
                    .await?;
            }
            Action::Delete(left) => {
                let (kind, object) = match left {
                    Left::Lease => (&self.kinds.leases, name),
                    Left::Secret(secret) => (&self.kinds.secrets, secret.as_str()),
                };
                self.client
                    .delete(kind, Some(names::CLUSTER_NAMESPACE), object, &anyway)
                    .await?;
            }
            Action::Release => {
                let kind = &self.kinds.clusters;
                self.release(kind, None, name, stamps::CLUSTER_FINALIZER)
                    .await?;
                tracing::info!(cluster = name, "a cluster is gone");
            }
        }
        Ok(())
    }

    async fn update(&self, object: &Object, taints: Option<&[Taint]>) -> Result<(), Failure> {
        let mut cluster = decode(&object.json)?;
        match taints {
            Some([]) => {
                if let Some(spec) = cluster["spec"].as_object_mut() {
                    spec.remove("taints");
                }
            }
            Some(taints) => cluster["spec"]["taints"] = json!(taints),
            None => {}
        }
        let finalizers = &mut cluster["metadata"]["finalizers"];
        if !finalizers.is_array() {
            *finalizers = json!([]);
        }
        if let Some(list) = finalizers.as_array_mut()
            && !list.iter().any(|name| name == stamps::CLUSTER_FINALIZER)
        {
            list.push(stamps::CLUSTER_FINALIZER.into());
        }
        self.client
            .update(&self.kinds.clusters, None, cluster)
            .await?;
        Ok(())
    }

    /// Takes a finalizer off an object.
    async fn release(
        &self,
        kind: &Arc<Kind>,
        namespace: Option<&str>,
        name: &str,
        finalizer: &str,
    ) -> Result<(), Failure> {
        let key = Key::new(kind.resource(), namespace, name);
        let Some(object) = self.store.get(&key) else {
            return Ok(());
        };
        let mut value = decode(&object.json)?;
        if let Some(list) = value["metadata"]["finalizers"].as_array_mut() {
            list.retain(|name| name != finalizer);
        }
        self.client.update(kind, namespace, value).await?;
        Ok(())
    }
}

fn decode(json: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(json).map_err(|error| Failure::internal(error.to_string()))
}

#[derive(Deserialize)]
struct Terminal {
    metadata: TerminalMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TerminalMetadata {
    deletion_timestamp: Option<String>,
    #[serde(default)]
    finalizers: Vec<String>,
}

#[derive(Deserialize)]
struct Bound {
    #[serde(default)]
    spec: BoundSpec,
}

#[derive(Default, Deserialize)]
struct BoundSpec {
    #[serde(default)]
    clusters: Vec<BoundTarget>,
}

#[derive(Deserialize)]
struct BoundTarget {
    name: String,
}
