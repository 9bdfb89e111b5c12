//! What waits for one watcher. Ten thousand agents hold a few watches each, so an idle one is small: nothing is
//! allocated before the first event, nor kept after a burst.

use std::{
    collections::VecDeque,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use parking_lot::Mutex;

use crate::{Event, Lagged, Revision};

/// A queue that has been emptied keeps room for so many events; a larger one is given back.
const KEPT_CAPACITY: usize = 8;

/// See the [module](self).
pub(crate) struct Queue {
    state: Mutex<State>,
    /// Events up to this revision are not wanted.
    after: Revision,
    capacity: usize,
}

struct State {
    events: VecDeque<Arc<Event>>,
    waker: Option<Waker>,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// The watcher was too slow and has not been told yet.
    Lagged,
    /// No event comes any more.
    Ended,
}

impl Queue {
    pub fn new(after: Revision, capacity: usize) -> Self {
        Self {
            state: Mutex::new(State {
                events: VecDeque::new(),
                waker: None,
                phase: Phase::Open,
            }),
            after,
            capacity,
        }
    }

    /// Appends an event of this revision. `false`: the queue takes nothing any more.
    pub fn push(&self, event: &Arc<Event>, revision: Revision, wakers: &mut Vec<Waker>) -> bool {
        if revision <= self.after {
            return true;
        }
        let mut state = self.state.lock();
        if state.phase != Phase::Open {
            return false;
        }
        let room = state.events.len() < self.capacity;
        if room {
            state.events.push_back(Arc::clone(event));
        } else {
            state.phase = Phase::Lagged;
            state.events = VecDeque::new();
        }
        wakers.extend(state.waker.take());
        room
    }

    pub fn poll(&self, cx: &Context<'_>) -> Poll<Option<Result<Arc<Event>, Lagged>>> {
        let mut state = self.state.lock();
        if let Some(event) = state.events.pop_front() {
            if state.events.is_empty() && state.events.capacity() > KEPT_CAPACITY {
                state.events = VecDeque::new();
            }
            return Poll::Ready(Some(Ok(event)));
        }
        match state.phase {
            Phase::Open => {
                match &mut state.waker {
                    Some(waker) => waker.clone_from(cx.waker()),
                    empty => *empty = Some(cx.waker().clone()),
                }
                Poll::Pending
            }
            Phase::Lagged => {
                state.phase = Phase::Ended;
                Poll::Ready(Some(Err(Lagged)))
            }
            Phase::Ended => Poll::Ready(None),
        }
    }

    /// Whether everything that was pushed has been taken and more may come.
    pub fn is_drained(&self) -> bool {
        let state = self.state.lock();
        state.events.is_empty() && state.phase == Phase::Open
    }

    /// No event comes any more; what waits is still taken.
    pub fn close(&self) -> Option<Waker> {
        let mut state = self.state.lock();
        if state.phase == Phase::Open {
            state.phase = Phase::Ended;
        }
        state.waker.take()
    }
}
