//! Objects, revisions and watches.
//!
//! Everything that Evenkeel knows is an object under a [`Key`], written by conditional transactions in one order of
//! [`Revision`]s. Reads and watches are served from memory, where each object is held once, as the bytes that go on
//! the wire. This crate knows no HTTP and no kind.
//!
//! - [`key`]: names of objects and scopes of lists and watches
//! - [`object`]: encoded objects and how a revision is put into them
//! - [`write`](mod@write): conditional transactions and how they fail
//! - [`watch`]: events and subscriptions

pub mod key;
pub mod object;
pub mod watch;
pub mod write;

pub use key::{Key, Resource, Scope};
pub use object::{Attributes, Body, Object, Revision};
pub use watch::{Event, EventKind};
pub use write::{Change, CommitError, Precondition, Write};
