//! Small objects for the tests.
#![allow(dead_code, reason = "each test file uses a part")]

use std::time::Duration;

use evenkeel_store::{
    Attributes, Body, Change, Event, Key, Precondition, Resource, Revision, Scope, Store,
    StoreOptions, Watch, Write,
};

pub fn pods() -> Resource {
    Resource::new("", "pods")
}

pub fn leases() -> Resource {
    Resource::new("coordination.k8s.io", "leases")
}

pub fn key(namespace: &str, name: &str) -> Key {
    Key::new(pods(), Some(namespace), name)
}

pub fn lease(name: &str) -> Key {
    Key::new(leases(), Some("karmada-cluster"), name)
}

/// An encoded object that holds a value.
pub fn body(name: &str, value: &str) -> Body {
    let before = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"#;
    let json = format!(r#"{before}"name":"{name}"}},"value":"{value}"}}"#);
    Body {
        json: json.into_bytes(),
        version_at: before.len(),
        attributes: Attributes::default(),
    }
}

pub fn put(key: &Key, precondition: Precondition, value: &str) -> Write {
    Write {
        key: key.clone(),
        precondition,
        change: Change::Put(body(key.name(), value)),
    }
}

pub fn create(key: &Key, value: &str) -> Write {
    put(key, Precondition::Absent, value)
}

pub fn update(key: &Key, at: Revision, value: &str) -> Write {
    put(key, Precondition::At(at), value)
}

pub fn delete(key: &Key, at: Revision) -> Write {
    Write {
        key: key.clone(),
        precondition: Precondition::At(at),
        change: Change::Delete,
    }
}

/// What an object holds.
pub fn value(json: &[u8]) -> String {
    let object: serde_json::Value = serde_json::from_slice(json).expect("stored JSON");
    object["value"].as_str().expect("a value").to_owned()
}

pub fn options() -> StoreOptions {
    StoreOptions::without_attributes()
}

pub fn all() -> Scope {
    Scope::all(pods())
}

/// Creates an object, whatever its name, and returns its revision.
pub async fn created(store: &Store, key: &Key, value: &str) -> Revision {
    commit_one(store, create(key, value)).await
}

pub async fn commit_one(store: &Store, write: Write) -> Revision {
    store.commit(vec![write]).await.expect("a commit")[0].revision
}

/// The next event, which must come soon.
pub async fn next(watch: &mut Watch) -> Event {
    tokio::time::timeout(Duration::from_secs(10), watch.next())
        .await
        .expect("an event in time")
        .expect("an open watch")
        .expect("no lag")
}

/// Kind, path and value of an event, for comparisons.
pub fn told(event: &Event) -> String {
    format!(
        "{:?} {} {}",
        event.kind,
        event.object.key.path,
        value(&event.object.json)
    )
}
