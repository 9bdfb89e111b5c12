//! The controllers run against a toy cluster until nothing is left to do.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    Action, Phase, Pod, Workload, controller, daemonset, deployment, int, job, name, pod,
    replicaset, statefulset, text, uid,
};

/// Objects by kind and name, in one namespace.
#[derive(Default)]
struct Toy {
    objects: BTreeMap<(Workload, String), Value>,
    count: u64,
    /// The smallest number of ready pods seen after the first time there were any.
    fewest_ready: Option<usize>,
    most_pods: usize,
}

const NODES: [&str; 3] = ["a", "b", "c"];

impl Toy {
    fn put(&mut self, kind: Workload, mut object: Value) {
        self.count += 1;
        object["metadata"]["uid"] = json!(format!("uid-{}", self.count));
        object["metadata"]["generation"] = json!(1);
        self.objects
            .insert((kind, name(&object).to_owned()), object);
    }

    fn get(&self, kind: Workload, name: &str) -> &Value {
        &self.objects[&(kind, name.to_owned())]
    }

    fn spec(&mut self, kind: Workload, name: &str, change: &Value) {
        let object = self.objects.get_mut(&(kind, name.to_owned())).unwrap();
        json_patch::merge(&mut object["spec"], change);
        object["metadata"]["generation"] = json!(int(object, "/metadata/generation").unwrap() + 1);
    }

    fn pods(&self) -> Vec<Pod> {
        self.of(Workload::Pod).map(Pod::of).collect()
    }

    fn of(&self, kind: Workload) -> impl Iterator<Item = &Value> {
        self.objects
            .iter()
            .filter(move |((of, _), _)| *of == kind)
            .map(|(_, object)| object)
    }

    fn plan(&mut self) -> Vec<Action> {
        let now = Timestamp::UNIX_EPOCH;
        let pods = self.pods();
        let mut count = self.count;
        let mut fresh = || {
            count += 1;
            format!("x{count}")
        };
        let mut actions = Vec::new();
        for ((kind, _), object) in &self.objects {
            let own = pods
                .iter()
                .filter(|pod| pod.owner.as_deref() == Some(uid(object)))
                .collect::<Vec<_>>();
            actions.extend(match kind {
                Workload::Deployment => {
                    let sets = self
                        .of(Workload::ReplicaSet)
                        .filter(|set| controller(set) == Some(uid(object)));
                    deployment::plan(
                        object,
                        &sets.cloned().map(Arc::new).collect::<Vec<_>>(),
                        now,
                    )
                }
                Workload::ReplicaSet => replicaset::plan(object, &own, &mut fresh),
                Workload::StatefulSet => statefulset::plan(object, &own),
                Workload::DaemonSet => {
                    let labels = json!({});
                    let places = NODES.map(|name| daemonset::Place {
                        name,
                        labels: &labels,
                    });
                    daemonset::plan(object, &own, &places, &mut fresh)
                }
                Workload::Job => job::plan(object, &own, now, &mut fresh),
                Workload::Pod if object.get("status").is_none() => {
                    let completes = object["metadata"]["ownerReferences"][0]["kind"] == "Job";
                    vec![Action::Status {
                        kind: Workload::Pod,
                        namespace: String::new(),
                        name: name(object).into(),
                        status: pod::run(object, "10.0.0.1", completes, now),
                    }]
                }
                Workload::Pod | Workload::Node => Vec::new(),
            });
        }
        self.count = count;
        actions
    }

    /// Runs until nothing is left to do.
    fn settle(&mut self) {
        for _ in 0..200 {
            let actions = self.plan();
            if actions.is_empty() {
                return;
            }
            for action in actions {
                match action {
                    Action::Create { kind, object } => self.put(kind, object),
                    Action::Patch {
                        kind, name, patch, ..
                    } => json_patch::merge(self.objects.get_mut(&(kind, name)).unwrap(), &patch),
                    Action::Status {
                        kind, name, status, ..
                    } => {
                        if let Some(object) = self.objects.get_mut(&(kind, name)) {
                            object["status"] = status;
                        }
                    }
                    Action::Delete { kind, name, .. } => drop(self.objects.remove(&(kind, name))),
                }
            }
            let ready = self.pods().iter().filter(|pod| pod.ready).count();
            self.most_pods = self.most_pods.max(self.pods().len());
            self.fewest_ready = self.fewest_ready.map(|fewest| fewest.min(ready));
        }
        panic!("it does not settle: {:?}", self.plan());
    }
}

fn workload(kind: &str, image: &str, spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w", "namespace": "n"},
        "spec": {
            "selector": {"matchLabels": {"app": "w"}},
            "template": {"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [{"name": "c", "image": image}]}},
        },
    });
    json_patch::merge(&mut object["spec"], spec);
    object
}

fn image(image: &str) -> Value {
    json!({"template": {"spec": {"containers": [{"name": "c", "image": image}]}}})
}

