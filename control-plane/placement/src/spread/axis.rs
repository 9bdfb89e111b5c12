//! One constraint laid over the nodes, in dense integers.

use std::sync::Arc;

use super::{
    Incoming, Node, PlacedPod,
    constraint::Constraint,
    defaults::Applicable,
    places::{Places, TopologyKey},
};

/// The label that stands for single nodes; it is scored by what the node itself holds.
pub const HOSTNAME: &str = "kubernetes.io/hostname";

/// A domain of one axis: an index into [`TopologyKey::values`].
pub type DomainId = u32;

/// A constraint and what every node is to it. All vectors have one entry per node.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What it is made of.
    pub constraint: Constraint,
    /// The domains of its topology key.
    pub key: Arc<TopologyKey>,
    /// Whether the node takes part: it is not left out by an inclusion policy.
    pub takes_part: Vec<bool>,
    /// Pods on the node that the constraint counts.
    pub pods: Vec<u32>,
    /// 1 if the pod that looks for a place matches, else 0.
    pub own: i64,
    /// Whether a copy of the pod is counted once it is placed. Differs from `own` for the selector `{}`.
    pub counts_copies: bool,
}

impl Axis {
    /// Whether every node is a domain of its own when it is scored.
    pub fn is_hostname(&self) -> bool {
        self.constraint.topology_key == HOSTNAME
    }

    /// By node: its domain, `None` where it lacks the key.
    pub fn domains(&self) -> &[Option<DomainId>] {
        &self.key.domain
    }

    /// The values that the domains stand for.
    pub fn values(&self) -> &[String] {
        &self.key.values
    }
}

/// The constraints of one pod over the nodes: the hard ones rule where it may go, the soft ones where it goes best.
/// The two know nothing of each other.
#[derive(Clone, Debug, Default)]
pub struct Axes {
    /// `DoNotSchedule`, in the order of the list.
    pub hard: Vec<Axis>,
    /// `ScheduleAnyway`, likewise.
    pub soft: Vec<Axis>,
    /// Whether a node without all soft keys is passed over when nodes are scored.
    pub need_all_keys: bool,
}

impl Axes {
    /// Lays the constraints of a pod over nodes that are used once; see [`Places::axes`] for more than one pod.
    pub fn new(
        pod: Incoming<'_>,
        applicable: Applicable,
        nodes: &[Node],
        placed: &[PlacedPod],
    ) -> Self {
        Places::new(nodes.to_vec()).axes(pod, applicable, placed)
    }

    /// All axes, hard ones first: the order in which batches and explanations have them.
    pub fn all(&self) -> impl Iterator<Item = &Axis> {
        self.hard.iter().chain(&self.soft)
    }
}

/// Lays one constraint over the places. `accepted` and `tolerated` say by place whether the pod would be there at all.
pub(super) fn lay(
    constraint: Constraint,
    key: Arc<TopologyKey>,
    pod: Incoming<'_>,
    countable: &[&PlacedPod],
    (accepted, tolerated): (&[bool], &[bool]),
) -> Axis {
    let takes_part = accepted
        .iter()
        .zip(tolerated)
        .map(|(accepted, tolerated)| {
            (!constraint.honor_affinity || *accepted) && (!constraint.honor_taints || *tolerated)
        })
        .collect();
    let mut pods = vec![0; key.domain.len()];
    for placed in countable {
        if constraint.counted.counts(&placed.labels) {
            pods[placed.node] += 1;
        }
    }
    Axis {
        takes_part,
        pods,
        own: i64::from(constraint.counted.matches_self(pod.labels)),
        counts_copies: constraint.counted.counts(pod.labels),
        key,
        constraint,
    }
}
