//! Propagation over a model of the API server: what is asked for is carried out until nothing more is.

use std::{collections::BTreeMap, sync::Arc};

use evenkeel_control_plane::propagation::{
    binding::Claim,
    decide::{Action, Snapshot, decide},
};
use evenkeel_placement::fleet::ClusterView;
use evenkeel_shared::{binding::ResourceBinding, work::Work};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use proptest::prelude::*;
use serde_json::{Value, json};

fn now() -> Timestamp {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

fn cluster(name: &str, ready: bool, terminating: bool) -> Arc<ClusterView> {
    Arc::new(ClusterView {
        name: name.into(),
        ready,
        terminating,
        apis: Arc::new([("apps/v1".to_owned(), "Deployment".to_owned())].into()),
        apis_complete: true,
        ..ClusterView::default()
    })
}

fn deployment(generation: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "uid": "t-1", "generation": generation,
            "resourceVersion": "7", "labels": {"app": "web"}, "annotations": {"note": "x"}},
        "spec": {"replicas": 2, "template": {}},
    })
}

fn claim(placement: &Value) -> Claim {
    Claim {
        namespace: "shop".into(),
        name: "everywhere".into(),
        id: "p-1".into(),
        spec: serde_json::from_value(json!({"placement": placement})).unwrap(),
    }
}

/// The part of the API server that propagation talks to.
#[derive(Default)]
struct World {
    template: Option<Value>,
    claim: Option<Claim>,
    binding: Option<ResourceBinding>,
    works: BTreeMap<String, Work>,
    fleet: Vec<Arc<ClusterView>>,
}

