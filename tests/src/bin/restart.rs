//! How long a restart takes with a large fleet in the store.

use std::{process::ExitCode, time::Duration};

use clap::Parser;
use evenkeel_tests::{
    clock,
    fleet::objects,
    harness::{ControlPlane, Timings, process::resident},
};
use tokio::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Fills a control plane with clusters, kills it with -9, starts it again, and tells the time to /readyz.
#[derive(Parser)]
#[command(version, about)]
struct Flags {
    /// How many clusters.
    #[arg(long, default_value_t = 10_000)]
    clusters: usize,
    /// The bar for the time from start to ready.
    #[arg(long, default_value = "3s", value_parser = humantime::parse_duration)]
    ready: Duration,
}

/// Connections that fill the store at a time.
const WRITERS: usize = 32;

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Flags::parse()).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("restart: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(flags: &Flags) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut control_plane = ControlPlane::start_with(Timings::DEFAULT, &[]).await;
    let endpoint = control_plane.admin_endpoint();
    let filling = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let (endpoint, clusters) = (endpoint.clone(), flags.clusters);
        tasks.spawn(async move {
            let mut connection = endpoint
                .connect()
                .await
                .map_err(|error| error.to_string())?;
            for index in (writer..clusters).step_by(WRITERS) {
                let name = format!("restart-{index:05}");
                let status = format!("{}/{name}/status", objects::CLUSTERS);
                for answer in [
                    connection
                        .post(objects::CLUSTERS, &objects::cluster(&name, index))
                        .await,
                    connection
                        .post(objects::LEASES, &objects::lease(&name, clock::now()))
                        .await,
                    connection
                        .patch(&status, &objects::status(clock::now(), 1))
                        .await,
                ] {
                    let answer = answer.map_err(|error| error.to_string())?;
                    if !answer.code.is_success() {
                        return Err(format!("{name}: {}", answer.text()));
                    }
                }
            }
            Ok::<(), String>(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    println!(
        "{} clusters stored in {:.1} s",
        flags.clusters,
        filling.elapsed().as_secs_f64()
    );
    control_plane.kill();
    let start = Instant::now();
    control_plane.start_again().await;
    let ready = start.elapsed();
    let list = control_plane
        .admin_endpoint()
        .once(http::Method::GET, objects::CLUSTERS, None)
        .await?
        .json()?;
    let clusters = list["items"].as_array().cloned().unwrap_or_default();
    let alive = clusters
        .iter()
        .filter(|cluster| {
            cluster["status"]["conditions"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
        })
        .count();
    let memory = resident(control_plane.process().pid()).unwrap_or(0) as f64 / 1e6;
    println!(
        "ready {:.2} s after the start; {alive} of {} clusters are Ready; {memory:.0} MB resident",
        ready.as_secs_f64(),
        clusters.len()
    );
    let good = ready <= flags.ready && alive == flags.clusters;
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
