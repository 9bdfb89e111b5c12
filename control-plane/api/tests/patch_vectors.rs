//! The recorded scenarios of server-side apply and of the other patches, replayed on the pure functions.
//!
//! There is no server here: paths, options, validation and storage are left out, and a step that is about those is skipped.
//! Defaults of the built-in kinds are taken from the recorded answer, after checking that it has everything that the patch's
//! result has; custom resources are defaulted by their schema, and the whole object must be equal.

use std::{collections::BTreeMap, io::Read, path::PathBuf};

use evenkeel_api::{
    failure::Failure,
    patch::{self, Manager, managed::track_scale, track_update},
    schema::{Schemas, TypeRef},
};
use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};

fn read(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/api-vectors")
        .join(name);
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes.as_slice())
        .read_to_string(&mut text)
        .expect("gzip");
    text
}

fn lines(name: &str) -> Vec<Value> {
    read(name)
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// A kind of the scenarios.
#[derive(Clone)]
struct Kind {
    ty: TypeRef,
    /// The OpenAPI schema of a custom resource.
    openapi: Option<Value>,
    has_status: bool,
}

struct World {
    kinds: BTreeMap<String, Kind>,
    schemas: Schemas,
}

impl World {
    fn load() -> Self {
        let schemas = Schemas::from_value(
            &serde_json::from_str(&read("merge-schema.json.gz")).expect("JSON"),
        )
        .expect("merge schema");
        let mut kinds = BTreeMap::new();
        for fixture in lines("fixtures.jsonl.gz") {
            let spec = &fixture["body"]["spec"];
            for version in spec["versions"].as_array().into_iter().flatten() {
                let schema = &version["schema"]["openAPIV3Schema"];
                let key = format!(
                    "{}/{} {}",
                    spec["group"].as_str().expect("group"),
                    version["name"].as_str().expect("name"),
                    spec["names"]["plural"].as_str().expect("plural"),
                );
                let kind = Kind {
                    ty: TypeRef::structural(schema),
                    openapi: Some(schema.clone()),
                    has_status: !version["subresources"]["status"].is_null(),
                };
                kinds.insert(key, kind);
            }
        }
        Self { kinds, schemas }
    }

    fn kind(&self, version: &str, plural: &str, body: &Value) -> Option<Kind> {
        if let Some(kind) = self.kinds.get(&format!("{version} {plural}")) {
            return Some(kind.clone());
        }
        let kind = body["kind"].as_str()?;
        Some(Kind {
            ty: self.schemas.kind(version, kind)?,
            openapi: None,
            has_status: matches!(
                kind,
                "Deployment"
                    | "StatefulSet"
                    | "Job"
                    | "CronJob"
                    | "Service"
                    | "Namespace"
                    | "Ingress"
                    | "HorizontalPodAutoscaler"
                    | "PodDisruptionBudget"
                    | "PersistentVolumeClaim"
            ),
        })
    }
}

/// Structural defaulting, as a server of custom resources does it.
fn fill(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let is_closed = schema["x-kubernetes-preserve-unknown-fields"] != true
                && schema["properties"].is_object()
                && schema["additionalProperties"].is_null();
            if is_closed {
                let known = &schema["properties"];
                let always = ["apiVersion", "kind", "metadata"];
                fields
                    .retain(|name, _| known.get(name).is_some() || always.contains(&name.as_str()));
            }
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                if name == "metadata" {
                    continue;
                }
                let nullable = property["nullable"] == true;
                if let Some(default) = property.get("default") {
                    let missing = fields
                        .get(name)
                        .is_none_or(|value| value.is_null() && !nullable);
                    if missing {
                        fields.insert(name.clone(), default.clone());
                    }
                } else if fields.get(name).is_some_and(Value::is_null) && !nullable {
                    // Null where nothing allows it: pruned with the defaults.
                    fields.remove(name);
                }
                if let Some(value) = fields.get_mut(name) {
                    fill(property, value);
                }
            }
            if schema["additionalProperties"].is_object() {
                for (_, value) in fields.iter_mut() {
                    fill(&schema["additionalProperties"], value);
                }
            }
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| fill(&schema["items"], item)),
        _ => {}
    }
}

fn without_managed(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for name in [
            "managedFields",
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "generation",
            "namespace",
            "selfLink",
        ] {
            metadata.remove(name);
        }
    }
    object
}

