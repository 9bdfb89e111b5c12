//! The patch formats, as pure functions from a stored object and a patch to the next object.
//!
//! - [`json`], [`merge`], [`strategic`]: the three patches of the client's making
//! - [`apply`]: server-side apply
//! - [`managed`]: who owns which fields, for applies and for all other writes
//!
//! No I/O, no clock: `now` is in [`managed::Manager`].

pub mod apply;
mod combine;
mod compare;
mod fieldset;
mod golang;
pub mod json;
pub mod managed;
pub mod merge;
mod path;
mod reset;
pub mod strategic;
mod typed;

use http::StatusCode;
use serde_json::json as value;

use crate::failure::Failure;

pub use apply::{ApplyError, Conflict};
pub use fieldset::{FieldSet, FieldsError};
pub use managed::{Manager, track_update};

/// A patch that cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// 400: the body is no patch.
    #[error("{0}")]
    BadRequest(String),
    /// 422 with the fixed text of JSON patch: an operation does not fit the object.
    #[error("the server rejected our request due to an error in our request")]
    Rejected,
    /// 413
    #[error("{0}")]
    TooLarge(String),
    /// 500 without a reason, which is what the reference server sends for structural errors of applies and strategic merges.
    #[error("{0}")]
    Internal(String),
}

impl From<PatchError> for Failure {
    fn from(error: PatchError) -> Self {
        let message = error.to_string();
        match error {
            PatchError::BadRequest(_) => Self::bad_request(message),
            PatchError::Rejected => Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message)
                .with_details(value!({})),
            PatchError::TooLarge(_) => Self::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "RequestEntityTooLarge",
                message,
            ),
            PatchError::Internal(_) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message),
        }
    }
}

impl From<ApplyError> for Failure {
    fn from(error: ApplyError) -> Self {
        let message = error.to_string();
        match error {
            ApplyError::Invalid(error) => error.into(),
            ApplyError::Conflicts(conflicts) => {
                let causes = conflicts
                    .iter()
                    .map(|conflict| {
                        value!({
                            "reason": "FieldManagerConflict",
                            "message": format!("conflict with {}", conflict.manager),
                            "field": conflict.path,
                        })
                    })
                    .collect::<Vec<_>>();
                Self::new(StatusCode::CONFLICT, "Conflict", message)
                    .with_details(value!({ "causes": causes }))
            }
        }
    }
}
