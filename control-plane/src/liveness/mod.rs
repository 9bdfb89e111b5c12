//! Which clusters are alive: the control plane's half of it.
//!
//! An agent renews its lease and posts its status; the monitor here notes when it was heard, and says Unknown of a
//! cluster that was silent for too long. Only the monitor says Unknown, and only the agent's next status clears it.
//!
//! - [`verdict`]: when a cluster is Unknown (pure)
//! - [`ledger`]: who was heard when (pure)
//! - [`hearing`]: notes what the API server serves to agents
//! - [`monitor`]: the loop
//! - [`checkpoint`]: the times last heard, across restarts
//! - [`metrics`]: the fleet in numbers
//! - [`change`]: what a verdict and a change of readiness write: conditions, taints, events (pure)

pub mod change;
pub mod checkpoint;
pub mod hearing;
pub mod ledger;
pub mod metrics;
pub mod monitor;
#[cfg(test)]
mod simulation;
pub mod verdict;
