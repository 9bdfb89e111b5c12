//! Create.

use evenkeel_store::{Change, CommitError, Precondition};
use http::StatusCode;
use serde_json::Value;

use super::{Answer, Call, managed, write};
use crate::{
    clock,
    failure::Failure,
    object::{encode, meta, names, validate},
    request::query::WriteOptions,
    server::Server,
};

/// How many generated names are tried.
const GENERATED: usize = 8;

/// Creates an object from a body that names the right kind.
pub(crate) async fn create(
    server: &Server,
    call: &Call,
    options: &WriteOptions,
    mut object: Value,
) -> Result<Answer, Failure> {
    let mut warnings = write::type_metadata(&mut object, &call.kind, options.field_validation)?;
    write::settle_namespace(call, &mut object)?;
    if write::condition(&object)?.is_some() {
        return Err(Failure::bare_internal(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    warnings.extend(validate::dedup_owners(&mut object));
    let generated =
        meta::name(&object).is_empty() && !meta::text(&object, "generateName").is_empty();
    for attempt in 1.. {
        let mut candidate = object.clone();
        if generated {
            let name = format!("{}{}", meta::text(&object, "generateName"), names::suffix());
            meta::set(&mut candidate, "name", name);
        }
        match insert(server, call, options, candidate, false).await {
            Err(failure)
                if generated && attempt < GENERATED && failure.reason == "AlreadyExists" => {}
            Err(failure) => return Err(failure),
            Ok(mut answer) => {
                answer.warnings.splice(0..0, warnings);
                return Ok(answer);
            }
        }
    }
    unreachable!("the last attempt returns")
}

/// Creates an object that has its name. `tracked`: its managedFields are already right, for it comes out of an apply.
pub(crate) async fn insert(
    server: &Server,
    call: &Call,
    options: &WriteOptions,
    mut object: Value,
    tracked: bool,
) -> Result<Answer, Failure> {
    let kind = &call.kind;
    let name = meta::name(&object).to_owned();
    write::check_namespace(server, call, &name)?;
    kind.strategy.default(&mut object);
    if kind.has_status()
        && let Some(fields) = object.as_object_mut()
    {
        fields.remove("status");
    }
    for field in [
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
    ] {
        meta::remove(&mut object, field);
    }
    // Ownership is of what the client sent and defaults made of it, not of what the server sets from here on.
    if !tracked {
        meta::drop_empty(&mut object);
        managed::track(call, options, None, &mut object);
    }
    meta::set(&mut object, "uid", uuid::Uuid::new_v4().to_string());
    meta::set(&mut object, "creationTimestamp", clock::seconds(call.now));
    if kind.generation {
        meta::set(&mut object, "generation", 1);
    }
    kind.strategy
        .prepare_create(&call.context(options.dry_run), &mut object)?;
    write::admit(server, call, "create", None, Some(&mut object))?;
    write::check(call, &object, None)?;
    meta::drop_empty(&mut object);
    let key = call.key(&name);
    if options.dry_run {
        if let Some(current) = server.store().get(&key) {
            return Err(exists(call, &name, write::is_terminating(&current)));
        }
        return Ok(Answer {
            code: StatusCode::CREATED,
            ..Answer::value(object)
        });
    }
    let change = Change::Put(encode::encode(&object, kind));
    match write::commit(server, key, Precondition::Absent, change).await {
        Ok(object) => Ok(Answer {
            code: StatusCode::CREATED,
            ..Answer::stored(object)
        }),
        Err(CommitError::Conflict { current, .. }) => Err(exists(
            call,
            &name,
            current.is_some_and(|current| write::is_terminating(&current)),
        )),
        Err(error) => Err(write::not_committed(error)),
    }
}

/// Whether the user may create what a request would change but is not there.
pub(crate) fn may_create(server: &Server, call: &Call) -> Result<(), Failure> {
    if !call.restricted {
        return Ok(());
    }
    let mut attributes = call.attributes.clone();
    "create".clone_into(&mut attributes.verb);
    server.authorize(&call.user, &attributes)
}

fn exists(call: &Call, name: &str, terminating: bool) -> Failure {
    let mut failure = Failure::already_exists(call.kind.group, call.kind.plural, name);
    if terminating {
        failure.message.insert_str(0, "object is being deleted: ");
    }
    failure
}
