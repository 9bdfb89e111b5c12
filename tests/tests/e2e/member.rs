//! A simulated member behaves as a cluster, and breaks as it is told to.

use std::time::Duration;

use evenkeel_tests::{
    harness::{Kubectl, Target, eventually},
    member::{front::Network, population::Population},
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Node, Pod},
};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::ARRIVES;

async fn pods(target: &Target) -> Vec<Pod> {
    Api::<Pod>::namespaced(target.client.clone(), &target.namespace)
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
}

async fn has_ready(target: &Target, count: usize) {
    eventually(&format!("{count} pods are ready"), ARRIVES, async || {
        let pods = pods(target).await;
        let ready = pods.iter().filter(|pod| {
            let conditions = pod
                .status
                .as_ref()
                .and_then(|status| status.conditions.as_ref());
            conditions.is_some_and(|all| {
                all.iter()
                    .any(|condition| condition.type_ == "Ready" && condition.status == "True")
            })
        });
        let (ready, all) = (ready.count(), pods.len());
        if (ready, all) == (count, count) {
            Ok(())
        } else {
            Err(format!("{ready} of {all} are"))
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deployments_become_pods_and_go_with_them() {
    let target = Target::simulated("alpha", "eu-west-1").await;
    target.create_namespace().await;
    let api = Api::<Deployment>::namespaced(target.client.clone(), &target.namespace);
    let deployment = serde_json::from_value(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "example/web:1"}]}},
        },
    }))
    .unwrap();
    api.create(&PostParams::default(), &deployment)
        .await
        .unwrap();
    has_ready(&target, 3).await;
    let nodes = pods(&target)
        .await
        .into_iter()
        .filter_map(|pod| pod.spec?.node_name)
        .collect::<std::collections::BTreeSet<_>>();
    assert_eq!(nodes.len(), 3, "pods are spread over the nodes");

    api.patch(
        "web",
        &PatchParams::default(),
        &Patch::Merge(json!({"spec": {"replicas": 5}})),
    )
    .await
    .unwrap();
    has_ready(&target, 5).await;
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "example/web:2"}]}}}});
    api.patch("web", &PatchParams::default(), &Patch::Merge(image))
        .await
        .unwrap();
    eventually("the rollout is complete", ARRIVES, async || {
        let now = api.get("web").await.map_err(|error| error.to_string())?;
        let status = now.status.unwrap_or_default();
        let done = status.observed_generation == now.metadata.generation
            && status.updated_replicas == Some(5)
            && status.available_replicas == Some(5)
            && status.replicas == Some(5);
        if done {
            Ok(())
        } else {
            Err(format!("{status:?}"))
        }
    })
    .await;
    api.delete("web", &DeleteParams::background())
        .await
        .unwrap();
    has_ready(&target, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_is_what_kubectl_expects_of_a_cluster() {
    if !Kubectl::is_there() {
        return;
    }
    let target = Target::simulated("alpha", "eu-west-1").await;
    let kubectl = target.kubectl();
    let nodes = kubectl
        .ok(&[
            "get",
            "nodes",
            "-L",
            "topology.kubernetes.io/zone",
            "--no-headers",
        ])
        .await;
    for zone in ["eu-west-1a", "eu-west-1b", "eu-west-1c"] {
        assert!(
            nodes
                .lines()
                .any(|line| line.contains("Ready") && line.ends_with(zone)),
            "{zone} in {nodes}"
        );
    }
    let template = |restart: &str| {
        json!({
            "metadata": {"labels": {"app": "web"}},
            "spec": {"restartPolicy": restart, "containers": [{"name": "main", "image": "example/web:1"}]},
        })
    };
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template("Always")},
    });
    let create = ["create", "--validate=false", "-f", "-"];
    kubectl.ok_with(&create, &deployment.to_string()).await;
    let rolled = kubectl
        .ok(&["rollout", "status", "deployment", "web", "--timeout=30s"])
        .await;
    assert!(rolled.contains("successfully rolled out"), "{rolled}");
    let table = kubectl.ok(&["get", "pods", "--no-headers"]).await;
    assert!(
        table.lines().count() == 2
            && table
                .lines()
                .all(|line| line.contains("1/1") && line.contains("Running")),
        "{table}"
    );
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"}, "spec": {"template": template("Never")},
    });
    kubectl.ok_with(&create, &job.to_string()).await;
    kubectl
        .ok(&[
            "wait",
            "job/once",
            "--for=condition=Complete",
            "--timeout=30s",
        ])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_breaks_as_it_is_told_to() {
    let target = Target::simulated("alpha", "eu-west-1").await;
    let switches = target.member().switches.clone();
    let ready = async |deadline: Duration| {
        let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
        tokio::time::timeout(deadline, target.client.request_text(request)).await
    };
    assert_eq!(ready(ARRIVES).await.unwrap().unwrap(), "ok");
    assert!(switches.fail(&["nonsense"]).is_err());
    switches.fail(&["etcd"]).unwrap();
    let error = ready(ARRIVES).await.unwrap().unwrap_err().to_string();
    assert!(error.contains("etcd"), "{error}");
    switches.fail(&[]).unwrap();

    switches
        .change(|state| state.network = Network::Hang)
        .unwrap();
    assert!(
        ready(Duration::from_millis(500)).await.is_err(),
        "it answers though it hangs"
    );
    switches
        .change(|state| state.network = Network::Refuse)
        .unwrap();
    assert!(
        ready(ARRIVES).await.unwrap().is_err(),
        "it answers though it refuses"
    );
    switches
        .change(|state| state.network = Network::Open)
        .unwrap();
    eventually("it is back", ARRIVES, async || match ready(ARRIVES).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("no answer".to_owned()),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_population_is_spread_over_zones_and_settled_from_the_start() {
    let mut options = evenkeel_tests::member::MemberOptions::small("big", "eu-west-1");
    options.population = Population {
        nodes: 20,
        regions: vec!["eu-west-1".into(), "eu-west-2".into()],
        zones_per_region: 2,
        pods: 1200,
    };
    let member = evenkeel_tests::member::Member::start(options)
        .await
        .unwrap();
    let folder = evenkeel_tests::harness::Folder::new();
    let client = evenkeel_tests::harness::control_plane::client_of(
        &folder.write("kubeconfig", &member.kubeconfig()),
    )
    .await;
    let nodes = Api::<Node>::all(client.clone())
        .list(&ListParams::default())
        .await
        .unwrap();
    let zones = nodes.iter().filter_map(|node| {
        node.metadata
            .labels
            .as_ref()?
            .get("topology.kubernetes.io/zone")
            .cloned()
    });
    let zones = zones.collect::<std::collections::BTreeSet<_>>();
    assert_eq!(
        zones.into_iter().collect::<Vec<_>>(),
        ["eu-west-1a", "eu-west-1b", "eu-west-2a", "eu-west-2b"]
    );
    let revision = member.store.revision();
    eventually("the Deployments say so", ARRIVES, async || {
        let deployments = Api::<Deployment>::all(client.clone())
            .list(&ListParams::default())
            .await
            .map_err(|error| error.to_string())?;
        let ready = deployments
            .iter()
            .filter_map(|deployment| deployment.status.as_ref()?.ready_replicas)
            .sum::<i32>();
        if ready == 1200 {
            Ok(())
        } else {
            Err(format!("{ready} ready"))
        }
    })
    .await;
    let pods = Api::<Pod>::all(client)
        .list_metadata(&ListParams::default())
        .await
        .unwrap();
    assert_eq!(pods.items.len(), 1200);
    // Three statuses are all that was left to write.
    assert!(
        member.store.revision().0 <= revision.0 + 3,
        "{revision} {}",
        member.store.revision()
    );
}
