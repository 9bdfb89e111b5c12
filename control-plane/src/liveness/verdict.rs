//! When a cluster is Unknown.

use std::time::Duration;

/// The monitor's durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knobs {
    /// Between two passes.
    pub period: Duration,
    /// How long a cluster may be silent.
    pub grace: Duration,
    /// How long one may be silent that never posted a status.
    pub startup_grace: Duration,
}

impl Default for Knobs {
    fn default() -> Self {
        Self {
            period: Duration::from_secs(5),
            grace: Duration::from_secs(40),
            startup_grace: Duration::from_mins(1),
        }
    }
}

/// What the Ready condition says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ready {
    /// There is no such condition: no status was ever posted.
    Never,
    True,
    False,
    Unknown,
}

impl Ready {
    /// The status of a condition as it stands on the wire; anything that is neither True nor False is Unknown.
    pub fn from_status(status: &str) -> Self {
        match status {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Never => "None",
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// Who is asked whether a cluster lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Its agent speaks for it: silence counts.
    Pull,
    /// The control plane would probe it: nobody renews a lease for it, so silence says nothing.
    Push,
}

/// Why a cluster is Unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// It was heard before, and not for the grace period.
    Stopped,
    /// It never posted a status.
    NeverUpdated,
}

impl Silence {
    /// The reason of the condition.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Stopped => "ClusterStatusUnknown",
            Self::NeverUpdated => "ClusterStatusNeverUpdated",
        }
    }
}

/// Whether the monitor has to say Unknown of a cluster that was silent for `silence`, pauses of the control plane not
/// counted.
///
/// 1. A push-mode cluster is never judged by silence.
/// 2. One that is Unknown already stays as it is: its reason and transition time are those of the first verdict.
/// 3. One that never posted a status has the startup grace period, every other one the grace period. A lease that is
///    renewed without a status being posted counts as being heard.
/// 4. Silence of exactly the grace period is not yet too long.
pub fn judge(mode: Mode, ready: Ready, silence: Duration, knobs: &Knobs) -> Option<Silence> {
    if mode == Mode::Push {
        return None;
    }
    let (limit, verdict) = match ready {
        Ready::Unknown => return None,
        Ready::Never => (knobs.startup_grace, Silence::NeverUpdated),
        Ready::True | Ready::False => (knobs.grace, Silence::Stopped),
    };
    (silence > limit).then_some(verdict)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts() {
        let s = Duration::from_secs;
        let ms = Duration::from_millis;
        let table = [
            ("just heard", Mode::Pull, Ready::True, s(0), None),
            ("within grace", Mode::Pull, Ready::True, s(39), None),
            ("exactly grace", Mode::Pull, Ready::True, s(40), None),
            (
                "over grace",
                Mode::Pull,
                Ready::True,
                ms(40_001),
                Some(Silence::Stopped),
            ),
            (
                "an unhealthy member can fall silent too",
                Mode::Pull,
                Ready::False,
                s(41),
                Some(Silence::Stopped),
            ),
            ("Unknown stays", Mode::Pull, Ready::Unknown, s(4_000), None),
            ("never posted, young", Mode::Pull, Ready::Never, s(60), None),
            (
                "never posted, old",
                Mode::Pull,
                Ready::Never,
                s(61),
                Some(Silence::NeverUpdated),
            ),
            ("push never", Mode::Push, Ready::Never, s(4_000), None),
            ("push true", Mode::Push, Ready::True, s(4_000), None),
            ("push false", Mode::Push, Ready::False, s(4_000), None),
        ];
        for (name, mode, ready, silence, expected) in table {
            assert_eq!(
                judge(mode, ready, silence, &Knobs::default()),
                expected,
                "{name}"
            );
        }
    }
}
