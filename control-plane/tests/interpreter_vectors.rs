//! Pruning, replicas and aggregated status against answers of the reference implementation
//! (`tests/data/karmada-vectors`).

use std::{io::Read, path::Path};

use evenkeel_control_plane::propagation::{aggregate::aggregate, prune::prune, template::replicas};
use evenkeel_shared::binding::AggregatedStatusItem;
use serde_json::{Map, Value, json};

/// Notes of answers that come from a defect of the reference; here the right thing is done.
const DEVIATIONS: &[&str] = &[
    "the index moves on after a removal, so the second of two neighbours survives",
    "the template generation is compared with the member's own generation, not with the template's; StatefulSet: the \
     reported template generation is compared with the member's own generation, not with the template's, which changes \
     observedGeneration here",
];

fn cases(op: &str, at_least: usize) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/data/karmada-vectors/interpreter.jsonl.gz");
    let file = std::fs::File::open(&path).expect("vectors are in the repository");
    let mut text = String::new();
    flate2::read::GzDecoder::new(file)
        .read_to_string(&mut text)
        .expect("vectors are gzip text");
    let cases = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a case is JSON"))
        .filter(|case| case["input"]["op"] == op)
        .collect::<Vec<_>>();
    assert!(cases.len() >= at_least, "{op}: {} cases", cases.len());
    cases
}

/// `null`, absent, empty and zero may stand for each other.
fn bare(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| (name.clone(), bare(value)))
                .filter(|(_, value)| {
                    *value != Value::Null
                        && *value != json!({})
                        && *value != json!([])
                        && *value != json!(0)
                })
                .collect::<Map<_, _>>();
            Value::Object(fields)
        }
        Value::Array(items) => items.iter().map(bare).collect(),
        other => other.clone(),
    }
}

fn deviates(case: &Value) -> bool {
    DEVIATIONS.iter().any(|note| case["note"] == *note)
}

fn report(wrong: &[String]) {
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn templates_are_pruned_as_in_the_reference() {
    let wrong = cases("prune", 30)
        .iter()
        .filter(|case| !deviates(case))
        .filter_map(|case| {
            let mut object = case["input"]["object"].clone();
            prune(&mut object);
            (bare(&object) != bare(&case["expect"]["object"])).then(|| {
                format!(
                    "{}: expected {}, got {object}",
                    case["id"], case["expect"]["object"]
                )
            })
        })
        .collect::<Vec<_>>();
    report(&wrong);
}

#[test]
fn all_generated_token_secrets_are_pruned() {
    let mut object = json!({"kind": "ServiceAccount", "metadata": {"name": "x"},
        "secrets": [{"name": "x-token-1"}, {"name": "x-token-2"}, {}, {"name": "keep"}]});
    prune(&mut object);
    assert_eq!(object["secrets"], json!([{}, {"name": "keep"}]));
}

#[test]
fn replicas_are_read_as_in_the_reference() {
    let wrong = cases("replicas", 60)
        .iter()
        // An object that no server would have accepted.
        .filter(|case| case["about"] != "wrong type of replicas")
        .filter_map(|case| {
            let got = replicas(&case["input"]["object"]);
            let expected = case["expect"]["replicas"].as_i64();
            (got.map(i64::from) != expected)
                .then(|| format!("{}: expected {expected:?}, got {got:?}", case["id"]))
        })
        .collect::<Vec<_>>();
    report(&wrong);
}

#[test]
fn status_is_aggregated_as_in_the_reference() {
    const KINDS: &[&str] = &[
        "Deployment",
        "ReplicaSet",
        "StatefulSet",
        "DaemonSet",
        "Job",
    ];
    let now = "2026-01-02T03:04:05Z".parse().unwrap();
    let cases = cases("aggregateStatus", 50);
    let wrong = cases
        .iter()
        .filter(|case| {
            KINDS
                .iter()
                .any(|kind| case["input"]["object"]["kind"] == *kind)
        })
        .filter(|case| !deviates(case))
        .filter_map(|case| {
            let object = &case["input"]["object"];
            let items: Vec<AggregatedStatusItem> =
                serde_json::from_value(case["input"]["items"].clone()).expect("items decode");
            let got = aggregate(object, &items, now);
            let standing = got.clone().unwrap_or_else(|| object["status"].clone());
            let expected = serde_json::from_str::<Value>(
                &case["expect"]["status"]
                    .to_string()
                    .replace("<now>", "2026-01-02T03:04:05Z"),
            )
            .unwrap();
            (bare(&standing) != bare(&expected)).then(|| {
                format!(
                    "{} {}: expected {expected}, got {standing}; items {}",
                    case["id"], object["kind"], case["input"]["items"]
                )
            })
        })
        .collect::<Vec<_>>();
    report(&wrong);
}

#[test]
fn a_stateful_set_is_observed_when_its_copies_are_of_the_templates_generation() {
    let now = "2026-01-02T03:04:05Z".parse().unwrap();
    let object = json!({"kind": "StatefulSet", "metadata": {"generation": 9}});
    let items = |generation: i64| -> Vec<AggregatedStatusItem> {
        serde_json::from_value(json!([{"clusterName": "m1", "status": {"replicas": 1,
            "generation": 1, "observedGeneration": 1, "resourceTemplateGeneration": generation}}]))
        .unwrap()
    };
    let behind = aggregate(&object, &items(8), now).unwrap();
    assert_eq!(behind["observedGeneration"], Value::Null);
    let there = aggregate(&object, &items(9), now).unwrap();
    assert_eq!(there["observedGeneration"], 9);
}

#[test]
fn aggregating_twice_changes_nothing() {
    let now = "2026-01-02T03:04:05Z".parse().unwrap();
    let later = "2026-01-02T03:05:05Z".parse().unwrap();
    for case in cases("aggregateStatus", 50) {
        let mut object = case["input"]["object"].clone();
        let items: Vec<AggregatedStatusItem> =
            serde_json::from_value(case["input"]["items"].clone()).expect("items decode");
        if let Some(status) = aggregate(&object, &items, now) {
            object["status"] = status;
            assert_eq!(aggregate(&object, &items, later), None, "{}", case["id"]);
        }
    }
}
