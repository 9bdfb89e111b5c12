//! Decisions: a table of cases, and what holds of all of them.

use std::sync::Arc;

use evenkeel_placement::{
    decision::{Decision, decide, reason},
    fleet::ClusterView,
};
use evenkeel_shared::binding::{ResourceBindingSpec, TargetCluster};
use k8s_openapi::api::core::v1::Taint;
use proptest::prelude::*;
use serde_json::{Value, json};

fn cluster(name: &str) -> ClusterView {
    ClusterView {
        name: name.into(),
        ready: true,
        apis: Arc::new([("apps/v1".to_owned(), "Deployment".to_owned())].into()),
        apis_complete: true,
        ..ClusterView::default()
    }
}

fn tainted(name: &str) -> ClusterView {
    let mut cluster = cluster(name);
    cluster.taints.push(Taint {
        key: "cluster.karmada.io/unreachable".into(),
        effect: "NoSchedule".into(),
        ..Taint::default()
    });
    cluster
}

fn terminating(name: &str) -> ClusterView {
    ClusterView {
        terminating: true,
        ..cluster(name)
    }
}

fn bare(name: &str) -> ClusterView {
    ClusterView {
        apis: Arc::default(),
        ..cluster(name)
    }
}

fn binding(placement: &Value, current: &[&str]) -> ResourceBindingSpec {
    let clusters = current
        .iter()
        .map(|name| json!({"name": name, "replicas": 2}))
        .collect::<Vec<_>>();
    serde_json::from_value(json!({
        "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"},
        "replicas": 2, "placement": placement, "clusters": clusters,
    }))
    .unwrap()
}

fn names(decision: &Decision) -> Vec<&str> {
    decision
        .clusters
        .iter()
        .map(|target| target.name.as_str())
        .collect()
}

type Names = &'static [&'static str];

