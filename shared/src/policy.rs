//! `policy.karmada.io/v1alpha1` propagation policies: which templates go where.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::{
    placement::{ClusterAffinity, Placement},
    wire::{object, wire, words},
};

object! {
    /// Claims templates of its own namespace.
    PropagationPolicy, "propagationpolicies" in "policy.karmada.io" / "v1alpha1", NamespaceResourceScope,
    PropagationSpec
}

object! {
    /// Claims templates of any namespace, and cluster-scoped ones.
    ClusterPropagationPolicy, "clusterpropagationpolicies" in "policy.karmada.io" / "v1alpha1",
    ClusterResourceScope, PropagationSpec
}

object! {
    /// Taints clusters by their conditions.
    ClusterTaintPolicy, "clustertaintpolicies" in "policy.karmada.io" / "v1alpha1", ClusterResourceScope,
    ClusterTaintPolicySpec
}

words! {
    /// What is done about an object in a member that something else created.
    pub enum ConflictResolution {
        /// Leave it and say so. The default.
        Abort = "Abort",
        /// Take it over.
        Overwrite = "Overwrite",
    }

    /// Whether a policy takes templates from policies of lower priority.
    pub enum PreemptionBehavior {
        /// It does.
        Always = "Always",
        /// It does not. The default.
        Never = "Never",
    }

    /// When a change of the policy takes effect.
    pub enum ActivationPreference {
        /// With the next change of the template.
        Lazy = "Lazy",
    }

    /// When the old copy of a moved workload goes.
    pub enum PurgeMode {
        /// At once.
        Directly = "Directly",
        /// When the new one is healthy. The default.
        Gracefully = "Gracefully",
        /// Not by itself.
        Never = "Never",
    }

    /// Where a scheduling priority comes from.
    pub enum SchedulePrioritySource {
        /// A PriorityClass of the control plane.
        KubePriorityClass = "KubePriorityClass",
    }

    /// How the status of a condition is compared.
    pub enum MatchConditionOperator {
        /// It is one of the values.
        In = "In",
        /// It is none of the values.
        NotIn = "NotIn",
    }
}

wire! {
    /// What goes where.
    pub struct PropagationSpec {
        /// At least one.
        pub resource_selectors: Vec<ResourceSelector>,
        /// Without effect; kept because the reference keeps it.
        pub association: bool,
        /// What the templates refer to goes along.
        pub propagate_deps: bool,
        /// Where to.
        pub placement: Placement,
        /// Which policy wins; higher does.
        pub priority: Option<i32>,
        /// Whether it takes templates from others.
        pub preemption: Option<PreemptionBehavior>,
        /// Override policies that must be there first.
        pub dependent_overrides: Vec<String>,
        /// Who decides; never changes.
        pub scheduler_name: String,
        /// What happens when a member or the application fails.
        pub failover: Option<FailoverBehavior>,
        /// What is done about objects that are already there.
        pub conflict_resolution: Option<ConflictResolution>,
        /// When a change of the policy takes effect.
        pub activation_preference: Option<ActivationPreference>,
        /// What is held.
        pub suspension: Option<Suspension>,
        /// Deleting a template leaves the resources in the members.
        pub preserve_resources_on_deletion: Option<bool>,
        /// Which bindings are decided first.
        pub schedule_priority: Option<SchedulePriority>,
    }

    /// Selects templates; a name wins over labels.
    pub struct ResourceSelector {
        /// Required.
        pub api_version: String,
        /// Required.
        pub kind: String,
        /// Empty in a namespaced policy: its own.
        pub namespace: String,
        /// Empty: all.
        pub name: String,
        /// By label.
        pub label_selector: Option<LabelSelector>,
    }

    /// What is held.
    pub struct Suspension {
        /// Nothing goes to any member.
        pub dispatching: Option<bool>,
        /// Nothing goes to these.
        pub dispatching_on_clusters: Option<SuspendClusters>,
    }

    /// Some clusters by name.
    pub struct SuspendClusters {
        /// Their names.
        pub cluster_names: Vec<String>,
    }

    /// Which bindings are decided first.
    pub struct SchedulePriority {
        /// Where the priority comes from.
        pub priority_class_source: Option<SchedulePrioritySource>,
        /// The class.
        pub priority_class_name: String,
    }

    /// What happens when something fails.
    pub struct FailoverBehavior {
        /// The application in a member.
        pub application: Option<ApplicationFailoverBehavior>,
        /// The member.
        pub cluster: Option<ClusterFailoverBehavior>,
    }

    /// When an unhealthy application moves.
    pub struct ApplicationFailoverBehavior {
        /// When it counts as failed.
        pub decision_conditions: DecisionConditions,
        /// When the old copy goes.
        pub purge_mode: Option<PurgeMode>,
        /// How long it is kept at most, in seconds; only with `Gracefully`.
        pub grace_period_seconds: Option<i32>,
        /// State that the new copy is labelled with.
        pub state_preservation: Option<StatePreservation>,
    }

    /// When an application counts as failed.
    pub struct DecisionConditions {
        /// How long it may be unhealthy, in seconds; 300 when not given.
        pub toleration_seconds: Option<i32>,
    }

    /// What happens when a member fails.
    pub struct ClusterFailoverBehavior {
        /// When the old copy goes.
        pub purge_mode: Option<PurgeMode>,
        /// State that the new copy is labelled with.
        pub state_preservation: Option<StatePreservation>,
    }

    /// State taken from the old copy's status.
    pub struct StatePreservation {
        /// One label each.
        pub rules: Vec<StatePreservationRule>,
    }

    /// One piece of state.
    pub struct StatePreservationRule {
        /// The label that carries it.
        pub alias_label_name: String,
        /// Where in the status it is (`{.replicas}`).
        pub json_path: String,
    }

    /// Taints by condition.
    pub struct ClusterTaintPolicySpec {
        /// Which clusters; none given: all.
        pub target_clusters: Option<ClusterAffinity>,
        /// All must hold for the taints to be added; empty never does.
        pub add_on_conditions: Vec<MatchCondition>,
        /// All must hold for the taints to be removed; empty never does.
        pub remove_on_conditions: Vec<MatchCondition>,
        /// The taints.
        pub taints: Vec<PolicyTaint>,
    }

    /// Holds when a condition of the cluster is there and its status fits.
    pub struct MatchCondition {
        /// The condition's type.
        pub condition_type: String,
        /// How its status is compared.
        pub operator: Option<MatchConditionOperator>,
        /// With what.
        pub status_values: Vec<String>,
    }

    /// A taint that a policy adds and removes.
    pub struct PolicyTaint {
        /// Required.
        pub key: String,
        /// `NoSchedule` or `NoExecute`.
        pub effect: String,
        /// May be empty.
        pub value: String,
    }
}
