//! Sizes that no fleet has end in a result or an error, soon.

use evenkeel_placement::spread::{
    axis::Axes,
    batch::{Request, place},
    places::by_name,
    plan::{PlanError, Wish, plan},
};

use crate::{
    instances::{Instance, cross, grid},
    plans::planned,
};

const MANY: u64 = 1 << 31;

#[test]
fn two_billion_replicas_over_a_million_cells() {
    let instance = cross(250_000, 4, &[(0, 1, true), (1, 1, true)], u64::MAX);
    let order = by_name(&instance.names);
    let request = Request {
        axes: &instance.axes,
        order: &order,
        capacity: &instance.capacity,
        replicas: MANY,
    };
    let placed = place(request).unwrap();
    assert_eq!(placed.unplaced, 0);
    for (parts, of) in
        [(4, |place| place % 4), (250_000, |place| place / 4)] as [(usize, fn(usize) -> usize); 2]
    {
        let mut counts = vec![0; parts];
        for (place, replicas) in placed.replicas.iter().enumerate() {
            counts[of(place)] += replicas;
        }
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!(most - least <= 1, "{least} to {most}");
    }
}

#[test]
fn two_billion_replicas_by_any_constraint() {
    let kinds = [0, 1, 2];
    for first in kinds {
        for second in kinds {
            for hard in [(true, true), (true, false), (false, true), (false, false)] {
                for skew in [1, 1 << 20, i64::from(i32::MAX)] {
                    let constraints = [(first, skew, hard.0), (second, skew, hard.1)];
                    let instance = cross(40, 3, &constraints, u64::MAX);
                    let plan = planned(&instance, &vec![0; 120], MANY);
                    assert_eq!(plan.unplaced, 0, "{constraints:?}");
                }
            }
        }
    }
}

#[test]
fn two_billion_replicas_into_room_for_fewer() {
    let instance = cross(300, 3, &[(0, 1, true), (1, 5, false)], 1_000_000);
    let plan = planned(&instance, &vec![0; 900], MANY);
    assert_eq!(plan.unplaced, MANY - 900 * 1_000_000);
}

#[test]
fn nothing_at_all() {
    let instance = grid(&[], 1);
    assert_eq!(planned(&instance, &[], 5).unplaced, 5);
    assert_eq!(planned(&instance, &[], 0).unplaced, 0);
    let none = Instance {
        axes: Axes::default(),
        ..grid(&[0, 1], 1)
    };
    assert_eq!(
        planned(&none, &[0, 0], MANY).replicas,
        [MANY, 0],
        "without constraints the least name takes all"
    );
}

#[test]
fn more_than_can_be_counted_is_refused() {
    let instance = grid(&[0, 1], 1);
    let order = by_name(&instance.names);
    let wish = Wish {
        axes: &instance.axes,
        order: &order,
        exclusions: &[None, None],
        capacity: &instance.capacity,
        previous: &[0, 0],
        replicas: u64::MAX,
    };
    assert!(matches!(plan(wish), Err(PlanError::TooMuch(_))));
    let full = Wish {
        previous: &[u64::MAX, u64::MAX],
        replicas: 3,
        ..wish
    };
    assert!(matches!(plan(full), Err(PlanError::TooMuch(_))));
    assert_eq!(
        plan(Wish {
            previous: &[0],
            ..wish
        }),
        Err(PlanError::Places)
    );
    assert_eq!(
        plan(Wish {
            order: &[0, 0],
            ..wish
        }),
        Err(PlanError::Places)
    );
}

#[test]
fn doubling_the_replicas_costs_no_more_than_the_rounds_that_differ() {
    let instance = cross(1000, 3, &[(0, 1, true), (1, 1, false)], u64::MAX);
    let order = by_name(&instance.names);
    let at = |replicas| {
        place(Request {
            axes: &instance.axes,
            order: &order,
            capacity: &instance.capacity,
            replicas,
        })
        .unwrap()
    };
    let (once, twice) = (at(30_000), at(60_000));
    let doubled: Vec<u64> = once.replicas.iter().map(|replicas| 2 * replicas).collect();
    assert_eq!(twice.replicas, doubled);
}
