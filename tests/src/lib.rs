//! What Evenkeel is tried with: simulated member clusters and fleets, and a harness that runs the two programs.
//!
//! - [`member`]: simulated member clusters
//! - [`harness`]: starts control planes, agents, members and kubectl for end-to-end tests, and cleans up
//! - [`fleet`]: thousands of agents' wire behaviour from one process, and other load
//! - [`fuzz`]: what must hold of every parser that faces the network
//! - [`authority`], [`kubeconfig`]: certificates and files for both

pub mod authority;
pub mod clock;
pub mod fleet;
pub mod fuzz;
pub mod harness;
pub mod kubeconfig;
pub mod member;
pub mod wire;
