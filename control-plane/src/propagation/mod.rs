//! From templates and policies to Works, and from Works' status back to templates.
//!
//! Each stage is a room of its own, and a pure function:
//!
//! - policy: which policy claims a template (`evenkeel_placement::claim`)
//! - [`binding`]: the binding that follows from template and policy
//! - decision: which clusters it goes to (`evenkeel_placement::decision`)
//! - [`work`]: what each cluster's agent is to apply; [`prune`]: what of a template does not travel
//! - [`status`]: what a binding shows of its copies; [`aggregate`]: the template's own status from them
//!
//! [`controller`] carries it out, with [`policies`] and an [`index`] of who belongs to whom in memory.
//!
//! [`namespaces`]: a cluster that gets something of a namespace gets the namespace.
//!
//! [`decide`] runs through all of them for one template and says what has to be written next.

pub mod aggregate;
pub mod binding;
pub mod controller;
pub mod decide;
pub mod index;
pub mod namespaces;
pub mod policies;
pub mod prune;
pub mod status;
pub mod template;
pub mod work;
