//! How a member joins: tokens, requests for certificates, who gets one, and signing.
//!
//! - [`token`]: bootstrap tokens, and the line that joins a cluster
//! - [`request`]: a CertificateSigningRequest, read
//! - [`judge`](mod@judge): who gets the identity of an agent without asking anybody
//! - [`decide`]: what is next for a request
//! - [`sign`]: what is signed, and for how long
//! - [`fleet`]: what of the fleet this goes by
//! - [`controller`]: the shell around these

pub mod controller;
pub mod decide;
#[cfg(test)]
pub(crate) mod fixture;
pub mod fleet;
pub mod judge;
pub mod request;
pub mod sign;
pub mod token;

pub use controller::{Enrolment, run};
pub use fleet::FleetView;
pub use judge::{Fleet, Verdict, judge};
pub use request::CertificateRequest;
