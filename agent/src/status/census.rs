//! The member's nodes and pods, as little of each as the summaries need.
//!
//! A pod is 28 bytes: its UID and two small numbers, for its node and for what it asks for, which many pods share.

use std::{
    collections::HashMap,
    hash::{Hash, Hasher},
    sync::Arc,
};

use evenkeel_shared::{cluster::ResourceList, quantity::Quantity};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::{
    interner::Interner,
    requests::{PodSpec, pod_requests},
};

/// A pod as it comes from the member.
#[derive(Debug, Deserialize)]
pub struct PodItem {
    metadata: Meta,
    #[serde(default)]
    spec: PodSpec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Debug, Deserialize)]
struct Meta {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    name: String,
}

#[derive(Debug, Default, Deserialize)]
struct PodStatus {
    #[serde(default)]
    phase: Option<String>,
}

/// A node as it comes from the member.
#[derive(Debug, Deserialize)]
pub struct NodeItem {
    metadata: Meta,
    #[serde(default)]
    status: NodeStatus,
}

#[derive(Debug, Default, Deserialize)]
struct NodeStatus {
    #[serde(default)]
    allocatable: Option<ResourceList>,
    #[serde(default)]
    conditions: Option<Vec<NodeCondition>>,
}

#[derive(Debug, Deserialize)]
struct NodeCondition {
    r#type: String,
    status: String,
}

/// Amounts by name, in the order of names.
#[derive(Clone, Debug)]
pub struct Amounts(Box<[(Box<str>, Quantity)]>);

impl Amounts {
    /// What is in it.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Quantity)> {
        self.0.iter().map(|(name, amount)| (&**name, *amount))
    }
}

impl From<ResourceList> for Amounts {
    fn from(list: ResourceList) -> Self {
        Self(
            list.into_iter()
                .map(|(name, amount)| (name.into_boxed_str(), amount))
                .collect(),
        )
    }
}

impl AsRef<Self> for Amounts {
    fn as_ref(&self) -> &Self {
        self
    }
}

// Two spellings of one amount are two amounts here: each is printed as it was read.
impl PartialEq for Amounts {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self
                .0
                .iter()
                .zip(&other.0)
                .all(|((name, a), (other, b))| name == other && a == b && a.format() == b.format())
    }
}

impl Eq for Amounts {}

impl Hash for Amounts {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for (name, amount) in &self.0 {
            name.hash(state);
            amount.nanos().hash(state);
            amount.format().hash(state);
        }
    }
}

/// A UID, whatever it looks like.
type Uid = [u8; 16];

#[derive(Clone, Copy, Debug)]
struct Pod {
    /// Of [`Census::names`]; [`NOWHERE`]: no node was found for it yet.
    node: u32,
    /// Of [`Census::amounts`].
    requests: u32,
    round: u8,
    finished: bool,
}

const NOWHERE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    allocatable: u32,
    round: u8,
    ready: bool,
}

/// How far a list has got: rounds tell what a new list did not confirm.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    current: u8,
    complete: bool,
}

/// All of them. Fed by lists and watches.
#[derive(Debug, Default)]
pub struct Census {
    pods: HashMap<Uid, Pod>,
    /// By the number of their name.
    nodes: HashMap<u32, Node>,
    names: Interner<str>,
    amounts: Interner<Amounts>,
    pod_round: Round,
    node_round: Round,
}

/// Pods that ask for the same on the same node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group<'a> {
    /// `None`: no node was found for them yet.
    pub node: Option<u32>,
    pub requests: &'a Amounts,
    pub pods: u32,
}

/// A node of the census.
#[derive(Clone, Copy, Debug)]
pub struct NodeView<'a> {
    pub id: u32,
    pub allocatable: &'a Amounts,
    pub ready: bool,
}

fn uid_of(meta: &Meta) -> Uid {
    if let Ok(uid) = uuid::Uuid::parse_str(&meta.uid) {
        return uid.into_bytes();
    }
    let hash = Sha256::digest(meta.uid.as_bytes());
    let mut uid = Uid::default();
    uid.copy_from_slice(&hash[..16]);
    uid
}

impl Census {
    /// Whether everything was seen at least once.
    pub fn is_complete(&self) -> bool {
        self.pod_round.complete && self.node_round.complete
    }

    pub fn pod_count(&self) -> usize {
        self.pods.len()
    }

    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// A new list of pods begins.
    pub fn restart_pods(&mut self) {
        self.pod_round.current = self.pod_round.current.wrapping_add(1);
    }

