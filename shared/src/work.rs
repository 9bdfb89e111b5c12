//! `work.karmada.io/v1alpha1` Work: manifests for one member, in that member's namespace, applied by its agent.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;

use crate::wire::{object, wire, words};

object! {
    /// Manifests for one member, and what became of them.
    Work, "works" in "work.karmada.io" / "v1alpha1", NamespaceResourceScope, WorkSpec, WorkStatus
}

words! {
    /// How a resource in a member is doing.
    pub enum Health {
        /// As wanted.
        Healthy = "Healthy",
        /// Not as wanted.
        Unhealthy = "Unhealthy",
        /// Not known.
        Unknown = "Unknown",
    }
}

wire! {
    /// What is to be applied.
    pub struct WorkSpec {
        /// The manifests.
        pub workload: WorkloadTemplate,
        /// Hold: what is in the member stays as it is.
        pub suspend_dispatching: bool,
        /// Deleting the Work leaves the resources in the member.
        pub preserve_resources_on_deletion: bool,
    }

    /// A list of objects as they are.
    pub struct WorkloadTemplate {
        /// Whole objects, in the order in which they are applied.
        pub manifests: Vec<Value>,
    }

    /// What the agent observed.
    pub struct WorkStatus {
        /// `Applied`, `Dispatching`.
        pub conditions: Vec<Condition>,
        /// One per manifest.
        pub manifest_statuses: Vec<ManifestStatus>,
    }

    /// The state of one manifest in the member.
    pub struct ManifestStatus {
        /// Which one.
        pub identifier: ResourceIdentifier,
        /// The `status` of the object in the member.
        pub status: Option<Value>,
        /// How it is doing.
        pub health: Option<Health>,
    }

    /// Names a manifest of a Work.
    pub struct ResourceIdentifier {
        /// Its index in `spec.workload.manifests`.
        pub ordinal: i32,
        /// The API group, empty for core.
        pub group: String,
        /// The version.
        pub version: String,
        /// The kind.
        pub kind: String,
        /// The plural.
        pub resource: String,
        /// Empty for cluster-scoped objects.
        pub namespace: String,
        /// The name.
        pub name: String,
    }
}
