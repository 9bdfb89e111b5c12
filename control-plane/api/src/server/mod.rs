//! The server: what it serves, by which rules, within which limits.
//!
//! - [`builder`]: putting one together
//! - [`limits`]: what a client may take
//! - [`serve`]: listeners, TLS, connections, shutdown
//! - [`handle`]: one request, from its head to the head of its answer
//! - [`resource`]: requests to resources
//! - [`body`]: bodies of answers
//! - [`health`], [`discovery`], [`version`], [`metrics`]: endpoints that are no resources

pub mod body;
pub mod builder;
pub(crate) mod discovery;
pub(crate) mod handle;
pub(crate) mod health;
pub mod limits;
pub(crate) mod metrics;
pub(crate) mod resource;
pub(crate) mod serve;
pub mod version;

use std::sync::Arc;

use bytes::Bytes;
use evenkeel_store::{Resource, Store};
use futures::future::BoxFuture;
use http::{Response, request::Parts};
use parking_lot::Mutex;
use prometheus_client::registry::Registry as MetricsRegistry;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

pub use self::{builder::ServerBuilder, limits::Limits, version::VersionInfo};
use crate::{
    access::{Admission, Authenticator, Authorizer, Observer, UserInfo},
    kind::Registry,
};

/// Says whether a part of the process is ready, or why not.
pub type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// An endpoint that is no resource. It is authorized as a path, by the lower-case method.
pub trait Route: Send + Sync {
    fn answer(
        &self,
        user: Arc<UserInfo>,
        request: Parts,
        body: Bytes,
    ) -> BoxFuture<'_, Response<Bytes>>;
}

/// A generic API server over a table of kinds.
pub struct Server {
    store: Store,
    registry: Arc<Registry>,
    authenticators: Vec<Arc<dyn Authenticator>>,
    authorizers: Vec<Arc<dyn Authorizer>>,
    admissions: Vec<Arc<dyn Admission>>,
    observers: Vec<Arc<dyn Observer>>,
    limits: Limits,
    namespaces: Option<Resource>,
    version: VersionInfo,
    readiness: Vec<(String, Check)>,
    public_paths: Vec<String>,
    routes: Vec<(String, Arc<dyn Route>)>,
    metrics_registry: Arc<Mutex<MetricsRegistry>>,
    metrics: metrics::Metrics,
    discovery: discovery::Cache,
    /// Requests that are being handled, watches aside.
    in_flight: Semaphore,
    /// Watches that are open.
    watches: Arc<Semaphore>,
    /// Cancelled when the server shuts down: watches end.
    ending: CancellationToken,
}

impl Server {
    /// Begins a server over a store and a table of kinds.
    pub fn builder(store: Store, registry: Arc<Registry>) -> ServerBuilder {
        ServerBuilder::new(store, registry)
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Where other parts of the process register their metrics, before it serves.
    pub fn metrics_registry(&self) -> Arc<Mutex<MetricsRegistry>> {
        Arc::clone(&self.metrics_registry)
    }

    /// Answers one request as if it had come over a connection without TLS: for tests, and for whatever speaks HTTP to
    /// this server inside the process.
    pub async fn answer<B>(self: &Arc<Self>, request: http::Request<B>) -> Response<body::Body>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        handle::handle(Arc::clone(self), Arc::default(), request).await
    }

    /// Whether a user may do what follows from a request: creating what is to be changed and is not there.
    pub(crate) fn authorize(
        &self,
        user: &UserInfo,
        attributes: &crate::access::Attributes,
    ) -> Result<(), crate::failure::Failure> {
        handle::authorize(self, user, attributes)
    }

    pub(crate) fn admissions(&self) -> &[Arc<dyn Admission>] {
        &self.admissions
    }

    pub(crate) fn namespaces(&self) -> Option<&Resource> {
        self.namespaces.as_ref()
    }

    pub(crate) fn ending(&self) -> CancellationToken {
        self.ending.clone()
    }
}
