//! The process and its store in numbers, read when they are asked for.

use std::time::Duration;

use evenkeel_store::Store;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge, info::Info},
    registry::Registry,
};

use crate::clock::Stopwatch;

/// Registers what is read from the store, the operating system and the build.
pub fn register(registry: &mut Registry, store: Store, stopwatch: Stopwatch) {
    registry.register(
        "evenkeel_build",
        "The build that runs",
        Info::new([("version", env!("CARGO_PKG_VERSION"))]),
    );
    registry.register_collector(Box::new(StoreFigures { store }));
    registry.register_collector(Box::new(ProcessFigures { stopwatch }));
}

#[derive(Debug)]
struct StoreFigures {
    store: Store,
}

impl Collector for StoreFigures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let figures = self.store.statistics();
        counter(
            &mut encoder,
            "evenkeel_store_writes",
            "Durable transactions",
            figures.writes,
        )?;
        counter(
            &mut encoder,
            "evenkeel_store_commits",
            "Group commits that made them",
            figures.commits,
        )?;
        counter(
            &mut encoder,
            "evenkeel_store_fsyncs",
            "Times that data was forced to disk",
            figures.fsyncs,
        )?;
        counter(
            &mut encoder,
            "evenkeel_store_written_bytes",
            "Bytes handed to the operating system",
            figures.written_bytes,
        )?;
        counter(
            &mut encoder,
            "evenkeel_store_volatile_writes",
            "Renewals held in memory",
            figures.volatile_writes,
        )?;
        counter(
            &mut encoder,
            "evenkeel_store_checkpointed",
            "Renewed objects that checkpoints put on disk",
            figures.checkpointed,
        )?;
        counter(
            &mut encoder,
            "evenkeel_store_events",
            "Durable changes that watchers were told",
            figures.events,
        )?;
        gauge(
            &mut encoder,
            "evenkeel_store_pending_writes",
            "Transactions that wait for the writer",
            figures.pending_writes,
        )?;
        gauge(
            &mut encoder,
            "evenkeel_store_objects",
            "Objects",
            figures.objects as u64,
        )?;
        gauge(
            &mut encoder,
            "evenkeel_store_bytes",
            "Bytes of all objects",
            figures.bytes as u64,
        )?;
        gauge(
            &mut encoder,
            "evenkeel_store_watchers",
            "Watches of the store",
            figures.watchers as u64,
        )?;
        gauge(
            &mut encoder,
            "evenkeel_store_revision",
            "The newest revision",
            self.store.revision().0,
        )
    }
}

#[derive(Debug)]
struct ProcessFigures {
    stopwatch: Stopwatch,
}

impl Collector for ProcessFigures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        if let Some(bytes) = resident_bytes() {
            gauge(
                &mut encoder,
                "process_resident_memory_bytes",
                "Memory that this process has in RAM",
                bytes,
            )?;
        }
        if let Some(time) = cpu_time() {
            let seconds = ConstCounter::new(time.as_secs_f64());
            let metric = encoder.encode_descriptor(
                "process_cpu_seconds",
                "CPU time that this process used",
                None,
                seconds.metric_type(),
            )?;
            seconds.encode(metric)?;
        }
        gauge(
            &mut encoder,
            "evenkeel_uptime_seconds",
            "Time since this process began to serve",
            self.stopwatch.read().as_secs(),
        )
    }
}

/// What `/proc/self/status` says of the memory in RAM.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kilobytes = line.split_whitespace().nth(1)?.parse::<u64>().ok()?;
    Some(kilobytes * 1024)
}

/// What `/proc/self/stat` says: ticks of a hundredth of a second, in user and kernel.
fn cpu_time() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The program's name, in parentheses, may hold blanks.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user = fields.next()?.parse::<u64>().ok()?;
    let kernel = fields.next()?.parse::<u64>().ok()?;
    Some(Duration::from_millis(10 * (user + kernel)))
}

fn counter(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: u64,
) -> Result<(), std::fmt::Error> {
    let value = ConstCounter::new(value);
    let metric = encoder.encode_descriptor(name, help, None, value.metric_type())?;
    value.encode(metric)
}

fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: u64,
) -> Result<(), std::fmt::Error> {
    let value = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
    let metric = encoder.encode_descriptor(name, help, None, value.metric_type())?;
    value.encode(metric)
}
