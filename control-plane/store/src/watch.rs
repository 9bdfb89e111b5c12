//! Events.

use std::sync::Arc;

use crate::{Object, Revision};

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Added,
    Modified,
    Deleted,
}

/// One change. Of a deletion, `object` is the last state with the revision of the deletion.
#[derive(Clone, Debug)]
pub struct Event {
    pub kind: EventKind,
    pub object: Arc<Object>,
    /// The state before, where it is known: always, save for changes that were made before this process started.
    pub previous: Option<Arc<Object>>,
    /// `object.revision`, save for volatile writes, which leave the revision as it was.
    pub revision: Revision,
}
