//! Carries out what is decided for templates.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use evenkeel_api::{
    failure::Failure,
    kind::{Kind, KindScope, Registry, Storage},
    local::{Client, Preconditions},
};
use evenkeel_placement::fleet::ClusterView;
use evenkeel_shared::{binding::ResourceBinding, names, work::Work};
use evenkeel_store::{EventKind, Key, ListQuery, Resource, Scope, Store};
use futures::StreamExt;
use parking_lot::RwLock;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    binding::references,
    decide::{Action, Snapshot, Step, decide},
    index::{Index, TemplateKey},
    namespaces,
    policies::{Policies, Policy},
    template::{Facts, is_kept_here, is_template_kind},
    work::targets,
};
use crate::{
    clock,
    clusters::controller::Kinds,
    fleet::Fleet,
    worker::{self, Due, Turn},
};

/// Templates that are seen to at a time.
const CONCURRENCY: usize = 32;
/// Writes for one template that are under way at a time: they share group commits.
const WRITES: usize = 64;
/// Changes of the fleet within this time cost one pass over the bindings.
const FLEET_QUIET: Duration = Duration::from_millis(200);
/// When what was decided upon had changed by the time of the write.
const OVERTAKEN: Duration = Duration::from_millis(50);

/// Brings templates to clusters.
pub struct Controller {
    store: Store,
    client: Client,
    registry: Arc<Registry>,
    fleet: Arc<Fleet>,
    kinds: Kinds,
    policies: Policies,
    index: Index,
    due: Due<TemplateKey>,
    views: RwLock<Arc<Vec<Arc<ClusterView>>>>,
    /// Watches of objects that have not been read for the first time.
    unread: AtomicUsize,
}

impl Controller {
    pub fn new(
        store: Store,
        client: Client,
        registry: Arc<Registry>,
        fleet: Arc<Fleet>,
        kinds: Kinds,
    ) -> Self {
        Self {
            store,
            client,
            registry,
            fleet,
            kinds,
            policies: Policies::default(),
            index: Index::default(),
            due: Due::default(),
            views: RwLock::default(),
            unread: AtomicUsize::new(1),
        }
    }

    /// Whether everything has been read once. Nothing is decided before.
    pub fn is_synced(&self) -> bool {
        self.policies.is_synced()
            && self.fleet.is_synced()
            && self.unread.load(Ordering::Acquire) == 0
    }

    /// Templates that wait for their turn.
    pub fn waiting(&self) -> usize {
        self.due.len()
    }

    /// Until `stop`.
    pub async fn run(self: &Arc<Self>, stop: CancellationToken) {
        let templates = self.template_kinds();
        self.unread.store(templates.len() + 4, Ordering::Release);
        let tracker = tokio_util::task::TaskTracker::new();
        // Namespaces are no templates, and have turns like them.
        for kind in templates.iter().chain([&self.kinds.namespaces]) {
            let kind = Arc::clone(kind);
            let (controller, stop) = (Arc::clone(self), stop.clone());
            tracker.spawn(async move {
                let due = controller.due.clone();
                controller
                    .follow(kind.resource(), &stop, |_, key, _| due.mark(key.clone()))
                    .await;
            });
        }
        for kind in [&self.kinds.bindings, &self.kinds.cluster_bindings] {
            let (controller, stop) = (Arc::clone(self), stop.clone());
            let resource = kind.resource();
            tracker.spawn(async move {
                controller
                    .follow(resource, &stop, |change, key, object| {
                        controller.binding_changed(change, key, object);
                    })
                    .await;
            });
        }
        {
            let (controller, stop) = (Arc::clone(self), stop.clone());
            tracker.spawn(async move {
                let resource = controller.kinds.works.resource();
                controller
                    .follow(resource, &stop, |change, key, object| {
                        controller.work_changed(change, key, object);
                    })
                    .await;
            });
        }
        {
            let (controller, stop) = (Arc::clone(self), stop.clone());
            tracker.spawn(async move {
                let store = controller.store.clone();
                controller
                    .policies
                    .run(store, stop, |before, after| {
                        controller.policy_changed(before, after);
                    })
                    .await;
            });
        }
        {
            let (controller, stop) = (Arc::clone(self), stop.clone());
            tracker.spawn(async move { controller.follow_fleet(&stop).await });
        }
        tracker.close();

        self.until_synced(&stop).await;
        worker::run(self.due.clone(), CONCURRENCY, stop, |key| self.turn(key)).await;
        tracker.wait().await;
    }

    async fn until_synced(&self, stop: &CancellationToken) {
        while !self.is_synced() && !stop.is_cancelled() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        *self.views.write() = Arc::new(self.fleet.views());
    }

