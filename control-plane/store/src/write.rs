//! Conditional transactions.

use std::sync::Arc;

use crate::{Body, Key, Object, Revision};

/// What must hold of an object when the write is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// There is no such object.
    Absent,
    /// The object stands at this revision.
    At(Revision),
}

/// What is to become of it.
#[derive(Clone, Debug)]
pub enum Change {
    Put(Body),
    Delete,
}

/// One write of a transaction. A transaction writes each key at most once; a key that comes twice is a conflict.
#[derive(Clone, Debug)]
pub struct Write {
    pub key: Key,
    pub precondition: Precondition,
    pub change: Change,
}

impl Write {
    /// Whether this may be done to an object that stands at `head`, or is not there. What is not there cannot be
    /// deleted.
    pub(crate) fn may_follow(&self, head: Option<Revision>) -> bool {
        match (self.precondition, &self.change) {
            (Precondition::Absent, Change::Delete) => false,
            (Precondition::Absent, Change::Put(_)) => head.is_none(),
            (Precondition::At(revision), _) => head == Some(revision),
        }
    }

    pub(crate) fn is_sound(&self) -> bool {
        match &self.change {
            Change::Put(body) => body.is_sound(),
            Change::Delete => true,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match &self.change {
            Change::Put(body) => body.json.len(),
            Change::Delete => 0,
        }
    }
}

/// Why a transaction was not made. Nothing of it was.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// A precondition did not hold; `current` is what stands there.
    #[error("precondition failed for {key:?}")]
    Conflict {
        key: Key,
        current: Option<Arc<Object>>,
    },
    /// More writes are waiting than the store lets wait.
    #[error("too many writes are waiting")]
    Busy,
    /// The store is closing, or its engine failed; whether the transaction was made is not known to the caller.
    #[error("the store is not available: {0}")]
    Unavailable(String),
}
