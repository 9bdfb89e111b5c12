//! Rounds of decisions that repeat.
//!
//! The decisions since a checkpoint follow once more, if
//!
//! 1. no place was or will be filled on the way;
//! 2. each was made by differences of counts (scores are rounded, so that is not certain);
//! 3. the live domains of a soft dimension have all moved by the same number;
//! 4. so have those of a hard dimension, and its ceiling with them; or at least every domain was judged the same all
//!    along, and will be: see [`Rounds::uniform`] and [`Rounds::judged_alike`]. When replicas are taken off, the live
//!    domains have all moved by the same number, and hold the minimum throughout, or stay above it.

use super::{Direction, dimension::Dimension, engine::Batch};

/// Longer rounds are not remembered.
const LONGEST: usize = 1 << 22;

/// Domains that may be looked at for each decision.
const CREDIT: u64 = 4;

pub(super) struct Rounds {
    /// Places and numbers of replicas since the checkpoint.
    taken: Vec<(usize, u64)>,
    replicas: u64,
    /// After so many decisions without a recurrence a new checkpoint is set.
    patience: usize,
    first_patience: usize,
    /// Domains that may be looked at to see whether they were judged alike.
    credit: u64,
    /// By dimension: ceiling and live minimum at the checkpoint.
    ceilings: Vec<Option<i64>>,
    minima: Vec<Option<i64>>,
    /// Scratch: replicas per place in a round.
    used: Vec<u64>,
}

impl Rounds {
    pub fn new(dims: &[Dimension], classes: usize) -> Self {
        let mut rounds = Self {
            taken: Vec::new(),
            replicas: 0,
            patience: 4 * classes.max(1),
            first_patience: 4 * classes.max(1),
            credit: 0,
            ceilings: Vec::new(),
            minima: Vec::new(),
            used: Vec::new(),
        };
        rounds.mark(dims);
        rounds
    }

    fn mark(&mut self, dims: &[Dimension]) {
        self.ceilings.clear();
        self.minima.clear();
        self.ceilings.extend(dims.iter().map(ceiling));
        self.minima.extend(dims.iter().map(Dimension::live_minimum));
    }

    fn restart(&mut self, dims: &mut [Dimension]) {
        self.taken.clear();
        self.replicas = 0;
        for dimension in dims.iter_mut() {
            dimension.recurrence.restart();
        }
        self.mark(dims);
    }

    /// Remembers a decision.
    pub fn record(
        &mut self,
        place: usize,
        replicas: u64,
        by_differences: bool,
        filled: bool,
        dims: &mut [Dimension],
    ) {
        if filled || !by_differences {
            self.restart(dims);
            return;
        }
        if self.taken.len() >= self.patience.min(LONGEST) {
            self.patience = self.patience.saturating_mul(2);
            self.restart(dims);
            return;
        }
        self.taken.push((place, replicas));
        self.credit = self.credit.saturating_add(CREDIT);
        self.replicas += replicas;
    }

    /// Makes as many whole rounds at once as may be made, if the state has recurred. Returns what is left of `left`.
    pub fn skip(
        &mut self,
        batch: &mut Batch,
        placed: &mut [u64],
        left: u64,
        direction: Direction,
    ) -> u64 {
        if self.taken.is_empty() || left == 0 {
            return left;
        }
        // What has not recurred may still do so; whether it matters is looked at now and then.
        let moved = batch
            .dims
            .iter()
            .filter(|dim| dim.recurrence.common().is_none());
        let cost: u64 = moved.map(|dim| dim.domains() as u64).sum();
        if cost > 0 && (direction == Direction::Remove || self.credit < cost) {
            return left;
        }
        self.credit -= cost;
        let mut limit = u64::MAX;
        let mut uniform = true;
        for (dim, dimension) in batch.dims.iter().enumerate() {
            let may = match dimension.recurrence.common() {
                Some(0) => continue,
                Some(step) => self.uniform(dim, dimension, step, direction),
                None => {
                    uniform = false;
                    match self.judged_alike(dim, dimension) {
                        Some(may) => may,
                        None => return left,
                    }
                }
            };
            limit = limit.min(may);
        }
        limit = limit.min(self.by_room(batch));
        let rounds = limit.min(left / self.replicas);
        if limit == 0 {
            self.restart(&mut batch.dims);
            return left;
        }
        for &(place, replicas) in &self.taken {
            placed[place] += replicas * rounds;
        }
        let mut left = left - rounds * self.replicas;
        if rounds < limit {
            // What is left is part of one more round, which may be made.
            for &(place, replicas) in &self.taken {
                let replicas = replicas.min(left);
                placed[place] += replicas;
                left -= replicas;
            }
            return left;
        }
        self.apply(batch, rounds, uniform, direction);
        self.patience = self.first_patience;
        self.restart(&mut batch.dims);
        left
    }

