//! The client of controllers in the same process: the same way as requests from the network take below HTTP and below
//! authorization, so that defaults, checks, field ownership and admission are the same.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    access::{Attributes, UserInfo},
    clock,
    failure::Failure,
    kind::Kind,
    object::encode,
    request::{
        body::Media,
        query::{ListOptions, WriteOptions},
    },
    server::Server,
    verb::{
        Call, create,
        delete::{self, DeleteOptions, Propagation},
        list, patch, read, update,
    },
};

/// What must be true of an object that is to be deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    pub uid: Option<String>,
    pub resource_version: Option<String>,
}

/// A client inside the process, acting as one user. Nothing that it does is refused for lack of rights.
#[derive(Clone)]
pub struct Client {
    server: Arc<Server>,
    user: Arc<UserInfo>,
    manager: Arc<str>,
}

impl Client {
    /// `user`: who admission and audit see. Its name owns the fields that are written, unless
    /// [`as_manager`](Self::as_manager) says otherwise.
    pub fn new(server: Arc<Server>, user: Arc<UserInfo>) -> Self {
        let manager = user.name.as_str().into();
        Self {
            server,
            user,
            manager,
        }
    }

    /// The same client under another field manager.
    #[must_use]
    pub fn as_manager(mut self, manager: &str) -> Self {
        self.manager = manager.into();
        self
    }

    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    pub(crate) fn call(
        &self,
        kind: &Arc<Kind>,
        verb: &str,
        namespace: Option<&str>,
        name: &str,
        subresource: Option<&str>,
    ) -> Call {
        let namespace = namespace.filter(|namespace| !namespace.is_empty());
        Call {
            user: Arc::clone(&self.user),
            attributes: Attributes {
                verb: verb.to_owned(),
                group: kind.group.to_owned(),
                version: kind.version.to_owned(),
                resource: kind.plural.to_owned(),
                subresource: subresource.unwrap_or_default().to_owned(),
                namespace: namespace.unwrap_or_default().to_owned(),
                name: name.to_owned(),
                ..Attributes::default()
            },
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
            subresource: subresource.map(str::to_owned),
            manager: self.manager.as_ref().to_owned(),
            now: clock::now(),
            restricted: false,
            kind: Arc::clone(kind),
        }
    }

    /// Reads an object. Absent: a failure with code 404.
    pub async fn get(
        &self,
        kind: &Arc<Kind>,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Value, Failure> {
        let call = self.call(kind, "get", namespace, name, None);
        let answer = read::get(&self.server, &call, "").await?;
        Ok(answer.into_value(kind))
    }

    /// Lists the objects of a namespace, or of all; `label_selector` may be empty.
    pub async fn list(
        &self,
        kind: &Arc<Kind>,
        namespace: Option<&str>,
        label_selector: &str,
    ) -> Result<Vec<Value>, Failure> {
        let call = self.call(kind, "list", namespace, "", None);
        let options = ListOptions {
            label_selector: label_selector.to_owned(),
            ..ListOptions::default()
        };
        let page = list::list(&self.server, &call, &options).await?;
        Ok(page
            .objects
            .iter()
            .map(|object| encode::decode(object, kind))
            .collect())
    }

    /// Creates an object; what was stored comes back.
    pub async fn create(
        &self,
        kind: &Arc<Kind>,
        namespace: Option<&str>,
        object: Value,
    ) -> Result<Value, Failure> {
        let call = self.call(kind, "create", namespace, "", None);
        let object = named(object, kind);
        let answer = create::create(&self.server, &call, &WriteOptions::default(), object).await?;
        Ok(answer.into_value(kind))
    }

    /// Replaces an object. With `metadata.resourceVersion` it is conditional; a conflict has code 409.
    pub async fn update(
        &self,
        kind: &Arc<Kind>,
        namespace: Option<&str>,
        object: Value,
    ) -> Result<Value, Failure> {
        self.put(kind, namespace, object, None).await
    }

    /// Replaces the status of an object.
    pub async fn update_status(
        &self,
        kind: &Arc<Kind>,
        namespace: Option<&str>,
        object: Value,
    ) -> Result<Value, Failure> {
        self.put(kind, namespace, object, Some("status")).await
    }

    async fn put(
        &self,
        kind: &Arc<Kind>,
        namespace: Option<&str>,
        object: Value,
        subresource: Option<&str>,
    ) -> Result<Value, Failure> {
        let name = crate::object::meta::name(&object).to_owned();
        let call = self.call(kind, "update", namespace, &name, subresource);
        let object = named(object, kind);
        let answer = update::update(&self.server, &call, &WriteOptions::default(), object).await?;
        Ok(answer.into_value(kind))
    }

    /// Merges a patch into an object, or into a part of it (`status`, `scale`).
    pub async fn patch_merge(
        &self,
        kind: &Arc<Kind>,
        namespace: Option<&str>,
        name: &str,
        subresource: Option<&str>,
        patch: &Value,
        field_manager: &str,
    ) -> Result<Value, Failure> {
        let text = patch.to_string();
        let options = WriteOptions {
            field_manager: field_manager.to_owned(),
            ..WriteOptions::default()
        };
        let call = self.call(kind, "patch", namespace, name, subresource);
        let answer = patch::patch(
            &self.server,
            &call,
            &options,
            Media::MergePatch,
            text.as_bytes(),
        )
        .await?;
        Ok(answer.into_value(kind))
    }

    /// Applies a configuration (server-side apply). `force` takes fields from other managers; without it a conflict has
    /// code 409.
    pub async fn apply(
        &self,
        kind: &Arc<Kind>,
        namespace: Option<&str>,
        config: Value,
        subresource: Option<&str>,
        force: bool,
    ) -> Result<Value, Failure> {
        let name = crate::object::meta::name(&config).to_owned();
        let text = named(config, kind).to_string();
        let options = WriteOptions {
            field_manager: self.manager.as_ref().to_owned(),
            force,
            ..WriteOptions::default()
        };
        let call = self.call(kind, "patch", namespace, &name, subresource);
        let answer = patch::patch(
            &self.server,
            &call,
            &options,
            Media::ApplyYaml,
            text.as_bytes(),
        )
        .await?;
        Ok(answer.into_value(kind))
    }

    /// Deletes an object, or marks it for deletion when finalizers hold it. Dependents are collected in the background.
    pub async fn delete(
        &self,
        kind: &Arc<Kind>,
        namespace: Option<&str>,
        name: &str,
        preconditions: &Preconditions,
    ) -> Result<(), Failure> {
        self.delete_with(kind, namespace, name, preconditions, None)
            .await
    }

    pub(crate) async fn delete_with(
        &self,
        kind: &Arc<Kind>,
        namespace: Option<&str>,
        name: &str,
        preconditions: &Preconditions,
        propagation: Option<Propagation>,
    ) -> Result<(), Failure> {
        let options = DeleteOptions {
            dry_run: false,
            propagation,
            uid: preconditions.uid.clone(),
            resource_version: preconditions.resource_version.clone(),
        };
        let call = self.call(kind, "delete", namespace, name, None);
        delete::delete(&self.server, &call, &options).await?;
        Ok(())
    }
}

/// An object with the version and kind of its kind.
fn named(mut object: Value, kind: &Kind) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".into(), kind.api_version().into());
        fields.insert("kind".into(), kind.kind.into());
    }
    object
}
