//! Garbage collection by owner references.
//!
//! 1. An object all of whose owners are gone is deleted.
//! 2. An object that still has an owner loses its references to those that are gone.
//! 3. An owner that is deleted in the foreground waits until the dependents that block it are gone; they are deleted.
//! 4. The dependents of an owner that is deleted as an orphan lose their reference to it, and stay.
//!
//! Owners are looked up in the store when it matters; only dependents are kept in mind.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};

use evenkeel_store::{Key, Object};
use http::StatusCode;
use serde_json::Value;

use super::feed::{Change, Feed};
use crate::{
    failure::Failure,
    kind::{Kind, KindScope, Table},
    local::{Client, Preconditions},
    object::{encode, meta},
    request::query::WriteOptions,
    verb::{
        delete::{FOREGROUND, ORPHAN, Propagation},
        update::{self, Candidate, Part, Source},
    },
};

/// Owners by uid, and by whom they are held.
#[derive(Default)]
struct Dependents {
    by_owner: HashMap<String, HashSet<Key>>,
    owners: HashMap<Key, Vec<String>>,
}

impl Dependents {
    fn set(&mut self, key: &Key, owners: Vec<String>) {
        self.remove(key);
        if owners.is_empty() {
            return;
        }
        for owner in &owners {
            self.by_owner
                .entry(owner.clone())
                .or_default()
                .insert(key.clone());
        }
        self.owners.insert(key.clone(), owners);
    }

    fn remove(&mut self, key: &Key) {
        for owner in self.owners.remove(key).unwrap_or_default() {
            if let Some(keys) = self.by_owner.get_mut(&owner) {
                keys.remove(key);
                if keys.is_empty() {
                    self.by_owner.remove(&owner);
                }
            }
        }
    }

    fn of(&self, owner: &str) -> Vec<Key> {
        self.by_owner
            .get(owner)
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }
}

pub(super) async fn run(client: Client) {
    let mut collector = Collector {
        feed: Feed::new(client.clone(), |_| true),
        client,
        dependents: Dependents::default(),
        queue: VecDeque::new(),
        queued: HashSet::new(),
        failed: Vec::new(),
    };
    loop {
        collector.step().await;
    }
}

struct Collector {
    client: Client,
    feed: Feed,
    dependents: Dependents,
    queue: VecDeque<Key>,
    queued: HashSet<Key>,
    /// What did not work and is tried again when it is quiet.
    failed: Vec<Key>,
}

impl Collector {
    /// Takes in a change, and looks at what it concerns. Nothing is judged before everything was seen once: an owner
    /// that was not seen yet would look gone.
    async fn step(&mut self) {
        match self.feed.next().await {
            Change::Present(object) => self.present(&object),
            Change::Gone(object) => self.gone(&object),
            Change::Quiet => {
                for key in std::mem::take(&mut self.failed) {
                    self.enqueue(key);
                }
            }
        }
        if !self.feed.is_caught_up() {
            return;
        }
        while let Some(key) = self.queue.pop_front() {
            self.queued.remove(&key);
            if let Err(failure) = self.look_at(&key).await
                && failure.code != StatusCode::NOT_FOUND
            {
                tracing::debug!(?key, error = failure.message, "garbage collection");
                self.failed.push(key);
            }
        }
    }

    fn enqueue(&mut self, key: Key) {
        if self.queued.insert(key.clone()) {
            self.queue.push_back(key);
        }
    }

    fn present(&mut self, object: &Object) {
        let text = std::str::from_utf8(&object.json).unwrap_or_default();
        let owned = text.contains("\"ownerReferences\"");
        if !owned {
            self.dependents.remove(&object.key);
        }
        let ending = text.contains("\"deletionTimestamp\"");
        if !owned && !ending {
            return;
        }
        let value: Value = serde_json::from_slice(&object.json).unwrap_or_default();
        if owned {
            let owners = meta::list(&value, "ownerReferences")
                .iter()
                .filter_map(|owner| owner["uid"].as_str().map(str::to_owned))
                .collect();
            self.dependents.set(&object.key, owners);
        }
        self.enqueue(object.key.clone());
    }

    fn gone(&mut self, object: &Object) {
        self.dependents.remove(&object.key);
        let value: Value = serde_json::from_slice(&object.json).unwrap_or_default();
        for dependent in self.dependents.of(meta::uid(&value)) {
            self.enqueue(dependent);
        }
        // An owner that waits for this one is looked at again.
        let table = self.client.server().registry().table();
        for reference in meta::list(&value, "ownerReferences") {
            if let Some((_, owner)) = owner_key(&table, &object.key, reference) {
                self.enqueue(owner);
            }
        }
    }

    async fn look_at(&mut self, key: &Key) -> Result<(), Failure> {
        let table = self.client.server().registry().table();
        let (Some(object), Some(kind)) = (
            self.client.server().store().get(key),
            table.find_resource(&key.resource).cloned(),
        ) else {
            return Ok(());
        };
        let value = encode::decode(&object, &kind);
        if meta::is_terminating(&value) {
            return self.ending(key, &value).await;
        }
        self.owned(&table, &kind, key, &value).await
    }

