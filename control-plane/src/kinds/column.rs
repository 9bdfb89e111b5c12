//! Columns of tables.

use evenkeel_api::kind::{Cell, Column};
use jiff::Timestamp;
use serde_json::Value;

/// What the reference server says of the age column.
pub const CREATED: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
/// What the reference server says of the containers column.
pub const CONTAINERS: &str = "Names of each container in the template.";
/// What the reference server says of the images column.
pub const IMAGES: &str = "Images referenced by each container in the template.";

/// Computes a cell.
pub type Print = fn(&Value, Timestamp) -> Value;

/// A column that is always shown.
pub fn shown(
    name: &'static str,
    type_: &'static str,
    description: &'static str,
    print: Print,
) -> Column {
    Column {
        name,
        type_,
        priority: 0,
        description,
        cell: Cell::Computed(print),
    }
}

/// A column of `-o wide`.
pub fn wide(
    name: &'static str,
    type_: &'static str,
    description: &'static str,
    print: Print,
) -> Column {
    Column {
        priority: 1,
        ..shown(name, type_, description, print)
    }
}

/// The age column of a built-in kind.
pub fn age() -> Column {
    Column {
        name: "Age",
        type_: "string",
        priority: 0,
        description: CREATED,
        cell: Cell::Age,
    }
}

/// The one column of kinds without a printer of their own.
pub fn created_at() -> Column {
    shown("Created At", "date", CREATED, |object, _| {
        super::look::text(object, "/metadata/creationTimestamp").into()
    })
}

/// A column of a custom resource: `path` is what the reference calls it, `pointer` where it is.
pub fn custom(
    name: &'static str,
    type_: &'static str,
    priority: i32,
    description: &'static str,
    cell: Cell,
) -> Column {
    Column {
        name,
        type_,
        priority,
        description,
        cell,
    }
}
