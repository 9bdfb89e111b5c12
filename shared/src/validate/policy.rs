//! Propagation and taint policies.

use super::{faults, known, placement, shown};
use crate::{
    field::FieldError,
    policy::{
        ApplicationFailoverBehavior, ClusterTaintPolicySpec, FailoverBehavior, PreemptionBehavior,
        PropagationSpec, PurgeMode, ResourceSelector, StatePreservation,
    },
    stamps, syntax,
};

/// The rules of a propagation policy; `namespace` is empty for a cluster-wide one.
pub fn propagation_policy(spec: &PropagationSpec, namespace: &str) -> Vec<FieldError> {
    let mut errors = placement::placement(&spec.placement, "spec.placement");
    if let Some(failover) = &spec.failover {
        if failover.application.is_some() && !spec.propagate_deps {
            let why = "application failover is set, propagateDeps must be true";
            errors.push(FieldError::invalid(
                "spec.propagateDeps",
                &false.into(),
                why,
            ));
        }
        errors.extend(self::failover(failover));
    }
    if spec.resource_selectors.is_empty() {
        errors.push(FieldError::required("spec.resourceSelectors", ""));
    }
    errors.extend(selectors(&spec.resource_selectors, namespace));
    if spec.preemption == Some(PreemptionBehavior::Always) {
        for (i, selector) in spec.resource_selectors.iter().enumerate() {
            if selector.name.is_empty() {
                let why = "name cannot be empty if preemption is Always, the empty name may cause unexpected resources preemption";
                let path = format!("spec.resourceSelectors[{i}].name");
                errors.push(FieldError::invalid(path, &"".into(), why));
            }
        }
    }
    if let Some(suspension) = &spec.suspension
        && suspension.dispatching == Some(true)
        && suspension
            .dispatching_on_clusters
            .as_ref()
            .is_some_and(|clusters| !clusters.cluster_names.is_empty())
    {
        let why = "suspension dispatching cannot co-exist with dispatchingOnClusters.clusterNames";
        errors.push(FieldError::invalid(
            "spec.suspension",
            &shown(suspension),
            why,
        ));
    }
    errors.extend(known(spec.preemption.as_ref(), "spec.preemption"));
    errors.extend(known(
        spec.conflict_resolution.as_ref(),
        "spec.conflictResolution",
    ));
    errors.extend(known(
        spec.activation_preference.as_ref(),
        "spec.activationPreference",
    ));
    if let Some(priority) = &spec.schedule_priority {
        let path = "spec.schedulePriority.priorityClassSource";
        errors.extend(known(priority.priority_class_source.as_ref(), path));
    }
    errors
}

/// Selectors say what they select, and a namespaced policy selects in its own namespace.
pub(crate) fn selectors(selectors: &[ResourceSelector], namespace: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (i, selector) in selectors.iter().enumerate() {
        let path = format!("spec.resourceSelectors[{i}]");
        for (field, value) in [
            ("apiVersion", &selector.api_version),
            ("kind", &selector.kind),
        ] {
            if value.is_empty() {
                errors.push(FieldError::required(format!("{path}.{field}"), ""));
            }
        }
        if !namespace.is_empty()
            && !selector.namespace.is_empty()
            && selector.namespace != namespace
        {
            let why =
                "namespace of resource selector must be the same as the namespace of the policy";
            let path = format!("{path}.namespace");
            errors.push(FieldError::invalid(
                path,
                &selector.namespace.as_str().into(),
                why,
            ));
        }
    }
    errors
}

fn failover(failover: &FailoverBehavior) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(application) = &failover.application {
        errors.extend(self::application(application));
    }
    if let Some(cluster) = &failover.cluster {
        errors.extend(known(
            cluster.purge_mode.as_ref(),
            "spec.failover.cluster.purgeMode",
        ));
        errors.extend(preservation(
            cluster.state_preservation.as_ref(),
            "spec.failover.cluster",
        ));
    }
    errors
}

fn application(application: &ApplicationFailoverBehavior) -> Vec<FieldError> {
    let path = "spec.failover.application";
    let mut errors = Vec::new();
    if let Some(seconds) = application.decision_conditions.toleration_seconds
        && seconds < 0
    {
        let path = format!("{path}.decisionConditions.tolerationSeconds");
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(path, &seconds.into(), why));
    }
    let gracefully = application.purge_mode == Some(PurgeMode::Gracefully);
    let grace_path = format!("{path}.gracePeriodSeconds");
    let grace = application.grace_period_seconds;
    if !gracefully && grace.is_some() {
        let why = "only takes effect when purgeMode is gracefully";
        errors.push(FieldError::invalid(
            grace_path.as_str(),
            &shown(&grace),
            why,
        ));
    }
    if gracefully && grace.is_none() {
        let why = "should not be empty when purgeMode is gracefully";
        errors.push(FieldError::invalid(
            grace_path.as_str(),
            &shown(&grace),
            why,
        ));
    }
    if grace.is_some_and(|seconds| seconds <= 0) {
        errors.push(FieldError::invalid(
            grace_path,
            &shown(&grace),
            "must be greater than 0",
        ));
    }
    errors.extend(known(
        application.purge_mode.as_ref(),
        format!("{path}.purgeMode"),
    ));
    errors.extend(preservation(application.state_preservation.as_ref(), path));
    errors
}

fn preservation(state: Option<&StatePreservation>, path: &str) -> Vec<FieldError> {
    let rules = state
        .map(|state| state.rules.as_slice())
        .unwrap_or_default();
    let mut errors = Vec::new();
    for (i, rule) in rules.iter().enumerate() {
        let path = format!("{path}.statePreservation.rules[{i}].aliasLabelName");
        let name = &rule.alias_label_name;
        errors.extend(faults(&path, name, &syntax::qualified_name(name)));
    }
    errors
}

/// The rules of a taint policy. `allow_no_execute`: taints that evict may be given.
pub fn taint_policy(spec: &ClusterTaintPolicySpec, allow_no_execute: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(clusters) = &spec.target_clusters {
        errors.extend(placement::affinity(clusters, "spec.targetClusters"));
    }
    for (i, taint) in spec.taints.iter().enumerate() {
        let path = format!("spec.taints[{i}]");
        if taint.effect == stamps::NO_EXECUTE && !allow_no_execute {
            let why = "Configuring taint with NoExecute effect is not allowed, this capability must be explicitly enabled by administrators through command-line flags";
            errors.push(FieldError::forbidden(path.as_str(), why));
        }
        let again = spec.taints[i + 1..]
            .iter()
            .any(|other| other.key == taint.key && other.effect == taint.effect);
        if again {
            errors.push(FieldError::duplicate(path, &shown(taint)));
        }
    }
    errors
}
