//! What requests cost inside the server, without sockets and TLS: the renewal of a lease, a status write of an agent,
//! reads, lists and the delivery of events.
//!
//! `cargo bench -p evenkeel-api --bench requests`

use std::{hint::black_box, sync::Arc};

use bytes::Bytes;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use evenkeel_api::Server;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

#[path = "../tests/small/mod.rs"]
mod small;

const MAPS: &str = "/api/v1/namespaces/a/configmaps";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/a/leases/l";
const WIDGET: &str = "/apis/test.example.io/v1/namespaces/a/widgets/w";

async fn send(server: &Arc<Server>, method: &str, path: &str, type_: &str, body: Bytes) -> Bytes {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", type_)
        .header("user-agent", "evenkeel-agent/0.1")
        .body(Full::new(body))
        .expect("a request");
    let response = server.answer(request).await;
    assert!(
        matches!(response.status(), StatusCode::OK | StatusCode::CREATED),
        "{method} {path}: {}",
        response.status()
    );
    response
        .into_body()
        .collect()
        .await
        .expect("a body")
        .to_bytes()
}

async fn put(server: &Arc<Server>, method: &str, path: &str, body: &Value) -> Value {
    let text = Bytes::from(body.to_string());
    let answer = send(server, method, path, "application/json", text).await;
    serde_json::from_slice(&answer).expect("JSON")
}

async fn start() -> Arc<Server> {
    let server = small::builder()
        .authorizer(Arc::new(small::AllowAll))
        .build();
    put(
        &server,
        "POST",
        "/api/v1/namespaces",
        &json!({"metadata": {"name": "a"}}),
    )
    .await;
    server
}

/// A lease as agents write it, about 500 bytes.
fn lease(second: u64) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": "l",
            "namespace": "a",
            "ownerReferences": [{
                "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "name": "l",
                "uid": "bcca9294-88bd-4e8d-ab8c-65d219bd21b5",
            }],
        },
        "spec": {
            "holderIdentity": "l",
            "leaseDurationSeconds": 40,
            "renewTime": format!("2026-01-01T{:02}:{:02}:{:02}.000000Z", second / 3600 % 24, second / 60 % 60, second % 60),
        },
    })
}

/// A status as agents write it, about 7 kB.
fn status(round: u64) -> Value {
    let enablements = (0..40)
        .map(|group| {
            json!({
                "groupVersion": format!("group{group}.example.io/v1"),
                "resources": [
                    {"name": format!("things{group}"), "kind": format!("Thing{group}")},
                    {"name": format!("others{group}"), "kind": format!("Other{group}")},
                ],
            })
        })
        .collect::<Vec<_>>();
    json!({"status": {
        "kubernetesVersion": "v1.36.0",
        "apiEnablements": enablements,
        "nodeSummary": {"totalNum": 12, "readyNum": 12},
        "resourceSummary": {
            "allocatable": {"cpu": "96", "memory": "400Gi", "pods": "1320"},
            "allocated": {"cpu": format!("{}m", 1000 + round), "memory": "12Gi", "pods": round.to_string()},
        },
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "ClusterReady", "message": "cluster is healthy and ready to accept workloads", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        ],
    }})
}

