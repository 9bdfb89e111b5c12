//! Errors as clients see them: a `Status` with code, reason, details and causes.

use evenkeel_shared::field::FieldError;
use http::StatusCode;
use serde_json::{Value, json};

/// A request that failed. `body()` is the Status that goes out.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    pub code: StatusCode,
    /// `NotFound`, `Conflict`, …; empty when the reference server sends none.
    pub reason: &'static str,
    pub message: String,
    /// `null` when there are none.
    pub details: Value,
    /// Seconds for a Retry-After header.
    pub retry_after: Option<u32>,
    /// Where a list whose snapshot is gone may go on, inconsistently.
    pub continue_: Option<String>,
}

impl Failure {
    pub fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: Value::Null,
            retry_after: None,
            continue_: None,
        }
    }

    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = details;
        self
    }

    fn about(group: &str, plural: &str, name: &str) -> Value {
        let mut details = json!({"kind": plural});
        if !name.is_empty() {
            details["name"] = name.into();
        }
        if !group.is_empty() {
            details["group"] = group.into();
        }
        details
    }

    fn qualified(group: &str, plural: &str) -> String {
        if group.is_empty() {
            plural.to_owned()
        } else {
            format!("{plural}.{group}")
        }
    }

    pub fn not_found(group: &str, plural: &str, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", Self::qualified(group, plural));
        Self::new(StatusCode::NOT_FOUND, "NotFound", message)
            .with_details(Self::about(group, plural, name))
    }

    pub fn already_exists(group: &str, plural: &str, name: &str) -> Self {
        let message = format!(
            "{} \"{name}\" already exists",
            Self::qualified(group, plural)
        );
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message)
            .with_details(Self::about(group, plural, name))
    }

    /// A stale resourceVersion, or a failed precondition, `why` in the reference server's words.
    pub fn conflict(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {why}",
            Self::qualified(group, plural)
        );
        Self::new(StatusCode::CONFLICT, "Conflict", message)
            .with_details(Self::about(group, plural, name))
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// Validation failed: one cause per error. `kind` is the Kind, not the plural.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        // Each text once, though each cause stays: the reference server counts some checks twice.
        let mut list: Vec<String> = Vec::new();
        for text in errors.iter().map(ToString::to_string) {
            if !list.contains(&text) {
                list.push(text);
            }
        }
        let text = if let [one] = list.as_slice() {
            one.clone()
        } else {
            format!("[{}]", list.join(", "))
        };
        let causes = errors
            .iter()
            .map(|error| json!({"reason": error.kind.as_str(), "message": error.message, "field": error.path}))
            .collect::<Vec<_>>();
        let mut details = Self::about(group, kind, name);
        details["causes"] = causes.into();
        let message = format!(
            "{} \"{name}\" is invalid: {text}",
            Self::qualified(group, kind)
        );
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).with_details(details)
    }

    /// `message` is the whole text behind `forbidden: `-like prefixes; use [`crate::access`] for authorization denials.
    pub fn forbidden(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let qualified = Self::qualified(group, plural);
        let message = if name.is_empty() {
            format!("{qualified} is forbidden: {why}")
        } else {
            format!("{qualified} \"{name}\" is forbidden: {why}")
        };
        let mut details = json!({"kind": plural});
        if !name.is_empty() {
            details["name"] = name.into();
        }
        if !group.is_empty() {
            details["group"] = group.into();
        }
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).with_details(details)
    }

    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    /// Options in the query or in the body of a DELETE that are not allowed; `kind` is `CreateOptions` and the like.
    pub fn options(kind: &str, errors: &[FieldError]) -> Self {
        Self::invalid("meta.k8s.io", kind, "", errors)
    }

    /// A path of a built-in group that names nothing.
    pub fn unknown_path() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "NotFound",
            "the server could not find the requested resource",
        )
        .with_details(json!({}))
    }

    pub fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
        .with_details(json!({}))
    }

    /// What the reference server sends as a bare 500 for some malformed input.
    pub fn bare_internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
    }

    /// The store or the server has too much to do; the client is to come back.
    pub fn busy(message: &str) -> Self {
        let mut failure = Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message)
            .with_details(json!({"retryAfterSeconds": 1}));
        failure.retry_after = Some(1);
        failure
    }

    pub fn unavailable(message: impl Into<String>) -> Self {
        let mut failure = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "ServiceUnavailable",
            message,
        )
        .with_details(json!({"retryAfterSeconds": 1}));
        failure.retry_after = Some(1);
        failure
    }

    /// The Status object.
    pub fn body(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code.as_u16(),
        });
        if let Some(token) = &self.continue_ {
            status["metadata"]["continue"] = token.as_str().into();
        }
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status
    }
}
