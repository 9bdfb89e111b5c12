use evenkeel_shared::identity::BOOTSTRAP_AGENTS_GROUP;
use serde_json::json;

use super::*;
use crate::enrol::fixture::{OneCluster, agent_request};

fn agent(cluster: &str) -> UserInfo {
    UserInfo {
        name: format!("system:karmada:agent:{cluster}"),
        groups: vec![AGENTS_GROUP.into()],
        ..UserInfo::default()
    }
}

fn attributes(resource: &str, namespace: &str) -> Attributes {
    let (group, resource) = resource.split_once('/').unwrap();
    Attributes {
        verb: "update".into(),
        group: group.into(),
        resource: resource.into(),
        namespace: namespace.into(),
        ..Attributes::default()
    }
}

fn admit(
    user: &UserInfo,
    attributes: &Attributes,
    old: Option<&Value>,
    mut new: Value,
) -> Result<(), String> {
    AgentAdmission::new(Arc::new(OneCluster))
        .admit(user, attributes, old, Some(&mut new))
        .map_err(|failure| {
            assert_eq!(failure.code, 403);
            failure.message
        })
}

fn cluster(name: &str, id: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"id": id, "syncMode": "Pull"}})
}

fn with(mut object: Value, path: &str, value: Value) -> Value {
    let (parent, field) = path.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[field] = value;
    object
}

#[test]
fn a_cluster_is_written_by_its_agent_in_its_own_fields() {
    let north = || cluster("north", "id-north");
    let taint = || json!([{"key": "k", "effect": "NoSchedule"}]);
    let cases = [
        ("a new one", "south", None, cluster("south", "id-south"), ""),
        (
            "another's",
            "south",
            None,
            cluster("west", "id-south"),
            "belongs to its own cluster: south",
        ),
        (
            "push mode",
            "south",
            None,
            with(cluster("south", "i"), "/spec/syncMode", "Push".into()),
            "syncMode Pull",
        ),
        (
            "an id that is here under another name",
            "south",
            None,
            cluster("south", "id-north"),
            "the cluster with id \"id-north\" is already here under the name \"north\"",
        ),
        ("the same", "north", Some(north()), north(), ""),
        (
            "a region",
            "north",
            Some(north()),
            with(north(), "/spec/region", "r".into()),
            "",
        ),
        (
            "a name that another cluster has",
            "north",
            Some(north()),
            cluster("north", "id-other"),
            "the name \"north\" is taken by the cluster with id \"id-north\", and this agent runs in the one with id \"id-other\"",
        ),
        (
            "an id at last",
            "north",
            Some(cluster("north", "")),
            north(),
            "",
        ),
        (
            "a taint taken away",
            "north",
            Some(with(north(), "/spec/taints", taint())),
            north(),
            "spec.taints is the operator's",
        ),
        (
            "a taint kept",
            "north",
            Some(with(north(), "/spec/taints", taint())),
            with(north(), "/spec/taints", taint()),
            "",
        ),
        (
            "no taints either way",
            "north",
            Some(north()),
            with(north(), "/spec/taints", json!([])),
            "",
        ),
        (
            "a label that draws workloads",
            "north",
            Some(north()),
            with(north(), "/metadata/labels", json!({"tier": "gold"})),
            "metadata.labels is the operator's",
        ),
        (
            "a finalizer taken away",
            "north",
            Some(with(
                north(),
                "/metadata/finalizers",
                json!(["karmada.io/cluster-controller"]),
            )),
            north(),
            "metadata.finalizers is the operator's",
        ),
        (
            "its own annotation",
            "north",
            Some(north()),
            with(
                north(),
                "/metadata/annotations",
                json!({"agent.evenkeel.io/version": "1"}),
            ),
            "",
        ),
        (
            "another annotation",
            "north",
            Some(north()),
            with(north(), "/metadata/annotations", json!({"x": "1"})),
            "metadata.annotations is the operator's",
        ),
    ];
    for (what, by, old, new, expected) in cases {
        let outcome = admit(
            &agent(by),
            &attributes("cluster.karmada.io/clusters", ""),
            old.as_ref(),
            new,
        );
        check(what, outcome, expected);
    }
}

fn check(what: &str, outcome: Result<(), String>, expected: &str) {
    match outcome {
        Ok(()) => assert_eq!(expected, "", "{what} was let through"),
        Err(why) => assert!(
            !expected.is_empty() && why.contains(expected),
            "{what}: {why}"
        ),
    }
}

#[test]
fn what_is_created_has_the_names_that_are_the_agents_own() {
    for (resource, namespace, name, good) in [
        (
            "coordination.k8s.io/leases",
            "karmada-cluster",
            "north",
            true,
        ),
        (
            "coordination.k8s.io/leases",
            "karmada-cluster",
            "south",
            false,
        ),
        (
            "coordination.k8s.io/leases",
            "karmada-system",
            "karmada-agent-north",
            true,
        ),
        (
            "coordination.k8s.io/leases",
            "karmada-system",
            "north",
            false,
        ),
        ("/secrets", "karmada-cluster", "north", true),
        ("/secrets", "karmada-cluster", "north-impersonator", true),
        ("/secrets", "karmada-cluster", "south", false),
        ("topology.evenkeel.io/clustertopologies", "", "north", true),
        ("topology.evenkeel.io/clustertopologies", "", "south", false),
    ] {
        let outcome = admit(
            &agent("north"),
            &attributes(resource, namespace),
            None,
            json!({"metadata": {"name": name, "namespace": namespace}}),
        );
        assert_eq!(
            outcome.is_ok(),
            good,
            "{resource} {namespace}/{name}: {outcome:?}"
        );
    }
}

