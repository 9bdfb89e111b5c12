//! The one place where the agent reads the wall clock. Everything that decides takes `now` as an argument.

use jiff::Timestamp;

/// The wall clock, for stamps that others read. Deadlines and thresholds use tokio's monotonic clock.
#[expect(
    clippy::disallowed_methods,
    reason = "the shells' one reading of the wall clock"
)]
pub fn now() -> Timestamp {
    Timestamp::now()
}
