//! What an explanation says, as JSON and as tables.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_placement::spread::{
    explain::{Answer, Explanation, Facts, explain},
    places::{Exclusion, by_name},
    plan::plan,
};
use serde_json::json;

use crate::{instances::grid, plans::wish};

fn explained() -> Explanation {
    let mut instance = grid(&[0, 1, 2, 0], 1);
    instance.capacity = vec![9, 2, 9, 9];
    let order = by_name(&instance.names);
    let mut exclusions = vec![None; 4];
    exclusions[3] = Some(Exclusion::Taint("disk=bad:NoSchedule".to_owned()));
    let previous = [1, 0, 0, 0];
    let wish = wish(&instance, &order, &exclusions, &previous, 10);
    let names: Vec<&str> = instance.names.iter().map(String::as_str).collect();
    let known = BTreeMap::from([(
        "zone".to_owned(),
        BTreeSet::from(["v0".to_owned(), "v9".to_owned()]),
    )]);
    let facts = Facts {
        names: &names,
        empty: &[],
        known: Some(&known),
    };
    explain(wish, &plan(wish).unwrap(), facts)
}

#[test]
fn every_place_has_its_reason() {
    let explanation = explained();
    let answers: Vec<_> = explanation
        .places
        .iter()
        .map(|place| (place.replicas, &place.answer))
        .collect();
    let skewed = |domain: &str| Answer::Skewed {
        topology_key: "zone".to_owned(),
        domain: domain.to_owned(),
        count: 3,
        minimum: 2,
        skew: 2,
        max_skew: 1,
    };
    let tainted = Answer::Tainted {
        taint: "disk=bad:NoSchedule".to_owned(),
    };
    assert_eq!(
        answers,
        [
            (3, &skewed("v0")),
            (2, &Answer::Full),
            (3, &skewed("v2")),
            (0, &tainted)
        ]
    );
    assert_eq!(explanation.unplaced, 2);
}

#[test]
fn as_json() {
    let json = serde_json::to_value(explained()).unwrap();
    assert_eq!(
        json["places"][0],
        json!({
            "name": "n0", "replicas": 3, "previous": 1, "capacity": 9,
            "verdict": "Skewed", "topologyKey": "zone", "domain": "v0", "count": 3, "minimum": 2, "skew": 2, "maxSkew": 1,
            "reason": "zone=v0 holds 3, the least 2: skew would be 2 of at most 1",
        })
    );
    assert_eq!(
        json["constraints"][0]["domains"][3],
        json!({ "value": "v9", "count": 0, "replicas": 0, "places": 0, "counted": false, "empty": true })
    );
}

#[test]
fn as_tables() {
    let expected = "\
8 of 10 replicas have a place, 2 have none

PLACE  REPLICAS  BEFORE  CAPACITY  ONE MORE
n0     3         1       9         zone=v0 holds 3, the least 2: skew would be 2 of at most 1
n1     2         0       2         full
n2     3         0       9         zone=v2 holds 3, the least 2: skew would be 2 of at most 1
n3     0         0       9         taint disk=bad:NoSchedule is not tolerated

DoNotSchedule by zone: skew 1 of at most 1, measured from 2
DOMAIN  PODS  OF THESE  PLACES  NOTE
v0      3     3         2
v1      2     2         1       the least
v2      3     3         1
v9      0     0         0       known, has no nodes yet
";
    assert_eq!(explained().to_string(), expected);
}
