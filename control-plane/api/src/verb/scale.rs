//! The scale subresource: a view of an object's replicas in `autoscaling/v1`.

use evenkeel_shared::field::FieldError;
use serde_json::{Value, json};

use super::{
    Answer, Call, managed,
    update::{self, Candidate, Part, Source},
};
use crate::{
    failure::Failure,
    kind::{Kind, SubresourceKind},
    object::{encode, meta},
    request::{body, query::WriteOptions},
    server::Server,
};

const API_VERSION: &str = "autoscaling/v1";

/// Where a kind keeps its replicas, as JSON pointers.
#[derive(Clone, Copy)]
struct Paths {
    spec_replicas: &'static str,
    status_replicas: &'static str,
    label_selector: Option<&'static str>,
}

impl Paths {
    fn of(kind: &Kind) -> Result<Self, Failure> {
        kind.subresources
            .iter()
            .find_map(|subresource| match subresource.kind {
                SubresourceKind::Scale {
                    spec_replicas,
                    status_replicas,
                    label_selector,
                } => Some(Self {
                    spec_replicas,
                    status_replicas,
                    label_selector,
                }),
                _ => None,
            })
            .ok_or_else(Failure::unknown_path)
    }
}

/// The scale of an object. `None`: a kind of its own schema whose replicas are not set has none.
fn view(object: &Value, paths: Paths, builtin: bool) -> Option<Value> {
    let replicas = object.pointer(paths.spec_replicas).and_then(Value::as_i64);
    if replicas.is_none() && !builtin {
        return None;
    }
    let mut metadata = json!({});
    for field in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        let text = meta::text(object, field);
        if !text.is_empty() {
            metadata[field] = text.into();
        }
    }
    let mut spec = json!({});
    if let Some(replicas) = replicas.filter(|replicas| *replicas != 0) {
        spec["replicas"] = replicas.into();
    }
    let current = object
        .pointer(paths.status_replicas)
        .and_then(Value::as_i64)
        .unwrap_or_default();
    let mut status = json!({"replicas": current});
    let selector = paths
        .label_selector
        .and_then(|path| object.pointer(path))
        .map(selector_text)
        .unwrap_or_default();
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    Some(json!({
        "kind": "Scale",
        "apiVersion": API_VERSION,
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }))
}

