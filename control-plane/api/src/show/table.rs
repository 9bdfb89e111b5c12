//! Rows and columns, as `kubectl get` prints them.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::partial;
use crate::{
    kind::{Cell, Column, Kind},
    object::{encode, meta},
    verb::list::Page,
};

const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

/// What a row carries of its object: `includeObject`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Include {
    None,
    #[default]
    Metadata,
    Object,
}

impl Include {
    pub fn parse(text: &str) -> Self {
        match text {
            "None" => Self::None,
            "Object" => Self::Object,
            _ => Self::Metadata,
        }
    }
}

/// Whether the kind says itself where its name goes.
fn places_name(kind: &Kind) -> bool {
    kind.columns.iter().any(|column| column.name == "Name")
}

/// The definitions of the columns; the name is the first, unless the kind puts it elsewhere.
pub(crate) fn columns(kind: &Kind) -> Value {
    let definition = |name, type_, format, description, priority| {
        json!({
            "name": name, "type": type_, "format": format, "description": description, "priority": priority,
        })
    };
    let mut columns = Vec::new();
    if !places_name(kind) {
        columns.push(definition("Name", "string", "name", NAME, 0));
    }
    columns.extend(kind.columns.iter().map(|column| match column.name {
        "Name" => definition("Name", "string", "name", NAME, column.priority),
        name => definition(name, column.type_, "", column.description, column.priority),
    }));
    columns.into()
}

/// One row.
pub(crate) fn row(
    object: &Value,
    kind: &Kind,
    version: &str,
    include: Include,
    now: Timestamp,
) -> Value {
    let mut cells = Vec::new();
    if !places_name(kind) {
        cells.push(Value::from(meta::name(object)));
    }
    cells.extend(
        kind.columns
            .iter()
            .map(|column| cell(object, column, kind.builtin, now)),
    );
    let mut row = json!({"cells": cells});
    match include {
        Include::None => {}
        Include::Metadata => row["object"] = partial::value(object, version),
        Include::Object => row["object"] = object.clone(),
    }
    row
}

fn cell(object: &Value, column: &Column, builtin: bool, now: Timestamp) -> Value {
    let value = match column.cell {
        Cell::Computed(compute) => return compute(object, now),
        Cell::Age => object.pointer("/metadata/creationTimestamp"),
        Cell::Pointer(pointer) => object.pointer(pointer),
    };
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return if builtin && column.type_ != "date" && matches!(column.cell, Cell::Age) {
            "<unknown>".into()
        } else {
            Value::Null
        };
    };
    if matches!(column.cell, Cell::Age) || column.type_ == "date" {
        return value
            .as_str()
            .and_then(|text| text.parse::<Timestamp>().ok())
            .map_or_else(|| "<invalid>".into(), |since| age(since, now).into());
    }
    match (column.type_, value) {
        ("string", Value::String(text)) => text.as_str().into(),
        ("string", other) => other.to_string().into(),
        ("integer", Value::Number(number)) if number.is_i64() || number.is_u64() => value.clone(),
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        _ => Value::Null,
    }
}

/// How long ago something was, in at most two units: `3s`, `2m5s`, `7d3h`.
pub fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second() - since.as_second();
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    let two = |large: i64, unit: &str, small: i64, small_unit: &str| {
        if small == 0 {
            format!("{large}{unit}")
        } else {
            format!("{large}{unit}{small}{small_unit}")
        }
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 192 => two(days, "d", hours % 24, "h"),
        _ if days < 365 * 2 => format!("{days}d"),
        _ if days < 365 * 8 => two(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}

fn table(version: &str, metadata: &Value, columns: &Value, rows: &[Value]) -> Value {
    json!({
        "kind": "Table",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": metadata,
        "columnDefinitions": columns,
        "rows": rows,
    })
}

/// The table of one object. `columns`: told in the first event of a watch only.
pub(crate) fn event(
    object: &Value,
    kind: &Kind,
    version: &str,
    include: Include,
    with_columns: bool,
    now: Timestamp,
) -> Value {
    let columns = if with_columns {
        columns(kind)
    } else {
        Value::Null
    };
    let metadata = json!({"resourceVersion": meta::resource_version(object)});
    table(
        version,
        &metadata,
        &columns,
        &[row(object, kind, version, include, now)],
    )
}

/// The table of one object.
pub(crate) fn one(
    object: &Value,
    kind: &Kind,
    version: &str,
    include: Include,
    now: Timestamp,
) -> Value {
    event(object, kind, version, include, true, now)
}

/// The table of a list.
pub(crate) fn list(
    page: &Page,
    kind: &Kind,
    version: &str,
    include: Include,
    now: Timestamp,
) -> Value {
    let rows = page
        .objects
        .iter()
        .map(|object| row(&encode::decode(object, kind), kind, version, include, now))
        .collect::<Vec<_>>();
    table(version, &super::list_metadata(page), &columns(kind), &rows)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn ages() {
        let now = "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap();
        for (seconds, want) in [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (10_860, "3h1m"),
            (28_800, "8h"),
            (172_800, "2d"),
            (176_400, "2d1h"),
            (691_200, "8d"),
            (63_072_000, "2y"),
            (63_158_400, "2y1d"),
            (315_360_000, "10y"),
        ] {
            assert_eq!(
                age(now - SignedDuration::from_secs(seconds), now),
                want,
                "{seconds}"
            );
        }
    }
}
