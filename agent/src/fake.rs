//! A server in memory for tests: objects by path, just enough of the verbs, and a log of what was asked.

use std::{collections::BTreeMap, convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::transport::Caller;

/// Shared by the client and the test.
#[derive(Clone, Default)]
pub struct Fake(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Value>,
    version: u64,
    /// `METHOD path`, without queries, writes only.
    writes: Vec<String>,
    /// Every request is answered with this status.
    broken: Option<u16>,
}

impl Fake {
    /// Puts an object there, as if somebody else had made it.
    pub fn put(&self, path: &str, object: Value) {
        self.0.lock().store(path, object);
    }

    pub fn get(&self, path: &str) -> Option<Value> {
        self.0.lock().objects.get(path).cloned()
    }

    /// What was written since the last call.
    pub fn writes(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().writes)
    }

    pub fn break_down(&self, status: Option<u16>) {
        self.0.lock().broken = status;
    }

    pub fn caller(&self) -> Caller {
        let fake = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let fake = fake.clone();
            async move {
                let (parts, body) = request.into_parts();
                let bytes = body
                    .collect()
                    .await
                    .map(http_body_util::Collected::to_bytes);
                let body = serde_json::from_slice(&bytes.unwrap_or_default()).unwrap_or_default();
                let kind = parts
                    .headers
                    .get(http::header::CONTENT_TYPE)
                    .and_then(|value| value.to_str().ok())
                    .unwrap_or_default()
                    .to_owned();
                let (code, answer) =
                    fake.0
                        .lock()
                        .answer(&parts.method, parts.uri.path(), &kind, body);
                let mut answer = Response::new(Full::new(Bytes::from(answer.to_string())));
                *answer.status_mut() = code.try_into().unwrap_or_default();
                Ok::<_, Infallible>(answer)
            }
        });
        Caller::new(
            kube::Client::new(service, "default"),
            Duration::from_secs(5),
        )
    }
}

fn failure(code: u16, reason: &str) -> (u16, Value) {
    let status = json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason});
    (code, status)
}

impl State {
    fn store(&mut self, path: &str, mut object: Value) -> Value {
        self.version += 1;
        let metadata = &mut object["metadata"];
        metadata["resourceVersion"] = json!(self.version.to_string());
        if metadata["uid"].is_null() {
            metadata["uid"] = json!(format!("uid-{}", self.version));
        }
        self.objects.insert(path.to_owned(), object.clone());
        object
    }

    /// The namespace of an object's path, when it is not there.
    fn lacks_namespace(&self, path: &str) -> Option<String> {
        let (_, rest) = path.split_once("/namespaces/")?;
        let (name, _) = rest.split_once('/')?;
        let namespace = format!("/api/v1/namespaces/{name}");
        (!self.objects.contains_key(&namespace)).then(|| name.to_owned())
    }

    fn answer(&mut self, method: &Method, path: &str, kind: &str, body: Value) -> (u16, Value) {
        if let Some(code) = self.broken {
            return failure(code, "Broken");
        }
        if method != Method::GET {
            self.writes.push(format!("{method} {path}"));
        }
        let path = path.strip_suffix("/status").unwrap_or(path);
        let current = self.objects.get(path).cloned();
        match (method.as_str(), current) {
            ("GET", Some(object)) => (200, object),
            ("POST", _) => {
                let name = body["metadata"]["name"].as_str().unwrap_or_default();
                let path = format!("{path}/{name}");
                if self.objects.contains_key(&path) {
                    return failure(409, "AlreadyExists");
                }
                (201, self.store(&path, body))
            }
            ("PATCH", current) if kind.contains("apply") => {
                if let Some(name) = self.lacks_namespace(path) {
                    let (code, mut status) = failure(404, "NotFound");
                    status["details"] = json!({"kind": "namespaces", "name": name});
                    return (code, status);
                }
                let mut object = current.unwrap_or_default();
                merge(&mut object, &body);
                (200, self.store(path, object))
            }
            ("PATCH", Some(mut object)) => {
                let expected = &body["metadata"]["resourceVersion"];
                if !expected.is_null() && *expected != object["metadata"]["resourceVersion"] {
                    return failure(409, "Conflict");
                }
                merge(&mut object, &body);
                (200, self.store(path, object))
            }
            ("DELETE", Some(object)) => {
                let expected = &body["preconditions"]["uid"];
                if !expected.is_null() && *expected != object["metadata"]["uid"] {
                    return failure(409, "Conflict");
                }
                self.objects.remove(path);
                (200, json!({"kind": "Status", "status": "Success"}))
            }
            _ => failure(404, "NotFound"),
        }
    }
}

/// A JSON merge patch.
fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (name, value) in patch {
        if value.is_null() {
            if let Some(fields) = object.as_object_mut() {
                fields.remove(name);
            }
        } else {
            merge(&mut object[name], value);
        }
    }
}
