//! How many domains of a fine dimension there are among the places that pass.

use super::dimension::NOWHERE;

/// With more groups than this, domains are counted anew each time.
const MOST_GROUPS: usize = 128;

/// For each domain the set of groups in which it passes the fine dimensions, and how many domains have each set: which
/// groups pass changes with every replica, which sets there are hardly ever.
#[derive(Debug, Default)]
pub(super) struct Distinct {
    tracked: Vec<Tracked>,
    many_groups: bool,
}

#[derive(Debug)]
struct Tracked {
    dim: usize,
    fine: usize,
    sets: Vec<Set>,
    sizes: Vec<(u128, usize)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Set {
    Few(u128),
    Many(Box<[u32]>),
}

impl Distinct {
    /// `tracked`: dimension, its number among the fine ones, its domains.
    pub fn new(tracked: Vec<(usize, usize, usize)>, groups: usize) -> Self {
        let many_groups = groups > MOST_GROUPS;
        let none = if many_groups {
            Set::Many(Box::default())
        } else {
            Set::Few(0)
        };
        let tracked = tracked
            .into_iter()
            .map(|(dim, fine, domains)| Tracked {
                dim,
                fine,
                sets: vec![none.clone(); domains],
                sizes: Vec::new(),
            })
            .collect();
        Self {
            tracked,
            many_groups,
        }
    }

    pub fn is_needed(&self) -> bool {
        !self.tracked.is_empty()
    }

    /// The dimensions, each with its number among the fine ones.
    pub fn dims(&self) -> Vec<(usize, usize)> {
        self.tracked
            .iter()
            .map(|each| (each.dim, each.fine))
            .collect()
    }

    /// A domain passes in these groups from now on.
    pub fn set(&mut self, dim: usize, domain: u32, groups: impl Iterator<Item = u32>) {
        let many = self.many_groups;
        let Some(tracked) = self.tracked.iter_mut().find(|each| each.dim == dim) else {
            return;
        };
        let Some(set) = tracked.sets.get_mut(domain as usize) else {
            return;
        };
        if many {
            *set = Set::Many(groups.collect());
            return;
        }
        let now = groups.fold(0_u128, |set, group| set | 1 << group);
        let Set::Few(before) = std::mem::replace(set, Set::Few(now)) else {
            return;
        };
        if before == now {
            return;
        }
        if before != 0
            && let Some(at) = tracked.sizes.iter().position(|(set, _)| *set == before)
        {
            tracked.sizes[at].1 -= 1;
            if tracked.sizes[at].1 == 0 {
                tracked.sizes.swap_remove(at);
            }
        }
        if now != 0 {
            match tracked.sizes.iter_mut().find(|(set, _)| *set == now) {
                Some((_, size)) => *size += 1,
                None => tracked.sizes.push((now, 1)),
            }
        }
    }

    /// How many domains of a dimension pass when these groups do, and how much was looked at.
    pub fn count(&self, dim: usize, passing: &[bool]) -> (usize, u64) {
        let Some(tracked) = self.tracked.iter().find(|each| each.dim == dim) else {
            return (0, 0);
        };
        if self.many_groups {
            let passes = |set: &&Set| match set {
                Set::Many(groups) => groups.iter().any(|&group| passing[group as usize]),
                Set::Few(_) => false,
            };
            let count = tracked.sets.iter().filter(passes).count();
            return (count, tracked.sets.len() as u64);
        }
        let groups = passing
            .iter()
            .enumerate()
            .fold(0_u128, |set, (group, &passes)| {
                set | u128::from(passes) << group
            });
        let sizes = tracked.sizes.iter();
        let count = sizes
            .filter(|(set, _)| set & groups != 0)
            .map(|(_, size)| size)
            .sum();
        (count, tracked.sizes.len() as u64)
    }
}

const _: () = assert!(MOST_GROUPS <= u128::BITS as usize && MOST_GROUPS < NOWHERE as usize);
