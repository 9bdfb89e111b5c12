//! The shell around the workload rules: watches the member's store, plans, writes, and looks again.

use std::{collections::HashMap, sync::Arc, time::Duration};

use evenkeel_api::{
    failure::Failure,
    kind::Kind,
    local::{Client, Preconditions},
};
use evenkeel_store::{Key, Revision, Scope, Store, Watch};
use futures::{FutureExt, StreamExt, stream};
use http::StatusCode;
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    switches::Switches,
    view::View,
    workload::{
        self, Action, Pod, Workload, daemonset, deployment, job, pod, replicaset, statefulset, text,
    },
};
use crate::clock;

const MANAGER: &str = "kube-controller-manager";
/// Writes under way at a time.
const WRITES: usize = 32;
/// Objects that are read between two breaths.
const SHARE: usize = 64;
/// How long what could not be done waits for its next try.
const RETRY: Duration = Duration::from_millis(250);

/// The controllers, scheduler and kubelets of one member.
pub struct Controllers {
    pub store: Store,
    pub client: Client,
    pub kinds: HashMap<Workload, Arc<Kind>>,
    pub switches: Switches,
}

impl Controllers {
    /// Runs until `shutdown`; starts over from a fresh list when it fell behind its watches.
    pub async fn run(self, shutdown: CancellationToken) {
        while !shutdown.is_cancelled() {
            let (mut view, mut watches) = self.load().await;
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = self.follow(&mut view, &mut watches) => {}
            }
        }
    }

    async fn load(&self) -> (View, Vec<(Workload, Watch)>) {
        let mut view = View::default();
        let mut watches = Vec::new();
        for kind in Workload::ALL {
            let (listing, watch) = self
                .store
                .list_and_watch(&Scope::all(self.kinds[&kind].resource()));
            for (count, object) in listing.objects.iter().enumerate() {
                view.add(kind, object);
                // A large member is read for seconds, and has to answer meanwhile.
                if count % SHARE == 0 {
                    tokio::task::yield_now().await;
                }
            }
            watches.push((kind, watch));
        }
        (view, watches)
    }

    /// Returns when a watch has ended.
    async fn follow(&self, view: &mut View, watches: &mut [(Workload, Watch)]) {
        let mut random = SmallRng::seed_from_u64(rand::random());
        loop {
            let idle =
                self.switches.state().frozen || (view.dirty.is_empty() && view.waiting.is_empty());
            if !idle {
                let actions = self.plan(view, &mut random);
                let failed = stream::iter(actions)
                    .map(|action| self.act(action))
                    .buffer_unordered(WRITES)
                    .filter(|done| std::future::ready(!done))
                    .count()
                    .await;
                if failed == 0
                    && self
                        .catch_up(view, watches, self.store.revision())
                        .await
                        .is_none()
                {
                    return;
                }
            }
            // What still waits does so for an event or, when something could not be done, for a while.
            let next = futures::future::select_all(
                watches
                    .iter_mut()
                    .map(|(kind, watch)| watch.next().map(|event| (*kind, event)).boxed()),
            );
            tokio::select! {
                ((kind, event), _, _) = next => match event {
                    Some(Ok(event)) => view.apply(kind, &event),
                    _ => return,
                },
                () = tokio::time::sleep(RETRY), if !view.dirty.is_empty() || !view.waiting.is_empty() => {}
            }
            if self
                .catch_up(view, watches, Revision::default())
                .await
                .is_none()
            {
                return;
            }
        }
    }

    /// Takes what the watches hold, and all up to `revision`. `None`: a watch has ended.
    async fn catch_up(
        &self,
        view: &mut View,
        watches: &mut [(Workload, Watch)],
        revision: Revision,
    ) -> Option<()> {
        for (kind, watch) in watches {
            loop {
                match watch.next().now_or_never() {
                    Some(Some(Ok(event))) => view.apply(*kind, &event),
                    Some(_) => return None,
                    None if watch.progress().is_some_and(|taken| taken >= revision) => break,
                    None => tokio::task::yield_now().await,
                }
            }
        }
        Some(())
    }

    fn plan(&self, view: &mut View, random: &mut SmallRng) -> Vec<Action> {
        let now = clock::now_off_by(self.switches.state().clock_offset_seconds);
        let mut fresh = || {
            const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
            (0..5)
                .map(|_| char::from(ALPHABET[random.random_range(0..ALPHABET.len())]))
                .collect::<String>()
        };
        let mut actions = Vec::new();
        for name in std::mem::take(&mut view.dirty) {
            let Some(object) = view.objects.get(&name).cloned() else {
                continue;
            };
            let pods = view.pods_of(&object);
            actions.extend(match name.0 {
                Workload::Deployment => deployment::plan(&object, &view.sets_of(&object), now),
                Workload::ReplicaSet => replicaset::plan(&object, &pods, &mut fresh),
                Workload::StatefulSet => statefulset::plan(&object, &pods),
                Workload::DaemonSet => {
                    let open = view.nodes.iter().filter(|(_, node)| !node.cordoned);
                    let places = open
                        .map(|(name, node)| daemonset::Place {
                            name,
                            labels: &node.labels,
                        })
                        .collect::<Vec<_>>();
                    daemonset::plan(&object, &pods, &places, &mut fresh)
                }
                Workload::Job => job::plan(&object, &pods, now, &mut fresh),
                Workload::Pod | Workload::Node => Vec::new(),
            });
        }
        let mut charged = Vec::new();
        for path in view.waiting.iter().cloned().collect::<Vec<_>>() {
            let Some(pod) = view.pods.get(&path).cloned() else {
                continue;
            };
            actions.extend(self.host(view, &pod, now, &mut charged));
        }
        for node in charged {
            view.discharge(&node);
        }
        actions
    }

    /// The next step of a pod that waits.
    fn host(
        &self,
        view: &mut View,
        pod: &Pod,
        now: jiff::Timestamp,
        charged: &mut Vec<String>,
    ) -> Option<Action> {
        if pod.deleting {
            return Some(Action::Delete {
                kind: Workload::Pod,
                namespace: pod.namespace.clone(),
                name: pod.name.clone(),
            });
        }
        let key = Key::new(
            self.kinds[&Workload::Pod].resource(),
            Some(&pod.namespace),
            &pod.name,
        );
        let object = serde_json::from_slice::<Value>(&self.store.get(&key)?.json).ok()?;
        if let Some(node) = text(&object, "/spec/nodeName") {
            let address = view.nodes.get(node)?.address.clone();
            let completes = pod
                .owner
                .as_deref()
                .is_some_and(|owner| view.completes(owner));
            return Some(Action::Status {
                kind: Workload::Pod,
                namespace: pod.namespace.clone(),
                name: pod.name.clone(),
                status: pod::run(&object, &address, completes, now),
            });
        }
        let node = view.place(&object)?.0.clone();
        view.charge(&node);
        let patch = json!({"spec": {"nodeName": node}});
        charged.push(node);
        Some(Action::Patch {
            kind: Workload::Pod,
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            patch,
        })
    }

    /// Whether it was done, or need not be done any more.
    async fn act(&self, action: Action) -> bool {
        let done = match &action {
            Action::Create { kind, object } => {
                let namespace = text(object, "/metadata/namespace");
                self.client
                    .create(&self.kinds[kind], namespace, object.clone())
                    .await
                    .map(drop)
            }
            Action::Patch {
                kind,
                namespace,
                name,
                patch,
            } => self
                .client
                .patch_merge(
                    &self.kinds[kind],
                    Some(namespace),
                    name,
                    None,
                    patch,
                    MANAGER,
                )
                .await
                .map(drop),
            Action::Status {
                kind,
                namespace,
                name,
                status,
            } => self.put_status(*kind, namespace, name, status).await,
            Action::Delete {
                kind,
                namespace,
                name,
            } => self
                .client
                .delete(
                    &self.kinds[kind],
                    Some(namespace),
                    name,
                    &Preconditions::default(),
                )
                .await
                .map(drop),
        };
        match done {
            Ok(()) => true,
            // Somebody else wrote in between, or it is gone, or there already: the event of that plans again.
            Err(failure)
                if matches!(failure.code, StatusCode::CONFLICT | StatusCode::NOT_FOUND) =>
            {
                true
            }
            Err(failure) => {
                tracing::warn!(?action, %failure.message, "the member's controllers could not write");
                false
            }
        }
    }

    async fn put_status(
        &self,
        kind: Workload,
        namespace: &str,
        name: &str,
        status: &Value,
    ) -> Result<(), Failure> {
        let kind = &self.kinds[&kind];
        let mut object = self.client.get(kind, Some(namespace), name).await?;
        object["status"] = status.clone();
        self.client
            .update_status(kind, Some(namespace), object)
            .await
            .map(drop)
    }
}

/// The kinds that the controllers need, out of the table of the server.
pub fn kinds(table: &evenkeel_api::kind::Table) -> Option<HashMap<Workload, Arc<Kind>>> {
    workload::Workload::ALL
        .into_iter()
        .map(|kind| {
            let (group, version, plural) = kind.path();
            Some((kind, table.find(group, version, plural)?.clone()))
        })
        .collect()
}
