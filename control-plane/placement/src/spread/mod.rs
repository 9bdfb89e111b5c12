//! Kubernetes' pod topology spread, over nodes or over the cells of a fleet.
//!
//! The engine knows labels, taints, counts and capacities, and nothing of clusters: a cell is to it what a node is to
//! the scheduler. Its exact mode gives the verdicts and the scores of kube-scheduler 1.36's `PodTopologySpread` plugin,
//! and is held against recordings of the real one.
//!
//! - [`requirement`]: label requirements and what matches them
//! - [`affinity`]: node selectors, required node affinity, taints
//! - [`constraint`]: constraints as they apply to one pod
//! - [`defaults`]: the constraints of a pod that has none
//! - [`places`]: the places of a fleet, made ready once for many workloads
//! - [`axis`]: one constraint laid over the nodes, in dense integers
//! - [`filter`]: where a pod may go
//! - [`score`]: where it goes best
//! - [`batch`]: many replicas in one call
//! - [`plan`]: from what is placed to what is to be placed
//! - [`check`]: what holds of every plan
//! - [`explain`]: a plan with the reasons, place by place and domain by domain
//! - [`validate`]: which constraints are refused, and where the fault is

pub mod affinity;
pub mod axis;
pub mod batch;
pub mod check;
pub mod constraint;
pub mod defaults;
pub mod explain;
pub mod filter;
pub mod places;
pub mod plan;
pub mod requirement;
pub mod score;
pub mod validate;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PodSpec, Taint};

/// Labels of an object.
pub type Labels = BTreeMap<String, String>;

/// A place for pods: a node, or a cell of nodes that cannot be told apart.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Breaks ties: of equal places the least name, by bytes, is taken.
    pub name: String,
    /// What topology keys, selectors and affinity look at.
    pub labels: Labels,
    /// What tolerations are held against.
    pub taints: Vec<Taint>,
}

/// A pod that has a place already.
#[derive(Clone, Debug)]
pub struct PlacedPod {
    /// Pods of other namespaces than the incoming one's are not counted.
    pub namespace: String,
    /// What constraints select by.
    pub labels: Labels,
    /// Index into the nodes.
    pub node: usize,
    /// It is being deleted: it is seen, and not counted.
    pub terminating: bool,
}

/// The pod that looks for a place.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// Its own; only pods of the same one are counted.
    pub namespace: &'a str,
    /// Whether it matches the selectors of its constraints.
    pub labels: &'a Labels,
    /// Node selector, affinity and tolerations are read.
    pub spec: &'a PodSpec,
}
