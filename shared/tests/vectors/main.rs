//! The rules here against answers of the reference implementation (`tests/data/karmada-vectors`).

mod names;
mod tolerations;
mod validation;

use std::{io::Read, path::Path};

use serde_json::Value;

/// All cases of a topic.
fn cases(topic: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/data/karmada-vectors")
        .join(format!("{topic}.jsonl.gz"));
    let file = std::fs::File::open(&path).expect("vectors are in the repository");
    let mut text = String::new();
    flate2::read::GzDecoder::new(file)
        .read_to_string(&mut text)
        .expect("vectors are gzip text");
    let cases = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a case is JSON"))
        .collect::<Vec<_>>();
    assert!(cases.len() >= 100, "{topic}: {} cases", cases.len());
    cases
}

/// Runs `answer` over the cases of a topic and reports every one that differs.
fn check(topic: &str, answer: impl Fn(&Value) -> Value) {
    let wrong = cases(topic)
        .iter()
        .filter_map(|case| {
            let got = answer(&case["input"]);
            (got != case["expect"]).then(|| {
                format!(
                    "{}: expected {}, got {got}; input {}",
                    case["id"], case["expect"], case["input"]
                )
            })
        })
        .collect::<Vec<_>>();
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
