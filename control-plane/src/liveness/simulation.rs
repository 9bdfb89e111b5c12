//! Runs of the monitor's rules in simulated time: agents crash, lose the network, restart and step their clocks; the
//! control plane is paused and restarted. Two things hold in every schedule:
//!
//! 1. a cluster that was silent for grace + period + 1 s, while the control plane ran, is Unknown;
//! 2. a cluster that was heard within the grace period never is made Unknown; pauses count towards it with a beat and the
//!    tolerance at most.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use proptest::{
    prelude::*,
    test_runner::{Config, RngSeed, TestRunner},
};

use super::{
    ledger::{Ledger, Standing, TOLERANCE},
    verdict::{Knobs, Mode, Ready},
};

/// Steps of the world, in milliseconds.
const TICK: u64 = 250;
const BEAT: Duration = Duration::from_millis(500);
const CLUSTERS: usize = 3;
const KNOBS: Knobs = Knobs {
    period: Duration::from_secs(5),
    grace: Duration::from_secs(40),
    startup_grace: Duration::from_mins(1),
};

#[derive(Clone, Debug)]
enum Disturbance {
    /// The agent is gone for so many milliseconds.
    Crash { cluster: usize, lasts: u64 },
    /// Its words do not arrive for so long.
    Partition { cluster: usize, lasts: u64 },
    /// Its clock jumps; what it writes into the lease jumps with it.
    ClockStep { cluster: usize },
    /// Its status is posted (True or False).
    Status { cluster: usize, ready: bool },
    /// The control plane is stopped for so long and goes on (a stopped process, a stalled machine).
    Pause { lasts: u64 },
    /// The control plane is gone for so long and starts with empty memory.
    Restart { lasts: u64 },
    /// The cluster is registered anew under the same name.
    Replaced { cluster: usize },
}

fn disturbance() -> impl Strategy<Value = (u64, Disturbance)> {
    let cluster = 0..CLUSTERS;
    let lasts = prop_oneof![200_u64..8_000, 8_000_u64..70_000, 70_000_u64..400_000];
    let what =
        (cluster, lasts, 0..12_u8, any::<bool>()).prop_map(|(cluster, lasts, which, ready)| {
            match which {
                0..=2 => Disturbance::Crash { cluster, lasts },
                3..=5 => Disturbance::Partition { cluster, lasts },
                6 => Disturbance::ClockStep { cluster },
                7 => Disturbance::Status { cluster, ready },
                8 | 9 => Disturbance::Pause { lasts },
                10 => Disturbance::Restart { lasts },
                _ => Disturbance::Replaced { cluster },
            }
        });
    (0_u64..40_000, what)
}

struct Agent {
    name: Arc<str>,
    uid: u32,
    ready: Ready,
    down_until: u64,
    cut_until: u64,
    next_renewal: u64,
    /// Milliseconds of the control plane running since it last heard this cluster, or since its last start.
    silent: u64,
    /// Pauses of the control plane in that time.
    pauses: u32,
}

struct World {
    now: u64,
    agents: Vec<Agent>,
    ledger: Ledger,
    next_beat: u64,
    next_pass: u64,
    stopped_until: u64,
    /// Words that arrived while the control plane was stopped wait in its sockets.
    queued: Vec<(usize, Option<bool>)>,
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn wall(milliseconds: u64) -> Timestamp {
    Timestamp::from_millisecond(1_700_000_000_000 + i64::try_from(milliseconds).unwrap()).unwrap()
}

impl World {
    fn new() -> Self {
        let agents = (0..CLUSTERS)
            .map(|index| Agent {
                name: format!("m{index}").into(),
                uid: 0,
                ready: Ready::Never,
                down_until: 0,
                cut_until: 0,
                next_renewal: index as u64 * 1_300,
                silent: 0,
                pauses: 0,
            })
            .collect();
        let mut world = Self {
            now: 0,
            agents,
            ledger: Ledger::new(BEAT),
            next_beat: 0,
            next_pass: 0,
            stopped_until: 0,
            queued: Vec::new(),
        };
        world.start();
        world
    }

    /// What the control plane does when it starts: reads the store.
    fn start(&mut self) {
        self.ledger = Ledger::new(BEAT);
        self.ledger.advance(ms(self.now));
        self.next_pass = self.now + 5_000;
        self.next_beat = self.now + 500;
        for index in 0..CLUSTERS {
            self.agents[index].silent = 0;
            self.agents[index].pauses = 0;
            self.observe(index);
        }
    }

    fn observe(&mut self, index: usize) {
        let agent = &self.agents[index];
        let standing = Standing {
            uid: agent.uid.to_string().into(),
            mode: Mode::Pull,
            ready: agent.ready,
        };
        self.ledger
            .observe(&agent.name, standing, ms(self.now), None);
    }

