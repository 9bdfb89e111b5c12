//! Update, and the way that every change to an existing object goes.

use evenkeel_shared::field::FieldError;
use serde_json::{Value, json};

use super::{
    Answer, Call, managed,
    write::{self, Attempt},
};
use crate::{
    failure::Failure,
    kind::SubresourceKind,
    object::{encode, meta, validate},
    request::query::WriteOptions,
    server::Server,
};

/// What a write may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All but the status, where that is a subresource.
    Main,
    /// The status alone.
    Status,
    /// What a part of the kind's own made of the object; it is stored as it is.
    Own,
    /// Replicas, set through the scale subresource.
    Scale,
}

/// How the candidate for the next state came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A whole object from the client.
    Put,
    /// A patch over the stored one.
    Patch,
}

/// A candidate for the next state of an object.
pub(crate) struct Candidate {
    pub object: Value,
    /// Its managedFields are already right: it comes out of a server-side apply.
    pub tracked: bool,
    pub warnings: Vec<String>,
}

impl Candidate {
    pub fn new(object: Value) -> Self {
        Self {
            object,
            tracked: false,
            warnings: Vec::new(),
        }
    }
}

/// Replaces an object, or its status, with a body that names the right kind.
pub(crate) async fn update(
    server: &Server,
    call: &Call,
    options: &WriteOptions,
    mut object: Value,
) -> Result<Answer, Failure> {
    let warnings = write::type_metadata(&mut object, &call.kind, options.field_validation)?;
    write::settle_name(call, &object)?;
    write::settle_namespace(call, &mut object)?;
    call.kind.strategy.default(&mut object);
    let part = match call.subresource.as_deref() {
        None => Part::Main,
        Some(name) => match call.kind.subresource(name).map(|found| &found.kind) {
            Some(SubresourceKind::Part(_)) => Part::Own,
            _ => Part::Status,
        },
    };
    if part == Part::Main
        && call.kind.create_on_update
        && server.store().get(&call.key(&call.name)).is_none()
        && write::condition(&object)?.is_none()
    {
        super::create::may_create(server, call)?;
        meta::remove(&mut object, "uid");
        return super::create::create(server, call, options, object).await;
    }
    let mut answer = change(server, call, options, part, Source::Put, |old| {
        let object = match part {
            Part::Own => own_part(call, options, &object, old)?,
            _ => object.clone(),
        };
        Ok(Candidate::new(object))
    })
    .await?;
    answer.warnings.splice(0..0, warnings);
    Ok(answer)
}

/// Lets a part of the kind's own make the next state of an object from a request's body.
pub(crate) fn own_part(
    call: &Call,
    options: &WriteOptions,
    body: &Value,
    old: &Value,
) -> Result<Value, Failure> {
    let part = call
        .subresource
        .as_deref()
        .and_then(|name| call.kind.subresource(name));
    let Some(SubresourceKind::Part(apply)) = part.map(|part| &part.kind) else {
        return Err(Failure::unknown_path());
    };
    let mut object = apply(&call.context(options.dry_run), body, old)?;
    meta::set(
        &mut object,
        "resourceVersion",
        meta::resource_version(body).to_owned(),
    );
    Ok(object)
}

/// Changes an object that exists: `next` makes a candidate from the stored state, again when somebody else was first.
pub(crate) async fn change(
    server: &Server,
    call: &Call,
    options: &WriteOptions,
    part: Part,
    source: Source,
    mut next: impl FnMut(&Value) -> Result<Candidate, Failure>,
) -> Result<Answer, Failure> {
    let key = call.key(&call.name);
    for _ in 0..write::ATTEMPTS {
        let Some(current) = server.store().get(&key) else {
            return Err(call.not_found(&call.name));
        };
        let old = encode::decode(&current, &call.kind);
        let mut candidate = next(&old)?;
        precondition(
            call,
            part,
            source,
            &candidate.object,
            &old,
            current.revision,
        )?;
        let warning = prepare(server, call, options, part, &mut candidate, &old)?;
        if let Attempt::Done(mut answer) =
            write::store(server, call, options, &current, &old, candidate.object).await?
        {
            answer.warnings = candidate.warnings;
            answer.warnings.extend(warning);
            return Ok(answer);
        }
    }
    Err(call.modified(&call.name))
}

