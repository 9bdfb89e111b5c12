//! Names of objects.

use std::{fmt, sync::Arc};

/// A kind of object as the store knows it: `group/plural`, with an empty group for the core one (`/namespaces`).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource(Arc<str>);

impl Resource {
    pub fn new(group: &str, plural: &str) -> Self {
        Self(format!("{group}/{plural}").into())
    }

    pub fn group(&self) -> &str {
        self.0.split_once('/').map_or("", |(group, _)| group)
    }

    pub fn plural(&self) -> &str {
        self.0.split_once('/').map_or(&self.0, |(_, plural)| plural)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of one object. Objects of one resource are ordered by the bytes of `path`, as in the reference API server.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub resource: Resource,
    /// `namespace/name`, or `name` for a cluster-scoped object. Neither part holds a slash.
    pub path: Arc<str>,
}

impl Key {
    pub fn new(resource: Resource, namespace: Option<&str>, name: &str) -> Self {
        let path = match namespace {
            Some(namespace) => format!("{namespace}/{name}").into(),
            None => name.into(),
        };
        Self { resource, path }
    }

    pub fn namespace(&self) -> Option<&str> {
        self.path.split_once('/').map(|(namespace, _)| namespace)
    }

    pub fn name(&self) -> &str {
        self.path
            .split_once('/')
            .map_or(&self.path, |(_, name)| name)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}:{}", self.resource, self.path)
    }
}

/// What a list or a watch covers: a resource, or one namespace of it, or one object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
    pub resource: Resource,
    pub namespace: Option<Arc<str>>,
    /// With a namespace, or for a cluster-scoped resource: the one object of this name. Watches of one object cost
    /// nothing when others change.
    pub name: Option<Arc<str>>,
}

impl Scope {
    pub fn all(resource: Resource) -> Self {
        Self {
            resource,
            namespace: None,
            name: None,
        }
    }

    pub fn namespace(resource: Resource, namespace: &str) -> Self {
        Self {
            resource,
            namespace: Some(namespace.into()),
            name: None,
        }
    }

    pub fn object(key: &Key) -> Self {
        Self {
            resource: key.resource.clone(),
            namespace: key.namespace().map(Into::into),
            name: Some(key.name().into()),
        }
    }

    /// A scope with a name but no namespace names cluster-scoped objects, and objects of that name in every namespace.
    pub fn contains(&self, key: &Key) -> bool {
        self.resource == key.resource
            && self
                .namespace
                .as_deref()
                .is_none_or(|namespace| key.namespace() == Some(namespace))
            && self.name.as_deref().is_none_or(|name| key.name() == name)
    }
}
