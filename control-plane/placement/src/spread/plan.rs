//! From what is placed to what is to be placed.

use super::{
    axis::Axes,
    batch::{Request, TooMuch, place_beside, remove},
    check::check,
    places::Exclusion,
};

/// How many replicas are wanted, where they are, and where they may be.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// The constraints over the places, with all pods counted that are not this workload's.
    pub axes: &'a Axes,
    /// The places in the order in which ties are broken.
    pub order: &'a [u32],
    /// By place: why no replica may be there, if so.
    pub exclusions: &'a [Option<Exclusion>],
    /// By place: how many replicas of this workload it holds at most, those included that it holds. `u64::MAX`: no limit.
    pub capacity: &'a [u64],
    /// By place: replicas of this workload that it holds.
    pub previous: &'a [u64],
    /// How many there are to be.
    pub replicas: u64,
}

/// How many replicas of the workload each place is to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// By place.
    pub replicas: Vec<u64>,
    /// Replicas for which there is no place. [`super::explain`] says why.
    pub unplaced: u64,
}

/// Why there is no plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The parts of the wish do not speak of the same places.
    #[error("the wish speaks of different numbers of places")]
    Places,
    /// It would take too long.
    #[error(transparent)]
    TooMuch(#[from] TooMuch),
}

impl Wish<'_> {
    /// How many replicas a place may hold.
    pub fn limit(&self, place: usize) -> u64 {
        match self.exclusions[place] {
            Some(_) => 0,
            None => self.capacity[place],
        }
    }

    /// By place: the replicas that may stay where they are. Constraints move nothing that runs: only a place that
    /// takes the pod no more, or fewer of it, gives replicas up.
    pub fn may_stay(&self) -> Vec<u64> {
        (0..self.order.len())
            .map(|place| self.previous[place].min(self.limit(place)))
            .collect()
    }

    fn is_consistent(&self) -> bool {
        let places = self.order.len();
        let mut seen = vec![false; places];
        for &place in self.order {
            if let Some(seen) = seen.get_mut(place as usize) {
                *seen = true;
            }
        }
        seen.iter().all(|seen| *seen)
            && [
                self.exclusions.len(),
                self.capacity.len(),
                self.previous.len(),
            ] == [places; 3]
            && self.axes.all().all(|axis| {
                [axis.domains().len(), axis.takes_part.len(), axis.pods.len()] == [places; 3]
            })
    }
}

/// Plans with as few moves as there can be:
///
/// 1. What may stay stays (see [`Wish::may_stay`]).
/// 2. Too many: they are taken off one by one as [`remove`] has it, the fullest domain first.
/// 3. Too few: the others are placed one by one as the scheduler would.
///
/// A plan that is planned again comes out the same.
///
/// # Errors
/// [`PlanError`]
pub fn plan(wish: Wish<'_>) -> Result<Plan, PlanError> {
    if !wish.is_consistent() {
        return Err(PlanError::Places);
    }
    let mut replicas = wish.may_stay();
    let staying = replicas
        .iter()
        .fold(0_u64, |sum, &staying| sum.saturating_add(staying));
    let request = |capacity, replicas| Request {
        axes: wish.axes,
        order: wish.order,
        capacity,
        replicas,
    };
    let mut unplaced = 0;
    if staying > wish.replicas {
        let removed = remove(request(&replicas, staying - wish.replicas), &replicas)?;
        for (staying, removed) in replicas.iter_mut().zip(removed.replicas) {
            *staying -= removed;
        }
    } else if staying < wish.replicas {
        let room: Vec<u64> = (0..replicas.len())
            .map(|place| match wish.limit(place) {
                u64::MAX => u64::MAX,
                limit => limit - replicas[place],
            })
            .collect();
        let placed = place_beside(request(&room, wish.replicas - staying), &replicas)?;
        for (staying, placed) in replicas.iter_mut().zip(placed.replicas) {
            *staying += placed;
        }
        unplaced = placed.unplaced;
    }
    let plan = Plan { replicas, unplaced };
    debug_assert_eq!(check(wish, &plan), Ok(()));
    Ok(plan)
}
