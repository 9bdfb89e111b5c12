//! The agent of one member cluster: it enrols with the control plane, reports the member's status, renews its lease,
//! and brings to the member what was placed there.
//!
//! Rules are in files without async; the shells around them read, decide by a rule, and write. [`run`] puts the tasks
//! together.

pub mod backoff;
pub mod clock;
pub mod config;
mod deliver;
#[cfg(test)]
mod fake;
mod follow;
pub mod health;
mod identity;
mod lease;
pub mod metrics;
mod register;
mod run;
pub mod status;
mod transport;
pub mod vitals;

pub use run::{RunError, run};
