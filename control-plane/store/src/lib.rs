//! Objects, revisions and watches.
//!
//! Everything that Evenkeel knows is an object under a [`Key`], written by conditional transactions in one order of
//! [`Revision`]s. Reads and watches are served from memory, where each object is held once, as the bytes that go on
//! the wire. This crate knows no HTTP and no kind.
//!
//! - [`key`]: names of objects and scopes of lists and watches
//! - [`object`]: encoded objects and how a revision is put into them
//! - [`write`](mod@write): conditional transactions and how they fail
//! - [`list`], [`watch`]: what is there, and what changes
//! - [`store`]: the handle to all of it
//! - [`engine`]: what keeps objects on disk, behind one trait
//! - [`restore`](mod@restore): a store out of a backup

mod cache;
pub mod engine;
pub mod key;
pub mod list;
pub mod object;
pub mod open;
pub mod options;
pub mod restore;
pub mod statistics;
pub mod store;
pub mod watch;
pub mod write;

pub use key::{Key, Resource, Scope};
pub use list::{Expired, ListQuery, Listing};
pub use object::{Attributes, Body, Object, Revision};
pub use open::OpenError;
pub use options::{AttributesOf, StoreOptions};
pub use restore::{Restored, restore};
pub use statistics::Statistics;
pub use store::Store;
pub use watch::{Event, EventKind, Lagged, Watch};
pub use write::{Change, CommitError, Precondition, Write};
