//! The recorded answers of the reference for what is reported and what is well.

use std::io::Read;

use evenkeel_shared::work::Health;
use serde_json::{Value, json};

use super::{health::health, reflect::reflect};

/// Where the reference's answer is not ours, by its note.
const DEVIATIONS: [&str; 1] = [
    "the annotation resourcetemplate.karmada.io/generation is mandatory for this kind: without it no status is reflected",
];

fn cases(op: &str) -> Vec<Value> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/karmada-vectors/interpreter.jsonl.gz"
    );
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap())
        .read_to_string(&mut text)
        .unwrap();
    text.lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|case| case["input"]["op"] == op)
        .collect()
}

/// Null, absent and empty may stand for each other.
fn semantic(value: &Value) -> Value {
    let empty = |value: &Value| value.is_null() || *value == json!({}) || *value == json!([]);
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| (name.clone(), semantic(value)))
            .filter(|(_, value)| !empty(value))
            .collect(),
        Value::Array(list) => list.iter().map(semantic).collect(),
        other => other.clone(),
    }
}

#[test]
fn what_is_reported() {
    let cases = cases("reflectStatus");
    assert_eq!(cases.len(), 57);
    let mut deviating = 0;
    for case in cases {
        let object = &case["input"]["object"];
        let found = reflect(object);
        if let Some(note) = case["note"].as_str() {
            assert!(DEVIATIONS.contains(&note), "{note}");
            assert!(matches!(found, Ok(Some(_))), "{case}");
            deviating += 1;
            continue;
        }
        match found {
            Ok(found) => {
                assert!(case["expect"].get("error").is_none(), "{case}");
                let found = semantic(&found.unwrap_or_default());
                let expected = semantic(&case["expect"]["status"]);
                let absent = |value: &Value| value.is_null() || *value == json!({});
                assert!(
                    found == expected || (absent(&found) && absent(&expected)),
                    "{case}\nfound {found}"
                );
            }
            Err(_) => assert!(case["expect"].get("error").is_some(), "{case}"),
        }
    }
    assert!(deviating > 0);
}

#[test]
fn what_is_well() {
    let cases = cases("health");
    assert_eq!(cases.len(), 43);
    for case in cases {
        let found = health(&case["input"]["object"]);
        // A kind without a rule is an error there, and well in the end.
        let expected = match case["expect"]["healthy"].as_bool() {
            Some(false) => Health::Unhealthy,
            Some(true) | None => Health::Healthy,
        };
        assert_eq!(found, expected, "{case}");
    }
}
