//! Waiting for a condition with a deadline.

use std::{fmt::Display, time::Duration};

use tokio::time::Instant;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// Calls `look` until it answers `Ok`, and returns that. Panics at the deadline with the last reason.
pub async fn eventually<T, E: Display>(
    what: &str,
    deadline: Duration,
    mut look: impl AsyncFnMut() -> Result<T, E>,
) -> T {
    let end = Instant::now() + deadline;
    loop {
        match look().await {
            Ok(found) => return found,
            Err(reason) if Instant::now() >= end => {
                panic!("{what}: not within {deadline:?}: {reason}")
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Calls `look` again and again for all of `span`, and panics as soon as it answers `Err`.
pub async fn throughout<E: Display>(
    what: &str,
    span: Duration,
    mut look: impl AsyncFnMut() -> Result<(), E>,
) {
    let end = Instant::now() + span;
    while Instant::now() < end {
        if let Err(reason) = look().await {
            panic!("{what}: did not hold for {span:?}: {reason}");
        }
        tokio::time::sleep(PAUSE).await;
    }
}
