//! Which template a binding or a Work belongs to, and where a template has Works.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use evenkeel_api::kind::Table;
use evenkeel_shared::names;
use evenkeel_store::{Key, Object};
use parking_lot::RwLock;
use serde::Deserialize;

/// A template by its key in the store.
pub type TemplateKey = Key;

/// What is known of who belongs to whom. Everything in it can be derived from the objects; it saves looking through all
/// of them.
#[derive(Default)]
pub struct Index {
    inner: RwLock<Inner>,
}

#[derive(Default)]
struct Inner {
    /// By the path of the binding (and whether it is cluster-scoped: it has no slash then).
    bindings: HashMap<Arc<str>, TemplateKey>,
    /// By the name of the Work: its template, and the clusters that have such a Work.
    works: HashMap<Arc<str>, (TemplateKey, BTreeSet<Arc<str>>)>,
}

impl Index {
    /// A binding that is there.
    pub fn put_binding(&self, object: &Object, table: &Table) -> Option<TemplateKey> {
        if let Some(known) = self.inner.read().bindings.get(&object.key.path) {
            return Some(known.clone());
        }
        let binding: SlimBinding = serde_json::from_slice(&object.json).ok()?;
        let template = binding.spec.resource.key(table)?;
        self.inner
            .write()
            .bindings
            .insert(Arc::clone(&object.key.path), template.clone());
        Some(template)
    }

    /// A binding that is gone.
    pub fn remove_binding(&self, path: &str) -> Option<TemplateKey> {
        self.inner.write().bindings.remove(path)
    }

    /// A Work that is there; `None` when it is not one of a template of ours.
    pub fn put_work(&self, object: &Object, table: &Table) -> Option<TemplateKey> {
        let cluster = names::cluster_of_namespace(object.key.namespace()?)?;
        if let Some((template, clusters)) = self.inner.read().works.get(object.key.name())
            && clusters.contains(cluster)
        {
            return Some(template.clone());
        }
        let work: SlimWork = serde_json::from_slice(&object.json).ok()?;
        let manifest = work.spec.workload.manifests.into_iter().next()?;
        let reference = Reference {
            api_version: manifest.api_version,
            kind: manifest.kind,
            namespace: manifest.metadata.namespace,
            name: manifest.metadata.name,
        };
        let template = reference.key(table)?;
        let mut inner = self.inner.write();
        let entry = inner
            .works
            .entry(object.key.name().into())
            .or_insert_with(|| (template.clone(), BTreeSet::new()));
        entry.1.insert(cluster.into());
        Some(entry.0.clone())
    }

    /// A Work that is gone.
    pub fn remove_work(&self, key: &Key) -> Option<TemplateKey> {
        let cluster = names::cluster_of_namespace(key.namespace()?)?;
        let mut inner = self.inner.write();
        let (template, clusters) = inner.works.get_mut(key.name())?;
        let template = template.clone();
        clusters.remove(cluster);
        if clusters.is_empty() {
            inner.works.remove(key.name());
        }
        Some(template)
    }

    /// The clusters that have a Work of this name.
    pub fn clusters(&self, work: &str) -> Vec<Arc<str>> {
        self.inner
            .read()
            .works
            .get(work)
            .map(|(_, clusters)| clusters.iter().cloned().collect())
            .unwrap_or_default()
    }

    /// Every template that has a binding.
    pub fn bound(&self) -> Vec<TemplateKey> {
        self.inner.read().bindings.values().cloned().collect()
    }
}

#[derive(Deserialize)]
struct SlimBinding {
    spec: SlimBindingSpec,
}

#[derive(Deserialize)]
struct SlimBindingSpec {
    resource: Reference,
}

/// How a binding names its template.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Reference {
    api_version: String,
    kind: String,
    namespace: String,
    name: String,
}

impl Reference {
    /// The key of what is named; `None` when no such kind is served.
    fn key(&self, table: &Table) -> Option<TemplateKey> {
        let group = self
            .api_version
            .split_once('/')
            .map_or("", |(group, _)| group);
        let kind = table.find_kind(group, &self.kind)?;
        let namespace = (!self.namespace.is_empty()).then_some(self.namespace.as_str());
        Some(Key::new(kind.resource(), namespace, &self.name))
    }
}

#[derive(Deserialize)]
struct SlimWork {
    #[serde(default)]
    spec: SlimWorkSpec,
}

#[derive(Default, Deserialize)]
struct SlimWorkSpec {
    #[serde(default)]
    workload: SlimWorkload,
}

#[derive(Default, Deserialize)]
struct SlimWorkload {
    #[serde(default)]
    manifests: Vec<SlimManifest>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct SlimManifest {
    api_version: String,
    kind: String,
    metadata: SlimManifestMetadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SlimManifestMetadata {
    namespace: String,
    name: String,
}
