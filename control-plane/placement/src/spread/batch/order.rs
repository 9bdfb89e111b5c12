//! Which class is next.

use std::cmp::Ordering;

use super::{
    Direction,
    buckets::{Buckets, NO_LEVEL},
    classes::Classes,
    dimension::{Dimension, Role},
};
use crate::spread::score::{rounded, term};

/// The state of a batch, as far as choosing goes.
pub(super) struct Chooser {
    pub direction: Direction,
    hard: Vec<usize>,
    pub(super) soft: Vec<usize>,
    /// By dimension, for the places that pass at the moment; hard ones have none.
    pub(super) weights: Vec<f64>,
    pub(super) group_passes: Vec<bool>,
    /// The buckets that may be chosen.
    pub(super) open: Vec<Candidate>,
    /// The levels of the candidates, one stretch after the other: soft dimensions only when adding, else all.
    levels: Vec<i64>,
    pub(super) seen: Vec<Vec<u64>>,
    pub(super) stamp: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub bucket: u32,
    pub turn: u32,
    pub class: u32,
    /// Adding: the rounded score. Removing: how many hard and soft constraints it makes worse.
    pub worse: (i64, i64),
    pub sum: f64,
    levels: usize,
}

/// The class that is next, and for how many replicas in a row at least.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub class: u32,
    pub replicas: u64,
    /// Whether the choice would be the same with all soft counts shifted.
    pub by_differences: bool,
}

impl Chooser {
    pub fn new(direction: Direction, dims: &[Dimension]) -> Self {
        let is_hard = |&dim: &usize| matches!(dims[dim].role, Role::Hard { .. });
        let (hard, soft) = (0..dims.len()).partition(|dim| is_hard(dim));
        Self {
            direction,
            hard,
            soft,
            weights: vec![0.0; dims.len()],
            group_passes: Vec::new(),
            open: Vec::new(),
            levels: Vec::new(),
            seen: dims.iter().map(|dim| vec![0; dim.domains()]).collect(),
            stamp: 0,
        }
    }

    pub fn choose(
        &mut self,
        dims: &[Dimension],
        classes: &Classes,
        buckets: &mut Buckets,
    ) -> Option<Choice> {
        self.list(dims, classes, buckets);
        let best = self.least(None)?;
        let second = self.least(Some(best));
        let replicas = self.run(best, second, dims, classes, buckets);
        let by_differences = self.by_differences(best, replicas, dims, classes);
        Some(Choice {
            class: self.open[best].class,
            replicas,
            by_differences,
        })
    }

    /// Lists what may be chosen, with what decides.
    fn list(&mut self, dims: &[Dimension], classes: &Classes, buckets: &mut Buckets) {
        let adding = self.direction == Direction::Add;
        self.group_passes.clear();
        for group in &buckets.groups {
            let passes = !adding
                || self.hard.iter().all(|&dim| {
                    let position = classes.position(group.example, dim);
                    buckets.fine[dim].is_some()
                        || dims[dim]
                            .ceiling()
                            .is_none_or(|ceiling| dims[dim].level(position.domain) <= ceiling)
                });
            self.group_passes.push(passes && !group.buckets.is_empty());
        }
        if adding && !self.soft.is_empty() {
            self.weigh(dims, classes, buckets);
        }
        self.open.clear();
        self.levels.clear();
        for group in 0..buckets.groups.len() {
            buckets.work += 1;
            if !self.group_passes[group] {
                continue;
            }
            for at in 0..buckets.groups[group].buckets.len() {
                buckets.work += 1;
                let bucket = buckets.groups[group].buckets[at];
                if adding && !buckets.bucket(bucket).passes {
                    continue;
                }
                let Some((turn, class)) = buckets.first(bucket, classes) else {
                    continue;
                };
                let from = self.levels.len();
                let (worse, sum) = if adding {
                    self.score(dims, classes, buckets, bucket, class)
                } else {
                    self.loss(dims, classes, buckets, bucket, class)
                };
                self.open.push(Candidate {
                    bucket,
                    turn,
                    class,
                    worse,
                    sum,
                    levels: from,
                });
            }
        }
    }

    fn level(
        dim: usize,
        dims: &[Dimension],
        classes: &Classes,
        buckets: &Buckets,
        bucket: u32,
        class: u32,
    ) -> i64 {
        if let Some(fine) = buckets.fine[dim] {
            return buckets.bucket(bucket).level(fine);
        }
        let position = classes.position(class, dim);
        if position.reads {
            dims[dim].level(position.domain)
        } else {
            NO_LEVEL
        }
    }

    fn score(
        &mut self,
        dims: &[Dimension],
        classes: &Classes,
        buckets: &Buckets,
        bucket: u32,
        class: u32,
    ) -> ((i64, i64), f64) {
        let mut sum = 0.0;
        for &dim in &self.soft {
            let level = Self::level(dim, dims, classes, buckets, bucket, class);
            self.levels.push(level);
            if let Role::Soft { max_skew, .. } = dims[dim].role
                && level != NO_LEVEL
            {
                sum += term(level + dims[dim].base(), self.weights[dim], max_skew);
            }
        }
        if buckets.bucket(bucket).is_scored() {
            ((rounded(sum), 0), sum)
        } else {
            ((i64::MAX, 0), f64::INFINITY)
        }
    }

    fn loss(
        &mut self,
        dims: &[Dimension],
        classes: &Classes,
        buckets: &Buckets,
        bucket: u32,
        class: u32,
    ) -> ((i64, i64), f64) {
        let mut worse = (0, 0);
        for (dim, dimension) in dims.iter().enumerate() {
            let level = Self::level(dim, dims, classes, buckets, bucket, class);
            self.levels.push(level);
            let least = level != NO_LEVEL
                && dimension.has_minimum()
                && level + dimension.base() <= dimension.minimum();
            if least && matches!(dimension.role, Role::Hard { .. }) {
                worse.0 += 1;
            } else if least {
                worse.1 += 1;
            }
        }
        (worse, 0.0)
    }

    pub(super) fn levels_of(&self, candidate: usize) -> &[i64] {
        let from = self.open[candidate].levels;
        let until = self
            .open
            .get(candidate + 1)
            .map_or(self.levels.len(), |next| next.levels);
        &self.levels[from..until]
    }

    /// Whether `a` comes before `b`, if the levels of `a` were these.
    pub(super) fn order(&self, a: usize, levels: &[i64], b: usize) -> Ordering {
        let (first, second) = (&self.open[a], &self.open[b]);
        let by_level = || match self.direction {
            Direction::Add => Ordering::Equal,
            Direction::Remove => self.levels_of(b).cmp(levels),
        };
        first
            .worse
            .cmp(&second.worse)
            .then_with(by_level)
            .then(first.turn.cmp(&second.turn))
    }

    fn least(&self, but: Option<usize>) -> Option<usize> {
        (0..self.open.len())
            .filter(|&at| Some(at) != but)
            .reduce(|best, at| match self.order(at, self.levels_of(at), best) {
                Ordering::Less => at,
                _ => best,
            })
    }
}
