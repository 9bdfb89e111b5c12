//! A generic API server that behaves as the Kubernetes API conventions say, over a table of kinds.
//!
//! A kind is data ([`kind::Kind`]): names, scope, columns, subresources, and a [`kind::Strategy`] for what differs.
//! The server reads that table and knows no kind by name, so it serves the control plane and simulated members alike.
//!
//! - [`kind`]: the table of kinds
//! - [`failure`]: the one place where errors become a `Status`
//! - [`access`]: who asks (authentication) and whether they may (authorization)
//! - [`patch`]: JSON patch, merge patch, strategic merge and server-side apply, as pure functions

pub mod access;
pub mod failure;
pub mod kind;
pub mod patch;
