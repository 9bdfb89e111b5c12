//! Namespace termination: a namespace that is deleted loses its content, and then goes itself.

use std::{collections::BTreeMap, sync::Arc};

use evenkeel_store::Scope;
use http::StatusCode;
use serde_json::{Value, json};

use super::feed::{Change, Feed};
use crate::{
    clock,
    failure::Failure,
    kind::{Kind, KindScope, Storage},
    local::{Client, Preconditions},
    object::{encode, meta},
    request::query::WriteOptions,
    verb::{
        update::{self, Candidate, Part, Source},
        write,
    },
};

/// The finalizer of a namespace's spec that this controller takes away when nothing is left in it.
const FINALIZER: &str = "kubernetes";

pub(super) async fn run(client: Client) {
    let Some(resource) = client.server().namespaces().cloned() else {
        return;
    };
    let mut feed = Feed::new(client.clone(), |kind| {
        kind.plural == "namespaces" && kind.group.is_empty()
    });
    let mut terminating: Vec<String> = Vec::new();
    loop {
        match feed.next().await {
            Change::Present(object) if write::is_terminating(&object) => {
                let name = object.key.name().to_owned();
                if !terminating.contains(&name) {
                    terminating.push(name);
                }
            }
            Change::Gone(object) => {
                terminating.retain(|name| name != object.key.name());
                continue;
            }
            Change::Present(_) => continue,
            Change::Quiet => {}
        }
        let table = client.server().registry().table();
        let Some(kind) = table.find_resource(&resource).cloned() else {
            continue;
        };
        let mut left = Vec::new();
        for name in std::mem::take(&mut terminating) {
            match terminate(&client, &kind, &name).await {
                Ok(true) => {}
                Ok(false) => left.push(name),
                Err(failure) if failure.code == StatusCode::NOT_FOUND => {}
                Err(failure) => {
                    tracing::warn!(namespace = name, error = failure.message, "termination");
                    left.push(name);
                }
            }
        }
        terminating = left;
    }
}

/// What is left in a namespace.
#[derive(Default)]
struct Remains {
    /// Objects by `plural.group`.
    objects: BTreeMap<String, usize>,
    /// Objects by the finalizer that holds them.
    finalizers: BTreeMap<String, usize>,
}

/// One step of a namespace's end; whether it is done.
async fn terminate(client: &Client, kind: &Arc<Kind>, name: &str) -> Result<bool, Failure> {
    let remains = empty(client, name).await?;
    if remains.objects.is_empty() {
        let call = client.call(kind, "update", None, name, Some("finalize"));
        update::change(
            client.server(),
            &call,
            &WriteOptions::default(),
            Part::Own,
            Source::Patch,
            |old| Ok(Candidate::new(without_finalizer(old))),
        )
        .await?;
        return Ok(true);
    }
    report(client, kind, name, &remains).await?;
    Ok(false)
}

fn without_finalizer(namespace: &Value) -> Value {
    let mut namespace = namespace.clone();
    if let Some(finalizers) = namespace
        .pointer_mut("/spec/finalizers")
        .and_then(Value::as_array_mut)
    {
        finalizers.retain(|finalizer| finalizer != FINALIZER);
    }
    if namespace.pointer("/spec/finalizers") == Some(&json!([]))
        && let Some(spec) = namespace["spec"].as_object_mut()
    {
        spec.remove("finalizers");
    }
    namespace
}

/// Deletes what is in a namespace, and counts what stays all the same.
async fn empty(client: &Client, namespace: &str) -> Result<Remains, Failure> {
    let mut remains = Remains::default();
    let table = client.server().registry().table();
    let mut seen = Vec::new();
    for kind in &table.kinds {
        let resource = kind.resource();
        if kind.scope != KindScope::Namespaced
            || !matches!(kind.storage, Storage::Stored)
            || seen.contains(&resource)
        {
            continue;
        }
        let scope = Scope::namespace(resource.clone(), namespace);
        seen.push(resource);
        for object in client.server().store().list_and_watch(&scope).0.objects {
            if !write::is_terminating(&object) {
                let deleted = client
                    .delete(
                        kind,
                        Some(namespace),
                        object.key.name(),
                        &Preconditions::default(),
                    )
                    .await;
                match deleted {
                    Err(failure) if failure.code != StatusCode::NOT_FOUND => return Err(failure),
                    _ => {}
                }
            }
            if let Some(object) = client.server().store().get(&object.key) {
                let name = if kind.group.is_empty() {
                    format!("{}.", kind.plural)
                } else {
                    format!("{}.{}", kind.plural, kind.group)
                };
                *remains.objects.entry(name).or_default() += 1;
                for finalizer in meta::finalizers(&encode::decode(&object, kind)) {
                    *remains.finalizers.entry(finalizer.to_owned()).or_default() += 1;
                }
            }
        }
    }
    Ok(remains)
}

/// Says in the namespace's status what is left. The conditions are those of the reference server's controller.
async fn report(
    client: &Client,
    kind: &Arc<Kind>,
    name: &str,
    remains: &Remains,
) -> Result<(), Failure> {
    let objects = remains
        .objects
        .iter()
        .map(|(resource, count)| format!("{resource} has {count} resource instances"))
        .collect::<Vec<_>>()
        .join(", ");
    let finalizers = remains
        .finalizers
        .iter()
        .map(|(finalizer, count)| format!("{finalizer} in {count} resource instances"))
        .collect::<Vec<_>>()
        .join(", ");
    let wanted = [
        (
            "NamespaceDeletionDiscoveryFailure",
            false,
            "ResourcesDiscovered",
            "All resources successfully discovered".to_owned(),
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            false,
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed".to_owned(),
        ),
        (
            "NamespaceDeletionContentFailure",
            false,
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization".to_owned(),
        ),
        (
            "NamespaceContentRemaining",
            true,
            "SomeResourcesRemain",
            format!("Some resources are remaining: {objects}"),
        ),
        if finalizers.is_empty() {
            (
                "NamespaceFinalizersRemaining",
                false,
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished".to_owned(),
            )
        } else {
            (
                "NamespaceFinalizersRemaining",
                true,
                "SomeFinalizersRemain",
                format!("Some content in the namespace has finalizers remaining: {finalizers}"),
            )
        },
    ];
    let now = clock::seconds(clock::now());
    let call = client.call(kind, "update", None, name, Some("status"));
    update::change(
        client.server(),
        &call,
        &WriteOptions::default(),
        Part::Status,
        Source::Patch,
        |old| {
            let mut namespace = old.clone();
            let conditions = wanted
                .iter()
                .map(|(type_, status, reason, message)| {
                    condition(old, type_, *status, reason, message, &now)
                })
                .collect::<Vec<_>>();
            if !namespace["status"].is_object() {
                namespace["status"] = json!({});
            }
            namespace["status"]["conditions"] = conditions.into();
            Ok(Candidate::new(namespace))
        },
    )
    .await?;
    Ok(())
}

/// A condition, with the time of the last change of its status.
fn condition(
    namespace: &Value,
    type_: &str,
    status: bool,
    reason: &str,
    message: &str,
    now: &str,
) -> Value {
    let status = if status { "True" } else { "False" };
    let before = namespace
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == type_ && condition["status"] == status)
        .map_or_else(
            || json!(now),
            |condition| condition["lastTransitionTime"].clone(),
        );
    json!({
        "type": type_,
        "status": status,
        "lastTransitionTime": before,
        "reason": reason,
        "message": message,
    })
}
