//! What the store costs: `cargo bench -p evenkeel-store`.
//!
//! Figures that are not times (writes per fsync, p99, write amplification, bytes per watcher, opening) are printed on
//! lines of their own, each after `report:`.

use std::{
    hint::black_box,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use evenkeel_store::{
    Attributes, Body, Change, Key, ListQuery, Precondition, Resource, Revision, Scope, Store,
    StoreOptions, Write,
};
use futures::FutureExt as _;
use tokio::runtime::Runtime;

/// What an agent's status with pods that come and go is like.
const BODY_BYTES: usize = 7_000;

#[expect(
    clippy::disallowed_methods,
    reason = "criterion measures by this clock"
)]
fn now() -> Instant {
    Instant::now()
}

fn clusters() -> Resource {
    Resource::new("cluster.karmada.io", "clusters")
}

fn key(n: usize) -> Key {
    Key::new(clusters(), None, &format!("member-{n:06}"))
}

fn body(name: &str, bytes: usize) -> Body {
    let before = r#"{"apiVersion":"cluster.karmada.io/v1alpha1","kind":"Cluster","metadata":{"#;
    let text = "s".repeat(bytes);
    let json =
        format!(r#"{before}"name":"{name}","labels":{{"region":"eu"}}}},"status":"{text}"}}"#);
    Body {
        json: json.into_bytes(),
        version_at: before.len(),
        attributes: Attributes::default(),
    }
}

fn put(key: &Key, precondition: Precondition, bytes: usize) -> Write {
    Write {
        key: key.clone(),
        precondition,
        change: Change::Put(body(key.name(), bytes)),
    }
}

async fn open(dir: &Path) -> Store {
    Store::open(dir, StoreOptions::without_attributes())
        .await
        .expect("a store")
}

/// Creates so many objects, and returns their revisions.
async fn fill(store: &Store, count: usize, bytes: usize) -> Vec<Revision> {
    let mut revisions = Vec::with_capacity(count);
    for chunk in (0..count).collect::<Vec<_>>().chunks(500) {
        let writes = chunk
            .iter()
            .map(|n| put(&key(*n), Precondition::Absent, bytes))
            .collect();
        let objects = store.commit(writes).await.expect("created");
        revisions.extend(objects.iter().map(|object| object.revision));
    }
    revisions
}

/// Updates of as many objects as there are writers, each its own: returns how long each write took.
async fn update(store: &Store, writers: usize, writes: usize) -> Vec<Duration> {
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                let key = key(writer);
                let mut at = store.get(&key).expect("there").revision;
                let mut times = Vec::with_capacity(writes / writers);
                for _ in 0..writes / writers {
                    let write = put(&key, Precondition::At(at), BODY_BYTES);
                    let started = now();
                    at = store.commit(vec![write]).await.expect("written")[0].revision;
                    times.push(started.elapsed());
                }
                times
            })
        })
        .collect();
    let mut all = Vec::with_capacity(writes);
    for task in tasks {
        all.extend(task.await.expect("finished"));
    }
    all
}

fn commits(c: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let mut group = c.benchmark_group("commit 7 kB");
    group.sample_size(10);
    for writers in [1_usize, 8, 64] {
        let dir = tempfile::tempdir().expect("a directory");
        let store = runtime.block_on(open(dir.path()));
        runtime.block_on(fill(&store, 1_000, BODY_BYTES));
        let before = store.statistics();
        let mut times = Vec::new();
        group.throughput(Throughput::Elements(writers as u64 * 8));
        group.bench_function(format!("{writers} writers"), |b| {
            b.iter_custom(|rounds| {
                let started = now();
                for _ in 0..rounds {
                    times.extend(runtime.block_on(update(&store, writers, writers * 8)));
                }
                started.elapsed()
            });
        });
        times.sort_unstable();
        let after = store.statistics();
        let writes = after.writes - before.writes;
        let fsyncs = after.fsyncs - before.fsyncs;
        let written = after.written_bytes - before.written_bytes;
        eprintln!(
            "report: {writers} writers: {writes} writes, {fsyncs} fsyncs, {:.1} writes per fsync, p50 {:?}, p99 {:?}, \
             {:.2} bytes written per byte",
            writes as f64 / fsyncs as f64,
            times[times.len() / 2],
            times[times.len() * 99 / 100],
            written as f64 / (writes as f64 * BODY_BYTES as f64),
        );
        runtime.block_on(store.close()).expect("closed");
    }
}