impl World {
    fn step(&mut self) -> Vec<Action> {
        let snapshot = Snapshot {
            template: self.template.as_ref(),
            claim: self.claim.clone(),
            binding: self.binding.clone(),
            works: self.works.clone(),
            fleet: &self.fleet,
        };
        let steps = decide(&snapshot, now());
        let actions = steps
            .into_iter()
            .map(|step| {
                assert!(!step.reason.is_empty());
                step.action
            })
            .collect::<Vec<_>>();
        for action in actions.clone() {
            self.act(action);
        }
        actions
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::CreateBinding(mut binding) => {
                assert!(self.binding.is_none());
                binding.metadata.generation = Some(1);
                self.binding = Some(binding);
            }
            Action::UpdateBinding(mut binding) => {
                let old = self.binding.as_ref().expect("it is there");
                if old.spec != binding.spec {
                    binding.metadata.generation = old.metadata.generation.map(|n| n + 1);
                }
                let done = binding.metadata.deletion_timestamp.is_some()
                    && binding
                        .metadata
                        .finalizers
                        .as_ref()
                        .is_none_or(Vec::is_empty);
                self.binding = (!done).then_some(binding);
            }
            Action::UpdateBindingStatus(binding) => {
                self.binding.as_mut().expect("it is there").status = binding.status;
            }
            Action::DeleteBinding => {
                let binding = self.binding.as_mut().expect("it is there");
                binding.metadata.deletion_timestamp = Some(Time(now()));
            }
            Action::CreateWork { cluster, mut work } => {
                work.metadata.generation = Some(1);
                assert!(self.works.insert(cluster, work).is_none());
            }
            Action::UpdateWork { cluster, mut work } => {
                let old = self.works.get(&cluster).expect("it is there");
                work.status.clone_from(&old.status);
                self.works.insert(cluster, work);
            }
            Action::DeleteWork { cluster } => {
                let work = self.works.get_mut(&cluster).expect("it is there");
                work.metadata.deletion_timestamp = Some(Time(now()));
            }
            Action::UpdateTemplateStatus(template) => self.template = Some(template),
        }
    }

    /// Until nothing is asked for any more.
    fn settle(&mut self) {
        for _ in 0..20 {
            if self.step().is_empty() {
                return;
            }
        }
        panic!("it never comes to rest: {:?}", self.step());
    }

    /// Every agent takes away what is to go, and reports on the rest.
    fn agents(&mut self) {
        self.works
            .retain(|_, work| work.metadata.deletion_timestamp.is_none());
        for work in self.works.values_mut() {
            work.status = serde_json::from_value(json!({
                "conditions": [{"type": "Applied", "status": "True", "reason": "AppliedSuccessful",
                    "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}],
                "manifestStatuses": [{"identifier": {"ordinal": 0, "version": "v1", "kind": "Deployment", "name": "web"},
                    "health": "Healthy",
                    "status": {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "generation": 1,
                        "observedGeneration": 1, "resourceTemplateGeneration": 1}}],
            }))
            .unwrap();
        }
    }

    fn condition(&self, type_: &str) -> (String, String, String) {
        let status = self.binding.as_ref().unwrap().status.as_ref().unwrap();
        let condition = status
            .conditions
            .iter()
            .find(|condition| condition.type_ == type_)
            .unwrap();
        (
            condition.status.clone(),
            condition.reason.clone(),
            condition.message.clone(),
        )
    }
}

fn placed() -> World {
    let mut world = World {
        template: Some(deployment(1)),
        claim: Some(claim(&json!({}))),
        fleet: vec![cluster("a", true, false), cluster("b", true, false)],
        ..World::default()
    };
    world.settle();
    world
}

#[test]
fn a_claimed_template_becomes_a_binding_and_works() {
    let world = placed();
    let binding = world.binding.as_ref().unwrap();
    assert_eq!(binding.name(), "web-deployment");
    assert_eq!(binding.namespace(), "shop");
    let labels = binding.metadata.labels.as_ref().unwrap();
    assert_eq!(labels["resourcebinding.karmada.io/permanent-id"], "t-1");
    assert_eq!(labels["propagationpolicy.karmada.io/permanent-id"], "p-1");
    let owner = &binding.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!(
        (owner.kind.as_str(), owner.uid.as_str()),
        ("Deployment", "t-1")
    );
    assert_eq!(world.works.keys().collect::<Vec<_>>(), ["a", "b"]);

    let work = &world.works["a"];
    assert_eq!(work.namespace(), "karmada-es-a");
    assert_eq!(
        work.name(),
        "web-7d8fb8875c".replace("7d8fb8875c", &work.name()[4..])
    );
    assert_eq!(
        work.metadata.finalizers.as_deref(),
        Some(&["karmada.io/execution-controller".to_owned()][..])
    );
    let manifest = &work.spec.workload.manifests[0];
    let metadata = &manifest["metadata"];
    assert!(metadata.get("uid").is_none() && metadata.get("resourceVersion").is_none());
    assert_eq!(metadata["labels"]["karmada.io/managed"], "true");
    assert_eq!(metadata["labels"]["app"], "web");
    let notes = &metadata["annotations"];
    assert_eq!(notes["resourcetemplate.karmada.io/uid"], "t-1");
    assert_eq!(notes["resourcetemplate.karmada.io/generation"], "1");
    assert_eq!(notes["work.karmada.io/namespace"], "karmada-es-a");
    assert_eq!(notes["resourcebinding.karmada.io/name"], "web-deployment");
    assert_eq!(notes["work.karmada.io/conflict-resolution"], "abort");
    assert_eq!(
        notes["resourcetemplate.karmada.io/managed-labels"],
        "app,karmada.io/managed,resourcebinding.karmada.io/permanent-id,work.karmada.io/permanent-id"
    );
    assert!(
        notes["resourcetemplate.karmada.io/managed-annotations"]
            .as_str()
            .unwrap()
            .contains("note,resourcebinding.karmada.io/name")
    );
    assert_eq!(world.condition("Scheduled").1, "Success");
    let (status, _, message) = world.condition("FullyApplied");
    assert_eq!(status, "False");
    assert!(
        message.contains("a (the agent has not reported on it yet)"),
        "{message}"
    );
}

#[test]
fn status_comes_back_to_binding_and_template() {
    let mut world = placed();
    world.agents();
    world.settle();
    assert_eq!(world.condition("FullyApplied").0, "True");
    let status = &world.template.as_ref().unwrap()["status"];
    assert_eq!(status["readyReplicas"], 4);
    assert_eq!(status["observedGeneration"], 1);
    let items = &world
        .binding
        .as_ref()
        .unwrap()
        .status
        .as_ref()
        .unwrap()
        .aggregated_status;
    assert_eq!(items.len(), 2);
    assert!(items.iter().all(|item| item.applied));
}

#[test]
fn copies_of_a_cluster_that_is_not_ready_are_shown_as_stale() {
    let mut world = placed();
    world.agents();
    world.settle();
    world.fleet[1] = cluster("b", false, false);
    world.settle();
    let items = &world
        .binding
        .as_ref()
        .unwrap()
        .status
        .as_ref()
        .unwrap()
        .aggregated_status;
    assert!(items[1].applied_message.starts_with("stale"));
    assert_eq!(items[1].health.as_ref().unwrap().as_str(), "Unknown");
    assert_eq!(
        world.template.as_ref().unwrap()["status"]["readyReplicas"],
        2
    );
    assert_eq!(world.works.len(), 2, "not Ready alone shrinks nothing");
}

#[test]
fn a_work_stays_until_its_agent_has_removed_the_copy() {
    for end in ["template", "policy"] {
        let mut world = placed();
        world.agents();
        world.settle();
        if end == "template" {
            world.template = None;
        } else {
            world.claim = None;
        }
        world.settle();
        assert!(world.binding.is_some(), "{end}: waits for the agents");
        assert!(
            world
                .works
                .values()
                .all(|work| work.metadata.deletion_timestamp.is_some())
        );
        world.agents();
        world.settle();
        assert!(world.binding.is_none(), "{end}");
        assert!(world.works.is_empty(), "{end}");
    }
}

#[test]
fn a_cluster_that_goes_is_dropped() {
    let mut world = placed();
    world.fleet[0] = cluster("a", true, true);
    world.settle();
    let clusters = &world.binding.as_ref().unwrap().spec.clusters;
    assert_eq!(clusters.len(), 1);
    assert!(world.works["a"].metadata.deletion_timestamp.is_some());
}

#[test]
fn what_is_not_acted_on_yet_is_said_and_nothing_is_placed() {
    let mut world = World {
        template: Some(deployment(1)),
        claim: Some(claim(
            &json!({"replicaScheduling": {"replicaSchedulingType": "Divided"}}),
        )),
        fleet: vec![cluster("a", true, false)],
        ..World::default()
    };
    world.settle();
    assert!(world.works.is_empty());
    let (status, reason, message) = world.condition("Scheduled");
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("False", "NotSupportedYet")
    );
    assert!(message.contains("Divided"), "{message}");
}