    /// The list of pods ended: what it did not name is gone.
    pub fn pods_listed(&mut self) {
        let round = self.pod_round.current;
        let gone: Vec<Uid> = self
            .pods
            .iter()
            .filter(|(_, pod)| pod.round != round)
            .map(|(uid, _)| *uid)
            .collect();
        for uid in gone {
            self.drop_pod(uid);
        }
        self.pod_round.complete = true;
    }

    /// A pod is there, or changed.
    pub fn put_pod(&mut self, item: &PodItem) {
        let finished = matches!(item.status.phase.as_deref(), Some("Succeeded" | "Failed"));
        let node = match item.spec.node_name.as_deref() {
            Some(name) if !name.is_empty() => self.names.hold(Name(name)),
            _ => NOWHERE,
        };
        let requests = self.amounts.hold(Amounts::from(pod_requests(&item.spec)));
        let pod = Pod {
            node,
            requests,
            round: self.pod_round.current,
            finished,
        };
        if let Some(old) = self.pods.insert(uid_of(&item.metadata), pod) {
            self.release_pod(old);
        }
    }

    /// A pod is gone.
    pub fn remove_pod(&mut self, item: &PodItem) {
        self.drop_pod(uid_of(&item.metadata));
    }

    fn drop_pod(&mut self, uid: Uid) {
        if let Some(old) = self.pods.remove(&uid) {
            self.release_pod(old);
        }
    }

    fn release_pod(&mut self, pod: Pod) {
        self.amounts.release(pod.requests);
        if pod.node != NOWHERE {
            self.names.release(pod.node);
        }
    }

    /// A new list of nodes begins.
    pub fn restart_nodes(&mut self) {
        self.node_round.current = self.node_round.current.wrapping_add(1);
    }

    /// The list of nodes ended: what it did not name is gone.
    pub fn nodes_listed(&mut self) {
        let round = self.node_round.current;
        let gone: Vec<u32> = self
            .nodes
            .iter()
            .filter(|(_, node)| node.round != round)
            .map(|(id, _)| *id)
            .collect();
        for id in gone {
            self.drop_node(id);
        }
        self.node_round.complete = true;
    }

    /// A node is there, or changed.
    pub fn put_node(&mut self, item: NodeItem) {
        let id = self.names.hold(Name(&item.metadata.name));
        let ready = item
            .status
            .conditions
            .iter()
            .flatten()
            .any(|condition| condition.r#type == "Ready" && condition.status == "True");
        let allocatable = self
            .amounts
            .hold(Amounts::from(item.status.allocatable.unwrap_or_default()));
        let node = Node {
            allocatable,
            round: self.node_round.current,
            ready,
        };
        if let Some(old) = self.nodes.insert(id, node) {
            self.amounts.release(old.allocatable);
            self.names.release(id);
        }
    }

    /// A node is gone.
    pub fn remove_node(&mut self, item: &NodeItem) {
        if let Some(id) = self.names.find(&item.metadata.name) {
            self.drop_node(id);
        }
    }

    fn drop_node(&mut self, id: u32) {
        if let Some(old) = self.nodes.remove(&id) {
            self.amounts.release(old.allocatable);
            self.names.release(id);
        }
    }

    /// The node of this number, if it is known.
    pub fn node(&self, id: u32) -> Option<NodeView<'_>> {
        let node = self.nodes.get(&id)?;
        Some(NodeView {
            id,
            allocatable: self.amounts.get(node.allocatable)?,
            ready: node.ready,
        })
    }

    /// The nodes, in no order.
    pub fn nodes(&self) -> impl Iterator<Item = NodeView<'_>> {
        self.nodes.keys().filter_map(|id| self.node(*id))
    }

    /// The pods that did not finish, grouped, in the order of their nodes; those without one come last.
    pub fn groups(&self) -> Groups<'_> {
        let active = || self.pods.values().filter(|pod| !pod.finished);
        let mut keys = Vec::with_capacity(active().count());
        keys.extend(active().map(|pod| (pod.node, pod.requests)));
        keys.sort_unstable();
        Groups {
            census: self,
            keys,
            next: 0,
        }
    }

    /// How many different names and amounts are kept.
    pub fn distinct(&self) -> (usize, usize) {
        (self.names.len(), self.amounts.len())
    }
}