fn watches(c: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let store = Store::in_memory(StoreOptions::without_attributes());
    runtime.block_on(fill(&store, 10_000, BODY_BYTES));
    let resident = resident_bytes();
    let idle: Vec<_> = (0..10_000)
        .flat_map(|n| {
            let namespace = format!("karmada-es-member-{n:06}");
            let works = Resource::new("work.karmada.io", "works");
            [Scope::object(&key(n)), Scope::namespace(works, &namespace)]
        })
        .map(|scope| store.list_and_watch(&scope).1)
        .collect();
    if let (Some(before), Some(after)) = (resident, resident_bytes()) {
        eprintln!(
            "report: {} bytes for each of {} idle watchers",
            (after - before) / idle.len(),
            idle.len()
        );
    }
    let target = key(7);
    let write = |store: &Store| {
        let at = store.get(&target).expect("there").revision;
        let write = put(&target, Precondition::At(at), BODY_BYTES);
        store
            .commit(vec![write])
            .now_or_never()
            .expect("at once in memory")
            .expect("written")
    };
    let mut group = c.benchmark_group("one write");
    group.bench_function("that concerns 1 of 20,000 watchers", |b| {
        b.iter(|| write(&store));
    });
    drop(idle);
    for count in [100_usize, 1_000] {
        let mut all: Vec<_> = (0..count)
            .map(|_| store.list_and_watch(&Scope::all(clusters())).1)
            .collect();
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(format!("told to all of {count} watchers, and taken"), |b| {
            b.iter(|| {
                write(&store);
                for watch in &mut all {
                    let event = watch.next().now_or_never().expect("told already");
                    black_box(event).expect("open").expect("no lag");
                }
            });
        });
    }
    group.finish();
}

fn lists(c: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let store = Store::in_memory(StoreOptions::without_attributes());
    let revisions = runtime.block_on(fill(&store, 10_000, BODY_BYTES));
    let scope = Scope::all(clusters());
    let mut group = c.benchmark_group("list of 10,000");
    group.bench_function("whole", |b| {
        b.iter(|| store.list(&scope, &ListQuery::default(), &|_| true));
    });
    let page = ListQuery {
        limit: Some(500),
        ..ListQuery::default()
    };
    group.bench_function("first page of 500", |b| {
        b.iter(|| store.list(&scope, &page, &|_| true));
    });
    let back = ListQuery {
        at: revisions.get(9_000).copied(),
        ..ListQuery::default()
    };
    group.bench_function("1,000 changes back", |b| {
        b.iter(|| store.list(&scope, &back, &|_| true).expect("remembered"));
    });
    group.finish();
}

fn opening(c: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let dir = tempfile::tempdir().expect("a directory");
    let store = runtime.block_on(open(dir.path()));
    runtime.block_on(fill(&store, 10_000, 8_000));
    let crashed = tempfile::tempdir().expect("a directory");
    let name = "store.redb";
    std::fs::copy(dir.path().join(name), crashed.path().join(name)).expect("copied");
    runtime.block_on(store.close()).expect("closed");
    let mut group = c.benchmark_group("open with 10,000 objects of 8 kB");
    group.sample_size(10);
    group.bench_function("after a clean end", |b| {
        b.iter(|| {
            let store = runtime.block_on(open(dir.path()));
            runtime.block_on(store.close()).expect("closed");
        });
    });
    let started = now();
    let store = runtime.block_on(open(crashed.path()));
    eprintln!("report: open after a crash took {:?}", started.elapsed());
    assert_eq!(store.statistics().objects, 10_000);
    runtime.block_on(store.close()).expect("closed");
    group.finish();
}

fn renewals(c: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let store = Store::in_memory(StoreOptions::without_attributes());
    runtime.block_on(fill(&store, 10_000, 400));
    let keys: Arc<[Key]> = (0..10_000).map(key).collect();
    let mut n = 0;
    c.bench_function("renewal of one of 10,000 leases", |b| {
        b.iter(|| {
            n = (n + 7_919) % keys.len();
            store
                .renew(&keys[n], body(keys[n].name(), 400))
                .expect("renewed")
        });
    });
}

/// What the process holds in memory, where the system tells.
fn resident_bytes() -> Option<usize> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: usize = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4_096)
}

criterion_group!(benches, commits, watches, lists, opening, renewals);
criterion_main!(benches);