/// A Status whose causes are in a fixed order: that of the reference server is random between managers.
fn sorted(mut status: Value) -> Value {
    if let Some(causes) = status["details"]
        .get_mut("causes")
        .and_then(Value::as_array_mut)
    {
        causes.sort_by_key(ToString::to_string);
    }
    status
}

/// A line per entry: its identity, whether it has a time, and its fields.
fn owners(object: &Value) -> Vec<String> {
    let mut lines = object["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| {
            let time = entry.get("time").map_or("no time", |_| "timed");
            format!(
                "{} {} {} {} {time} {}",
                entry["manager"],
                entry["operation"],
                entry["apiVersion"],
                entry["subresource"],
                entry["fieldsV1"]
            )
        })
        .collect::<Vec<_>>();
    lines.sort();
    lines
}

/// The entries that only one side has.
fn owners_differ(have: &Value, want: &Value) -> Option<String> {
    let (have, want) = (owners(have), owners(want));
    let only = |a: &[String], b: &[String]| {
        a.iter()
            .filter(|line| !b.contains(line))
            .cloned()
            .collect::<Vec<_>>()
            .join("\n       ")
    };
    (have != want).then(|| {
        format!(
            "\n  have {}\n  want {}",
            only(&have, &want),
            only(&want, &have)
        )
    })
}

/// The first path at which `part` has something that `whole` has not.
fn missing(part: &Value, whole: &Value, path: &str) -> Option<String> {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => part.iter().find_map(|(name, value)| {
            let path = format!("{path}.{name}");
            match whole.get(name) {
                Some(other) => missing(value, other, &path),
                None if value.is_null()
                    || *value == json!({})
                    || *value == json!([])
                    || *value == json!("") =>
                {
                    None
                }
                None => Some(path),
            }
        }),
        (Value::Array(part), Value::Array(whole)) if part.len() == whole.len() => part
            .iter()
            .zip(whole)
            .enumerate()
            .find_map(|(place, (part, whole))| missing(part, whole, &format!("{path}[{place}]"))),
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => None,
        (Value::Null, _) => None,
        _ if part == whole => None,
        // Quantities and int-or-string are decoded to another spelling.
        (Value::Number(a), Value::String(b)) if a.to_string() == *b => None,
        _ => Some(format!("{path}: {part} is not {whole}")),
    }
}

/// Addresses of Services are allocated after ownership is tracked.
fn without_allocated(new: &mut Value) {
    if new["kind"] == "Service"
        && let Some(spec) = new["spec"].as_object_mut()
    {
        for name in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            spec.remove(name);
        }
    }
}

/// The path without its subresource, what it names, and the subresource.
struct Target {
    object: String,
    version: String,
    plural: String,
    name: Option<String>,
    subresource: Option<String>,
}

fn target(path: &str) -> Option<Target> {
    let parts = path.trim_start_matches('/').split('/').collect::<Vec<_>>();
    let (version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] => ((*version).to_owned(), rest),
        ["apis", group, version, rest @ ..] => (format!("{group}/{version}"), rest),
        _ => return None,
    };
    let rest = match rest {
        ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
        rest => rest,
    };
    let (plural, name, subresource) = match rest {
        [plural] => (plural, None, None),
        [plural, name] => (plural, Some(*name), None),
        [plural, name, subresource] => (plural, Some(*name), Some(*subresource)),
        _ => return None,
    };
    Some(Target {
        object: format!("{version} {plural}/{}", name.unwrap_or_default()),
        version,
        plural: (*plural).to_owned(),
        name: name.map(Into::into),
        subresource: subresource.map(Into::into),
    })
}

