//! kill -9 of the control plane under write load, again and again.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use evenkeel_tests::{
    harness::{ControlPlane, Timings, eventually},
    wire::Endpoint,
};
use http::Method;
use http_body_util::BodyExt;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WRITERS: usize = 8;

/// How often: `EVENKEEL_CRASH_ROUNDS`, or 20.
fn rounds() -> u32 {
    std::env::var("EVENKEEL_CRASH_ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20)
}

fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"]
        .as_str()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}

/// What the server has acknowledged: name to (value, resourceVersion).
type Acknowledged = Arc<Mutex<BTreeMap<String, (u64, u64)>>>;

/// Creates an object and overwrites it, on and on, until its connection breaks.
async fn write(endpoint: Endpoint, name: String, acknowledged: Acknowledged) {
    let Ok(mut connection) = endpoint.connect().await else {
        return;
    };
    for number in 0_u64.. {
        // Few names with many versions each, and ever new ones.
        let name = format!("{name}-{}", number / 8);
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"number": number.to_string()}});
        let answer = if number % 8 == 0 {
            connection.post(CONFIG_MAPS, &body).await
        } else {
            connection
                .put(&format!("{CONFIG_MAPS}/{name}"), &body)
                .await
        };
        let Ok(answer) = answer else { return };
        assert!(answer.code.is_success(), "{name}: {}", answer.text());
        let Ok(object) = answer.json() else { return };
        acknowledged
            .lock()
            .insert(name, (number, revision(&object)));
    }
}

/// A client that lists once and watches from then on, through every restart.
#[derive(Default)]
struct Follower {
    objects: BTreeMap<String, u64>,
    at: Option<u64>,
    lists: usize,
    wrong: Option<String>,
}

impl Follower {
    fn take(&mut self, event: &Value) {
        let version = revision(&event["object"]);
        let name = event["object"]["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        match event["type"].as_str() {
            Some("ERROR") => self.at = None,
            Some("BOOKMARK") => self.at = self.at.max(Some(version)),
            Some(type_) => {
                if self.at.is_some_and(|at| version <= at) {
                    self.wrong = Some(format!(
                        "{type_} of {name} at {version} behind {:?}",
                        self.at
                    ));
                }
                self.at = Some(version);
                if type_ == "DELETED" {
                    self.objects.remove(&name);
                } else {
                    self.objects.insert(name, version);
                }
            }
            None => self.wrong = Some(format!("not an event: {event}")),
        }
    }
}

