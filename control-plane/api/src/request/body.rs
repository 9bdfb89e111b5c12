//! Objects in request bodies: JSON, YAML and protobuf, and what is wrong with them.

use std::fmt::Write as _;

use http::StatusCode;
use serde_json::{Value, json};

use super::syntax;
use crate::{failure::Failure, kind::Kind, protobuf};

/// The media type of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    Json,
    Yaml,
    Protobuf,
    JsonPatch,
    MergePatch,
    StrategicMergePatch,
    ApplyYaml,
    Other,
}

impl Media {
    /// Reads a Content-Type header; none at all is JSON.
    pub fn parse(header: Option<&str>) -> Self {
        let type_ = header.and_then(|header| header.split(';').next());
        match type_.map(str::trim) {
            None | Some("" | "application/json") => Self::Json,
            Some("application/yaml") => Self::Yaml,
            Some("application/vnd.kubernetes.protobuf") => Self::Protobuf,
            Some("application/json-patch+json") => Self::JsonPatch,
            Some("application/merge-patch+json") => Self::MergePatch,
            Some("application/strategic-merge-patch+json") => Self::StrategicMergePatch,
            Some("application/apply-patch+yaml") => Self::ApplyYaml,
            Some(_) => Self::Other,
        }
    }
}

/// Refuses a body whose media type is not for objects, or not for this kind.
pub fn unsupported_media() -> Failure {
    Failure::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
    )
}

/// Reads a text as JSON; the error is in the words that clients know.
pub fn json(text: &[u8]) -> Result<Value, String> {
    match serde_json::from_slice(text) {
        Ok(value) => Ok(value),
        Err(error) => Err(syntax::problem(text).unwrap_or_else(|| error.to_string())),
    }
}

/// Reads a text as YAML. JSON is YAML too, and is read as JSON.
pub fn yaml(text: &[u8]) -> Result<Value, String> {
    if text.first() == Some(&b'{')
        && let Ok(value) = serde_json::from_slice(text)
    {
        return Ok(value);
    }
    let text = std::str::from_utf8(text)
        .map_err(|_| "yaml: control characters are not allowed".to_owned())?;
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    let options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| format!("yaml: {error}"))
}

/// Reads an object of `kind`, whatever its encoding. Its `apiVersion` and `kind` are those of the kind when this is
/// done; a built-in kind may leave them out.
pub fn object(text: &[u8], media: Media, kind: &Kind) -> Result<Value, Failure> {
    let unrecognized = |why: &str| {
        Failure::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {why} ({})",
            kind.kind,
            summary(text)
        ))
    };
    let value = match media {
        Media::Json => json(text).map_err(|why| {
            unrecognized(&format!(
                "couldn't get version/kind; json parse error: {why}"
            ))
        })?,
        Media::Yaml | Media::ApplyYaml => yaml(text).map_err(|why| unrecognized(&why))?,
        Media::Protobuf => from_protobuf(text, kind)?,
        _ => return Err(unsupported_media()),
    };
    let fields = match &value {
        Value::Object(fields) => fields,
        Value::Null => {
            return Err(unrecognized("Object 'Kind' is missing in 'null'"));
        }
        other => {
            return Err(unrecognized(&format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
                crate::object::typed::type_name(other)
            )));
        }
    };
    let text_of = |field: &str| {
        fields
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (found_version, found_kind) =
        (text_of("apiVersion").to_owned(), text_of("kind").to_owned());
    if found_kind.is_empty() && !kind.builtin {
        let text = String::from_utf8_lossy(text);
        return Err(unrecognized(&format!(
            "Object 'Kind' is missing in '{text}'"
        )));
    }
    identify(value, &found_version, &found_kind, kind)
}

/// Checks apiVersion and kind of a body, and fills them in.
fn identify(
    mut value: Value,
    found_version: &str,
    found_kind: &str,
    kind: &Kind,
) -> Result<Value, Failure> {
    let expected = kind.api_version();
    let missing = found_version.is_empty() && kind.builtin;
    if !missing && found_version != expected {
        let group = |version: &str| {
            version
                .rsplit_once('/')
                .map_or("", |(group, _)| group)
                .to_owned()
        };
        if kind.builtin && group(found_version) == group(&expected) {
            let version = found_version.rsplit('/').next().unwrap_or_default();
            return Err(Failure::bad_request(format!(
                "{found_kind} in version \"{version}\" cannot be handled as a {}: no kind \"{found_kind}\" is registered for version \"{found_version}\" in scheme \"evenkeel\"",
                kind.kind
            )));
        }
        return Err(Failure::bad_request(format!(
            "the API version in the data ({found_version}) does not match the expected API version ({expected})"
        )));
    }
    if !found_kind.is_empty() && found_kind != kind.kind {
        return Err(wrong_kind(&value, found_kind, kind));
    }
    if let Some(fields) = value.as_object_mut() {
        fields.insert("apiVersion".into(), expected.into());
        fields.insert("kind".into(), kind.kind.into());
    }
    Ok(value)
}

/// A body of another kind than its URL's.
pub fn wrong_kind(value: &Value, found: &str, kind: &Kind) -> Failure {
    if kind.builtin {
        let internal = if kind.group.is_empty() {
            "core"
        } else {
            kind.group.split('.').next().unwrap_or_default()
        };
        let version = kind.version;
        return Failure::bad_request(format!(
            "{found} in version \"{version}\" cannot be handled as a {}: converting ({version}.{found}) to ({internal}.{}): unknown conversion",
            kind.kind, kind.kind
        ));
    }
    Failure::invalid(
        kind.group,
        found,
        crate::object::meta::name(value),
        &[evenkeel_shared::field::FieldError::invalid(
            "kind",
            &json!(found),
            &format!("must be {}", kind.kind),
        )],
    )
}

/// A protobuf body. Kinds without a decoder do not take them.
fn from_protobuf(text: &[u8], kind: &Kind) -> Result<Value, Failure> {
    let Some(decode) = kind.protobuf else {
        return Err(Failure::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml",
        ));
    };
    let opened = protobuf::open(text).map_err(|why| {
        Failure::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {why}",
            kind.kind
        ))
    })?;
    let named = identify(json!({}), &opened.api_version, &opened.kind, kind)?;
    let mut value = decode(&opened.raw).map_err(|why| {
        Failure::bad_request(format!(
            "{} in version \"{}\" cannot be handled as a {}: {why}",
            kind.kind, kind.version, kind.kind
        ))
    })?;
    if let (Some(fields), Value::Object(named)) = (value.as_object_mut(), named) {
        fields.extend(named);
    }
    Ok(value)
}

/// The beginning of a body, for error texts: as it is when it looks like an object, else in hexadecimal.
fn summary(text: &[u8]) -> String {
    const LENGTH: usize = 30;
    let head = &text[..text.len().min(LENGTH)];
    let shown = match head.first() {
        None => return "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(head).into_owned(),
        Some(_) => head.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        }),
    };
    if text.len() > LENGTH {
        format!("{shown} ...")
    } else {
        shown
    }
}
