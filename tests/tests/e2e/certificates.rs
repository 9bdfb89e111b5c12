//! Certificates run out, and nobody has to do anything about it.

use std::time::Duration;

use evenkeel_tests::{
    authority::Validity,
    harness::{Agent, ControlPlane, Target, eventually, throughout},
};
use jiff::SignedDuration;

use crate::JOINS;

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_renews_its_certificate_before_it_runs_out_and_goes_on() {
    let control_plane = ControlPlane::start().await;
    let member = Target::start("alpha").await;
    let mut agent = Agent::join(&control_plane, &member);
    control_plane.turns("alpha", "True", JOINS).await;

    // In place of what it has, a certificate of which two thirds are over.
    agent.kill();
    let left = Duration::from_secs(20);
    let validity = Validity {
        from: SignedDuration::from_secs(-45),
        until: SignedDuration::try_from(left).unwrap(),
    };
    let short = control_plane
        .signing_authority()
        .client(
            "system:karmada:agent:alpha",
            &["system:karmada:agents"],
            validity,
        )
        .unwrap();
    let path = agent.folder.path().join("identity").join("client.pem");
    let text = format!("{}{}", short.certificate, short.key);
    std::fs::write(&path, &text).unwrap();
    agent.start_again();
    eventually("another certificate is in place", left, async || {
        let now = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
        if now == text {
            Err("still the short one".to_owned())
        } else {
            Ok(())
        }
    })
    .await;
    // Beyond the end of the short one: the connection that stood was not all that worked.
    throughout(
        "Ready stays True",
        left + Duration::from_secs(5),
        async || match control_plane.readiness("alpha").await? {
            (status, _) if status == "True" => Ok(()),
            other => Err(format!("{other:?}")),
        },
    )
    .await;
    agent.answers(200, JOINS).await;
}
