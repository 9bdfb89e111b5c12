//! `cluster.karmada.io/v1alpha1` Cluster: a member of the fleet.

use std::collections::BTreeMap;

use k8s_openapi::{api::core::v1::Taint, apimachinery::pkg::apis::meta::v1::Condition};

use crate::{
    quantity::Quantity,
    wire::{object, wire, words},
};

/// Amounts by resource name (`cpu`, `memory`, `pods`).
pub type ResourceList = BTreeMap<String, Quantity>;

object! {
    /// A member cluster: written by its agent, judged by the control plane.
    Cluster, "clusters" in "cluster.karmada.io" / "v1alpha1", ClusterResourceScope, ClusterSpec, ClusterStatus
}

words! {
    /// Who carries the work to the member.
    pub enum SyncMode {
        /// The control plane reaches into the member.
        Push = "Push",
        /// An agent in the member dials out.
        Pull = "Pull",
    }
}

wire! {
    /// What is known of a member from whoever registered it.
    pub struct ClusterSpec {
        /// What tells two clusters of one name apart: the UID of the member's `kube-system` namespace.
        pub id: String,
        /// Required.
        pub sync_mode: Option<SyncMode>,
        /// `https://host:port` of the member's own API server.
        pub api_endpoint: String,
        /// Where the control plane finds a token and CA for the member.
        pub secret_ref: Option<LocalSecretReference>,
        /// The same, of an identity that may only impersonate.
        pub impersonator_secret_ref: Option<LocalSecretReference>,
        /// The member's certificate is not verified.
        #[serde(rename = "insecureSkipTLSVerification")]
        pub insecure_skip_tls_verification: bool,
        /// `http`, `https` or `socks5` proxy through which the control plane reaches the member.
        #[serde(rename = "proxyURL")]
        pub proxy_url: String,
        /// Headers for that proxy.
        pub proxy_header: BTreeMap<String, String>,
        /// The cloud provider.
        pub provider: String,
        /// The region.
        pub region: String,
        /// Deprecated: one entry of `zones`.
        pub zone: String,
        /// The failure zones that the member spans.
        pub zones: Vec<String>,
        /// What keeps work away.
        pub taints: Vec<Taint>,
        /// Node sizes that capacity is reported by.
        pub resource_models: Vec<ResourceModel>,
    }

    /// A Secret in the control plane.
    pub struct LocalSecretReference {
        /// Its namespace.
        pub namespace: String,
        /// Its name.
        pub name: String,
    }

    /// A class of nodes by their free resources.
    pub struct ResourceModel {
        /// The place in the order of sizes, from 0.
        pub grade: u64,
        /// One range per resource, `min` inclusive, `max` exclusive.
        pub ranges: Vec<ResourceModelRange>,
    }

    /// The bounds of one resource in a class.
    pub struct ResourceModelRange {
        /// `cpu`, `memory`, …
        pub name: String,
        /// Inclusive.
        pub min: Quantity,
        /// Exclusive.
        pub max: Quantity,
    }

    /// What the agent reports, and what the monitor makes of its silence.
    pub struct ClusterStatus {
        /// The member's git version (`v1.36.2`).
        pub kubernetes_version: String,
        /// What the member serves, sorted by group and version, without subresources.
        pub api_enablements: Vec<ApiEnablement>,
        /// `Ready`, `CompleteAPIEnablements`, and those of others.
        pub conditions: Vec<Condition>,
        /// How many nodes there are.
        pub node_summary: Option<NodeSummary>,
        /// What they hold.
        pub resource_summary: Option<ResourceSummary>,
        /// Actions asked for by a remedy; never the agent's to write.
        pub remedy_actions: Vec<String>,
    }

    /// The resources of one group and version.
    pub struct ApiEnablement {
        /// `v1`, `apps/v1`.
        pub group_version: String,
        /// Sorted by name.
        pub resources: Vec<ApiResource>,
    }

    /// One resource that a member serves.
    pub struct ApiResource {
        /// The plural.
        pub name: String,
        /// The kind.
        pub kind: String,
    }

    /// Nodes of a member.
    pub struct NodeSummary {
        /// All of them.
        pub total_num: i32,
        /// Those whose Ready condition is True.
        pub ready_num: i32,
    }

    /// Resources of a member.
    pub struct ResourceSummary {
        /// Allocatable of all nodes.
        pub allocatable: ResourceList,
        /// Requested by pods that no node was found for yet.
        pub allocating: ResourceList,
        /// Requested by pods on nodes that did not finish.
        pub allocated: ResourceList,
        /// Nodes by class of free resources.
        pub allocatable_modelings: Vec<AllocatableModeling>,
    }

    /// How many nodes are of a class.
    pub struct AllocatableModeling {
        /// The class: `spec.resourceModels[].grade`.
        pub grade: u64,
        /// The number of nodes.
        pub count: i64,
    }
}

impl Cluster {
    /// The condition of this type, if any.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        crate::condition::find(&self.status.as_ref()?.conditions, type_)
    }

    /// Whether its Ready condition is True.
    pub fn is_ready(&self) -> bool {
        self.condition(crate::stamps::READY)
            .is_some_and(|ready| ready.status == "True")
    }
}
