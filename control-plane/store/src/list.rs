//! Lists.

use std::sync::Arc;

use crate::{Object, Revision};

/// Which part of a list is wanted, and of when.
#[derive(Clone, Debug, Default)]
pub struct ListQuery {
    /// Only objects whose path comes behind this one.
    pub after: Option<String>,
    /// At most so many.
    pub limit: Option<usize>,
    /// As it was at this revision. One that is not reached yet means now: see
    /// [`Store::reached`](crate::Store::reached).
    pub at: Option<Revision>,
}

/// Objects in the order of the bytes of their paths.
#[derive(Clone, Debug)]
pub struct Listing {
    pub objects: Vec<Arc<Object>>,
    /// The revision at which this is the whole truth.
    pub revision: Revision,
    /// Whether objects that the filter takes were left out by the limit.
    pub more: bool,
    /// How many were left out, where `more`: exact only when the filter takes everything.
    pub remaining: Option<usize>,
}

impl Listing {
    pub(crate) fn select(
        candidates: Vec<Arc<Object>>,
        revision: Revision,
        limit: Option<usize>,
        filter: &dyn Fn(&Object) -> bool,
    ) -> Self {
        let total = candidates.len();
        let limit = limit.unwrap_or(usize::MAX);
        let mut objects = Vec::new();
        for (index, object) in candidates.into_iter().enumerate() {
            if !filter(&object) {
                continue;
            }
            if objects.len() == limit {
                return Self {
                    objects,
                    revision,
                    more: true,
                    remaining: Some(total - index),
                };
            }
            objects.push(object);
        }
        Self {
            objects,
            revision,
            more: false,
            remaining: None,
        }
    }
}

/// The store does not remember so far back. Whoever asked lists anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("revision {requested} is too old: the oldest one known is {oldest}")]
pub struct Expired {
    pub requested: Revision,
    pub oldest: Revision,
}