/// Gives out groups one by one: a large member has many, and nobody needs all of them at once.
#[derive(Debug)]
pub struct Groups<'a> {
    census: &'a Census,
    keys: Vec<(u32, u32)>,
    next: usize,
}

impl<'a> Iterator for Groups<'a> {
    type Item = Group<'a>;

    fn next(&mut self) -> Option<Group<'a>> {
        let rest = &self.keys[self.next..];
        let (node, requests) = *rest.first()?;
        let same = rest
            .iter()
            .take_while(|key| **key == (node, requests))
            .count();
        self.next += same;
        Some(Group {
            node: (node != NOWHERE).then_some(node),
            // What a pod asks for is kept as long as the pod is.
            requests: self.census.amounts.get(requests)?,
            pods: u32::try_from(same).unwrap_or(u32::MAX),
        })
    }
}

/// A borrowed name on its way into the interner.
struct Name<'a>(&'a str);

impl AsRef<str> for Name<'_> {
    fn as_ref(&self) -> &str {
        self.0
    }
}

impl From<Name<'_>> for Arc<str> {
    fn from(name: Name<'_>) -> Self {
        Self::from(name.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(uid: &str, node: Option<&str>, cpu: &str, phase: &str) -> PodItem {
        serde_json::from_value(json!({
            "metadata": {"uid": uid, "name": uid},
            "spec": {"nodeName": node, "containers": [{"resources": {"requests": {"cpu": cpu}}}]},
            "status": {"phase": phase},
        }))
        .unwrap()
    }

    fn node(name: &str, ready: &str) -> NodeItem {
        serde_json::from_value(json!({
            "metadata": {"name": name, "uid": name},
            "status": {"allocatable": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": ready}]},
        }))
        .unwrap()
    }

    fn groups(census: &Census) -> Vec<(bool, u32)> {
        census
            .groups()
            .map(|group| (group.node.is_some(), group.pods))
            .collect()
    }

    #[test]
    fn a_pod_is_28_bytes() {
        assert_eq!(std::mem::size_of::<(Uid, Pod)>(), 28);
    }

    #[test]
    fn pods_that_are_alike_are_one_group() {
        let mut census = Census::default();
        for (index, (node, cpu, phase)) in [
            (Some("n1"), "1", "Running"),
            (Some("n1"), "1", "Pending"),
            (Some("n1"), "1", "Succeeded"),
            (Some("n2"), "1", "Running"),
            (None, "1", "Pending"),
            (None, "1000m", "Pending"),
        ]
        .into_iter()
        .enumerate()
        {
            census.put_pod(&pod(&format!("p{index}"), node, cpu, phase));
        }
        assert_eq!(groups(&census), [(true, 2), (true, 1), (false, 2)]);
        assert_eq!(census.distinct(), (2, 1));
    }

    #[test]
    fn what_a_new_list_does_not_name_is_gone_and_nothing_is_kept_of_it() {
        let mut census = Census::default();
        census.restart_pods();
        census.restart_nodes();
        assert!(!census.is_complete());
        for name in ["a", "b"] {
            census.put_pod(&pod(name, Some("n1"), "1", "Running"));
            census.put_node(node(name, "True"));
        }
        census.pods_listed();
        census.nodes_listed();
        assert!(census.is_complete());
        // A list that breaks off and begins again.
        census.restart_pods();
        census.put_pod(&pod("a", Some("n1"), "1", "Running"));
        census.restart_pods();
        census.put_pod(&pod("c", None, "2", "Pending"));
        census.pods_listed();
        census.restart_nodes();
        census.put_node(node("b", "False"));
        census.nodes_listed();
        assert_eq!((census.pod_count(), census.node_count()), (1, 1));
        assert!(census.nodes().all(|node| !node.ready));
        census.remove_pod(&pod("c", None, "2", "Pending"));
        census.remove_node(&node("b", "False"));
        census.remove_node(&node("never there", "False"));
        assert_eq!(census.distinct(), (0, 0));
    }

    #[test]
    fn a_pod_that_moves_and_finishes_is_counted_once() {
        let mut census = Census::default();
        census.put_pod(&pod("a", None, "1", "Pending"));
        census.put_pod(&pod("a", Some("n1"), "1", "Running"));
        assert_eq!(groups(&census), [(true, 1)]);
        census.put_pod(&pod("a", Some("n1"), "1", "Failed"));
        assert_eq!(groups(&census), []);
        assert_eq!(census.pod_count(), 1);
    }
}
