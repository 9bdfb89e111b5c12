//! Constraints as they apply to one pod.

use k8s_openapi::{
    api::core::v1::TopologySpreadConstraint, apimachinery::pkg::apis::meta::v1::LabelSelector,
};

use super::{Labels, requirement::Requirements};

/// Of a hard constraint: no place is better than one that breaks it.
pub const DO_NOT_SCHEDULE: &str = "DoNotSchedule";
/// Of a soft constraint: the less it is broken, the better.
pub const SCHEDULE_ANYWAY: &str = "ScheduleAnyway";

/// Which pods a constraint counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counted {
    /// No selector: none, and not the pod itself either.
    Nothing,
    /// The selector `{}`: counts are zero, and yet the pod itself matches. So the real one has it.
    SelfOnly,
    /// Those that fulfil these.
    Matching(Requirements),
}

impl Counted {
    /// The effective selector: keys of `matchLabelKeys` that the pod carries are required to have its values.
    pub fn new(
        selector: Option<&LabelSelector>,
        match_label_keys: &[String],
        pod_labels: &Labels,
    ) -> Self {
        let Some(selector) = selector else {
            return Self::Nothing;
        };
        let mut requirements = Requirements::of_selector(selector);
        for key in match_label_keys {
            if let Some(value) = pod_labels.get(key) {
                requirements.require_value(key, value);
            }
        }
        if requirements.is_empty() {
            Self::SelfOnly
        } else {
            Self::Matching(requirements)
        }
    }

    /// Whether a placed pod with these labels is counted.
    pub fn counts(&self, labels: &Labels) -> bool {
        match self {
            Self::Nothing | Self::SelfOnly => false,
            Self::Matching(requirements) => requirements.matches(labels),
        }
    }

    /// Whether the pod that looks for a place counts as one more in its domain.
    pub fn matches_self(&self, labels: &Labels) -> bool {
        match self {
            Self::Nothing => false,
            Self::SelfOnly => true,
            Self::Matching(requirements) => requirements.matches(labels),
        }
    }
}

/// One constraint, with its optional fields filled in.
#[derive(Clone, Debug)]
pub struct Constraint {
    /// The label whose values are the domains.
    pub topology_key: String,
    /// How many more pods a domain may hold than the one that holds the fewest.
    pub max_skew: i64,
    /// 1 when unset.
    pub min_domains: i64,
    /// `DoNotSchedule`; else `ScheduleAnyway`.
    pub hard: bool,
    /// Which pods it counts.
    pub counted: Counted,
    /// `nodeAffinityPolicy`, Honor when unset.
    pub honor_affinity: bool,
    /// `nodeTaintsPolicy`, Ignore when unset.
    pub honor_taints: bool,
}

impl Constraint {
    /// A pod's own constraint.
    pub fn new(given: &TopologySpreadConstraint, pod_labels: &Labels) -> Self {
        let keys = given.match_label_keys.as_deref().unwrap_or_default();
        let counted = Counted::new(given.label_selector.as_ref(), keys, pod_labels);
        Self::with_counted(given, counted)
    }

    /// With another selection of pods than the constraint's own: default constraints have none.
    pub fn with_counted(given: &TopologySpreadConstraint, counted: Counted) -> Self {
        Self {
            topology_key: given.topology_key.clone(),
            max_skew: i64::from(given.max_skew),
            min_domains: given.min_domains.map_or(1, i64::from),
            hard: given.when_unsatisfiable == DO_NOT_SCHEDULE,
            counted,
            honor_affinity: given.node_affinity_policy.as_deref() != Some("Ignore"),
            honor_taints: given.node_taints_policy.as_deref() == Some("Honor"),
        }
    }
}
