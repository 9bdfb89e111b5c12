//! What writes share: checks of the whole object, admission, and the commit.

use std::sync::Arc;

use evenkeel_store::{Change, CommitError, Key, Object, Precondition, Revision, Write};
use serde_json::{Map, Value, json};

use super::{Answer, Call, Shown, read};
use crate::{
    failure::Failure,
    kind::Kind,
    object::{encode, meta, typed, validate},
    request::query::{FieldValidation, WriteOptions},
    server::Server,
};

/// How often a write that is not conditional is tried again when others come in between.
pub(crate) const ATTEMPTS: usize = 16;

/// Checks the types of the metadata and drops what is unknown there; the answer's warnings come back.
pub(crate) fn type_metadata(
    object: &mut Value,
    kind: &Kind,
    validation: FieldValidation,
) -> Result<Vec<String>, Failure> {
    let cannot = |why: &str| {
        Failure::bad_request(format!(
            "{} in version \"{}\" cannot be handled as a {}: {why}",
            kind.kind, kind.version, kind.kind
        ))
    };
    let unknown = typed::metadata(object, kind.builtin).map_err(|why| cannot(&why))?;
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(unknown
            .into_iter()
            .map(|field| format!("unknown field \"{field}\""))
            .collect()),
        FieldValidation::Strict if unknown.is_empty() => Ok(Vec::new()),
        FieldValidation::Strict => {
            let list = unknown
                .into_iter()
                .map(|field| format!("unknown field \"{field}\""))
                .collect::<Vec<_>>();
            Err(cannot(&format!(
                "strict decoding error: {}",
                list.join(", ")
            )))
        }
    }
}

/// The namespace of a body: that of the URL, which it may leave out.
pub(crate) fn settle_namespace(call: &Call, object: &mut Value) -> Result<(), Failure> {
    let Some(namespace) = call.namespace.as_deref().filter(|_| call.is_namespaced()) else {
        meta::remove(object, "namespace");
        return Ok(());
    };
    check_body_namespace(object, namespace)?;
    meta::set(object, "namespace", namespace);
    Ok(())
}

/// A body may not name another namespace than its URL.
pub(crate) fn check_body_namespace(object: &Value, namespace: &str) -> Result<(), Failure> {
    let found = meta::namespace(object);
    if !found.is_empty() && found != namespace {
        return Err(Failure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

/// The name of a body, which must be that of the URL.
pub(crate) fn settle_name(call: &Call, object: &Value) -> Result<(), Failure> {
    let found = meta::name(object);
    if found.is_empty() {
        return Err(Failure::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            call.name
        )));
    }
    if found != call.name {
        return Err(Failure::bad_request(format!(
            "the name of the object ({found}) does not match the name on the URL ({})",
            call.name
        )));
    }
    Ok(())
}

/// Whether something may be created in a namespace: it must exist and not be going.
pub(crate) fn check_namespace(server: &Server, call: &Call, name: &str) -> Result<(), Failure> {
    let (Some(namespaces), Some(namespace)) = (server.namespaces(), call.namespace.as_deref())
    else {
        return Ok(());
    };
    if !call.is_namespaced() {
        return Ok(());
    }
    let key = Key::new(namespaces.clone(), None, namespace);
    let Some(object) = server.store().get(&key) else {
        return Err(Failure::not_found(
            namespaces.group(),
            namespaces.plural(),
            namespace,
        ));
    };
    if !is_terminating(&object) {
        return Ok(());
    }
    let mut failure = Failure::forbidden(
        call.kind.group,
        call.kind.plural,
        name,
        &format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        ),
    );
    failure.details["causes"] = json!([{
        "reason": "NamespaceTerminating",
        "message": format!("namespace {namespace} is being terminated"),
        "field": "metadata.namespace",
    }]);
    Err(failure)
}

/// Whether an encoded object has a deletionTimestamp.
pub(crate) fn is_terminating(object: &Object) -> bool {
    #[derive(serde::Deserialize)]
    struct Metadata<'a> {
        #[serde(borrow, default, rename = "deletionTimestamp")]
        deletion: Option<&'a str>,
    }
    #[derive(serde::Deserialize)]
    struct Seen<'a> {
        #[serde(borrow)]
        metadata: Metadata<'a>,
    }
    // The search is cheap and nearly always settles it.
    const FIELD: &[u8] = b"\"deletionTimestamp\"";
    object
        .json
        .windows(FIELD.len())
        .any(|window| window == FIELD)
        && serde_json::from_slice::<Seen<'_>>(&object.json)
            .is_ok_and(|seen| seen.metadata.deletion.is_some())
}

