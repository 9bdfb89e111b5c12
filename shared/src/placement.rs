//! The placement rules of a policy: which members, how many groups of them, and how replicas are divided.

use k8s_openapi::{
    api::core::v1::{NodeSelectorRequirement, Toleration, TopologySpreadConstraint},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use serde::{Deserialize, Serialize};

use crate::wire::{Absent, wire, words};

words! {
    /// What the groups of a spread constraint are.
    pub enum SpreadField {
        /// Every cluster is a group.
        Cluster = "cluster",
        /// Clusters of one region.
        Region = "region",
        /// Clusters of one zone.
        Zone = "zone",
        /// Clusters of one provider.
        Provider = "provider",
    }

    /// How replicas go to clusters.
    pub enum ReplicaSchedulingType {
        /// Every cluster gets all of them.
        Duplicated = "Duplicated",
        /// They are shared out.
        Divided = "Divided",
    }

    /// How replicas are shared out.
    pub enum ReplicaDivisionPreference {
        /// Into as few clusters as hold them.
        Aggregated = "Aggregated",
        /// By weight.
        Weighted = "Weighted",
    }

    /// What dynamic weights are made of.
    pub enum DynamicWeightFactor {
        /// How many replicas a cluster has room for.
        AvailableReplicas = "AvailableReplicas",
    }

    /// Whether replicas move when the actual skew gets out of bounds.
    pub enum Rebalance {
        /// Never.
        Never = "Never",
        /// When a spread constraint has been violated for a while. The default.
        OnViolation = "OnViolation",
    }
}

wire! {
    /// Where a template goes.
    pub struct Placement {
        /// Which members; none given: all. Not together with `cluster_affinities`.
        pub cluster_affinity: Option<ClusterAffinity>,
        /// Choices in order of preference.
        pub cluster_affinities: Vec<ClusterAffinityTerm>,
        /// Cluster taints that the template puts up with.
        pub cluster_tolerations: Vec<Toleration>,
        /// How many groups of clusters.
        pub spread_constraints: Vec<SpreadConstraint>,
        /// How replicas are shared; none given: duplicated.
        pub replica_scheduling: Option<ReplicaSchedulingStrategy>,
        /// Near to or away from other workloads.
        pub workload_affinity: Option<WorkloadAffinity>,
        /// Kubernetes' spread constraints, over the nodes of the whole fleet.
        pub topology_spread_constraints: Vec<TopologySpreadConstraint>,
        /// Those of the pod template count too.
        pub inherit_topology_spread_constraints: bool,
        /// Whether running replicas are moved to restore the spread.
        pub rebalance: Option<Rebalance>,
    }

    /// Which members: all parts that are given must fit, and none of `exclude`.
    pub struct ClusterAffinity {
        /// By label.
        pub label_selector: Option<LabelSelector>,
        /// By provider, region or zone.
        pub field_selector: Option<FieldSelector>,
        /// By name; empty: any.
        pub cluster_names: Vec<String>,
        /// Never these.
        pub exclude: Vec<String>,
    }

    /// A selector over `provider`, `region` and `zone`, operators `In` and `NotIn`.
    pub struct FieldSelector {
        /// All must hold.
        pub match_expressions: Vec<NodeSelectorRequirement>,
    }

    /// Groups of clusters that a template is spread over.
    pub struct SpreadConstraint {
        /// What a group is; `cluster` when neither this nor a label is given.
        pub spread_by_field: Option<SpreadField>,
        /// Groups are the values of this cluster label.
        pub spread_by_label: String,
        /// At most so many groups; not given (or 0): no limit.
        pub max_groups: Option<i64>,
        /// At least so many groups; 1 when not given.
        pub min_groups: Option<i64>,
    }

    /// How replicas are shared.
    pub struct ReplicaSchedulingStrategy {
        /// `Divided` when the block is there without it.
        pub replica_scheduling_type: Option<ReplicaSchedulingType>,
        /// For `Divided`; `Weighted` when not given.
        pub replica_division_preference: Option<ReplicaDivisionPreference>,
        /// For `Weighted`.
        pub weight_preference: Option<ClusterPreferences>,
    }

    /// Weights.
    pub struct ClusterPreferences {
        /// By rule.
        pub static_weight_list: Vec<StaticClusterWeight>,
        /// By what is free; wins over the list.
        pub dynamic_weight: Option<DynamicWeightFactor>,
    }

    /// The weight of the clusters that a rule selects.
    pub struct StaticClusterWeight {
        /// Which ones.
        pub target_cluster: ClusterAffinity,
        /// At least 1.
        pub weight: i64,
    }

    /// Near to or away from other workloads.
    pub struct WorkloadAffinity {
        /// Near to those with the same value of a label.
        pub affinity: Option<WorkloadAffinityTerm>,
        /// Away from them.
        pub anti_affinity: Option<WorkloadAffinityTerm>,
    }

    /// Groups workloads by a label of the template.
    pub struct WorkloadAffinityTerm {
        /// The label's key.
        pub group_by_label_key: String,
    }
}

/// One choice of clusters, by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterAffinityTerm {
    /// 1 to 32 characters, unique in the policy.
    pub affinity_name: String,
    /// Which clusters.
    #[serde(flatten)]
    pub affinity: ClusterAffinity,
    /// Where to go with what does not fit, in order.
    #[serde(
        skip_serializing_if = "Absent::absent",
        deserialize_with = "crate::wire::null_as_default"
    )]
    pub overflow_affinities: Vec<OverflowAffinityTerm>,
}

/// One further choice, for what does not fit in the first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OverflowAffinityTerm {
    /// 1 to 32 characters, unique in the term.
    pub affinity_name: String,
    /// Which clusters.
    #[serde(flatten)]
    pub affinity: ClusterAffinity,
}
