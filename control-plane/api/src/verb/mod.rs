//! What requests to resources do. No HTTP: a verb takes a [`Call`] and gives an [`Answer`], so that the network and the
//! controllers of this process go the same way.
//!
//! - [`mod@read`]: get, and waiting for a revision
//! - [`list`]: list and its paging
//! - [`select`]: label and field selectors over stored objects
//! - [`watch`](mod@watch): watch streams
//! - [`create`], [`update`], [`patch`], [`delete`]: writes; [`write`](mod@write) is what they share
//! - [`managed`]: who owns which field
//! - [`scale`]: the scale subresource

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod list;
pub(crate) mod managed;
pub(crate) mod patch;
pub(crate) mod read;
pub(crate) mod scale;
pub(crate) mod select;
pub(crate) mod update;
pub(crate) mod watch;
pub(crate) mod write;

use std::sync::Arc;

use evenkeel_store::{Key, Object, Resource};
use http::StatusCode;
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    access::{Attributes, UserInfo},
    failure::Failure,
    kind::{Kind, KindScope, RequestContext},
};

/// One request to a resource, authorized and understood.
#[derive(Clone)]
pub(crate) struct Call {
    pub user: Arc<UserInfo>,
    pub kind: Arc<Kind>,
    pub attributes: Attributes,
    pub namespace: Option<String>,
    /// Empty for a collection.
    pub name: String,
    pub subresource: Option<String>,
    /// Who owns the fields that are written, when the options do not say.
    pub manager: String,
    pub now: Timestamp,
    /// Whether what follows from the request needs rights of its own: not for the controllers of this process.
    pub restricted: bool,
}

impl Call {
    pub fn resource(&self) -> Resource {
        self.kind.resource()
    }

    pub fn key(&self, name: &str) -> Key {
        Key::new(self.resource(), self.namespace.as_deref(), name)
    }

    pub fn context(&self, dry_run: bool) -> RequestContext {
        RequestContext {
            user: Arc::clone(&self.user),
            namespace: self.namespace.clone(),
            name: Some(self.name.clone()).filter(|name| !name.is_empty()),
            subresource: self.subresource.clone(),
            now: self.now,
            dry_run,
        }
    }

    pub fn is_namespaced(&self) -> bool {
        self.kind.scope == KindScope::Namespaced
    }

    pub fn not_found(&self, name: &str) -> Failure {
        Failure::not_found(self.kind.group, self.kind.plural, name)
    }

    pub fn modified(&self, name: &str) -> Failure {
        Failure::conflict(
            self.kind.group,
            self.kind.plural,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }
}

/// The object in an answer.
#[derive(Clone, Debug)]
pub(crate) enum Shown {
    /// As it is in the store: its bytes are the answer.
    Stored(Arc<Object>),
    /// What would be, or was.
    Value(Value),
}

/// The answer to a request about one object.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub code: StatusCode,
    pub shown: Shown,
    /// Texts for Warning headers.
    pub warnings: Vec<String>,
}

impl Answer {
    pub fn stored(object: Arc<Object>) -> Self {
        Self {
            code: StatusCode::OK,
            shown: Shown::Stored(object),
            warnings: Vec::new(),
        }
    }

    pub fn value(value: Value) -> Self {
        Self {
            code: StatusCode::OK,
            shown: Shown::Value(value),
            warnings: Vec::new(),
        }
    }

    /// The object as a value, in the version of `kind`.
    pub fn into_value(self, kind: &Kind) -> Value {
        match self.shown {
            Shown::Stored(object) => crate::object::encode::decode(&object, kind),
            Shown::Value(value) => value,
        }
    }
}
