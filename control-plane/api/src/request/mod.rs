//! What a request says: its path, its query, what it accepts and what it carries. Pure.
//!
//! - [`path`]: which resource, or which other endpoint
//! - [`query`]: parameters and the options they make
//! - [`accept`]: in which form the answer goes out
//! - [`body`]: objects in JSON, YAML and protobuf
//! - [`syntax`]: what is wrong with a JSON text, in the words that clients know

pub mod accept;
pub mod body;
pub mod path;
pub mod query;
pub mod syntax;