#[test]
fn decisions() {
    let fleet = [
        cluster("a"),
        tainted("b"),
        cluster("c"),
        bare("d"),
        terminating("e"),
    ];
    let table: &[(&str, Value, Names, Names, &str)] = &[
        (
            "no placement takes all that fit",
            json!({}),
            &[],
            &["a", "c"],
            reason::SUCCESS,
        ),
        (
            "names",
            json!({"clusterAffinity": {"clusterNames": ["c"]}}),
            &[],
            &["c"],
            reason::SUCCESS,
        ),
        (
            "exclude",
            json!({"clusterAffinity": {"exclude": ["c"]}}),
            &[],
            &["a"],
            reason::SUCCESS,
        ),
        (
            "a toleration opens a tainted cluster",
            json!({"clusterTolerations": [{"operator": "Exists"}]}),
            &[],
            &["a", "b", "c"],
            reason::SUCCESS,
        ),
        (
            "what runs on a tainted cluster stays there",
            json!({}),
            &["b"],
            &["a", "b", "c"],
            reason::SUCCESS,
        ),
        (
            "a cluster that left the affinity loses it",
            json!({"clusterAffinity": {"clusterNames": ["c"]}}),
            &["a", "c"],
            &["c"],
            reason::SUCCESS,
        ),
        (
            "a kind that is not served",
            json!({"clusterAffinity": {"clusterNames": ["d"]}}),
            &[],
            &[],
            reason::NO_CLUSTER_FIT,
        ),
        (
            "nothing fits: the last placement stays",
            json!({"clusterAffinity": {"clusterNames": ["nowhere"]}}),
            &["a"],
            &["a"],
            reason::NO_CLUSTER_FIT,
        ),
        (
            "a cluster that goes is dropped, the last one too",
            json!({"clusterAffinity": {"clusterNames": ["e"]}}),
            &["e"],
            &[],
            reason::NO_CLUSTER_FIT,
        ),
        (
            "a cluster that is gone is dropped",
            json!({}),
            &["a", "gone"],
            &["a", "c"],
            reason::SUCCESS,
        ),
        (
            "divided is not placed",
            json!({"replicaScheduling": {"replicaSchedulingType": "Divided"}}),
            &[],
            &[],
            reason::NOT_SUPPORTED,
        ),
        (
            "divided leaves what runs",
            json!({"replicaScheduling": {"replicaSchedulingType": "Divided"}}),
            &["a", "e"],
            &["a"],
            reason::NOT_SUPPORTED,
        ),
        (
            "duplicated said aloud",
            json!({"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}),
            &[],
            &["a", "c"],
            reason::SUCCESS,
        ),
        (
            "spread constraints are not ignored",
            json!({"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1}]}),
            &[],
            &[],
            reason::NOT_SUPPORTED,
        ),
        (
            "the first affinity term with a candidate",
            json!({"clusterAffinities": [
                {"affinityName": "first", "clusterNames": ["b"]},
                {"affinityName": "second", "clusterNames": ["c"]}]}),
            &[],
            &["c"],
            reason::SUCCESS,
        ),
    ];
    for (name, placement, current, expected, reason) in table {
        let binding = binding(placement, current);
        let decision = decide(&binding, "", &fleet, &[], &[]);
        assert_eq!(names(&decision), *expected, "{name}: {}", decision.message);
        assert_eq!(decision.reason, *reason, "{name}");
        assert_eq!(decision.scheduled, *reason == reason::SUCCESS, "{name}");
        assert!(!decision.message.is_empty(), "{name}");
    }
}

#[test]
fn a_term_in_use_is_not_left_for_an_earlier_one() {
    let fleet = [cluster("a"), cluster("b")];
    let placement = json!({"clusterAffinities": [
        {"affinityName": "first", "clusterNames": ["a"]},
        {"affinityName": "second", "clusterNames": ["b"]}]});
    let binding = binding(&placement, &["b"]);
    let decision = decide(&binding, "second", &fleet, &[], &[]);
    assert_eq!(names(&decision), ["b"]);
    assert_eq!(decision.affinity_name, "second");
}

#[test]
fn the_reason_counts_every_cluster() {
    let fleet = [tainted("a"), tainted("b"), bare("c")];
    let decision = decide(&binding(&json!({}), &[]), "", &fleet, &[], &[]);
    assert_eq!(
        decision.message,
        "0/3 clusters are available: 2 cluster(s) had untolerated taint \
         {cluster.karmada.io/unreachable:NoSchedule}, 1 cluster(s) did not have the API resource."
    );
    let decision = decide(
        &binding(&json!({}), &[]),
        "",
        &[] as &[ClusterView],
        &[],
        &[],
    );
    assert_eq!(
        decision.message,
        "0/0 clusters are available: no cluster has joined."
    );
}

#[test]
fn wishes_for_later_are_named_beside_a_success() {
    let fleet = [cluster("a")];
    let decision = decide(&binding(&json!({}), &[]), "", &fleet, &[], &["failover"]);
    assert!(decision.scheduled);
    assert!(decision.message.contains("Not acted on yet: failover"));
    let held = decide(
        &binding(&json!({}), &[]),
        "",
        &fleet,
        &["propagateDeps"],
        &[],
    );
    assert!(!held.scheduled);
    assert!(held.message.contains("propagateDeps"));
}

fn any_cluster() -> impl Strategy<Value = ClusterView> {
    (
        "[a-f]",
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(name, taint, gone, api, complete)| {
            let mut view = if taint {
                tainted(&name)
            } else {
                cluster(&name)
            };
            view.terminating = gone;
            if !api {
                view.apis = Arc::default();
            }
            view.apis_complete = complete;
            view
        })
}

fn any_placement() -> impl Strategy<Value = Value> {
    let names = || proptest::collection::vec("[a-f]", 0..4);
    prop_oneof![
        Just(json!({})),
        names().prop_map(|names| json!({"clusterAffinity": {"clusterNames": names}})),
        names().prop_map(|names| json!({"clusterAffinity": {"exclude": names}})),
        (names(), names()).prop_map(|(first, second)| json!({"clusterAffinities": [
            {"affinityName": "first", "clusterNames": first},
            {"affinityName": "second", "clusterNames": second}]})),
        Just(json!({"replicaScheduling": {"replicaSchedulingType": "Divided"}})),
    ]
}

proptest! {
    /// A decision that was carried out is made again, and changes nothing; a workload that runs on a cluster that
    /// stays never ends up nowhere; nothing is placed on a cluster that goes.
    #[test]
    fn decisions_are_stable_and_never_empty_a_running_workload(
        fleet in proptest::collection::vec(any_cluster(), 0..7),
        placement in any_placement(),
        current in proptest::collection::btree_set("[a-g]", 0..4),
    ) {
        let mut fleet = fleet;
        fleet.sort_by(|a, b| a.name.cmp(&b.name));
        fleet.dedup_by(|a, b| a.name == b.name);
        let current = current.iter().map(String::as_str).collect::<Vec<_>>();
        let mut binding = binding(&placement, &current);
        let first = decide(&binding, "", &fleet, &[], &[]);

        let staying = |target: &TargetCluster| fleet
            .iter()
            .any(|cluster| cluster.name == target.name && !cluster.terminating);
        prop_assert!(first.clusters.iter().all(staying));
        if binding.clusters.iter().any(staying) {
            prop_assert!(!first.clusters.is_empty());
        }
        prop_assert!(first.clusters.is_sorted_by(|a, b| a.name < b.name));

        binding.clusters.clone_from(&first.clusters);
        let second = decide(&binding, &first.affinity_name, &fleet, &[], &[]);
        prop_assert_eq!(&second.clusters, &first.clusters);
        prop_assert_eq!(second.reason, first.reason);
    }
}
