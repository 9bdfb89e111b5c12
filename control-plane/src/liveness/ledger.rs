//! Who was heard when, by the control plane's own clock.

use std::{collections::HashMap, sync::Arc, time::Duration};

use jiff::Timestamp;

use super::verdict::{Knobs, Mode, Ready, Silence, judge};

/// A reading of the monotonic clock, since an origin that is the same for the life of the process.
pub type Monotonic = Duration;

/// How late a beat may be without being a pause: what a busy machine does every now and then.
pub const TOLERANCE: Duration = Duration::from_secs(1);

/// What the ledger is told of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub uid: Arc<str>,
    pub mode: Mode,
    pub ready: Ready,
}

#[derive(Debug)]
struct Entry {
    standing: Standing,
    /// On the charged clock: when it was last heard in this run, or when its first grace period in this run began.
    silent_since: Duration,
    /// The wall clock when it was last heard, in this run or before; for people, never for a verdict.
    heard: Option<Timestamp>,
}

/// One cluster that has to be called Unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overdue {
    pub cluster: Arc<str>,
    pub verdict: Silence,
    /// How long it was silent in this run, pauses of the control plane not counted.
    pub silence: Duration,
    /// The wall clock when it was last heard, if it ever was.
    pub heard: Option<Timestamp>,
}

/// The memory of the monitor.
///
/// Silence is counted on the *charged clock*. The loop advances it at every beat, by the time since the beat before. A
/// beat that is late by more than a [`TOLERANCE`] tells of a pause of the control plane itself (a stopped process, a
/// stalled machine): it counts as if it had been on time, so the pause is charged to nobody. The agents' clocks decide
/// nothing; neither does the wall clock.
#[derive(Debug)]
pub struct Ledger {
    /// The time between two beats that are on time.
    beat: Duration,
    /// The charged clock at the last beat.
    charged: Duration,
    /// The monotonic clock at the last beat.
    beaten: Option<Monotonic>,
    /// The pause that was left out at the last beat.
    pause: Duration,
    entries: HashMap<Arc<str>, Entry>,
}

impl Ledger {
    /// An empty one, that will be advanced every `beat`.
    pub fn new(beat: Duration) -> Self {
        Self {
            beat,
            charged: Duration::ZERO,
            beaten: None,
            pause: Duration::ZERO,
            entries: HashMap::new(),
        }
    }

    /// Moves the charged clock. Returns by how much this beat is late.
    pub fn advance(&mut self, now: Monotonic) -> Duration {
        let gap = self
            .beaten
            .map_or(Duration::ZERO, |beaten| now.saturating_sub(beaten));
        let counted = if gap > self.beat + TOLERANCE {
            self.beat
        } else {
            gap
        };
        self.charged += counted;
        self.pause = gap.saturating_sub(counted);
        self.beaten = Some(now);
        gap.saturating_sub(self.beat)
    }

    /// The pause of the control plane that the last beat told of; zero when it was on time.
    pub fn pause(&self) -> Duration {
        self.pause
    }

    /// A cluster as it stands in the store. A new one, or one of the same name with another uid, begins a grace period.
    /// `now` is the monotonic clock; `heard` what a checkpoint says.
    pub fn observe(
        &mut self,
        cluster: &Arc<str>,
        standing: Standing,
        now: Monotonic,
        heard: Option<Timestamp>,
    ) {
        let charged_now = self.charged_at(now);
        match self.entries.get_mut(cluster) {
            Some(entry) if entry.standing.uid == standing.uid => entry.standing = standing,
            _ => {
                let entry = Entry {
                    standing,
                    silent_since: charged_now,
                    heard,
                };
                self.entries.insert(Arc::clone(cluster), entry);
            }
        }
    }

    pub fn forget(&mut self, cluster: &str) {
        self.entries.remove(cluster);
    }

    /// A cluster was heard at `at`. A name that is no cluster's is ignored.
    pub fn hear(&mut self, cluster: &str, at: Monotonic, wall: Timestamp) {
        let charged = self.charged_at(at);
        if let Some(entry) = self.entries.get_mut(cluster) {
            entry.silent_since = entry.silent_since.max(charged);
            entry.heard = Some(wall);
        }
    }

