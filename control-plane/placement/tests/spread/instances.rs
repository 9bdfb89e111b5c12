//! What the properties are tried on.

use std::sync::Arc;

use evenkeel_placement::spread::{
    axis::{Axes, Axis, HOSTNAME},
    constraint::{Constraint, Counted},
    places::TopologyKey,
};
use proptest::prelude::*;

#[derive(Clone, Debug)]
pub struct Instance {
    pub axes: Axes,
    pub names: Vec<String>,
    pub capacity: Vec<u64>,
    pub replicas: u64,
}

fn any_axis(places: usize) -> impl Strategy<Value = Axis> {
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
                key: Arc::new(TopologyKey { values, domain }),
                takes_part,
                pods,
                own,
                counts_copies,
            }
        },
    )
}

pub fn instance() -> impl Strategy<Value = Instance> {
    (1..14usize).prop_flat_map(|places| {
        let axes = prop::collection::vec(any_axis(places), 0..4);
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

/// Clusters in zones, as a fleet has them: a coarse and a fine key, both hard and soft, and rounds that repeat.
pub fn fleet() -> impl Strategy<Value = Instance> {
    let size = (1..5u32, 1..6u32);
    let constraint = (
        0..3usize,
        prop_oneof![3 => 1..3i64, 1 => 1..60i64],
        prop_oneof![4 => Just(1i64), 1 => 1..7i64],
        any::<bool>(),
    );
    let constraints = prop::collection::vec(constraint, 1..5);
    let full = prop_oneof![3 => Just(None), 1 => (1..80u64).prop_map(Some)];
    (size, constraints, full, any::<bool>(), 0..500u64).prop_flat_map(
        |((zones, clusters), constraints, full, mixed, replicas)| {
            let places = (zones * clusters) as usize;
            let pods = prop::collection::vec(prop_oneof![6 => Just(0u32), 1 => 0..30u32], places);
            let capacity = prop::collection::vec(
                prop_oneof![1 => Just(0u64), 8 => Just(full.unwrap_or(u64::MAX)), 1 => 1..40u64],
                places,
            );
            (pods, capacity).prop_map(move |(pods, capacity)| {
                let capacity = if mixed {
                    capacity
                } else {
                    vec![full.unwrap_or(u64::MAX); places]
                };
                let axis = |&(key, max_skew, min_domains, hard): &(usize, i64, i64, bool)| {
                    let domain = |place: u32| match key {
                        0 => place % zones,
                        1 => place / zones,
                        _ => place,
                    };
                    Axis {
                        constraint: Constraint {
                            topology_key: if key == 2 && !hard { HOSTNAME } else { "key" }
                                .to_owned(),
                            max_skew,
                            min_domains,
                            hard,
                            counted: Counted::Nothing,
                            honor_affinity: true,
                            honor_taints: false,
                        },
                        key: Arc::new(TopologyKey {
                            values: (0..places).map(|value| format!("v{value}")).collect(),
                            domain: (0..zones * clusters)
                                .map(|place| Some(domain(place)))
                                .collect(),
                        }),
                        takes_part: vec![true; places],
                        pods: pods.clone(),
                        own: 1,
                        counts_copies: true,
                    }
                };
                let (hard, soft) = constraints
                    .iter()
                    .map(axis)
                    .partition(|axis| axis.constraint.hard);
                Instance {
                    axes: Axes {
                        hard,
                        soft,
                        need_all_keys: true,
                    },
                    names: (0..places)
                        .map(|place| format!("n{:02}", place * 7 % 31))
                        .collect(),
                    capacity,
                    replicas,
                }
            })
        },
    )
}

/// One hard constraint over few places, most of them small.
pub fn one_hard() -> impl Strategy<Value = Instance> {
    small(true)
}

/// One soft constraint, likewise.
pub fn one_soft() -> impl Strategy<Value = Instance> {
    small(false)
}

/// A constraint over given domains, with nothing placed and counted.
fn axis(key: &str, domain: Vec<Option<u32>>, max_skew: i64, hard: bool) -> Axis {
    let places = domain.len();
    let most = domain.iter().flatten().max().map_or(0, |most| most + 1);
    Axis {
        constraint: Constraint {
            topology_key: key.to_owned(),
            max_skew,
            min_domains: 1,
            hard,
            counted: Counted::Nothing,
            honor_affinity: true,
            honor_taints: false,
        },
        key: Arc::new(TopologyKey {
            values: (0..most).map(|value| format!("v{value}")).collect(),
            domain,
        }),
        takes_part: vec![true; places],
        pods: vec![0; places],
        own: 1,
        counts_copies: true,
    }
}

/// One hard constraint over places in these zones.
pub fn grid(zones: &[u32], max_skew: i64) -> Instance {
    let domain = zones.iter().copied().map(Some).collect();
    Instance {
        axes: Axes {
            hard: vec![axis("zone", domain, max_skew, true)],
            soft: Vec::new(),
            need_all_keys: true,
        },
        names: (0..zones.len()).map(|place| format!("n{place}")).collect(),
        capacity: vec![u64::MAX; zones.len()],
        replicas: 0,
    }
}

/// Clusters with a cell in each zone. Constraints: by zone (0), by cluster (1), by both at once (2); skew; hard.
pub fn cross(
    clusters: u32,
    zones: u32,
    constraints: &[(u32, i64, bool)],
    capacity: u64,
) -> Instance {
    let (hard, soft) = constraints
        .iter()
        .map(|&(kind, max_skew, hard)| {
            let domain = |place: u32| match kind {
                0 => place % zones,
                1 => place / zones,
                _ => place,
            };
            axis(
                "key",
                (0..clusters * zones)
                    .map(|place| Some(domain(place)))
                    .collect(),
                max_skew,
                hard,
            )
        })
        .partition(|axis| axis.constraint.hard);
    let places = (clusters * zones) as usize;
    Instance {
        axes: Axes {
            hard,
            soft,
            need_all_keys: true,
        },
        names: (0..places).map(|place| format!("n{place:07}")).collect(),
        capacity: vec![capacity; places],
        replicas: 0,
    }
}

fn small(hard: bool) -> impl Strategy<Value = Instance> {
    (1..6usize, 1..4i64, 1..4i64, 0..9u64).prop_flat_map(
        move |(places, max_skew, min_domains, replicas)| {
            let domains = prop::collection::vec(0..3u32, places);
            let pods = prop::collection::vec(prop_oneof![2 => Just(0u32), 1 => 0..4u32], places);
            let capacity = prop::collection::vec(prop_oneof![3 => 0..4u64, 1 => Just(20)], places);
            (domains, pods, capacity).prop_map(move |(domains, pods, capacity)| {
                let mut axis = axis(
                    "zone",
                    domains.into_iter().map(Some).collect(),
                    max_skew,
                    hard,
                );
                axis.constraint.min_domains = if hard { min_domains } else { 1 };
                axis.pods = pods;
                let (hard, soft) = if hard {
                    (vec![axis], Vec::new())
                } else {
                    (Vec::new(), vec![axis])
                };
                Instance {
                    axes: Axes {
                        hard,
                        soft,
                        need_all_keys: true,
                    },
                    names: (0..places).map(|place| format!("n{place}")).collect(),
                    capacity,
                    replicas,
                }
            })
        },
    )
}
