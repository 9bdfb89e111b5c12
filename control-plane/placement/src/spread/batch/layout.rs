//! The constraints of a batch laid out for counting.

use super::{
    Direction,
    dimension::{Dimension, NOWHERE, Position, Role},
};
use crate::spread::axis::{Axes, Axis, DomainId};

/// The dimensions of a batch, hard ones first, in the order of the constraints; and what every place is to each.
pub(super) struct Laid {
    pub dims: Vec<Dimension>,
    /// By dimension, then place.
    pub positions: Vec<Vec<Position>>,
    /// By place: replicas may be put there, as it lacks no hard key, or taken off.
    pub candidate: Vec<bool>,
    /// By place: it is scored. Places that are not come last.
    pub scored: Vec<bool>,
}

/// Lays out the axes with `kept` replicas of the workload itself counted in.
pub(super) fn lay(axes: &Axes, places: usize, kept: &[u64], direction: Direction) -> Laid {
    let all_keys = |axes: &[Axis]| -> Vec<bool> {
        let mut all = vec![true; places];
        for axis in axes {
            for (all, domain) in all.iter_mut().zip(axis.domains()) {
                *all &= domain.is_some();
            }
        }
        all
    };
    let eligible = all_keys(&axes.hard);
    let scored = if axes.need_all_keys {
        all_keys(&axes.soft)
    } else {
        vec![true; places]
    };
    let mut laid = Laid {
        dims: Vec::new(),
        positions: Vec::new(),
        candidate: match direction {
            Direction::Add => eligible.clone(),
            Direction::Remove => vec![true; places],
        },
        scored,
    };
    for axis in axes.hard.iter().chain(&axes.soft) {
        let constraint = &axis.constraint;
        let per_node = !constraint.hard && axis.is_hostname();
        let role = if constraint.hard {
            Role::Hard {
                max_skew: constraint.max_skew,
                own: axis.own,
            }
        } else {
            Role::Soft {
                max_skew: constraint.max_skew,
                per_node,
            }
        };
        let domains = if per_node {
            places
        } else {
            axis.values().len() + 1
        };
        let missing = missing(axis);
        let mut dimension = Dimension::new(role, domains);
        let counted = if constraint.hard {
            &eligible
        } else {
            &laid.scored
        };
        let mut positions = Vec::with_capacity(places);
        for (place, &domain) in axis.domains().iter().enumerate() {
            // Nodes are scored by what they hold themselves, whatever the policies say.
            let takes_part = if per_node {
                domain.is_some()
            } else {
                counted[place] && axis.takes_part[place]
            };
            let at = if per_node {
                u32::try_from(place).unwrap_or(NOWHERE)
            } else {
                domain.unwrap_or(missing)
            };
            let adds = takes_part && axis.counts_copies;
            positions.push(Position {
                domain: at,
                reads: match direction {
                    Direction::Add => domain.is_some(),
                    Direction::Remove => adds,
                },
                adds,
            });
            if takes_part {
                let own = i64::try_from(kept[place]).unwrap_or(i64::MAX);
                let own = if adds { own } else { 0 };
                let count = &mut dimension.counts[at as usize];
                *count = count.saturating_add(i64::from(axis.pods[place]).saturating_add(own));
                dimension.in_table[at as usize] = true;
            }
        }
        let table = dimension.in_table.iter().filter(|table| **table).count();
        dimension.enough = i64::try_from(table).is_ok_and(|table| table >= constraint.min_domains);
        laid.dims.push(dimension);
        laid.positions.push(positions);
    }
    laid
}

/// The domain of places without the key: they are counted with the empty value.
fn missing(axis: &Axis) -> DomainId {
    let empty = axis.values().iter().position(String::is_empty);
    DomainId::try_from(empty.unwrap_or(axis.values().len())).unwrap_or(NOWHERE)
}
