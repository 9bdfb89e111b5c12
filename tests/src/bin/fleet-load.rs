//! N agents over mutual TLS against one control plane, and what that costs.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use clap::Parser;
use evenkeel_tests::{
    authority::client_config,
    clock,
    fleet::{
        agent::{Fleet, Profile, Seen, Stage, live},
        gauge::{Cost, Gauge, file_limit},
        latency::Summary,
        metrics, objects,
    },
    harness::{ControlPlane, Timings, control_plane::agent_identity},
    wire::Endpoint,
};
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Puts a fleet of agents on a control plane, which it starts itself, and reports latencies and cost.
///
/// Each agent has a certificate and one HTTP/2 connection of its own, watches its Works and its Cluster, and renews
/// its lease every interval; a busy one writes 7 kB of status as often. Exits with 1 when a bar is missed.
#[derive(Parser)]
#[command(version, about)]
struct Flags {
    /// How many agents.
    #[arg(long, default_value_t = 1000)]
    agents: usize,
    /// What they do.
    #[arg(long, value_enum, default_value_t = Profile::Quiet)]
    profile: Profile,
    /// Between two renewals of one agent.
    #[arg(long, default_value = "10s", value_parser = humantime::parse_duration)]
    interval: Duration,
    /// Time over which the agents start.
    #[arg(long, default_value = "60s", value_parser = humantime::parse_duration)]
    ramp: Duration,
    /// Time that counts, after the ramp and a grace period of settling.
    #[arg(long, default_value = "2m", value_parser = humantime::parse_duration)]
    duration: Duration,
    /// Kill -9 and start the control plane this long into the time that counts. Errors are expected then; Unknown is not.
    #[arg(long, value_parser = humantime::parse_duration, value_name = "AFTER")]
    restart: Option<Duration>,
    /// The bar for the 99th percentile of renewals and status writes; by default 100ms quiet and 250ms busy.
    #[arg(long, value_parser = humantime::parse_duration)]
    p99: Option<Duration>,
    /// Write the report as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Files that each process needs beside one per agent.
const OTHER_FILES: usize = 500;
/// Memory bar: so much, and so much per agent.
const BASE_BYTES: f64 = 100e6;
const AGENT_BYTES: f64 = 60e3;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    agents: usize,
    profile: Profile,
    interval_seconds: f64,
    measured_seconds: f64,
    renewals: Summary,
    statuses: Summary,
    errors: usize,
    first_error: Option<String>,
    reconnects: usize,
    control_plane: Cost,
    generator: Cost,
    fsyncs: f64,
    /// Clusters that are not Ready, or were not at some time while it counted.
    judged_unknown: usize,
    missed: Vec<String>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let flags = Flags::parse();
    let (agents, limited) = affordable(flags.agents);
    if limited {
        eprintln!(
            "fleet-load: a process may have {} files open here, and each agent is one on either side: {agents} agents instead of {}",
            file_limit().unwrap_or(0),
            flags.agents,
        );
    }
    let report = run(&flags, agents).await;
    print(&report);
    if let Some(path) = &flags.json {
        let text = serde_json::to_string_pretty(&report).unwrap_or_default();
        if let Err(error) = std::fs::write(path, text + "\n") {
            eprintln!("fleet-load: {}: {error}", path.display());
            return ExitCode::FAILURE;
        }
    }
    if report.missed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn affordable(asked: usize) -> (usize, bool) {
    let limit = file_limit().map_or(asked, |limit| limit.saturating_sub(OTHER_FILES));
    (asked.min(limit), limit < asked)
}

async fn run(flags: &Flags, agents: usize) -> Report {
    let mut control_plane = ControlPlane::start_with(Timings::DEFAULT, &[]).await;
    let (stage, seen_stage) = tokio::sync::watch::channel(Stage::Ramp);
    let fleet = Arc::new(Fleet {
        profile: flags.profile,
        interval: flags.interval,
        stage: seen_stage,
    });
    let authority = control_plane.signing_authority();
    let trusted = control_plane.authority();
    let mut tasks = tokio::task::JoinSet::new();
    let start = Instant::now();
    for index in 0..agents {
        let name = format!("load-{index:05}");
        let endpoint = endpoint(control_plane.address, &trusted, &authority, &name);
        let share = |span: Duration| span.mul_f64(index as f64 / agents.max(1) as f64);
        let (at, fleet) = (start + share(flags.ramp), fleet.clone());
        // Phases are spread whatever the ramp was: a golden-ratio sequence fills the interval evenly.
        let phase = flags
            .interval
            .mul_f64((index as f64 * 0.618_033_988_749_895).fract());
        tasks.spawn(async move {
            tokio::time::sleep_until(at).await;
            live(fleet, endpoint, name, index, phase).await
        });
        if index % 64 == 0 {
            tokio::task::yield_now().await;
        }
    }
    tokio::time::sleep_until(start + flags.ramp + flags.interval * 2).await;

    let measured = clock::now();
    let mut before = control_plane.metric(metrics::FSYNCS).await;
    let (mut gauge, own) = (
        Gauge::start(control_plane.process().pid()),
        Gauge::start(std::process::id()),
    );
    stage.send_replace(Stage::Measure);
    let end = Instant::now() + flags.duration;
    if let Some(after) = flags.restart {
        tokio::time::sleep(after).await;
        control_plane.start_again().await;
        // Another process: its cost counts from its start.
        before = 0.0;
        gauge = Gauge::start(control_plane.process().pid());
    }
    tokio::time::sleep_until(end).await;
    let (cost, generator) = (gauge.read(), own.read());
    let fsyncs = control_plane.metric(metrics::FSYNCS).await - before;
    let judged_unknown = unknown(&control_plane, measured).await;
    stage.send_replace(Stage::Over);

    let mut all = Seen {
        registered: true,
        ..Default::default()
    };
    let mut absent = 0;
    while let Some(seen) = tasks.join_next().await {
        let Ok(mut seen) = seen else { continue };
        absent += usize::from(!seen.registered);
        all.renewals.append(&mut seen.renewals);
        all.statuses.append(&mut seen.statuses);
        all.errors += seen.errors;
        all.reconnects += seen.reconnects;
        all.first_error = all.first_error.or(seen.first_error);
    }
    let mut report = Report {
        agents,
        profile: flags.profile,
        interval_seconds: flags.interval.as_secs_f64(),
        measured_seconds: flags.duration.as_secs_f64(),
        renewals: Summary::of(&mut all.renewals),
        statuses: Summary::of(&mut all.statuses),
        errors: all.errors,
        first_error: all.first_error,
        reconnects: all.reconnects,
        control_plane: cost,
        generator,
        fsyncs,
        judged_unknown,
        missed: Vec::new(),
    };
    report.missed = missed(&report, flags, absent);
    report
}

fn endpoint(
    address: SocketAddr,
    trusted: &str,
    authority: &evenkeel_tests::authority::Authority,
    name: &str,
) -> Endpoint {
    let identity = agent_identity(authority, name);
    let mut tls = client_config(trusted, Some(&identity), &["h2"])
        .unwrap_or_else(|error| panic!("TLS: {error}"));
    tls.resumption = rustls::client::Resumption::disabled();
    Endpoint {
        address,
        tls: Arc::new(tls),
        bearer: None,
        deadline: Duration::from_secs(30),
    }
}

/// Clusters whose Ready is not True, or turned True only after `since`.
async fn unknown(control_plane: &ControlPlane, since: jiff::Timestamp) -> usize {
    let mut connection = control_plane
        .admin_endpoint()
        .connect()
        .await
        .unwrap_or_else(|error| panic!("list clusters: {error}"));
    let (mut count, mut page) = (0, String::new());
    loop {
        let path = format!("{}?limit=500{page}", objects::CLUSTERS);
        let list = connection
            .get(&path)
            .await
            .and_then(|answer| answer.json())
            .unwrap_or_else(|error| panic!("list clusters: {error}"));
        count += list["items"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|cluster| !stayed_ready(cluster, since))
            .count();
        match list["metadata"]["continue"].as_str() {
            None | Some("") => return count,
            Some(token) => page = format!("&continue={token}"),
        }
    }
}

fn stayed_ready(cluster: &Value, since: jiff::Timestamp) -> bool {
    let conditions = cluster["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|condition| {
        condition["type"] == "Ready"
            && condition["status"] == "True"
            && condition["lastTransitionTime"]
                .as_str()
                .and_then(|time| time.parse::<jiff::Timestamp>().ok())
                .is_some_and(|time| time < since)
    })
}