/// A label selector as text. A kind may keep it as text already.
fn selector_text(selector: &Value) -> String {
    if let Some(text) = selector.as_str() {
        return text.to_owned();
    }
    let labels = selector.get("matchLabels").unwrap_or(selector);
    let mut terms = labels
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
        .collect::<Vec<_>>();
    for expression in selector
        .get("matchExpressions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let key = expression["key"].as_str().unwrap_or_default();
        let mut values = expression["values"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>();
        values.sort_unstable();
        let values = values.join(",");
        terms.push(match expression["operator"].as_str() {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("DoesNotExist") => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    terms.sort();
    terms.join(",")
}

/// Reads the scale of an object.
pub(crate) fn get(server: &Server, call: &Call) -> Result<Answer, Failure> {
    let paths = Paths::of(&call.kind)?;
    let current = server
        .store()
        .get(&call.key(&call.name))
        .ok_or_else(|| call.not_found(&call.name))?;
    let object = encode::decode(&current, &call.kind);
    view(&object, paths, call.kind.builtin)
        .map(Answer::value)
        .ok_or_else(|| no_replicas(call, paths))
}

fn no_replicas(call: &Call, paths: Paths) -> Failure {
    let path = paths.spec_replicas.replace('/', ".");
    Failure::internal(format!(
        "the spec replicas field \"{path}\" does not exist in {} \"{}\"",
        call.kind.plural, call.name
    ))
}

/// Reads a Scale from the body of a PUT.
pub(crate) fn decode(call: &Call, text: &[u8], media: body::Media) -> Result<Value, Failure> {
    let value = match media {
        body::Media::Json => body::json(text).map_err(Failure::bad_request)?,
        body::Media::Yaml => body::yaml(text).map_err(Failure::bad_request)?,
        _ => return Err(body::unsupported_media()),
    };
    if value["kind"] != "Scale" || value["apiVersion"] != API_VERSION {
        return Err(Failure::bad_request(
            "no kind is registered for the type v1.Scale in scheme \"evenkeel\"",
        ));
    }
    super::write::settle_name(call, &value)?;
    Ok(value)
}

/// Changes the replicas of an object: `next` makes the scale that is wanted from the one that is.
pub(crate) async fn change(
    server: &Server,
    call: &Call,
    options: &WriteOptions,
    mut next: impl FnMut(&Value) -> Result<Value, Failure>,
) -> Result<Answer, Failure> {
    let paths = Paths::of(&call.kind)?;
    let answer = update::change(server, call, options, Part::Scale, Source::Put, |old| {
        let shown = view(old, paths, call.kind.builtin).ok_or_else(|| no_replicas(call, paths))?;
        let scale = next(&shown)?;
        let replicas = replicas(&scale, &call.name)?;
        let mut object = old.clone();
        set_pointer(&mut object, paths.spec_replicas, replicas.into());
        for field in ["resourceVersion", "uid"] {
            meta::copy(&mut object, &scale, field);
        }
        Ok(Candidate::new(object))
    })
    .await?;
    let code = answer.code;
    let object = answer.into_value(&call.kind);
    let scale = view(&object, paths, call.kind.builtin).ok_or_else(|| no_replicas(call, paths))?;
    Ok(Answer {
        code,
        ..Answer::value(scale)
    })
}

/// Applies a scale: the replicas of the object are owned through it.
pub(crate) async fn apply(
    server: &Server,
    call: &Call,
    options: &WriteOptions,
    text: &[u8],
) -> Result<Answer, Failure> {
    let paths = Paths::of(&call.kind)?;
    let scale = decode(call, text, body::Media::Yaml)?;
    let mut config = json!({
        "apiVersion": call.kind.api_version(),
        "kind": call.kind.kind,
        "metadata": {"name": call.name},
    });
    if let Some(namespace) = &call.namespace {
        meta::set(&mut config, "namespace", namespace.as_str());
    }
    if scale.pointer("/spec/replicas").is_some() {
        let replicas = replicas(&scale, &call.name)?;
        set_pointer(&mut config, paths.spec_replicas, replicas.into());
    }
    meta::copy(&mut config, &scale, "resourceVersion");
    let answer = update::change(server, call, options, Part::Scale, Source::Put, |old| {
        let mut object = managed::applied(call, options, Some(old), &config)?;
        meta::copy(&mut object, &config, "resourceVersion");
        Ok(Candidate {
            object,
            tracked: true,
            warnings: Vec::new(),
        })
    })
    .await?;
    let object = answer.into_value(&call.kind);
    view(&object, paths, call.kind.builtin)
        .map(Answer::value)
        .ok_or_else(|| no_replicas(call, paths))
}

/// The replicas that a scale asks for; left out is none.
fn replicas(scale: &Value, name: &str) -> Result<i64, Failure> {
    let wanted = match scale.pointer("/spec/replicas") {
        None | Some(Value::Null) => 0,
        Some(value) => value
            .as_i64()
            .filter(|replicas| i32::try_from(*replicas).is_ok())
            .ok_or_else(|| {
                Failure::bad_request(format!(
                    "Scale in version \"v1\" cannot be handled as a Scale: json: cannot unmarshal {} into Go struct field ScaleSpec.spec.replicas of type int32",
                    crate::object::typed::type_name(value)
                ))
            })?,
    };
    if wanted < 0 {
        return Err(Failure::invalid(
            "autoscaling",
            "Scale",
            name,
            &[FieldError::invalid(
                "spec.replicas",
                &json!(wanted),
                "must be greater than or equal to 0",
            )],
        ));
    }
    Ok(wanted)
}

/// Sets what a JSON pointer without escapes names, making the objects on the way.
fn set_pointer(object: &mut Value, pointer: &str, value: Value) {
    let mut place = object;
    for field in pointer.split('/').skip(1) {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[field];
    }
    *place = value;
}