    /// The charged clock at a moment near the last beat. Before it, a pause may lie between the moment and the beat; it
    /// is taken off, in favour of the cluster. Behind it, no more counts than the next beat may count.
    fn charged_at(&self, at: Monotonic) -> Duration {
        let Some(beaten) = self.beaten else {
            return self.charged;
        };
        if at >= beaten {
            return self.charged + at.saturating_sub(beaten).min(self.beat + TOLERANCE);
        }
        let before = beaten.saturating_sub(at).saturating_sub(self.pause);
        self.charged.saturating_sub(before)
    }

    /// Everybody who has to be called Unknown now, as of the last beat, in the order of their names.
    pub fn overdue(&self, knobs: &Knobs) -> Vec<Overdue> {
        let mut overdue = self
            .entries
            .iter()
            .filter_map(|(cluster, entry)| {
                let silence = self.charged.saturating_sub(entry.silent_since);
                let verdict = judge(entry.standing.mode, entry.standing.ready, silence, knobs)?;
                Some(Overdue {
                    cluster: Arc::clone(cluster),
                    verdict,
                    silence,
                    heard: entry.heard,
                })
            })
            .collect::<Vec<_>>();
        overdue.sort_by(|a, b| a.cluster.cmp(&b.cluster));
        overdue
    }

    /// The wall clock when a cluster was last heard.
    pub fn heard(&self, cluster: &str) -> Option<Timestamp> {
        self.entries.get(cluster)?.heard
    }

    /// How many clusters there are of each Ready status, and the longest silence of one that is judged by it.
    pub fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for entry in self.entries.values() {
            match entry.standing.ready {
                Ready::Never => tally.never += 1,
                Ready::True => tally.ready += 1,
                Ready::False => tally.not_ready += 1,
                Ready::Unknown => tally.unknown += 1,
            }
            if entry.standing.mode == Mode::Pull {
                let silence = self.charged.saturating_sub(entry.silent_since);
                tally.longest_silence = tally.longest_silence.max(silence);
            }
        }
        tally
    }

    /// The times last heard, for the checkpoint, in the order of the names.
    pub fn times_heard(&self) -> Vec<(Arc<str>, Timestamp)> {
        let mut times = self
            .entries
            .iter()
            .filter_map(|(cluster, entry)| Some((Arc::clone(cluster), entry.heard?)))
            .collect::<Vec<_>>();
        times.sort_by(|a, b| a.0.cmp(&b.0));
        times
    }
}