/// Validates a whole object, and its change when there is an older state.
pub(crate) fn check(call: &Call, new: &Value, old: Option<&Value>) -> Result<(), Failure> {
    let kind = &call.kind;
    let mut errors = validate::metadata(new, kind);
    if let Some(old) = old {
        errors.extend(validate::metadata_update(new, old));
    }
    errors.extend(kind.strategy.validate(new));
    if let Some(old) = old {
        errors.extend(kind.strategy.validate_update(new, old));
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(Failure::invalid(
        kind.group,
        kind.kind,
        meta::name(new),
        &errors,
    ))
}

/// Runs the admission chain. `new`: `None` for a deletion.
pub(crate) fn admit(
    server: &Server,
    call: &Call,
    verb: &str,
    old: Option<&Value>,
    mut new: Option<&mut Value>,
) -> Result<(), Failure> {
    if server.admissions().is_empty() {
        return Ok(());
    }
    let mut attributes = call.attributes.clone();
    verb.clone_into(&mut attributes.verb);
    if let Some(new) = new.as_deref() {
        meta::name(new).clone_into(&mut attributes.name);
    }
    for admission in server.admissions() {
        admission.admit(&call.user, &attributes, old, new.as_deref_mut())?;
    }
    Ok(())
}

/// The resourceVersion that a write was made against: `None` for an unconditional one.
pub(crate) fn condition(object: &Value) -> Result<Option<Revision>, Failure> {
    match meta::resource_version(object) {
        "" | "0" => Ok(None),
        text => text
            .parse()
            .map(|revision| Some(Revision(revision)))
            .map_err(|_| Failure::bare_internal(read::unparsable(text))),
    }
}

/// Why a commit did not happen, other than that somebody else was first.
pub(crate) fn not_committed(error: CommitError) -> Failure {
    match error {
        CommitError::Busy => Failure::busy("too many writes are waiting, please try again later"),
        CommitError::Unavailable(why) => {
            Failure::unavailable(format!("the store is not available: {why}"))
        }
        CommitError::Conflict { key, .. } => Failure::conflict(
            key.resource.group(),
            key.resource.plural(),
            key.name(),
            "the object has been modified; please apply your changes to the latest version and try again",
        ),
    }
}

/// Commits one change.
pub(crate) async fn commit(
    server: &Server,
    key: Key,
    precondition: Precondition,
    change: Change,
) -> Result<Arc<Object>, CommitError> {
    let write = Write {
        key,
        precondition,
        change,
    };
    let mut objects = server.store().commit(vec![write]).await?;
    objects
        .pop()
        .ok_or_else(|| CommitError::Unavailable("the commit gave no object".into()))
}

/// What became of one attempt to change an object.
pub(crate) enum Attempt {
    Done(Answer),
    /// Somebody else changed it in between.
    Again,
}

/// Whether two states differ in nothing but the times of their managedFields.
fn is_same(new: &Value, old: &Value) -> bool {
    let parts = |object| match (Value::as_object(object), meta::metadata(object)) {
        (Some(fields), Some(metadata)) => Some((fields, metadata)),
        _ => None,
    };
    let (Some((new_fields, new_metadata)), Some((old_fields, old_metadata))) =
        (parts(new), parts(old))
    else {
        return new == old;
    };
    let (new_entries, old_entries) = (
        meta::list(new, "managedFields"),
        meta::list(old, "managedFields"),
    );
    same_but(new_fields, old_fields, "metadata")
        && same_but(new_metadata, old_metadata, "managedFields")
        && new_entries.len() == old_entries.len()
        && new_entries.iter().zip(old_entries).all(|(new, old)| {
            match (new.as_object(), old.as_object()) {
                (Some(new), Some(old)) => same_but(new, old, "time"),
                _ => new == old,
            }
        })
}

/// Whether two maps differ in at most the value of one field.
fn same_but(new: &Map<String, Value>, old: &Map<String, Value>, but: &str) -> bool {
    new.len() == old.len()
        && new.iter().all(|(field, value)| match old.get(field) {
            Some(before) => field == but || value == before,
            None => false,
        })
}

/// Stores the next state of an object, or deletes it when that is the state in which nothing holds it any more.
pub(crate) async fn store(
    server: &Server,
    call: &Call,
    options: &WriteOptions,
    current: &Arc<Object>,
    old: &Value,
    new: Value,
) -> Result<Attempt, Failure> {
    let kind = &call.kind;
    let gone = meta::is_terminating(&new)
        && meta::finalizers(&new).is_empty()
        && !kind.strategy.holds_deletion(&new);
    if options.dry_run {
        return Ok(Attempt::Done(Answer::value(new)));
    }
    let precondition = Precondition::At(current.revision);
    if gone {
        return match commit(server, current.key.clone(), precondition, Change::Delete).await {
            Ok(_) => Ok(Attempt::Done(Answer::value(new))),
            Err(CommitError::Conflict { .. }) => Ok(Attempt::Again),
            Err(error) => Err(not_committed(error)),
        };
    }
    if is_same(&new, old) {
        return Ok(Attempt::Done(Answer::stored(Arc::clone(current))));
    }
    let volatile = kind.strategy.is_volatile(&new, old);
    let body = encode::encode(&new, kind);
    let outcome = if volatile {
        server.store().renew_from(current, body)
    } else {
        commit(server, current.key.clone(), precondition, Change::Put(body)).await
    };
    match outcome {
        Ok(object) => Ok(Attempt::Done(Answer {
            shown: Shown::Stored(object),
            ..Answer::value(Value::Null)
        })),
        Err(CommitError::Conflict { .. }) => Ok(Attempt::Again),
        Err(error) => Err(not_committed(error)),
    }
}
