//! What the controllers of a member know: built from events, queried by owner.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use evenkeel_store::{Event, EventKind, Object};
use serde_json::Value;

use super::workload::{Pod, Workload, controller, text, uid};

/// A workload, by kind and `namespace/name`.
pub type Name = (Workload, Arc<str>);

/// What scheduling needs of a node.
#[derive(Clone, Debug, Default)]
pub struct Node {
    pub labels: Value,
    pub address: String,
    /// How many pods it takes.
    pub room: i64,
    pub pods: i64,
    pub cordoned: bool,
}

/// The state of the cluster, and what changed since it was last looked at.
#[derive(Default)]
pub struct View {
    pub objects: HashMap<Name, Arc<Value>>,
    pub pods: HashMap<Arc<str>, Pod>,
    pub nodes: BTreeMap<String, Node>,
    /// uid to the workload that has it.
    owners: HashMap<Box<str>, Name>,
    pods_of: HashMap<Box<str>, BTreeSet<Arc<str>>>,
    sets_of: HashMap<Box<str>, BTreeSet<Arc<str>>>,
    /// Workloads to be planned again.
    pub dirty: BTreeSet<Name>,
    /// Pods that wait for a node, for their kubelet, or for their end.
    pub waiting: BTreeSet<Arc<str>>,
}

impl View {
    pub fn apply(&mut self, kind: Workload, event: &Event) {
        let gone = event.kind == EventKind::Deleted;
        self.change(kind, &event.object, gone);
    }

    pub fn add(&mut self, kind: Workload, object: &Object) {
        self.change(kind, object, false);
    }

    fn change(&mut self, kind: Workload, object: &Object, gone: bool) {
        let path = &object.key.path;
        let Ok(value) = serde_json::from_slice::<Value>(&object.json) else {
            tracing::warn!(key = ?object.key, "an object of the member is not JSON");
            return;
        };
        match kind {
            Workload::Pod => self.change_pod(path, &value, gone),
            Workload::Node => self.change_node(&value, gone),
            _ => self.change_workload(kind, path, value, gone),
        }
    }

    fn change_pod(&mut self, path: &Arc<str>, value: &Value, gone: bool) {
        if let Some(old) = self.pods.remove(path) {
            self.count(&old, -1);
            if let Some(owner) = &old.owner {
                if let Some(pods) = self.pods_of.get_mut(owner) {
                    pods.remove(path);
                }
                self.mark_owner(&owner.clone());
            }
        }
        self.waiting.remove(path);
        if gone {
            return;
        }
        let pod = Pod::of(value);
        self.count(&pod, 1);
        if let Some(owner) = &pod.owner {
            self.pods_of
                .entry(owner.clone())
                .or_default()
                .insert(path.clone());
            self.mark_owner(&owner.clone());
        }
        let started = value.pointer("/status/startTime").is_some();
        if pod.deleting || pod.node.is_none() || !started {
            self.waiting.insert(path.clone());
        }
        self.pods.insert(path.clone(), pod);
    }

    fn count(&mut self, pod: &Pod, change: i64) {
        if let Some(node) = pod
            .node
            .as_deref()
            .and_then(|name| self.nodes.get_mut(name))
            && !pod.finished()
        {
            node.pods += change;
        }
    }

    fn change_node(&mut self, value: &Value, gone: bool) {
        let name = super::workload::name(value).to_owned();
        if gone {
            self.nodes.remove(&name);
        } else {
            let pods = self.nodes.get(&name).map_or_else(
                || {
                    let on_it = |pod: &&Pod| pod.node.as_deref() == Some(&name) && !pod.finished();
                    i64::try_from(self.pods.values().filter(on_it).count()).unwrap_or(i64::MAX)
                },
                |node| node.pods,
            );
            let node = Node {
                labels: value["metadata"]["labels"].clone(),
                address: text(value, "/status/addresses/0/address")
                    .unwrap_or_default()
                    .into(),
                room: text(value, "/status/allocatable/pods")
                    .and_then(|pods| pods.parse().ok())
                    .unwrap_or(110),
                pods,
                cordoned: value.pointer("/spec/unschedulable") == Some(&Value::Bool(true)),
            };
            self.nodes.insert(name, node);
        }
        let sets = self
            .objects
            .keys()
            .filter(|(kind, _)| *kind == Workload::DaemonSet)
            .cloned();
        self.dirty.extend(sets);
    }

    fn change_workload(&mut self, kind: Workload, path: &Arc<str>, value: Value, gone: bool) {
        let name = (kind, path.clone());
        if kind == Workload::ReplicaSet
            && let Some(owner) = controller(&value)
        {
            let sets = self.sets_of.entry(owner.into()).or_default();
            if gone {
                sets.remove(path);
            } else {
                sets.insert(path.clone());
            }
            self.mark_owner(owner);
        }
        if gone {
            self.owners.remove(uid(&value));
            self.objects.remove(&name);
            self.dirty.remove(&name);
        } else {
            self.owners.insert(uid(&value).into(), name.clone());
            self.objects.insert(name.clone(), Arc::new(value));
            self.dirty.insert(name);
        }
    }

    fn mark_owner(&mut self, uid: &str) {
        if let Some(owner) = self.owners.get(uid) {
            self.dirty.insert(owner.clone());
        }
    }

    pub fn pods_of(&self, owner: &Value) -> Vec<&Pod> {
        let paths = self.pods_of.get(uid(owner)).into_iter().flatten();
        paths.filter_map(|path| self.pods.get(path)).collect()
    }

    pub fn sets_of(&self, owner: &Value) -> Vec<Arc<Value>> {
        let paths = self.sets_of.get(uid(owner)).into_iter().flatten();
        paths
            .filter_map(|path| {
                self.objects
                    .get(&(Workload::ReplicaSet, path.clone()))
                    .cloned()
            })
            .collect()
    }

    /// Whether pods of this owner run once.
    pub fn completes(&self, owner: &str) -> bool {
        self.owners
            .get(owner)
            .is_some_and(|(kind, _)| *kind == Workload::Job)
    }

    /// The node with the fewest pods among those that have room and match.
    pub fn place(&self, pod: &Value) -> Option<(&String, &Node)> {
        self.nodes
            .iter()
            .filter(|(_, node)| {
                !node.cordoned
                    && node.pods < node.room
                    && super::workload::pod::admits(pod, &node.labels)
            })
            .min_by_key(|(_, node)| node.pods)
    }

    /// Charges a pod to a node before its event arrives, so that the next one sees it.
    pub fn charge(&mut self, node: &str) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.pods += 1;
        }
    }

    /// Takes back a [`charge`](Self::charge): the event charges for good.
    pub fn discharge(&mut self, node: &str) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.pods -= 1;
        }
    }
}
