//! The clocks of this process: the one place where they are read.

use std::{sync::Arc, time::Duration};

use evenkeel_api::access;
use jiff::Timestamp;
use tokio::time::Instant;

/// The wall clock: for what people and certificates see, never for a verdict about silence.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the shell's one reading of the wall clock"
)]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// The wall clock, to hand on.
pub fn wall() -> access::Clock {
    Arc::new(now)
}

/// A monotonic clock with its origin. Tests pause it with tokio's.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    origin: Instant,
}

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Self {
        Self {
            origin: Instant::now(),
        }
    }

    /// The time since its origin.
    pub fn read(&self) -> Duration {
        self.origin.elapsed()
    }
}
