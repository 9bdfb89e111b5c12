//! The counts that a batch keeps for each constraint.

use std::collections::BTreeMap;

use super::axis::{Axes, Axis};

/// Pods in a domain. `None`: no domain, the key is missing.
pub(super) type Level = Option<i64>;

/// What a dimension decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Whether a place passes.
    Hard {
        max_skew: i64,
        min_domains: i64,
        own: i64,
    },
    /// How well it scores. `per_node`: every place is a domain of its own, and the weight goes by their number.
    Soft { max_skew: i64, per_node: bool },
}

/// One constraint in the course of a batch.
#[derive(Clone, Debug)]
pub(super) struct Dimension {
    pub role: Role,
    /// By place. Soft dimensions of built-in defaults take a missing key for the empty value when they count domains,
    /// and leave the term out: `None` here.
    pub domain: Vec<Option<u32>>,
    /// By place: the domain in which a replica there is counted. `None`: it is not.
    pub adds: Vec<Option<u32>>,
    /// By domain.
    pub counts: Vec<i64>,
    /// Of a hard one, by domain: whether it is in the table that the minimum is taken of.
    in_table: Vec<bool>,
    /// How many domains of the table have each count.
    histogram: BTreeMap<i64, usize>,
    /// The domain whose value is empty, which is one with the places that lack the key.
    empty: Option<u32>,
}

impl Dimension {
    pub fn level(&self, domain: Option<u32>) -> Level {
        domain.map(|domain| self.counts[domain as usize])
    }

    /// The largest count that a place of a hard dimension may have and pass; `None` of a soft one.
    pub fn ceiling(&self) -> Option<i64> {
        let Role::Hard {
            max_skew,
            min_domains,
            own,
        } = self.role
        else {
            return None;
        };
        let domains: usize = self.histogram.values().sum();
        let enough = i64::try_from(domains).is_ok_and(|domains| domains >= min_domains);
        let minimum = self
            .histogram
            .keys()
            .next()
            .copied()
            .filter(|_| enough)
            .unwrap_or(0);
        Some(max_skew + minimum - own)
    }

    pub fn add(&mut self, domain: u32) {
        let count = &mut self.counts[domain as usize];
        if self.in_table[domain as usize] {
            if let Some(domains) = self.histogram.get_mut(count) {
                *domains -= 1;
                if *domains == 0 {
                    self.histogram.remove(count);
                }
            }
            *self.histogram.entry(*count + 1).or_default() += 1;
        }
        *count += 1;
    }

    /// How many domains were seen; the last entry of `seen` stands for the missing key.
    pub fn distinct(&self, seen: &[bool]) -> usize {
        let all = seen.iter().filter(|&&seen| seen).count();
        let twice = seen[seen.len() - 1] && self.empty.is_some_and(|empty| seen[empty as usize]);
        all - usize::from(twice)
    }
}

/// The dimensions of a batch: hard ones first, in the order of the constraints.
pub(super) fn dimensions(axes: &Axes) -> Vec<Dimension> {
    let places = axes
        .hard
        .iter()
        .chain(&axes.soft)
        .map(|axis| axis.domain.len())
        .next();
    let places = places.unwrap_or(0);
    let all_keys = |axes: &[Axis]| -> Vec<bool> {
        (0..places)
            .map(|place| axes.iter().all(|axis| axis.domain[place].is_some()))
            .collect()
    };
    let counted_hard = all_keys(&axes.hard);
    let counted_soft = if axes.need_all_keys {
        all_keys(&axes.soft)
    } else {
        vec![true; places]
    };
    let hard = axes.hard.iter().map(|axis| hard(axis, &counted_hard));
    let soft = axes.soft.iter().map(|axis| {
        if axis.is_hostname() {
            per_node(axis)
        } else {
            soft(axis, &counted_soft)
        }
    });
    hard.chain(soft).collect()
}

fn empty_value(axis: &Axis) -> Option<u32> {
    let at = axis.values.iter().position(String::is_empty)?;
    u32::try_from(at).ok()
}

fn hard(axis: &Axis, eligible: &[bool]) -> Dimension {
    let constraint = &axis.constraint;
    let mut dimension = Dimension {
        role: Role::Hard {
            max_skew: constraint.max_skew,
            min_domains: constraint.min_domains,
            own: axis.own,
        },
        domain: axis.domain.clone(),
        adds: Vec::new(),
        counts: vec![0; axis.values.len()],
        in_table: vec![false; axis.values.len()],
        histogram: BTreeMap::new(),
        empty: None,
    };
    for (place, domain) in axis.domain.iter().enumerate() {
        let counted = eligible[place] && axis.takes_part[place];
        dimension
            .adds
            .push(domain.filter(|_| counted && axis.counts_copies));
        if let Some(domain) = domain
            && counted
        {
            dimension.counts[*domain as usize] += i64::from(axis.pods[place]);
            dimension.in_table[*domain as usize] = true;
        }
    }
    for (count, _) in dimension
        .counts
        .iter()
        .zip(&dimension.in_table)
        .filter(|(_, table)| **table)
    {
        *dimension.histogram.entry(*count).or_default() += 1;
    }
    dimension
}

fn soft(axis: &Axis, eligible: &[bool]) -> Dimension {
    let empty = empty_value(axis);
    let mut counts = vec![0; axis.values.len()];
    let mut adds = Vec::new();
    for (place, domain) in axis.domain.iter().enumerate() {
        let counted = eligible[place] && axis.takes_part[place];
        // Places without the key are counted with the empty value.
        let domain = domain.or(empty);
        adds.push(domain.filter(|_| counted && axis.counts_copies));
        if let Some(domain) = domain
            && counted
        {
            counts[domain as usize] += i64::from(axis.pods[place]);
        }
    }
    Dimension {
        role: Role::Soft {
            max_skew: axis.constraint.max_skew,
            per_node: false,
        },
        domain: axis.domain.clone(),
        adds,
        in_table: vec![false; counts.len()],
        counts,
        histogram: BTreeMap::new(),
        empty,
    }
}

fn per_node(axis: &Axis) -> Dimension {
    let places = axis.domain.len();
    let own =
        |(place, domain): (usize, &Option<u32>)| domain.and_then(|_| u32::try_from(place).ok());
    let domain: Vec<_> = axis.domain.iter().enumerate().map(own).collect();
    Dimension {
        role: Role::Soft {
            max_skew: axis.constraint.max_skew,
            per_node: true,
        },
        adds: domain
            .iter()
            .map(|domain| domain.filter(|_| axis.counts_copies))
            .collect(),
        domain,
        counts: axis.pods.iter().map(|&pods| i64::from(pods)).collect(),
        in_table: vec![false; places],
        histogram: BTreeMap::new(),
        empty: None,
    }
}