    fn template_kinds(&self) -> Vec<Arc<Kind>> {
        let mut kinds = Vec::<Arc<Kind>>::new();
        for kind in &self.registry.table().kinds {
            // One storage may be served in several versions.
            let known = kinds
                .iter()
                .any(|known| known.resource() == kind.resource());
            if !known
                && matches!(kind.storage, Storage::Stored)
                && is_template_kind(kind.group, kind.kind)
            {
                kinds.push(Arc::clone(kind));
            }
        }
        kinds
    }

    /// Follows a resource: every object that is there, every change, and what went away unseen.
    async fn follow(
        &self,
        resource: Resource,
        stop: &CancellationToken,
        changed: impl Fn(EventKind, &Key, &evenkeel_store::Object),
    ) {
        let scope = Scope::all(resource);
        let mut first = true;
        loop {
            let (listing, mut watch) = self.store.list_and_watch(&scope);
            for object in &listing.objects {
                changed(EventKind::Added, &object.key, object);
            }
            drop(listing);
            if first {
                first = false;
                self.unread.fetch_sub(1, Ordering::AcqRel);
            } else {
                // What was deleted while events were lost is not in the list: everything that is bound is looked at.
                self.due.mark_all(self.index.bound());
            }
            loop {
                let event = tokio::select! {
                    () = stop.cancelled() => return,
                    event = watch.next() => event,
                };
                match event {
                    None => return,
                    Some(Err(_)) => break,
                    Some(Ok(event)) => changed(event.kind, &event.object.key, &event.object),
                }
            }
        }
    }

    fn binding_changed(&self, change: EventKind, key: &Key, object: &evenkeel_store::Object) {
        let template = if change == EventKind::Deleted {
            self.index.remove_binding(&key.path)
        } else {
            self.index.put_binding(object, &self.registry.table())
        };
        if let Some(template) = template {
            self.due.mark(template);
        }
        // Other changes of where things go are made here, and mark it themselves.
        if matches!(change, EventKind::Added | EventKind::Deleted) {
            self.mark_namespace(key.namespace());
        }
    }

    fn mark_namespace(&self, namespace: Option<&str>) {
        if let Some(name) = namespace.filter(|name| namespaces::follows(name)) {
            let key = Key::new(self.kinds.namespaces.resource(), None, name);
            self.due.mark(key);
        }
    }

    fn work_changed(&self, change: EventKind, key: &Key, object: &evenkeel_store::Object) {
        let template = if change == EventKind::Deleted {
            self.index.remove_work(key)
        } else {
            self.index.put_work(object, &self.registry.table())
        };
        if let Some(template) = template {
            self.due.mark(template);
        }
    }

    /// Marks the templates that a policy names, or named before.
    fn policy_changed(&self, before: Option<&Policy>, after: Option<&Policy>) {
        let table = self.registry.table();
        for policy in before.into_iter().chain(after) {
            for selector in &policy.spec.resource_selectors {
                let group = selector
                    .api_version
                    .split_once('/')
                    .map_or("", |(group, _)| group);
                let Some(kind) = table.find_kind(group, &selector.kind) else {
                    continue;
                };
                let namespace = [policy.namespace.as_str(), selector.namespace.as_str()]
                    .into_iter()
                    .find(|namespace| !namespace.is_empty())
                    .filter(|_| kind.scope == KindScope::Namespaced);
                let scope = match namespace {
                    Some(namespace) => Scope::namespace(kind.resource(), namespace),
                    None => Scope::all(kind.resource()),
                };
                let named = |object: &evenkeel_store::Object| {
                    selector.name.is_empty() || object.key.name() == selector.name
                };
                let Ok(listing) = self.store.list(&scope, &ListQuery::default(), &named) else {
                    continue;
                };
                self.due
                    .mark_all(listing.objects.iter().map(|object| object.key.clone()));
            }
        }
    }

