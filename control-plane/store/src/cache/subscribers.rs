//! Who is woken by which change: an index, so that a write costs what it concerns and not how many watch.

use std::{collections::HashMap, sync::Arc, task::Waker};

use super::queue::Queue;
use crate::{Event, Resource, Revision, Scope};

type Bucket = Vec<Arc<Queue>>;
type Buckets = HashMap<Box<str>, Bucket>;

/// Queues by what they watch.
#[derive(Default)]
pub(crate) struct Subscribers {
    resources: HashMap<Resource, OfResource>,
    count: usize,
}

#[derive(Default)]
struct OfResource {
    all: Bucket,
    namespaces: Buckets,
    /// By the whole path, for scopes with a namespace and a name.
    objects: Buckets,
    /// By the name alone, for scopes without a namespace.
    names: Buckets,
}

impl OfResource {
    fn is_empty(&self) -> bool {
        self.all.is_empty()
            && self.namespaces.is_empty()
            && self.objects.is_empty()
            && self.names.is_empty()
    }

    /// The map and the key in it that a narrower scope belongs to.
    fn place(&mut self, scope: &Scope) -> Option<(&mut Buckets, Box<str>)> {
        match (scope.namespace.as_deref(), scope.name.as_deref()) {
            (None, None) => None,
            (Some(namespace), None) => Some((&mut self.namespaces, namespace.into())),
            (Some(namespace), Some(name)) => {
                Some((&mut self.objects, format!("{namespace}/{name}").into()))
            }
            (None, Some(name)) => Some((&mut self.names, name.into())),
        }
    }
}

impl Subscribers {
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn insert(&mut self, scope: &Scope, queue: Arc<Queue>) {
        let of_resource = self.resources.entry(scope.resource.clone()).or_default();
        match of_resource.place(scope) {
            None => of_resource.all.push(queue),
            // Most narrow scopes have one watcher for ever.
            Some((map, name)) => {
                let bucket = map.entry(name).or_insert_with(|| Vec::with_capacity(1));
                bucket.push(queue);
            }
        }
        self.count += 1;
    }

    /// Does nothing when the queue is not there any more, since it lagged.
    pub fn remove(&mut self, scope: &Scope, queue: &Arc<Queue>) {
        let Some(of_resource) = self.resources.get_mut(&scope.resource) else {
            return;
        };
        let removed = match of_resource.place(scope) {
            None => take(&mut of_resource.all, queue),
            Some((map, name)) => {
                let removed = map.get_mut(&name).is_some_and(|bucket| take(bucket, queue));
                if map.get(&name).is_some_and(Vec::is_empty) {
                    map.remove(&name);
                }
                removed
            }
        };
        if of_resource.is_empty() {
            self.resources.remove(&scope.resource);
        }
        self.count -= usize::from(removed);
    }

    /// Puts an event into the queues that it concerns. `revision` is the time of the event.
    pub fn publish(&mut self, event: &Arc<Event>, revision: Revision, wakers: &mut Vec<Waker>) {
        let key = &event.object.key;
        let Some(of_resource) = self.resources.get_mut(&key.resource) else {
            return;
        };
        let mut push = |bucket: &mut Bucket| {
            let before = bucket.len();
            bucket.retain(|queue| queue.push(event, revision, wakers));
            self.count -= before - bucket.len();
        };
        push(&mut of_resource.all);
        let narrower = [
            key.namespace()
                .map(|namespace| (&mut of_resource.namespaces, namespace)),
            Some((&mut of_resource.objects, &*key.path)),
            Some((&mut of_resource.names, key.name())),
        ];
        for (map, name) in narrower.into_iter().flatten() {
            if let Some(bucket) = map.get_mut(name) {
                push(bucket);
                if bucket.is_empty() {
                    map.remove(name);
                }
            }
        }
    }

    pub fn close(&mut self) -> Vec<Waker> {
        self.count = 0;
        let resources = std::mem::take(&mut self.resources);
        resources
            .into_values()
            .flat_map(|of| {
                let narrower = [of.namespaces, of.objects, of.names];
                of.all.into_iter().chain(
                    narrower
                        .into_iter()
                        .flat_map(HashMap::into_values)
                        .flatten(),
                )
            })
            .filter_map(|queue| queue.close())
            .collect()
    }
}

fn take(bucket: &mut Bucket, queue: &Arc<Queue>) -> bool {
    let Some(index) = bucket.iter().position(|other| Arc::ptr_eq(other, queue)) else {
        return false;
    };
    bucket.swap_remove(index);
    true
}
