//! Placement rules.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::TopologySpreadConstraint;

use super::{faults, known, shown};
use crate::{
    field::FieldError,
    placement::{
        ClusterAffinity, ClusterAffinityTerm, FieldSelector, Placement, ReplicaDivisionPreference,
        SpreadConstraint, SpreadField, WorkloadAffinity,
    },
    syntax,
};

/// The rules of a placement at `path` (`spec.placement`).
pub fn placement(placement: &Placement, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if placement.cluster_affinity.is_some() && !placement.cluster_affinities.is_empty() {
        let why = "clusterAffinities cannot co-exist with clusterAffinity";
        errors.push(FieldError::invalid(
            path,
            &shown(&placement.cluster_affinities),
            why,
        ));
    }
    if let Some(affinity) = &placement.cluster_affinity {
        errors.extend(self::affinity(affinity, &format!("{path}.clusterAffinity")));
    }
    errors.extend(terms(placement, &format!("{path}.clusterAffinities")));
    errors.extend(spread(
        &placement.spread_constraints,
        &format!("{path}.spreadConstraints"),
    ));
    for (i, toleration) in placement.cluster_tolerations.iter().enumerate() {
        let operator = toleration.operator.as_deref().unwrap_or_default();
        if !matches!(operator, "" | "Exists" | "Equal") {
            errors.push(FieldError::not_supported(
                format!("{path}.clusterTolerations[{i}].operator"),
                &operator.into(),
                &["", "Exists", "Equal"],
            ));
        }
    }
    if let Some(affinity) = &placement.workload_affinity {
        errors.extend(workload(affinity, &format!("{path}.workloadAffinity")));
    }
    if let Some(scheduling) = &placement.replica_scheduling {
        let path = format!("{path}.replicaScheduling");
        errors.extend(known(
            scheduling.replica_scheduling_type.as_ref(),
            format!("{path}.replicaSchedulingType"),
        ));
        errors.extend(known(
            scheduling.replica_division_preference.as_ref(),
            format!("{path}.replicaDivisionPreference"),
        ));
        if let Some(weights) = &scheduling.weight_preference {
            let path = format!("{path}.weightPreference");
            errors.extend(known(
                weights.dynamic_weight.as_ref(),
                format!("{path}.dynamicWeight"),
            ));
            for (i, rule) in weights.static_weight_list.iter().enumerate() {
                if rule.weight < 1 {
                    let path = format!("{path}.staticWeightList[{i}].weight");
                    let why = "should be greater than or equal to 1";
                    errors.push(FieldError::invalid(path, &rule.weight.into(), why));
                }
            }
        }
    }
    for (i, constraint) in placement.topology_spread_constraints.iter().enumerate() {
        let path = format!("{path}.topologySpreadConstraints[{i}]");
        errors.extend(topology(constraint, &path));
    }
    errors.extend(known(
        placement.rebalance.as_ref(),
        format!("{path}.rebalance"),
    ));
    errors
}

/// The rules of a cluster affinity: its field selector is over provider, region and zone.
pub fn affinity(affinity: &ClusterAffinity, path: &str) -> Vec<FieldError> {
    let selector = affinity.field_selector.as_ref();
    selector.map_or_else(Vec::new, |selector| {
        fields(selector, &format!("{path}.fieldSelector"))
    })
}

fn fields(selector: &FieldSelector, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for expression in &selector.match_expressions {
        let (key, operator) = (&expression.key, &expression.operator);
        let why = if !matches!(key.as_str(), "provider" | "region" | "zone") {
            format!("unsupported key \"{key}\", must be provider, region, or zone")
        } else if !matches!(operator.as_str(), "In" | "NotIn") {
            format!("unsupported operator \"{operator}\", must be In or NotIn")
        } else {
            continue;
        };
        errors.push(FieldError::invalid(path, &shown(selector), &why));
    }
    errors
}

fn terms(placement: &Placement, list: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let terms = &placement.cluster_affinities;
    let scheduling = placement.replica_scheduling.as_ref();
    let overflows = scheduling.is_some_and(|scheduling| {
        scheduling.replica_division_preference == Some(ReplicaDivisionPreference::Aggregated)
            || scheduling
                .weight_preference
                .as_ref()
                .is_some_and(|weights| weights.dynamic_weight.is_some())
    });
    let with_overflow =
        |(_, term): &(usize, &ClusterAffinityTerm)| !term.overflow_affinities.is_empty();
    if !overflows {
        for (i, term) in terms.iter().enumerate().filter(with_overflow) {
            errors.push(FieldError::invalid(
                format!("{list}[{i}].overflowAffinities"),
                &shown(&term.overflow_affinities),
                "overflowAffinities can only be used together with dynamic weight or aggregated scheduling",
            ));
        }
    }
    let mut names = BTreeSet::new();
    for (i, term) in terms.iter().enumerate() {
        let path = format!("{list}[{i}]");
        errors.extend(faults(
            &path,
            &term.affinity_name,
            &syntax::qualified_name(&term.affinity_name),
        ));
        errors.extend(affinity(&term.affinity, &path));
        errors.extend(overflow(term, &format!("{path}.overflowAffinities")));
        if !names.insert(&term.affinity_name) {
            errors.push(FieldError::invalid(
                list,
                &shown(terms),
                "each affinity term in a policy must have a unique name",
            ));
        }
    }
    errors
}

