//! Where a pod goes best: the soft constraints.
//!
//! Scores are sums of doubles, as in the real plugin: it is the one place where its answers depend on them.

use super::axis::{Axes, Axis};

/// The best normalised score.
pub const MAX_SCORE: i64 = 100;

/// The score of one feasible node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Score {
    /// The larger the worse. 0 for a node that is passed over.
    pub raw: i64,
    /// 0 to [`MAX_SCORE`], the larger the better.
    pub normalised: i64,
}

/// One term of the sum that is a node's raw score.
pub(crate) fn term(count: i64, weight: f64, max_skew: i64) -> f64 {
    // Two roundings, as the reference has them: no fused multiply-add.
    let product = count as f64 * weight;
    product + (max_skew - 1) as f64
}

/// What a constraint with this many domains among the scored nodes weighs.
pub(crate) fn weight(domains: usize) -> f64 {
    ((domains + 2) as f64).ln()
}

/// A sum of terms as an integer: to the nearest, halves away from zero.
#[expect(
    clippy::cast_possible_truncation,
    reason = "counts and weights keep it far below 2^53"
)]
pub(crate) fn rounded(sum: f64) -> i64 {
    sum.round() as i64
}

/// Scores `feasible` (indices of nodes). `None`: no soft constraint applies. The result is in the order given.
pub fn score(axes: &Axes, feasible: &[usize]) -> Option<Vec<Score>> {
    if axes.soft.is_empty() {
        return None;
    }
    let has_all_keys = |node: usize| axes.soft.iter().all(|axis| axis.key.domain[node].is_some());
    let scored = |node: usize| !axes.need_all_keys || has_all_keys(node);
    let listed: Vec<usize> = feasible
        .iter()
        .copied()
        .filter(|&node| scored(node))
        .collect();
    let terms: Vec<Terms<'_>> = axes
        .soft
        .iter()
        .map(|axis| Terms::new(axis, &listed, &scored))
        .collect();
    let raw: Vec<Option<i64>> = feasible
        .iter()
        .map(|&node| {
            scored(node).then(|| rounded(terms.iter().filter_map(|terms| terms.of(node)).sum()))
        })
        .collect();
    let least = raw.iter().flatten().copied().min().unwrap_or(i64::MAX);
    let most = raw.iter().flatten().copied().max().unwrap_or(0);
    let normalise = |raw: Option<i64>| match raw {
        None => Score {
            raw: 0,
            normalised: 0,
        },
        Some(raw) if most == 0 => Score {
            raw,
            normalised: MAX_SCORE,
        },
        Some(raw) => Score {
            raw,
            normalised: MAX_SCORE * (most + least - raw) / most,
        },
    };
    Some(raw.into_iter().map(normalise).collect())
}

/// One soft constraint over the nodes that are scored.
struct Terms<'a> {
    axis: &'a Axis,
    weight: f64,
    /// Pods per domain; the last entry is for nodes without the key, which built-in defaults take for one more domain.
    buckets: Vec<i64>,
}

impl<'a> Terms<'a> {
    fn new(axis: &'a Axis, listed: &[usize], scored: &dyn Fn(usize) -> bool) -> Self {
        if axis.is_hostname() {
            return Self {
                axis,
                weight: weight(listed.len()),
                buckets: Vec::new(),
            };
        }
        let bucket = |node: usize| bucket_of(axis, node);
        let mut buckets: Vec<Option<i64>> = vec![None; axis.key.values.len() + 1];
        for &node in listed {
            buckets[bucket(node)] = Some(0);
        }
        for node in 0..axis.key.domain.len() {
            if scored(node)
                && axis.takes_part[node]
                && let Some(count) = &mut buckets[bucket(node)]
            {
                *count += i64::from(axis.pods[node]);
            }
        }
        let domains = buckets.iter().flatten().count();
        let buckets = buckets.into_iter().map(Option::unwrap_or_default).collect();
        Self {
            axis,
            weight: weight(domains),
            buckets,
        }
    }

    /// `None`: the node lacks the key, and the term is left out.
    fn of(&self, node: usize) -> Option<f64> {
        self.axis.key.domain[node]?;
        let count = if self.axis.is_hostname() {
            i64::from(self.axis.pods[node])
        } else {
            self.buckets[bucket_of(self.axis, node)]
        };
        Some(term(count, self.weight, self.axis.constraint.max_skew))
    }
}

/// Where the pods of a node are counted: under its domain, or, without the key, together with the empty value.
fn bucket_of(axis: &Axis, node: usize) -> usize {
    match axis.key.domain[node] {
        Some(domain) if !axis.key.values[domain as usize].is_empty() => domain as usize,
        _ => axis.key.values.len(),
    }
}
