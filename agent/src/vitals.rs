//! How the agent itself is doing, for `/readyz`, the metrics and the log: each change is told once.

use jiff::Timestamp;
use parking_lot::Mutex;

use crate::metrics::Metrics;

/// One thing that must work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pulse {
    /// Not tried yet.
    Untried,
    Well,
    Ill(String),
}

#[derive(Debug)]
struct State {
    control_plane: Pulse,
    member: Pulse,
    registered: Pulse,
    expiry: Option<Timestamp>,
    identity: Pulse,
}

/// Shared by all tasks.
#[derive(Debug)]
pub struct Vitals {
    state: Mutex<State>,
    pub metrics: Metrics,
}

/// One line of `/readyz?verbose`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub name: &'static str,
    /// Why not, when not.
    pub trouble: Option<String>,
}

impl Vitals {
    pub fn new(metrics: Metrics) -> Self {
        Self {
            state: Mutex::new(State {
                control_plane: Pulse::Untried,
                member: Pulse::Untried,
                registered: Pulse::Untried,
                expiry: None,
                identity: Pulse::Untried,
            }),
            metrics,
        }
    }

    pub fn control_plane_answered(&self) {
        let mut state = self.state.lock();
        if state.control_plane != Pulse::Well {
            tracing::info!("the control plane answers");
            state.control_plane = Pulse::Well;
            self.metrics.control_plane_up.set(1);
        }
    }

    pub fn control_plane_silent(&self, why: &str) {
        let mut state = self.state.lock();
        match &state.control_plane {
            Pulse::Ill(known) if known == why => return,
            Pulse::Well => {
                self.metrics.control_plane_losses.inc();
            }
            _ => {}
        }
        tracing::warn!(error = why, "the control plane cannot be reached");
        state.control_plane = Pulse::Ill(why.to_owned());
        self.metrics.control_plane_up.set(0);
    }

    /// What the last probe of the member saw.
    pub fn member(&self, trouble: Option<&str>) {
        let pulse = trouble.map_or(Pulse::Well, |why| Pulse::Ill(why.to_owned()));
        let mut state = self.state.lock();
        if state.member == pulse {
            return;
        }
        if let Pulse::Ill(why) = &pulse {
            tracing::warn!(error = why, "the member is not well");
        } else {
            tracing::info!("the member is well");
        }
        self.metrics.member_up.set(i64::from(pulse == Pulse::Well));
        state.member = pulse;
    }

    pub fn registered(&self, trouble: Option<&str>) {
        self.state.lock().registered =
            trouble.map_or(Pulse::Well, |why| Pulse::Ill(why.to_owned()));
    }

    /// There is an identity, good until then.
    pub fn identity(&self, expiry: Timestamp) {
        let mut state = self.state.lock();
        state.identity = Pulse::Well;
        state.expiry = Some(expiry);
        self.metrics
            .certificate_expiry_seconds
            .set(expiry.as_second());
    }

    pub fn no_identity(&self, why: &str) {
        self.state.lock().identity = Pulse::Ill(why.to_owned());
    }

    /// Whether the agent can do its work, in parts.
    pub fn checks(&self, now: Timestamp) -> Vec<Check> {
        let state = self.state.lock();
        let check = |name, pulse: &Pulse| Check {
            name,
            trouble: match pulse {
                Pulse::Well => None,
                Pulse::Untried => Some("not tried yet".to_owned()),
                Pulse::Ill(why) => Some(why.clone()),
            },
        };
        let identity = match state.expiry {
            Some(expiry) if expiry <= now => Pulse::Ill(format!("expired at {expiry}")),
            _ => state.identity.clone(),
        };
        vec![
            check("control-plane", &state.control_plane),
            check("member", &state.member),
            check("identity", &identity),
            check("registration", &state.registered),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn troubles(vitals: &Vitals, now: &str) -> Vec<&'static str> {
        let checks = vitals.checks(now.parse().unwrap());
        checks
            .into_iter()
            .filter(|check| check.trouble.is_some())
            .map(|check| check.name)
            .collect()
    }

    #[test]
    fn ready_only_when_everything_was_seen_to_work() {
        let vitals = Vitals::new(Metrics::default());
        let now = "2026-01-01T00:00:00Z";
        assert_eq!(
            troubles(&vitals, now),
            ["control-plane", "member", "identity", "registration"]
        );
        vitals.control_plane_answered();
        vitals.member(None);
        vitals.identity("2026-02-01T00:00:00Z".parse().unwrap());
        vitals.registered(None);
        assert_eq!(troubles(&vitals, now), Vec::<&str>::new());
        assert_eq!(troubles(&vitals, "2026-02-01T00:00:00Z"), ["identity"]);
        vitals.control_plane_silent("connection refused");
        vitals.member(Some("500"));
        assert_eq!(troubles(&vitals, now), ["control-plane", "member"]);
    }

    #[test]
    fn a_loss_is_counted_once() {
        let vitals = Vitals::new(Metrics::default());
        vitals.control_plane_silent("a");
        assert_eq!(vitals.metrics.control_plane_losses.get(), 0);
        vitals.control_plane_answered();
        vitals.control_plane_silent("a");
        vitals.control_plane_silent("b");
        assert_eq!(vitals.metrics.control_plane_losses.get(), 1);
    }
}
