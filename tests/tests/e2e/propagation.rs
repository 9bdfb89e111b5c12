//! A workload goes where a policy says, its status comes back, and what is changed or deleted behind our back is put
//! right.

use std::time::Duration;

use evenkeel_tests::harness::{Agent, ControlPlane, Target, eventually, throughout};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::{ARRIVES, JOINS};

/// An image that a real cluster most likely has or can get; the simulated one runs anything.
fn image() -> String {
    std::env::var("EVENKEEL_TEST_IMAGE").unwrap_or_else(|_| "registry.k8s.io/pause:3.10".into())
}

fn deployment(namespace: &str, name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": image()}]}},
        },
    })
}

/// A policy for a Deployment. `clusters`: names, or none for all.
fn policy(namespace: &str, name: &str, clusters: &[&str]) -> Value {
    let mut policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": name, "namespace": namespace},
        "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": name}], "placement": {}},
    });
    if !clusters.is_empty() {
        policy["spec"]["placement"] = json!({"clusterAffinity": {"clusterNames": clusters}});
    }
    policy
}

fn deployments_path(namespace: &str) -> String {
    format!("/apis/apps/v1/namespaces/{namespace}/deployments")
}

async fn create(control_plane: &ControlPlane, path: &str, object: &Value) -> Value {
    let answer = control_plane
        .admin_endpoint()
        .once(http::Method::POST, path, Some(object))
        .await
        .unwrap();
    assert!(answer.code.is_success(), "POST {path}: {}", answer.text());
    answer.json().unwrap()
}

async fn create_both(
    control_plane: &ControlPlane,
    namespace: &str,
    name: &str,
    replicas: u32,
    clusters: &[&str],
) {
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    create(control_plane, "/api/v1/namespaces", &body).await;
    create(
        control_plane,
        &deployments_path(namespace),
        &deployment(namespace, name, replicas),
    )
    .await;
    let policies =
        format!("/apis/policy.karmada.io/v1alpha1/namespaces/{namespace}/propagationpolicies");
    create(control_plane, &policies, &policy(namespace, name, clusters)).await;
}

