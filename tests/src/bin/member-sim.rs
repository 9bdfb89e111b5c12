//! A simulated member cluster as a program.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode};

use clap::Parser;
use evenkeel_tests::member::{Member, MemberOptions, population::Population};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A simulated Kubernetes cluster: its API server is real, its nodes are not.
///
/// Workloads become pods that get nodes and turn Ready. A kubeconfig with every right is written to --kubeconfig.
/// With --control, `curl http://ADDRESS/` shows how it is broken, and
/// `curl -X PUT -d '{"network":"hang"}' http://ADDRESS/` breaks it: network is open, refuse, hang or {"slow":"2s"},
/// failing lists checks of /readyz, clockOffsetSeconds moves the controllers' clock, frozen stops them.
#[derive(Parser)]
#[command(version, about)]
struct Flags {
    /// Name of the cluster, and of the context in its kubeconfig.
    #[arg(long, default_value = "member")]
    name: String,
    /// Where to serve the API; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    bind: SocketAddr,
    /// Where to write the kubeconfig.
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,
    /// Where to serve the switches, over plain HTTP.
    #[arg(long, value_name = "ADDRESS")]
    control: Option<SocketAddr>,
    /// How many nodes.
    #[arg(long, default_value_t = 3)]
    nodes: usize,
    /// The regions that the nodes are spread over.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "eu-west-1",
        value_name = "REGION,…"
    )]
    regions: Vec<String>,
    /// Zones in each region.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=26))]
    zones: u8,
    /// How many pods run from the start.
    #[arg(long, default_value_t = 0)]
    pods: usize,
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn".into()),
        )
        .with_writer(std::io::stderr)
        .init();
    match run(Flags::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("member-sim: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(flags: Flags) -> Result<(), Box<dyn std::error::Error>> {
    let population = Population {
        nodes: flags.nodes,
        regions: flags.regions,
        zones_per_region: flags.zones.into(),
        pods: flags.pods,
    };
    let member = Member::start(MemberOptions {
        name: flags.name,
        bind: flags.bind,
        control: flags.control,
        population,
    })
    .await?;
    std::fs::write(&flags.kubeconfig, member.kubeconfig())
        .map_err(|error| format!("{}: {error}", flags.kubeconfig.display()))?;
    println!("{} serves https://{}", member.name, member.address);
    if let Some(control) = member.control {
        println!("{}'s switches are at http://{control}/", member.name);
    }
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted?,
        _ = terminate.recv() => {}
    }
    member.stop().await;
    Ok(())
}
