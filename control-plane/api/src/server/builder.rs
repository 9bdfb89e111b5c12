//! Putting a server together.

use std::sync::Arc;

use evenkeel_store::{Resource, Store};
use parking_lot::Mutex;
use prometheus_client::registry::Registry as MetricsRegistry;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{Check, Limits, Route, Server, VersionInfo, discovery, metrics::Metrics};
use crate::{
    access::{Admission, Authenticator, Authorizer, Observer},
    kind::Registry,
};

/// A server that is being put together. Chains are asked in the order in which their links were added.
pub struct ServerBuilder {
    server: Server,
}

impl ServerBuilder {
    pub(super) fn new(store: Store, registry: Arc<Registry>) -> Self {
        let limits = Limits::default();
        let mut metrics_registry = MetricsRegistry::default();
        let metrics = Metrics::register(&mut metrics_registry);
        Self {
            server: Server {
                store,
                registry,
                authenticators: Vec::new(),
                authorizers: Vec::new(),
                admissions: Vec::new(),
                observers: Vec::new(),
                in_flight: Semaphore::new(limits.max_in_flight),
                watches: Arc::new(Semaphore::new(limits.max_watches)),
                limits,
                namespaces: None,
                version: VersionInfo::default(),
                readiness: Vec::new(),
                public_paths: ["/healthz", "/livez", "/readyz", "/version"]
                    .map(str::to_owned)
                    .to_vec(),
                routes: Vec::new(),
                metrics_registry: Arc::new(Mutex::new(metrics_registry)),
                metrics,
                discovery: discovery::Cache::default(),
                ending: CancellationToken::new(),
            },
        }
    }

    /// Without any, everybody is anonymous.
    #[must_use]
    pub fn authenticator(mut self, authenticator: Arc<dyn Authenticator>) -> Self {
        self.server.authenticators.push(authenticator);
        self
    }

    /// Without any, nobody may do anything but read the public paths.
    #[must_use]
    pub fn authorizer(mut self, authorizer: Arc<dyn Authorizer>) -> Self {
        self.server.authorizers.push(authorizer);
        self
    }

    #[must_use]
    pub fn admission(mut self, admission: Arc<dyn Admission>) -> Self {
        self.server.admissions.push(admission);
        self
    }

    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.server.observers.push(observer);
        self
    }

    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.server.in_flight = Semaphore::new(limits.max_in_flight);
        self.server.watches = Arc::new(Semaphore::new(limits.max_watches));
        self.server.limits = limits;
        self
    }

    /// The resource whose objects must exist before something is created in a namespace.
    #[must_use]
    pub fn namespaces(mut self, resource: Resource) -> Self {
        self.server.namespaces = Some(resource);
        self
    }

    #[must_use]
    pub fn version(mut self, version: VersionInfo) -> Self {
        self.server.version = version;
        self
    }

    /// A check of `/readyz` and `/healthz`, by its name.
    #[must_use]
    pub fn readiness(mut self, name: impl Into<String>, check: Check) -> Self {
        self.server.readiness.push((name.into(), check));
        self
    }

    /// A path that everybody may read.
    #[must_use]
    pub fn public_path(mut self, path: impl Into<String>) -> Self {
        self.server.public_paths.push(path.into());
        self
    }

    /// An endpoint that is no resource. A path that ends in `/` takes everything below it.
    #[must_use]
    pub fn route(mut self, path: impl Into<String>, route: Arc<dyn Route>) -> Self {
        self.server.routes.push((path.into(), route));
        self
    }

    pub fn build(self) -> Arc<Server> {
        Arc::new(self.server)
    }
}
