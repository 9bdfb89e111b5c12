//! Passes over one Work, against servers in memory.

use std::sync::Arc;

use evenkeel_shared::{condition, stamps::APPLIED, work::Work};
use serde_json::{Value, json};

use super::reconcile::{Objects, Pass, Reconciler};
use crate::{fake::Fake, status::apis::Catalogue};

const WORK: &str = "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-m1/works/w";
const MAP: &str = "/api/v1/namespaces/n/configmaps/a";
const OTHER: &str = "/api/v1/namespaces/n/configmaps/b";
const NAMESPACE: &str = "/api/v1/namespaces/n";

struct Fleet {
    control: Fake,
    member: Fake,
    known: Objects,
}

fn catalogue() -> Arc<Catalogue> {
    Arc::new(Catalogue::with(&[
        ("v1", "namespaces", "Namespace", false),
        ("v1", "configmaps", "ConfigMap", true),
    ]))
}

fn map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"}, "data": {"k": value}})
}

fn work(manifests: &[Value]) -> Value {
    json!({
        "apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
        "metadata": {"name": "w", "namespace": "karmada-es-m1"},
        "spec": {"workload": {"manifests": manifests}},
    })
}

impl Fleet {
    fn new(manifests: &[Value]) -> Self {
        let control = Fake::default();
        control.put(WORK, work(manifests));
        let member = Fake::default();
        member.put(NAMESPACE, json!({"metadata": {"name": "n"}}));
        Self {
            control,
            member,
            known: Objects::new(),
        }
    }

    fn work(&self) -> Work {
        serde_json::from_value(self.control.get(WORK).unwrap()).unwrap()
    }

    /// Changes the Work as the control plane would.
    fn edit(&self, change: impl FnOnce(&mut Value)) {
        let mut object = self.control.get(WORK).unwrap();
        change(&mut object);
        self.control.put(WORK, object);
    }

    async fn pass(&mut self) -> Pass {
        let reconciler = Reconciler {
            control: self.control.caller(),
            member: self.member.caller(),
            catalogue: catalogue(),
        };
        let pass = reconciler
            .run(Arc::new(self.work()), self.known.clone())
            .await;
        self.known = pass.objects.clone();
        pass
    }

    fn applied(&self) -> (String, String) {
        let status = self.work().status.unwrap_or_default();
        let applied = condition::find(&status.conditions, APPLIED).unwrap();
        (applied.status.clone(), applied.message.clone())
    }
}

#[tokio::test]
async fn a_new_work_is_marked_applied_and_reported() {
    let mut fleet = Fleet::new(&[map("a", "1")]);
    let pass = fleet.pass().await;
    assert_eq!(pass.unfinished, None);
    let placed = fleet.member.get(MAP).unwrap();
    assert_eq!(placed["metadata"]["labels"]["karmada.io/managed"], "true");
    assert_eq!(placed["data"]["k"], "1");
    let work = fleet.work();
    let finalizers = work.metadata.finalizers.unwrap();
    assert_eq!(finalizers, ["karmada.io/execution-controller"]);
    assert_eq!(fleet.applied().0, "True");
    assert_eq!(work.status.unwrap().manifest_statuses.len(), 1);
}

