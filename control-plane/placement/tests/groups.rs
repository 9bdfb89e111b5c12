//! The choice of groups and clusters against answers of the reference implementation, and against a walk of all sets.

use std::{io::Read, path::Path};

use evenkeel_placement::{
    fleet::ClusterView,
    groups::{
        choose::{Group, choose},
        order::{Candidate, Limits, Need},
        select::select,
    },
};
use evenkeel_shared::{
    binding::ResourceBindingSpec, cluster::Cluster, placement::ReplicaSchedulingType,
};
use proptest::prelude::*;
use serde_json::Value;

fn cases() -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/karmada-vectors/groups.jsonl.gz");
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap())
        .read_to_string(&mut text)
        .unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn clusters_as_in_the_reference() {
    let mut wrong = Vec::new();
    let mut deviations = 0;
    for case in cases() {
        let input = &case["input"];
        let spec: ResourceBindingSpec =
            serde_json::from_value(input["bindingSpec"].clone()).unwrap();
        let placement = spec.placement.clone().unwrap_or_default();
        let views: Vec<(ClusterView, i64, i64)> = input["clusters"]
            .as_array()
            .unwrap()
            .iter()
            .map(|given| {
                let cluster: Cluster = serde_json::from_value(given["cluster"].clone()).unwrap();
                let view = ClusterView::of(&cluster);
                let own = spec
                    .clusters
                    .iter()
                    .find(|target| target.name == view.name)
                    .map_or(0, |target| i64::from(target.replicas));
                let room = given["allocatableReplicas"].as_i64().unwrap();
                (
                    view,
                    given["score"].as_i64().unwrap(),
                    room.saturating_add(own),
                )
            })
            .collect();
        let candidates: Vec<_> = views
            .iter()
            .map(|(cluster, score, available)| Candidate {
                cluster,
                score: *score,
                available: *available,
                tier: 0,
            })
            .collect();
        let replicas = i64::from(spec.replicas);
        let duplicated = placement
            .replica_scheduling
            .as_ref()
            .is_none_or(|strategy| {
                strategy.replica_scheduling_type == Some(ReplicaSchedulingType::Duplicated)
            });
        let need = if duplicated {
            Need::Copies(replicas)
        } else {
            Need::Shares(replicas)
        };
        let got = select(&candidates, &placement.spread_constraints, need);
        let expect = &case["expect"];
        let same = match &got {
            Ok(chosen) => {
                let names: Vec<_> = chosen.iter().map(|one| one.cluster.name.as_str()).collect();
                expect["clusters"] == serde_json::json!(names)
            }
            Err(_) => expect.get("error").is_some(),
        };
        // The notes name what the reference does wrong: unset limits, and constraints that are ignored.
        if case["note"].is_string() {
            deviations += usize::from(!same);
        } else if !same {
            let got = got.map(|chosen| {
                chosen
                    .iter()
                    .map(|one| one.cluster.name.clone())
                    .collect::<Vec<_>>()
            });
            wrong.push(format!("{got:?} {case}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ: {}", wrong.len(), wrong[0]);
    assert_eq!(deviations, 48, "of the 59 answers with a note");
}

/// All sets, as the reference walks them.
fn walk(groups: &[Group<'_>], limits: Limits, clusters: usize) -> Option<Vec<usize>> {
    fn extend(
        sorted: &[(usize, &Group<'_>)],
        from: usize,
        path: &mut Vec<usize>,
        stop: &dyn Fn(&[usize]) -> bool,
        max: usize,
        found: &mut Vec<Vec<usize>>,
    ) {
        if stop(path) {
            found.push(path.clone());
            return;
        }
        if path.len() >= max {
            return;
        }
        for at in from..sorted.len() {
            path.push(at);
            extend(sorted, at + 1, path, stop, max, found);
            path.pop();
        }
    }
    let mut sorted: Vec<_> = groups.iter().enumerate().collect();
    sorted.sort_by(|(_, a), (_, b)| {
        a.size
            .cmp(&b.size)
            .then(b.weight.cmp(&a.weight))
            .then(a.name.cmp(b.name))
    });
    let enough = |path: &[usize]| {
        !path.is_empty()
            && path.len() >= limits.min
            && path.len() <= limits.max
            && path.iter().map(|&at| sorted[at].1.size).sum::<usize>() >= clusters
    };
    let mut found = Vec::new();
    extend(&sorted, 0, &mut Vec::new(), &enough, limits.max, &mut found);
    let quality = |path: &Vec<usize>| {
        let sum = |of: &dyn Fn(&Group<'_>) -> i64| path.iter().map(|&at| of(sorted[at].1)).sum();
        let (weight, size): (i64, i64) = (
            sum(&|group| group.weight),
            sum(&|group| i64::try_from(group.size).unwrap()),
        );
        (weight, size)
    };
    let best = found.iter().rev().max_by_key(|path| quality(path))?.clone();
    let by_weight = |path: &Vec<usize>| {
        let mut path = path.clone();
        path.sort_by(|&a, &b| {
            let (a, b) = (sorted[a].1, sorted[b].1);
            b.weight.cmp(&a.weight).then(a.name.cmp(b.name))
        });
        path
    };
    let best = by_weight(&best);
    let shorter = found
        .iter()
        .map(by_weight)
        .filter(|path| path.len() < best.len() && best.starts_with(path))
        .min_by_key(Vec::len);
    Some(
        shorter
            .unwrap_or(best)
            .into_iter()
            .map(|at| sorted[at].0)
            .collect(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn groups_are_those_of_the_walk(
        given in prop::collection::vec((1..5usize, 0..4i64), 0..9),
        min in 1..5usize,
        more in prop_oneof![Just(usize::MAX), 0..5usize],
        clusters in 0..14usize,
    ) {
        let names: Vec<String> = (0..given.len()).map(|at| format!("r{at}")).collect();
        let groups: Vec<Group<'_>> = given
            .iter()
            .zip(&names)
            .map(|(&(size, weight), name)| Group { name, size, weight: weight * 1000 })
            .collect();
        let limits = Limits { min, max: min.saturating_add(more) };
        prop_assert_eq!(choose(&groups, limits, clusters), walk(&groups, limits, clusters));
    }
}

#[test]
fn two_hundred_regions_are_chosen_at_once() {
    let names: Vec<String> = (0..200).map(|at| format!("r{at:03}")).collect();
    let groups: Vec<Group<'_>> = names
        .iter()
        .zip(1..)
        .map(|(name, n)| Group {
            name,
            size: 1 + n % 7,
            weight: i64::try_from(n * 37 % 101).unwrap(),
        })
        .collect();
    let chosen = choose(&groups, Limits { min: 20, max: 60 }, 150).unwrap();
    assert!((20..=60).contains(&chosen.len()));
    assert!(chosen.iter().map(|&at| groups[at].size).sum::<usize>() >= 150);
}
