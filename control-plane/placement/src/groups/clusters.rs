//! A number of clusters, with or without the room for a number of replicas.

use super::{
    order::{Candidate, Limits, Need},
    select::SelectError,
};

/// Chooses among candidates that are sorted by preference.
///
/// The preferred ones are taken; while they have too little room, the least preferred of them gives way to the one with
/// the most.
pub fn choose<'a>(
    sorted: &[Candidate<'a>],
    limits: Limits,
    need: Need,
) -> Result<Vec<Candidate<'a>>, SelectError> {
    if sorted.len() < limits.min {
        return Err(SelectError::TooFewClusters {
            found: sorted.len(),
            wanted: limits.min,
        });
    }
    let (first, rest) = sorted.split_at(limits.max.min(sorted.len()));
    let mut chosen = first.to_vec();
    let Need::Shares(replicas) = need else {
        return Ok(chosen);
    };
    let mut rest = rest.to_vec();
    let mut room = room(&chosen);
    for at in (0..chosen.len()).rev() {
        if room >= replicas {
            break;
        }
        // The first of the largest, that is, the preferred one of them.
        let roomiest = (0..rest.len())
            .rev()
            .max_by_key(|&other| rest[other].available);
        if let Some(other) = roomiest
            && rest[other].available > chosen[at].available
        {
            room = room - chosen[at].available + rest[other].available;
            std::mem::swap(&mut chosen[at], &mut rest[other]);
        }
    }
    if room < replicas {
        return Err(SelectError::TooLittleRoom {
            clusters: chosen.len(),
            room,
            replicas,
        });
    }
    Ok(chosen)
}

/// The room of all of them.
pub fn room(candidates: &[Candidate<'_>]) -> i64 {
    candidates
        .iter()
        .map(|candidate| candidate.available)
        .fold(0, i64::saturating_add)
}
