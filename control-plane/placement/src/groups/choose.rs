//! A number of groups with enough clusters in them.
//!
//! The reference walks all sets of groups. It sorts the groups by size, weight and name, extends a set by later groups
//! only, and stops a set as soon as it is large enough; of the sets found it takes the heaviest, then the one with the
//! most clusters, then the first found; and in the end it prefers a beginning of that set, heaviest groups first, if it
//! was found as well. The same answer is computed here in polynomial time: what may follow depends only on the place in
//! the order, on the number of groups taken, and on the number of clusters in them as far as it is still too small.

use super::order::Limits;

/// A group of clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group<'a> {
    /// The region, zone, provider or label value.
    pub name: &'a str,
    /// How many clusters it has.
    pub size: usize,
    /// How good it is.
    pub weight: i64,
}

/// The quality of a set: its weight, then its clusters.
type Quality = (i64, usize);

/// Chooses groups so that their number is within `limits` and they hold at least `clusters` clusters. Returns indices
/// into `groups`, the heaviest first; `None` when there is no such set.
pub fn choose(groups: &[Group<'_>], limits: Limits, clusters: usize) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (&groups[a], &groups[b]);
        a.size
            .cmp(&b.size)
            .then(b.weight.cmp(&a.weight))
            .then(a.name.cmp(b.name))
    });
    let sorted: Vec<&Group<'_>> = order.iter().map(|&at| &groups[at]).collect();
    let search = Search::new(&sorted, limits, clusters);
    let mut set = search.best()?;
    let by_weight = |set: &mut Vec<usize>| {
        set.sort_by(|&a, &b| {
            sorted[b]
                .weight
                .cmp(&sorted[a].weight)
                .then(sorted[a].name.cmp(sorted[b].name))
        });
    };
    by_weight(&mut set);
    let shorter = (limits.min.max(1)..set.len()).find(|&length| search.finds(&set[..length]));
    set.truncate(shorter.unwrap_or(set.len()));
    Some(set.into_iter().map(|at| order[at]).collect())
}

struct Search<'a> {
    groups: &'a [&'a Group<'a>],
    limits: Limits,
    clusters: usize,
}

impl<'a> Search<'a> {
    fn new(groups: &'a [&'a Group<'a>], limits: Limits, clusters: usize) -> Self {
        Self {
            groups,
            limits: Limits {
                min: limits.min,
                max: limits.max.min(groups.len()),
            },
            clusters,
        }
    }

    fn is_enough(&self, taken: usize, clusters: usize) -> bool {
        taken >= self.limits.min && taken <= self.limits.max && clusters >= self.clusters
    }

    /// Number of groups taken, as far as it matters: up to the minimum when there is no maximum to keep.
    fn counted(&self, taken: usize) -> usize {
        if self.limits.max >= self.groups.len() {
            taken.min(self.limits.min)
        } else {
            taken
        }
    }

    /// The best set, as places in the sorted order.
    fn best(&self) -> Option<Vec<usize>> {
        let (groups, most) = (self.groups.len(), self.counted(self.limits.max));
        let width = (most + 1) * (self.clusters + 1);
        let state = |taken: usize, clusters: usize| {
            self.counted(taken) * (self.clusters + 1) + clusters.min(self.clusters)
        };
        // By place and state: the best that can follow, and whether it takes the group at this place.
        let mut tables: Vec<Vec<Option<(Quality, bool)>>> = vec![vec![None; width]; groups + 1];
        for at in (0..groups).rev() {
            let group = self.groups[at];
            for taken in 0..=most {
                for clusters in 0..=self.clusters {
                    let next = (taken + 1, clusters + group.size);
                    let own = (group.weight, group.size);
                    let take = if taken + 1 > self.limits.max {
                        None
                    } else if self.is_enough(next.0, next.1) {
                        Some(own)
                    } else if next.0 < self.limits.max {
                        tables[at + 1][state(next.0, next.1)]
                            .map(|(rest, _)| (own.0 + rest.0, own.1 + rest.1))
                    } else {
                        None
                    };
                    let skip = tables[at + 1][state(taken, clusters)].map(|(quality, _)| quality);
                    // Of equals the one found first: the set with the earlier group.
                    tables[at][state(taken, clusters)] = match (take, skip) {
                        (Some(take), Some(skip)) if skip > take => Some((skip, false)),
                        (Some(take), _) => Some((take, true)),
                        (None, skip) => skip.map(|skip| (skip, false)),
                    };
                }
            }
        }
        let mut set = Vec::new();
        let (mut taken, mut clusters) = (0, 0);
        for (at, group) in self.groups.iter().enumerate() {
            let (_, takes) = tables[at][state(taken, clusters)]?;
            if takes {
                set.push(at);
                taken += 1;
                clusters += group.size;
                if self.is_enough(taken, clusters) {
                    return Some(set);
                }
            }
        }
        None
    }

    /// Whether the walk finds exactly this set: it is enough, and without its last groups it is not.
    fn finds(&self, set: &[usize]) -> bool {
        let mut sorted = set.to_vec();
        sorted.sort_unstable();
        let mut clusters = 0;
        for (before, &at) in sorted.iter().enumerate() {
            if before > 0 && self.is_enough(before, clusters) {
                return false;
            }
            clusters += self.groups[at].size;
        }
        self.is_enough(sorted.len(), clusters)
    }
}
