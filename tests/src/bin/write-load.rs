//! Durable writes: how many a second, how late, and how many share an fsync.

use std::{process::ExitCode, time::Duration};

use clap::Parser;
use evenkeel_tests::{
    fleet::{gauge::Gauge, latency::Summary, metrics},
    harness::{ControlPlane, Timings},
};
use serde_json::json;
use tokio::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Creates ConfigMaps from many writers at once on a control plane, which it starts itself.
#[derive(Parser)]
#[command(version, about)]
struct Flags {
    /// Writers at a time, each with a connection of its own.
    #[arg(long, default_value_t = 64)]
    writers: usize,
    /// How long.
    #[arg(long, default_value = "20s", value_parser = humantime::parse_duration)]
    duration: Duration,
    /// Bytes of data in each object.
    #[arg(long, default_value_t = 512)]
    size: usize,
}

#[tokio::main]
async fn main() -> ExitCode {
    let flags = Flags::parse();
    let mut control_plane = ControlPlane::start_with(Timings::DEFAULT, &[]).await;
    let data = "x".repeat(flags.size);
    let mut connections = Vec::new();
    for _ in 0..flags.writers {
        match control_plane.admin_endpoint().connect().await {
            Ok(connection) => connections.push(connection),
            Err(error) => {
                eprintln!("write-load: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    let fsyncs = control_plane.metric(metrics::FSYNCS).await;
    let gauge = Gauge::start(control_plane.process().pid());
    let start = Instant::now();
    let end = start + flags.duration;
    let mut tasks = tokio::task::JoinSet::new();
    for (writer, mut connection) in connections.into_iter().enumerate() {
        let data = data.clone();
        tasks.spawn(async move {
            let (mut samples, mut failed, mut number) = (Vec::new(), 0_usize, 0);
            while Instant::now() < end {
                number += 1;
                let body = json!({
                    "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("w{writer}-{number}")}, "data": {"x": data},
                });
                let sent = Instant::now();
                match connection.post("/api/v1/namespaces/default/configmaps", &body).await {
                    Ok(answer) if answer.code.is_success() => samples.push(sent.elapsed()),
                    Ok(_) => failed += 1,
                    Err(_) => {
                        failed += 1;
                        break;
                    }
                }
            }
            (samples, failed)
        });
    }
    let (mut samples, mut failed) = (Vec::new(), 0);
    while let Some(done) = tasks.join_next().await {
        let Ok((mut some, broken)) = done else {
            continue;
        };
        samples.append(&mut some);
        failed += broken;
    }
    let seconds = start.elapsed().as_secs_f64();
    let cost = gauge.read();
    let fsyncs = control_plane.metric(metrics::FSYNCS).await - fsyncs;
    let summary = Summary::of(&mut samples);
    let per_fsync = summary.count as f64 / fsyncs.max(1.0);
    println!(
        "{} writers for {seconds:.0} s: {:.0} creates/s, {summary}",
        flags.writers,
        summary.count as f64 / seconds
    );
    println!("  {fsyncs:.0} fsyncs, {per_fsync:.1} creates per fsync; {failed} failed");
    println!(
        "  control plane: {:.0} MB resident, {:.2} cores",
        cost.resident_megabytes, cost.cores
    );
    // Group commit shows where several writers wait at once.
    let grouped = flags.writers < 8 || per_fsync > 2.0;
    if failed == 0 && grouped {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
