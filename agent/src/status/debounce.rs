//! A change of Ready counts only after it held, without a break, for a while.
//!
//! 1. An observation that differs from the one before begins a new run.
//! 2. While the published condition says the opposite (True against not True), it stays until the run is as long as
//!    the threshold: success for True, failure for False. At exactly the threshold the change counts.
//! 3. From Unknown to False there is nothing to hold back.
//! 4. Without a published condition, or without a memory, the observation counts at once.
//! 5. After a restart the memory is the published condition's: its status and the time since its last transition. So
//!    a restart holds nothing shorter, and an agent that was only cut off, whose condition the control plane turned
//!    Unknown, is believed at once.

use std::time::Duration;

use super::probe::Observation;

/// Thresholds of both directions.
#[derive(Clone, Copy, Debug)]
pub struct Thresholds {
    pub success: Duration,
    pub failure: Duration,
}

/// The status of the condition that stands in the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    True,
    False,
    Unknown,
}

/// What comes of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It counts.
    Publish,
    /// The published condition stays for now: the run is `held` long of `threshold`.
    Hold { held: Duration, threshold: Duration },
}

#[derive(Clone, Copy, Debug)]
struct Run {
    healthy: bool,
    /// `None`: longer than anybody remembers.
    since: Option<Duration>,
}

/// The memory. Times are since any fixed moment.
#[derive(Clone, Debug, Default)]
pub struct Debounce {
    run: Option<Run>,
}

impl Debounce {
    /// What a restart knows: the published condition and how long it has been that.
    pub fn resume(published: Option<Published>, for_: Duration, now: Duration) -> Self {
        let run = |healthy| Run {
            healthy,
            since: now.checked_sub(for_),
        };
        Self {
            run: match published {
                Some(Published::True) => Some(run(true)),
                Some(Published::False) => Some(run(false)),
                Some(Published::Unknown) | None => None,
            },
        }
    }

    /// Takes an observation.
    pub fn observe(
        &mut self,
        observation: &Observation,
        published: Option<Published>,
        thresholds: Thresholds,
        now: Duration,
    ) -> Decision {
        let healthy = observation.is_healthy();
        let Some(run) = &mut self.run else {
            self.run = Some(Run {
                healthy,
                since: None,
            });
            return Decision::Publish;
        };
        let Some(published) = published else {
            return Decision::Publish;
        };
        if run.healthy != healthy {
            *run = Run {
                healthy,
                since: Some(now),
            };
        }
        let threshold = if healthy {
            thresholds.success
        } else {
            thresholds.failure
        };
        let opposite = healthy != (published == Published::True);
        let held = run
            .since
            .map_or(Duration::MAX, |since| now.saturating_sub(since));
        if opposite && held < threshold {
            Decision::Hold { held, threshold }
        } else {
            Decision::Publish
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, io::Read};

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn observation(healthy: bool) -> Observation {
        if healthy {
            Observation::Healthy
        } else {
            Observation::Unreachable("x".to_owned())
        }
    }

    fn published(condition: &Value) -> Option<Published> {
        match condition["status"].as_str()? {
            "True" => Some(Published::True),
            "False" => Some(Published::False),
            _ => Some(Published::Unknown),
        }
    }

    fn vectors() -> Vec<Value> {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/data/karmada-vectors/debounce.jsonl.gz"
        );
        let mut text = String::new();
        flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap())
            .read_to_string(&mut text)
            .unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Plays a vector. `restart` makes the memory after a start, from the condition and how long it stood.
    fn play(
        case: &Value,
        restart: impl Fn(Option<Published>, Duration, Duration) -> Debounce,
    ) -> Vec<(String, String)> {
        let input = &case["input"];
        let seconds = |name: &str| Duration::from_secs(input[name].as_u64().unwrap());
        let thresholds = Thresholds {
            success: seconds("successThresholdSeconds"),
            failure: seconds("failureThresholdSeconds"),
        };
        let mut current = input.get("current").cloned().unwrap_or_default();
        let mut since = Duration::ZERO;
        let mut memory = restart(published(&current), Duration::ZERO, Duration::ZERO);
        let mut found = Vec::new();
        for step in input["steps"].as_array().unwrap() {
            let now = Duration::from_secs(step["at"].as_u64().unwrap());
            match step["action"].as_str().unwrap() {
                "probe" => {
                    let healthy = step["status"] == "True";
                    let decision =
                        memory.observe(&observation(healthy), published(&current), thresholds, now);
                    if decision == Decision::Publish {
                        if current["status"] != step["status"] {
                            since = now;
                        }
                        current = step.clone();
                    }
                    let text = |name: &str| current[name].as_str().unwrap_or_default().to_owned();
                    found.push((text("status"), text("reason")));
                }
                "setCurrent" => {
                    if current["status"] != step["status"] {
                        since = now;
                    }
                    current = step.clone();
                }
                "clearCurrent" => current = Value::Null,
                "restart" => memory = restart(published(&current), now.saturating_sub(since), now),
                other => panic!("{other}"),
            }
        }
        found
    }

