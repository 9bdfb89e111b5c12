//! Objects as JSON values: their metadata, their encoding for the store, and their checks. Pure.
//!
//! - [`meta`]: reading and writing `metadata`
//! - [`encode`]: the bytes that the store keeps
//! - [`names`]: which names are allowed
//! - [`validate`](mod@validate): what is checked of every object, whatever its kind
//! - [`typed`]: the types of the metadata fields, as a decoder sees them

pub mod encode;
pub mod meta;
pub mod names;
pub mod typed;
pub mod validate;
