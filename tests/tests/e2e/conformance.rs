//! Scenarios recorded from the reference API server are replayed, exactly, against ours.
//!
//! `tests/conformance/passing.txt` names those that pass; `deviations.md` beside it says what the others lack. A
//! scenario that starts to pass is added to the list, and none may leave it.

use std::{path::Path, process::Stdio, time::Duration};

use evenkeel_tests::harness::{ControlPlane, Timings};

/// Some scenarios wait for watches to end.
const DEADLINE: Duration = Duration::from_mins(4);

#[tokio::test(flavor = "multi_thread")]
async fn recorded_scenarios_are_answered_as_the_reference_server_did() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let listed = std::fs::read_to_string(folder.join("conformance/passing.txt")).unwrap();
    let control_plane = ControlPlane::start_with(Timings::DEFAULT, &[]).await;
    let admin = control_plane.admin();
    let file = |name: &str, text: &str| control_plane.folder.write(name, text);
    let mut replay = tokio::process::Command::new("python3");
    replay
        .arg(folder.join("data/api-vectors/replay.py"))
        .arg("--server")
        .arg(format!("https://{}", control_plane.address))
        .arg("--cacert")
        .arg(file("ca.crt", &control_plane.authority()))
        .arg("--cert")
        .arg(file("admin.crt", &admin.certificate))
        .arg("--key")
        .arg(file("admin.key", &admin.key))
        .arg("--no-fixtures")
        .args(listed.lines().flat_map(|id| ["--id", id]))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = match tokio::time::timeout(DEADLINE, replay.output())
        .await
        .expect("the replay ends in time")
    {
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED: python3 is not on this machine: {error}");
            return;
        }
    };
    let printed = String::from_utf8_lossy(&output.stdout);
    let expected = format!("{} passed, 0 failed", listed.lines().count());
    assert_eq!(
        printed.lines().last(),
        Some(expected.as_str()),
        "{printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
