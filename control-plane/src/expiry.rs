//! Events are forgotten after an hour, as in Kubernetes.

use std::{sync::Arc, time::Duration};

use evenkeel_api::{
    kind::Kind,
    local::{Client, Preconditions},
};
use evenkeel_store::{ListQuery, Object, Scope, Store};
use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::clock;

const LIFE: SignedDuration = SignedDuration::from_hours(1);
const PERIOD: Duration = Duration::from_mins(5);
/// Deletions that are under way at a time.
const CONCURRENCY: usize = 32;

/// Forgets old events until `stop`.
pub async fn run(store: Store, client: Client, events: Arc<Kind>, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let now = clock::now();
        let old = |object: &Object| {
            last_seen(&object.json).is_some_and(|seen| now.duration_since(seen) > LIFE)
        };
        let Ok(listing) = store.list(&Scope::all(events.resource()), &ListQuery::default(), &old)
        else {
            continue;
        };
        let deletions = listing.objects.into_iter().map(|object| {
            let (client, events) = (&client, &events);
            async move {
                let (namespace, name) = (object.key.namespace(), object.key.name());
                // One that was counted up in the meantime stays.
                let same = Preconditions {
                    resource_version: Some(object.revision.to_string()),
                    ..Preconditions::default()
                };
                if let Err(failure) = client.delete(events, namespace, name, &same).await {
                    tracing::debug!(event = ?object.key, error = %failure.message, "an old event stays");
                }
            }
        });
        let deletions = futures::stream::iter(deletions).buffer_unordered(CONCURRENCY);
        tokio::select! {
            () = stop.cancelled() => return,
            () = deletions.for_each(|()| std::future::ready(())) => {}
        }
    }
}

/// When what an event tells of happened last.
fn last_seen(json: &[u8]) -> Option<Timestamp> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Told {
        last_timestamp: Option<Timestamp>,
        event_time: Option<Timestamp>,
        series: Option<Series>,
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Series {
        last_observed_time: Option<Timestamp>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        creation_timestamp: Option<Timestamp>,
    }
    let event: Told = serde_json::from_slice(json).ok()?;
    [
        event.series.and_then(|series| series.last_observed_time),
        event.last_timestamp,
        event.event_time,
        event.metadata.creation_timestamp,
    ]
    .into_iter()
    .flatten()
    .max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_time_of_an_event_counts() {
        let table = [
            (r#"{"metadata":{}}"#, None),
            ("[]", None),
            (
                r#"{"metadata":{"creationTimestamp":"2026-01-01T00:00:00Z"},"lastTimestamp":null}"#,
                Some("2026-01-01T00:00:00Z"),
            ),
            (
                r#"{"metadata":{"creationTimestamp":"2026-01-01T00:00:00Z"},"lastTimestamp":"2026-01-01T02:00:00Z"}"#,
                Some("2026-01-01T02:00:00Z"),
            ),
            (
                r#"{"metadata":{"creationTimestamp":"2026-01-01T00:00:00Z"},"eventTime":"2026-01-01T01:00:00.000001Z","series":{"lastObservedTime":"2026-01-01T03:00:00Z"}}"#,
                Some("2026-01-01T03:00:00Z"),
            ),
        ];
        for (json, expected) in table {
            let expected = expected.map(|text| text.parse::<Timestamp>().unwrap());
            assert_eq!(last_seen(json.as_bytes()), expected, "{json}");
        }
    }
}
