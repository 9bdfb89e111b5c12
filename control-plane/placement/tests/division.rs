//! The division of replicas against answers of the reference implementation, and what must hold of every division.

use std::{io::Read, path::Path};

use evenkeel_placement::{
    division::{
        assign::{Candidate, Demand, DivisionError, assign},
        webster::{ByName, Party, allocate},
    },
    fleet::ClusterView,
};
use evenkeel_shared::{
    binding::{ResourceBindingSpec, ResourceBindingStatus, TargetCluster},
    cluster::Cluster,
};
use proptest::prelude::*;
use serde_json::Value;

fn cases(topic: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/karmada-vectors")
        .join(format!("{topic}.jsonl.gz"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap())
        .read_to_string(&mut text)
        .unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn seats_as_in_the_reference() {
    for case in cases("webster") {
        let input = &case["input"];
        let votes = input["votes"].as_object().unwrap();
        let initial = |name: &str| input["initial"][name].as_i64().unwrap_or(0);
        let mut names: Vec<&String> = votes.keys().collect();
        names.extend(
            input["initial"]
                .as_object()
                .into_iter()
                .flat_map(|initial| initial.keys()),
        );
        names.sort();
        names.dedup();
        let mut parties: Vec<Party<'_>> = names
            .iter()
            .map(|name| Party {
                name,
                votes: votes.get(*name).and_then(Value::as_i64).unwrap_or(0),
                seats: initial(name),
            })
            .collect();
        let tie = ByName::of_uid(input["uid"].as_str().unwrap_or_default());
        allocate(&mut parties, input["seats"].as_i64().unwrap(), tie);
        let got: Vec<_> = parties
            .iter()
            .map(|party| serde_json::json!({"name": party.name, "seats": party.seats}))
            .collect();
        assert_eq!(Value::from(got), case["expect"]["result"], "{case}");
        let direction = if tie == ByName::Ascending {
            "ascending"
        } else {
            "descending"
        };
        assert_eq!(direction, case["expect"]["tieBreakByName"], "{case}");
    }
}

/// Answers of the reference that we do not want, by the note that its README gives them or by their id.
fn deviates(case: &Value) -> bool {
    // Sums are 64-bit here.
    case["note"] == "int32 addition wraps"
        // A workload that is scaled to zero keeps its clusters.
        || ["scale down to zero with requirements", "zero replicas with requirements, duplicated"]
            .contains(&case["about"].as_str().unwrap_or_default())
}

#[test]
fn divisions_as_in_the_reference() {
    let mut wrong = Vec::new();
    let mut deviations = 0;
    for case in cases("division") {
        let input = &case["input"];
        let spec: ResourceBindingSpec =
            serde_json::from_value(input["bindingSpec"].clone()).unwrap();
        let status: ResourceBindingStatus = match &input["bindingStatus"] {
            Value::Null => ResourceBindingStatus::default(),
            status => serde_json::from_value(status.clone()).unwrap(),
        };
        let placement = spec.placement.clone().unwrap_or_default();
        let overflow = placement.cluster_affinities.iter().any(|term| {
            term.affinity_name == status.scheduler_observed_affinity_name
                && !term.overflow_affinities.is_empty()
        });
        let views: Vec<(ClusterView, i64, u32)> = input["candidates"]
            .as_array()
            .unwrap()
            .iter()
            .map(|candidate| {
                let cluster: Cluster =
                    serde_json::from_value(candidate["cluster"].clone()).unwrap();
                let tier = candidate["overflowOrder"]
                    .as_u64()
                    .filter(|_| overflow)
                    .unwrap_or(0);
                let allocatable = candidate["allocatableReplicas"].as_i64().unwrap();
                (
                    ClusterView::of(&cluster),
                    allocatable,
                    u32::try_from(tier).unwrap(),
                )
            })
            .collect();
        let candidates: Vec<_> = views
            .iter()
            .map(|(cluster, allocatable, tier)| Candidate {
                cluster,
                allocatable: *allocatable,
                tier: *tier,
            })
            .collect();
        let divisible = (spec.replicas > 0 || spec.replica_requirements.is_some())
            && spec.components.len() <= 1;
        if !divisible {
            continue;
        }
        let demand = Demand {
            replicas: spec.replicas.into(),
            strategy: placement.replica_scheduling.as_ref(),
            previous: &spec.clusters,
            uid: &spec.resource.uid,
            fresh: match (&spec.reschedule_triggered_at, &status.last_scheduled_time) {
                (Some(triggered), Some(scheduled)) => triggered.0 > scheduled.0,
                _ => false,
            },
        };
        let expect = &case["expect"];
        let same = match assign(demand, &candidates) {
            Ok(clusters) => {
                let list = |value: &Value| -> Vec<TargetCluster> {
                    serde_json::from_value(value.clone()).unwrap()
                };
                expect.get("clusters").is_some_and(|expected| {
                    let mut expected = list(expected);
                    expected.sort_by(|a, b| a.name.cmp(&b.name));
                    expected == clusters
                })
            }
            Err(error) => {
                let kind = match error {
                    DivisionError::NotEnough { .. } | DivisionError::TiersNotEnough => {
                        "Unschedulable"
                    }
                    DivisionError::NoClusters | DivisionError::NoPreference => "Error",
                };
                expect["error"]["message"] == error.to_string() && expect["error"]["kind"] == kind
            }
        };
        if deviates(&case) {
            deviations += 1;
            assert!(!same, "no deviation any more: {case}");
        } else if !same {
            wrong.push(format!(
                "{}: {:?}\n{case}",
                case["id"],
                assign(demand, &candidates)
            ));
        }
    }
    assert!(wrong.is_empty(), "{} differ: {}", wrong.len(), wrong[0]);
    assert_eq!(deviations, 3);
}

/// One seat after the other, by the definition.
fn seat_by_seat(parties: &mut [Party<'_>], seats: i64, tie: ByName) {
    for _ in 0..seats {
        let best = parties.iter_mut().max_by(|a, b| {
            let worth = |party: &Party<'_>| party.votes as f64 / (2 * party.seats + 1) as f64;
            worth(a)
                .total_cmp(&worth(b))
                .then(b.seats.cmp(&a.seats))
                .then(match tie {
                    ByName::Ascending => b.name.cmp(a.name),
                    ByName::Descending => a.name.cmp(b.name),
                })
        });
        if let Some(best) = best {
            best.seats += 1;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn seats_in_bulk_are_seats_one_by_one(
        votes in prop::collection::vec((prop_oneof![Just(0i64), 1..20i64, 1..100_000i64], 0..9i64), 0..9),
        seats in 0..400i64,
        descending in any::<bool>(),
    ) {
        let tie = if descending { ByName::Descending } else { ByName::Ascending };
        let names: Vec<String> = (0..votes.len()).map(|at| format!("m{at}")).collect();
        let mut parties: Vec<Party<'_>> = votes
            .iter()
            .zip(&names)
            .map(|(&(votes, seats), name)| Party { name, votes, seats })
            .collect();
        let mut expected = parties.clone();
        seat_by_seat(&mut expected, seats, tie);
        allocate(&mut parties, seats, tie);
        prop_assert_eq!(parties, expected);
    }
}

#[test]
fn two_billion_seats_take_no_time() {
    for votes in [[5, 3, 1], [0, 0, 0], [i64::MAX / 2, 1, 0]] {
        let mut parties: Vec<_> = votes
            .iter()
            .map(|&votes| Party {
                name: "",
                votes,
                seats: 0,
            })
            .collect();
        allocate(&mut parties, 1 << 31, ByName::Ascending);
        assert_eq!(
            parties.iter().map(|party| party.seats).sum::<i64>(),
            1 << 31,
            "{votes:?}"
        );
    }
}