    fn heard(&mut self, index: usize, status: Option<bool>) {
        if let Some(ready) = status {
            self.agents[index].ready = if ready { Ready::True } else { Ready::False };
            self.observe(index);
        }
        self.agents[index].silent = 0;
        self.agents[index].pauses = 0;
        self.ledger
            .hear(&self.agents[index].name, ms(self.now), wall(self.now));
    }

    fn disturb(&mut self, what: &Disturbance) {
        match *what {
            Disturbance::Crash { cluster, lasts } => {
                self.agents[cluster].down_until = self.now + lasts;
            }
            Disturbance::Partition { cluster, lasts } => {
                self.agents[cluster].cut_until = self.now + lasts;
            }
            // The ledger is not shown the agents' clocks, so there is nothing to step. The renewal counts as any other.
            Disturbance::ClockStep { cluster } => self.agents[cluster].next_renewal = self.now,
            Disturbance::Status { cluster, ready } => {
                let agent = &self.agents[cluster];
                if self.now >= agent.down_until.max(agent.cut_until) {
                    self.queued.push((cluster, Some(ready)));
                }
            }
            Disturbance::Pause { lasts } => {
                self.stopped_until = self.stopped_until.max(self.now + lasts);
                for agent in &mut self.agents {
                    agent.pauses += 1;
                }
            }
            Disturbance::Restart { lasts } => {
                self.queued.clear();
                self.now += lasts;
                self.stopped_until = self.now;
                self.start();
            }
            Disturbance::Replaced { cluster } => {
                self.agents[cluster].uid += 1;
                self.agents[cluster].ready = Ready::Never;
                self.agents[cluster].silent = 0;
                self.agents[cluster].pauses = 0;
                self.observe(cluster);
            }
        }
    }

    fn tick(&mut self) -> Result<(), TestCaseError> {
        self.now += TICK;
        for index in 0..CLUSTERS {
            let agent = &mut self.agents[index];
            if self.now >= agent.next_renewal {
                agent.next_renewal = self.now + 10_000;
                if self.now >= agent.down_until.max(agent.cut_until) {
                    // An agent that comes back posts its status; only that clears Unknown.
                    let status =
                        matches!(agent.ready, Ready::Unknown | Ready::Never).then_some(true);
                    self.queued.push((index, status));
                }
            }
        }
        if self.now < self.stopped_until {
            return Ok(());
        }
        let ran = TICK.min(self.now - self.stopped_until);
        for agent in &mut self.agents {
            agent.silent += ran;
        }
        for (index, status) in std::mem::take(&mut self.queued) {
            self.heard(index, status);
        }
        if self.now >= self.next_beat {
            self.next_beat = self.now + 500;
            self.ledger.advance(ms(self.now));
            if self.now >= self.next_pass {
                self.next_pass = self.now + 5_000;
                self.pass()?;
            }
        }
        self.check()
    }

    fn pass(&mut self) -> Result<(), TestCaseError> {
        for overdue in self.ledger.overdue(&KNOBS) {
            let index = self
                .agents
                .iter()
                .position(|agent| agent.name == overdue.cluster)
                .expect("only clusters are judged");
            let agent = &self.agents[index];
            let silent = ms(agent.silent) + (BEAT + TOLERANCE) * agent.pauses;
            prop_assert!(
                silent >= KNOBS.grace,
                "{} is made Unknown after {silent:?} of silence",
                overdue.cluster
            );
            self.agents[index].ready = Ready::Unknown;
            self.observe(index);
        }
        Ok(())
    }

    fn check(&self) -> Result<(), TestCaseError> {
        for agent in &self.agents {
            let grace = if agent.ready == Ready::Never {
                KNOBS.startup_grace
            } else {
                KNOBS.grace
            };
            let bound = grace + KNOBS.period + Duration::from_secs(1);
            prop_assert!(
                agent.ready == Ready::Unknown || ms(agent.silent) <= bound,
                "{} is {:?} after {} ms of silence",
                agent.name,
                agent.ready,
                agent.silent
            );
        }
        Ok(())
    }
}

#[test]
fn the_two_invariants_hold_in_every_schedule() {
    let config = Config {
        cases: 4_000,
        rng_seed: RngSeed::Fixed(20_261_201),
        failure_persistence: None,
        ..Config::default()
    };
    let schedule = proptest::collection::vec(disturbance(), 1..25);
    TestRunner::new(config)
        .run(&schedule, |schedule| {
            let mut world = World::new();
            for (after, what) in &schedule {
                let at = world.now + after;
                while world.now < at {
                    world.tick()?;
                }
                world.disturb(what);
            }
            for _ in 0..(120_000 / TICK) {
                world.tick()?;
            }
            Ok(())
        })
        .unwrap();
}
