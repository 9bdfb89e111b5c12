//! The spread engine against recordings of the real kube-scheduler plugin and the real API validation.
//! `EVENKEEL_SPREAD_VECTORS` names another directory of such recordings.

use std::{collections::BTreeMap, fs::File, path::PathBuf};

use evenkeel_placement::spread::{
    Incoming, Labels, Node, PlacedPod,
    affinity::{NodeAffinity, tolerates_all},
    axis::Axes,
    defaults::{Applicable, Defaults, Owners},
    filter::{Filter, Verdict},
    score::{Score, score},
    validate,
};
use k8s_openapi::{
    api::core::v1::{PodSpec, Taint, TopologySpreadConstraint},
    apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference},
};
use serde::Deserialize;
use serde_json::Value;

fn cases(kind: &str) -> Vec<Value> {
    let dir = std::env::var_os("EVENKEEL_SPREAD_VECTORS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/spread-vectors"),
        PathBuf::from,
    );
    let mut files: Vec<_> = std::fs::read_dir(&dir)
        .unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(".json.gz"))
        .collect();
    files.sort();
    let mut cases = Vec::new();
    for path in files {
        let mut file: Value =
            serde_json::from_reader(flate2::read::GzDecoder::new(File::open(&path).unwrap()))
                .unwrap();
        if file["kind"] == kind {
            let Value::Array(list) = file["cases"].take() else {
                panic!("{}", path.display())
            };
            cases.extend(list);
        }
    }
    assert!(!cases.is_empty(), "no {kind} vectors in {}", dir.display());
    cases
}

