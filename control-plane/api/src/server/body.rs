//! Bodies of answers: a few bytes, a list that is made while it is sent, or a stream of events.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::Stream;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

use super::Server;
use crate::show::list::ListBytes;

/// The body of an answer.
pub struct Body {
    content: Content,
    server: Arc<Server>,
}

enum Content {
    Whole(Bytes),
    List(Box<ListBytes>),
    Watch(Watch),
}

/// A watch, and its place among the open ones, which it gives back when it is dropped.
struct Watch {
    events: Pin<Box<dyn Stream<Item = Bytes> + Send>>,
    _place: OwnedSemaphorePermit,
}

impl Body {
    pub(super) fn whole(server: &Arc<Server>, bytes: impl Into<Bytes>) -> Self {
        Self::new(server, Content::Whole(bytes.into()))
    }

    pub(super) fn list(server: &Arc<Server>, list: ListBytes) -> Self {
        Self::new(server, Content::List(Box::new(list)))
    }

    pub(super) fn watch(
        server: &Arc<Server>,
        events: impl Stream<Item = Bytes> + Send + 'static,
        place: OwnedSemaphorePermit,
    ) -> Self {
        server.metrics.watches.inc();
        let watch = Watch {
            events: Box::pin(events),
            _place: place,
        };
        Self::new(server, Content::Watch(watch))
    }

    fn new(server: &Arc<Server>, content: Content) -> Self {
        Self {
            content,
            server: Arc::clone(server),
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if matches!(self.content, Content::Watch(_)) {
            self.server.metrics.watches.dec();
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let chunk = match &mut self.content {
            Content::Whole(bytes) => Some(std::mem::take(bytes)).filter(|bytes| !bytes.is_empty()),
            Content::List(list) => list.next_chunk(),
            Content::Watch(watch) => std::task::ready!(watch.events.as_mut().poll_next(context)),
        };
        if let Some(chunk) = &chunk {
            self.server.metrics.sent_bytes.inc_by(chunk.len() as u64);
        }
        Poll::Ready(chunk.map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Whole(bytes) => bytes.is_empty(),
            Content::List(list) => list.remaining() == 0,
            Content::Watch(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::List(list) => SizeHint::with_exact(list.remaining()),
            Content::Watch(_) => SizeHint::new(),
        }
    }
}
