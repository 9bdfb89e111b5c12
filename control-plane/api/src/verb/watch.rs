//! Watch streams.

use std::{sync::Arc, time::Duration};

use bytes::{BufMut, Bytes, BytesMut};
use evenkeel_store::{Event, EventKind, Expired, Object, Revision, Scope, Watch};
use futures::{FutureExt as _, Stream, stream};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Call, read, select::Selection};
use crate::{
    clock,
    failure::Failure,
    kind::Kind,
    object::{encode, meta},
    request::{
        accept::{Encoding, Shape},
        query::ListOptions,
    },
    server::Server,
    show::{self, View, partial, table},
};

/// How often a quiet watch that asked for bookmarks gets one.
const BOOKMARKS: Duration = Duration::from_mins(1);
/// How long before its end a watch gets its last bookmark.
const BEFORE_END: Duration = Duration::from_secs(2);
/// How long a watch lasts that does not say: at least this, at most twice.
const LONGEST: u64 = 1800;
/// Events that are ready go out together up to this many bytes.
const TOGETHER: usize = 32 * 1024;

/// How a watch begins.
#[derive(Clone, Copy)]
enum Begin {
    /// With an event for everything that is there.
    All,
    /// With what happened after a revision.
    After(Revision),
}

/// Opens a watch. Its events are lines of JSON.
pub(crate) async fn watch(
    server: &Arc<Server>,
    call: &Call,
    options: &ListOptions,
    view: View,
) -> Result<impl Stream<Item = Bytes> + Send + use<>, Failure> {
    let selection = Selection::parse(options, &call.kind)?;
    let scope = selection.scope(call);
    let revision = read::revision(&options.resource_version)?;
    let begin = match (options.send_initial_events, revision) {
        (Some(true), revision) => {
            if let Some(revision) = revision {
                read::reach(server, revision).await?;
            }
            Begin::All
        }
        (_, Some(revision)) => Begin::After(revision),
        (Some(false), None) => Begin::After(server.store().revision()),
        (None, None) => Begin::All,
    };
    let lasts = options.timeout_seconds.map_or_else(
        || {
            use rand::RngExt;
            Duration::from_secs(rand::rng().random_range(LONGEST..2 * LONGEST))
        },
        Duration::from_secs,
    );
    let lines = Lines::new(Arc::clone(&call.kind), view);
    let ends = Instant::now() + lasts;
    let next_bookmark = options
        .bookmarks
        .then(|| (Instant::now() + BOOKMARKS).min(ends - BEFORE_END.min(lasts)));
    let feed = open(server, &scope, &selection, begin, options, lines);
    let state = State {
        feed,
        selection,
        ends,
        next_bookmark,
        shutdown: server.ending(),
    };
    Ok(stream::unfold(state, State::step))
}

/// Subscribes, and encodes what comes before the first live event.
fn open(
    server: &Server,
    scope: &Scope,
    selection: &Selection,
    begin: Begin,
    options: &ListOptions,
    lines: Lines,
) -> Feed {
    match begin {
        Begin::After(revision) => match server.store().watch(scope, revision) {
            Ok(watch) => Feed::Live(Box::new(Live {
                watch,
                lines,
                initial: Vec::new().into_iter(),
                initial_end: None,
            })),
            Err(Expired { requested, oldest }) => Feed::Last(Lines::too_old(requested, oldest)),
        },
        Begin::All => {
            let (listing, watch) = server.store().list_and_watch(scope);
            let initial = listing
                .objects
                .into_iter()
                .filter(|object| selection.matches(object))
                .collect::<Vec<_>>()
                .into_iter();
            let marked = options.send_initial_events == Some(true) && options.bookmarks;
            Feed::Live(Box::new(Live {
                watch,
                lines,
                initial,
                initial_end: marked.then_some(listing.revision),
            }))
        }
    }
}

enum Feed {
    Live(Box<Live>),
    /// One last line, and the end.
    Last(Bytes),
    End,
}

struct Live {
    watch: Watch,
    lines: Lines,
    initial: std::vec::IntoIter<Arc<Object>>,
    /// The revision of the bookmark behind the initial events.
    initial_end: Option<Revision>,
}

struct State {
    feed: Feed,
    selection: Selection,
    ends: Instant,
    next_bookmark: Option<Instant>,
    shutdown: CancellationToken,
}

