//! Many replicas of one pod in one call, with the result of as many single decisions in sequence.
//!
//! A single decision takes, of the places that pass the filter, the one with the best score, and of those that tie the
//! one with the least name; the replica is counted from then on. Doing that N times over M places costs N × M. Here:
//!
//! - Places that the constraints cannot tell apart are one class, and classes are kept so that a decision looks at few
//!   of them.
//! - Decisions for the same place in a row are made at once.
//! - When all counts are, but for a common shift, what they were some decisions ago, and nothing but differences of
//!   counts decided since, the same decisions follow again: as many rounds of them as fit are made at once.
//!
//! Taking replicas off is the same the other way round; see [`remove`].

mod buckets;
mod classes;
mod dimension;
mod distinct;
mod engine;
mod layout;
mod moves;
mod order;
mod recurrence;
mod rounds;
mod streak;
mod weights;

use super::axis::Axes;

/// What a batch places, and where it may.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The constraints over the places, with what is placed already.
    pub axes: &'a Axes,
    /// The places in the order of their names, which breaks ties: see [`super::places::by_name`].
    pub order: &'a [u32],
    /// How many more replicas each place takes: 0 where the pod may not go at all, `u64::MAX` for no limit.
    pub capacity: &'a [u64],
    /// How many replicas to place.
    pub replicas: u64,
}

/// Where the replicas went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// Replicas of this batch on each place.
    pub replicas: Vec<u64>,
    /// Replicas for which there was no place.
    pub unplaced: u64,
}

/// The decisions follow no pattern, and there are too many to make one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "gave up after {done} of {replicas} replicas: too many constraints, places and replicas at once"
)]
pub struct TooMuch {
    /// Replicas that had been dealt with.
    pub done: u64,
    /// Replicas that there were to deal with.
    pub replicas: u64,
}

/// Whether replicas are put on places or taken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Add,
    Remove,
}

/// Places replicas, each on the place that a single decision would have taken.
///
/// # Errors
/// [`TooMuch`] when the work exceeds a fixed bound, some ten seconds of it: no fleet comes near.
pub fn place(request: Request<'_>) -> Result<Placed, TooMuch> {
    place_beside(request, &vec![0; request.order.len()])
}

/// The same with replicas of the workload itself, by place, that the axes do not count yet.
///
/// # Errors
/// As [`place`].
pub fn place_beside(request: Request<'_>, kept: &[u64]) -> Result<Placed, TooMuch> {
    engine::run(request, kept, Direction::Add)
}

/// Takes replicas off, one after the other. `kept` are those of the workload, which the axes do not count; at most
/// `request.capacity` are taken off a place. Of the places that hold any, each time the one is taken that comes first
/// by these rules:
///
/// 1. taking one off increases the skew of the fewest hard constraints, then of the fewest soft ones (it does where the
///    domain has the fewest pods, and `minDomains` is met);
/// 2. its domain is the fullest by the first hard constraint, then by the next one, then by the soft ones in their
///    order; a constraint that does not count the replicas has no say;
/// 3. its name is the greatest.
///
/// So with one constraint skew never grows as long as there is a choice.
///
/// # Errors
/// As [`place`].
pub fn remove(request: Request<'_>, kept: &[u64]) -> Result<Placed, TooMuch> {
    engine::run(request, kept, Direction::Remove)
}
