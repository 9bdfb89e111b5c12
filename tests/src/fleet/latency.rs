//! Latencies in quantiles.

use std::{fmt, time::Duration};

use serde::Serialize;

/// A distribution, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    pub count: usize,
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

impl Summary {
    /// Sorts `samples` on the way.
    pub fn of(samples: &mut [Duration]) -> Self {
        samples.sort_unstable();
        // The smallest sample that at least this share of all are not above.
        let quantile = |percent: usize| {
            let rank = (samples.len() * percent).div_ceil(100).max(1);
            samples
                .get(rank - 1)
                .map_or(0.0, |sample| sample.as_secs_f64() * 1e3)
        };
        Self {
            count: samples.len(),
            p50: quantile(50),
            p99: quantile(99),
            max: quantile(100),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms of {}",
            self.p50, self.p99, self.max, self.count
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples_that_were_seen() {
        for (name, count, expected) in [
            ("none", 0, (0.0, 0.0, 0.0)),
            ("one", 1, (1.0, 1.0, 1.0)),
            ("two", 2, (1.0, 2.0, 2.0)),
            ("hundred", 100, (50.0, 99.0, 100.0)),
            ("thousand", 1000, (500.0, 990.0, 1000.0)),
        ] {
            let mut samples = (1..=count)
                .rev()
                .map(Duration::from_millis)
                .collect::<Vec<_>>();
            let summary = Summary::of(&mut samples);
            assert_eq!((summary.p50, summary.p99, summary.max), expected, "{name}");
        }
    }
}