fn writes(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let server = runtime.block_on(start());
    let mut round = 0;
    runtime.block_on(async {
        let (collection, _) = LEASE.rsplit_once('/').expect("a collection");
        put(&server, "POST", collection, &lease(0)).await;
        let (collection, _) = WIDGET.rsplit_once('/').expect("a collection");
        let widget = json!({
            "apiVersion": "test.example.io/v1", "kind": "Widget",
            "metadata": {"name": "w"}, "spec": {"size": "small"},
        });
        put(&server, "POST", collection, &widget).await;
    });
    let version = runtime.block_on(async {
        let lease = send(&server, "GET", LEASE, "application/json", Bytes::new()).await;
        let lease: Value = serde_json::from_slice(&lease).expect("JSON");
        lease["metadata"]["resourceVersion"].clone()
    });
    criterion.bench_function("renew a lease (PUT, 500 B)", |bencher| {
        bencher.to_async(&runtime).iter_batched(
            || {
                round += 1;
                let mut lease = lease(round);
                lease["metadata"]["resourceVersion"] = version.clone();
                Bytes::from(lease.to_string())
            },
            |body| send(&server, "PUT", LEASE, "application/json", body),
            BatchSize::SmallInput,
        );
    });
    criterion.bench_function("write a status (merge patch, 7 kB)", |bencher| {
        bencher.to_async(&runtime).iter_batched(
            || {
                round += 1;
                Bytes::from(status(round).to_string())
            },
            |body| {
                let server = Arc::clone(&server);
                async move {
                    let path = format!("{WIDGET}/status");
                    send(
                        &server,
                        "PATCH",
                        &path,
                        "application/merge-patch+json",
                        body,
                    )
                    .await
                }
            },
            BatchSize::SmallInput,
        );
    });
}

fn reads(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let server = runtime.block_on(async {
        let server = start().await;
        for index in 0..10_000 {
            let map = json!({
                "metadata": {"name": format!("m{index:05}"), "labels": {"half": (index % 2).to_string()}},
                "data": {"text": "x".repeat(1000)},
            });
            put(&server, "POST", MAPS, &map).await;
        }
        server
    });
    criterion.bench_function("get an object (1 kB)", |bencher| {
        bencher.to_async(&runtime).iter(|| {
            let path = "/api/v1/namespaces/a/configmaps/m05000";
            send(&server, "GET", path, "application/json", Bytes::new())
        });
    });
    let bytes = runtime
        .block_on(send(&server, "GET", MAPS, "application/json", Bytes::new()))
        .len();
    let mut group = criterion.benchmark_group("lists");
    group.throughput(Throughput::Bytes(bytes as u64));
    group.bench_function("list 10,000 objects (1 kB each)", |bencher| {
        bencher
            .to_async(&runtime)
            .iter(|| send(&server, "GET", MAPS, "application/json", Bytes::new()));
    });
    group.finish();
    criterion.bench_function("list 5,000 of 10,000 objects by label", |bencher| {
        let path = format!("{MAPS}?labelSelector=half%3D1");
        bencher.to_async(&runtime).iter(|| {
            let (server, path) = (Arc::clone(&server), path.clone());
            async move { send(&server, "GET", &path, "application/json", Bytes::new()).await }
        });
    });
}

fn fan_out(criterion: &mut Criterion) {
    const WATCHERS: usize = 1000;
    let runtime = Runtime::new().expect("a runtime");
    let (server, mut watches) = runtime.block_on(async {
        let server = start().await;
        let map = json!({"metadata": {"name": "m"}, "data": {"text": "x".repeat(1000)}});
        put(&server, "POST", MAPS, &map).await;
        let mut watches = Vec::new();
        for _ in 0..WATCHERS {
            let request = Request::builder()
                .uri(format!(
                    "{MAPS}?watch=1&resourceVersion={}",
                    server.store().revision()
                ))
                .body(Full::new(Bytes::new()))
                .expect("a request");
            watches.push(server.answer(request).await.into_body());
        }
        (server, watches)
    });
    let mut round = 0_u64;
    let mut group = criterion.benchmark_group("watches");
    group.throughput(Throughput::Elements(WATCHERS as u64));
    group.bench_function("one write, seen by 1,000 watchers", |bencher| {
        bencher.iter(|| {
            round += 1;
            runtime.block_on(async {
                let patch = Bytes::from(json!({"data": {"round": round.to_string()}}).to_string());
                let path = format!("{MAPS}/m");
                send(
                    &server,
                    "PATCH",
                    &path,
                    "application/merge-patch+json",
                    patch,
                )
                .await;
                for watch in &mut watches {
                    black_box(watch.frame().await);
                }
            });
        });
    });
    group.finish();
}

criterion_group!(benches, writes, reads, fan_out);
criterion_main!(benches);
