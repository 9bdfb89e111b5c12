//! Labels, annotations, finalizers, taints, conditions and reasons, in the reference's words.

// Labels.

/// On namespaces that belong to the system.
pub const SYSTEM_LABEL: &str = "karmada.io/system";
/// On everything that an agent applied in a member, with the value `true`.
pub const MANAGED_LABEL: &str = "karmada.io/managed";
/// A binding's lasting id, on its Works and manifests.
pub const BINDING_ID_LABEL: &str = "resourcebinding.karmada.io/permanent-id";
/// The same of a cluster-scoped binding.
pub const CLUSTER_BINDING_ID_LABEL: &str = "clusterresourcebinding.karmada.io/permanent-id";
/// A Work's lasting id.
pub const WORK_ID_LABEL: &str = "work.karmada.io/permanent-id";
/// A policy's lasting id, on the policy and on what it claimed.
pub const POLICY_ID_LABEL: &str = "propagationpolicy.karmada.io/permanent-id";
/// The same of a cluster-wide policy.
pub const CLUSTER_POLICY_ID_LABEL: &str = "clusterpropagationpolicy.karmada.io/permanent-id";
/// Asks agents and controllers to leave a deleted resource in the members.
pub const DELETION_PROTECTED_LABEL: &str = "resourcetemplate.karmada.io/deletion-protected";

// Annotations.

/// The policy that claimed a template.
pub const POLICY_NAMESPACE_ANNOTATION: &str = "propagationpolicy.karmada.io/namespace";
/// The policy that claimed a template.
pub const POLICY_NAME_ANNOTATION: &str = "propagationpolicy.karmada.io/name";
/// The cluster-wide policy that claimed a template.
pub const CLUSTER_POLICY_NAME_ANNOTATION: &str = "clusterpropagationpolicy.karmada.io/name";
/// The binding that a Work and its manifests come from.
pub const BINDING_NAMESPACE_ANNOTATION: &str = "resourcebinding.karmada.io/namespace";
/// The binding that a Work and its manifests come from.
pub const BINDING_NAME_ANNOTATION: &str = "resourcebinding.karmada.io/name";
/// The cluster-scoped binding that a Work and its manifests come from.
pub const CLUSTER_BINDING_NAME_ANNOTATION: &str = "clusterresourcebinding.karmada.io/name";
/// On a manifest: the Work that it comes from.
pub const WORK_NAMESPACE_ANNOTATION: &str = "work.karmada.io/namespace";
/// On a manifest: the Work that it comes from.
pub const WORK_NAME_ANNOTATION: &str = "work.karmada.io/name";
/// `overwrite` or `abort`: what is done about an object that is already there.
pub const CONFLICT_RESOLUTION_ANNOTATION: &str = "work.karmada.io/conflict-resolution";
/// The value of [`CONFLICT_RESOLUTION_ANNOTATION`] that takes over.
pub const CONFLICT_OVERWRITE: &str = "overwrite";
/// The value of [`CONFLICT_RESOLUTION_ANNOTATION`] that leaves things alone.
pub const CONFLICT_ABORT: &str = "abort";
/// The override policies that were applied.
pub const APPLIED_OVERRIDES_ANNOTATION: &str = "policy.karmada.io/applied-overrides";
/// The cluster-wide override policies that were applied.
pub const APPLIED_CLUSTER_OVERRIDES_ANNOTATION: &str =
    "policy.karmada.io/applied-cluster-overrides";
/// On a binding: the placement of the last decision, as JSON.
pub const APPLIED_PLACEMENT_ANNOTATION: &str = "policy.karmada.io/applied-placement";
/// On a manifest: the template's UID.
pub const TEMPLATE_UID_ANNOTATION: &str = "resourcetemplate.karmada.io/uid";
/// On a manifest: the template's generation.
pub const TEMPLATE_GENERATION_ANNOTATION: &str = "resourcetemplate.karmada.io/generation";
/// On a manifest: the keys of the labels that it came with, sorted, joined by commas.
pub const MANAGED_LABELS_ANNOTATION: &str = "resourcetemplate.karmada.io/managed-labels";
/// On a manifest: the keys of the annotations that it came with, sorted, joined by commas.
pub const MANAGED_ANNOTATIONS_ANNOTATION: &str = "resourcetemplate.karmada.io/managed-annotations";
/// On a manifest: where the template stood before.
pub const RETAIN_REPLICAS_LABEL: &str = "resourcetemplate.karmada.io/retain-replicas";

// Finalizers.