fn replay(world: &World, scenario: &Value, failures: &mut Vec<String>) -> usize {
    let id = scenario["id"].as_str().expect("id");
    let mut objects: BTreeMap<String, Value> = BTreeMap::new();
    let mut now: Timestamp = "2024-01-01T00:00:00Z".parse().expect("time");
    let mut checked = 0;
    let requests = scenario["setup"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|request| (request, None))
        .chain(
            scenario["steps"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|step| (&step["request"], Some(&step["response"]))),
        );
    for (number, (request, response)) in requests.enumerate() {
        now = now.checked_add(1.second()).expect("time");
        let Some(target) = target(request["path"].as_str().expect("path")) else {
            continue;
        };
        let text;
        let body = match &request["body"] {
            Value::String(raw) => match serde_json::from_str::<Value>(raw) {
                Ok(value) => {
                    text = value;
                    &text
                }
                Err(_) => continue,
            },
            body => body,
        };
        let method = request["method"].as_str().expect("method");
        let expected = response.map(|response| &response["body"]);
        let status = response.map_or(200, |response| response["status"].as_u64().unwrap_or(0));
        let about = expected.unwrap_or(body);
        let name = target
            .name
            .clone()
            .or_else(|| body["metadata"]["name"].as_str().map(Into::into));
        let Some(name) = name else { continue };
        let key = if target.name.is_some() {
            target.object.clone()
        } else {
            format!("{}{name}", target.object)
        };
        let live = objects.get(&key).cloned();
        let place = format!(
            "{id} step {}",
            number
                .wrapping_sub(scenario["setup"].as_array().map_or(0, Vec::len))
                .cast_signed()
        );
        if method == "DELETE" {
            if status == 200 {
                objects.remove(&key);
            }
            continue;
        }
        if method == "GET" {
            if let (Some(live), Some(expected), 200) = (&live, expected, status)
                && target.subresource.is_none()
                && expected["kind"] == live["kind"]
            {
                checked += 1;
                if let Some(difference) = owners_differ(live, expected) {
                    failures.push(format!("{place}: GET{difference}"));
                }
            }
            continue;
        }
        let query = &request["query"];
        if target
            .subresource
            .as_deref()
            .is_some_and(|name| name != "status")
        {
            // The scale of a parent, in its own kind. What it does to the parent is the replicas.
            let replicas = &body["spec"]["replicas"];
            if let (Some(live), Some("scale"), 200, true) = (
                &live,
                target.subresource.as_deref(),
                status,
                replicas.is_number() && query["dryRun"].is_null(),
            ) {
                let mut new = live.clone();
                new["spec"]["replicas"] = replicas.clone();
                let manager = Manager {
                    name: query["fieldManager"].as_str().unwrap_or("unknown").into(),
                    subresource: target.subresource.clone(),
                    api_version: target.version.clone(),
                    now,
                    has_status: true,
                };
                track_scale(live, &mut new, &["spec", "replicas"], &manager);
                objects.insert(key, new);
            }
            continue;
        }
        let type_about = live.as_ref().unwrap_or(if about["kind"] == "Status" {
            body
        } else {
            about
        });
        let Some(kind) = world.kind(&target.version, &target.plural, type_about) else {
            continue;
        };
        let manager = Manager {
            name: query["fieldManager"].as_str().unwrap_or("unknown").into(),
            subresource: target.subresource.clone(),
            api_version: target.version.clone(),
            now,
            has_status: kind.has_status,
        };
        let media = request["headers"]["Content-Type"]
            .as_str()
            .unwrap_or("application/json");
        let form = media.split(';').next().unwrap_or_default();
        let finish = |new: &mut Value| {
            let is_status = manager.subresource.is_some();
            if kind.openapi.is_some() && kind.has_status {
                if is_status {
                    let status = new.get("status").cloned();
                    *new = live.clone().unwrap_or(Value::Null);
                    match status {
                        Some(status) => new["status"] = status,
                        None => {
                            new.as_object_mut().map(|new| new.remove("status"));
                        }
                    }
                } else {
                    let status = live.as_ref().and_then(|live| live.get("status")).cloned();
                    match status {
                        Some(status) => new["status"] = status,
                        None => {
                            new.as_object_mut().map(|new| new.remove("status"));
                        }
                    }
                }
            }
            if let Some(schema) = &kind.openapi {
                fill(schema, new);
            }
            if !new["metadata"].is_object() {
                new["metadata"] = json!({});
            }
            new["metadata"]["uid"] = "u".into();
        };
        let mut problem = None;
        let mut oracle = |new: &mut Value| {
            if kind.openapi.is_none()
                && let (Some(expected), true) = (expected, status < 300)
            {
                let managed = new["metadata"].get("managedFields").cloned();
                if manager.subresource.is_none() && body["kind"] != "Service" {
                    let mut part = without_managed(new);
                    if kind.has_status {
                        part["status"] = Value::Null;
                    }
                    part["metadata"]["name"] = Value::Null;
                    problem = missing(&part, expected, "");
                }
                *new = expected.clone();
                new["metadata"]
                    .as_object_mut()
                    .expect("metadata")
                    .remove("managedFields");
                if let Some(managed) = managed {
                    new["metadata"]["managedFields"] = managed;
                }
            }
        };
        let result: Result<Value, Failure> = match (method, form) {
            ("PATCH", "application/apply-patch+yaml") => {
                let force = query["force"] == "true";
                let cell = std::cell::RefCell::new(&mut oracle);
                patch::apply::apply(&kind.ty, live.as_ref(), body, &manager, force, &|new| {
                    (cell.borrow_mut())(new);
                    finish(new);
                })
                .map(|mut new| {
                    if live.is_none() {
                        new["metadata"]["uid"] = "u".into();
                    }
                    new
                })
                .map_err(Into::into)
            }
            ("PATCH", form) => {
                let Some(live) = &live else { continue };
                let new = match form {
                    "application/json-patch+json" => {
                        patch::json::apply(live, body.to_string().as_bytes())
                    }
                    "application/merge-patch+json" if body.is_object() => {
                        Ok(patch::merge::apply(live, body))
                    }
                    "application/strategic-merge-patch+json"
                        if kind.openapi.is_none() && body.is_object() =>
                    {
                        patch::strategic::apply(&kind.ty, live, body)
                    }
                    _ => continue,
                };
                new.map_err(Into::into).map(|mut new| {
                    oracle(&mut new);
                    finish(&mut new);
                    without_allocated(&mut new);
                    track_update(&kind.ty, Some(live), &mut new, &manager);
                    new
                })
            }
            ("POST" | "PUT", _) if body.is_object() => {
                let mut new = body.clone();
                oracle(&mut new);
                finish(&mut new);
                without_allocated(&mut new);
                track_update(&kind.ty, live.as_ref(), &mut new, &manager);
                Ok(new)
            }
            _ => continue,
        };
        let conflict = expected.is_some_and(|expected| {
            expected["details"]["causes"][0]["reason"] == "FieldManagerConflict"
        });
        let is_ours = conflict
            || (status == 500
                && expected.is_some_and(|body| {
                    body["message"]
                        .as_str()
                        .is_some_and(|text| !text.contains("failed to convert"))
                }))
            || (status == 400
                && expected.is_some_and(|body| {
                    body["message"].as_str().is_some_and(|text| {
                        text.contains("managedFields") || text.contains("jsonPatchOp")
                    })
                }))
            || (form == "application/json-patch+json"
                && expected.is_some_and(|body| {
                    body["message"]
                        == "the server rejected our request due to an error in our request"
                }));
        match result {
            Ok(new) if status < 300 => {
                checked += 1;
                if let Some(problem) = problem {
                    failures.push(format!("{place}: result {problem}"));
                }
                if let Some(expected) = expected {
                    if let Some(difference) = owners_differ(&new, expected) {
                        failures.push(format!("{place}: {method} {form} owners{difference}"));
                    }
                    if kind.openapi.is_some() {
                        let have = without_managed(&new);
                        let want = without_managed(expected);
                        if missing(&have, &want, "").is_some()
                            || missing(&want, &have, "").is_some()
                        {
                            failures.push(format!(
                                "{place}: {method} object\n  have {have}\n  want {want}"
                            ));
                        }
                    }
                }
                if query["dryRun"].is_null() {
                    objects.insert(key, new);
                }
            }
            Ok(_) if is_ours => {
                failures.push(format!("{place}: passed, expected {}", about["message"]));
            }
            Err(failure) if status < 300 => {
                failures.push(format!("{place}: {} expected 2xx", failure.message));
            }
            Err(failure) if is_ours => {
                checked += 1;
                // Prints the whole live object, defaults included.
                if failure
                    .message
                    .starts_with("list element types are not identical")
                {
                    continue;
                }
                let (have, about) = (sorted(failure.body()), &sorted(about.clone()));
                if have != *about {
                    failures.push(format!("{place}: status\n  have {have}\n  want {about}"));
                }
            }
            // About what is not here: validation, paths, options.
            Ok(_) | Err(_) => {}
        }
    }
    checked
}

fn run(topic: &str, least: usize) {
    let world = World::load();
    let mut failures = Vec::new();
    let mut checked = 0;
    let only = std::env::var("SCENARIO").unwrap_or_default();
    for scenario in lines(&format!("scenarios/{topic}.jsonl.gz")) {
        if scenario["id"].as_str().expect("id").contains(&only) {
            checked += replay(&world, &scenario, &mut failures);
        }
    }
    println!(
        "{topic}: {checked} steps checked, {} failures",
        failures.len()
    );
    assert!(
        failures.is_empty(),
        "{} failures\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(
        checked >= least || !only.is_empty(),
        "only {checked} steps were checked"
    );
}

#[test]
fn server_side_apply() {
    run("ssa", 830);
}

#[test]
fn other_patches() {
    run("patch", 170);
}