#[test]
fn a_deployment_becomes_ready_pods_and_says_so() {
    let mut toy = Toy::default();
    toy.put(
        Workload::Deployment,
        workload("Deployment", "i:1", &json!({"replicas": 3})),
    );
    toy.settle();
    let status = &toy.get(Workload::Deployment, "w")["status"];
    let counts = [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
    ]
    .map(|field| int(status, &format!("/{field}")));
    assert_eq!(counts, [Some(1), Some(3), Some(3), Some(3), Some(3)]);
    assert_eq!(status.get("unavailableReplicas"), None);
    let reasons = [0, 1].map(|index| text(status, &format!("/conditions/{index}/reason")));
    assert_eq!(
        reasons,
        [
            Some("MinimumReplicasAvailable"),
            Some("NewReplicaSetAvailable")
        ]
    );
    assert_eq!(
        toy.get(Workload::Deployment, "w")["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
        "1"
    );
}

#[test]
fn an_image_that_cannot_run_leaves_a_deployment_unavailable() {
    let mut toy = Toy::default();
    toy.put(
        Workload::Deployment,
        workload("Deployment", "i:broken", &json!({"replicas": 2})),
    );
    toy.settle();
    let status = &toy.get(Workload::Deployment, "w")["status"];
    assert_eq!(
        (
            int(status, "/unavailableReplicas"),
            int(status, "/readyReplicas")
        ),
        (Some(2), None)
    );
    assert_eq!(text(status, "/conditions/0/status"), Some("False"));
}

proptest! {
    /// A rollout ends with the new template alone, and stays within maxSurge and maxUnavailable on the way.
    #[test]
    fn a_rollout_keeps_its_bounds(replicas in 1_i64..12, surge in 0_i64..4, unavailable in 0_i64..4, after in 0_i64..12) {
        let mut toy = Toy::default();
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}});
        toy.put(Workload::Deployment, workload("Deployment", "i:1", &json!({"replicas": replicas, "strategy": strategy})));
        toy.settle();
        toy.fewest_ready = Some(usize::MAX);
        toy.most_pods = 0;
        toy.spec(Workload::Deployment, "w", &image("i:2"));
        toy.settle();
        // With neither, the real controller lets one be unavailable.
        let least = replicas - if surge == 0 { unavailable.max(1) } else { unavailable };
        prop_assert!(toy.fewest_ready.unwrap() >= usize::try_from(least.max(0)).unwrap());
        prop_assert!(toy.most_pods <= usize::try_from(replicas + surge).unwrap());
        prop_assert!(toy.of(Workload::Pod).all(|pod| pod["spec"]["containers"][0]["image"] == "i:2"));

        toy.spec(Workload::Deployment, "w", &json!({"replicas": after}));
        toy.settle();
        prop_assert_eq!(toy.pods().len(), usize::try_from(after).unwrap());
        let status = &toy.get(Workload::Deployment, "w")["status"];
        prop_assert_eq!(int(status, "/observedGeneration"), Some(3));
        prop_assert_eq!(int(status, "/readyReplicas").unwrap_or(0), after);
    }
}

#[test]
fn recreate_ends_the_old_pods_first() {
    let mut toy = Toy::default();
    toy.put(
        Workload::Deployment,
        workload(
            "Deployment",
            "i:1",
            &json!({"replicas": 2, "strategy": {"type": "Recreate"}}),
        ),
    );
    toy.settle();
    toy.most_pods = 0;
    toy.spec(Workload::Deployment, "w", &image("i:2"));
    toy.settle();
    assert_eq!(toy.most_pods, 2);
    assert!(
        toy.of(Workload::Pod)
            .all(|pod| pod["spec"]["containers"][0]["image"] == "i:2")
    );
}

#[test]
fn a_stateful_set_has_numbered_pods_and_replaces_them() {
    let mut toy = Toy::default();
    toy.put(
        Workload::StatefulSet,
        workload(
            "StatefulSet",
            "i:1",
            &json!({"replicas": 3, "serviceName": "s"}),
        ),
    );
    toy.settle();
    assert_eq!(
        toy.pods()
            .into_iter()
            .map(|pod| pod.name)
            .collect::<Vec<_>>(),
        ["w-0", "w-1", "w-2"]
    );
    toy.spec(Workload::StatefulSet, "w", &image("i:2"));
    toy.settle();
    assert!(
        toy.of(Workload::Pod)
            .all(|pod| pod["spec"]["containers"][0]["image"] == "i:2")
    );
    toy.spec(Workload::StatefulSet, "w", &json!({"replicas": 1}));
    toy.settle();
    assert_eq!(
        toy.pods()
            .into_iter()
            .map(|pod| pod.name)
            .collect::<Vec<_>>(),
        ["w-0"]
    );
    let status = &toy.get(Workload::StatefulSet, "w")["status"];
    assert_eq!(status["currentRevision"], status["updateRevision"]);
    assert_eq!(
        (int(status, "/replicas"), int(status, "/readyReplicas")),
        (Some(1), Some(1))
    );
}

#[test]
fn a_daemon_set_has_a_pod_on_every_node() {
    let mut toy = Toy::default();
    toy.put(
        Workload::DaemonSet,
        workload("DaemonSet", "i:1", &json!({})),
    );
    toy.settle();
    let mut nodes = toy
        .pods()
        .into_iter()
        .filter_map(|pod| pod.node)
        .collect::<Vec<_>>();
    nodes.sort();
    assert_eq!(nodes, NODES.map(Into::into));
    let status = &toy.get(Workload::DaemonSet, "w")["status"];
    let counts = [
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "numberMisscheduled",
    ]
    .map(|field| int(status, &format!("/{field}")));
    assert_eq!(counts, [Some(3), Some(3), Some(3), Some(0)]);
}

#[test]
fn a_job_runs_its_completions_and_ends() {
    let mut toy = Toy::default();
    let mut object = workload("Job", "i:1", &json!({"completions": 5, "parallelism": 2}));
    object["apiVersion"] = "batch/v1".into();
    toy.put(Workload::Job, object);
    toy.settle();
    let status = &toy.get(Workload::Job, "w")["status"];
    assert_eq!(
        (int(status, "/succeeded"), int(status, "/active")),
        (Some(5), None)
    );
    assert_eq!(text(status, "/conditions/1/type"), Some("Complete"));
    assert_eq!(
        toy.pods()
            .iter()
            .filter(|pod| pod.phase == Phase::Succeeded)
            .count(),
        5
    );
}
