//! The places of a fleet, made ready once for many workloads.

use std::{collections::HashMap, sync::Arc};

use evenkeel_shared::taint;
use k8s_openapi::api::core::v1::Toleration;

use super::{
    Incoming, Node, PlacedPod,
    affinity::NodeAffinity,
    axis::{Axes, DomainId, lay},
    defaults::Applicable,
};

/// The domains of one topology key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopologyKey {
    /// Its values, in order of first sight.
    pub values: Vec<String>,
    /// By place; `None`: the place lacks the key.
    pub domain: Vec<Option<DomainId>>,
}

impl TopologyKey {
    fn new(key: &str, nodes: &[Node]) -> Self {
        let mut values = Vec::new();
        let mut ids = HashMap::<&str, DomainId>::new();
        let domain = nodes
            .iter()
            .map(|node| {
                let value = node.labels.get(key)?;
                Some(*ids.entry(value).or_insert_with(|| {
                    values.push(value.clone());
                    DomainId::try_from(values.len() - 1).unwrap_or(DomainId::MAX)
                }))
            })
            .collect();
        Self { values, domain }
    }
}

/// Nodes or cells, with what need not be found out for every workload again: their order, and the domains of each
/// topology key that was asked for.
#[derive(Clone, Debug, Default)]
pub struct Places {
    nodes: Vec<Node>,
    order: Vec<u32>,
    keys: HashMap<String, Arc<TopologyKey>>,
    tainted: Vec<usize>,
}

/// Why a pod may not be on a place at all, whatever the constraints say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exclusion {
    /// Its node selector or its required node affinity leaves the place out.
    Affinity,
    /// A taint that it does not tolerate, as `key=value:effect`.
    Taint(String),
}

/// The order in which ties are broken: least name first, by bytes.
pub fn by_name<S: AsRef<str>>(names: &[S]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..u32::try_from(names.len()).unwrap_or(u32::MAX)).collect();
    order.sort_by_key(|&place| names[place as usize].as_ref().as_bytes());
    order
}

impl Places {
    /// Makes places ready.
    pub fn new(nodes: Vec<Node>) -> Self {
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        let tainted = (0..nodes.len())
            .filter(|&place| !nodes[place].taints.is_empty())
            .collect();
        Self {
            order: by_name(&names),
            keys: HashMap::new(),
            tainted,
            nodes,
        }
    }

    /// The places themselves.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The order in which ties are broken.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// The domains of a topology key; they are found when they are first asked for.
    pub fn key(&mut self, key: &str) -> Arc<TopologyKey> {
        if let Some(known) = self.keys.get(key) {
            return known.clone();
        }
        let made = Arc::new(TopologyKey::new(key, &self.nodes));
        self.keys.insert(key.to_owned(), made.clone());
        made
    }

    /// Lays the constraints of a pod over the places, with the placed pods counted in.
    pub fn axes(
        &mut self,
        pod: Incoming<'_>,
        applicable: Applicable,
        placed: &[PlacedPod],
    ) -> Axes {
        let accepted = self.accepted(pod);
        let tolerated = self.tolerated(pod.spec.tolerations.as_deref().unwrap_or_default());
        let countable: Vec<_> = placed
            .iter()
            .filter(|placed| !placed.terminating && placed.namespace == pod.namespace)
            .collect();
        let (hard, soft) = applicable
            .constraints
            .into_iter()
            .map(|constraint| {
                let key = self.key(&constraint.topology_key);
                lay(constraint, key, pod, &countable, (&accepted, &tolerated))
            })
            .partition(|axis| axis.constraint.hard);
        Axes {
            hard,
            soft,
            need_all_keys: applicable.need_all_keys,
        }
    }

    /// By place: why the pod may not be there at all, if so.
    pub fn exclusions(&self, pod: Incoming<'_>) -> Vec<Option<Exclusion>> {
        let tolerations = pod.spec.tolerations.as_deref().unwrap_or_default();
        let mut exclusions: Vec<_> = self
            .accepted(pod)
            .into_iter()
            .map(|accepted| (!accepted).then_some(Exclusion::Affinity))
            .collect();
        for &place in &self.tainted {
            let taints = &self.nodes[place].taints;
            if let Some(taint) = taint::first_untolerated(taints, tolerations) {
                let value = taint.value.as_deref().unwrap_or_default();
                let equals = if value.is_empty() { "" } else { "=" };
                let text = format!("{}{equals}{value}:{}", taint.key, taint.effect);
                exclusions[place].get_or_insert(Exclusion::Taint(text));
            }
        }
        exclusions
    }

    fn accepted(&self, pod: Incoming<'_>) -> Vec<bool> {
        let affinity = NodeAffinity::new(pod.spec);
        if affinity.is_empty() {
            return vec![true; self.nodes.len()];
        }
        self.nodes
            .iter()
            .map(|node| affinity.matches(node))
            .collect()
    }

    fn tolerated(&self, tolerations: &[Toleration]) -> Vec<bool> {
        let mut tolerated = vec![true; self.nodes.len()];
        for &place in &self.tainted {
            let taints = &self.nodes[place].taints;
            tolerated[place] = taint::first_untolerated(taints, tolerations).is_none();
        }
        tolerated
    }
}
