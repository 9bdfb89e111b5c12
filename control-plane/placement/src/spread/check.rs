//! What holds of every plan, verified from the plan alone.

use super::{
    filter::{Filter, Verdict},
    plan::{Plan, Wish},
};

/// What is wrong with a plan. Places are given by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Placed and unplaced replicas are not what was wished for.
    #[error("{found} replicas instead of {wished}")]
    Total {
        /// Placed and unplaced.
        found: u128,
        /// What was wished for.
        wished: u64,
    },
    /// A place holds more than it may.
    #[error("place {place} holds {replicas} replicas of at most {limit}")]
    Capacity {
        /// Which.
        place: usize,
        /// What it holds.
        replicas: u64,
        /// What it may hold.
        limit: u64,
    },
    /// A replica was moved that need not have been.
    #[error("place {place}: a move that was not needed")]
    Move {
        /// Which.
        place: usize,
    },
    /// A place got a replica that a hard constraint does not admit.
    #[error("place {place} got a replica against hard constraint {axis}")]
    Constraint {
        /// Which.
        place: usize,
        /// Index into the hard axes.
        axis: usize,
    },
    /// A replica has no place though this one would take it.
    #[error("place {place} would take a replica that has no place")]
    Unplaced {
        /// Which.
        place: usize,
    },
}

/// Verifies a plan:
///
/// 1. Placed and unplaced replicas are as many as wished for, and no place holds more than it may.
/// 2. What may stay stays, but for scaling down; and then nothing is placed anew.
/// 3. No domain that got a replica lies further above the minimum than `maxSkew`; the place has all hard keys.
/// 4. If replicas have no place, no place with room passes the hard constraints.
///
/// # Errors
/// The first [`Fault`].
pub fn check(wish: Wish<'_>, plan: &Plan) -> Result<(), Fault> {
    let placed: u128 = plan
        .replicas
        .iter()
        .map(|&replicas| u128::from(replicas))
        .sum();
    let found = placed + u128::from(plan.unplaced);
    if found != u128::from(wish.replicas) || plan.replicas.len() != wish.order.len() {
        return Err(Fault::Total {
            found,
            wished: wish.replicas,
        });
    }
    let stay = wish.may_stay();
    let staying: u128 = stay.iter().map(|&replicas| u128::from(replicas)).sum();
    let down = staying > u128::from(wish.replicas);
    let filter = Filter::beside(wish.axes, &plan.replicas);
    for (place, (&replicas, &stay)) in plan.replicas.iter().zip(&stay).enumerate() {
        let limit = wish.limit(place);
        if replicas > limit {
            return Err(Fault::Capacity {
                place,
                replicas,
                limit,
            });
        }
        if (down && replicas > stay) || (!down && replicas < stay) {
            return Err(Fault::Move { place });
        }
        if replicas > stay
            && let Some(axis) = filter.broken(place)
        {
            return Err(Fault::Constraint { place, axis });
        }
        if plan.unplaced > 0 && replicas < limit && filter.verdict(place) == Verdict::Success {
            return Err(Fault::Unplaced { place });
        }
    }
    Ok(())
}
