//! Patch: dispatch by media type.

use http::StatusCode;
use serde_json::{Value, json};

use super::{
    Answer, Call, create, managed, scale,
    update::{self, Candidate, Part, Source},
    write,
};
use crate::{
    failure::Failure,
    kind::SubresourceKind,
    object::meta,
    patch,
    request::{
        body::{self, Media},
        query::WriteOptions,
    },
    schema::TypeRef,
    server::Server,
};

/// Refuses a media type that is no patch of this kind.
pub(crate) fn supports(call: &Call, media: Media) -> Result<(), Failure> {
    match media {
        Media::JsonPatch | Media::MergePatch | Media::ApplyYaml => Ok(()),
        Media::StrategicMergePatch if call.kind.builtin => Ok(()),
        _ if call.kind.builtin => Err(Failure::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            "415: Unsupported Media Type",
        )
        .with_details(json!({}))),
        _ => Err(Failure::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        )),
    }
}

/// A patch that was read once and can be applied to any state.
enum Reading<'a> {
    Json(&'a [u8]),
    Merge(Value),
    Strategic(Value),
}

impl<'a> Reading<'a> {
    fn parse(media: Media, text: &'a [u8]) -> Result<Self, Failure> {
        Ok(match media {
            Media::JsonPatch => Self::Json(text),
            Media::StrategicMergePatch => Self::Strategic(patch::strategic::parse(text)?),
            _ => Self::Merge(patch::merge::parse(text)?),
        })
    }

    fn apply(&self, type_: &TypeRef, old: &Value) -> Result<Value, Failure> {
        Ok(match self {
            Self::Json(text) => patch::json::apply(old, text)?,
            Self::Merge(patch) => patch::merge::apply(old, patch),
            Self::Strategic(patch) => patch::strategic::apply(type_, old, patch)?,
        })
    }
}

/// Patches an object, its status, or its scale.
pub(crate) async fn patch(
    server: &Server,
    call: &Call,
    options: &WriteOptions,
    media: Media,
    text: &[u8],
) -> Result<Answer, Failure> {
    if media == Media::ApplyYaml {
        return apply(server, call, options, text).await;
    }
    let reading = Reading::parse(media, text)?;
    let type_ = call.kind.merge_schema();
    let part = match call.subresource.as_deref() {
        None => Part::Main,
        Some(name) => match call.kind.subresource(name).map(|found| &found.kind) {
            Some(SubresourceKind::Scale { .. }) => {
                return scale::change(server, call, options, |shown| {
                    reading.apply(&TypeRef::untyped(), shown)
                })
                .await;
            }
            Some(SubresourceKind::Part(_)) => Part::Own,
            _ => Part::Status,
        },
    };
    update::change(server, call, options, part, Source::Patch, |old| {
        let mut object = reading.apply(&type_, old)?;
        let warnings = settle(call, options, &mut object)?;
        if part == Part::Own {
            object = update::own_part(call, options, &object, old)?;
        }
        Ok(Candidate {
            object,
            tracked: false,
            warnings,
        })
    })
    .await
}

/// Checks that the outcome of a patch still is the object that it was.
fn settle(call: &Call, options: &WriteOptions, object: &mut Value) -> Result<Vec<String>, Failure> {
    let kind = &call.kind;
    let text = |field: &str| {
        object
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    if text("apiVersion") != kind.api_version() {
        return Err(Failure::bad_request(format!(
            "the API version in the data ({}) does not match the expected API version ({})",
            text("apiVersion"),
            kind.api_version()
        )));
    }
    if text("kind") != kind.kind {
        return Err(body::wrong_kind(object, text("kind"), kind));
    }
    let warnings = write::type_metadata(object, kind, options.field_validation)?;
    write::settle_name(call, object)?;
    write::settle_namespace(call, object)?;
    kind.strategy.default(object);
    Ok(warnings)
}
/// Server-side apply.
async fn apply(
    server: &Server,
    call: &Call,
    options: &WriteOptions,
    text: &[u8],
) -> Result<Answer, Failure> {
    let part = match call.subresource.as_deref() {
        None => Part::Main,
        Some(name) => match call.kind.subresource(name).map(|found| &found.kind) {
            Some(SubresourceKind::Status) => Part::Status,
            Some(SubresourceKind::Scale { .. }) => {
                return scale::apply(server, call, options, text).await;
            }
            _ => return Err(Failure::unknown_path()),
        },
    };
    let config = configuration(call, text)?;
    for _ in 0..write::ATTEMPTS {
        if part == Part::Main && server.store().get(&call.key(&call.name)).is_none() {
            create::may_create(server, call)?;
            let uid = meta::uid(&config).to_owned();
            if !uid.is_empty() {
                return Err(Failure::conflict(
                    call.kind.group,
                    call.kind.plural,
                    &call.name,
                    &format!(
                        "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                    ),
                ));
            }
            let mut object = managed::applied(call, options, None, &config)?;
            write::settle_namespace(call, &mut object)?;
            match create::insert(server, call, options, object, true).await {
                Err(failure) if failure.reason == "AlreadyExists" => continue,
                other => return other,
            }
        }
        return update::change(server, call, options, part, Source::Patch, |old| {
            let mut object = managed::applied(call, options, Some(old), &config)?;
            let warnings = settle(call, options, &mut object)?;
            Ok(Candidate {
                object,
                tracked: true,
                warnings,
            })
        })
        .await;
    }
    Err(call.modified(&call.name))
}

/// The applied configuration: an object of exactly this kind, in this version, of this name.
fn configuration(call: &Call, text: &[u8]) -> Result<Value, Failure> {
    let kind = &call.kind;
    let config = body::yaml(text)
        .map_err(|why| Failure::bad_request(format!("error decoding YAML: {why}")))?;
    if !config.is_object() {
        return Err(Failure::bad_request(
            "error decoding YAML: the configuration is no object",
        ));
    }
    let text = |field: &str| {
        config
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    if text("apiVersion") != kind.api_version() || text("kind") != kind.kind {
        let split = |version: &str| match version.split_once('/') {
            Some((group, version)) => format!("{group}/{version}"),
            None => format!("/{version}"),
        };
        return Err(Failure::bad_request(format!(
            "invalid object type: {}, Kind={}",
            split(text("apiVersion")),
            text("kind")
        )));
    }
    if meta::metadata(&config)
        .and_then(|metadata| metadata.get("managedFields"))
        .is_some_and(|fields| !fields.is_null())
    {
        return Err(Failure::bad_request("metadata.managedFields must be nil"));
    }
    write::settle_name(call, &config)?;
    if let Some(namespace) = call.namespace.as_deref().filter(|_| call.is_namespaced()) {
        write::check_body_namespace(&config, namespace)?;
    }
    Ok(config)
}