/// Whether the candidate was made against the state that is stored.
fn precondition(
    call: &Call,
    part: Part,
    source: Source,
    new: &Value,
    old: &Value,
    revision: evenkeel_store::Revision,
) -> Result<(), Failure> {
    let kind = &call.kind;
    match write::condition(new)? {
        Some(condition) if condition != revision => return Err(call.modified(&call.name)),
        None if !kind.unconditional_update && !matches!(part, Part::Scale | Part::Own) => {
            return Err(Failure::invalid(
                kind.group,
                kind.plural,
                &call.name,
                &[FieldError::invalid(
                    "metadata.resourceVersion",
                    &json!(0),
                    "must be specified for an update",
                )],
            ));
        }
        _ => {}
    }
    let (uid, stored) = (meta::uid(new), meta::uid(old));
    if source == Source::Put && !uid.is_empty() && uid != stored {
        let group = if kind.builtin || kind.group.is_empty() {
            String::new()
        } else {
            format!("{}/", kind.group)
        };
        let path = call.key(&call.name).path;
        return Err(Failure::conflict(
            kind.group,
            kind.plural,
            &call.name,
            &format!(
                "StorageError: invalid object, Code: 4, Key: /registry/{group}{}/{path}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {stored}",
                kind.plural
            ),
        ));
    }
    Ok(())
}

/// Makes the candidate what is stored: only what may change differs from the old state, and all checks have passed.
fn prepare(
    server: &Server,
    call: &Call,
    options: &WriteOptions,
    part: Part,
    candidate: &mut Candidate,
    old: &Value,
) -> Result<Option<String>, Failure> {
    let kind = &call.kind;
    let new = &mut candidate.object;
    keep_metadata(new, old);
    let warning = validate::dedup_owners(new);
    // Ownership is of what the client sent and defaults made of it, not of what the kind's rules make of that.
    match part {
        Part::Main if kind.has_status() => keep_field(new, old, "status"),
        Part::Status => status_alone(new, old, kind.builtin),
        Part::Main | Part::Own | Part::Scale => {}
    }
    meta::drop_empty(new);
    if !candidate.tracked {
        managed::track(call, options, Some(old), new);
    }
    if part == Part::Main {
        kind.strategy
            .prepare_update(&call.context(options.dry_run), new, old)?;
    }
    write::admit(server, call, "update", Some(old), Some(new))?;
    write::check(call, new, Some(old))?;
    if kind.generation && part != Part::Status && kind.strategy.bumps_generation(new, old) {
        let generation = generation(old) + 1;
        meta::set(new, "generation", generation);
    }
    meta::drop_empty(new);
    Ok(warning)
}

pub(crate) fn generation(object: &Value) -> i64 {
    meta::metadata(object)
        .and_then(|metadata| metadata.get("generation"))
        .and_then(Value::as_i64)
        .unwrap_or_default()
}

/// What the server keeps of the metadata whatever the client says.
fn keep_metadata(new: &mut Value, old: &Value) {
    for field in ["creationTimestamp", "generation", "resourceVersion"] {
        meta::copy(new, old, field);
    }
    if meta::uid(new).is_empty() {
        meta::copy(new, old, "uid");
    }
    if meta::is_terminating(old) {
        meta::copy(new, old, "deletionTimestamp");
        meta::copy(new, old, "deletionGracePeriodSeconds");
    }
}

fn keep_field(new: &mut Value, old: &Value, field: &str) {
    let Some(fields) = new.as_object_mut() else {
        return;
    };
    match old.get(field) {
        Some(value) => fields.insert(field.to_owned(), value.clone()),
        None => fields.remove(field),
    };
}

/// Takes the status of the candidate and all else from the old state. Built-in kinds let annotations pass too.
fn status_alone(new: &mut Value, old: &Value, builtin: bool) {
    let status = new
        .as_object_mut()
        .and_then(|fields| fields.remove("status"));
    let annotations = meta::metadata(new)
        .and_then(|metadata| metadata.get("annotations"))
        .cloned();
    let uid = meta::uid(new).to_owned();
    let before = std::mem::replace(new, old.clone());
    meta::copy(new, &before, "managedFields");
    if !uid.is_empty() {
        meta::set(new, "uid", uid);
    }
    if builtin {
        match annotations {
            Some(annotations) => meta::set(new, "annotations", annotations),
            None => meta::remove(new, "annotations"),
        }
    }
    let Some(fields) = new.as_object_mut() else {
        return;
    };
    match status.filter(|status| !status.is_null()) {
        Some(status) => fields.insert("status".to_owned(), status),
        None => fields.remove("status"),
    };
}