impl State {
    /// The next lines.
    async fn step(mut self) -> Option<(Bytes, Self)> {
        let mut live = match std::mem::replace(&mut self.feed, Feed::End) {
            Feed::Live(live) => live,
            Feed::Last(line) => return Some((line, self)),
            Feed::End => return None,
        };
        let mut out = BytesMut::new();
        while out.len() < TOGETHER {
            let Some(object) = live.initial.next() else {
                break;
            };
            live.lines.event(&mut out, "ADDED", &object);
        }
        if live.initial.as_slice().is_empty()
            && let Some(revision) = live.initial_end.take()
        {
            live.lines.bookmark(&mut out, revision, true);
        }
        while out.is_empty() {
            let wakes = self.next_bookmark.unwrap_or(self.ends).min(self.ends);
            // Watch::next takes an event or nothing, so that dropping it loses nothing.
            let event = tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return None,
                event = live.watch.next() => Some(event),
                () = tokio::time::sleep_until(wakes) => None,
            };
            match event {
                Some(None | Some(Err(_))) => return None,
                Some(Some(Ok(event))) => {
                    self.put(&mut live.lines, &mut out, &event);
                    while out.len() < TOGETHER
                        && let Some(Some(Ok(event))) = live.watch.next().now_or_never()
                    {
                        self.put(&mut live.lines, &mut out, &event);
                    }
                }
                None if Instant::now() >= self.ends => return None,
                None => {
                    let last = self.ends - BEFORE_END;
                    self.next_bookmark = match self.next_bookmark {
                        Some(at) if at < last => Some((at + BOOKMARKS).min(last)),
                        _ => None,
                    };
                    if let Some(revision) = live.watch.progress() {
                        live.lines.bookmark(&mut out, revision, false);
                    }
                }
            }
        }
        self.feed = Feed::Live(live);
        Some((out.freeze(), self))
    }
}

impl State {
    /// Puts an event on the wire as its watcher sees it: an object that begins to match is added, one that stops to
    /// match is deleted, in its last matching state.
    fn put(&self, lines: &mut Lines, out: &mut BytesMut, event: &Event) {
        let matches = self.selection.matches(&event.object);
        match event.kind {
            EventKind::Added if matches => lines.event(out, "ADDED", &event.object),
            EventKind::Deleted if matches => lines.event(out, "DELETED", &event.object),
            EventKind::Added | EventKind::Deleted => {}
            EventKind::Modified => {
                let before = event.previous.as_deref();
                let matched = before.map_or(matches, |before| self.selection.matches(before));
                match (matched, matches, before) {
                    (true, true, _) => lines.event(out, "MODIFIED", &event.object),
                    (false, true, _) => lines.event(out, "ADDED", &event.object),
                    (true, false, Some(before)) => {
                        lines.event(out, "DELETED", &before.at(event.revision));
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Encodes events in the shape that was asked for.
struct Lines {
    kind: Arc<Kind>,
    head: String,
    view: View,
    /// Nothing was sent yet: a table still has to tell its columns.
    fresh: bool,
}

impl Lines {
    fn new(kind: Arc<Kind>, view: View) -> Self {
        Self {
            head: encode::head(&kind),
            kind,
            view,
            fresh: true,
        }
    }

    fn event(&mut self, out: &mut BytesMut, type_: &str, object: &Object) {
        match self.view.accept.shape {
            Shape::Whole => {
                let same = object.json.starts_with(self.head.as_bytes());
                out.reserve(object.json.len() + 40);
                begin(out, type_);
                if same {
                    out.put_slice(&object.json);
                } else {
                    out.put_slice(self.head.as_bytes());
                    out.put_slice(encode::tail(object));
                }
                out.put_slice(b"}\n");
            }
            Shape::Partial(version) => line(out, type_, &partial::stored(object, version)),
            Shape::Table(version) => {
                let object = encode::decode(object, &self.kind);
                self.row(out, type_, &object, version);
            }
        }
    }

    fn row(&mut self, out: &mut BytesMut, type_: &str, object: &Value, version: &str) {
        let fresh = std::mem::take(&mut self.fresh);
        let table = table::event(
            object,
            &self.kind,
            version,
            self.view.include,
            fresh,
            clock::now(),
        );
        line(out, type_, &table);
    }

    /// A bookmark: `initial` when it ends the initial events.
    fn bookmark(&mut self, out: &mut BytesMut, revision: Revision, initial: bool) {
        let mut object = json!({
            "kind": self.kind.kind,
            "apiVersion": self.kind.api_version(),
            "metadata": {"resourceVersion": revision.to_string()},
        });
        if initial {
            meta::set(
                &mut object,
                "annotations",
                json!({"k8s.io/initial-events-end": "true"}),
            );
        }
        match self.view.accept.shape {
            Shape::Whole => line(out, "BOOKMARK", &object),
            Shape::Partial(version) => line(out, "BOOKMARK", &partial::value(&object, version)),
            Shape::Table(version) => self.row(out, "BOOKMARK", &object, version),
        }
    }

    fn too_old(requested: Revision, oldest: Revision) -> Bytes {
        let failure = Failure::new(
            StatusCode::GONE,
            "Expired",
            format!("too old resource version: {requested} ({oldest})"),
        );
        let mut out = BytesMut::new();
        line(&mut out, "ERROR", &failure.body());
        out.freeze()
    }
}

fn begin(out: &mut BytesMut, type_: &str) {
    out.put_slice(b"{\"type\":\"");
    out.put_slice(type_.as_bytes());
    out.put_slice(b"\",\"object\":");
}

fn line(out: &mut BytesMut, type_: &str, object: &Value) {
    begin(out, type_);
    if let Ok(text) = show::encoded(object, Encoding::Json, false) {
        out.put_slice(&text);
    }
    out.put_slice(b"}\n");
}