#[derive(Deserialize)]
struct NodeIn {
    name: String,
    #[serde(default)]
    labels: Labels,
    #[serde(default)]
    taints: Vec<Taint>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodIn {
    namespace: String,
    #[serde(default)]
    labels: Labels,
    node_name: String,
    #[serde(default)]
    terminating: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Template {
    metadata: TemplateMeta,
    #[serde(default)]
    spec: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TemplateMeta {
    namespace: String,
    #[serde(default)]
    labels: Labels,
    #[serde(default)]
    owner_references: Vec<OwnerReference>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct OwnersIn {
    services: Vec<Owner<Option<Labels>>>,
    replication_controllers: Vec<Owner<Option<Labels>>>,
    replica_sets: Vec<WorkloadIn>,
    stateful_sets: Vec<WorkloadIn>,
}

#[derive(Deserialize)]
struct Owner<S> {
    name: String,
    namespace: String,
    selector: S,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WorkloadIn {
    name: String,
    namespace: String,
    label_selector: Option<LabelSelector>,
}

#[derive(Deserialize)]
struct DefaultsIn {
    #[serde(rename = "type")]
    type_: String,
    #[serde(default)]
    constraints: Vec<TopologySpreadConstraint>,
    #[serde(default)]
    owners: OwnersIn,
}

struct Case {
    meta: TemplateMeta,
    spec: PodSpec,
    nodes: Vec<Node>,
    placed: Vec<PlacedPod>,
    defaults: Option<DefaultsIn>,
}

fn from<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    T::deserialize(value).unwrap_or_else(|error| panic!("{error}: {value}"))
}

impl Case {
    fn new(case: &Value, template: &str) -> Self {
        let template: Template = from(&case[template]);
        let mut spec = template.spec;
        // The recordings leave out the containers, which the type wants.
        spec["containers"] = Value::Array(Vec::new());
        let nodes: Vec<Node> = from::<Vec<NodeIn>>(&case["nodes"])
            .into_iter()
            .map(|node| Node {
                name: node.name,
                labels: node.labels,
                taints: node.taints,
            })
            .collect();
        let index: BTreeMap<_, _> = nodes
            .iter()
            .enumerate()
            .map(|(index, node)| (node.name.clone(), index))
            .collect();
        let placed = match &case["existingPods"] {
            Value::Null => Vec::new(),
            pods => from::<Vec<PodIn>>(pods),
        };
        let placed = placed
            .into_iter()
            .map(|pod| PlacedPod {
                namespace: pod.namespace,
                labels: pod.labels,
                node: index[&pod.node_name],
                terminating: pod.terminating,
            })
            .collect();
        let defaults = case
            .get("defaults")
            .filter(|value| !value.is_null())
            .map(from);
        Self {
            meta: template.metadata,
            spec: from(&spec),
            nodes,
            placed,
            defaults,
        }
    }

    fn applicable(&self) -> Applicable {
        let mut owners = Owners::default();
        let mut defaults = Defaults::default();
        if let Some(given) = &self.defaults {
            let controller = self
                .meta
                .owner_references
                .iter()
                .find(|o| o.controller == Some(true));
            let owned = |name: &str, namespace: &str, kind: &str, api_version: &str| {
                namespace == self.meta.namespace
                    && controller.is_some_and(|owner| {
                        owner.name == name && owner.kind == kind && owner.api_version == api_version
                    })
            };
            owners.services = given
                .owners
                .services
                .iter()
                .filter(|service| service.namespace == self.meta.namespace)
                .map(|service| service.selector.as_ref())
                .collect();
            owners.replication_controller = given
                .owners
                .replication_controllers
                .iter()
                .find(|rc| owned(&rc.name, &rc.namespace, "ReplicationController", "v1"))
                .and_then(|rc| rc.selector.as_ref());
            let workload = |list: &'_ [WorkloadIn], kind: &str| {
                list.iter()
                    .position(|w| owned(&w.name, &w.namespace, kind, "apps/v1"))
            };
            let sets = &given.owners;
            owners.workload = workload(&sets.replica_sets, "ReplicaSet")
                .map(|at| &sets.replica_sets[at])
                .or_else(|| {
                    workload(&sets.stateful_sets, "StatefulSet").map(|at| &sets.stateful_sets[at])
                })
                .and_then(|workload| workload.label_selector.as_ref());
            defaults = match given.type_.as_str() {
                "System" => Defaults::kubernetes(),
                _ => Defaults::List(given.constraints.clone()),
            };
        }
        let own = self
            .spec
            .topology_spread_constraints
            .as_deref()
            .unwrap_or_default();
        Applicable::new(own, &self.meta.labels, &defaults, &owners)
    }

    fn axes(&self) -> Axes {
        let pod = Incoming {
            namespace: &self.meta.namespace,
            labels: &self.meta.labels,
            spec: &self.spec,
        };
        Axes::new(pod, self.applicable(), &self.nodes, &self.placed)
    }

    /// Nodes that the other plugins reject before this one is asked.
    fn rejected(&self) -> Vec<bool> {
        let affinity = NodeAffinity::new(&self.spec);
        let tolerations = self.spec.tolerations.as_deref().unwrap_or_default();
        self.nodes
            .iter()
            .map(|node| !affinity.matches(node) || !tolerates_all(&node.taints, tolerations))
            .collect()
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Success => "Success",
        Verdict::Unschedulable(_) => "Unschedulable",
        Verdict::UnschedulableAndUnresolvable { .. } => "UnschedulableAndUnresolvable",
    }
}

/// Verdicts and scores in the form of the recordings.
fn answer(case: &Case, axes: &Axes, rejected: &[bool]) -> Value {
    let filter = Filter::new(axes);
    let verdicts: Vec<_> = (0..case.nodes.len())
        .map(|node| {
            if rejected[node] {
                "UnschedulableAndUnresolvable"
            } else {
                word(filter.verdict(node))
            }
        })
        .collect();
    let feasible: Vec<_> = (0..case.nodes.len())
        .filter(|&node| verdicts[node] == "Success")
        .collect();
    // Without a feasible node nothing is scored, and the recording says that it was not skipped.
    let scores = score(axes, &feasible);
    let skipped = scores.is_none() && !feasible.is_empty();
    let by_name = |of: &dyn Fn(&Score) -> i64| -> Value {
        let scores = scores.iter().flatten();
        feasible
            .iter()
            .zip(scores)
            .map(|(&node, score)| (case.nodes[node].name.clone(), of(score).into()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let filter: serde_json::Map<_, _> = case
        .nodes
        .iter()
        .zip(&verdicts)
        .map(|(node, &verdict)| (node.name.clone(), verdict.into()))
        .collect();
    serde_json::json!({
        "filter": filter, "scoreSkipped": skipped,
        "score": by_name(&|score| score.normalised), "rawScore": by_name(&|score| score.raw),
    })
}

#[test]
fn filter_and_score_as_the_real_plugin() {
    let mut wrong = Vec::new();
    let cases = cases("filterScore");
    for recorded in &cases {
        let case = Case::new(recorded, "pod");
        let axes = case.axes();
        let expect = &recorded["expect"];
        let alone = answer(&case, &axes, &vec![false; case.nodes.len()]);
        let combined = answer(&case, &axes, &case.rejected());
        let same = |answer: &Value, expect: &Value| {
            ["filter", "scoreSkipped", "score", "rawScore"]
                .iter()
                .all(|part| answer[part] == expect[part])
        };
        if axes.hard.is_empty() != expect["preFilterSkipped"]
            || !same(&alone, expect)
            || !same(&combined, &expect["combined"])
        {
            wrong.push(format!(
                "{}: {alone} {combined}\n  expected {expect}",
                recorded["id"]
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} differ: {}",
        wrong.len(),
        cases.len(),
        wrong[0]
    );
}

#[test]
fn sequences_as_the_real_plugin() {
    let mut wrong = Vec::new();
    let cases = cases("sequence");
    for recorded in &cases {
        let mut case = Case::new(recorded, "template");
        let rejected = case.rejected();
        let (mut placements, mut winning, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..recorded["replicas"].as_u64().unwrap() {
            let axes = case.axes();
            let filter = Filter::new(&axes);
            let feasible: Vec<_> = (0..case.nodes.len())
                .filter(|&node| !rejected[node] && filter.verdict(node) == Verdict::Success)
                .collect();
            counts.push(feasible.len());
            let scores = score(&axes, &feasible);
            let value = |at: usize| scores.as_ref().map_or(-1, |scores| scores[at].normalised);
            let best = (0..feasible.len()).min_by(|&a, &b| {
                let name = |at: usize| case.nodes[feasible[at]].name.as_bytes();
                value(b).cmp(&value(a)).then_with(|| name(a).cmp(name(b)))
            });
            match best {
                None => {
                    placements.push("unschedulable".to_owned());
                    winning.push(-1);
                }
                Some(at) => {
                    placements.push(case.nodes[feasible[at]].name.clone());
                    winning.push(value(at));
                    case.placed.push(PlacedPod {
                        namespace: case.meta.namespace.clone(),
                        labels: case.meta.labels.clone(),
                        node: feasible[at],
                        terminating: false,
                    });
                }
            }
        }
        let expect = &recorded["expect"];
        let got = serde_json::json!({
            "placements": placements, "winningScore": winning, "feasibleCount": counts,
        });
        if ["placements", "winningScore", "feasibleCount"]
            .iter()
            .any(|k| got[k] != expect[k])
        {
            wrong.push(format!("{}: {got}\n  expected {expect}", recorded["id"]));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} differ: {}",
        wrong.len(),
        cases.len(),
        wrong[0]
    );
}

#[test]
fn validation_as_the_real_api_server() {
    let mut wrong = Vec::new();
    let cases = cases("validation");
    for recorded in &cases {
        let labels: Labels = match &recorded["podLabels"] {
            Value::Null => Labels::new(),
            labels => from(labels),
        };
        let constraints: Vec<TopologySpreadConstraint> =
            from(&recorded["topologySpreadConstraints"]);
        let root = "topologySpreadConstraints";
        let answers = [
            (
                "podCreate",
                validate::validate_pod(&constraints, &labels, &format!("spec.{root}")),
            ),
            (
                "template",
                validate::validate(&constraints, &format!("spec.template.spec.{root}")),
            ),
        ];
        for (name, errors) in answers {
            let mut got: Vec<_> = errors
                .iter()
                .map(|e| (e.kind.as_str().to_owned(), e.path.clone()))
                .collect();
            got.sort();
            let mut expected: Vec<(String, String)> = recorded["expect"][name]
                .as_array()
                .into_iter()
                .flatten()
                .map(|error| (from(&error["type"]), from(&error["field"])))
                .collect();
            expected.sort();
            if got != expected {
                wrong.push(format!(
                    "{} {name}: {got:?}\n  expected {expected:?}",
                    recorded["id"]
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} differ: {}",
        wrong.len(),
        cases.len() * 2,
        wrong[0]
    );
}
