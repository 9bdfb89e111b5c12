//! Asking the member's API server how it is, and what its answer means.

use std::time::Duration;

use evenkeel_shared::stamps::{
    REASON_CLUSTER_NOT_REACHABLE, REASON_CLUSTER_NOT_READY, REASON_CLUSTER_READY,
};
use http::{Request, Response};
use kube::client::Body;
use tokio::time::Instant;

use crate::transport::Failure;

/// Most of an unhappy answer that is read.
const LONGEST_ANSWER: usize = 64 * 1024;
/// Most failing checks that a message names.
const MOST_CHECKS: usize = 5;

/// What came of asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Status { code: u16, body: String },
    Nothing(String),
}

/// What a probe says of the member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observation {
    Healthy,
    /// It answers, and says that it is not well.
    Unhealthy(String),
    /// It does not answer us.
    Unreachable(String),
}

impl Observation {
    pub fn is_healthy(&self) -> bool {
        *self == Self::Healthy
    }

    /// The reason of the Ready condition.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Healthy => REASON_CLUSTER_READY,
            Self::Unhealthy(_) => REASON_CLUSTER_NOT_READY,
            Self::Unreachable(_) => REASON_CLUSTER_NOT_REACHABLE,
        }
    }

    /// The message of the Ready condition.
    pub fn message(&self) -> String {
        match self {
            Self::Healthy => "cluster is healthy and ready to accept workloads".to_owned(),
            Self::Unhealthy(why) => {
                format!("cluster is reachable but health endpoint responded without ok: {why}")
            }
            Self::Unreachable(why) => format!("cluster is not reachable: {why}"),
        }
    }

    /// What is wrong, if anything.
    pub fn trouble(&self) -> Option<&str> {
        match self {
            Self::Healthy => None,
            Self::Unhealthy(why) | Self::Unreachable(why) => Some(why),
        }
    }
}

/// Whether the older health endpoint is to be asked too.
pub fn wants_fallback(answer: &Answer) -> bool {
    matches!(answer, Answer::Status { code: 404, .. })
}

/// The table of the design: 200 is well; no answer to us, and an answer that does not let us in, is out of reach;
/// everything else is not well.
pub fn verdict(answer: &Answer) -> Observation {
    match answer {
        Answer::Nothing(why) => Observation::Unreachable(why.clone()),
        Answer::Status { code: 200, .. } => Observation::Healthy,
        Answer::Status { code: 401, .. } => {
            Observation::Unreachable("the member refuses the agent's credentials (401)".to_owned())
        }
        Answer::Status { code: 403, .. } => Observation::Unreachable(
            "the member does not let the agent ask for its health (403)".to_owned(),
        ),
        Answer::Status { code, body } => Observation::Unhealthy(unhappy(*code, body)),
    }
}

/// `[-]etcd failed: reason withheld` is how the endpoint names a check that fails.
fn unhappy(code: u16, body: &str) -> String {
    let failing: Vec<_> = body
        .lines()
        .filter_map(|line| line.trim().strip_prefix("[-]"))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    if failing.is_empty() {
        return format!("status {code}");
    }
    let more = failing.len().saturating_sub(MOST_CHECKS);
    let named = failing[..failing.len() - more].join(", ");
    if more > 0 {
        format!("status {code}, failing checks: {named} and {more} more")
    } else {
        format!("status {code}, failing checks: {named}")
    }
}

/// Probes once, within the deadline.
pub async fn probe(client: &kube::Client, deadline: Duration) -> Observation {
    let end = Instant::now() + deadline;
    let mut answer = ask(client, "/readyz", end, deadline).await;
    if wants_fallback(&answer) {
        answer = ask(client, "/healthz", end, deadline).await;
    }
    verdict(&answer)
}

async fn ask(client: &kube::Client, path: &str, end: Instant, deadline: Duration) -> Answer {
    let request = match Request::get(path).body(Body::empty()) {
        Ok(request) => request,
        Err(error) => return Answer::Nothing(error.to_string()),
    };
    let asked = async {
        let answer = client.send(request).await?;
        let code = answer.status().as_u16();
        let body = if code == 200 {
            String::new()
        } else {
            beginning(answer).await?
        };
        Ok::<_, kube::Error>(Answer::Status { code, body })
    };
    match tokio::time::timeout_at(end, asked).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => match Failure::from(error) {
            Failure::Silent(why) => Answer::Nothing(why),
            failure => Answer::Nothing(failure.to_string()),
        },
        Err(_) => Answer::Nothing(format!(
            "no answer within {}",
            humantime::format_duration(deadline)
        )),
    }
}

async fn beginning(answer: Response<Body>) -> Result<String, kube::Error> {
    use futures::StreamExt;
    let mut body = http_body_util::BodyDataStream::new(answer.into_body());
    let mut text = Vec::new();
    while let Some(bytes) = body.next().await {
        text.extend_from_slice(&bytes?);
        if text.len() >= LONGEST_ANSWER {
            text.truncate(LONGEST_ANSWER);
            break;
        }
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts() {
        let status = |code, body: &str| Answer::Status {
            code,
            body: body.to_owned(),
        };
        let table = [
            ("well", status(200, "ok"), "ClusterReady", ""),
            (
                "a 2xx that is not 200",
                status(204, ""),
                "ClusterNotReady",
                "status 204",
            ),
            (
                "says what fails",
                status(
                    500,
                    "[+]ping ok\n[-]etcd failed: reason withheld\n[-]poststarthook/x failed\nreadyz check failed",
                ),
                "ClusterNotReady",
                "status 500, failing checks: etcd, poststarthook/x",
            ),
            (
                "unavailable",
                status(503, "apiserver shutting down"),
                "ClusterNotReady",
                "status 503",
            ),
            ("too busy", status(429, ""), "ClusterNotReady", "status 429"),
            (
                "no health endpoint at all",
                status(404, ""),
                "ClusterNotReady",
                "status 404",
            ),
            (
                "credentials",
                status(401, ""),
                "ClusterNotReachable",
                "credentials",
            ),
            ("not allowed", status(403, ""), "ClusterNotReachable", "403"),
            (
                "refused",
                Answer::Nothing("connection refused".into()),
                "ClusterNotReachable",
                "connection refused",
            ),
        ];
        for (name, answer, reason, message) in table {
            let observation = verdict(&answer);
            assert_eq!(observation.reason(), reason, "{name}");
            assert!(
                observation.message().contains(message),
                "{name}: {observation:?}"
            );
        }
        let many = "[-]check failed\n".repeat(9);
        assert!(
            verdict(&status(500, &many))
                .message()
                .ends_with("and 4 more")
        );
    }

    #[test]
    fn only_a_missing_endpoint_falls_back() {
        for (code, expected) in [(200, false), (404, true), (403, false), (500, false)] {
            let body = String::new();
            assert_eq!(wants_fallback(&Answer::Status { code, body }), expected);
        }
        assert!(!wants_fallback(&Answer::Nothing(String::new())));
    }
}
