//! The rules here against answers of the reference implementation (`tests/data/karmada-vectors`).

use std::{io::Read, path::Path};

use evenkeel_placement::{
    affinity, candidates,
    claim::{self, Closeness, Contender, Template},
    fleet::ClusterView,
};
use evenkeel_shared::{
    cluster::Cluster,
    placement::ClusterAffinity,
    policy::{ClusterPropagationPolicy, PropagationPolicy},
};
use k8s_openapi::api::core::v1::Toleration;
use serde_json::{Map, Value, json};

fn cases(topic: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/karmada-vectors")
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

fn check(topic: &str, answer: impl Fn(&Value) -> Value, expect: impl Fn(&Value) -> Value) {
    let wrong = cases(topic)
        .iter()
        .filter_map(|case| {
            let (got, expected) = (answer(&case["input"]), expect(&case["expect"]));
            (got != expected).then(|| {
                format!(
                    "{} ({}): expected {expected}, got {got}; input {}",
                    case["id"], case["about"], case["input"]
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

#[test]
fn affinity_matches_as_in_the_reference() {
    check(
        "affinity",
        |input| {
            let affinity: ClusterAffinity =
                serde_json::from_value(input["affinity"].clone()).expect("affinity decodes");
            let cluster: Cluster =
                serde_json::from_value(input["cluster"].clone()).expect("cluster decodes");
            json!({"matches": affinity::matches(&affinity, &ClusterView::of(&cluster))})
        },
        Clone::clone,
    );
}

#[test]
fn policies_claim_as_in_the_reference() {
    check(
        "policy-match",
        |input| {
            let list = |field: &str| input[field].as_array().cloned().unwrap_or_default();
            let namespaced = list("propagationPolicies")
                .into_iter()
                .map(|policy| serde_json::from_value(policy).expect("policy decodes"))
                .collect::<Vec<PropagationPolicy>>();
            let wide = list("clusterPropagationPolicies")
                .into_iter()
                .map(|policy| serde_json::from_value(policy).expect("policy decodes"))
                .collect::<Vec<ClusterPropagationPolicy>>();
            let contenders = namespaced
                .iter()
                .map(|policy| Contender {
                    namespace: policy.namespace(),
                    name: policy.name(),
                    spec: &policy.spec,
                    terminating: policy.metadata.deletion_timestamp.is_some(),
                })
                .chain(wide.iter().map(|policy| Contender {
                    namespace: "",
                    name: policy.name(),
                    spec: &policy.spec,
                    terminating: policy.metadata.deletion_timestamp.is_some(),
                }))
                .collect::<Vec<_>>();
            let object = &input["object"];
            let text = |pointer: &str| {
                object
                    .pointer(pointer)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
            };
            let labels =
                serde_json::from_value(object["metadata"]["labels"].clone()).unwrap_or_default();
            let template = Template {
                api_version: text("/apiVersion"),
                kind: text("/kind"),
                namespace: text("/metadata/namespace"),
                name: text("/metadata/name"),
                labels: &labels,
            };
            let closeness = contenders
                .iter()
                .map(|policy| {
                    let name = if policy.namespace.is_empty() {
                        policy.name.to_owned()
                    } else {
                        format!("{}/{}", policy.namespace, policy.name)
                    };
                    let number = match claim::closeness(policy.spec, template) {
                        None => 0,
                        Some(Closeness::All) => 1,
                        Some(Closeness::Labels) => 2,
                        Some(Closeness::Name) => 3,
                    };
                    (name, json!(number))
                })
                .collect::<Map<_, _>>();
            let policy = claim::claim(template, contenders.iter().copied()).map(|policy| {
                if policy.namespace.is_empty() {
                    json!({"kind": "ClusterPropagationPolicy", "name": policy.name})
                } else {
                    json!({"kind": "PropagationPolicy", "name": policy.name,
                        "namespace": policy.namespace})
                }
            });
            json!({"implicitPriority": closeness, "policy": policy})
        },
        Clone::clone,
    );
}

#[test]
fn taints_keep_out_as_in_the_reference() {
    check(
        "tolerations",
        |input| {
            let mut cluster = ClusterView {
                name: "m".into(),
                ..ClusterView::default()
            };
            cluster.taints =
                serde_json::from_value(input["taints"].clone()).expect("taints decode");
            cluster.apis = std::sync::Arc::new([("v1".to_owned(), "ConfigMap".to_owned())].into());
            let tolerations: Vec<Toleration> =
                serde_json::from_value(input["tolerations"].clone()).expect("tolerations decode");
            let current = if input["alreadyTarget"] == true {
                vec!["m".to_owned()]
            } else {
                Vec::new()
            };
            let workload = candidates::Workload {
                api_version: "v1",
                kind: "ConfigMap",
                current: &current,
                leaving: &[],
            };
            match candidates::admit(workload, None, &tolerations, &cluster) {
                Ok(()) => json!({"schedulable": true}),
                Err(rejection) => json!({"schedulable": false, "reason": rejection.text()}),
            }
        },
        |expect| {
            let mut expect = expect.clone();
            expect
                .as_object_mut()
                .expect("an answer is an object")
                .remove("eviction");
            expect
        },
    );
}
