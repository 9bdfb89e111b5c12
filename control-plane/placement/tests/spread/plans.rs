//! What holds of plans.

use evenkeel_placement::spread::{
    axis::Axes,
    check::check,
    filter::Filter,
    places::{Exclusion, TopologyKey, by_name},
    plan::{Plan, Wish, plan},
};
use proptest::{prelude::*, sample::Index};

use crate::instances::{Instance, fleet, instance, one_hard};

/// A plan of an instance; nothing is excluded.
pub fn planned(instance: &Instance, previous: &[u64], replicas: u64) -> Plan {
    let order = by_name(&instance.names);
    let exclusions = vec![None; order.len()];
    let wish = wish(instance, &order, &exclusions, previous, replicas);
    let plan = plan(wish).unwrap();
    assert_eq!(check(wish, &plan), Ok(()));
    plan
}

pub fn wish<'a>(
    instance: &'a Instance,
    order: &'a [u32],
    exclusions: &'a [Option<Exclusion>],
    previous: &'a [u64],
    replicas: u64,
) -> Wish<'a> {
    Wish {
        axes: &instance.axes,
        order,
        exclusions,
        capacity: &instance.capacity,
        previous,
        replicas,
    }
}

fn mixed() -> impl Strategy<Value = Instance> {
    prop_oneof![instance(), fleet(), one_hard()]
}

/// An instance with replicas that lie anywhere.
fn running() -> impl Strategy<Value = (Instance, Vec<u64>)> {
    mixed().prop_flat_map(|instance| {
        let places = instance.names.len();
        let previous = prop::collection::vec(prop_oneof![1 => Just(0u64), 2 => 0..12u64], places);
        (Just(instance), previous)
    })
}

/// Places of an instance put in another order.
fn shuffled(instance: &Instance, previous: &[u64], by: &[usize]) -> (Instance, Vec<u64>) {
    let axes = |axes: &[evenkeel_placement::spread::axis::Axis]| {
        let mut axes = axes.to_vec();
        for axis in &mut axes {
            axis.key = std::sync::Arc::new(TopologyKey {
                values: axis.key.values.clone(),
                domain: by.iter().map(|&at| axis.key.domain[at]).collect(),
            });
            axis.takes_part = by.iter().map(|&at| axis.takes_part[at]).collect();
            axis.pods = by.iter().map(|&at| axis.pods[at]).collect();
        }
        axes
    };
    let instance = Instance {
        axes: Axes {
            hard: axes(&instance.axes.hard),
            soft: axes(&instance.axes.soft),
            need_all_keys: instance.axes.need_all_keys,
        },
        names: by.iter().map(|&at| instance.names[at].clone()).collect(),
        capacity: by.iter().map(|&at| instance.capacity[at]).collect(),
        replicas: instance.replicas,
    };
    (instance, by.iter().map(|&at| previous[at]).collect())
}

