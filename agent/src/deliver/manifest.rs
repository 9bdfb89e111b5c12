//! The manifests of a Work: their names, their order, and the marks that they get on their way to the member.

use std::hash::{DefaultHasher, Hash, Hasher};

use evenkeel_shared::{
    stamps::{
        CONFLICT_RESOLUTION_ANNOTATION, MANAGED_LABEL, WORK_NAME_ANNOTATION,
        WORK_NAMESPACE_ANNOTATION,
    },
    work::Work,
};
use serde_json::{Map, Value, json};

/// Names an object in the member. `namespace` is empty for cluster-scoped ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    pub api_version: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
}

impl ObjectKey {
    /// The names that an object carries.
    pub fn of(object: &Value) -> Result<Self, &'static str> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let key = Self {
            api_version: text(&object["apiVersion"]),
            kind: text(&object["kind"]),
            namespace: text(&object["metadata"]["namespace"]),
            name: text(&object["metadata"]["name"]),
        };
        if key.api_version.is_empty() || key.kind.is_empty() {
            Err("the manifest has no apiVersion or no kind")
        } else if key.name.is_empty() {
            Err("the manifest has no name")
        } else {
            Ok(key)
        }
    }

    /// Group and version; the group of core objects is empty.
    pub fn group_version(&self) -> (&str, &str) {
        self.api_version
            .split_once('/')
            .unwrap_or(("", &self.api_version))
    }

    /// What must be there first goes first: namespaces, then definitions, then the rest.
    pub fn rank(&self) -> u8 {
        match (self.group_version().0, self.kind.as_str()) {
            ("", "Namespace") => 0,
            ("apiextensions.k8s.io", "CustomResourceDefinition") => 1,
            _ => 2,
        }
    }
}

impl std::fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.kind, self.name)
        } else {
            write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
        }
    }
}

/// What the server sets, and what a status is; nobody applies these.
const SERVERS_OWN: [&str; 8] = [
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

fn child<'a>(object: &'a mut Value, name: &str) -> Option<&'a mut Map<String, Value>> {
    let object = object.as_object_mut()?;
    let child = object.entry(name).or_insert_with(|| json!({}));
    if !child.is_object() {
        *child = json!({});
    }
    child.as_object_mut()
}

/// The manifest as it is applied: without what is the server's, with the marks that say which Work it comes from.
pub fn stamped(manifest: &Value, work: &Work) -> Value {
    let mut object = manifest.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = child(&mut object, "metadata") {
        for field in SERVERS_OWN {
            metadata.remove(field);
        }
        let mut metadata = Value::Object(std::mem::take(metadata));
        if let Some(labels) = child(&mut metadata, "labels") {
            labels.insert(MANAGED_LABEL.to_owned(), json!("true"));
        }
        if let Some(annotations) = child(&mut metadata, "annotations") {
            annotations.insert(
                WORK_NAMESPACE_ANNOTATION.to_owned(),
                json!(work.namespace()),
            );
            annotations.insert(WORK_NAME_ANNOTATION.to_owned(), json!(work.name()));
            if let Some(resolution) = work
                .metadata
                .annotations
                .as_ref()
                .and_then(|annotations| annotations.get(CONFLICT_RESOLUTION_ANNOTATION))
            {
                annotations
                    .entry(CONFLICT_RESOLUTION_ANNOTATION)
                    .or_insert_with(|| json!(resolution));
            }
        }
        object["metadata"] = metadata;
    }
    object
}

/// The same without the marks: for what was there before and stays when the Work goes.
pub fn unmarked(mut object: Value) -> Value {
    if let Some(labels) = object["metadata"]["labels"].as_object_mut() {
        labels.remove(MANAGED_LABEL);
    }
    if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
        for mark in [
            WORK_NAMESPACE_ANNOTATION,
            WORK_NAME_ANNOTATION,
            CONFLICT_RESOLUTION_ANNOTATION,
        ] {
            annotations.remove(mark);
        }
    }
    object
}

/// A digest of a manifest, to see whether it changed. Only for this process.
pub fn digest(object: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.to_string().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use evenkeel_shared::work::WorkSpec;

    use super::*;

    fn work() -> Work {
        let mut work = Work::new("nginx-1", WorkSpec::default());
        work.metadata.namespace = Some("karmada-es-m1".into());
        work.metadata.annotations = Some(
            [(
                CONFLICT_RESOLUTION_ANNOTATION.to_owned(),
                "overwrite".to_owned(),
            )]
            .into(),
        );
        work
    }

    #[test]
    fn marks_say_where_it_comes_from_and_the_servers_fields_go() {
        let manifest = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "4",
                         "creationTimestamp": null, "labels": {"app": "x"}},
            "data": {"k": "v"},
            "status": {"phase": "x"},
        });
        let object = stamped(&manifest, &work());
        assert_eq!(
            object,
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {
                    "name": "a", "namespace": "n",
                    "labels": {"app": "x", "karmada.io/managed": "true"},
                    "annotations": {
                        "work.karmada.io/namespace": "karmada-es-m1",
                        "work.karmada.io/name": "nginx-1",
                        "work.karmada.io/conflict-resolution": "overwrite",
                    },
                },
                "data": {"k": "v"},
            })
        );
        let bare = unmarked(object);
        assert_eq!(bare["metadata"]["labels"], json!({"app": "x"}));
        assert_eq!(bare["metadata"]["annotations"], json!({}));
    }

    #[test]
    fn ill_formed_metadata_does_not_stop_it() {
        for metadata in [
            json!(null),
            json!("x"),
            json!({"labels": null, "annotations": 3}),
        ] {
            let object = stamped(&json!({"metadata": metadata}), &work());
            assert_eq!(object["metadata"]["labels"]["karmada.io/managed"], "true");
        }
    }

    #[test]
    fn keys_and_ranks() {
        for (object, rank, text) in [
            (
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}),
                0,
                "Namespace n",
            ),
            (
                json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "c"}}),
                1,
                "CustomResourceDefinition c",
            ),
            (
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "n"}}),
                2,
                "Deployment n/d",
            ),
        ] {
            let key = ObjectKey::of(&object).unwrap();
            assert_eq!((key.rank(), key.to_string().as_str()), (rank, text));
        }
        assert!(ObjectKey::of(&json!({"kind": "Pod", "metadata": {"name": "x"}})).is_err());
        assert!(ObjectKey::of(&json!({"apiVersion": "v1", "kind": "Pod"})).is_err());
    }
}
