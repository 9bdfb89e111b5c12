//! What the agent finds out about its member and tells the control plane.
//!
//! Pure: [`probe`]'s verdict, [`debounce`], [`apis`], [`requests`], [`census`], [`summary`], [`report`]. Shells:
//! [`collector`], [`watchers`].

pub mod apis;
pub mod census;
pub mod collector;
pub mod debounce;
mod interner;
pub mod probe;
pub mod report;
pub mod requests;
pub mod summary;
pub mod watchers;
