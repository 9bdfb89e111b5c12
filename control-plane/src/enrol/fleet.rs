//! What admission and enrolment know of the fleet: which Clusters there are, under which ids, and who claims which name.

use std::{collections::HashMap, sync::Arc};

use evenkeel_store::{EventKind, Key, Object, Resource, Scope, Store};
use parking_lot::RwLock;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::{Fleet, request::Subject};

fn clusters() -> Resource {
    Resource::new("cluster.karmada.io", "clusters")
}

/// The fleet as the store has it.
pub struct FleetView {
    store: Store,
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    /// Name to id. One without an id has an empty one.
    ids: HashMap<Arc<str>, Box<str>>,
    /// Id to name.
    names: HashMap<Box<str>, Arc<str>>,
    /// Cluster to the approved requests for its agent.
    claims: HashMap<String, Vec<Claim>>,
}

struct Claim {
    request: String,
    public_key: Vec<u8>,
}

#[derive(Deserialize)]
struct WithId {
    #[serde(default)]
    spec: Id,
}

#[derive(Default, Deserialize)]
struct Id {
    #[serde(default)]
    id: Box<str>,
}

impl State {
    fn put(&mut self, cluster: &Object) {
        // Ids do not change; status writes, of which there are many, need not be read.
        if self
            .ids
            .get(cluster.key.name())
            .is_some_and(|id| !id.is_empty())
        {
            return;
        }
        let Some(id) = id_of(cluster) else {
            return;
        };
        let name: Arc<str> = cluster.key.name().into();
        if !id.is_empty() {
            self.names.insert(id.clone(), Arc::clone(&name));
        }
        self.ids.insert(name, id);
    }

    fn remove(&mut self, name: &str) {
        if let Some(id) = self.ids.remove(name)
            && self.names.get(&id).is_some_and(|holder| &**holder == name)
        {
            self.names.remove(&id);
        }
    }
}

fn id_of(cluster: &Object) -> Option<Box<str>> {
    let read: WithId = serde_json::from_slice(&cluster.json).ok()?;
    Some(read.spec.id)
}

impl FleetView {
    /// Reads the store. The second part keeps the view in step until `stop`, and is to be spawned.
    pub fn of_store(
        store: &Store,
        stop: CancellationToken,
    ) -> (Arc<Self>, impl Future<Output = ()> + Send + 'static) {
        let scope = Scope::all(clusters());
        let (listing, mut watch) = store.list_and_watch(&scope);
        let mut state = State::default();
        listing
            .objects
            .iter()
            .for_each(|cluster| state.put(cluster));
        let view = Arc::new(Self {
            store: store.clone(),
            state: RwLock::new(state),
        });
        let (follower, store) = (Arc::clone(&view), store.clone());
        let follow = async move {
            loop {
                let event = tokio::select! {
                    () = stop.cancelled() => return,
                    event = watch.next() => event,
                };
                match event {
                    None => return,
                    Some(Ok(event)) => {
                        let mut state = follower.state.write();
                        if event.kind == EventKind::Deleted {
                            state.remove(event.object.key.name());
                        } else {
                            state.put(&event.object);
                        }
                    }
                    Some(Err(_)) => {
                        let (listing, again) = store.list_and_watch(&scope);
                        watch = again;
                        let mut state = follower.state.write();
                        state.ids.clear();
                        state.names.clear();
                        listing
                            .objects
                            .iter()
                            .for_each(|cluster| state.put(cluster));
                    }
                }
            }
        };
        (view, follow)
    }

    /// An approved request: its key is the cluster's from now on.
    pub fn claim(&self, cluster: &str, request: &str, subject: &Subject) {
        let mut state = self.state.write();
        let claims = state.claims.entry(cluster.to_owned()).or_default();
        if claims.iter().all(|claim| claim.request != request) {
            claims.push(Claim {
                request: request.to_owned(),
                public_key: subject.public_key.clone(),
            });
        }
    }

    /// A request is gone, and its claim with it.
    pub fn release(&self, request: &str) {
        self.state.write().claims.retain(|_, claims| {
            claims.retain(|claim| claim.request != request);
            !claims.is_empty()
        });
    }

    /// Who made a CertificateSigningRequest.
    pub fn requester(store: &Store, name: &str) -> Option<String> {
        let key = Key::new(
            Resource::new("certificates.k8s.io", "certificatesigningrequests"),
            None,
            name,
        );
        let object = store.get(&key)?;
        let request: super::CertificateRequest = serde_json::from_slice(&object.json).ok()?;
        Some(request.spec.username)
    }
}

impl Fleet for FleetView {
    fn has_cluster(&self, name: &str) -> bool {
        self.store.get(&Key::new(clusters(), None, name)).is_some()
    }

    fn cluster_with_id(&self, id: &str) -> Option<String> {
        let name = self.state.read().names.get(id).cloned()?;
        // The view may be behind; what the store says counts.
        let cluster = self.store.get(&Key::new(clusters(), None, &name))?;
        (id_of(&cluster)?.as_ref() == id).then(|| name.to_string())
    }

    fn other_claim(&self, cluster: &str, subject: &Subject) -> Option<String> {
        self.state
            .read()
            .claims
            .get(cluster)?
            .iter()
            .find(|claim| claim.public_key != subject.public_key)
            .map(|claim| claim.request.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use evenkeel_store::{Attributes, Body, Change, Precondition, StoreOptions, Write};
    use serde_json::json;

    use super::*;
    use crate::enrol::{
        CertificateRequest,
        fixture::{agent_request, by},
    };

    fn cluster(name: &str, id: &str) -> Write {
        let json = json!({"metadata": {"name": name}, "spec": {"id": id}}).to_string();
        Write {
            key: Key::new(clusters(), None, name),
            precondition: Precondition::Absent,
            change: Change::Put(Body {
                version_at: json.find("\"metadata\":{").unwrap() + 12,
                json: json.into_bytes(),
                attributes: Attributes::default(),
            }),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_view_follows_the_clusters_and_the_claims() {
        let store = Store::in_memory(StoreOptions::without_attributes());
        store.commit(vec![cluster("north", "id-n")]).await.unwrap();
        let stop = CancellationToken::new();
        let (view, follow) = FleetView::of_store(&store, stop.clone());
        let task = tokio::spawn(follow);
        assert!(view.has_cluster("north") && !view.has_cluster("south"));
        assert_eq!(view.cluster_with_id("id-n").as_deref(), Some("north"));
        let becomes = async |id: &str, expected: Option<&str>| {
            tokio::time::timeout(Duration::from_secs(5), async {
                while view.cluster_with_id(id).as_deref() != expected {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            })
            .await
            .unwrap();
        };
        let written = store.commit(vec![cluster("south", "id-s")]).await.unwrap();
        becomes("id-s", Some("south")).await;
        store
            .commit(vec![Write {
                key: written[0].key.clone(),
                precondition: Precondition::At(written[0].revision),
                change: Change::Delete,
            }])
            .await
            .unwrap();
        becomes("id-s", None).await;

        let subject = |request| {
            CertificateRequest::read(&by(request, "u", &[], None))
                .unwrap()
                .subject()
                .unwrap()
        };
        let (mine, theirs) = (
            subject(agent_request("west")),
            subject(agent_request("west")),
        );
        view.claim("west", "west-1", &mine);
        assert_eq!(view.other_claim("west", &mine), None);
        assert_eq!(view.other_claim("west", &theirs).as_deref(), Some("west-1"));
        view.release("west-1");
        assert_eq!(view.other_claim("west", &theirs), None);
        stop.cancel();
        task.await.unwrap();
    }
}