fn skew(axes: &Axes, replicas: &[u64]) -> i64 {
    let filter = Filter::beside(axes, replicas);
    let table = filter.table(0);
    let most = table.counts.iter().flatten().max().copied().unwrap_or(0);
    most - filter.minimum(0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn a_plan_planned_again_is_the_same((instance, previous) in running()) {
        let once = planned(&instance, &previous, instance.replicas);
        let twice = planned(&instance, &once.replicas, instance.replicas);
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn the_order_of_places_does_not_matter(
        (instance, previous) in running(),
        swaps in prop::collection::vec(any::<(Index, Index)>(), 0..20),
    ) {
        let mut by: Vec<usize> = (0..instance.names.len()).collect();
        for (a, b) in swaps {
            by.swap(a.index(instance.names.len()), b.index(instance.names.len()));
        }
        let plan = planned(&instance, &previous, instance.replicas);
        let (other, moved) = shuffled(&instance, &previous, &by);
        let mirrored = planned(&other, &moved, instance.replicas);
        let expected: Vec<u64> = by.iter().map(|&at| plan.replicas[at]).collect();
        prop_assert_eq!(mirrored.replicas, expected);
    }

    #[test]
    fn scaling_up_keeps_what_is_placed((instance, previous) in running(), more in 0..40u64) {
        let before = planned(&instance, &previous, instance.replicas);
        let up = planned(&instance, &before.replicas, instance.replicas + more);
        let kept: u64 = up.replicas.iter().zip(&before.replicas).map(|(up, before)| up.min(before)).sum();
        prop_assert_eq!(kept, before.replicas.iter().sum::<u64>());
    }

    #[test]
    fn scaling_down_never_worsens_the_skew_of_one_constraint(
        instance in one_hard(),
        less in 0..12u64,
    ) {
        let nothing = vec![0; instance.names.len()];
        let mut at = planned(&instance, &nothing, instance.replicas);
        for replicas in (instance.replicas.saturating_sub(less)..instance.replicas).rev() {
            let before = at.replicas.iter().sum::<u64>();
            if before <= replicas {
                continue;
            }
            let next = planned(&instance, &at.replicas, replicas);
            let table = Filter::beside(&instance.axes, &at.replicas);
            // There is a choice as long as a domain above the minimum holds a replica.
            let choice = at.replicas.iter().enumerate().any(|(place, &replicas)| {
                let domain = instance.axes.hard[0].domains()[place];
                replicas > 0 && domain.is_some_and(|domain| table.table(0).count(domain) > table.minimum(0))
            });
            if choice {
                prop_assert!(skew(&instance.axes, &next.replicas) <= skew(&instance.axes, &at.replicas));
            }
            at = next;
        }
    }

    #[test]
    fn room_never_makes_the_feasible_infeasible(
        instance in one_hard(),
        at in any::<Index>(),
        more in 1..6u64,
    ) {
        let nothing = vec![0; instance.names.len()];
        let before = planned(&instance, &nothing, instance.replicas);
        let mut wider = instance.clone();
        wider.capacity[at.index(instance.names.len())] += more;
        let after = planned(&wider, &nothing, instance.replicas);
        prop_assert!(after.unplaced <= before.unplaced);
    }

    #[test]
    fn what_is_not_allowed_is_emptied_and_nothing_else_moves(
        (instance, previous) in running(),
        at in any::<Index>(),
    ) {
        let order = by_name(&instance.names);
        let mut exclusions = vec![None; order.len()];
        let out = at.index(order.len());
        exclusions[out] = Some(Exclusion::Affinity);
        let total: u64 = previous.iter().zip(&instance.capacity).map(|(a, b)| a.min(b)).sum();
        let wish = wish(&instance, &order, &exclusions, &previous, total);
        let plan = plan(wish).unwrap();
        prop_assert_eq!(check(wish, &plan), Ok(()));
        prop_assert_eq!(plan.replicas[out], 0);
        for (place, replicas) in plan.replicas.iter().enumerate() {
            prop_assert!(place == out || *replicas >= previous[place].min(instance.capacity[place]));
        }
    }

    /// The batch takes replicas off as single steps would.
    #[test]
    fn many_steps_down_are_one((instance, previous) in running(), less in 1..60u64) {
        let total: u64 = previous.iter().zip(&instance.capacity).map(|(a, b)| a.min(b)).sum();
        let target = total.saturating_sub(less);
        let at_once = planned(&instance, &previous, target);
        let mut step = planned(&instance, &previous, total);
        for replicas in (target..total).rev() {
            step = planned(&instance, &step.replicas, replicas);
        }
        prop_assert_eq!(at_once, step);
    }
}

#[test]
fn the_fullest_domain_gives_first() {
    let instance = crate::instances::grid(&[0, 0, 1], 1);
    let down = planned(&instance, &[3, 2, 4], 7);
    assert_eq!(
        down.replicas,
        [3, 1, 3],
        "zone 0 holds 5 to 4, then they are equal: each time the greatest name of the fullest"
    );
}
