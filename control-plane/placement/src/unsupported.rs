//! What a policy may ask for that is not acted on yet. It is named, never ignored in silence.

use evenkeel_shared::{
    placement::{Placement, Rebalance, ReplicaSchedulingType},
    policy::{PreemptionBehavior, PropagationSpec},
};

/// Wishes about where and how a workload is placed. While they cannot be honoured nothing new is placed: a placement
/// that ignores them would be wrong.
pub fn in_placement(placement: &Placement) -> Vec<&'static str> {
    let scheduling = placement.replica_scheduling.as_ref();
    // A block without a type means Divided; the schema's default says so too.
    let divided = scheduling.is_some_and(|scheduling| {
        scheduling.replica_scheduling_type != Some(ReplicaSchedulingType::Duplicated)
    });
    let overflow = placement
        .cluster_affinities
        .iter()
        .any(|term| !term.overflow_affinities.is_empty());
    [
        (
            "placement.replicaScheduling.replicaSchedulingType: Divided",
            divided,
        ),
        (
            "placement.spreadConstraints",
            !placement.spread_constraints.is_empty(),
        ),
        (
            "placement.topologySpreadConstraints",
            !placement.topology_spread_constraints.is_empty(),
        ),
        (
            "placement.inheritTopologySpreadConstraints",
            placement.inherit_topology_spread_constraints,
        ),
        (
            "placement.workloadAffinity",
            placement.workload_affinity.is_some(),
        ),
        ("placement.clusterAffinities[].overflowAffinities", overflow),
    ]
    .into_iter()
    .filter_map(|(field, asked)| asked.then_some(field))
    .collect()
}

/// Wishes of a policy beyond its placement without which a copy would arrive incomplete. They hold back like those of
/// [`in_placement`].
pub fn in_delivery(spec: &PropagationSpec) -> Vec<&'static str> {
    [
        ("propagateDeps", spec.propagate_deps),
        ("dependentOverrides", !spec.dependent_overrides.is_empty()),
    ]
    .into_iter()
    .filter_map(|(field, asked)| asked.then_some(field))
    .collect()
}

/// Wishes about what happens later. The placement is right without them, so it is made, and they are named beside it.
pub fn later(spec: &PropagationSpec) -> Vec<&'static str> {
    [
        ("failover", spec.failover.is_some()),
        (
            "preemption: Always",
            spec.preemption == Some(PreemptionBehavior::Always),
        ),
        ("activationPreference", spec.activation_preference.is_some()),
        ("schedulePriority", spec.schedule_priority.is_some()),
        (
            "placement.rebalance: Never",
            spec.placement.rebalance == Some(Rebalance::Never),
        ),
    ]
    .into_iter()
    .filter_map(|(field, asked)| asked.then_some(field))
    .collect()
}
