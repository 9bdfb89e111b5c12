//! The central program: an API server with the controllers that judge, sync and place.
//!
//! Controllers keep no truth of their own: each subscribes to the kinds that it needs, decides over a snapshot by a pure
//! function, and writes against the revisions that the decision saw.
//!
//! - [`kinds`]: what is served, and what is known of each kind
//! - [`liveness`]: which clusters are alive
//! - [`access`]: fixed rules of agents and newcomers
//! - [`enrol`]: how a member joins
//! - [`pki`]: its authority, the certificate it serves, the administrator's kubeconfig
//! - [`propagation`]: from templates and policies to Works, and their status back

pub mod access;
pub mod enrol;
pub mod kinds;
pub mod liveness;
pub mod pki;
pub mod propagation;
