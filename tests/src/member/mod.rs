//! Simulated member clusters: the rules of a cluster's controllers over nodes that do not exist, behind a network that
//! can be broken.
//!
//! - [`workload`]: the rules of the controllers, pure
//! - [`view`]: what they know
//! - [`population`]: nodes and pods at the start
//! - [`front`], [`switches`]: how a member is broken

pub mod front;
pub mod population;
pub mod switches;
pub mod view;
pub mod workload;

/// The version that members say they are.
pub const KUBERNETES_VERSION: &str = "v1.36.2";
