//! Events.

use std::sync::Arc;

use evenkeel_api::kind::{Cell, Column, Kind, Strategy};
use evenkeel_shared::field::FieldError;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    builtin,
    column::{shown, wide},
    look::{at, fill, number, text},
    print,
};

/// Kinds of the group `events.k8s.io`: none yet, since they are the core group's events in another shape, and two
/// stores of them would be two truths.
pub fn kinds() -> Vec<Kind> {
    Vec::new()
}

/// `v1` Event.
pub fn core() -> Kind {
    Kind {
        short_names: &["ev"],
        columns: columns(),
        selectable_fields: &[
            "involvedObject.apiVersion",
            "involvedObject.fieldPath",
            "involvedObject.kind",
            "involvedObject.name",
            "involvedObject.namespace",
            "involvedObject.resourceVersion",
            "involvedObject.uid",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        strategy: Arc::new(Event),
        unconditional_update: true,
        create_on_update: true,
        ..builtin("", "v1", "Event", "events", "event")
    }
}

fn columns() -> Vec<Column> {
    let mut columns = vec![
        shown(
            "Last Seen",
            "string",
            "The time at which the most recent occurrence of this event was recorded.",
            |object, now| last_seen(object, now).into(),
        ),
        shown(
            "Type",
            "string",
            "Type of this event (Normal, Warning), new types could be added in the future",
            |object, _| text(object, "/type").into(),
        ),
        shown(
            "Reason",
            "string",
            "This should be a short, machine understandable string that gives the reason for the transition into the object's current status.",
            |object, _| text(object, "/reason").into(),
        ),
        shown(
            "Object",
            "string",
            "The object that this event is about.",
            |object, _| target(object).into(),
        ),
        wide(
            "Subobject",
            "string",
            "If referring to a piece of an object instead of an entire object, this string should contain a valid JSON/Go field access statement, such as desiredState.manifest.containers[2]. For example, if the object reference is to a container within a pod, this would take on a value like: \"spec.containers{name}\" (where \"name\" refers to the name of the container that triggered the event) or if no container name is specified \"spec.containers[2]\" (container with index 2 in this pod). This syntax is chosen only to have some well-defined way of referencing a part of an object.",
            |object, _| text(object, "/involvedObject/fieldPath").into(),
        ),
        wide(
            "Source",
            "string",
            "The component reporting this event. Should be a short machine understandable string.",
            |object, _| source(object).into(),
        ),
        shown(
            "Message",
            "string",
            "A human-readable description of the status of this operation.",
            |object, _| text(object, "/message").trim().into(),
        ),
        wide(
            "First Seen",
            "string",
            "The time at which the event was first recorded. (Time of server receipt is in TypeMeta.)",
            |object, now| first_seen(object, now).into(),
        ),
        wide(
            "Count",
            "string",
            "The number of times this event has occurred.",
            |object, _| count(object).into(),
        ),
    ];
    // The name of an event tells nobody anything: it comes last, and only when asked for.
    columns.push(Column {
        name: "Name",
        type_: "string",
        priority: 1,
        description: "",
        cell: Cell::Pointer("/metadata/name"),
    });
    columns
}

fn target(object: &Value) -> String {
    let kind = text(object, "/involvedObject/kind").to_lowercase();
    match text(object, "/involvedObject/name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn source(object: &Value) -> String {
    let component = print::or(
        text(object, "/source/component"),
        text(object, "/reportingComponent"),
    );
    match print::or(
        text(object, "/source/host"),
        text(object, "/reportingInstance"),
    ) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    }
}

fn first_seen(object: &Value, now: Timestamp) -> String {
    match print::moment(object, "/firstTimestamp") {
        Some(_) => print::since(object, "/firstTimestamp", now),
        None => print::since(object, "/eventTime", now),
    }
}

fn last_seen(object: &Value, now: Timestamp) -> String {
    if !at(object, "/series").is_null() {
        return print::since(object, "/series/lastObservedTime", now);
    }
    match print::moment(object, "/lastTimestamp") {
        Some(_) => print::since(object, "/lastTimestamp", now),
        None => first_seen(object, now),
    }
}

fn count(object: &Value) -> i64 {
    match at(object, "/series/count").as_i64() {
        Some(count) => count,
        None => number(object, "/count").max(1),
    }
}

struct Event;

impl Strategy for Event {
    fn default(&self, object: &mut Value) {
        fill(object, "source", json!({}));
        fill(object, "reportingComponent", "");
        fill(object, "reportingInstance", "");
        for time in ["firstTimestamp", "lastTimestamp", "eventTime"] {
            if let Some(fields) = object.as_object_mut() {
                fields.entry(time).or_insert(Value::Null);
            }
        }
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let (namespace, about) = (
            text(object, "/metadata/namespace"),
            text(object, "/involvedObject/namespace"),
        );
        // Events about cluster-scoped objects are in `default`.
        let fits = if about.is_empty() {
            ["default", "kube-system", ""].contains(&namespace)
        } else {
            about == namespace
        };
        if !fits {
            errors.push(FieldError::invalid(
                "involvedObject.namespace",
                &about.into(),
                "does not match event.namespace",
            ));
        }
        if !at(object, "/eventTime").is_null() {
            for field in [
                "reportingComponent",
                "reportingInstance",
                "action",
                "reason",
            ] {
                if text(object, &format!("/{field}")).is_empty() {
                    errors.push(FieldError::required(field, ""));
                }
            }
        }
        errors
    }
}