fn missed(report: &Report, flags: &Flags, absent: usize) -> Vec<String> {
    let mut missed = Vec::new();
    let mut bar = |broken: bool, text: String| {
        if broken {
            missed.push(text);
        }
    };
    let default = match flags.profile {
        Profile::Quiet => Duration::from_millis(100),
        Profile::Busy => Duration::from_millis(250),
    };
    let p99 = flags.p99.unwrap_or(default).as_secs_f64() * 1e3;
    bar(absent > 0, format!("{absent} agents did not register"));
    bar(report.renewals.count == 0, "no renewal was made".into());
    if flags.restart.is_none() {
        bar(
            report.renewals.p99 > p99,
            format!(
                "renewals' p99 is {:.1} ms, the bar {p99} ms",
                report.renewals.p99
            ),
        );
        bar(
            report.statuses.p99 > p99,
            format!(
                "status writes' p99 is {:.1} ms, the bar {p99} ms",
                report.statuses.p99
            ),
        );
        bar(
            report.errors > 0,
            format!("{} requests failed", report.errors),
        );
    }
    bar(
        report.judged_unknown > 0,
        format!("{} clusters were judged Unknown", report.judged_unknown),
    );
    let allowed = (BASE_BYTES + AGENT_BYTES * report.agents as f64) / 1e6;
    let resident = report.control_plane.resident_megabytes;
    bar(
        resident > allowed,
        format!("{resident:.0} MB resident, the bar {allowed:.0} MB"),
    );
    missed
}

fn print(report: &Report) {
    println!(
        "{} agents, {:?}, every {} s, measured for {} s",
        report.agents, report.profile, report.interval_seconds, report.measured_seconds
    );
    println!("  lease renewals   {}", report.renewals);
    if report.profile == Profile::Busy {
        println!("  status writes    {}", report.statuses);
    }
    println!(
        "  errors           {}{}",
        report.errors,
        report
            .first_error
            .as_ref()
            .map(|first| format!(" (first: {first})"))
            .unwrap_or_default()
    );
    println!("  reconnects       {}", report.reconnects);
    println!(
        "  control plane    {:.0} MB resident ({:.0} kB per agent), {:.2} cores, {:.0} fsyncs",
        report.control_plane.resident_megabytes,
        report.control_plane.resident_megabytes * 1e3 / report.agents.max(1) as f64,
        report.control_plane.cores,
        report.fsyncs,
    );
    println!(
        "  load generator   {:.0} MB resident, {:.2} cores",
        report.generator.resident_megabytes, report.generator.cores
    );
    println!("  judged Unknown   {}", report.judged_unknown);
    for missed in &report.missed {
        println!("  MISSED: {missed}");
    }
}
