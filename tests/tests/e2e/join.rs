//! Joining by token.

use std::time::Duration;

use evenkeel_tests::harness::{Agent, ControlPlane, Target, eventually, throughout};

use crate::JOINS;

#[tokio::test(flavor = "multi_thread")]
async fn a_member_joins_by_token_and_reports() {
    let control_plane = ControlPlane::start().await;
    let member = Target::start("alpha").await;
    let agent = Agent::join(&control_plane, &member);
    let reason = control_plane.turns("alpha", "True", JOINS).await;
    assert_eq!(reason, "ClusterReady");
    agent.answers(200, JOINS).await;

    let cluster = control_plane.reported("alpha", JOINS).await;
    assert_eq!(cluster["spec"]["syncMode"], "Pull");
    let enabled = cluster["status"]["apiEnablements"]
        .as_array()
        .into_iter()
        .flatten();
    let apps = enabled
        .filter(|group| group["groupVersion"] == "apps/v1")
        .flat_map(|group| group["resources"].as_array().into_iter().flatten());
    assert!(
        apps.map(|resource| &resource["kind"])
            .any(|kind| kind == "Deployment"),
        "{cluster}"
    );
    assert!(
        cluster["status"]["nodeSummary"]["totalNum"]
            .as_i64()
            .is_some_and(|nodes| nodes >= 1),
        "{cluster}"
    );

    let namespace = control_plane
        .object("/api/v1/namespaces/karmada-es-alpha")
        .await
        .unwrap();
    assert_eq!(namespace["status"]["phase"], "Active");
    let lease = control_plane
        .object("/apis/coordination.k8s.io/v1/namespaces/karmada-cluster/leases/alpha")
        .await
        .unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], "alpha");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_agent_is_the_same_cluster_with_the_same_certificate() {
    let control_plane = ControlPlane::start().await;
    let member = Target::start("alpha").await;
    let mut agent = Agent::join(&control_plane, &member);
    let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let path = "/apis/cluster.karmada.io/v1alpha1/clusters/alpha";
    let before = control_plane.reported("alpha", JOINS).await;
    let signed = control_plane.object(requests).await.unwrap()["items"]
        .as_array()
        .map(Vec::len);

    agent.kill();
    agent.start_again();
    agent.answers(200, JOINS).await;
    throughout(
        "the cluster stays Ready",
        control_plane.timings.monitor_grace * 2,
        async || match control_plane.readiness("alpha").await? {
            (status, _) if status == "True" => Ok(()),
            other => Err(format!("{other:?}")),
        },
    )
    .await;
    let after = control_plane.object(path).await.unwrap();
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(
        after["metadata"]["generation"],
        before["metadata"]["generation"]
    );
    assert_eq!(
        control_plane.object(requests).await.unwrap()["items"]
            .as_array()
            .map(Vec::len),
        signed
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_authority_pin_is_refused_and_said() {
    let control_plane = ControlPlane::start().await;
    let member = Target::start("alpha").await;
    let mut flags = control_plane.join_flags("alpha");
    let pin = flags
        .iter()
        .position(|flag| flag.starts_with("sha256:"))
        .expect("a pin in the join flags");
    flags[pin] = format!("sha256:{}", "0".repeat(64));
    let mut agent = Agent::start("alpha", &flags, &member.kubeconfig, &control_plane, &[]);
    eventually(
        "the agent says what is wrong",
        Duration::from_secs(20),
        async || {
            let log = agent.process().log();
            if log.contains("pin") {
                Ok(())
            } else {
                Err(log)
            }
        },
    )
    .await;
    assert!(
        control_plane
            .object("/apis/cluster.karmada.io/v1alpha1/clusters/alpha")
            .await
            .is_err()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_for_one_cluster_enrols_no_other() {
    let control_plane = ControlPlane::start().await;
    let member = Target::start("beta").await;
    let mut flags = control_plane.join_flags("alpha");
    let name = flags
        .iter()
        .position(|flag| flag == "alpha" || flag.ends_with("=alpha"))
        .expect("a name in the join flags");
    flags[name] = flags[name].replace("alpha", "beta");
    let mut agent = Agent::start("beta", &flags, &member.kubeconfig, &control_plane, &[]);
    eventually(
        "the agent is told that it may not",
        Duration::from_secs(20),
        async || {
            let log = agent.process().log();
            let told = ["forbidden", "Forbidden", "denied", "refused"]
                .iter()
                .any(|word| log.contains(word));
            if told { Ok(()) } else { Err(log) }
        },
    )
    .await;
    assert!(
        control_plane
            .object("/apis/cluster.karmada.io/v1alpha1/clusters/beta")
            .await
            .is_err()
    );
}
