//! Objects in the member: where they are, and what is asked about them.

use evenkeel_shared::stamps::{
    CONFLICT_RESOLUTION_ANNOTATION, MANAGED_LABEL, WORK_NAME_ANNOTATION, WORK_NAMESPACE_ANNOTATION,
};
use serde_json::{Value, json};

use super::manifest::ObjectKey;
use crate::{
    follow::{Target, escape},
    status::apis::{Catalogue, Resource},
    transport::{Caller, Failure},
};

/// A kind of object, as the member serves it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Served {
    pub api_version: String,
    pub kind: String,
    pub plural: String,
    pub namespaced: bool,
}

impl Served {
    /// How the member serves objects of this key. `None`: it does not.
    pub fn find(catalogue: &Catalogue, key: &ObjectKey) -> Option<Self> {
        let Resource {
            name, namespaced, ..
        } = catalogue.find(&key.api_version, &key.kind)?;
        Some(Self {
            api_version: key.api_version.clone(),
            kind: key.kind.clone(),
            plural: name.clone(),
            namespaced: *namespaced,
        })
    }

    fn root(&self) -> String {
        if self.api_version.contains('/') {
            format!("/apis/{}", self.api_version)
        } else {
            format!("/api/{}", self.api_version)
        }
    }

    /// The key with the namespace that the object will really have.
    pub fn placed(&self, key: &ObjectKey) -> ObjectKey {
        let namespace = match (self.namespaced, key.namespace.as_str()) {
            (false, _) => "",
            (true, "") => "default",
            (true, namespace) => namespace,
        };
        ObjectKey {
            namespace: namespace.to_owned(),
            ..key.clone()
        }
    }

    /// Of an object. The key's namespace is as [`Served::placed`] gives it.
    pub fn path(&self, key: &ObjectKey) -> String {
        let (root, plural, name) = (self.root(), &self.plural, escape(&key.name));
        if self.namespaced {
            format!(
                "{root}/namespaces/{}/{plural}/{name}",
                escape(&key.namespace)
            )
        } else {
            format!("{root}/{plural}/{name}")
        }
    }

    /// All that agents placed, in all namespaces.
    pub fn target(&self) -> Target {
        Target {
            path: format!("{}/{}", self.root(), self.plural),
            selector: format!("labelSelector={}", escape(&format!("{MANAGED_LABEL}=true"))),
        }
    }
}

/// The object as it is, if it is there.
pub async fn read(
    member: &Caller,
    served: &Served,
    key: &ObjectKey,
) -> Result<Option<Value>, Failure> {
    member.find(&served.path(key)).await
}

/// Deletes exactly this object, and what it owns in the background.
pub async fn delete(
    member: &Caller,
    served: &Served,
    key: &ObjectKey,
    live: &Value,
) -> Result<(), Failure> {
    let options = json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": { "uid": live["metadata"]["uid"] },
    });
    member.delete(&served.path(key), &options).await
}

/// Makes a namespace that a placed object needs. A policy selects workloads, not where they live, so the member may
/// lack it. It carries no marks: what else is put into it does not go with the Work.
pub async fn make_namespace(member: &Caller, name: &str) -> Result<(), Failure> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name }});
    match member
        .create::<_, Value>("/api/v1/namespaces", &namespace)
        .await
    {
        Err(failure) if failure.is_conflict() => Ok(()),
        made => made.map(drop),
    }
}

/// Takes the marks off, so that the object is nobody's.
pub async fn release(member: &Caller, served: &Served, key: &ObjectKey) -> Result<(), Failure> {
    let patch = json!({"metadata": {
        "labels": { MANAGED_LABEL: null },
        "annotations": {
            WORK_NAMESPACE_ANNOTATION: null,
            WORK_NAME_ANNOTATION: null,
            CONFLICT_RESOLUTION_ANNOTATION: null,
        },
    }});
    match member.merge::<_, Value>(&served.path(key), &patch).await {
        Err(failure) if failure.is_not_found() => Ok(()),
        released => released.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        let served = |api_version: &str, plural: &str, namespaced| Served {
            api_version: api_version.to_owned(),
            kind: "K".to_owned(),
            plural: plural.to_owned(),
            namespaced,
        };
        let key = |namespace: &str, name: &str| ObjectKey {
            api_version: String::new(),
            kind: String::new(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        for (served, key, path) in [
            (
                served("v1", "configmaps", true),
                key("", "a"),
                "/api/v1/namespaces/default/configmaps/a",
            ),
            (
                served("apps/v1", "deployments", true),
                key("n", "a"),
                "/apis/apps/v1/namespaces/n/deployments/a",
            ),
            (
                served("v1", "namespaces", false),
                key("", "a"),
                "/api/v1/namespaces/a",
            ),
            (
                served("rbac.authorization.k8s.io/v1", "clusterroles", false),
                key("n", "system:a"),
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Aa",
            ),
        ] {
            assert_eq!(served.path(&served.placed(&key)), path);
        }
        let target = served("apps/v1", "deployments", true).target();
        assert_eq!(target.path, "/apis/apps/v1/deployments");
        assert_eq!(target.selector, "labelSelector=karmada.io%2Fmanaged%3Dtrue");
    }
}
