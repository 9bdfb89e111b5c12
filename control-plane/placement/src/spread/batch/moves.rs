//! Keeping the buckets up to date as replicas are counted.

use std::cmp::Reverse;

use super::{
    buckets::{Buckets, of_domain, split},
    classes::Classes,
    dimension::{Dimension, NOWHERE},
};

impl Buckets {
    /// Moves what has changed its levels, now that replicas of `class` were counted. `filled`: its first member has
    /// no room any more.
    pub fn update(&mut self, class: u32, filled: bool, dims: &[Dimension], classes: &mut Classes) {
        let mut moving = std::mem::take(&mut self.moving);
        moving.clear();
        for (fine, &dim) in self.fine_dims.iter().enumerate() {
            let position = classes.position(class, dim);
            if position.adds {
                moving.extend(of_domain(&self.residents[fine], position.domain));
            }
        }
        if filled {
            moving.push(class);
        }
        if self.fine_dims.len() > 1 || filled {
            moving.sort_unstable();
            moving.dedup();
        }
        self.work += moving.len() as u64;
        for &each in &moving {
            if self.bucket_of[each as usize] == NOWHERE {
                continue;
            }
            let left = classes.left(each);
            if each == class && filled {
                classes.advance(each);
            } else {
                self.set_key(each, dims, classes);
                if self.scratch.as_slice()
                    == &*self.slab[self.bucket_of[each as usize] as usize].key
                {
                    continue;
                }
            }
            self.leave(each, left);
            self.enter(each, dims, classes);
        }
        self.recount_domains(&moving, classes);
        self.moving = moving;
        self.follow_ceilings(dims, classes);
    }

    /// Judges the buckets anew when a ceiling of a fine dimension has changed.
    fn follow_ceilings(&mut self, dims: &[Dimension], classes: &Classes) {
        let same = self
            .fine_dims
            .iter()
            .zip(&self.ceilings)
            .all(|(&dim, ceiling)| dims[dim].ceiling() == *ceiling);
        if same {
            return;
        }
        self.ceilings = self.judge(dims);
        let mut changed = Vec::new();
        for group in &mut self.groups {
            for &bucket in &group.buckets {
                self.work += 1;
                let entry = &mut self.slab[bucket as usize];
                let passes = Self::passes(&self.ceilings, &entry.key);
                if passes == entry.passes {
                    continue;
                }
                entry.passes = passes;
                if !entry.is_scored() {
                    continue;
                }
                if passes {
                    group.passing += entry.classes;
                } else {
                    group.passing -= entry.classes;
                }
                if self.distinct.is_needed() {
                    let of = &self.bucket_of;
                    let members = entry.turns.iter().map(|&Reverse(entry)| split(entry).1);
                    changed.extend(members.filter(|&class| of[class as usize] == bucket));
                }
            }
        }
        self.work += changed.len() as u64;
        self.recount_domains(&changed, classes);
    }

    /// Brings the domains of these classes up to date.
    fn recount_domains(&mut self, changed: &[u32], classes: &Classes) {
        if !self.distinct.is_needed() {
            return;
        }
        let mut distinct = std::mem::take(&mut self.distinct);
        for &(dim, fine) in &distinct.dims() {
            let mut last = NOWHERE;
            for &class in changed {
                let domain = classes.position(class, dim).domain;
                // Classes of one domain often come in a row.
                if domain == NOWHERE || domain == last {
                    continue;
                }
                last = domain;
                let groups = of_domain(&self.residents[fine], domain)
                    .iter()
                    .filter(|&&class| self.counts(class, classes))
                    .map(|&class| self.group_of[class as usize]);
                distinct.set(dim, domain, groups);
                self.work += 1;
            }
        }
        self.distinct = distinct;
    }

    pub(super) fn recount(&mut self, classes: &Classes) {
        let all: Vec<u32> = (0..u32::try_from(classes.len()).unwrap_or(NOWHERE)).collect();
        self.recount_domains(&all, classes);
    }

    /// Whether a class has room, is scored, and passes the fine hard dimensions.
    fn counts(&self, class: u32, classes: &Classes) -> bool {
        let bucket = self.bucket_of[class as usize];
        bucket != NOWHERE && self.slab[bucket as usize].passes && classes.scored[class as usize]
    }
}
