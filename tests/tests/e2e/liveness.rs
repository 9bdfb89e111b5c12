//! What is known of members, within bounds and without false alarms.

use std::time::Duration;

use evenkeel_tests::{
    harness::{Agent, ControlPlane, Target, eventually, throughout},
    member::front::Network,
};
use tokio::time::Instant;

use crate::JOINS;

/// What a busy machine may add to a bound.
const SLACK: Duration = Duration::from_secs(6);

async fn joined(name: &str) -> (ControlPlane, Target, Agent) {
    let control_plane = ControlPlane::start().await;
    let member = Target::simulated(name, "eu-west-1").await;
    let agent = Agent::join(&control_plane, &member);
    control_plane.turns(name, "True", JOINS).await;
    (control_plane, member, agent)
}

async fn taints(control_plane: &ControlPlane, cluster: &str) -> Result<Vec<String>, String> {
    let object = control_plane
        .object(&format!(
            "/apis/cluster.karmada.io/v1alpha1/clusters/{cluster}"
        ))
        .await?;
    let taints = object["spec"]["taints"].as_array().into_iter().flatten();
    Ok(taints
        .map(|taint| {
            format!(
                "{}:{}",
                taint["key"].as_str().unwrap_or_default(),
                taint["effect"].as_str().unwrap_or_default()
            )
        })
        .collect())
}

async fn tainted(control_plane: &ControlPlane, cluster: &str, expected: &[&str]) {
    eventually(
        &format!("the taints of {cluster} are {expected:?}"),
        Duration::from_secs(10),
        async || {
            let taints = taints(control_plane, cluster).await?;
            if taints == expected {
                Ok(())
            } else {
                Err(format!("{taints:?}"))
            }
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_agent_turns_its_cluster_unknown_within_bounds_and_a_started_one_true() {
    let (control_plane, _member, mut agent) = joined("alpha").await;
    let timings = control_plane.timings;
    agent.kill();
    let killed = Instant::now();
    // The last renewal was at most one interval before the end.
    let interval = timings.lease_duration / 4;
    throughout(
        "Ready stays True for the grace period",
        timings.monitor_grace.saturating_sub(interval * 2),
        async || match control_plane.readiness("alpha").await? {
            (status, _) if status == "True" => Ok(()),
            other => Err(format!("{other:?}")),
        },
    )
    .await;
    let bound = timings.monitor_grace + timings.monitor_period + SLACK;
    let reason = control_plane
        .turns("alpha", "Unknown", bound.saturating_sub(killed.elapsed()))
        .await;
    assert_eq!(reason, "ClusterStatusUnknown");
    tainted(
        &control_plane,
        "alpha",
        &["cluster.karmada.io/unreachable:NoSchedule"],
    )
    .await;

    agent.start_again();
    // Cut off and not unhealthy: back at the first word, without the threshold.
    let reason = control_plane.turns("alpha", "True", JOINS).await;
    assert_eq!(reason, "ClusterReady");
    tainted(&control_plane, "alpha", &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_answers_500_is_not_ready_and_one_that_does_not_answer_is_not_reachable() {
    let (control_plane, member, _agent) = joined("alpha").await;
    let switches = &member.member().switches;
    let bound =
        control_plane.timings.threshold + control_plane.timings.status_frequency * 3 + SLACK;

    switches.fail(&["etcd"]).unwrap();
    assert_eq!(
        control_plane.turns("alpha", "False", bound).await,
        "ClusterNotReady"
    );
    let cluster = control_plane
        .object("/apis/cluster.karmada.io/v1alpha1/clusters/alpha")
        .await
        .unwrap();
    let conditions = cluster["status"]["conditions"].to_string();
    assert!(
        conditions.contains("etcd") && conditions.contains("500"),
        "{conditions}"
    );
    tainted(
        &control_plane,
        "alpha",
        &["cluster.karmada.io/not-ready:NoSchedule"],
    )
    .await;

    switches.fail(&[]).unwrap();
    control_plane.turns("alpha", "True", bound).await;
    tainted(&control_plane, "alpha", &[]).await;

    for network in [Network::Hang, Network::Refuse] {
        switches.change(|state| state.network = network).unwrap();
        assert_eq!(
            control_plane.turns("alpha", "False", bound).await,
            "ClusterNotReachable",
            "{network:?}"
        );
        switches
            .change(|state| state.network = Network::Open)
            .unwrap();
        control_plane.turns("alpha", "True", bound).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_trouble_is_not_published() {
    let (control_plane, member, _agent) = joined("alpha").await;
    let timings = control_plane.timings;
    member.member().switches.fail(&["informer-sync"]).unwrap();
    eventually(
        "the trouble is seen and pends",
        timings.threshold,
        async || {
            let cluster = control_plane
                .object("/apis/cluster.karmada.io/v1alpha1/clusters/alpha")
                .await?;
            let conditions = cluster["status"]["conditions"].to_string();
            if conditions.contains("unhealthy") {
                Ok(())
            } else {
                Err(conditions)
            }
        },
    )
    .await;
    member.member().switches.fail(&[]).unwrap();
    throughout(
        "Ready stays True",
        timings.threshold * 2,
        async || match control_plane.readiness("alpha").await? {
            (status, _) if status == "True" => Ok(()),
            other => Err(format!("{other:?}")),
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_of_the_control_plane_turns_nothing_unknown() {
    let (mut control_plane, _member, agent) = joined("alpha").await;
    let revision = |object: &serde_json::Value| {
        object["metadata"]["resourceVersion"]
            .as_str()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let path = "/apis/cluster.karmada.io/v1alpha1/clusters/alpha";
    for _ in 0..2 {
        let before = control_plane.object(path).await.unwrap();
        control_plane.kill();
        control_plane.start_again().await;
        let span = control_plane.timings.monitor_grace * 2;
        throughout("Ready stays True", span, async || {
            match control_plane.readiness("alpha").await? {
                (status, _) if status == "True" => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
        agent.answers(200, JOINS).await;
        let after = control_plane.object(path).await.unwrap();
        assert!(revision(&after) >= revision(&before), "{before} {after}");
        assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_loses_the_control_plane_says_so() {
    let (mut control_plane, _member, agent) = joined("alpha").await;
    agent.answers(200, JOINS).await;
    control_plane.kill();
    agent.answers(503, JOINS).await;
    let (_, why) = agent.health("/readyz?verbose").await.unwrap();
    assert!(
        why.contains("control plane") || why.contains("control-plane"),
        "{why}"
    );
    assert_eq!(agent.health("/healthz").await.unwrap().0, 200);
    control_plane.start_again().await;
    agent.answers(200, JOINS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_control_plane_charges_its_pause_to_nobody() {
    let (mut control_plane, _member, _agent) = joined("alpha").await;
    let grace = control_plane.timings.monitor_grace;
    control_plane.process().signal("STOP");
    let mut deaf = control_plane.anonymous();
    deaf.deadline = Duration::from_millis(500);
    throughout(
        "a stopped process is silent",
        grace * 2,
        async || match deaf.once(http::Method::GET, "/healthz", None).await {
            Err(_) => Ok(()),
            Ok(answer) => Err(format!("it answers {}", answer.code)),
        },
    )
    .await;
    control_plane.process().signal("CONT");
    throughout("Ready stays True", grace, async || {
        match control_plane.readiness("alpha").await? {
            (status, _) if status == "True" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}
