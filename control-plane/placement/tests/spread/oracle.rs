//! The engine against every solution that there is, where there are few.

use evenkeel_placement::spread::{axis::Axes, filter::Filter};
use proptest::prelude::*;

use crate::{
    instances::{Instance, one_hard, one_soft},
    plans::planned,
};

/// Every way to put `replicas` on places that hold at most `limits`.
fn distributions(limits: &[u64], replicas: u64) -> Vec<Vec<u64>> {
    let Some((&limit, rest)) = limits.split_first() else {
        return if replicas == 0 {
            vec![Vec::new()]
        } else {
            Vec::new()
        };
    };
    (0..=limit.min(replicas))
        .flat_map(|here| {
            let rest = distributions(rest, replicas - here);
            rest.into_iter().map(move |mut rest| {
                rest.insert(0, here);
                rest
            })
        })
        .collect()
}

/// Whether every domain that got something lies within the skew.
fn is_allowed(axes: &Axes, replicas: &[u64]) -> bool {
    let filter = Filter::beside(axes, replicas);
    (0..replicas.len()).all(|place| replicas[place] == 0 || filter.broken(place).is_none())
}

/// Domain counts, fullest first: the less the better spread.
fn spread(instance: &Instance, replicas: &[u64]) -> Vec<i64> {
    let axis = instance.axes.all().next().unwrap();
    let mut counts = vec![0; axis.values().len()];
    for (place, domain) in axis.domains().iter().enumerate() {
        counts[domain.unwrap() as usize] +=
            i64::from(axis.pods[place]) + i64::try_from(replicas[place]).unwrap();
    }
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, ..ProptestConfig::default() })]

    #[test]
    fn no_solution_places_more(instance in one_hard()) {
        let plan = planned(&instance, &vec![0; instance.names.len()], instance.replicas);
        let placed: u64 = plan.replicas.iter().sum();
        for more in placed + 1..=instance.replicas {
            let better = distributions(&instance.capacity, more)
                .into_iter()
                .find(|replicas| is_allowed(&instance.axes, replicas));
            prop_assert_eq!(better, None);
        }
    }

    #[test]
    fn no_solution_spreads_better(instance in one_soft()) {
        let plan = planned(&instance, &vec![0; instance.names.len()], instance.replicas);
        let placed: u64 = plan.replicas.iter().sum();
        let best = distributions(&instance.capacity, placed)
            .iter()
            .map(|replicas| spread(&instance, replicas))
            .min();
        prop_assert_eq!(Some(spread(&instance, &plan.replicas)), best);
    }

    #[test]
    fn no_solution_moves_less(
        (instance, previous) in one_hard().prop_flat_map(|instance| {
            let places = instance.names.len();
            (Just(instance), prop::collection::vec(0..3u64, places))
        }),
    ) {
        let plan = planned(&instance, &previous, instance.replicas);
        let placed: u64 = plan.replicas.iter().sum();
        let moves = |replicas: &[u64]| -> u64 {
            previous.iter().zip(replicas).map(|(before, after)| before.saturating_sub(*after)).sum()
        };
        let least = distributions(&instance.capacity, placed)
            .iter()
            .map(|replicas| moves(replicas))
            .min();
        prop_assert_eq!(Some(moves(&plan.replicas)), least);
    }

    #[test]
    fn no_other_way_down_spreads_better(
        (instance, previous) in one_hard().prop_flat_map(|instance| {
            let places = instance.names.len();
            (Just(instance), prop::collection::vec(0..3u64, places))
        }),
    ) {
        let stay: Vec<u64> = previous.iter().zip(&instance.capacity).map(|(a, b)| *a.min(b)).collect();
        let total: u64 = stay.iter().sum();
        let replicas = instance.replicas.min(total);
        let plan = planned(&instance, &previous, replicas);
        let best = distributions(&stay, replicas)
            .iter()
            .map(|replicas| spread(&instance, replicas)[0])
            .min();
        prop_assert_eq!(Some(spread(&instance, &plan.replicas)[0]), best, "the fullest domain");
    }
}
