//! What a decision costs: one pod, and batches at the size of a fleet.

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use evenkeel_placement::spread::{
    Incoming, Labels, Node,
    axis::Axes,
    batch::{Request, place},
    defaults::{Applicable, Defaults, Owners},
    filter::{Filter, Verdict},
    places::{Places, by_name},
    score::score,
};
use k8s_openapi::{
    api::core::v1::{PodSpec, TopologySpreadConstraint},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};

const CLUSTER: &str = "topology.evenkeel.io/cluster";
const ZONE: &str = "topology.kubernetes.io/zone";

fn cells(clusters: usize, zones: usize) -> Vec<Node> {
    (0..clusters * zones)
        .map(|at| Node {
            name: format!("cell-{at:06}"),
            labels: Labels::from([
                (CLUSTER.to_owned(), format!("cluster-{}", at / zones)),
                (ZONE.to_owned(), format!("zone-{}", at % zones)),
            ]),
            taints: Vec::new(),
        })
        .collect()
}

fn constraint(key: &str, max_skew: i32, action: &str) -> TopologySpreadConstraint {
    TopologySpreadConstraint {
        max_skew,
        topology_key: key.to_owned(),
        when_unsatisfiable: action.to_owned(),
        label_selector: Some(LabelSelector {
            match_labels: Some(labels()),
            ..LabelSelector::default()
        }),
        ..TopologySpreadConstraint::default()
    }
}

fn labels() -> Labels {
    Labels::from([("app".to_owned(), "web".to_owned())])
}

fn axes(nodes: &[Node], constraints: &[TopologySpreadConstraint]) -> Axes {
    let (labels, spec) = (labels(), PodSpec::default());
    let pod = Incoming {
        namespace: "default",
        labels: &labels,
        spec: &spec,
    };
    let applicable = Applicable::new(
        constraints,
        &labels,
        &Defaults::default(),
        &Owners::default(),
    );
    Axes::new(pod, applicable, nodes, &[])
}

type Mix = (&'static str, [(&'static str, i32, &'static str); 2]);

const MIXES: [Mix; 4] = [
    (
        "zone hard, cluster soft",
        [(ZONE, 1, "DoNotSchedule"), (CLUSTER, 1, "ScheduleAnyway")],
    ),
    (
        "zone soft, cluster hard",
        [(ZONE, 1, "ScheduleAnyway"), (CLUSTER, 1, "DoNotSchedule")],
    ),
    (
        "both hard",
        [(ZONE, 1, "DoNotSchedule"), (CLUSTER, 1, "DoNotSchedule")],
    ),
    (
        "both soft",
        [(ZONE, 1, "ScheduleAnyway"), (CLUSTER, 1, "ScheduleAnyway")],
    ),
];

fn mix(mix: &Mix) -> Vec<TopologySpreadConstraint> {
    mix.1
        .iter()
        .map(|&(key, skew, action)| constraint(key, skew, action))
        .collect()
}

fn one_pod(c: &mut Criterion) {
    let mut group = c.benchmark_group("one pod, filter and score");
    for count in [1000, 5000] {
        let nodes = cells(count / 5, 5);
        let axes = axes(&nodes, &mix(&MIXES[0]));
        group.throughput(Throughput::Elements(1));
        group.bench_function(BenchmarkId::from_parameter(count), |b| {
            b.iter(|| {
                let filter = Filter::new(&axes);
                let feasible: Vec<usize> = (0..count)
                    .filter(|&at| filter.verdict(at) == Verdict::Success)
                    .collect();
                black_box(score(&axes, &feasible))
            });
        });
    }
    group.finish();
}

fn batches(c: &mut Criterion) {
    for (replicas, clusters, zones) in [
        (10_000, 1000, 3),
        (20_000, 1000, 3),
        (100, 1000, 3),
        (100_000, 2500, 4),
    ] {
        let mut group = c.benchmark_group(format!(
            "{replicas} replicas over {clusters} x {zones} cells"
        ));
        group.sample_size(10);
        let nodes = cells(clusters, zones);
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        let order = by_name(&names);
        let capacity = vec![u64::MAX; nodes.len()];
        group.throughput(Throughput::Elements(replicas));
        for each in &MIXES {
            let axes = axes(&nodes, &mix(each));
            let request = Request {
                axes: &axes,
                order: &order,
                capacity: &capacity,
                replicas,
            };
            group.bench_function(each.0, |b| {
                b.iter_batched(
                    || request,
                    |request| black_box(place(request)),
                    BatchSize::LargeInput,
                );
            });
        }
        group.finish();
    }
}

/// Everything that a workload costs, once the fleet is made ready.
fn workloads(c: &mut Criterion) {
    let mut group = c.benchmark_group("1000 workloads x 100 replicas over 1000 x 3 cells");
    group.sample_size(10);
    group.throughput(Throughput::Elements(100_000));
    let nodes = cells(1000, 3);
    let capacity = vec![u64::MAX; nodes.len()];
    let mut places = Places::new(nodes);
    let (labels, spec) = (labels(), PodSpec::default());
    for each in &MIXES {
        let constraints = mix(each);
        group.bench_function(each.0, |b| {
            b.iter(|| {
                for _ in 0..1000 {
                    let pod = Incoming {
                        namespace: "default",
                        labels: &labels,
                        spec: &spec,
                    };
                    let applicable = Applicable::new(
                        &constraints,
                        &labels,
                        &Defaults::default(),
                        &Owners::default(),
                    );
                    let axes = places.axes(pod, applicable, &[]);
                    let _ = black_box(place(Request {
                        axes: &axes,
                        order: places.order(),
                        capacity: &capacity,
                        replicas: 100,
                    }));
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, one_pod, batches, workloads);
criterion_main!(benches);
