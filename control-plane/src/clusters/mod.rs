//! What comes and goes with a cluster: its namespace for Works, its taints, its finalizer; and its end.
//!
//! - [`decide`]: what has to be done for one cluster (pure)
//! - [`controller`]: does it
//! - [`prerequisites`]: the namespaces that everything else counts on

pub mod controller;
pub mod decide;
pub mod prerequisites;