    /// A change of the fleet concerns everything that is bound; a storm of them costs one pass.
    async fn follow_fleet(&self, stop: &CancellationToken) {
        let changed = self.fleet.subscribe();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = changed.wait() => {}
            }
            tokio::time::sleep(FLEET_QUIET).await;
            if changed.take().is_empty() {
                continue;
            }
            *self.views.write() = Arc::new(self.fleet.views());
            self.due.mark_all(self.index.bound());
        }
    }

    async fn turn(&self, key: TemplateKey) -> Turn {
        let Some(kind) = self.registry.table().find_resource(&key.resource).cloned() else {
            return Turn::Done;
        };
        let outcome = if key.resource == self.kinds.namespaces.resource() {
            self.see_to_namespace(key.name()).await
        } else {
            self.see_to(&kind, &key).await
        };
        match outcome {
            Ok(()) => Turn::Done,
            Err(failure) if failure.reason == "Conflict" => {
                tracing::debug!(template = ?key, error = %failure.message, "overtaken");
                Turn::Again(OVERTAKEN)
            }
            Err(failure) => {
                tracing::warn!(template = ?key, error = %failure.message, "cannot propagate");
                Turn::Failed
            }
        }
    }

    async fn see_to(&self, kind: &Arc<Kind>, key: &TemplateKey) -> Result<(), Failure> {
        let namespace = key.namespace().unwrap_or_default();
        let template = match self.store.get(key) {
            Some(object) => Some(decode::<Value>(&object.json)?),
            None => None,
        };
        let claim = template
            .as_ref()
            .map(Facts::of)
            .filter(|facts| !is_kept_here(&facts.namespace))
            .and_then(|facts| self.policies.claim(&facts));
        let place = Place::of(&self.kinds, kind, key);
        let binding = match self.store.get(&place.binding) {
            Some(object) => Some(decode::<ResourceBinding>(&object.json)?),
            None => None,
        };
        let views = Arc::clone(&self.views.read());
        let snapshot = Snapshot {
            template: template.as_ref(),
            claim,
            works: self.works(namespace, &place)?,
            binding,
            fleet: &views,
        };
        let steps = decide(&snapshot, clock::now());
        let arrives = |step: &Step| matches!(step.action, Action::CreateWork { .. });
        if steps.iter().any(arrives) {
            // First, so that no agent has to wait for it.
            self.see_to_namespace(namespace).await?;
        }
        // The steps of one decision are about different objects. One that fails does not keep back the others.
        let outcomes = futures::stream::iter(steps)
            .map(|step| {
                tracing::debug!(template = ?key, action = step.action.name(), reason = step.reason, "propagation");
                self.act(kind, &place, &snapshot, step.action)
            })
            .buffer_unordered(WRITES)
            .collect::<Vec<_>>()
            .await;
        outcomes.into_iter().collect()
    }

    /// Brings a namespace to where its content goes.
    async fn see_to_namespace(&self, name: &str) -> Result<(), Failure> {
        if name.is_empty() || !namespaces::follows(name) {
            return Ok(());
        }
        let key = Key::new(self.kinds.namespaces.resource(), None, name);
        let namespace = match self.store.get(&key) {
            Some(object) => Some(decode::<Value>(&object.json)?),
            None => None,
        };
        let work_name = names::work_name("Namespace", name, "");
        let mut works = BTreeMap::new();
        for cluster in self.index.clusters(&work_name) {
            let Some(object) = self.store.get(&self.work_key(&cluster, &work_name)) else {
                continue;
            };
            let work: Work = decode(&object.json)?;
            if namespaces::carries(&work, name) {
                works.insert(cluster.to_string(), work);
            }
        }
        let wanted = self.clusters_of_namespace(name)?;
        for step in namespaces::decide(namespace.as_ref(), &wanted, &works) {
            tracing::debug!(
                namespace = name,
                action = step.action.name(),
                reason = step.reason,
                "propagation"
            );
            let cluster = match &step.action {
                Action::CreateWork { cluster, .. }
                | Action::UpdateWork { cluster, .. }
                | Action::DeleteWork { cluster } => cluster.clone(),
                _ => continue,
            };
            let uid = works
                .get(&cluster)
                .and_then(|work| work.metadata.uid.clone());
            match self.act_on_work(step.action, &work_name, uid).await {
                // The turn of another template in it was faster.
                Err(failure) if failure.reason == "AlreadyExists" => {}
                outcome => outcome?,
            }
        }
        Ok(())
    }

    /// The clusters that get something of a namespace, save those that are going.
    fn clusters_of_namespace(&self, name: &str) -> Result<BTreeSet<String>, Failure> {
        let scope = Scope::namespace(self.kinds.bindings.resource(), name);
        let listing = self
            .store
            .list(&scope, &ListQuery::default(), &|_| true)
            .map_err(|error| Failure::internal(error.to_string()))?;
        let mut clusters = BTreeSet::new();
        for object in &listing.objects {
            let binding: ResourceBinding = decode(&object.json)?;
            if binding.metadata.deletion_timestamp.is_none() {
                clusters.extend(targets(&binding).into_iter().map(str::to_owned));
            }
        }
        clusters.retain(|name| {
            self.fleet
                .get(name)
                .is_some_and(|cluster| !cluster.terminating)
        });
        Ok(clusters)
    }

    /// The Works of a binding, by cluster.
    fn works(&self, namespace: &str, place: &Place) -> Result<BTreeMap<String, Work>, Failure> {
        let wanted = references(namespace, place.binding.name());
        let mut works = BTreeMap::new();
        for cluster in self.index.clusters(&place.work) {
            let key = self.work_key(&cluster, &place.work);
            let Some(object) = self.store.get(&key) else {
                continue;
            };
            let work: Work = decode(&object.json)?;
            let notes = work.metadata.annotations.as_ref();
            let is_ours = notes.is_some_and(|notes| {
                wanted
                    .iter()
                    .all(|(key, value)| notes.get(key) == Some(value))
            });
            if is_ours {
                works.insert(cluster.to_string(), work);
            }
        }
        Ok(works)
    }

    fn work_key(&self, cluster: &str, name: &str) -> Key {
        let namespace = names::execution_namespace(cluster);
        Key::new(self.kinds.works.resource(), Some(&namespace), name)
    }

    async fn act(
        &self,
        kind: &Arc<Kind>,
        place: &Place,
        snapshot: &Snapshot<'_>,
        action: Action,
    ) -> Result<(), Failure> {
        let namespace = place.binding.namespace();
        match action {
            Action::CreateBinding(binding) => {
                let binding = encode(&binding)?;
                self.client.create(&place.kind, namespace, binding).await?;
                self.mark_namespace(namespace);
                Ok(())
            }
            Action::UpdateBinding(binding) => {
                let binding = encode(&binding)?;
                self.client.update(&place.kind, namespace, binding).await?;
                self.mark_namespace(namespace);
                Ok(())
            }
            Action::UpdateBindingStatus(binding) => {
                let binding = encode(&binding)?;
                self.client
                    .update_status(&place.kind, namespace, binding)
                    .await
                    .map(drop)
            }
            Action::DeleteBinding => {
                let uid = snapshot
                    .binding
                    .as_ref()
                    .and_then(|binding| binding.metadata.uid.clone());
                let same = Preconditions {
                    uid,
                    ..Preconditions::default()
                };
                let name = place.binding.name();
                self.client
                    .delete(&place.kind, namespace, name, &same)
                    .await
            }
            Action::CreateWork { .. } | Action::UpdateWork { .. } => {
                self.act_on_work(action, &place.work, None).await
            }
            Action::DeleteWork { ref cluster } => {
                let uid = snapshot
                    .works
                    .get(cluster)
                    .and_then(|work| work.metadata.uid.clone());
                self.act_on_work(action, &place.work, uid).await
            }
            Action::UpdateTemplateStatus(template) => self
                .client
                .update_status(kind, namespace, template)
                .await
                .map(drop),
        }
    }

    /// Writes a Work; `uid` is that of one that is to be deleted.
    async fn act_on_work(
        &self,
        action: Action,
        name: &str,
        uid: Option<String>,
    ) -> Result<(), Failure> {
        let works = &self.kinds.works;
        match action {
            Action::CreateWork { cluster, work } => {
                let namespace = names::execution_namespace(&cluster);
                let work = encode(&work)?;
                self.client
                    .create(works, Some(&namespace), work)
                    .await
                    .map(drop)
            }
            Action::UpdateWork { cluster, work } => {
                let namespace = names::execution_namespace(&cluster);
                let work = encode(&work)?;
                self.client
                    .update(works, Some(&namespace), work)
                    .await
                    .map(drop)
            }
            Action::DeleteWork { cluster } => {
                let namespace = names::execution_namespace(&cluster);
                let same = Preconditions {
                    uid,
                    ..Preconditions::default()
                };
                self.client
                    .delete(works, Some(&namespace), name, &same)
                    .await
            }
            _ => Ok(()),
        }
    }
}

/// Where a template's binding and Works are.
struct Place {
    kind: Arc<Kind>,
    binding: Key,
    /// The name of its Works.
    work: String,
}

impl Place {
    fn of(kinds: &Kinds, template: &Kind, key: &TemplateKey) -> Self {
        let kind = if key.namespace().is_some() {
            &kinds.bindings
        } else {
            &kinds.cluster_bindings
        };
        let name = names::binding_name(template.kind, key.name());
        Self {
            kind: Arc::clone(kind),
            binding: Key::new(kind.resource(), key.namespace(), &name),
            work: names::work_name(
                template.kind,
                key.name(),
                key.namespace().unwrap_or_default(),
            ),
        }
    }
}

fn decode<T: serde::de::DeserializeOwned>(json: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(json).map_err(|error| Failure::internal(error.to_string()))
}

/// The client writes the kind's own name and version over those of the shared type.
fn encode<T: serde::Serialize>(object: &T) -> Result<Value, Failure> {
    serde_json::to_value(object).map_err(|error| Failure::internal(error.to_string()))
}
