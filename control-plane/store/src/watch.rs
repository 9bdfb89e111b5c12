//! Events and subscriptions.

use std::{
    fmt,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

use crate::{
    Object, Revision, Scope,
    cache::{Cache, queue::Queue},
};

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
    /// The state before, where it is known. It is not known of changes that a watch is told of because it starts far
    /// back: before this process started, or before the ring of recent events. Of such changes there is one for each
    /// object, the last; its kind is what it is for one who knows the state at the start of the watch.
    pub previous: Option<Arc<Object>>,
    /// `object.revision`, save for volatile writes, which leave the revision as it was.
    pub revision: Revision,
}

/// The watcher took its events too slowly, and some are lost. Whoever watches lists anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the watcher is too slow: events are lost")]
pub struct Lagged;

/// A subscription. Dropping it ends it.
pub struct Watch {
    cache: Arc<Cache>,
    queue: Arc<Queue>,
    scope: Scope,
    after: Revision,
    /// What had happened before the subscription.
    past: std::vec::IntoIter<Arc<Event>>,
}

impl Watch {
    pub(crate) fn new(
        cache: Arc<Cache>,
        queue: Arc<Queue>,
        scope: Scope,
        after: Revision,
        past: Vec<Arc<Event>>,
    ) -> Self {
        Self {
            cache,
            queue,
            scope,
            after,
            past: past.into_iter(),
        }
    }

    /// The next event, in the order of revisions. `None`: the store is closed, or the watcher was told that it
    /// [`Lagged`]. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<Result<Event, Lagged>> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// See [`next`](Self::next).
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event, Lagged>>> {
        if let Some(event) = self.past.next() {
            if self.past.len() == 0 {
                self.past = Vec::new().into_iter();
            }
            return Poll::Ready(Some(Ok(Arc::unwrap_or_clone(event))));
        }
        self.queue
            .poll(cx)
            .map(|event| event.map(|event| event.map(Arc::unwrap_or_clone)))
    }

    /// How far this watch has come, for bookmarks: every event up to this revision was taken. `None` while events
    /// wait, and before a start in the future.
    pub fn progress(&self) -> Option<Revision> {
        // Read before the look at the queue: events are in the queues before the revision is told.
        let published = self.cache.revision();
        let drained = self.past.len() == 0 && self.queue.is_drained();
        (drained && published >= self.after).then_some(published)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.cache.unsubscribe(&self.scope, &self.queue);
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("scope", &self.scope)
            .field("after", &self.after)
            .finish_non_exhaustive()
    }
}
