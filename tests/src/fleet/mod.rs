//! Load: many agents' wire behaviour from one process, and what it shows about the control plane.
//!
//! - [`agent`]: one agent, reduced to what it sends
//! - [`objects`]: the bodies, as large as real ones
//! - [`latency`], [`metrics`], [`gauge`]: what is measured

pub mod agent;
pub mod gauge;
pub mod latency;
pub mod metrics;
pub mod objects;
