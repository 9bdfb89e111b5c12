//! Delete, and delete of a collection.

use std::sync::Arc;

use evenkeel_shared::field::FieldError;
use evenkeel_store::{Change, CommitError, Object, Precondition};
use http::StatusCode;
use serde_json::{Value, json};

use super::{
    Answer, Call,
    list::{self, Page},
    update, write,
};
use crate::{
    clock,
    failure::Failure,
    object::{encode, meta},
    protobuf,
    request::{
        body::{self, Media},
        query::{self, ListOptions, Query},
        syntax,
    },
    server::Server,
};

/// The finalizer that makes an owner wait for its dependents.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer that makes the dependents of an owner stay.
pub(crate) const ORPHAN: &str = "orphan";

/// What becomes of dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// The options of a delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeleteOptions {
    pub dry_run: bool,
    pub propagation: Option<Propagation>,
    /// The object must have this uid.
    pub uid: Option<String>,
    /// The object must stand at this resourceVersion.
    pub resource_version: Option<String>,
}

impl DeleteOptions {
    /// Reads the options of the body, or of the query when there is no body.
    pub fn parse(query: &Query, media: Media, text: &[u8]) -> Result<Self, Failure> {
        if text.is_empty() {
            return Self::from_query(query);
        }
        let value = match media {
            Media::Json => body::json(text),
            Media::Yaml => body::yaml(text),
            Media::Protobuf => protobuf::delete_options(text),
            _ => return Err(body::unsupported_media()),
        }
        .map_err(Failure::bad_request)?;
        let mut options = Self::from_value(&value)?;
        options.dry_run |= Self::from_query(query)?.dry_run;
        Ok(options)
    }

    fn from_query(query: &Query) -> Result<Self, Failure> {
        query.number("gracePeriodSeconds")?;
        let orphan = query
            .get("orphanDependents")
            .map(|_| query.flag("orphanDependents"));
        let dry_run = query.all("dryRun").collect::<Vec<_>>();
        Self::checked(
            &dry_run,
            orphan,
            query
                .get("propagationPolicy")
                .filter(|policy| !policy.is_empty()),
        )
    }

