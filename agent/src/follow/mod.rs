//! List, then watch, for ever: what the agent knows of both sides comes through here.
//!
//! Lists are read in pages and item by item, watches line by line; at most one object is held at a time. A watch that
//! ends is opened again where it ended; one that cannot be (410) begins with a new list.

mod items;
mod lines;
#[cfg(test)]
mod tests;

use std::{future::Future, time::Duration};

use futures::StreamExt;
use http::{Request, header};
use kube::client::Body;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::{backoff::Backoff, metrics::Metrics, transport::Failure};
use items::Items;
use lines::Lines;

const PAGE: usize = 500;
/// From the request to the whole page.
const PAGE_DEADLINE: Duration = Duration::from_mins(1);
const ANSWER_DEADLINE: Duration = Duration::from_secs(15);
/// The server ends a watch after so long; drawn between these.
const WATCH_SECONDS: std::ops::Range<u64> = 300..600;
/// No object is larger, with room to spare; a longer line or item ends the stream.
const LARGEST: usize = 16 * 1024 * 1024;
const RETRY_FIRST: Duration = Duration::from_millis(500);
const RETRY_MOST: Duration = Duration::from_secs(30);

/// What is followed.
#[derive(Clone, Debug)]
pub struct Target {
    /// `/api/v1/pods`
    pub path: String,
    /// `labelSelector=…`, without what this module adds; empty for all. Escaped.
    pub selector: String,
}

/// One step of what is followed. After `Restart` and the `Listed` that follow it, `Synced` says that these are all.
#[derive(Debug)]
pub enum Event<T> {
    Restart,
    Listed(T),
    Synced,
    Changed(T),
    Deleted(T),
}

/// Takes the events, in order. It may wait: the stream waits with it.
pub trait Sink<T>: Send {
    fn take(&mut self, event: Event<T>) -> impl Future<Output = ()> + Send;
    /// The other side does not answer, or refuses. Called once per try.
    fn trouble(&mut self, failure: &Failure);
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    #[serde(default)]
    resource_version: String,
    #[serde(default, rename = "continue")]
    more: Option<String>,
}

#[derive(Deserialize)]
struct Envelope {
    metadata: ListMeta,
}

#[derive(Deserialize)]
struct Line<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// Follows for ever. Ends only with the task.
pub async fn follow<T: DeserializeOwned + Send>(
    client: kube::Client,
    target: Target,
    metrics: Metrics,
    mut sink: impl Sink<T>,
) {
    let mut follower = Follower {
        client,
        target,
        version: None,
    };
    let mut backoff = Backoff::new(RETRY_FIRST, RETRY_MOST);
    loop {
        let started = Instant::now();
        match follower.run(&mut sink).await {
            // A watch that ended in its time is opened again at once.
            Ok(()) if started.elapsed() > RETRY_FIRST => backoff.reset(),
            Ok(()) => tokio::time::sleep(backoff.wait()).await,
            Err(failure) => {
                if failure.code() == Some(410) {
                    follower.version = None;
                }
                sink.trouble(&failure);
                // One that held for a while counts as having worked.
                if started.elapsed() > RETRY_MOST {
                    backoff.reset();
                }
                let wait = backoff.wait();
                tracing::debug!(path = follower.target.path, error = %failure, retry_in = ?wait, "watch ended");
                tokio::time::sleep(wait).await;
            }
        }
        metrics.watches_reopened.inc();
    }
}

struct Follower {
    client: kube::Client,
    target: Target,
    /// Where to go on; `None`: list first.
    version: Option<String>,
}

impl Follower {
    /// Lists if need be, then watches until the watch ends.
    async fn run<T: DeserializeOwned + Send>(
        &mut self,
        sink: &mut impl Sink<T>,
    ) -> Result<(), Failure> {
        let version = if let Some(version) = &self.version {
            version.clone()
        } else {
            let version = self.list(sink).await?;
            self.version = Some(version.clone());
            version
        };
        self.watch(&version, sink).await
    }

    fn uri(&self, query: &str) -> String {
        let Target { path, selector } = &self.target;
        if selector.is_empty() {
            format!("{path}?{query}")
        } else {
            format!("{path}?{selector}&{query}")
        }
    }

