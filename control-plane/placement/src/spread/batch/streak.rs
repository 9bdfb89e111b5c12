//! How often the same class is chosen in a row, and whether only differences of counts decided.

use std::cmp::Ordering;

use super::{
    Direction,
    buckets::{Buckets, NO_LEVEL},
    classes::Classes,
    dimension::{Dimension, Role},
    order::{Candidate, Chooser},
};
use crate::spread::score::{rounded, term};

/// Sums that differ by more than this differ when they are rounded, wherever they lie: a little more than 1, for what
/// doubles of this size lose.
const APART: f64 = 1.001;

/// Sums up to this are exact enough for [`APART`].
const LARGEST_SUM: f64 = (1_u64 << 38) as f64;

impl Chooser {
    /// For how many replicas in a row the best one stays the best: nothing that is decided by changes meanwhile but its
    /// own counts, and others only get worse.
    pub(super) fn run(
        &self,
        best: usize,
        second: Option<usize>,
        dims: &[Dimension],
        classes: &Classes,
        buckets: &Buckets,
    ) -> u64 {
        let Candidate { class, bucket, .. } = self.open[best];
        let mut most = u64::MAX;
        let mut moves = false;
        for (dim, position) in classes.positions(class).iter().enumerate() {
            if !position.adds {
                continue;
            }
            let dimension = &dims[dim];
            moves |= position.reads;
            match self.direction {
                Direction::Add => {
                    if let Some(ceiling) = dimension.ceiling() {
                        if dimension.is_least_alone(position.domain) {
                            return 1;
                        }
                        let room = ceiling - dimension.level(position.domain) + 1;
                        most = most.min(u64::try_from(room).unwrap_or(1));
                    }
                }
                Direction::Remove => {
                    let above =
                        dimension.level(position.domain) + dimension.base() - dimension.minimum();
                    if dimension.has_minimum() && dimension.is_in_table(position.domain) {
                        most = most.min(u64::try_from(above).unwrap_or(1).max(1));
                    }
                }
            }
        }
        let ordered = match self.direction {
            Direction::Add => self.soft.iter().any(|&dim| {
                let position = classes.position(class, dim);
                position.adds && position.reads
            }),
            Direction::Remove => moves,
        };
        if !ordered || most == 1 {
            return most.max(1);
        }
        if buckets.bucket(bucket).classes > 1 {
            return 1;
        }
        let Some(second) = second else {
            return most;
        };
        // The replica after this many still goes there.
        let stays = |after: u64| self.beats(best, second, after, dims, classes);
        if !stays(1) {
            return 1;
        }
        let (mut sure, mut open) = (1, most - 1);
        while sure < open {
            let middle = sure + (open - sure).div_ceil(2);
            if stays(middle) {
                sure = middle;
            } else {
                open = middle - 1;
            }
        }
        sure + 1
    }

    fn beats(
        &self,
        best: usize,
        second: usize,
        after: u64,
        dims: &[Dimension],
        classes: &Classes,
    ) -> bool {
        // Far beyond any count: the sum would lose what decides.
        let Some(after) = i64::try_from(after).ok().filter(|&after| after < 1 << 40) else {
            return false;
        };
        let candidate = &self.open[best];
        let positions = classes.positions(candidate.class);
        match self.direction {
            Direction::Add => {
                let mut sum = 0.0;
                for (&dim, &level) in self.soft.iter().zip(self.levels_of(best)) {
                    if let Role::Soft { max_skew, .. } = dims[dim].role
                        && level != NO_LEVEL
                    {
                        let more = if positions[dim].adds { after } else { 0 };
                        sum += term(level + dims[dim].base() + more, self.weights[dim], max_skew);
                    }
                }
                let other = &self.open[second];
                ((rounded(sum), 0), candidate.turn) < (other.worse, other.turn)
            }
            Direction::Remove => {
                let levels: Vec<i64> = self
                    .levels_of(best)
                    .iter()
                    .zip(positions)
                    .map(|(&level, position)| if position.adds { level - after } else { level })
                    .collect();
                self.order(best, &levels, second) == Ordering::Less
            }
        }
    }

    /// Whether only differences of counts decided, so that the same is chosen when all soft counts are shifted.
    pub(super) fn by_differences(
        &self,
        best: usize,
        replicas: u64,
        dims: &[Dimension],
        classes: &Classes,
    ) -> bool {
        if self.direction == Direction::Remove || self.soft.is_empty() {
            return true;
        }
        let winner = &self.open[best];
        if winner.sum.is_infinite() {
            // Nothing that is scored passes.
            return true;
        }
        let levels = self.levels_of(best);
        let one = self.soft.len() == 1;
        if !one && replicas > 1 {
            return false;
        }
        let lacks = |level: i64| level == NO_LEVEL;
        debug_assert!(dims.len() >= self.soft.len() && classes.len() > 0);
        (0..self.open.len()).all(|at| {
            let other = &self.open[at];
            if at == best || other.sum.is_infinite() {
                return true;
            }
            let others = self.levels_of(at);
            let alike = others
                .iter()
                .zip(levels)
                .all(|(&other, &level)| lacks(other) == lacks(level));
            alike
                && (one
                    || others == levels
                    || (other.sum - winner.sum > APART && other.sum < LARGEST_SUM))
        })
    }
}
