//! Get, and waiting for a revision.

use std::time::Duration;

use evenkeel_store::Revision;
use http::StatusCode;
use serde_json::json;

use super::{Answer, Call};
use crate::{failure::Failure, request::syntax, server::Server};

/// How long a read waits for a revision that is not there yet.
const PATIENCE: Duration = Duration::from_secs(3);

/// Reads one object. `resource_version`: not older than this.
pub(crate) async fn get(
    server: &Server,
    call: &Call,
    resource_version: &str,
) -> Result<Answer, Failure> {
    if let Some(revision) = revision(resource_version)? {
        reach(server, revision).await?;
    }
    server
        .store()
        .get(&call.key(&call.name))
        .map(Answer::stored)
        .ok_or_else(|| call.not_found(&call.name))
}

/// A resourceVersion in a query; `None` for none at all and for `0`, any state.
pub(crate) fn revision(text: &str) -> Result<Option<Revision>, Failure> {
    if text.is_empty() || text == "0" {
        return Ok(None);
    }
    match text.parse() {
        Ok(revision) => Ok(Some(Revision(revision))),
        Err(_) => Err(Failure::bare_internal(format!(
            "resourceVersion: Invalid value: {}: {}",
            serde_json::Value::from(text),
            unparsable(text)
        ))),
    }
}

/// What the reference server says of a resourceVersion that is no number.
pub(crate) fn unparsable(text: &str) -> String {
    let why = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        "value out of range"
    } else {
        "invalid syntax"
    };
    format!("strconv.ParseUint: parsing {}: {why}", syntax::quote(text))
}

/// Waits until the store stands at a revision, for a while.
pub(crate) async fn reach(server: &Server, revision: Revision) -> Result<(), Failure> {
    if server.store().revision() >= revision
        || tokio::time::timeout(PATIENCE, server.store().reached(revision))
            .await
            .is_ok()
    {
        return Ok(());
    }
    let mut failure = Failure::new(
        StatusCode::GATEWAY_TIMEOUT,
        "Timeout",
        format!(
            "Timeout: Too large resource version: {revision}, current: {}",
            server.store().revision()
        ),
    )
    .with_details(json!({
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }));
    failure.retry_after = Some(1);
    Err(failure)
}
