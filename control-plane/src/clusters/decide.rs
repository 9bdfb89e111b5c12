//! What has to be done for one cluster.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Taint;

use crate::liveness::{
    change,
    verdict::{Mode, Ready},
};

/// The namespace of a cluster's Works, as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceState {
    Absent,
    /// It lacks the label that says whose it is.
    Unlabelled,
    Active,
    Terminating,
}

/// A Work in that namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkState {
    pub name: String,
    /// Its agent has not yet said that the member is rid of it.
    pub held: bool,
}

/// Everything that a decision about one cluster looks at.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub mode: Mode,
    pub ready: Ready,
    pub terminating: bool,
    /// It holds our finalizer.
    pub held: bool,
    pub taints: Vec<Taint>,
    pub namespace: NamespaceState,
    /// Looked at only when the cluster is terminating.
    pub works: Vec<WorkState>,
    /// Bindings still name it. Looked at only when it is terminating.
    pub bound: bool,
    /// What is left of it beside its namespace: its lease, its secrets. Looked at only when it is terminating.
    pub left: Vec<Left>,
}

/// Something that belongs to a cluster and lies elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    Lease,
    Secret(String),
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    CreateNamespace,
    LabelNamespace,
    DeleteNamespace,
    /// New taints, where they change, and our finalizer added.
    Update {
        taints: Option<Vec<Taint>>,
    },
    /// Takes the agent's finalizer from a Work.
    ReleaseWork(String),
    Delete(Left),
    /// Takes our finalizer from the cluster: it is gone then.
    Release,
}

/// An action and why it is taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub action: Action,
    pub reason: &'static str,
}

/// What has to be done now. While a cluster is on its way out, it is asked again from time to time until it is gone.
///
/// A cluster that lives has its namespace, the taints of its condition, and the finalizer. One that is being deleted:
///
/// 1. its namespace is deleted, and its Works with it; the agent of a cluster that is Ready removes the copies first
///    and takes its finalizer off each Work;
/// 2. where the cluster is not Ready nobody does, so the finalizers are taken off here, and the copies stay behind. An
///    agent that dies half-way makes the cluster Unknown soon, so this is bounded in time;
/// 3. when the namespace is gone and no binding names the cluster, its lease and secrets go, and then the finalizer.
pub fn decide(state: &State, now: Timestamp) -> Vec<Step> {
    if state.terminating {
        return ending(state);
    }
    let mut steps = Vec::new();
    match state.namespace {
        NamespaceState::Absent => steps.push(step(
            Action::CreateNamespace,
            "a cluster has a namespace for its Works",
        )),
        NamespaceState::Unlabelled => steps.push(step(
            Action::LabelNamespace,
            "the namespace is part of the system",
        )),
        NamespaceState::Active | NamespaceState::Terminating => {}
    }
    let taints = change::taints(&state.taints, state.ready, now);
    if taints.is_some() {
        steps.push(step(
            Action::Update { taints },
            "taints follow the Ready condition",
        ));
    } else if !state.held {
        steps.push(step(
            Action::Update { taints: None },
            "its end is seen to here",
        ));
    }
    steps
}

fn ending(state: &State) -> Vec<Step> {
    // Without our finalizer somebody else's keeps it; what is ours is done.
    if !state.held {
        return Vec::new();
    }
    let mut steps = Vec::new();
    let nobody_home = state.mode == Mode::Push || state.ready != Ready::True;
    if nobody_home {
        for work in state.works.iter().filter(|work| work.held) {
            steps.push(step(
                Action::ReleaseWork(work.name.clone()),
                "the cluster is being deleted and is not Ready",
            ));
        }
    }
    match state.namespace {
        NamespaceState::Active | NamespaceState::Unlabelled => steps.push(step(
            Action::DeleteNamespace,
            "the cluster is being deleted",
        )),
        NamespaceState::Terminating => {}
        NamespaceState::Absent if state.bound => {}
        NamespaceState::Absent if !state.left.is_empty() => {
            for left in &state.left {
                steps.push(step(
                    Action::Delete(left.clone()),
                    "the cluster is being deleted",
                ));
            }
        }
        NamespaceState::Absent => {
            steps.push(step(Action::Release, "nothing is left of the cluster"));
        }
    }
    steps
}

fn step(action: Action, reason: &'static str) -> Step {
    Step { action, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-01-02T03:04:05Z".parse().unwrap()
    }

    fn settled() -> State {
        State {
            mode: Mode::Pull,
            ready: Ready::True,
            terminating: false,
            held: true,
            taints: Vec::new(),
            namespace: NamespaceState::Active,
            works: Vec::new(),
            bound: false,
            left: Vec::new(),
        }
    }

    fn actions(state: &State) -> Vec<Action> {
        decide(state, now())
            .into_iter()
            .map(|step| step.action)
            .collect()
    }

    #[test]
    fn a_settled_cluster_needs_nothing() {
        assert!(actions(&settled()).is_empty());
    }

    #[test]
    fn a_new_cluster_gets_its_namespace_taint_and_finalizer() {
        let state = State {
            ready: Ready::Never,
            held: false,
            namespace: NamespaceState::Absent,
            ..settled()
        };
        let actions = actions(&state);
        assert_eq!(actions[0], Action::CreateNamespace);
        let Action::Update {
            taints: Some(taints),
        } = &actions[1]
        else {
            panic!("{actions:?}");
        };
        assert_eq!(taints[0].key, "cluster.karmada.io/not-ready");
        assert_eq!(actions.len(), 2);
    }

    #[test]
    fn endings() {
        let work = |held| {
            vec![WorkState {
                name: "w".into(),
                held,
            }]
        };
        let end = State {
            terminating: true,
            ..settled()
        };
        let table = [
            ("begins", end.clone(), vec![Action::DeleteNamespace]),
            (
                "a Ready cluster's agent takes its time",
                State {
                    namespace: NamespaceState::Terminating,
                    works: work(true),
                    ..end.clone()
                },
                vec![],
            ),
            (
                "one that is Unknown is not waited for",
                State {
                    ready: Ready::Unknown,
                    namespace: NamespaceState::Terminating,
                    works: work(true),
                    ..end.clone()
                },
                vec![Action::ReleaseWork("w".into())],
            ),
            (
                "one that never was Ready neither",
                State {
                    ready: Ready::Never,
                    works: work(true),
                    ..end.clone()
                },
                vec![Action::ReleaseWork("w".into()), Action::DeleteNamespace],
            ),
            (
                "a released Work goes by itself",
                State {
                    ready: Ready::False,
                    namespace: NamespaceState::Terminating,
                    works: work(false),
                    ..end.clone()
                },
                vec![],
            ),
            (
                "bindings let go first",
                State {
                    namespace: NamespaceState::Absent,
                    bound: true,
                    left: vec![Left::Lease],
                    ..end.clone()
                },
                vec![],
            ),
            (
                "then lease and secrets",
                State {
                    namespace: NamespaceState::Absent,
                    left: vec![Left::Lease, Left::Secret("m1".into())],
                    ..end.clone()
                },
                vec![
                    Action::Delete(Left::Lease),
                    Action::Delete(Left::Secret("m1".into())),
                ],
            ),
            (
                "then the cluster",
                State {
                    namespace: NamespaceState::Absent,
                    ..end.clone()
                },
                vec![Action::Release],
            ),
            (
                "what is not held by us is not ours",
                State { held: false, ..end },
                vec![],
            ),
        ];
        for (name, state, expected) in table {
            assert_eq!(actions(&state), expected, "{name}");
        }
    }
}
