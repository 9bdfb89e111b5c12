//! What the control plane costs, read from outside.

use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use crate::harness::process::{processor_time, resident};

/// Memory and processor of a process over a span.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Cost {
    pub resident_megabytes: f64,
    /// 1.0 is one core all the time.
    pub cores: f64,
}

/// Reads a process from the start of a span on.
pub struct Gauge {
    pid: u32,
    since: Instant,
    used: Duration,
}

impl Gauge {
    pub fn start(pid: u32) -> Self {
        Self {
            pid,
            since: Instant::now(),
            used: processor_time(pid).unwrap_or_default(),
        }
    }

    pub fn read(&self) -> Cost {
        let used = processor_time(self.pid)
            .unwrap_or_default()
            .saturating_sub(self.used);
        Cost {
            resident_megabytes: resident(self.pid).unwrap_or(0) as f64 / 1e6,
            cores: used.as_secs_f64() / self.since.elapsed().as_secs_f64().max(1e-9),
        }
    }
}

/// How many files this process may have open.
pub fn file_limit() -> Option<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}