    fn expected(case: &Value) -> Vec<(String, String)> {
        let text = |step: &Value, name: &str| step[name].as_str().unwrap_or_default().to_owned();
        case["expect"]["published"]
            .as_array()
            .unwrap()
            .iter()
            .map(|step| (text(step, "status"), text(step, "reason")))
            .collect()
    }

    #[test]
    fn decides_as_the_reference_does() {
        let vectors = vectors();
        assert_eq!(vectors.len(), 140);
        for case in &vectors {
            let found = play(case, |_, _, _| Debounce::default());
            assert_eq!(found, expected(case), "{}", case["id"]);
        }
    }

    /// With our restart rule the answers differ only where the first probe after a start contradicts the condition
    /// that stands: the reference believes it at once.
    #[test]
    fn the_restart_rule_changes_only_what_follows_a_restart() {
        let mut verdicts = BTreeMap::new();
        for case in vectors() {
            let same = play(&case, Debounce::resume) == expected(&case);
            let restarts = case["input"]["steps"]
                .as_array()
                .unwrap()
                .iter()
                .any(|step| step["action"] == "restart")
                || case["input"].get("current").is_some();
            if !same {
                assert!(restarts, "{} differs without a restart", case["id"]);
            }
            *verdicts.entry((restarts, same)).or_insert(0) += 1;
        }
        assert_eq!(verdicts.get(&(false, false)), None);
        assert!(verdicts[&(false, true)] >= 20, "{verdicts:?}");
        assert!(verdicts[&(true, false)] > 5, "{verdicts:?}");
    }

    const THRESHOLDS: Thresholds = Thresholds {
        success: Duration::from_secs(30),
        failure: Duration::from_secs(30),
    };

    #[test]
    fn rules_of_a_restart() {
        let second = Duration::from_secs;
        let hold = Decision::Hold {
            held: Duration::ZERO,
            threshold: second(30),
        };
        for (name, published, for_, healthy, expected) in [
            (
                "was True, fails now",
                Some(Published::True),
                600,
                false,
                hold,
            ),
            (
                "was False, is well now",
                Some(Published::False),
                600,
                true,
                hold,
            ),
            (
                "was True, still is",
                Some(Published::True),
                5,
                true,
                Decision::Publish,
            ),
            (
                "cut off, is well",
                Some(Published::Unknown),
                600,
                true,
                Decision::Publish,
            ),
            (
                "cut off, fails",
                Some(Published::Unknown),
                600,
                false,
                Decision::Publish,
            ),
            ("never reported", None, 0, false, Decision::Publish),
        ] {
            let now = second(1000);
            let mut memory = Debounce::resume(published, second(for_), now);
            let found = memory.observe(&observation(healthy), published, THRESHOLDS, now);
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn an_agent_that_was_only_cut_off_is_believed_at_once() {
        let mut memory = Debounce::resume(
            Some(Published::True),
            Duration::from_secs(90),
            Duration::from_secs(100),
        );
        let mut observe = |published, at| {
            memory.observe(
                &observation(true),
                Some(published),
                THRESHOLDS,
                Duration::from_secs(at),
            )
        };
        assert_eq!(observe(Published::True, 100), Decision::Publish);
        assert_eq!(observe(Published::Unknown, 110), Decision::Publish);
    }

    proptest! {
        /// What contradicts a standing True or False is published only after it held for the threshold.
        #[test]
        fn nothing_shorter_than_the_threshold_is_published(
            probes in prop::collection::vec(any::<bool>(), 1..60),
            restarts in prop::collection::vec(any::<bool>(), 60),
        ) {
            let period = 10;
            let mut current = Published::True;
            let mut since = Duration::ZERO;
            let mut memory = Debounce::resume(Some(current), Duration::ZERO, Duration::ZERO);
            let mut run = 0_u64;
            for (index, healthy) in probes.iter().enumerate() {
                let now = Duration::from_secs(index as u64 * period);
                if restarts[index] {
                    memory = Debounce::resume(Some(current), now.saturating_sub(since), now);
                    run = 0;
                }
                let contradicts = *healthy != (current == Published::True);
                let decision = memory.observe(&observation(*healthy), Some(current), THRESHOLDS, now);
                run = if contradicts { run + 1 } else { 0 };
                if contradicts {
                    prop_assert_eq!(decision == Decision::Publish, (run - 1) * period >= 30);
                } else {
                    prop_assert_eq!(decision, Decision::Publish);
                }
                if contradicts && decision == Decision::Publish {
                    current = if *healthy { Published::True } else { Published::False };
                    since = now;
                    run = 0;
                }
            }
        }
    }
}
