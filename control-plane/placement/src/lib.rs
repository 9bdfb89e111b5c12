//! Which clusters run what, and how many of each.
//!
//! Pure: no async, no I/O, no clock. Each stage is a function of plain data, with its own reasons.
//!
//! - [`selector`]: label selectors
//! - [`claim`]: which policy claims a template
//! - [`fleet`]: what placement knows of a cluster
//! - [`affinity`]: whether a cluster is among those that a placement names
//! - [`candidates`]: which clusters may get a workload, and why the others may not
//! - [`unsupported`]: what a policy may ask for that is not acted on yet
//! - [`decision`]: which clusters get it
//! - [`groups`]: how many clusters and groups of clusters, and which
//! - [`division`]: how many replicas each of them gets
//! - [`spread`]: topology spread constraints, over nodes or cells
#![deny(missing_docs)]

pub mod affinity;
pub mod candidates;
pub mod claim;
pub mod decision;
pub mod division;
pub mod fleet;
pub mod groups;
pub mod selector;
pub mod spread;
pub mod unsupported;
