//! A batch is a sequence of single decisions, only faster.

use evenkeel_placement::spread::{
    axis::Axes,
    batch::{Placed, Request, place},
    filter::{Filter, Verdict},
    places::by_name,
    score::score,
};
use proptest::prelude::*;

use crate::instances::{Instance, fleet, instance};

/// Places one replica after the other by the exact engine.
fn one_by_one(axes: &Axes, names: &[&str], capacity: &[u64], replicas: u64) -> Placed {
    let mut axes = axes.clone();
    let mut room = capacity.to_vec();
    let mut placed = Placed {
        replicas: vec![0; names.len()],
        unplaced: 0,
    };
    for done in 0..replicas {
        let best = {
            let filter = Filter::new(&axes);
            let feasible: Vec<usize> = (0..names.len())
                .filter(|&at| room[at] > 0 && filter.verdict(at) == Verdict::Success)
                .collect();
            let scores = score(&axes, &feasible);
            let value = |at: usize| scores.as_ref().map_or(0, |scores| scores[at].normalised);
            (0..feasible.len())
                .min_by(|&a, &b| {
                    let name = |at: usize| names[feasible[at]];
                    value(b).cmp(&value(a)).then_with(|| name(a).cmp(name(b)))
                })
                .map(|at| feasible[at])
        };
        let Some(best) = best else {
            placed.unplaced = replicas - done;
            break;
        };
        placed.replicas[best] += 1;
        room[best] = room[best].saturating_sub(1);
        for axis in axes.hard.iter_mut().chain(&mut axes.soft) {
            axis.pods[best] += u32::from(axis.counts_copies);
        }
    }
    placed
}

fn agrees(instance: &Instance) -> Result<(), TestCaseError> {
    let Instance {
        axes,
        names,
        capacity,
        replicas,
    } = instance;
    let order = by_name(names);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let request = Request {
        axes,
        order: &order,
        capacity,
        replicas: *replicas,
    };
    prop_assert_eq!(
        place(request),
        Ok(one_by_one(axes, &names, capacity, *replicas))
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn batch_is_a_sequence_of_single_decisions(instance in instance()) {
        agrees(&instance)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn so_it_is_far_beyond_one_round(instance in instance(), more in 1..12u64) {
        agrees(&Instance { replicas: instance.replicas * more, ..instance })?;
    }

    #[test]
    fn so_it_is_for_clusters_in_zones(instance in fleet()) {
        agrees(&instance)?;
    }
}
