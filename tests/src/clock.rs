//! The one place where this crate reads the wall clock.

use std::time::Duration;

use jiff::Timestamp;

/// Now, by the machine's clock.
#[expect(
    clippy::disallowed_methods,
    reason = "the shell's one reading of the wall clock"
)]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// Now, by a clock that is off by so many seconds.
pub fn now_off_by(seconds: i64) -> Timestamp {
    now()
        .checked_add(jiff::SignedDuration::from_secs(seconds))
        .unwrap_or_else(|_| now())
}

/// How long ago `then` was; zero when it lies ahead.
pub fn since(then: Timestamp) -> Duration {
    now()
        .duration_since(then)
        .try_into()
        .unwrap_or(Duration::ZERO)
}
