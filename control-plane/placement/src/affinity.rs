//! Whether a cluster is among those that a placement names.

use evenkeel_shared::placement::{ClusterAffinity, FieldSelector};

use crate::{
    fleet::ClusterView,
    selector::{self, requirement},
};

/// Whether a cluster matches: exclusion first, then everything that is given must hold; an empty affinity takes all.
pub fn matches(affinity: &ClusterAffinity, cluster: &ClusterView) -> bool {
    !affinity.exclude.contains(&cluster.name)
        && affinity
            .label_selector
            .as_ref()
            .is_none_or(|labels| selector::matches(labels, &cluster.labels))
        && affinity
            .field_selector
            .as_ref()
            .is_none_or(|fields| matches_fields(fields, cluster))
        && (affinity.cluster_names.is_empty() || affinity.cluster_names.contains(&cluster.name))
}

fn matches_fields(fields: &FieldSelector, cluster: &ClusterView) -> bool {
    fields.match_expressions.iter().all(|part| {
        let values = part.values.as_deref().unwrap_or_default();
        let single = |value: &str| {
            let value = (!value.is_empty()).then_some(value);
            requirement(&part.operator, values, value) == Some(true)
        };
        match part.key.as_str() {
            "zone" => matches_zones(&part.operator, values, &cluster.zones),
            "provider" => single(&cluster.provider),
            "region" => single(&cluster.region),
            _ => requirement(&part.operator, values, None) == Some(true),
        }
    })
}

/// A cluster may lie in several zones: `In` is any overlap, `NotIn` none.
fn matches_zones(operator: &str, values: &[String], zones: &[String]) -> bool {
    let overlap = || zones.iter().any(|zone| values.contains(zone));
    match operator {
        "In" => overlap(),
        "NotIn" => !overlap(),
        "Exists" => !zones.is_empty(),
        "DoesNotExist" => zones.is_empty(),
        _ => false,
    }
}
