//! Webster's method (Sainte-Laguë): seats in proportion to votes, one after the other to the party whose
//! `votes / (2 × seats + 1)` is the largest. Ties as Karmada breaks them: fewer seats first, then by name, ascending or
//! descending according to the workload's uid, so that not every workload favours the same cluster.

use std::{cmp::Ordering, collections::BinaryHeap};

/// A party, its votes, and its seats: those it starts with, and in the end all that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Party<'a> {
    /// Breaks ties.
    pub name: &'a str,
    /// Never negative.
    pub votes: i64,
    /// Never negative.
    pub seats: i64,
}

/// Which name wins a tie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByName {
    /// The lesser.
    Ascending,
    /// The greater.
    Descending,
}

impl ByName {
    /// Descending if the 32-bit FNV-1a hash of the uid is odd, ascending if it is even or there is no uid.
    pub fn of_uid(uid: &str) -> Self {
        let hash = evenkeel_shared::names::fnv1a_32(uid.as_bytes());
        if !uid.is_empty() && hash % 2 == 1 {
            Self::Descending
        } else {
            Self::Ascending
        }
    }
}

/// What the next seat of a party would be worth. Doubles, because ties are those of doubles in the reference.
fn priority(votes: i64, seats: i64) -> f64 {
    votes as f64 / (2 * seats + 1) as f64
}

/// Hands out `seats` more seats. The parties keep their order.
pub fn allocate(parties: &mut [Party<'_>], seats: i64, tie: ByName) {
    if parties.is_empty() || seats <= 0 {
        return;
    }
    let left = seats - skip_ahead(parties, seats);
    let mut queue: BinaryHeap<_> = parties
        .iter()
        .enumerate()
        .map(|(index, party)| Next::new(index, party, tie))
        .collect();
    for _ in 0..left {
        let Some(next) = queue.pop() else { break };
        let party = &mut parties[next.index];
        party.seats += 1;
        queue.push(Next::new(next.index, party, tie));
    }
}

/// Hands out, at once, seats that are surely among the first: all those whose priority lies above a bound that is
/// chosen so that there are no more of them than seats. Returns how many. What is left is of the order of the number of
/// parties, whatever the number of seats.
fn skip_ahead(parties: &mut [Party<'_>], seats: i64) -> i64 {
    let total: f64 = parties.iter().map(|party| party.votes as f64).sum();
    if total <= 0.0 {
        return level(parties, seats);
    }
    // Above the bound t a party has about votes / 2t seats, so t is near total / 2 seats; search around it.
    let count = |bound: f64| -> i64 {
        parties
            .iter()
            .map(|party| above(party, bound))
            .fold(0, i64::saturating_add)
    };
    let mut fits = parties
        .iter()
        .map(|party| priority(party.votes, party.seats))
        .fold(0.0, f64::max);
    let mut exceeds = 0.0;
    for _ in 0..64 {
        let middle = f64::midpoint(fits, exceeds);
        if count(middle) <= seats {
            fits = middle;
        } else {
            exceeds = middle;
        }
    }
    let mut given = 0;
    for party in parties {
        let more = above(party, fits);
        party.seats += more;
        given += more;
    }
    given
}

/// How many of a party's next seats have a priority above the bound.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a float to integer cast saturates, and is mended below"
)]
fn above(party: &Party<'_>, bound: f64) -> i64 {
    if bound <= 0.0 {
        return if party.votes > 0 { i64::MAX } else { 0 };
    }
    let passes = |seats: i64| priority(party.votes, seats) > bound;
    // The estimate may be off by a rounding, the comparison is what counts.
    let mut last = (((party.votes as f64 / bound) - 1.0) / 2.0) as i64;
    last = last.clamp(party.seats, i64::MAX / 4);
    while last > party.seats && !passes(last - 1) {
        last -= 1;
    }
    while passes(last) {
        last += 1;
    }
    last - party.seats
}

/// Without any votes all priorities are equal, and seats go to whoever has the fewest: raises the lowest to a level.
fn level(parties: &mut [Party<'_>], seats: i64) -> i64 {
    let missing = |level: i64| -> i64 {
        parties
            .iter()
            .map(|party| (level - party.seats).max(0))
            .fold(0, i64::saturating_add)
    };
    let (mut fits, mut exceeds) = (0, i64::MAX / 2);
    while exceeds - fits > 1 {
        let middle = i64::midpoint(fits, exceeds);
        if missing(middle) <= seats {
            fits = middle;
        } else {
            exceeds = middle;
        }
    }
    let given = missing(fits);
    for party in parties {
        party.seats = party.seats.max(fits);
    }
    given
}

struct Next<'a> {
    priority: f64,
    seats: i64,
    name: &'a str,
    tie: ByName,
    index: usize,
}

impl<'a> Next<'a> {
    fn new(index: usize, party: &Party<'a>, tie: ByName) -> Self {
        let priority = priority(party.votes, party.seats);
        Self {
            priority,
            seats: party.seats,
            name: party.name,
            tie,
            index,
        }
    }
}

impl Ord for Next<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.priority
            .total_cmp(&other.priority)
            .then_with(|| other.seats.cmp(&self.seats))
            .then_with(|| match self.tie {
                ByName::Ascending => other.name.cmp(self.name),
                ByName::Descending => self.name.cmp(other.name),
            })
    }
}

impl PartialOrd for Next<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Next<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Next<'_> {}
