//! How a member joins: tokens, requests for certificates, who gets one, and signing.
//!
//! - [`request`]: a CertificateSigningRequest, read
//! - [`judge`](mod@judge): who gets the identity of an agent without asking anybody
//! - [`sign`]: what is signed, and for how long

#[cfg(test)]
pub(crate) mod fixture;
pub mod judge;
pub mod request;
pub mod sign;

pub use judge::{Fleet, Verdict, judge};
pub use request::CertificateRequest;
