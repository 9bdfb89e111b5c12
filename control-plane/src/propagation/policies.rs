//! The policies in memory, parsed once per change.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use evenkeel_placement::claim::{Contender, claim};
use evenkeel_shared::{
    policy::{PropagationPolicy, PropagationSpec},
    stamps,
};
use evenkeel_store::{EventKind, Object, Resource, Scope, Store};
use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;

use super::{binding::Claim, template::Facts};

/// One policy of either kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Empty for a cluster-wide one.
    pub namespace: String,
    pub name: String,
    /// Its permanent id: the label that admission gave it, or else its uid.
    pub id: String,
    pub terminating: bool,
    pub spec: PropagationSpec,
}

impl Policy {
    fn of(object: &Object) -> Option<Self> {
        // The two kinds have one shape.
        let policy: PropagationPolicy = match serde_json::from_slice(&object.json) {
            Ok(policy) => policy,
            Err(error) => {
                tracing::warn!(policy = ?object.key, %error, "a policy cannot be read and claims nothing");
                return None;
            }
        };
        let label = if policy.namespace().is_empty() {
            stamps::CLUSTER_POLICY_ID_LABEL
        } else {
            stamps::POLICY_ID_LABEL
        };
        let id = policy
            .metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get(label))
            .or(policy.metadata.uid.as_ref())
            .cloned()
            .unwrap_or_default();
        Some(Self {
            namespace: policy.namespace().to_owned(),
            name: policy.name().to_owned(),
            id,
            terminating: policy.metadata.deletion_timestamp.is_some(),
            spec: policy.spec,
        })
    }

    fn contender(&self) -> Contender<'_> {
        Contender {
            namespace: &self.namespace,
            name: &self.name,
            spec: &self.spec,
            terminating: self.terminating,
        }
    }
}

/// Policies of one namespace, by name; the empty namespace holds the cluster-wide ones.
type ByNamespace = BTreeMap<String, BTreeMap<String, Arc<Policy>>>;

/// All policies.
#[derive(Default)]
pub struct Policies {
    known: RwLock<ByNamespace>,
    namespaced: AtomicBool,
    wide: AtomicBool,
}

/// The stores' names for the two kinds.
pub fn resources() -> [Resource; 2] {
    ["propagationpolicies", "clusterpropagationpolicies"]
        .map(|plural| Resource::new("policy.karmada.io", plural))
}

impl Policies {
    /// Whether both kinds have been read.
    pub fn is_synced(&self) -> bool {
        self.namespaced.load(Ordering::Acquire) && self.wide.load(Ordering::Acquire)
    }

    /// The policy that claims a template.
    pub fn claim(&self, template: &Facts) -> Option<Claim> {
        let policies = self.known.read();
        let namespaced = (!template.namespace.is_empty())
            .then(|| policies.get(&template.namespace))
            .flatten();
        let contenders = namespaced
            .into_iter()
            .chain(policies.get(""))
            .flat_map(BTreeMap::values);
        let chosen = claim(
            template.selectable(),
            contenders.map(|policy| policy.contender()),
        )?;
        let policy = policies.get(chosen.namespace)?.get(chosen.name)?;
        Some(Claim {
            namespace: policy.namespace.clone(),
            name: policy.name.clone(),
            id: policy.id.clone(),
            spec: policy.spec.clone(),
        })
    }

    /// Follows the store until `stop`; every change is told with the policy before and after it.
    pub async fn run(
        &self,
        store: Store,
        stop: CancellationToken,
        changed: impl Fn(Option<&Policy>, Option<&Policy>),
    ) {
        let [namespaced, wide] = resources();
        tokio::join!(
            self.follow(&store, namespaced, &self.namespaced, &stop, &changed),
            self.follow(&store, wide, &self.wide, &stop, &changed),
        );
    }

    async fn follow(
        &self,
        store: &Store,
        resource: Resource,
        synced: &AtomicBool,
        stop: &CancellationToken,
        changed: &impl Fn(Option<&Policy>, Option<&Policy>),
    ) {
        let is_wide = resource.plural() == "clusterpropagationpolicies";
        loop {
            let (listing, mut watch) = store.list_and_watch(&Scope::all(resource.clone()));
            let gone = self.gone(is_wide, &listing.objects);
            for policy in gone {
                self.remove(&policy.namespace, &policy.name);
                changed(Some(&policy), None);
            }
            for object in &listing.objects {
                self.put(object, changed);
            }
            synced.store(true, Ordering::Release);
            loop {
                let event = tokio::select! {
                    () = stop.cancelled() => return,
                    event = watch.next() => event,
                };
                match event {
                    None => return,
                    Some(Err(_)) => break,
                    Some(Ok(event)) if event.kind == EventKind::Deleted => {
                        let key = &event.object.key;
                        let before = self.remove(key.namespace().unwrap_or_default(), key.name());
                        changed(before.as_deref(), None);
                    }
                    Some(Ok(event)) => self.put(&event.object, changed),
                }
            }
        }
    }

    /// The policies of a kind that are held here and are not among `present`.
    fn gone(&self, is_wide: bool, present: &[Arc<Object>]) -> Vec<Arc<Policy>> {
        let present = present
            .iter()
            .map(|object| {
                (
                    object.key.namespace().unwrap_or_default(),
                    object.key.name(),
                )
            })
            .collect::<std::collections::HashSet<_>>();
        self.known
            .read()
            .iter()
            .filter(|(namespace, _)| namespace.is_empty() == is_wide)
            .flat_map(|(_, policies)| policies.values())
            .filter(|policy| !present.contains(&(policy.namespace.as_str(), policy.name.as_str())))
            .cloned()
            .collect()
    }

    fn put(&self, object: &Object, changed: &impl Fn(Option<&Policy>, Option<&Policy>)) {
        let key = &object.key;
        let namespace = key.namespace().unwrap_or_default();
        let Some(policy) = Policy::of(object).map(Arc::new) else {
            let before = self.remove(namespace, key.name());
            changed(before.as_deref(), None);
            return;
        };
        let before = self
            .known
            .write()
            .entry(namespace.to_owned())
            .or_default()
            .insert(key.name().to_owned(), Arc::clone(&policy));
        if before.as_deref() != Some(&policy) {
            changed(before.as_deref(), Some(&policy));
        }
    }

    fn remove(&self, namespace: &str, name: &str) -> Option<Arc<Policy>> {
        let mut policies = self.known.write();
        let of_namespace = policies.get_mut(namespace)?;
        let policy = of_namespace.remove(name);
        if of_namespace.is_empty() {
            policies.remove(namespace);
        }
        policy
    }
}
