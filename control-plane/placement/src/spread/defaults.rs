//! The constraints of a pod that has none.

use k8s_openapi::{
    api::core::v1::TopologySpreadConstraint, apimachinery::pkg::apis::meta::v1::LabelSelector,
};

use super::{
    Labels,
    constraint::{Constraint, Counted, SCHEDULE_ANYWAY},
    requirement::Requirements,
};

/// Where defaults come from (`defaultingType` of the plugin's arguments).
#[derive(Clone, Debug)]
pub enum Defaults {
    /// Built in; nodes without the labels are not passed over.
    System(Vec<TopologySpreadConstraint>),
    /// One's own list; it may be empty.
    List(Vec<TopologySpreadConstraint>),
}

impl Default for Defaults {
    /// No defaults.
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl Defaults {
    /// What kube-scheduler has built in: hostname with maxSkew 3, zone with maxSkew 5, both soft.
    pub fn kubernetes() -> Self {
        Self::built_in(&[
            ("kubernetes.io/hostname", 3),
            ("topology.kubernetes.io/zone", 5),
        ])
    }

    /// The same for a fleet, where a cluster is what a host is to a cluster.
    pub fn fleet() -> Self {
        Self::built_in(&[
            ("topology.evenkeel.io/cluster", 3),
            ("topology.kubernetes.io/zone", 5),
        ])
    }

    fn built_in(constraints: &[(&str, i32)]) -> Self {
        Self::System(
            constraints
                .iter()
                .map(|&(key, max_skew)| TopologySpreadConstraint {
                    max_skew,
                    topology_key: key.to_owned(),
                    when_unsatisfiable: SCHEDULE_ANYWAY.to_owned(),
                    ..TopologySpreadConstraint::default()
                })
                .collect(),
        )
    }

    fn list(&self) -> &[TopologySpreadConstraint] {
        match self {
            Self::System(list) | Self::List(list) => list,
        }
    }
}

/// What selects a pod, in its own namespace: the Services whose selector matches it, and the workload that controls it.
#[derive(Clone, Debug, Default)]
pub struct Owners<'a> {
    /// The selectors of the Services of the namespace; `None` is a Service without one.
    pub services: Vec<Option<&'a Labels>>,
    /// The selector of the controlling ReplicationController.
    pub replication_controller: Option<&'a Labels>,
    /// The selector of the controlling ReplicaSet or StatefulSet.
    pub workload: Option<&'a LabelSelector>,
}

impl Owners<'_> {
    /// The selector for default constraints. Empty: nothing selects the pod, and the defaults do not apply.
    pub fn selector(&self, pod_labels: &Labels) -> Requirements {
        // A map, as in the real one: a later selector replaces an earlier value of the same key.
        let mut pairs = Labels::new();
        for selector in self.services.iter().flatten() {
            if Requirements::of_pairs(selector.iter()).matches(pod_labels) {
                pairs.extend(
                    selector
                        .iter()
                        .map(|(key, value)| (key.clone(), value.clone())),
                );
            }
        }
        if let Some(selector) = self.replication_controller {
            pairs.extend(
                selector
                    .iter()
                    .map(|(key, value)| (key.clone(), value.clone())),
            );
        }
        let mut requirements = Requirements::of_pairs(&pairs);
        if let Some(selector) = self.workload {
            requirements.and(Requirements::of_selector(selector));
        }
        requirements
    }
}

/// The constraints that apply to a pod: its own if it has any, else the defaults.
#[derive(Clone, Debug, Default)]
pub struct Applicable {
    /// In the order of their list.
    pub constraints: Vec<Constraint>,
    /// Whether a node must carry the keys of all soft constraints to be scored: not so for built-in defaults.
    pub need_all_keys: bool,
}

impl Applicable {
    /// `own` are the pod's constraints, `owners` what selects it.
    pub fn new(
        own: &[TopologySpreadConstraint],
        pod_labels: &Labels,
        defaults: &Defaults,
        owners: &Owners<'_>,
    ) -> Self {
        if !own.is_empty() {
            return Self {
                constraints: own
                    .iter()
                    .map(|given| Constraint::new(given, pod_labels))
                    .collect(),
                need_all_keys: true,
            };
        }
        let selector = owners.selector(pod_labels);
        if selector.is_empty() {
            return Self::default();
        }
        Self {
            constraints: defaults
                .list()
                .iter()
                .map(|given| Constraint::with_counted(given, Counted::Matching(selector.clone())))
                .collect(),
            need_all_keys: matches!(defaults, Defaults::List(_)),
        }
    }
}
