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

/// One write of a transaction.
#[derive(Clone, Debug)]
pub struct Write {
    pub key: Key,
    pub precondition: Precondition,
    pub change: Change,
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
