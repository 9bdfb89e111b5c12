//! Who may what in the control plane, beyond the generic rules of the API server.
//!
//! Agents and bearers of bootstrap tokens are judged by fixed rules that no RBAC object widens; everybody else by RBAC.
//!
//! - [`assembly`]: everything, for whoever puts the server together
//! - [`defaults`]: roles and bindings that are there from the start
//! - [`agent`]: what an agent may ask for
//! - [`newcomer`]: what the bearer of a bootstrap token may ask for
//! - [`admission`]: what either may write

pub mod admission;
pub mod agent;
pub mod assembly;
pub mod defaults;
pub mod newcomer;

use std::sync::Arc;

pub use assembly::{Access, prepare};

/// Tells who made a CertificateSigningRequest. `None`: there is no such request.
pub type RequesterOf = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;
