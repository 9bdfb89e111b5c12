//! What applies and ownership cost: `cargo bench -p evenkeel-api --bench patch`.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use evenkeel_api::{
    patch::{Manager, apply, strategic, track_update},
    schema::{Schemas, TypeRef},
};
use jiff::Timestamp;
use serde_json::{Value, json};

fn schemas() -> Schemas {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/data/api-vectors/merge-schema.json.gz"
    );
    Schemas::from_gzip(&std::fs::read(path).expect("the merge schema")).expect("a merge schema")
}

fn manager(name: &str, subresource: Option<&str>, api_version: &str) -> Manager {
    Manager {
        name: name.into(),
        subresource: subresource.map(Into::into),
        api_version: api_version.into(),
        now: Timestamp::from_second(1_700_000_000).expect("time"),
        has_status: true,
    }
}

fn deployment(image: &str) -> Value {
    let containers = ["app", "sidecar"].map(|name| {
        json!({
            "name": name, "image": image,
            "ports": [{"containerPort": 8080, "name": "http"}, {"containerPort": 9090, "name": "metrics"}],
            "env": (0..10).map(|n| json!({"name": format!("VARIABLE_{n}"), "value": "value"})).collect::<Vec<_>>(),
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
            "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 5},
            "volumeMounts": [{"name": "config", "mountPath": "/etc/app"}],
        })
    });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "n", "labels": {"app": "d"}, "annotations": {"note": "text"}},
        "spec": {
            "replicas": 3, "selector": {"matchLabels": {"app": "d"}},
            "template": {
                "metadata": {"labels": {"app": "d"}},
                "spec": {"containers": containers, "volumes": [{"name": "config", "configMap": {"name": "c"}}]},
            },
        },
    })
}

/// A Cluster with about 7 kB of status.
fn cluster(beat: u32) -> Value {
    let enablements = (0..30)
        .map(|group| {
            let resources = (0..4).map(|n| json!({"kind": format!("Kind{n}"), "name": format!("kinds{n}")}));
            json!({"groupVersion": format!("group{group}.example.io/v1"), "resources": resources.collect::<Vec<_>>()})
        })
        .collect::<Vec<_>>();
    json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
        "metadata": {"name": "c", "uid": "u", "labels": {"a": "b"}},
        "spec": {"syncMode": "Pull", "region": "eu", "zones": ["a", "b"]},
        "status": {
            "kubernetesVersion": "v1.36.0", "apiEnablements": enablements,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2024-01-01T00:00:00Z"}],
            "nodeSummary": {"totalNum": 10, "readyNum": 9},
            "resourceSummary": {
                "allocatable": {"cpu": "100", "memory": "500Gi", "pods": "1100"},
                "allocated": {"cpu": beat.to_string(), "memory": format!("{beat}Gi"), "pods": beat.to_string()},
            },
        },
    })
}

fn patches(c: &mut Criterion) {
    let ty = schemas().kind("apps/v1", "Deployment").expect("Deployment");
    let owner = manager("agent", None, "apps/v1");
    let run = |live: Option<&Value>, config: &Value| {
        apply::apply(&ty, live, config, &owner, false, &|_| ()).expect("an apply")
    };
    let config = deployment("image:1");
    let next = deployment("image:2");
    let live = run(None, &config);
    c.bench_function("apply/deployment/create", |b| {
        b.iter(|| run(None, black_box(&config)));
    });
    c.bench_function("apply/deployment/same", |b| {
        b.iter(|| run(Some(&live), black_box(&config)));
    });
    c.bench_function("apply/deployment/change", |b| {
        b.iter(|| run(Some(&live), black_box(&next)));
    });
    c.bench_function("strategic/deployment", |b| {
        b.iter(|| strategic::apply(&ty, &live, black_box(&next)));
    });

    let ty = TypeRef::untyped();
    let agent = manager("agent", Some("status"), "cluster.karmada.io/v1alpha1");
    let mut old = cluster(0);
    track_update(
        &ty,
        None,
        &mut old,
        &manager("admin", None, "cluster.karmada.io/v1alpha1"),
    );
    let mut first = cluster(1);
    first["metadata"] = old["metadata"].clone();
    track_update(&ty, Some(&old), &mut first, &agent);
    let mut second = cluster(2);
    second["metadata"] = first["metadata"].clone();
    c.bench_function("update/cluster status", |b| {
        b.iter_batched(
            || second.clone(),
            |mut new| {
                track_update(&ty, Some(&first), &mut new, &agent);
                new
            },
            criterion::BatchSize::SmallInput,
        );
    });
}

criterion_group!(benches, patches);
criterion_main!(benches);