#[test]
fn templates_in_reserved_namespaces_are_left_alone() {
    for namespace in ["kube-system", "karmada-cluster", "karmada-es-a"] {
        let mut template = deployment(1);
        template["metadata"]["namespace"] = namespace.into();
        let mut world = World {
            template: Some(template),
            claim: Some(claim(&json!({}))),
            fleet: vec![cluster("a", true, false)],
            ..World::default()
        };
        world.settle();
        assert!(world.binding.is_none(), "{namespace}");
    }
}

#[test]
fn held_delivery_is_marked_on_the_work() {
    let mut world = placed();
    let mut claim = claim(&json!({}));
    claim.spec.suspension =
        serde_json::from_value(json!({"dispatchingOnClusters": {"clusterNames": ["b"]}})).unwrap();
    world.claim = Some(claim);
    world.settle();
    assert!(!world.works["a"].spec.suspend_dispatching);
    assert!(world.works["b"].spec.suspend_dispatching);
}

#[derive(Clone, Debug)]
enum Change {
    Template(Option<i64>),
    Claim(Option<u8>),
    Cluster {
        index: usize,
        state: Option<(bool, bool)>,
    },
    Agents,
    Steps(u8),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        proptest::option::of(1_i64..4).prop_map(Change::Template),
        proptest::option::of(0_u8..4).prop_map(Change::Claim),
        (
            0_usize..3,
            proptest::option::of((any::<bool>(), any::<bool>()))
        )
            .prop_map(|(index, state)| Change::Cluster { index, state }),
        Just(Change::Agents),
        (1_u8..4).prop_map(Change::Steps),
    ]
}

proptest! {
    /// Whatever changes in whatever order: it comes to rest, and then the Works are exactly those of the decision.
    #[test]
    fn it_comes_to_rest_with_the_works_of_the_decision(
        changes in proptest::collection::vec(change(), 1..30),
    ) {
        const NAMES: [&str; 3] = ["a", "b", "c"];
        let mut states = [Some((true, false)); 3];
        let mut world = placed();
        for change in changes {
            match change {
                Change::Template(generation) => world.template = generation.map(deployment),
                Change::Claim(which) => {
                    world.claim = which.map(|which| claim(&match which {
                        0 => json!({}),
                        1 => json!({"clusterAffinity": {"clusterNames": ["a", "c"]}}),
                        2 => json!({"clusterAffinity": {"clusterNames": ["nowhere"]}}),
                        _ => json!({"replicaScheduling": {"replicaSchedulingType": "Divided"}}),
                    }));
                }
                Change::Cluster { index, state } => states[index] = state,
                Change::Agents => world.agents(),
                Change::Steps(count) => {
                    for _ in 0..count {
                        world.step();
                    }
                }
            }
            world.fleet = NAMES
                .iter()
                .zip(states)
                .filter_map(|(name, state)| {
                    let (ready, terminating) = state?;
                    Some(cluster(name, ready, terminating))
                })
                .collect();
        }
        // Agents answer, and take away what is to go, as often as it takes.
        for _ in 0..4 {
            world.settle();
            world.agents();
        }
        world.settle();
        prop_assert!(world.step().is_empty());
        let works = world.works.keys().cloned().collect::<Vec<_>>();
        match &world.binding {
            None => {
                prop_assert!(works.is_empty());
                prop_assert!(world.template.is_none() || world.claim.is_none());
            }
            Some(binding) => {
                let decided = binding
                    .spec
                    .clusters
                    .iter()
                    .map(|target| target.name.clone())
                    .collect::<Vec<_>>();
                prop_assert_eq!(works, decided);
            }
        }
    }
}