    async fn open(&self, uri: String) -> Result<http::Response<Body>, Failure> {
        let request = Request::get(uri)
            .header(header::ACCEPT, "application/json")
            .body(Body::empty())
            .map_err(|error| Failure::Garbled(error.to_string()))?;
        let answer = tokio::time::timeout(ANSWER_DEADLINE, self.client.send(request))
            .await
            .map_err(|_| Failure::Late(ANSWER_DEADLINE))??;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let code = answer.status().as_u16();
        let text = tokio::time::timeout(ANSWER_DEADLINE, answer.into_body().collect_bytes())
            .await
            .map_err(|_| Failure::Late(ANSWER_DEADLINE))??;
        let status = serde_json::from_slice(&text).unwrap_or_else(|_| {
            let text = String::from_utf8_lossy(&text);
            kube::core::Status::failure(text.trim(), "Unknown").with_code(code)
        });
        Err(Failure::Refused(Box::new(status)))
    }

    /// All pages. Returns the version of the list.
    async fn list<T: DeserializeOwned + Send>(
        &self,
        sink: &mut impl Sink<T>,
    ) -> Result<String, Failure> {
        sink.take(Event::Restart).await;
        let mut more = None::<String>;
        loop {
            let query = match &more {
                Some(more) => format!("limit={PAGE}&continue={}", escape(more)),
                None => format!("limit={PAGE}"),
            };
            let answer = self.open(self.uri(&query)).await?;
            let page = self.page(answer.into_body(), sink);
            let meta = tokio::time::timeout(PAGE_DEADLINE, page)
                .await
                .map_err(|_| Failure::Late(PAGE_DEADLINE))??;
            more = meta.more.filter(|more| !more.is_empty());
            if more.is_none() {
                sink.take(Event::Synced).await;
                return Ok(meta.resource_version);
            }
        }
    }

    async fn page<T: DeserializeOwned + Send>(
        &self,
        body: Body,
        sink: &mut impl Sink<T>,
    ) -> Result<ListMeta, Failure> {
        let mut items = Items::new(LARGEST);
        let mut body = http_body_util::BodyDataStream::new(body);
        while let Some(bytes) = body.next().await {
            items.push(&bytes?).map_err(Failure::Garbled)?;
            while let Some(item) = items.next() {
                sink.take(Event::Listed(decode(item)?)).await;
            }
        }
        let envelope: Envelope = decode(items.envelope())?;
        Ok(envelope.metadata)
    }

    async fn watch<T: DeserializeOwned + Send>(
        &mut self,
        version: &str,
        sink: &mut impl Sink<T>,
    ) -> Result<(), Failure> {
        let seconds = rand::random_range(WATCH_SECONDS);
        let answer = self
            .open(self.uri(&format!(
                "watch=true&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds={seconds}"
            )))
            .await?;
        let mut lines = Lines::new(LARGEST);
        let mut body = http_body_util::BodyDataStream::new(answer.into_body());
        // The server ends the watch; should it forget, we do.
        let end = Instant::now() + Duration::from_secs(seconds + 30);
        while let Some(bytes) = match tokio::time::timeout_at(end, body.next()).await {
            Ok(bytes) => bytes,
            Err(_) => return Ok(()),
        } {
            lines.push(&bytes?).map_err(Failure::Garbled)?;
            while let Some(line) = lines.next() {
                self.line(line, sink).await?;
            }
        }
        Ok(())
    }

    async fn line<T: DeserializeOwned + Send>(
        &mut self,
        line: &[u8],
        sink: &mut impl Sink<T>,
    ) -> Result<(), Failure> {
        let Line { r#type, object } = decode(line)?;
        let event = match r#type {
            "ADDED" | "MODIFIED" => Event::Changed(decode(object.get().as_bytes())?),
            "DELETED" => Event::Deleted(decode(object.get().as_bytes())?),
            "ERROR" => {
                let status: kube::core::Status = decode(object.get().as_bytes())?;
                return Err(Failure::Refused(Box::new(status)));
            }
            // A bookmark moves on only the version.
            _ => {
                self.note(object)?;
                return Ok(());
            }
        };
        sink.take(event).await;
        self.note(object)
    }

    /// The next watch begins after this object.
    fn note(&mut self, object: &RawValue) -> Result<(), Failure> {
        let envelope: Envelope = decode(object.get().as_bytes())?;
        if !envelope.metadata.resource_version.is_empty() {
            self.version = Some(envelope.metadata.resource_version);
        }
        Ok(())
    }
}

fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Failure> {
    serde_json::from_slice(bytes).map_err(|error| Failure::Garbled(error.to_string()))
}

/// For a value in a query.
pub fn escape(text: &str) -> String {
    text.bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}
