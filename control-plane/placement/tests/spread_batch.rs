//! A batch is a sequence of single decisions, only faster.

use evenkeel_placement::spread::{
    axis::{Axes, Axis, HOSTNAME},
    batch::{Placed, Request, place},
    constraint::{Constraint, Counted},
    filter::{Filter, Verdict},
    score::score,
};
use proptest::prelude::*;

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

#[derive(Clone, Debug)]
struct Instance {
    axes: Axes,
    names: Vec<String>,
    capacity: Vec<u64>,
    replicas: u64,
}

fn axis(places: usize) -> impl Strategy<Value = Axis> {
    let hostname = prop::bool::weighted(0.15);
    let domains = prop::collection::vec(prop::option::weighted(0.95, 0..6u32), places);
    let part = prop::collection::vec(prop::bool::weighted(0.9), places);
    let pods = prop::collection::vec(prop_oneof![4 => Just(0u32), 1 => 0..5u32], places);
    let skew = (
        1..4i64,
        prop_oneof![3 => Just(1i64), 1 => 1..8i64],
        any::<bool>(),
        any::<bool>(),
    );
    (hostname, domains, part, pods, skew, 0..2i64, any::<bool>()).prop_map(
        move |(hostname, mut domain, takes_part, pods, skew, own, counts_copies)| {
            let (max_skew, min_domains, hard, empty) = skew;
            let mut values: Vec<String> = (0..6).map(|value| format!("v{value}")).collect();
            if empty {
                values[0] = String::new();
            }
            if hostname {
                values = (0..places).map(|place| format!("h{place}")).collect();
                for (place, domain) in domain.iter_mut().enumerate() {
                    *domain = domain.map(|_| u32::try_from(place).unwrap());
                }
            }
            Axis {
                constraint: Constraint {
                    topology_key: if hostname { HOSTNAME } else { "zone" }.to_owned(),
                    max_skew,
                    min_domains,
                    hard,
                    counted: Counted::Nothing,
                    honor_affinity: true,
                    honor_taints: false,
                },
                values,
                domain,
                takes_part,
                pods,
                own,
                counts_copies,
            }
        },
    )
}

fn instance() -> impl Strategy<Value = Instance> {
    (1..14usize).prop_flat_map(|places| {
        let axes = prop::collection::vec(axis(places), 0..4);
        let capacity = prop::collection::vec(
            prop_oneof![1 => Just(0u64), 4 => 1..6u64, 2 => Just(u64::MAX)],
            places,
        );
        let names = Just(
            (0..places)
                .map(|place| format!("n{:02}", place * 7 % 16))
                .collect(),
        );
        (axes, capacity, names, any::<bool>(), 0..40u64).prop_map(
            |(axes, capacity, names, need_all_keys, replicas)| {
                let (hard, soft) = axes.into_iter().partition(|axis| axis.constraint.hard);
                let axes = Axes {
                    hard,
                    soft,
                    need_all_keys,
                };
                Instance {
                    axes,
                    names,
                    capacity,
                    replicas,
                }
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn batch_is_a_sequence_of_single_decisions(instance in instance()) {
        let Instance { axes, names, capacity, replicas } = &instance;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let request = Request { axes, names: &names, capacity, replicas: *replicas };
        prop_assert_eq!(place(request), one_by_one(axes, &names, capacity, *replicas));
    }
}
