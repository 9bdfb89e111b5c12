//! Patch: dispatch by media type.

use http::StatusCode;
use serde_json::{Value, json};

use super::{
    Answer, Call, scale,
    update::{self, Candidate, Part, Source},
    write,
};
use crate::{
    failure::Failure,
    kind::SubresourceKind,
    request::{
        body::{self, Media},
        query::WriteOptions,
    },
    server::Server,
};

/// Refuses a media type that is no patch of this kind.
pub(crate) fn supports(call: &Call, media: Media) -> Result<(), Failure> {
    match media {
        Media::JsonPatch | Media::MergePatch => Ok(()),
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
enum Reading {
    Json(json_patch::Patch),
    Merge(Value),
}

impl Reading {
    fn parse(media: Media, text: &[u8]) -> Result<Self, Failure> {
        match media {
            Media::JsonPatch => {
                let decoding =
                    |why: String| Failure::bad_request(format!("error decoding patch: {why}"));
                serde_json::from_value(body::json(text).map_err(decoding)?)
                    .map(Self::Json)
                    .map_err(|error| decoding(error.to_string()))
            }
            _ => object(text)
                .map(Self::Merge)
                .map_err(|why| Failure::bad_request(format!("error decoding patch: {why}"))),
        }
    }

    fn apply(&self, old: &Value) -> Result<Value, Failure> {
        let mut object = old.clone();
        match self {
            Self::Json(patch) => {
                json_patch::patch(&mut object, patch).map_err(|_| {
                    Failure::new(
                        StatusCode::UNPROCESSABLE_ENTITY,
                        "Invalid",
                        "the server rejected our request due to an error in our request",
                    )
                    .with_details(json!({}))
                })?;
            }
            Self::Merge(patch) => json_patch::merge(&mut object, patch),
        }
        Ok(object)
    }
}

fn object(text: &[u8]) -> Result<Value, String> {
    let value = body::json(text)?;
    if value.is_object() {
        return Ok(value);
    }
    let found = crate::object::typed::type_name(&value);
    Err(format!(
        "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
    ))
}

/// Patches an object, its status, or its scale.
pub(crate) async fn patch(
    server: &Server,
    call: &Call,
    options: &WriteOptions,
    media: Media,
    text: &[u8],
) -> Result<Answer, Failure> {
    let reading = Reading::parse(media, text)?;
    let part = match call.subresource.as_deref() {
        None => Part::Main,
        Some(name) => match call.kind.subresource(name).map(|found| &found.kind) {
            Some(SubresourceKind::Scale { .. }) => {
                return scale::change(server, call, options, |shown| reading.apply(shown)).await;
            }
            Some(SubresourceKind::Part(_)) => Part::Own,
            _ => Part::Status,
        },
    };
    update::change(server, call, options, part, Source::Patch, |old| {
        let mut object = reading.apply(old)?;
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
