//! What happened: recent changes with what they replaced, and deletions for longer.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use crate::{Event, Expired, Object, Revision, Scope};

/// What an event costs beside the bodies that it keeps alive, in bytes.
const EVENT_OVERHEAD: usize = 96;

/// The last changes, complete, bounded by count and bytes.
pub(crate) struct Ring {
    events: VecDeque<Arc<Event>>,
    /// Every change after this revision is in `events`.
    floor: Revision,
    bytes: usize,
    max_events: usize,
    max_bytes: usize,
}

impl Ring {
    pub fn new(max_events: usize, max_bytes: usize) -> Self {
        Self {
            events: VecDeque::new(),
            floor: Revision::default(),
            bytes: 0,
            max_events,
            max_bytes,
        }
    }

    pub fn start(&mut self, floor: Revision) {
        self.floor = floor;
    }

    pub fn floor(&self) -> Revision {
        self.floor
    }

    pub fn len(&self) -> usize {
        self.events.len()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn push(&mut self, event: Arc<Event>) {
        self.bytes += cost(&event);
        self.events.push_back(event);
        while self.events.len() > self.max_events || self.bytes > self.max_bytes {
            let Some(oldest) = self.events.pop_front() else {
                break;
            };
            self.bytes -= cost(&oldest);
            self.floor = oldest.revision;
        }
    }

    /// The events of a scope after a revision that is not below the floor.
    pub fn after(&self, scope: &Scope, after: Revision) -> Vec<Arc<Event>> {
        let start = self.events.partition_point(|event| event.revision <= after);
        self.events
            .range(start..)
            .filter(|event| scope.contains(&event.object.key))
            .map(Arc::clone)
            .collect()
    }

    /// What the objects of a scope that changed after `at` were at that revision, by path; `None` where there was
    /// none.
    pub fn undo(
        &self,
        scope: &Scope,
        after: Option<&str>,
        at: Revision,
    ) -> Result<BTreeMap<Arc<str>, Option<Arc<Object>>>, Expired> {
        if at < self.floor {
            return Err(Expired {
                requested: at,
                oldest: self.floor,
            });
        }
        let start = self.events.partition_point(|event| event.revision <= at);
        let mut states = BTreeMap::new();
        for event in self.events.range(start..) {
            let key = &event.object.key;
            if scope.contains(key) && after.is_none_or(|after| &*key.path > after) {
                // The first change after `at` tells what there was.
                states
                    .entry(Arc::clone(&key.path))
                    .or_insert_with(|| event.previous.clone());
            }
        }
        Ok(states)
    }
}

/// A superseded body is kept alive by one event only, and so counts once.
fn cost(event: &Event) -> usize {
    event.object.json.len() + EVENT_OVERHEAD
}

/// Puts older states over the present ones; both are in the order of their paths.
pub(crate) fn overlay(
    present: Vec<Arc<Object>>,
    older: BTreeMap<Arc<str>, Option<Arc<Object>>>,
) -> Vec<Arc<Object>> {
    let mut result = Vec::with_capacity(present.len());
    let mut older = older.into_iter().peekable();
    for object in present {
        while let Some((_, state)) = older.next_if(|(path, _)| *path < object.key.path) {
            result.extend(state);
        }
        match older.next_if(|(path, _)| *path == object.key.path) {
            Some((_, state)) => result.extend(state),
            None => result.push(object),
        }
    }
    result.extend(older.filter_map(|(_, state)| state));
    result
}

/// The last states of deleted objects. Together with the objects that there are they tell what changed since a
/// revision, long after the ring has forgotten it, and across restarts.
pub(crate) struct Deletions {
    objects: VecDeque<Arc<Object>>,
    /// Every deletion after this revision is in `objects`.
    floor: Revision,
    bytes: usize,
    max_objects: usize,
    max_bytes: usize,
}

impl Deletions {
    pub fn new(max_objects: usize, max_bytes: usize) -> Self {
        Self {
            objects: VecDeque::new(),
            floor: Revision::default(),
            bytes: 0,
            max_objects,
            max_bytes,
        }
    }

    pub fn start(&mut self, floor: Revision, objects: Vec<Arc<Object>>) {
        self.floor = floor;
        for object in objects {
            self.push(object);
        }
    }

    pub fn floor(&self) -> Revision {
        self.floor
    }

    pub fn push(&mut self, object: Arc<Object>) {
        self.bytes += object.json.len() + EVENT_OVERHEAD;
        self.objects.push_back(object);
        while self.objects.len() > self.max_objects || self.bytes > self.max_bytes {
            let Some(oldest) = self.objects.pop_front() else {
                break;
            };
            self.bytes -= oldest.json.len() + EVENT_OVERHEAD;
            self.floor = oldest.revision;
        }
    }

    /// The objects of a scope that were there at `after` and were deleted later.
    pub fn after<'a>(
        &'a self,
        scope: &'a Scope,
        after: Revision,
    ) -> Result<impl Iterator<Item = Arc<Object>> + 'a, Expired> {
        if after < self.floor {
            return Err(Expired {
                requested: after,
                oldest: self.floor,
            });
        }
        let start = self
            .objects
            .partition_point(|object| object.revision <= after);
        Ok(self
            .objects
            .range(start..)
            .filter(move |object| object.created <= after && scope.contains(&object.key))
            .map(Arc::clone))
    }
}
