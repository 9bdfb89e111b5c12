//! The switches that break a running member, and the small HTTP endpoint that turns them from outside.

use std::{collections::BTreeSet, convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::{net::TcpListener, sync::watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::front::Network;

/// The checks that `/readyz` of a member consists of, beside `ping`.
pub const CHECKS: [&str; 4] = [
    "etcd",
    "informer-sync",
    "poststarthook/start-service-ip-repair-controllers",
    "shutdown",
];

/// How a member is broken at the moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct State {
    pub network: Network,
    /// The checks of `/readyz` that fail.
    pub failing: BTreeSet<String>,
    /// Seconds by which the clock of the member's controllers is off.
    pub clock_offset_seconds: i64,
    /// The controllers and kubelets do nothing.
    pub frozen: bool,
}

/// Handles on the switches of one member.
#[derive(Clone)]
pub struct Switches {
    state: Arc<Mutex<State>>,
    network: watch::Sender<Network>,
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            state: Arc::default(),
            network: watch::Sender::new(Network::Open),
        }
    }
}

impl Switches {
    pub fn state(&self) -> State {
        self.state.lock().clone()
    }

    pub fn network(&self) -> watch::Receiver<Network> {
        self.network.subscribe()
    }

    /// Refused when a check is named that there is not.
    pub fn set(&self, state: State) -> Result<(), String> {
        if let Some(unknown) = state
            .failing
            .iter()
            .find(|check| !CHECKS.contains(&check.as_str()))
        {
            return Err(format!(
                "no such check: {unknown}; there are {}",
                CHECKS.join(", ")
            ));
        }
        self.network.send_replace(state.network);
        *self.state.lock() = state;
        Ok(())
    }

    pub fn change(&self, change: impl FnOnce(&mut State)) -> Result<(), String> {
        let mut state = self.state();
        change(&mut state);
        self.set(state)
    }

    /// Makes these checks of `/readyz` fail, and no others.
    pub fn fail(&self, checks: &[&str]) -> Result<(), String> {
        self.change(|state| state.failing = checks.iter().map(ToString::to_string).collect())
    }

    pub fn check(&self, name: &str) -> Result<(), String> {
        if self.state.lock().failing.contains(name) {
            Err("switched off".into())
        } else {
            Ok(())
        }
    }
}

/// Serves `GET /` (the state) and `PUT /` (a new one, whole) over plain HTTP until `shutdown`.
pub async fn serve(listener: TcpListener, switches: Switches, shutdown: CancellationToken) {
    let connections = TaskTracker::new();
    loop {
        let stream = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => continue,
            },
        };
        let (switches, stop) = (switches.clone(), shutdown.clone());
        connections.spawn(async move {
            let service = service_fn(move |request| answer(switches.clone(), request));
            let served = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(Duration::from_secs(10))
                .serve_connection(TokioIo::new(stream), service);
            tokio::select! {
                () = stop.cancelled() => {}
                _ = served => {}
            }
        });
    }
    connections.close();
    connections.wait().await;
}

async fn answer(
    switches: Switches,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (code, text) = match *request.method() {
        Method::GET => (StatusCode::OK, String::new()),
        Method::PUT => match Limited::new(request.into_body(), 64 * 1024).collect().await {
            Err(error) => (StatusCode::BAD_REQUEST, error.to_string()),
            Ok(body) => match serde_json::from_slice::<State>(&body.to_bytes())
                .map_err(|error| error.to_string())
                .and_then(|state| switches.set(state))
            {
                Ok(()) => (StatusCode::OK, String::new()),
                Err(error) => (StatusCode::BAD_REQUEST, error),
            },
        },
        _ => (StatusCode::METHOD_NOT_ALLOWED, "GET or PUT".into()),
    };
    let body = if code == StatusCode::OK {
        serde_json::to_string(&switches.state()).unwrap_or_default()
    } else {
        text
    };
    let mut response = Response::new(Full::from(body + "\n"));
    *response.status_mut() = code;
    Ok(response)
}
