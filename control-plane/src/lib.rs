//! The central program: an API server with the controllers that judge, sync and place.
//!
//! Controllers keep no truth of their own: each subscribes to the kinds that it needs, decides over a snapshot by a pure
//! function, and writes against the revisions that the decision saw.
//!
//! - [`kinds`]: what is served, and what is known of each kind
//! - [`liveness`]: which clusters are alive
//! - [`cli`]: the command line; [`assembly`]: putting the parts together
//! - [`access`]: fixed rules of agents and newcomers
//! - [`enrol`]: how a member joins
//! - [`clusters`]: what comes and goes with a cluster
//! - [`propagation`]: from templates and policies to Works, and their status back
//! - [`pki`]: its authority, the certificate it serves, the administrator's kubeconfig
//! - [`fleet`]: the clusters in memory; [`worker`]: work by key; [`clock`]: the clocks
//! - [`backup`], [`expiry`], [`lock`], [`log`], [`metrics`]: smaller duties

pub mod access;
pub mod assembly;
pub mod backup;
pub mod cli;
pub mod clock;
pub mod clusters;
pub mod enrol;
pub mod expiry;
pub mod fleet;
pub mod kinds;
pub mod liveness;
pub mod lock;
pub mod log;
pub mod metrics;
pub mod pki;
pub mod propagation;
pub mod worker;
