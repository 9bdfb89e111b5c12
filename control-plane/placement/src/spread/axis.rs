//! One constraint laid over the nodes, in dense integers.

use std::collections::HashMap;

use super::{
    Incoming, Node, PlacedPod,
    affinity::{NodeAffinity, tolerates_all},
    constraint::Constraint,
    defaults::Applicable,
};

/// The label that stands for single nodes; it is scored by what the node itself holds.
pub const HOSTNAME: &str = "kubernetes.io/hostname";

/// A domain of one axis: an index into [`Axis::values`].
pub type DomainId = u32;

/// A constraint and what every node is to it. All vectors but `values` have one entry per node.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What it is made of.
    pub constraint: Constraint,
    /// The values of the topology key, in order of first sight.
    pub values: Vec<String>,
    /// `None`: the node lacks the key.
    pub domain: Vec<Option<DomainId>>,
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
    /// Lays the constraints of a pod over the nodes, with the placed pods counted in.
    pub fn new(
        pod: Incoming<'_>,
        applicable: Applicable,
        nodes: &[Node],
        placed: &[PlacedPod],
    ) -> Self {
        let affinity = NodeAffinity::new(pod.spec);
        let tolerations = pod.spec.tolerations.as_deref().unwrap_or_default();
        let inclusion = Inclusion {
            accepted: nodes.iter().map(|node| affinity.matches(node)).collect(),
            tolerated: nodes
                .iter()
                .map(|node| tolerates_all(&node.taints, tolerations))
                .collect(),
        };
        let countable: Vec<_> = placed
            .iter()
            .filter(|placed| !placed.terminating && placed.namespace == pod.namespace)
            .collect();
        let (hard, soft) = applicable
            .constraints
            .into_iter()
            .map(|constraint| lay(constraint, pod, nodes, &countable, &inclusion))
            .partition(|axis| axis.constraint.hard);
        Self {
            hard,
            soft,
            need_all_keys: applicable.need_all_keys,
        }
    }
}

struct Inclusion {
    accepted: Vec<bool>,
    tolerated: Vec<bool>,
}

fn lay(
    constraint: Constraint,
    pod: Incoming<'_>,
    nodes: &[Node],
    countable: &[&PlacedPod],
    inclusion: &Inclusion,
) -> Axis {
    let mut values = Vec::new();
    let mut ids = HashMap::<&str, DomainId>::new();
    let domain = nodes
        .iter()
        .map(|node| {
            let value = node.labels.get(&constraint.topology_key)?;
            Some(*ids.entry(value).or_insert_with(|| {
                values.push(value.clone());
                DomainId::try_from(values.len() - 1).unwrap_or(DomainId::MAX)
            }))
        })
        .collect();
    let takes_part = (0..nodes.len())
        .map(|node| {
            (!constraint.honor_affinity || inclusion.accepted[node])
                && (!constraint.honor_taints || inclusion.tolerated[node])
        })
        .collect();
    let mut pods = vec![0; nodes.len()];
    for placed in countable {
        if constraint.counted.counts(&placed.labels) {
            pods[placed.node] += 1;
        }
    }
    Axis {
        values,
        domain,
        takes_part,
        pods,
        own: i64::from(constraint.counted.matches_self(pod.labels)),
        counts_copies: constraint.counted.counts(pod.labels),
        constraint,
    }
}
