//! A generic API server that behaves as the Kubernetes API conventions say, over a table of kinds.
//!
//! A kind is data ([`kind::Kind`]): names, scope, columns, subresources, and a [`kind::Strategy`] for what differs.
//! The server reads that table and knows no kind by name, so it serves the control plane and simulated members alike.
//!
//! - [`server`]: the server and its endpoints
//! - [`kind`]: the table of kinds
//! - [`object`]: objects as values: metadata, encoding, checks
//! - [`request`]: paths, queries, bodies
//! - [`show`]: how answers look
//! - [`failure`]: the one place where errors become a `Status`
//! - [`access`]: who asks (authentication) and whether they may (authorization)
//! - [`schema`]: the merge schemas of kinds
//! - [`patch`]: JSON patch, merge patch, strategic merge and server-side apply, as pure functions
//! - [`protobuf`]: the envelope of protobuf bodies
//! - [`local`]: the client of controllers in the same process
//! - [`lifecycle`]: the controllers that every API server needs

pub mod access;
pub mod clock;
pub mod failure;
pub mod kind;
pub mod lifecycle;
pub mod local;
pub mod object;
pub mod patch;
pub mod protobuf;
pub mod request;
pub mod schema;
pub mod server;
pub mod show;
mod verb;

pub use object::encode::{attributes_of, encode};
pub use server::{Check, Limits, Route, Server, ServerBuilder, VersionInfo};