    pub fn from_value(value: &Value) -> Result<Self, Failure> {
        let kind = value["kind"].as_str().unwrap_or_default();
        if !value.is_object() || !matches!(kind, "" | "DeleteOptions") {
            let version = value["apiVersion"].as_str().unwrap_or_default();
            return Err(Failure::bad_request(format!(
                "{kind} in version {} cannot be handled as a DeleteOptions: converting ({version}.{kind}) to (v1.DeleteOptions): unknown conversion",
                syntax::quote(version)
            )));
        }
        let dry_run = value["dryRun"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>();
        let mut options = Self::checked(
            &dry_run,
            value["orphanDependents"].as_bool(),
            value["propagationPolicy"].as_str(),
        )?;
        let precondition = |field: &str| value["preconditions"][field].as_str().map(str::to_owned);
        options.uid = precondition("uid");
        options.resource_version = precondition("resourceVersion");
        Ok(options)
    }

    fn checked(
        dry_run: &[&str],
        orphan: Option<bool>,
        policy: Option<&str>,
    ) -> Result<Self, Failure> {
        let mut errors = Vec::new();
        if let (Some(_), Some(policy)) = (orphan, policy) {
            errors.push(FieldError::invalid(
                "propagationPolicy",
                &json!(policy),
                "orphanDependents and deletionPropagation cannot be both set",
            ));
        }
        let propagation = match policy {
            None => orphan.map(|orphan| {
                if orphan {
                    Propagation::Orphan
                } else {
                    Propagation::Background
                }
            }),
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some("Orphan") => Some(Propagation::Orphan),
            Some(other) => {
                errors.push(FieldError::not_supported(
                    "propagationPolicy",
                    &json!(other),
                    &["Foreground", "Background", "Orphan", "nil"],
                ));
                None
            }
        };
        let dry_run = query::dry_run(dry_run, &mut errors);
        if errors.is_empty() {
            Ok(Self {
                dry_run,
                propagation,
                ..Self::default()
            })
        } else {
            Err(Failure::options("DeleteOptions", &errors))
        }
    }
}

/// Deletes an object, or marks it when something holds it.
pub(crate) async fn delete(
    server: &Server,
    call: &Call,
    options: &DeleteOptions,
) -> Result<Answer, Failure> {
    let key = call.key(&call.name);
    for _ in 0..write::ATTEMPTS {
        let Some(current) = server.store().get(&key) else {
            return Err(call.not_found(&call.name));
        };
        if let Some(answer) = attempt(server, call, options, &current).await? {
            return Ok(answer);
        }
    }
    Err(call.modified(&call.name))
}

/// One attempt; `None` when somebody else was first.
async fn attempt(
    server: &Server,
    call: &Call,
    options: &DeleteOptions,
    current: &Arc<Object>,
) -> Result<Option<Answer>, Failure> {
    let kind = &call.kind;
    let old = encode::decode(current, kind);
    preconditions(call, options, &old)?;
    kind.strategy
        .validate_delete(&call.context(options.dry_run), &old)?;
    write::admit(server, call, "delete", Some(&old), None)?;
    if meta::is_terminating(&old) {
        return Ok(Some(Answer::stored(Arc::clone(current))));
    }
    let unsaid = kind
        .strategy
        .orphans_by_default()
        .filter(|_| options.propagation.is_none());
    let propagation = options.propagation.or(unsaid.map(|_| Propagation::Orphan));
    let warnings = unsaid.map(str::to_owned).into_iter().collect();
    let mut new = old.clone();
    meta::set_finalizers(&mut new, finalizers(&old, propagation));
    let held = !meta::finalizers(&new).is_empty();
    if held || kind.strategy.holds_deletion(&old) {
        meta::set(&mut new, "deletionTimestamp", clock::seconds(call.now));
        if held {
            meta::set(&mut new, "deletionGracePeriodSeconds", 0);
        }
        if kind.generation {
            meta::set(&mut new, "generation", update::generation(&old) + 1);
        }
        kind.strategy.begin_delete(&mut new);
        if options.dry_run {
            return Ok(Some(Answer {
                warnings,
                ..Answer::value(new)
            }));
        }
        let change = Change::Put(encode::encode(&new, kind));
        let precondition = Precondition::At(current.revision);
        return match write::commit(server, current.key.clone(), precondition, change).await {
            Ok(object) => Ok(Some(Answer {
                warnings,
                ..Answer::stored(object)
            })),
            Err(CommitError::Conflict { .. }) => Ok(None),
            Err(error) => Err(write::not_committed(error)),
        };
    }
    if !options.dry_run {
        let precondition = Precondition::At(current.revision);
        match write::commit(server, current.key.clone(), precondition, Change::Delete).await {
            Ok(_) => {}
            Err(CommitError::Conflict { .. }) => return Ok(None),
            Err(error) => return Err(write::not_committed(error)),
        }
    }
    if kind.delete_answers_object {
        return Ok(Some(Answer::value(old)));
    }
    Ok(Some(Answer::value(deleted(call, &old))))
}

fn preconditions(call: &Call, options: &DeleteOptions, old: &Value) -> Result<(), Failure> {
    let kind = &call.kind;
    let mut why = None;
    if let Some(uid) = &options.uid
        && uid != meta::uid(old)
    {
        why = Some(format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            meta::uid(old)
        ));
    } else if let Some(version) = &options.resource_version
        && version != meta::resource_version(old)
    {
        why = Some(format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). The object might have been modified",
            meta::resource_version(old)
        ));
    }
    match why {
        // The reference server names the Kind here, not the plural.
        Some(why) => Err(Failure::conflict(kind.group, kind.kind, &call.name, &why)),
        None => Ok(()),
    }
}

/// The finalizers of an object that is to be deleted.
fn finalizers(old: &Value, propagation: Option<Propagation>) -> Vec<Value> {
    let mut finalizers = meta::finalizers(old);
    match propagation {
        None => {}
        Some(propagation) => {
            let wanted = match propagation {
                Propagation::Background => None,
                Propagation::Foreground => Some(FOREGROUND),
                Propagation::Orphan => Some(ORPHAN),
            };
            finalizers.retain(|finalizer| {
                Some(*finalizer) == wanted || !matches!(*finalizer, FOREGROUND | ORPHAN)
            });
            if let Some(wanted) = wanted.filter(|wanted| !finalizers.contains(wanted)) {
                finalizers.push(wanted);
            }
        }
    }
    finalizers.into_iter().map(Value::from).collect()
}

/// The Status of a deletion that is done.
fn deleted(call: &Call, old: &Value) -> Value {
    let mut details = json!({
        "name": call.name,
        "kind": call.kind.plural,
        "uid": meta::uid(old),
    });
    if !call.kind.group.is_empty() {
        details["group"] = call.kind.group.into();
    }
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    })
}

/// Deletes what a list selects, one by one, and gives the list as it was before.
pub(crate) async fn collection(
    server: &Server,
    call: &Call,
    selection: &ListOptions,
    options: &DeleteOptions,
) -> Result<Page, Failure> {
    let page = list::list(server, call, selection).await?;
    for object in &page.objects {
        let mut one = call.clone();
        object.key.name().clone_into(&mut one.name);
        one.namespace = object.key.namespace().map(str::to_owned);
        match delete(server, &one, options).await {
            Ok(_) => {}
            Err(failure) if failure.code == StatusCode::NOT_FOUND => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(page)
}
