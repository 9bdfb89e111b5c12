//! One agent, reduced to what it sends: registration, two watches, lease renewals, and status writes when busy.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::BodyExt;
use tokio::{sync::watch, time::Instant};

use super::objects;
use crate::{
    clock,
    wire::{Connection, Endpoint, WireError},
};

/// What a fleet does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Lease renewals.
    Quiet,
    /// Lease renewals, and at the same pace a status write of 7 kB.
    Busy,
}

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Ramp,
    /// What is sent now counts.
    Measure,
    Over,
}

/// What every agent of a fleet knows.
pub struct Fleet {
    pub profile: Profile,
    pub interval: Duration,
    pub stage: watch::Receiver<Stage>,
}

/// What one agent saw.
#[derive(Default)]
pub struct Seen {
    pub registered: bool,
    pub renewals: Vec<Duration>,
    pub statuses: Vec<Duration>,
    /// Requests that failed or were refused while it counted, with the first reason.
    pub errors: usize,
    pub first_error: Option<String>,
    pub reconnects: usize,
}

/// Reconnect pauses: as agents do, jittered.
const BACKOFF: std::ops::Range<f64> = 0.2..2.0;

/// Lives until the stage is over. `phase` is when in each interval this one sends.
pub async fn live(
    fleet: Arc<Fleet>,
    endpoint: Endpoint,
    name: String,
    index: usize,
    phase: Duration,
) -> Seen {
    let mut seen = Seen::default();
    let mut stage = fleet.stage.clone();
    let ended = async move {
        // The sender outlives the fleet; if not, the run is over as well.
        let _ = stage.wait_for(|stage| *stage == Stage::Over).await;
    };
    tokio::pin!(ended);
    let since = clock::now();
    let mut next = Instant::now() + phase;
    loop {
        let session = session(&fleet, &endpoint, &name, index, since, &mut next, &mut seen);
        tokio::select! {
            () = &mut ended => return seen,
            Err(error) = session => seen.fault(&fleet, &error.to_string()),
        }
        seen.reconnects += 1;
        let pause = Duration::from_secs_f64(rand::random_range(BACKOFF));
        tokio::select! {
            () = &mut ended => return seen,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

impl Seen {
    fn fault(&mut self, fleet: &Fleet, reason: &str) {
        if *fleet.stage.borrow() == Stage::Measure || !self.registered {
            self.errors += 1;
            self.first_error.get_or_insert_with(|| reason.to_owned());
        }
    }

    /// Notes an answer; `true` when it was good.
    fn judge(&mut self, fleet: &Fleet, what: &str, answer: &crate::wire::Answer) -> bool {
        let good = answer.code.is_success();
        if !good {
            self.fault(
                fleet,
                &format!("{what}: {}: {}", answer.code, answer.text()),
            );
        }
        good
    }
}

type Never = std::convert::Infallible;

/// One connection's life. Returns only with the error that ended it.
async fn session(
    fleet: &Fleet,
    endpoint: &Endpoint,
    name: &str,
    index: usize,
    since: jiff::Timestamp,
    next: &mut Instant,
    seen: &mut Seen,
) -> Result<Never, WireError> {
    let mut connection = endpoint.connect().await?;
    let status_path = format!("{}/{name}/status", objects::CLUSTERS);
    let lease_path = format!("{}/{name}", objects::LEASES);
    if !seen.registered {
        register(&mut connection, name, index).await?;
        let answer = connection
            .patch(&status_path, &objects::status(since, 0))
            .await?;
        seen.registered = seen.judge(fleet, "first status", &answer);
    }
    let works = format!(
        "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-{name}/works?watch=true&allowWatchBookmarks=true"
    );
    let own = format!(
        "{}?watch=true&allowWatchBookmarks=true&fieldSelector=metadata.name%3D{name}",
        objects::CLUSTERS
    );
    let works = connection
        .open(Method::GET, &works, "", Bytes::new())
        .await?;
    let own = connection.open(Method::GET, &own, "", Bytes::new()).await?;
    let sending = send(
        fleet,
        &mut connection,
        &lease_path,
        &status_path,
        since,
        next,
        seen,
    );
    tokio::select! {
        ended = sending => ended,
        error = drain(works) => Err(error),
        error = drain(own) => Err(error),
    }
}

async fn register(connection: &mut Connection, name: &str, index: usize) -> Result<(), WireError> {
    for (path, body) in [
        (objects::CLUSTERS, objects::cluster(name, index)),
        (objects::LEASES, objects::lease(name, clock::now())),
    ] {
        let answer = connection.post(path, &body).await?;
        // A connection may have broken behind a create that was made.
        if !answer.code.is_success() && answer.code != StatusCode::CONFLICT {
            return Err(std::io::Error::other(format!(
                "register: {}: {}",
                answer.code,
                answer.text()
            ))
            .into());
        }
    }
    Ok(())
}

async fn send(
    fleet: &Fleet,
    connection: &mut Connection,
    lease: &str,
    status: &str,
    since: jiff::Timestamp,
    next: &mut Instant,
    seen: &mut Seen,
) -> Result<Never, WireError> {
    let mut round = 0;
    loop {
        tokio::time::sleep_until(*next).await;
        // After a pause beyond an interval, go on from now: agents do not catch up.
        *next = (*next + fleet.interval).max(Instant::now());
        round += 1;
        let counts = *fleet.stage.borrow() == Stage::Measure;
        let start = Instant::now();
        let answer = connection
            .patch(lease, &objects::renewal(clock::now()))
            .await?;
        if seen.judge(fleet, "renewal", &answer) && counts {
            seen.renewals.push(start.elapsed());
        }
        if fleet.profile == Profile::Busy {
            let start = Instant::now();
            let answer = connection
                .patch(status, &objects::status(since, round))
                .await?;
            if seen.judge(fleet, "status", &answer) && counts {
                seen.statuses.push(start.elapsed());
            }
        }
    }
}

/// Reads a watch to its end.
async fn drain(response: http::Response<hyper::body::Incoming>) -> WireError {
    let code = response.status();
    let mut body = response.into_body();
    loop {
        match body.frame().await {
            Some(Ok(_)) => {}
            Some(Err(error)) => return error.into(),
            None => return std::io::Error::other(format!("the watch ended ({code})")).into(),
        }
    }
}
