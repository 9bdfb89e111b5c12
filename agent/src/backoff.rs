//! Waiting longer after each failure, never the same for two agents.

use std::time::Duration;

/// Doubles from `first` to `most`; each wait is drawn from the upper half, so that agents do not come back together.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    most: Duration,
    failures: u32,
}

impl Backoff {
    pub const fn new(first: Duration, most: Duration) -> Self {
        Self {
            first,
            most,
            failures: 0,
        }
    }

    /// The wait before the next try.
    pub fn wait(&mut self) -> Duration {
        let whole = self
            .first
            .saturating_mul(2_u32.saturating_pow(self.failures))
            .min(self.most);
        self.failures = self.failures.saturating_add(1);
        whole.mul_f64(rand::random_range(0.5..=1.0))
    }

    /// It worked: the next failure waits the first time again.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

/// `period` and up to `share` of it more.
pub fn jittered(period: Duration, share: f64) -> Duration {
    period.mul_f64(1.0 + share * rand::random_range(0.0..=1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_the_bound_and_starts_over() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));
        for whole in [1, 2, 4, 8, 16, 30, 30, 30] {
            let wait = backoff.wait();
            let whole = Duration::from_secs(whole);
            assert!(wait <= whole && wait >= whole / 2, "{wait:?} for {whole:?}");
        }
        for _ in 0..100 {
            assert!(backoff.wait() <= Duration::from_secs(30));
        }
        backoff.reset();
        assert!(backoff.wait() <= Duration::from_secs(1));
    }

    #[test]
    fn jitter_stays_within_its_share() {
        for _ in 0..1000 {
            let wait = jittered(Duration::from_secs(10), 0.04);
            assert!((10.0..=10.4).contains(&wait.as_secs_f64()));
        }
    }
}
