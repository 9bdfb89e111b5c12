//! `work.karmada.io/v1alpha2` bindings: which template goes to which members, and how it is doing there.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{NodeSelector, Toleration},
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
};
use serde_json::Value;

use crate::{
    cluster::ResourceList,
    placement::Placement,
    policy::{ConflictResolution, FailoverBehavior, PurgeMode, SuspendClusters},
    wire::{object, wire},
    work::Health,
};

object! {
    /// The binding of a namespaced template.
    ResourceBinding, "resourcebindings" in "work.karmada.io" / "v1alpha2", NamespaceResourceScope,
    ResourceBindingSpec, ResourceBindingStatus
}

object! {
    /// The binding of a cluster-scoped template.
    ClusterResourceBinding, "clusterresourcebindings" in "work.karmada.io" / "v1alpha2", ClusterResourceScope,
    ResourceBindingSpec, ResourceBindingStatus
}

wire! {
    /// What is bound, and where to.
    pub struct ResourceBindingSpec {
        /// The template.
        pub resource: ObjectReference,
        /// What it refers to (ConfigMaps, Secrets, …) goes along.
        pub propagate_deps: bool,
        /// What one replica needs.
        pub replica_requirements: Option<ReplicaRequirements>,
        /// How many replicas the template wants.
        pub replicas: i32,
        /// The parts of a workload that has several pod templates.
        pub components: Vec<Component>,
        /// The decision: members and replicas.
        pub clusters: Vec<TargetCluster>,
        /// The rules of the policy that claimed the template.
        pub placement: Option<Placement>,
        /// Members that it is being moved away from.
        pub graceful_eviction_tasks: Vec<GracefulEvictionTask>,
        /// Bindings that need this one's resource where they are.
        pub required_by: Vec<BindingSnapshot>,
        /// Who decides.
        pub scheduler_name: String,
        /// What happens when a member or the application fails.
        pub failover: Option<FailoverBehavior>,
        /// What is done about an object that is already there.
        pub conflict_resolution: Option<ConflictResolution>,
        /// A fresh decision is asked for since then.
        pub reschedule_triggered_at: Option<Time>,
        /// What is held.
        pub suspension: Option<BindingSuspension>,
        /// Deleting the template leaves the resources in the members.
        pub preserve_resources_on_deletion: Option<bool>,
        /// Which binding is decided first.
        pub schedule_priority: Option<BindingPriority>,
        /// Workloads that this one wants to be near to or away from.
        pub workload_affinity_groups: Option<WorkloadAffinityGroups>,
    }

    /// Names a template.
    pub struct ObjectReference {
        /// `apps/v1`.
        pub api_version: String,
        /// The kind.
        pub kind: String,
        /// Empty for cluster-scoped ones.
        pub namespace: String,
        /// The name.
        pub name: String,
        /// Its UID.
        pub uid: String,
        /// Its version when the binding was last brought up to date.
        pub resource_version: String,
    }

    /// What one replica needs.
    pub struct ReplicaRequirements {
        /// The nodes that it may run on.
        pub node_claim: Option<NodeClaim>,
        /// What it requests.
        pub resource_request: ResourceList,
        /// Its namespace.
        pub namespace: String,
        /// Its priority class.
        pub priority_class_name: String,
    }

    /// Which nodes a replica may run on.
    pub struct NodeClaim {
        /// The required part of its node affinity.
        pub hard_node_affinity: Option<NodeSelector>,
        /// Its node selector.
        pub node_selector: BTreeMap<String, String>,
        /// The taints that it puts up with.
        pub tolerations: Vec<Toleration>,
    }

    /// One part of a workload that has several pod templates.
    pub struct Component {
        /// At most 32 characters.
        pub name: String,
        /// How many.
        pub replicas: i32,
        /// What one of them needs.
        pub replica_requirements: Option<ReplicaRequirements>,
    }

    /// A member, and how many replicas it gets.
    pub struct TargetCluster {
        /// The cluster.
        pub name: String,
        /// Its share; 0 for what has no replicas.
        pub replicas: i32,
        /// Its share of each component.
        pub components: Vec<TargetComponent>,
    }

    /// A member's share of a component.
    pub struct TargetComponent {
        /// The component.
        pub name: String,
        /// How many.
        pub replicas: i32,
    }

    /// A member that a workload is being moved away from.
    pub struct GracefulEvictionTask {
        /// The cluster.
        pub from_cluster: String,
        /// When the old copy goes.
        pub purge_mode: Option<PurgeMode>,
        /// How many replicas it had.
        pub replicas: Option<i32>,
        /// A CamelCase word, 1 to 32 characters.
        pub reason: String,
        /// For people; at most 1024 characters.
        pub message: String,
        /// Who wrote the task.
        pub producer: String,
        /// How long the old copy is kept at most, in seconds.
        pub grace_period_seconds: Option<i32>,
        /// True: keep the old copy until somebody says otherwise.
        pub suppress_deletion: Option<bool>,
        /// State that the new copy is labelled with.
        pub preserved_label_state: BTreeMap<String, String>,
        /// When the task was written.
        pub creation_timestamp: Option<Time>,
        /// Where the workload was before.
        pub clusters_before_failover: Vec<String>,
    }

    /// Where a binding that depends on this one is.
    pub struct BindingSnapshot {
        /// Empty for a ClusterResourceBinding.
        pub namespace: String,
        /// The name.
        pub name: String,
        /// Its clusters.
        pub clusters: Vec<TargetCluster>,
    }

    /// What is held.
    pub struct BindingSuspension {
        /// Nothing goes to any member.
        pub dispatching: Option<bool>,
        /// Nothing goes to these members.
        pub dispatching_on_clusters: Option<SuspendClusters>,
        /// No decision is made.
        pub scheduling: Option<bool>,
    }

    /// Which binding is decided first.
    pub struct BindingPriority {
        /// Higher goes first.
        pub priority: i32,
    }

    /// Groups of workloads that want to be together or apart.
    pub struct WorkloadAffinityGroups {
        /// Together with this one.
        pub affinity_group: String,
        /// Apart from this one.
        pub anti_affinity_group: String,
    }

    /// What became of the decision.
    pub struct ResourceBindingStatus {
        /// The generation that was decided on last.
        pub scheduler_observed_generation: i64,
        /// The affinity term in use. Its name on the wire is the reference's.
        #[serde(rename = "schedulerObservingAffinityName")]
        pub scheduler_observed_affinity_name: String,
        /// When that was.
        pub last_scheduled_time: Option<Time>,
        /// `Scheduled`, `FullyApplied`.
        pub conditions: Vec<Condition>,
        /// One per member, sorted by name.
        pub aggregated_status: Vec<AggregatedStatusItem>,
    }

    /// How the template is doing in one member.
    pub struct AggregatedStatusItem {
        /// The cluster.
        pub cluster_name: String,
        /// The `status` of the object there.
        pub status: Option<Value>,
        /// Whether it was applied.
        pub applied: bool,
        /// Why not.
        pub applied_message: String,
        /// How it is doing.
        pub health: Option<Health>,
    }
}
