//! Changes of all kinds in one stream.

use std::{pin::Pin, sync::Arc, time::Duration};

use evenkeel_store::{Event, EventKind, Object, Resource, Scope};
use futures::{Stream, StreamExt as _, stream, stream::SelectAll};
use tokio::time::Instant;

use crate::{
    kind::{Kind, Storage, Table},
    local::Client,
};

/// How often it is looked whether kinds came or went.
const REFRESH: Duration = Duration::from_secs(1);

/// Something that happened, or that it is worth a look at everything.
pub(super) enum Change {
    /// An object is there; also told of all that is there at the start.
    Present(Arc<Object>),
    /// An object is gone; its last state.
    Gone(Arc<Object>),
    /// Nothing happened for a while.
    Quiet,
}

/// `Sync` too, since the collector is borrowed across waits.
type Events = Pin<Box<dyn Stream<Item = (Resource, Option<Event>)> + Send + Sync>>;

/// Every stored kind that is wanted, watched. A watch that was too slow starts anew, with everything that is there.
pub(super) struct Feed {
    client: Client,
    wanted: fn(&Kind) -> bool,
    table: Option<Arc<Table>>,
    watched: Vec<Resource>,
    events: SelectAll<Events>,
    initial: Vec<Arc<Object>>,
    refresh: Instant,
}

impl Feed {
    pub fn new(client: Client, wanted: fn(&Kind) -> bool) -> Self {
        let mut feed = Self {
            client,
            wanted,
            table: None,
            watched: Vec::new(),
            events: SelectAll::new(),
            initial: Vec::new(),
            refresh: Instant::now(),
        };
        feed.subscribe();
        feed
    }

    fn subscribe(&mut self) {
        let table = self.client.server().registry().table();
        if self
            .table
            .as_ref()
            .is_some_and(|known| Arc::ptr_eq(known, &table))
        {
            return;
        }
        for kind in &table.kinds {
            let resource = kind.resource();
            if matches!(kind.storage, Storage::Stored)
                && (self.wanted)(kind)
                && !self.watched.contains(&resource)
            {
                self.watched.push(resource.clone());
                self.open(resource);
            }
        }
        self.table = Some(table);
    }

    fn open(&mut self, resource: Resource) {
        let (listing, watch) = self
            .client
            .server()
            .store()
            .list_and_watch(&Scope::all(resource.clone()));
        self.initial.extend(listing.objects);
        let events = stream::unfold(Some(watch), move |watch| {
            let resource = resource.clone();
            async move {
                let mut watch = watch?;
                match watch.next().await? {
                    Ok(event) => Some(((resource, Some(event)), Some(watch))),
                    Err(_lagged) => Some(((resource, None), None)),
                }
            }
        });
        self.events.push(Box::pin(events));
    }

    /// The next change. Renewals of volatile objects are passed over.
    pub async fn next(&mut self) -> Change {
        loop {
            if let Some(object) = self.initial.pop() {
                return Change::Present(object);
            }
            let event = tokio::select! {
                Some(event) = self.events.next() => event,
                () = tokio::time::sleep_until(self.refresh) => {
                    self.refresh = Instant::now() + REFRESH;
                    self.subscribe();
                    return Change::Quiet;
                }
            };
            match event {
                (resource, None) => self.open(resource),
                (_, Some(event)) => match event.kind {
                    EventKind::Deleted => return Change::Gone(event.object),
                    EventKind::Modified
                        if event
                            .previous
                            .as_ref()
                            .is_some_and(|before| before.revision == event.object.revision) => {}
                    EventKind::Added | EventKind::Modified => {
                        return Change::Present(event.object);
                    }
                },
            }
        }
    }

    /// Whether everything that was there at the start was told.
    pub fn is_caught_up(&self) -> bool {
        self.initial.is_empty()
    }
}