fn overflow(term: &ClusterAffinityTerm, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if !term.overflow_affinities.is_empty() && term.affinity == ClusterAffinity::default() {
        errors.push(FieldError::invalid(
            path,
            &shown(&term.overflow_affinities),
            "overflowAffinities can only be used together with the inline ClusterAffinity",
        ));
    }
    let mut names = BTreeSet::from([&term.affinity_name]);
    for (i, overflow) in term.overflow_affinities.iter().enumerate() {
        let path = format!("{path}[{i}]");
        let name_path = format!("{path}.affinityName");
        let name = &overflow.affinity_name;
        errors.extend(faults(&name_path, name, &syntax::qualified_name(name)));
        if !names.insert(name) {
            errors.push(FieldError::invalid(
                name_path,
                &name.as_str().into(),
                "overflow affinity name must be unique and must not duplicate the primary group's affinityName",
            ));
        }
        errors.extend(affinity(&overflow.affinity, &path));
    }
    errors
}

fn spread(constraints: &[SpreadConstraint], path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut fields = Vec::new();
    for (i, constraint) in constraints.iter().enumerate() {
        let path = format!("{path}[{i}]");
        let value = shown(constraint);
        let mut wrong = |why| errors.push(FieldError::invalid(path.clone(), &value, why));
        if constraint.spread_by_field.is_some() && !constraint.spread_by_label.is_empty() {
            wrong("spreadByLabel should not co-exist with spreadByField");
        }
        let (min, max) = (
            constraint.min_groups.unwrap_or_default(),
            constraint.max_groups.unwrap_or_default(),
        );
        if min < 0 {
            wrong("minGroups lower than 0 is not allowed");
        }
        if max < 0 {
            wrong("maxGroups lower than 0 is not allowed");
        }
        if max > 0 && max < min {
            wrong("maxGroups lower than minGroups is not allowed");
        }
        if let Some(field) = &constraint.spread_by_field {
            fields.push(field);
        }
        errors.extend(known(
            constraint.spread_by_field.as_ref(),
            format!("{path}.spreadByField"),
        ));
    }
    if !fields.is_empty() && !fields.contains(&&SpreadField::Cluster) {
        let why = "the cluster spread constraint must be enabled in one of the constraints in case of SpreadByField is enabled";
        errors.push(FieldError::invalid(path, &shown(&constraints), why));
    }
    let distinct = fields.iter().collect::<BTreeSet<_>>();
    for field in distinct {
        if fields.iter().filter(|other| *other == field).count() > 1 {
            let why = format!("multiple {field} spread constraints are not allowed");
            errors.push(FieldError::invalid(path, &shown(&constraints), &why));
        }
    }
    errors
}

fn workload(workload: &WorkloadAffinity, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let terms = [
        ("affinity", &workload.affinity),
        ("antiAffinity", &workload.anti_affinity),
    ];
    for (field, term) in terms {
        if let Some(term) = term {
            let path = format!("{path}.{field}.groupByLabelKey");
            let key = &term.group_by_label_key;
            errors.extend(faults(&path, key, &syntax::qualified_name(key)));
        }
    }
    if let (Some(near), Some(away)) = (&workload.affinity, &workload.anti_affinity)
        && near.group_by_label_key == away.group_by_label_key
    {
        let why = "affinity and antiAffinity must not use the same groupByLabelKey";
        errors.push(FieldError::invalid(
            path,
            &near.group_by_label_key.as_str().into(),
            why,
        ));
    }
    errors
}

/// The rules of Kubernetes' own field that need nothing but the constraint.
fn topology(constraint: &TopologySpreadConstraint, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if constraint.max_skew <= 0 {
        let path = format!("{path}.maxSkew");
        errors.push(FieldError::invalid(
            path,
            &constraint.max_skew.into(),
            "must be greater than zero",
        ));
    }
    let key_path = format!("{path}.topologyKey");
    if constraint.topology_key.is_empty() {
        errors.push(FieldError::required(key_path, "can not be empty"));
    } else {
        errors.extend(faults(
            &key_path,
            &constraint.topology_key,
            &syntax::qualified_name(&constraint.topology_key),
        ));
    }
    if !matches!(
        constraint.when_unsatisfiable.as_str(),
        "DoNotSchedule" | "ScheduleAnyway"
    ) {
        errors.push(FieldError::not_supported(
            format!("{path}.whenUnsatisfiable"),
            &constraint.when_unsatisfiable.as_str().into(),
            &["DoNotSchedule", "ScheduleAnyway"],
        ));
    }
    if constraint.min_domains.is_some_and(|domains| domains <= 0) {
        let path = format!("{path}.minDomains");
        errors.push(FieldError::invalid(
            path,
            &shown(&constraint.min_domains),
            "must be greater than 0",
        ));
    }
    errors
}