/// Waits until the member has the Deployment with so many replicas.
async fn arrives(target: &Target, name: &str, replicas: i32) -> Deployment {
    let api = Api::<Deployment>::namespaced(target.client.clone(), &target.namespace);
    eventually(
        &format!("{name} arrives in {}", target.name),
        ARRIVES,
        async || {
            let found = api.get(name).await.map_err(|error| error.to_string())?;
            match found.spec.as_ref().and_then(|spec| spec.replicas) {
                Some(now) if now == replicas => Ok(found),
                now => Err(format!("it asks for {now:?} replicas")),
            }
        },
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_arrives_in_the_member_that_its_policy_names_and_its_status_comes_back() {
    let control_plane = ControlPlane::start().await;
    let member = Target::start("alpha").await;
    let other = Target::simulated("beta", "us-east-1").await;
    let _agents = [
        Agent::join(&control_plane, &member),
        Agent::join(&control_plane, &other),
    ];
    control_plane.turns("alpha", "True", JOINS).await;
    control_plane.turns("beta", "True", JOINS).await;
    let namespace = member.namespace.clone();
    create_both(&control_plane, &namespace, "web", 2, &["alpha"]).await;

    let arrived = arrives(&member, "web", 2).await;
    assert_eq!(
        arrived
            .metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get("karmada.io/managed"))
            .map(String::as_str),
        Some("true")
    );

    let binding = format!(
        "/apis/work.karmada.io/v1alpha2/namespaces/{namespace}/resourcebindings/web-deployment"
    );
    eventually("the binding is applied and healthy", ARRIVES, async || {
        let binding = control_plane.object(&binding).await?;
        let items = binding["status"]["aggregatedStatus"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        match items.as_slice() {
            [one]
                if one["clusterName"] == "alpha"
                    && one["applied"] == true
                    && one["health"] == "Healthy" =>
            {
                Ok(())
            }
            _ => Err(binding["status"].to_string()),
        }
    })
    .await;
    let works = control_plane
        .object("/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-alpha/works")
        .await
        .unwrap();
    let works = works["items"].as_array().unwrap();
    assert!(
        works
            .iter()
            .any(|work| work["spec"]["workload"]["manifests"][0]["kind"] == "Deployment"),
        "{works:?}"
    );
    for work in works {
        let applied = work["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|condition| condition["type"] == "Applied" && condition["status"] == "True");
        assert!(applied, "{work}");
    }
    eventually(
        "the Deployment of the control plane shows the member's replicas",
        ARRIVES,
        async || {
            let object = control_plane
                .object(&format!("{}/web", deployments_path(&namespace)))
                .await?;
            let status = &object["status"];
            if status["readyReplicas"] == 2 && status["replicas"] == 2 {
                Ok(())
            } else {
                Err(status.to_string())
            }
        },
    )
    .await;
    let elsewhere = Api::<Deployment>::all(other.client.clone())
        .list(&kube::api::ListParams::default())
        .await
        .unwrap();
    assert!(elsewhere.items.is_empty(), "beta was not named");
    member.clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_without_clusters_means_all_and_changes_follow() {
    let control_plane = ControlPlane::start().await;
    let one = Target::simulated("alpha", "eu-west-1").await;
    let mut two = Target::simulated("beta", "us-east-1").await;
    let _agents = [
        Agent::join(&control_plane, &one),
        Agent::join(&control_plane, &two),
    ];
    control_plane.turns("alpha", "True", JOINS).await;
    control_plane.turns("beta", "True", JOINS).await;
    two.namespace.clone_from(&one.namespace);
    let namespace = one.namespace.clone();
    create_both(&control_plane, &namespace, "web", 1, &[]).await;
    arrives(&one, "web", 1).await;
    arrives(&two, "web", 1).await;

    let path = format!("{}/web", deployments_path(&namespace));
    let mut connection = control_plane.admin_endpoint().connect().await.unwrap();
    let answer = connection
        .patch(&path, &json!({"spec": {"replicas": 3}}))
        .await
        .unwrap();
    assert!(answer.code.is_success(), "{}", answer.text());
    arrives(&one, "web", 3).await;
    arrives(&two, "web", 3).await;

    let narrowed = json!({"spec": {"placement": {"clusterAffinity": {"clusterNames": ["beta"]}}}});
    let policy =
        format!("/apis/policy.karmada.io/v1alpha1/namespaces/{namespace}/propagationpolicies/web");
    let answer = connection.patch(&policy, &narrowed).await.unwrap();
    assert!(answer.code.is_success(), "{}", answer.text());
    gone(&one, "web").await;
    arrives(&two, "web", 3).await;
}

async fn gone(target: &Target, name: &str) {
    let api = Api::<Deployment>::namespaced(target.client.clone(), &target.namespace);
    eventually(
        &format!("{name} is gone from {}", target.name),
        ARRIVES,
        async || match api.get_opt(name).await {
            Ok(None) => Ok(()),
            Ok(Some(_)) => Err("still there".to_owned()),
            Err(error) => Err(error.to_string()),
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_in_the_member_is_put_back_and_deletion_reaches_it() {
    let control_plane = ControlPlane::start().await;
    let member = Target::start("alpha").await;
    let _agent = Agent::join(&control_plane, &member);
    control_plane.turns("alpha", "True", JOINS).await;
    let namespace = member.namespace.clone();
    create_both(&control_plane, &namespace, "web", 2, &["alpha"]).await;
    arrives(&member, "web", 2).await;

    let api = Api::<Deployment>::namespaced(member.client.clone(), &namespace);
    let scaled = json!({"spec": {"replicas": 5}});
    api.patch("web", &PatchParams::default(), &Patch::Merge(&scaled))
        .await
        .unwrap();
    arrives(&member, "web", 2).await;

    // What the member's own controllers add is theirs: it stays, and nobody fights over it.
    let note = json!({"metadata": {"annotations": {"example.io/note": "mine"}}});
    let noted = api
        .patch("web", &PatchParams::default(), &Patch::Merge(&note))
        .await
        .unwrap();
    let generation = noted.metadata.generation;
    throughout(
        "the member's own annotation stays",
        Duration::from_secs(3),
        async || {
            let now = api.get("web").await.map_err(|error| error.to_string())?;
            let kept = now
                .metadata
                .annotations
                .as_ref()
                .is_some_and(|all| all.contains_key("example.io/note"));
            if kept && now.metadata.generation == generation {
                Ok(())
            } else {
                Err(format!("{:?}", now.metadata))
            }
        },
    )
    .await;

    let before = api.get("web").await.unwrap().metadata.uid;
    api.delete("web", &DeleteParams::background())
        .await
        .unwrap();
    eventually("it is made again", ARRIVES, async || {
        match api.get_opt("web").await {
            Ok(Some(again)) if again.metadata.uid != before => Ok(()),
            Ok(other) => Err(format!("{:?}", other.map(|found| found.metadata.uid))),
            Err(error) => Err(error.to_string()),
        }
    })
    .await;

    let path = format!("{}/web", deployments_path(&namespace));
    let answer = control_plane
        .admin_endpoint()
        .once(http::Method::DELETE, &path, None)
        .await
        .unwrap();
    assert!(answer.code.is_success(), "{}", answer.text());
    gone(&member, "web").await;
    eventually("the binding and the Work are gone", ARRIVES, async || {
        let works = control_plane
            .object("/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-alpha/works")
            .await?;
        let left = works["items"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|work| work["spec"]["workload"]["manifests"][0]["kind"] == "Deployment");
        let bindings = control_plane
            .object(&format!(
                "/apis/work.karmada.io/v1alpha2/namespaces/{namespace}/resourcebindings"
            ))
            .await?;
        let bindings = bindings["items"].as_array().map_or(0, Vec::len);
        match (left.count(), bindings) {
            (0, 0) => Ok(()),
            left => Err(format!("{left:?} are left")),
        }
    })
    .await;
    member.clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workload_that_cannot_run_is_reported_unhealthy() {
    let control_plane = ControlPlane::start().await;
    let member = Target::simulated("alpha", "eu-west-1").await;
    let _agent = Agent::join(&control_plane, &member);
    control_plane.turns("alpha", "True", JOINS).await;
    let namespace = member.namespace.clone();
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    create(&control_plane, "/api/v1/namespaces", &body).await;
    let mut broken = deployment(&namespace, "web", 1);
    broken["spec"]["template"]["spec"]["containers"][0]["image"] =
        "registry.example/web:broken".into();
    create(&control_plane, &deployments_path(&namespace), &broken).await;
    let policies =
        format!("/apis/policy.karmada.io/v1alpha1/namespaces/{namespace}/propagationpolicies");
    create(
        &control_plane,
        &policies,
        &policy(&namespace, "web", &["alpha"]),
    )
    .await;
    let binding = format!(
        "/apis/work.karmada.io/v1alpha2/namespaces/{namespace}/resourcebindings/web-deployment"
    );
    eventually("the binding says Unhealthy", ARRIVES, async || {
        let binding = control_plane.object(&binding).await?;
        let status = &binding["status"]["aggregatedStatus"][0];
        if status["applied"] == true && status["health"] == "Unhealthy" {
            Ok(())
        } else {
            Err(status.to_string())
        }
    })
    .await;
}