/// The fleet in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub never: u64,
    pub ready: u64,
    pub not_ready: u64,
    pub unknown: u64,
    pub longest_silence: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOBS: Knobs = Knobs {
        period: Duration::from_secs(5),
        grace: Duration::from_secs(40),
        startup_grace: Duration::from_mins(1),
    };

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn standing(ready: Ready) -> Standing {
        Standing {
            uid: "u1".into(),
            mode: Mode::Pull,
            ready,
        }
    }

    fn wall(seconds: u64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + i64::try_from(seconds).unwrap()).unwrap()
    }

    /// Passes every 5 s from `from` to `to`; the second at which the cluster is first overdue.
    fn first_overdue(ledger: &mut Ledger, from: u64, to: u64) -> Option<u64> {
        (from..=to).step_by(5).find(|&second| {
            ledger.advance(s(second));
            !ledger.overdue(&KNOBS).is_empty()
        })
    }

    #[test]
    fn a_silent_cluster_is_overdue_after_the_grace_period() {
        let mut ledger = Ledger::new(KNOBS.period);
        ledger.advance(s(0));
        let name = Arc::from("m1");
        ledger.observe(&name, standing(Ready::True), s(0), None);
        ledger.hear("m1", s(3), wall(3));
        assert_eq!(first_overdue(&mut ledger, 5, 200), Some(45));
        assert_eq!(ledger.overdue(&KNOBS)[0].heard, Some(wall(3)));
        assert_eq!(ledger.overdue(&KNOBS)[0].silence, s(42));
    }

    #[test]
    fn a_cluster_that_never_spoke_has_the_startup_grace() {
        let mut ledger = Ledger::new(KNOBS.period);
        ledger.advance(s(0));
        ledger.observe(&Arc::from("m1"), standing(Ready::Never), s(2), None);
        assert_eq!(first_overdue(&mut ledger, 5, 200), Some(65));
        assert_eq!(ledger.overdue(&KNOBS)[0].verdict, Silence::NeverUpdated);
    }

    #[test]
    fn a_pause_of_the_control_plane_is_charged_to_nobody() {
        let mut ledger = Ledger::new(KNOBS.period);
        ledger.advance(s(0));
        ledger.observe(&Arc::from("m1"), standing(Ready::True), s(0), None);
        ledger.advance(s(5));
        ledger.hear("m1", s(7), wall(7));
        // Stopped from 8 to 308: the pass of 10 comes at 308.
        let late = ledger.advance(s(308));
        assert_eq!(late, s(298));
        assert!(ledger.overdue(&KNOBS).is_empty());
        assert_eq!(first_overdue(&mut ledger, 313, 500), Some(348));
    }

    #[test]
    fn what_was_heard_before_a_pause_but_counted_after_it_is_not_charged_with_it() {
        let mut ledger = Ledger::new(KNOBS.period);
        ledger.advance(s(0));
        ledger.observe(&Arc::from("m1"), standing(Ready::True), s(0), None);
        ledger.advance(s(100));
        ledger.hear("m1", s(2), wall(2));
        ledger.advance(s(105));
        assert!(ledger.tally().longest_silence <= s(8));
    }

    #[test]
    fn a_cluster_of_the_same_name_and_another_uid_begins_anew() {
        let mut ledger = Ledger::new(KNOBS.period);
        ledger.advance(s(0));
        let name = Arc::from("m1");
        ledger.observe(&name, standing(Ready::True), s(0), None);
        for second in [5, 10, 15, 20, 25, 30, 35, 40] {
            ledger.advance(s(second));
        }
        let mut other = standing(Ready::True);
        other.uid = "u2".into();
        ledger.observe(&name, other, s(40), None);
        assert_eq!(first_overdue(&mut ledger, 45, 200), Some(85));
    }

    #[test]
    fn a_status_change_alone_is_not_being_heard() {
        let mut ledger = Ledger::new(KNOBS.period);
        ledger.advance(s(0));
        let name = Arc::from("m1");
        ledger.observe(&name, standing(Ready::True), s(0), None);
        for second in [5, 10, 15, 20, 25, 30, 35, 40] {
            ledger.advance(s(second));
        }
        ledger.observe(&name, standing(Ready::False), s(40), None);
        assert_eq!(first_overdue(&mut ledger, 45, 200), Some(45));
    }

    #[test]
    fn a_checkpointed_time_is_named_but_does_not_shorten_the_fresh_grace() {
        let mut ledger = Ledger::new(KNOBS.period);
        ledger.advance(s(0));
        ledger.observe(&Arc::from("m1"), standing(Ready::True), s(0), Some(wall(0)));
        assert_eq!(first_overdue(&mut ledger, 5, 200), Some(45));
        assert_eq!(ledger.overdue(&KNOBS)[0].heard, Some(wall(0)));
    }

    #[test]
    fn the_tally_counts_by_status() {
        let mut ledger = Ledger::new(KNOBS.period);
        ledger.advance(s(0));
        for (name, ready) in [
            ("a", Ready::True),
            ("b", Ready::True),
            ("c", Ready::False),
            ("d", Ready::Unknown),
            ("e", Ready::Never),
        ] {
            ledger.observe(&Arc::from(name), standing(ready), s(0), None);
        }
        ledger.advance(s(5));
        let expected = Tally {
            never: 1,
            ready: 2,
            not_ready: 1,
            unknown: 1,
            longest_silence: s(5),
        };
        assert_eq!(ledger.tally(), expected);
    }
}
