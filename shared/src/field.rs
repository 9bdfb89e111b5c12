//! What is wrong with a field of an object, in the words of the Kubernetes API.

use std::fmt;

/// The kinds of field error; `as_str` is the `reason` of a Status cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldErrorKind {
    Required,
    Invalid,
    NotSupported,
    Duplicate,
    Forbidden,
    TooLong,
    TooMany,
    NotFound,
    TypeInvalid,
}

impl FieldErrorKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::NotFound => "FieldValueNotFound",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }
}

/// One error, at one path (`spec.placement.spreadConstraints[0].maxGroups`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    pub kind: FieldErrorKind,
    pub path: String,
    /// The whole message of the cause, the human form of the kind included: `Invalid value: "x": must be …`.
    pub message: String,
}

impl FieldError {
    fn new(kind: FieldErrorKind, path: impl Into<String>, message: String) -> Self {
        Self {
            kind,
            path: path.into(),
            message,
        }
    }

    fn with_detail(
        kind: FieldErrorKind,
        path: impl Into<String>,
        head: String,
        detail: &str,
    ) -> Self {
        let message = if detail.is_empty() {
            head
        } else {
            format!("{head}: {detail}")
        };
        Self::new(kind, path, message)
    }

    pub fn required(path: impl Into<String>, detail: &str) -> Self {
        Self::with_detail(
            FieldErrorKind::Required,
            path,
            "Required value".into(),
            detail,
        )
    }

    /// `value` is printed as JSON prints it: text in quotes, numbers and booleans bare.
    pub fn invalid(path: impl Into<String>, value: &serde_json::Value, detail: &str) -> Self {
        Self::with_detail(
            FieldErrorKind::Invalid,
            path,
            format!("Invalid value: {value}"),
            detail,
        )
    }

    pub fn not_supported(
        path: impl Into<String>,
        value: &serde_json::Value,
        supported: &[&str],
    ) -> Self {
        let supported = supported
            .iter()
            .map(|s| format!("\"{s}\""))
            .collect::<Vec<_>>()
            .join(", ");
        Self::with_detail(
            FieldErrorKind::NotSupported,
            path,
            format!("Unsupported value: {value}"),
            &format!("supported values: {supported}"),
        )
    }

    pub fn duplicate(path: impl Into<String>, value: &serde_json::Value) -> Self {
        Self::new(
            FieldErrorKind::Duplicate,
            path,
            format!("Duplicate value: {value}"),
        )
    }

    pub fn forbidden(path: impl Into<String>, detail: &str) -> Self {
        Self::with_detail(FieldErrorKind::Forbidden, path, "Forbidden".into(), detail)
    }

    pub fn too_long(path: impl Into<String>, max_bytes: usize) -> Self {
        Self::new(
            FieldErrorKind::TooLong,
            path,
            format!("Too long: may not be more than {max_bytes} bytes"),
        )
    }

    pub fn too_many(path: impl Into<String>, actual: usize, max: usize) -> Self {
        Self::new(
            FieldErrorKind::TooMany,
            path,
            format!("Too many: {actual}: must have at most {max} items"),
        )
    }

    pub fn not_found(path: impl Into<String>, value: &serde_json::Value) -> Self {
        Self::new(
            FieldErrorKind::NotFound,
            path,
            format!("Not found: {value}"),
        )
    }

    pub fn type_invalid(path: impl Into<String>, value: &serde_json::Value, detail: &str) -> Self {
        Self::with_detail(
            FieldErrorKind::TypeInvalid,
            path,
            format!("Invalid value: {value}"),
            detail,
        )
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}
