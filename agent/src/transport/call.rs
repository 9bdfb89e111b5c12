//! One request, one answer, within a deadline.

use std::{error::Error, time::Duration};

use http::{Method, Request, header};
use kube::core::Status;
use serde::{Serialize, de::DeserializeOwned};

/// Why a request did not do what it should.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    /// The server answered, and refused.
    #[error("{} ({} {})", .0.message, .0.code, .0.reason)]
    Refused(Box<Status>),
    /// There was no answer.
    #[error("no answer: {0}")]
    Silent(String),
    /// There was no answer in time.
    #[error("no answer within {}", humantime::format_duration(*.0))]
    Late(Duration),
    /// The answer was not what was asked for.
    #[error("not understood: {0}")]
    Garbled(String),
}

impl Failure {
    /// The HTTP status of a refusal.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Refused(status) => Some(status.code),
            _ => None,
        }
    }

    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    pub fn is_conflict(&self) -> bool {
        self.code() == Some(409)
    }

    /// Whether the same request may well succeed later: nobody answered, or the server is overloaded or unwell.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Refused(status) => status.code == 429 || status.code >= 500,
            Self::Silent(_) | Self::Late(_) => true,
            Self::Garbled(_) => false,
        }
    }
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused(status),
            kube::Error::SerdeError(error) => Self::Garbled(error.to_string()),
            kube::Error::Service(error) => Self::Silent(chain(error.as_ref())),
            kube::Error::HyperError(error) => Self::Silent(chain(&error)),
            error => Self::Silent(chain(&error)),
        }
    }
}

/// An error and its causes in one line, without repeating what a cause says already.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

/// A client with a deadline.
#[derive(Clone)]
pub struct Caller {
    client: kube::Client,
    deadline: Duration,
}

impl Caller {
    pub fn new(client: kube::Client, deadline: Duration) -> Self {
        Self { client, deadline }
    }

    pub fn client(&self) -> &kube::Client {
        &self.client
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        content_type: &'static str,
        body: Vec<u8>,
    ) -> Result<T, Failure> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, content_type)
            .body(body)
            .map_err(|error| Failure::Garbled(error.to_string()))?;
        match tokio::time::timeout(self.deadline, self.client.request(request)).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(Failure::Late(self.deadline)),
        }
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.send(Method::GET, path, "application/json", Vec::new())
            .await
    }

    /// `None`: it is not there.
    pub async fn find<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, Failure> {
        match self.get(path).await {
            Ok(object) => Ok(Some(object)),
            Err(failure) if failure.is_not_found() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    pub async fn create<B: Serialize, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<T, Failure> {
        self.send(Method::POST, path, "application/json", encode(body)?)
            .await
    }

    /// A JSON merge patch, in the agent's name.
    pub async fn merge<B: Serialize, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<T, Failure> {
        let path = format!(
            "{path}?fieldManager={}",
            evenkeel_shared::stamps::AGENT_MANAGER
        );
        let kind = "application/merge-patch+json";
        self.send(Method::PATCH, &path, kind, encode(body)?).await
    }

    /// A server-side apply, in the agent's name.
    pub async fn apply<B: Serialize, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
        force: bool,
    ) -> Result<T, Failure> {
        let path = format!(
            "{path}?fieldManager={}&force={force}",
            evenkeel_shared::stamps::AGENT_MANAGER
        );
        // JSON is YAML.
        let kind = "application/apply-patch+yaml";
        self.send(Method::PATCH, &path, kind, encode(body)?).await
    }

    /// Deletes, with what it owns, in the background. Something that is gone already counts as deleted.
    pub async fn delete<B: Serialize>(&self, path: &str, options: &B) -> Result<(), Failure> {
        let answer: Result<serde::de::IgnoredAny, Failure> = self
            .send(Method::DELETE, path, "application/json", encode(options)?)
            .await;
        match answer {
            Ok(_) => Ok(()),
            Err(failure) if failure.is_not_found() => Ok(()),
            Err(failure) => Err(failure),
        }
    }
}

fn encode<B: Serialize>(body: &B) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(body).map_err(|error| Failure::Garbled(error.to_string()))
}
