//! Where a pod may go: the hard constraints.

use super::axis::{Axes, Axis, DomainId};

/// The verdict of the hard constraints on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may go there.
    Success,
    /// Placing it there would exceed `maxSkew`; removing pods elsewhere in the domain could help.
    Unschedulable(Refusal),
    /// The node lacks a topology key; nothing short of a label helps.
    UnschedulableAndUnresolvable {
        /// Index into the hard axes.
        axis: usize,
    },
}

/// The skew that a node was refused for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Index into the hard axes.
    pub axis: usize,
    /// Pods in the node's domain.
    pub count: i64,
    /// Pods in the domain that has the fewest; 0 while there are fewer domains than `minDomains`.
    pub minimum: i64,
    /// What the skew would become.
    pub skew: i64,
}

/// Counts per domain of one hard constraint.
#[derive(Clone, Debug)]
pub struct DomainCounts {
    /// `None`: no node that takes part has this value.
    pub counts: Vec<Option<i64>>,
    domains: i64,
}

impl DomainCounts {
    fn new(axis: &Axis, eligible: &[bool], beside: &[u64]) -> Self {
        let mut counts = vec![None; axis.key.values.len()];
        for (node, domain) in axis.key.domain.iter().enumerate() {
            if let Some(domain) = domain
                && eligible[node]
                && axis.takes_part[node]
            {
                let copies = beside
                    .get(node)
                    .filter(|_| axis.counts_copies)
                    .map_or(0, |&copies| i64::try_from(copies).unwrap_or(i64::MAX));
                let count = counts[*domain as usize].get_or_insert(0_i64);
                *count = count.saturating_add(copies.saturating_add(i64::from(axis.pods[node])));
            }
        }
        let domains = counts.iter().flatten().count();
        Self {
            counts,
            domains: i64::try_from(domains).unwrap_or(i64::MAX),
        }
    }

    /// Pods in a domain; 0 where no node takes part.
    pub fn count(&self, domain: DomainId) -> i64 {
        self.counts[domain as usize].unwrap_or(0)
    }

    /// The count that skew is measured from.
    pub fn minimum(&self, min_domains: i64) -> i64 {
        if self.domains < min_domains {
            return 0;
        }
        self.counts.iter().flatten().copied().min().unwrap_or(0)
    }
}

/// The hard constraints, ready to judge nodes.
#[derive(Clone, Debug)]
pub struct Filter<'a> {
    axes: &'a [Axis],
    tables: Vec<DomainCounts>,
    minima: Vec<i64>,
}

impl<'a> Filter<'a> {
    /// Counts the pods of each domain.
    pub fn new(axes: &'a Axes) -> Self {
        Self::beside(axes, &[])
    }

    /// The same with copies of the pod, by node, that the axes do not count.
    pub fn beside(axes: &'a Axes, copies: &[u64]) -> Self {
        let axes = axes.hard.as_slice();
        let nodes = axes.first().map_or(0, |axis| axis.key.domain.len());
        // A node that lacks one of the keys counts for none of the constraints.
        let eligible: Vec<bool> = (0..nodes)
            .map(|node| axes.iter().all(|axis| axis.key.domain[node].is_some()))
            .collect();
        let tables: Vec<_> = axes
            .iter()
            .map(|axis| DomainCounts::new(axis, &eligible, copies))
            .collect();
        let minima = tables
            .iter()
            .zip(axes)
            .map(|(table, axis)| table.minimum(axis.constraint.min_domains))
            .collect();
        Self {
            axes,
            tables,
            minima,
        }
    }

    /// No hard constraint applies: every node passes.
    pub fn is_skipped(&self) -> bool {
        self.axes.is_empty()
    }

    /// The first constraint that fails decides.
    pub fn verdict(&self, node: usize) -> Verdict {
        for (index, axis) in self.axes.iter().enumerate() {
            let Some(domain) = axis.key.domain[node] else {
                return Verdict::UnschedulableAndUnresolvable { axis: index };
            };
            let count = self.tables[index].count(domain);
            let minimum = self.minima[index];
            let skew = count + axis.own - minimum;
            if skew > axis.constraint.max_skew {
                return Verdict::Unschedulable(Refusal {
                    axis: index,
                    count,
                    minimum,
                    skew,
                });
            }
        }
        Verdict::Success
    }

    /// What skew is measured from, of one hard constraint.
    pub fn minimum(&self, axis: usize) -> i64 {
        self.minima[axis]
    }

    /// The domains of one hard constraint.
    pub fn table(&self, axis: usize) -> &DomainCounts {
        &self.tables[axis]
    }

    /// The first constraint, if any, that would not have admitted the last copy of the pod on the node.
    pub fn broken(&self, node: usize) -> Option<usize> {
        self.axes.iter().enumerate().position(|(index, axis)| {
            axis.key.domain[node].is_none_or(|domain| {
                // One that is not counted may have come before the last one that is.
                let before = self.tables[index].count(domain) - i64::from(axis.counts_copies);
                before + axis.own - self.minima[index] > axis.constraint.max_skew
            })
        })
    }
}