#[test]
fn of_a_work_an_agent_takes_finalizers_away_and_nothing_else() {
    let work = || json!({"metadata": {"name": "w", "finalizers": ["a", "b"], "resourceVersion": "1"}, "spec": {"workload": {}}, "status": {}});
    for (what, new, expected) in [
        (
            "one finalizer",
            with(work(), "/metadata/finalizers", json!(["b"])),
            "",
        ),
        (
            "all finalizers",
            with(work(), "/metadata/finalizers", Value::Null),
            "",
        ),
        (
            "nothing",
            with(work(), "/metadata/resourceVersion", "2".into()),
            "",
        ),
        (
            "a new finalizer",
            with(work(), "/metadata/finalizers", json!(["a", "c"])),
            "may remove finalizers",
        ),
        (
            "the spec",
            with(work(), "/spec/workload", json!({"manifests": []})),
            "may remove finalizers",
        ),
        (
            "a label",
            with(work(), "/metadata/labels", json!({"x": "y"})),
            "may remove finalizers",
        ),
    ] {
        let outcome = admit(
            &agent("north"),
            &attributes("work.karmada.io/works", "karmada-es-north"),
            Some(&work()),
            new,
        );
        check(what, outcome, expected);
    }
}

#[test]
fn outside_its_namespace_an_agent_tells_of_its_own_cluster() {
    let event = |field: &str, kind: &str, name: &str| json!({"metadata": {"name": "e"}, field: {"kind": kind, "name": name}});
    for (resource, namespace, event, good) in [
        (
            "/events",
            "default",
            event("involvedObject", "Cluster", "north"),
            true,
        ),
        (
            "/events",
            "default",
            event("involvedObject", "Cluster", "south"),
            false,
        ),
        (
            "/events",
            "default",
            event("involvedObject", "Namespace", "north"),
            false,
        ),
        (
            "events.k8s.io/events",
            "default",
            event("regarding", "Cluster", "north"),
            true,
        ),
        (
            "events.k8s.io/events",
            "default",
            event("regarding", "Cluster", "south"),
            false,
        ),
        (
            "/events",
            "default",
            json!({"metadata": {"name": "e"}}),
            false,
        ),
        (
            "/events",
            "karmada-es-north",
            event("involvedObject", "Work", "w"),
            true,
        ),
    ] {
        let mut both = event.clone();
        both["involvedObject"] = json!({"kind": "Cluster", "name": "south"});
        let attributes = attributes(resource, namespace);
        let outcome = admit(&agent("north"), &attributes, None, event.clone());
        assert_eq!(outcome.is_ok(), good, "{event}: {outcome:?}");
        if namespace == "default" {
            assert!(admit(&agent("north"), &attributes, None, both.clone()).is_err());
            let over = admit(&agent("north"), &attributes, Some(&both), event);
            assert!(over.is_err(), "an event about another is not taken over");
        }
    }
}

#[test]
fn requests_of_newcomers_are_judged_when_they_are_made() {
    let token = |groups: &[&str]| UserInfo {
        name: "system:bootstrap:abcdef".into(),
        groups: groups.iter().map(|&group| group.to_owned()).collect(),
        ..UserInfo::default()
    };
    let make = attributes("certificates.k8s.io/certificatesigningrequests", "");
    let full = token(&[BOOTSTRAP_GROUP, BOOTSTRAP_AGENTS_GROUP]);
    assert_eq!(admit(&full, &make, None, agent_request("south")), Ok(()));
    let taken = admit(&full, &make, None, agent_request("north")).unwrap_err();
    assert!(taken.contains("the name \"north\" is taken"), "{taken}");
    let mut lying = agent_request("north");
    lying["spec"]["username"] = "system:karmada:agent:north".into();
    lying["spec"]["groups"] = json!([AGENTS_GROUP]);
    assert!(
        admit(&full, &make, None, lying).is_err(),
        "what a body says of its maker counts for nothing"
    );
    assert_eq!(
        admit(
            &token(&["devs"]),
            &make,
            None,
            json!({"spec": {"request": "noise"}})
        ),
        Ok(()),
        "what others ask is an administrator's to judge"
    );
}

#[test]
fn others_are_not_looked_at() {
    let user = UserInfo {
        name: "alice".into(),
        ..UserInfo::default()
    };
    let outcome = admit(
        &user,
        &attributes("cluster.karmada.io/clusters", ""),
        Some(&cluster("north", "id-north")),
        cluster("north", "id-other"),
    );
    assert_eq!(outcome, Ok(()));
}