#[tokio::test]
async fn a_second_pass_writes_nothing_and_a_restart_writes_nothing_new() {
    let mut fleet = Fleet::new(&[map("a", "1")]);
    fleet.pass().await;
    fleet.member.writes();
    fleet.control.writes();
    fleet.pass().await;
    assert_eq!(fleet.member.writes(), Vec::<String>::new());
    fleet.known.clear();
    fleet.pass().await;
    assert_eq!(fleet.member.writes(), [format!("PATCH {MAP}")]);
    assert_eq!(fleet.control.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn what_somebody_else_made_is_left_alone_unless_told_otherwise() {
    let mut fleet = Fleet::new(&[map("a", "1")]);
    fleet.member.put(MAP, map("a", "theirs"));
    let pass = fleet.pass().await;
    assert!(pass.unfinished.is_some());
    assert_eq!(fleet.member.get(MAP).unwrap()["data"]["k"], "theirs");
    let (status, message) = fleet.applied();
    assert_eq!(status, "False");
    assert!(
        message.starts_with("Failed to apply all manifests (0/1): ConfigMap n/a: "),
        "{message}"
    );
    fleet.edit(|work| {
        work["metadata"]["annotations"] =
            json!({"work.karmada.io/conflict-resolution": "overwrite"});
    });
    fleet.pass().await;
    assert_eq!(fleet.member.get(MAP).unwrap()["data"]["k"], "1");
    assert_eq!(fleet.applied().0, "True");
}

#[tokio::test]
async fn a_namespace_that_was_there_outlives_its_work() {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": {"karmada.io/managed": "true"}}});
    let mut fleet = Fleet::new(&[map("a", "1"), namespace.clone()]);
    fleet
        .member
        .put(NAMESPACE, json!({"metadata": {"name": "n"}}));
    fleet.pass().await;
    // Before what goes into it.
    assert_eq!(
        fleet.member.writes(),
        [format!("PATCH {NAMESPACE}"), format!("PATCH {MAP}")]
    );
    fleet.edit(|work| work["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    let pass = fleet.pass().await;
    assert!(pass.retired);
    assert!(fleet.member.get(NAMESPACE).is_some());
    assert_eq!(fleet.member.get(MAP), None);
}

#[tokio::test]
async fn what_left_the_work_goes_after_a_restart_too() {
    let mut fleet = Fleet::new(&[map("a", "1"), map("b", "1")]);
    fleet.pass().await;
    assert!(fleet.member.get(OTHER).is_some());
    fleet.known.clear();
    fleet.edit(|work| work["spec"]["workload"]["manifests"] = json!([map("a", "1")]));
    fleet.pass().await;
    assert_eq!(fleet.member.get(OTHER), None);
    assert!(fleet.member.get(MAP).is_some());
    assert_eq!(fleet.work().status.unwrap().manifest_statuses.len(), 1);
}

#[tokio::test]
async fn a_deleted_work_takes_only_its_own_with_it() {
    let mut fleet = Fleet::new(&[map("a", "1"), map("b", "1")]);
    fleet.pass().await;
    let mut taken = fleet.member.get(OTHER).unwrap();
    taken["metadata"]["annotations"]["work.karmada.io/name"] = json!("another");
    fleet.member.put(OTHER, taken);
    fleet.edit(|work| work["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    fleet.member.break_down(Some(503));
    let pass = fleet.pass().await;
    assert!(!pass.retired && pass.unfinished.is_some());
    assert!(
        fleet
            .work()
            .metadata
            .finalizers
            .is_some_and(|names| !names.is_empty())
    );
    fleet.member.break_down(None);
    assert!(fleet.pass().await.retired);
    assert_eq!(fleet.member.get(MAP), None);
    assert!(fleet.member.get(OTHER).is_some());
    assert_eq!(
        fleet.work().metadata.finalizers.unwrap_or_default(),
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn preserved_objects_stay_without_marks() {
    let mut fleet = Fleet::new(&[map("a", "1")]);
    fleet.edit(|work| work["spec"]["preserveResourcesOnDeletion"] = json!(true));
    fleet.pass().await;
    fleet.edit(|work| work["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    assert!(fleet.pass().await.retired);
    let kept = fleet.member.get(MAP).unwrap();
    assert_eq!(kept["metadata"]["labels"], json!({}));
    assert_eq!(kept["data"]["k"], "1");
}

#[tokio::test]
async fn a_suspended_work_touches_nothing() {
    let mut fleet = Fleet::new(&[map("a", "1")]);
    fleet.edit(|work| work["spec"]["suspendDispatching"] = json!(true));
    assert_eq!(fleet.pass().await.unfinished, None);
    assert_eq!(fleet.member.writes(), Vec::<String>::new());
    let conditions = fleet.work().status.unwrap().conditions;
    assert_eq!(conditions[0].reason, "SuspendDispatching");
}

#[tokio::test]
async fn a_member_that_is_away_does_not_unsay_what_was_applied() {
    let mut fleet = Fleet::new(&[map("a", "1")]);
    fleet.pass().await;
    fleet.member.break_down(Some(503));
    fleet.edit(|work| work["spec"]["workload"]["manifests"] = json!([map("a", "2")]));
    assert!(fleet.pass().await.unfinished.is_some());
    assert_eq!(fleet.applied().0, "True");
    fleet.member.break_down(None);
    assert_eq!(fleet.pass().await.unfinished, None);
    assert_eq!(fleet.member.get(MAP).unwrap()["data"]["k"], "2");
}

#[tokio::test]
async fn a_kind_that_is_not_served_asks_for_discovery() {
    let mut fleet =
        Fleet::new(&[json!({"apiVersion": "x.io/v1", "kind": "Foo", "metadata": {"name": "f"}})]);
    let pass = fleet.pass().await;
    assert!(pass.catalogue_missed);
    assert!(fleet.applied().1.contains("does not serve x.io/v1 Foo"));
}

#[tokio::test]
async fn a_namespace_that_is_missing_is_made_and_stays() {
    let mut elsewhere = map("a", "1");
    elsewhere["metadata"]["namespace"] = json!("new");
    let mut fleet = Fleet::new(&[elsewhere]);
    assert_eq!(fleet.pass().await.unfinished, None);
    let namespace = fleet.member.get("/api/v1/namespaces/new").unwrap();
    assert_eq!(namespace["metadata"].get("labels"), None);
    fleet.edit(|work| work["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    assert!(fleet.pass().await.retired);
    assert!(fleet.member.get("/api/v1/namespaces/new").is_some());
    assert_eq!(
        fleet.member.get("/api/v1/namespaces/new/configmaps/a"),
        None
    );
}