    /// An object that is being deleted, and may wait for its dependents.
    async fn ending(&mut self, key: &Key, value: &Value) -> Result<(), Failure> {
        let finalizers = meta::finalizers(value);
        let uid = meta::uid(value);
        if finalizers.contains(&ORPHAN) {
            for dependent in self.dependents.of(uid) {
                release(&self.client, &dependent, &[uid]).await?;
            }
            return drop_finalizer(&self.client, key, ORPHAN).await;
        }
        if finalizers.contains(&FOREGROUND) {
            let mut blocked = false;
            for dependent in self.dependents.of(uid) {
                blocked |= self.blocks(&dependent, uid);
                self.enqueue(dependent);
            }
            if !blocked {
                return drop_finalizer(&self.client, key, FOREGROUND).await;
            }
        }
        Ok(())
    }

    fn blocks(&self, dependent: &Key, owner: &str) -> bool {
        let Some(object) = self.client.server().store().get(dependent) else {
            return false;
        };
        let value: Value = serde_json::from_slice(&object.json).unwrap_or_default();
        meta::list(&value, "ownerReferences")
            .iter()
            .any(|reference| reference["uid"] == owner && reference["blockOwnerDeletion"] == true)
    }

    /// An object that is owned: see whether its owners still are there.
    async fn owned(
        &mut self,
        table: &Table,
        kind: &Arc<Kind>,
        key: &Key,
        value: &Value,
    ) -> Result<(), Failure> {
        let references = meta::list(value, "ownerReferences");
        if references.is_empty() {
            return Ok(());
        }
        let (mut solid, mut waiting, mut gone) = (0, Vec::new(), Vec::new());
        for reference in references {
            let uid = reference["uid"].as_str().unwrap_or_default();
            match self.state_of(table, key, reference) {
                Owner::Solid | Owner::Unknown => solid += 1,
                Owner::Waiting => waiting.push(uid),
                Owner::Gone => gone.push(uid),
            }
        }
        if solid > 0 {
            gone.append(&mut waiting);
            return if gone.is_empty() {
                Ok(())
            } else {
                release(&self.client, key, &gone).await
            };
        }
        let has_dependents = !self.dependents.of(meta::uid(value)).is_empty();
        let propagation = if !waiting.is_empty() && has_dependents {
            Propagation::Foreground
        } else {
            Propagation::Background
        };
        let own = meta::finalizers(value);
        let keeps = own.contains(&ORPHAN) || own.contains(&FOREGROUND);
        let preconditions = Preconditions {
            uid: Some(meta::uid(value).to_owned()),
            resource_version: Some(meta::resource_version(value).to_owned()),
        };
        self.client
            .delete_with(
                kind,
                key.namespace(),
                key.name(),
                &preconditions,
                (!keeps).then_some(propagation),
            )
            .await
    }

    fn state_of(&self, table: &Table, dependent: &Key, reference: &Value) -> Owner {
        let Some((kind, key)) = owner_key(table, dependent, reference) else {
            return Owner::Unknown;
        };
        let Some(object) = self.client.server().store().get(&key) else {
            return Owner::Gone;
        };
        let owner = encode::decode(&object, &kind);
        if reference["uid"] != meta::uid(&owner) {
            return Owner::Gone;
        }
        if meta::is_terminating(&owner)
            && meta::finalizers(&owner).contains(&FOREGROUND)
            && reference["blockOwnerDeletion"] == true
        {
            return Owner::Waiting;
        }
        Owner::Solid
    }
}

/// Takes references to owners out of an object.
async fn release(client: &Client, key: &Key, owners: &[&str]) -> Result<(), Failure> {
    edit(client, key, |object| {
        let kept = meta::list(object, "ownerReferences")
            .iter()
            .filter(|reference| !owners.contains(&reference["uid"].as_str().unwrap_or_default()))
            .cloned()
            .collect::<Vec<_>>();
        meta::set(object, "ownerReferences", kept);
    })
    .await
}

async fn drop_finalizer(client: &Client, key: &Key, finalizer: &str) -> Result<(), Failure> {
    edit(client, key, |object| {
        let kept = meta::finalizers(object)
            .into_iter()
            .filter(|kept| *kept != finalizer)
            .map(Value::from)
            .collect();
        meta::set_finalizers(object, kept);
    })
    .await
}

async fn edit(
    client: &Client,
    key: &Key,
    change: impl Fn(&mut Value) + Send,
) -> Result<(), Failure> {
    let table = client.server().registry().table();
    let Some(kind) = table.find_resource(&key.resource) else {
        return Ok(());
    };
    let call = client.call(kind, "patch", key.namespace(), key.name(), None);
    let changed = update::change(
        client.server(),
        &call,
        &WriteOptions::default(),
        Part::Main,
        Source::Patch,
        |old| {
            let mut object = old.clone();
            change(&mut object);
            Ok(Candidate::new(object))
        },
    )
    .await;
    match changed {
        Err(failure) if failure.code != StatusCode::NOT_FOUND => Err(failure),
        _ => Ok(()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Solid,
    /// It waits, in the foreground, for this very dependent.
    Waiting,
    Gone,
    /// Of a kind that is not served: nothing can be said of it.
    Unknown,
}

/// Where an owner is. An owner in a namespace is in that of its dependent.
fn owner_key(table: &Table, dependent: &Key, reference: &Value) -> Option<(Arc<Kind>, Key)> {
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let group = text("apiVersion")
        .rsplit_once('/')
        .map_or("", |(group, _)| group);
    let kind = table.find_kind(group, text("kind"))?;
    let namespace = match kind.scope {
        KindScope::Namespaced => Some(dependent.namespace()?),
        KindScope::Cluster => None,
    };
    let key = Key::new(kind.resource(), namespace, text("name"));
    Some((Arc::clone(kind), key))
}
