//! Lists and watches against a server in memory.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use parking_lot::Mutex;
use serde_json::Value;

use super::*;

/// Answers in turn; after the last one, never.
#[derive(Clone, Default)]
struct Script {
    answers: Arc<Mutex<std::collections::VecDeque<(u16, String)>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Script {
    fn client(&self) -> kube::Client {
        let script = self.clone();
        kube::Client::new(
            tower::service_fn(move |request: Request<Body>| {
                let query = request.uri().query().unwrap_or_default().to_owned();
                script.asked.lock().push(query);
                let answer = script.answers.lock().pop_front();
                async move {
                    let Some((code, text)) = answer else {
                        return std::future::pending().await;
                    };
                    let mut answer = Response::new(Full::new(Bytes::from(text)));
                    *answer.status_mut() = code.try_into().unwrap_or_default();
                    Ok::<_, Infallible>(answer)
                }
            }),
            "default",
        )
    }
}

#[derive(Clone, Default)]
struct Record(Arc<Mutex<Vec<String>>>);

impl Sink<Value> for Record {
    async fn take(&mut self, event: Event<Value>) {
        let name = |object: &Value| {
            object["metadata"]["name"]
                .as_str()
                .unwrap_or("?")
                .to_owned()
        };
        self.0.lock().push(match &event {
            Event::Restart => "restart".to_owned(),
            Event::Listed(object) => format!("listed {}", name(object)),
            Event::Synced => "synced".to_owned(),
            Event::Changed(object) => format!("changed {}", name(object)),
            Event::Deleted(object) => format!("deleted {}", name(object)),
        });
    }

    fn trouble(&mut self, failure: &Failure) {
        self.0.lock().push(format!("trouble {:?}", failure.code()));
    }
}

fn list(names: &[&str], version: &str, more: &str) -> (u16, String) {
    let items: Vec<_> = names
        .iter()
        .map(|name| format!(r#"{{"metadata":{{"name":"{name}"}}}}"#))
        .collect();
    let text = format!(
        r#"{{"metadata":{{"resourceVersion":"{version}","continue":"{more}"}},"items":[{}]}}"#,
        items.join(",")
    );
    (200, text)
}

fn line(kind: &str, name: &str, version: &str) -> String {
    format!(
        r#"{{"type":"{kind}","object":{{"metadata":{{"name":"{name}","resourceVersion":"{version}"}}}}}}"#
    ) + "\n"
}

#[tokio::test(start_paused = true)]
async fn lists_in_pages_watches_on_and_lists_again_when_it_must() {
    let script = Script::default();
    script.answers.lock().extend([
        list(&["a", "b"], "5", "next+page"),
        list(&["c"], "5", ""),
        (
            200,
            line("ADDED", "d", "6") + &line("BOOKMARK", "", "9") + &line("DELETED", "a", "10"),
        ),
        (200, line("BOOKMARK", "", "12")),
        (503, "busy".to_owned()),
        (
            200,
            r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#
                .to_owned()
                + "\n",
        ),
        list(&["b"], "20", ""),
    ]);
    let record = Record::default();
    let target = Target {
        path: "/api/v1/things".to_owned(),
        selector: "labelSelector=x".to_owned(),
    };
    let following = follow(script.client(), target, Metrics::default(), record.clone());
    // The script ends in an answer that never comes; time is paused, so this is no wait.
    let ended = tokio::time::timeout(Duration::from_secs(12), following).await;
    assert!(ended.is_err());
    assert_eq!(
        *record.0.lock(),
        [
            "restart",
            "listed a",
            "listed b",
            "listed c",
            "synced",
            "changed d",
            "deleted a",
            "trouble Some(503)",
            "trouble Some(410)",
            "restart",
            "listed b",
            "synced",
        ]
    );
    let asked = script.asked.lock().clone();
    assert!(
        asked
            .iter()
            .all(|query| query.starts_with("labelSelector=x&"))
    );
    assert!(asked[1].ends_with("continue=next%2Bpage"), "{}", asked[1]);
    for (index, version) in [(2, "5"), (3, "10"), (4, "12"), (5, "12"), (7, "20")] {
        let expected = format!("&resourceVersion={version}&");
        assert!(asked[index].contains(&expected), "{}", asked[index]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_breaks_off_is_not_synced() {
    let script = Script::default();
    let (_, whole) = list(&["a", "b"], "5", "");
    script.answers.lock().extend([
        (200, whole[..whole.len() - 4].to_owned()),
        list(&["a"], "6", ""),
    ]);
    let record = Record::default();
    let target = Target {
        path: "/x".to_owned(),
        selector: String::new(),
    };
    let following = follow(script.client(), target, Metrics::default(), record.clone());
    let _ = tokio::time::timeout(Duration::from_secs(5), following).await;
    let record = record.0.lock().clone();
    assert_eq!(record[0], "restart");
    assert!(record.contains(&"trouble None".to_owned()), "{record:?}");
    assert_eq!(record.iter().filter(|step| *step == "synced").count(), 1);
    assert_eq!(record.last().map(String::as_str), Some("synced"));
}
