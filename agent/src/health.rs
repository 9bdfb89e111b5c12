//! `/healthz`, `/readyz` and `/metrics` over plain HTTP, for whoever runs the agent.

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::registry::Registry;
use tokio::{net::TcpListener, sync::Semaphore};

use crate::{
    clock,
    vitals::{Check, Vitals},
};

const HEADER_DEADLINE: Duration = Duration::from_secs(5);
/// A connection is closed after so long.
const CONNECTION_DEADLINE: Duration = Duration::from_mins(1);
const CONNECTIONS: usize = 16;

/// Serves for ever. Ends only with the task.
pub async fn serve(listener: TcpListener, vitals: Arc<Vitals>, registry: Arc<Registry>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = tokio::task::JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "health endpoint");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (vitals, registry) = (Arc::clone(&vitals), Arc::clone(&registry));
        connections.spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let answer = answer(
                    request.method(),
                    request.uri().path(),
                    request.uri().query().unwrap_or_default(),
                    &vitals,
                    &registry,
                );
                std::future::ready(Ok::<_, Infallible>(answer))
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_DEADLINE)
                .serve_connection(TokioIo::new(stream), service);
            // How a probe's connection ends is the prober's affair.
            let _ = tokio::time::timeout(CONNECTION_DEADLINE, connection).await;
            drop(permit);
        });
    }
}

/// Binds, or says what for.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .map_err(|error| io::Error::new(error.kind(), format!("--health-bind {address}: {error}")))
}

fn answer(
    method: &Method,
    path: &str,
    query: &str,
    vitals: &Vitals,
    registry: &Registry,
) -> Response<Full<Bytes>> {
    if method != Method::GET && method != Method::HEAD {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n".to_owned());
    }
    match path {
        // The process serves; whether it gets its work done is /readyz's matter, and no reason to restart it.
        "/healthz" | "/livez" => text(StatusCode::OK, "ok".to_owned()),
        "/readyz" => {
            let verbose = query.split('&').any(|part| part.starts_with("verbose"));
            let (code, body) = readiness(&vitals.checks(clock::now()), verbose);
            text(code, body)
        }
        "/metrics" => {
            let mut body = String::new();
            if prometheus_client::encoding::text::encode(&mut body, registry).is_err() {
                return text(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "not encoded\n".to_owned(),
                );
            }
            let mut answer = text(StatusCode::OK, body);
            answer.headers_mut().insert(
                header::CONTENT_TYPE,
                header::HeaderValue::from_static(
                    "application/openmetrics-text; version=1.0.0; charset=utf-8",
                ),
            );
            answer
        }
        _ => text(StatusCode::NOT_FOUND, "not found\n".to_owned()),
    }
}

/// In the form of the Kubernetes API server's own.
fn readiness(checks: &[Check], verbose: bool) -> (StatusCode, String) {
    let well = checks.iter().all(|check| check.trouble.is_none());
    if well && !verbose {
        return (StatusCode::OK, "ok".to_owned());
    }
    let mut body: String = checks
        .iter()
        .map(|Check { name, trouble }| match trouble {
            None => format!("[+]{name} ok\n"),
            Some(why) => format!("[-]{name} failed: {why}\n"),
        })
        .collect();
    if well {
        body.push_str("readyz check passed\n");
        (StatusCode::OK, body)
    } else {
        body.push_str("readyz check failed\n");
        (StatusCode::SERVICE_UNAVAILABLE, body)
    }
}

fn text(code: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = code;
    answer.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;

    fn get(path: &str, query: &str, vitals: &Vitals, registry: &Registry) -> StatusCode {
        answer(&Method::GET, path, query, vitals, registry).status()
    }

    #[test]
    fn ready_is_told_in_parts_and_healthy_is_not_ready() {
        let mut registry = Registry::default();
        let vitals = Vitals::new(Metrics::new(&mut registry));
        assert_eq!(get("/healthz", "", &vitals, &registry), StatusCode::OK);
        assert_eq!(
            get("/readyz", "", &vitals, &registry),
            StatusCode::SERVICE_UNAVAILABLE
        );
        vitals.control_plane_answered();
        vitals.control_plane_silent("connection refused");
        let (code, body) = readiness(&vitals.checks(clock::now()), true);
        assert_eq!(code, StatusCode::SERVICE_UNAVAILABLE);
        assert!(
            body.contains("[-]control-plane failed: connection refused"),
            "{body}"
        );
        assert_eq!(get("/metrics", "", &vitals, &registry), StatusCode::OK);
        assert_eq!(
            get("/nothing", "", &vitals, &registry),
            StatusCode::NOT_FOUND
        );
        let post = answer(&Method::POST, "/healthz", "", &vitals, &registry);
        assert_eq!(post.status(), StatusCode::METHOD_NOT_ALLOWED);
    }

    #[test]
    fn metrics_have_their_names() {
        let mut registry = Registry::default();
        let metrics = Metrics::new(&mut registry);
        metrics.probes.get_or_create(&crate::metrics::OK).inc();
        metrics.drift_corrections.inc();
        let mut body = String::new();
        prometheus_client::encoding::text::encode(&mut body, &registry).unwrap();
        for line in [
            "evenkeel_agent_probes_total{outcome=\"ok\"} 1",
            "evenkeel_agent_drift_corrections_total 1",
            "evenkeel_agent_control_plane_up 0",
        ] {
            assert!(body.contains(line), "{body}");
        }
    }
}
