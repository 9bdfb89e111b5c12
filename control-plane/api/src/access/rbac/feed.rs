//! Keeps the index in step with the store.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use evenkeel_store::{EventKind, Object, Resource, Scope, Store, Watch};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::{
    Policy, Rbac,
    index::{Binding, GROUP, Role},
};

/// Changes that come within this time of the first are taken together.
const SETTLE: Duration = Duration::from_millis(5);

/// One of the four kinds: what is there, and what changes.
struct Table<T> {
    store: Store,
    scope: Scope,
    watch: Watch,
    objects: BTreeMap<Arc<str>, T>,
}

impl<T: DeserializeOwned> Table<T> {
    fn open(store: &Store, plural: &str) -> Self {
        let scope = Scope::all(Resource::new(GROUP, plural));
        let (listing, watch) = store.list_and_watch(&scope);
        let mut table = Self {
            store: store.clone(),
            scope,
            watch,
            objects: BTreeMap::new(),
        };
        listing.objects.iter().for_each(|object| table.put(object));
        table
    }

    fn put(&mut self, object: &Object) {
        match serde_json::from_slice(&object.json) {
            Ok(parsed) => {
                self.objects.insert(Arc::clone(&object.key.path), parsed);
            }
            Err(error) => {
                // What cannot be read gives no rights.
                tracing::warn!(key = ?object.key, %error, "unreadable RBAC object");
                self.objects.remove(&object.key.path);
            }
        }
    }

    /// Waits for a change and takes it. `false`: the store is closed.
    async fn follow(&mut self) -> bool {
        match self.watch.next().await {
            None => false,
            Some(Ok(event)) => {
                if event.kind == EventKind::Deleted {
                    self.objects.remove(&event.object.key.path);
                } else {
                    self.put(&event.object);
                }
                true
            }
            Some(Err(_)) => {
                let (listing, watch) = self.store.list_and_watch(&self.scope);
                self.watch = watch;
                self.objects.clear();
                listing.objects.iter().for_each(|object| self.put(object));
                true
            }
        }
    }
}

struct Tables {
    roles: Table<Role>,
    cluster_roles: Table<Role>,
    role_bindings: Table<Binding>,
    cluster_role_bindings: Table<Binding>,
}

impl Tables {
    fn open(store: &Store) -> Self {
        Self {
            roles: Table::open(store, "roles"),
            cluster_roles: Table::open(store, "clusterroles"),
            role_bindings: Table::open(store, "rolebindings"),
            cluster_role_bindings: Table::open(store, "clusterrolebindings"),
        }
    }

    fn policy(&self) -> Policy {
        Policy {
            roles: self.roles.objects.values().cloned().collect(),
            cluster_roles: self.cluster_roles.objects.values().cloned().collect(),
            role_bindings: self.role_bindings.objects.values().cloned().collect(),
            cluster_role_bindings: self
                .cluster_role_bindings
                .objects
                .values()
                .cloned()
                .collect(),
        }
    }

    async fn follow(&mut self) -> bool {
        tokio::select! {
            open = self.roles.follow() => open,
            open = self.cluster_roles.follow() => open,
            open = self.role_bindings.follow() => open,
            open = self.cluster_role_bindings.follow() => open,
        }
    }
}

impl Rbac {
    /// Goes by what the store holds. The second part keeps it in step until `stop`, and is to be spawned.
    pub fn of_store(
        store: &Store,
        stop: CancellationToken,
    ) -> (Arc<Self>, impl Future<Output = ()> + Send + 'static) {
        let mut tables = Tables::open(store);
        let rbac = Arc::new(Self::new(&tables.policy()));
        let follower = Arc::clone(&rbac);
        let follow = async move {
            loop {
                let open = tokio::select! {
                    () = stop.cancelled() => return,
                    open = tables.follow() => open,
                };
                if !open {
                    return;
                }
                let settled = tokio::time::sleep(SETTLE);
                tokio::pin!(settled);
                loop {
                    tokio::select! {
                        () = &mut settled => break,
                        open = tables.follow() => if !open { return },
                    }
                }
                follower.set(&tables.policy());
            }
        };
        (rbac, follow)
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_store::{
        Attributes as Selectable, Body, Change, Key, Precondition, StoreOptions, Write,
    };
    use serde_json::{Value, json};

    use super::*;
    use crate::access::{Attributes, Authorizer as _, Decision, UserInfo};

    fn put(plural: &str, namespace: Option<&str>, mut object: Value) -> Write {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        if let Some(namespace) = namespace {
            object["metadata"]["namespace"] = namespace.into();
        }
        let json = object.to_string().into_bytes();
        let version_at =
            object.to_string().find("\"metadata\":{").unwrap() + "\"metadata\":{".len();
        Write {
            key: Key::new(Resource::new(GROUP, plural), namespace, &name),
            precondition: Precondition::Absent,
            change: Change::Put(Body {
                json,
                version_at,
                attributes: Selectable::default(),
            }),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn decisions_follow_the_store() {
        let store = Store::in_memory(StoreOptions::without_attributes());
        store
            .commit(vec![put(
                "roles",
                Some("ns"),
                json!({"metadata": {"name": "r"}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]}),
            )])
            .await
            .unwrap();
        let stop = CancellationToken::new();
        let (rbac, follow) = Rbac::of_store(&store, stop.clone());
        let task = tokio::spawn(follow);
        let request = Attributes {
            verb: "get".into(),
            resource: "pods".into(),
            namespace: "ns".into(),
            ..Attributes::default()
        };
        let alice = UserInfo {
            name: "alice".into(),
            ..UserInfo::default()
        };
        let becomes = async |expected: Decision| {
            tokio::time::timeout(Duration::from_secs(5), async {
                while rbac.authorize(&alice, &request) != expected {
                    tokio::time::sleep(SETTLE).await;
                }
            })
            .await
            .unwrap();
        };
        becomes(Decision::NoOpinion).await;
        let binding = put(
            "rolebindings",
            Some("ns"),
            json!({"metadata": {"name": "b"}, "subjects": [{"kind": "User", "name": "alice"}],
                "roleRef": {"kind": "Role", "name": "r"}}),
        );
        let key = binding.key.clone();
        let written = store.commit(vec![binding]).await.unwrap();
        becomes(Decision::Allow).await;
        store
            .commit(vec![Write {
                key,
                precondition: Precondition::At(written[0].revision),
                change: Change::Delete,
            }])
            .await
            .unwrap();
        becomes(Decision::NoOpinion).await;
        stop.cancel();
        task.await.unwrap();
    }
}
