//! Candidates, and the order that they are preferred in.

use crate::fleet::ClusterView;

/// A cluster that passed all filters.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// The cluster.
    pub cluster: &'a ClusterView,
    /// How good it is apart from its room; a cluster that holds the workload already is better than one that does not.
    pub score: i64,
    /// Replicas that it could hold: what it has room for, and what it holds of this workload already.
    pub available: i64,
    /// 0 for the affinity's own clusters, 1 and up for those of its overflow terms.
    pub tier: u32,
}

/// Puts the preferred first: the affinity's own before overflow, then by score, by room, and by name.
pub fn sort(candidates: &mut [Candidate<'_>]) {
    candidates.sort_by(|a, b| {
        a.tier
            .cmp(&b.tier)
            .then(b.score.cmp(&a.score))
            .then(b.available.cmp(&a.available))
            .then_with(|| a.cluster.name.cmp(&b.cluster.name))
    });
}

/// What the chosen clusters must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Each of them so many replicas; that decides which groups are better, and excludes no cluster.
    Copies(i64),
    /// All of them together so many.
    Shares(i64),
}

/// Limits on a number of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// At least so many.
    pub min: usize,
    /// At most so many; `usize::MAX` for no limit.
    pub max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            min: 1,
            max: usize::MAX,
        }
    }
}