    fn apply(&self, batch: &mut Batch, rounds: u64, uniform: bool, direction: Direction) {
        for &(place, replicas) in &self.taken {
            if batch.room[place] != u64::MAX {
                batch.room[place] -= replicas * rounds;
            }
        }
        let rounds = i64::try_from(rounds).unwrap_or(i64::MAX);
        for dimension in &mut batch.dims {
            if let Some(step) = dimension.recurrence.common() {
                let change = step * rounds;
                dimension.shift(match direction {
                    Direction::Add => change,
                    Direction::Remove => -change,
                });
            } else {
                let live: Vec<u32> = dimension.live_domains().map(|(domain, _)| domain).collect();
                for domain in live {
                    let step = dimension.recurrence.of(domain);
                    dimension.count(domain, step * rounds, direction);
                }
            }
        }
        if !uniform {
            batch.rebuild();
        }
    }

    /// How many rounds no place is filled in.
    fn by_room(&mut self, batch: &Batch) -> u64 {
        self.used.resize(batch.room.len(), 0);
        let mut limit = u64::MAX;
        for &(place, replicas) in &self.taken {
            if batch.room[place] != u64::MAX {
                self.used[place] += replicas;
                limit = limit.min((batch.room[place] - 1) / self.used[place]);
            }
        }
        for &(place, _) in &self.taken {
            self.used[place] = 0;
        }
        limit
    }

    /// How many rounds may follow as far as a dimension goes whose live domains have all moved by `step`.
    fn uniform(&self, dim: usize, dimension: &Dimension, step: i64, direction: Direction) -> u64 {
        let rounds = |distance: i64| u64::try_from(distance / step).unwrap_or(0);
        let live = dimension.live_minimum();
        let settled = dimension.settled_minimum().unwrap_or(i64::MAX);
        match direction {
            Direction::Add => {
                let Some(now) = ceiling(dimension) else {
                    return u64::MAX;
                };
                if dimension.has_minimum()
                    && let Some(live) = live
                    && live <= settled
                {
                    let moving = if settled == i64::MAX {
                        u64::MAX
                    } else {
                        rounds(settled - live)
                    };
                    if moving > 0 {
                        return moving;
                    }
                }
                if self.ceilings[dim] != Some(now) {
                    return 0;
                }
                let most = dimension.live_domains().map(|(_, level)| level).max();
                most.map_or(0, |most| rounds(now - dimension.base() - most))
            }
            Direction::Remove => {
                if !dimension.has_minimum() {
                    return u64::MAX;
                }
                // Going down, who held the minimum at the checkpoint holds it from then on.
                if self.minima[dim].is_some_and(|before| before <= settled) {
                    return u64::MAX;
                }
                live.map_or(u64::MAX, |live| rounds(live - settled - 1))
            }
        }
    }

    /// The same for a hard dimension whose domains have moved differently when replicas were added. `None`: some domain
    /// was not judged the same throughout.
    ///
    /// Say that a domain moves by `step` in a round and the ceiling by `rise`. Counts and the ceiling never fall, so
    /// what holds of the first and the last moment of a round holds in between. A domain is judged the same in each
    /// round if `step` is `rise`; if its greatest count lies within the least ceiling; or if its least count lies
    /// beyond the greatest ceiling. The ceiling rises by the same in each round if `rise` is 0, as then a domain that
    /// does not move holds the minimum; or if domains that move by `rise` hold it throughout.
    fn judged_alike(&self, dim: usize, dimension: &Dimension) -> Option<u64> {
        let (first, last) = (self.ceilings[dim]?, ceiling(dimension)?);
        let rise = last - first;
        let rounds = |distance: i64, by: i64| u64::try_from(distance / by).unwrap_or(0);
        let domains = || {
            dimension.live_domains().map(|(domain, level)| {
                let step = dimension.recurrence.of(domain);
                (domain, level + dimension.base(), step)
            })
        };
        let mut limit = u64::MAX;
        for (_, count, step) in domains().filter(|&(_, _, step)| step != rise) {
            let before = count - step;
            if count <= first {
                if step > rise {
                    limit = limit.min(rounds(first - count, step - rise));
                }
            } else if before > last {
                if step < rise {
                    limit = limit.min(rounds(before - last - 1, rise - step));
                }
            } else {
                return None;
            }
        }
        if rise == 0 {
            return Some(limit);
        }
        let table = || domains().filter(|&(domain, _, _)| dimension.is_in_table(domain));
        let holds = table()
            .filter(|&(_, _, step)| step == rise)
            .map(|(_, count, _)| count)
            .min()?;
        let others = table()
            .filter(|&(_, _, step)| step != rise)
            .map(|(_, count, step)| (count - step, step));
        for (before, step) in others.chain(dimension.settled_minimum().map(|least| (least, 0))) {
            if before < holds {
                return None;
            }
            if step < rise {
                limit = limit.min(rounds(before - holds, rise - step));
            }
        }
        Some(limit)
    }
}

/// The true count up to which places pass.
fn ceiling(dimension: &Dimension) -> Option<i64> {
    Some(dimension.ceiling()? + dimension.base())
}