/// On a Cluster, by the control plane.
pub const CLUSTER_FINALIZER: &str = "karmada.io/cluster-controller";
/// On a Work, by the agent that applies it.
pub const EXECUTION_FINALIZER: &str = "karmada.io/execution-controller";
/// On a binding, by the controller that makes its Works.
pub const BINDING_FINALIZER: &str = "karmada.io/binding-controller";
/// On a cluster-scoped binding, by the controller that makes its Works.
pub const CLUSTER_BINDING_FINALIZER: &str = "karmada.io/cluster-resource-binding-controller";
/// On a policy.
pub const POLICY_FINALIZER: &str = "karmada.io/propagation-policy-controller";
/// On a cluster-wide policy.
pub const CLUSTER_POLICY_FINALIZER: &str = "karmada.io/cluster-propagation-policy-controller";

// Taints of clusters.

/// Ready is False, or was never True.
pub const TAINT_NOT_READY: &str = "cluster.karmada.io/not-ready";
/// Ready is Unknown.
pub const TAINT_UNREACHABLE: &str = "cluster.karmada.io/unreachable";
/// The user's own: no new work.
pub const TAINT_UNSCHEDULABLE: &str = "cluster.karmada.io/unschedulable";
/// Taint effect: no new work.
pub const NO_SCHEDULE: &str = "NoSchedule";
/// Taint effect: no new work, and what is there moves.
pub const NO_EXECUTE: &str = "NoExecute";

// Conditions and reasons of clusters.

/// Whether a member can be trusted with work.
pub const READY: &str = "Ready";
/// Ready True.
pub const REASON_CLUSTER_READY: &str = "ClusterReady";
/// Ready False: the member answers, and says that it is not well.
pub const REASON_CLUSTER_NOT_READY: &str = "ClusterNotReady";
/// Ready False: the member does not answer.
pub const REASON_CLUSTER_NOT_REACHABLE: &str = "ClusterNotReachable";
/// Ready False: the agent could not ask.
pub const REASON_STATUS_COLLECTION_FAILED: &str = "StatusCollectionFailed";
/// Ready Unknown: the agent never reported.
pub const REASON_STATUS_NEVER_UPDATED: &str = "ClusterStatusNeverUpdated";
/// Ready Unknown: the agent stopped reporting.
pub const REASON_STATUS_UNKNOWN: &str = "ClusterStatusUnknown";
/// Whether the list of what a member serves is whole.
pub const COMPLETE_API_ENABLEMENTS: &str = "CompleteAPIEnablements";
/// The list is whole.
pub const REASON_COMPLETE: &str = "Complete";
/// The list lacks some groups.
pub const REASON_PARTIAL: &str = "Partial";
/// The list is empty.
pub const REASON_EMPTY: &str = "Empty";

// Conditions and reasons of Works.

/// Whether all manifests were applied.
pub const APPLIED: &str = "Applied";
/// Applied True.
pub const REASON_APPLIED_SUCCESSFUL: &str = "AppliedSuccessful";
/// Applied False.
pub const REASON_APPLIED_FAILED: &str = "AppliedFailed";
/// Whether the Work goes to the member at all.
pub const DISPATCHING: &str = "Dispatching";
/// Dispatching True.
pub const REASON_DISPATCHING: &str = "Dispatching";
/// Dispatching False: held.
pub const REASON_SUSPEND_DISPATCHING: &str = "SuspendDispatching";

// Conditions and reasons of bindings.

/// Whether a decision was made.
pub const SCHEDULED: &str = "Scheduled";
/// Scheduled True.
pub const REASON_SCHEDULED: &str = "Success";
/// Scheduled False: something went wrong.
pub const REASON_SCHEDULER_ERROR: &str = "SchedulerError";
/// Scheduled False: no cluster passes the filters.
pub const REASON_NO_CLUSTER_FIT: &str = "NoClusterFit";
/// Scheduled False: clusters fit, and have no room.
pub const REASON_UNSCHEDULABLE: &str = "Unschedulable";
/// Scheduled False: a quota forbids it.
pub const REASON_QUOTA_EXCEEDED: &str = "QuotaExceeded";
/// Whether every cluster of the decision has it applied.
pub const FULLY_APPLIED: &str = "FullyApplied";
/// FullyApplied True.
pub const REASON_FULLY_APPLIED: &str = "FullyAppliedSuccess";
/// FullyApplied False.
pub const REASON_NOT_FULLY_APPLIED: &str = "FullyAppliedFailed";

/// The scheduler of a policy that names none.
pub const DEFAULT_SCHEDULER: &str = "default-scheduler";
/// Who the agent is in the member's managedFields.
pub const AGENT_MANAGER: &str = "evenkeel-agent";
/// Who the control plane's controllers are in managedFields.
pub const CONTROL_PLANE_MANAGER: &str = "evenkeel-control-plane";