async fn follow(endpoint: Endpoint, follower: Arc<Mutex<Follower>>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let session = session(&endpoint, &follower);
        tokio::select! {
            () = stop.cancelled() => {}
            // The connection broke: the next one goes on where it was.
            _ = session => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn session(
    endpoint: &Endpoint,
    follower: &Mutex<Follower>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut connection = endpoint.connect().await?;
    let at = follower.lock().at;
    let at = if let Some(at) = at {
        at
    } else {
        let list = connection.get(CONFIG_MAPS).await?.json()?;
        let mut follower = follower.lock();
        let items = list["items"].as_array().into_iter().flatten();
        follower.objects = items
            .map(|item| {
                (
                    item["metadata"]["name"]
                        .as_str()
                        .unwrap_or_default()
                        .to_owned(),
                    revision(item),
                )
            })
            .collect();
        follower.at = Some(revision(&list));
        follower.lists += 1;
        revision(&list)
    };
    let path = format!("{CONFIG_MAPS}?watch=true&allowWatchBookmarks=true&resourceVersion={at}");
    let response = connection
        .open(Method::GET, &path, "", Bytes::new())
        .await?;
    if response.status() == http::StatusCode::GONE {
        follower.lock().at = None;
        return Ok(());
    }
    let mut body = response.into_body();
    let mut pending = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        pending.extend_from_slice(&data);
        while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
            let line = pending.drain(..=end).collect::<Vec<_>>();
            follower.lock().take(&serde_json::from_slice(&line)?);
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_every_kill() {
    let mut control_plane = ControlPlane::start_with(Timings::DEFAULT, &[]).await;
    let endpoint = control_plane.admin_endpoint();
    let acknowledged = Acknowledged::default();
    let follower = Arc::new(Mutex::new(Follower::default()));
    let stop = CancellationToken::new();
    let following = tokio::spawn(follow(endpoint.clone(), follower.clone(), stop.clone()));
    let mut highest = 0;
    for round in 0..rounds() {
        let before = acknowledged.lock().len();
        let writers = (0..WRITERS)
            .map(|writer| {
                tokio::spawn(write(
                    endpoint.clone(),
                    format!("r{round}-w{writer}"),
                    acknowledged.clone(),
                ))
            })
            .collect::<Vec<_>>();
        // Some time after the load is under way, at no particular moment of a commit.
        eventually(
            "writes are acknowledged",
            Duration::from_secs(20),
            async || {
                let count = acknowledged.lock().len() - before;
                if count >= WRITERS * 2 {
                    Ok(())
                } else {
                    Err(format!("{count} so far"))
                }
            },
        )
        .await;
        let moment = Instant::now() + Duration::from_micros(rand::random_range(0..200_000));
        tokio::time::sleep_until(moment).await;
        control_plane.kill();
        for writer in writers {
            writer.await.unwrap();
        }
        control_plane.start_again().await;

        let list = control_plane.object(CONFIG_MAPS).await.unwrap();
        let there = list["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| {
                (
                    item["metadata"]["name"].as_str().unwrap().to_owned(),
                    item.clone(),
                )
            })
            .collect::<BTreeMap<_, _>>();
        for (name, (number, version)) in acknowledged.lock().iter() {
            let object = there
                .get(name)
                .unwrap_or_else(|| panic!("round {round}: {name} is lost"));
            let found = object["data"]["number"]
                .as_str()
                .unwrap()
                .parse::<u64>()
                .unwrap();
            // The write that was under way may have been made too.
            assert!(
                (*number..=number + 1).contains(&found),
                "round {round}: {name} is {found}, acknowledged was {number}"
            );
            assert!(
                revision(object) >= *version,
                "round {round}: {name} went back from {version}: {object}"
            );
        }
        let now = revision(&list);
        let seen = acknowledged
            .lock()
            .values()
            .map(|(_, version)| *version)
            .max()
            .unwrap_or(0)
            .max(highest);
        assert!(
            now >= seen,
            "round {round}: the revision went back from {seen} to {now}"
        );
        highest = now;

        let expected = there
            .iter()
            .map(|(name, object)| (name.clone(), revision(object)))
            .collect::<BTreeMap<_, _>>();
        eventually(
            "the watch has seen all",
            Duration::from_secs(20),
            async || {
                let follower = follower.lock();
                if let Some(wrong) = &follower.wrong {
                    panic!("round {round}: {wrong}");
                }
                // The controllers of the server may have written since.
                let missing = expected.iter().find(|(name, version)| {
                    follower
                        .objects
                        .get(*name)
                        .is_none_or(|seen| seen < version)
                });
                missing.map_or(Ok(()), |missing| Err(format!("{missing:?} is not there")))
            },
        )
        .await;
    }
    stop.cancel();
    following.await.unwrap();
    let log = control_plane.process().log();
    assert!(!log.contains("panicked"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clean_stop_is_quick_and_loses_nothing() {
    let mut control_plane = ControlPlane::start().await;
    let endpoint = control_plane.admin_endpoint();
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "last"}});
    let answer = endpoint
        .once(Method::POST, CONFIG_MAPS, Some(&body))
        .await
        .unwrap();
    assert!(answer.code.is_success(), "{}", answer.text());
    // A watch that stands does not hold the stop up.
    let mut watching = endpoint.connect().await.unwrap();
    let watch = watching
        .open(
            Method::GET,
            &format!("{CONFIG_MAPS}?watch=true"),
            "",
            Bytes::new(),
        )
        .await
        .unwrap();
    let status = control_plane
        .process()
        .terminate(Duration::from_secs(15))
        .await;
    assert!(status.success(), "{status}");
    drop(watch);
    control_plane.start_again().await;
    control_plane
        .object(&format!("{CONFIG_MAPS}/last"))
        .await
        .unwrap();
}
