//! The connection to the control plane: one, over HTTP/2, reopened when it breaks, with credentials that can be
//! exchanged while requests are under way.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderValue, Request, Response, Uri, header};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};
use kube::client::Body;
use parking_lot::RwLock;
use rustls::ClientConfig;

use super::Connector;
use crate::vitals::Vitals;

/// A connection that does not answer a ping for [`PING_TIMEOUT`] is given up.
const PING_INTERVAL: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(10);
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// Who the agent is on this connection.
#[derive(Clone)]
pub struct Credentials {
    pub tls: Arc<ClientConfig>,
    /// A bootstrap token, before there is a certificate.
    pub bearer: Option<HeaderValue>,
}

/// A [`tower::Service`] to build a [`kube::Client`] from. Clones share the connection.
#[derive(Clone)]
pub struct Channel(Arc<Shared>);

struct Shared {
    servers: Vec<Uri>,
    /// Index of the server in use.
    current: AtomicUsize,
    open: RwLock<Open>,
    vitals: Arc<Vitals>,
}

#[derive(Clone)]
struct Open {
    client: Client<Connector, Body>,
    bearer: Option<HeaderValue>,
}

fn open(credentials: Credentials) -> Open {
    let mut tls = (*credentials.tls).clone();
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let client = Client::builder(TokioExecutor::new())
        .http2_only(true)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .pool_idle_timeout(None::<Duration>)
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .build(Connector::new(Some(Arc::new(tls)), None));
    Open {
        client,
        bearer: credentials.bearer,
    }
}

impl Channel {
    /// Nothing is dialled until the first request.
    pub fn new(servers: Vec<Uri>, credentials: Credentials, vitals: Arc<Vitals>) -> Self {
        Self(Arc::new(Shared {
            servers,
            current: AtomicUsize::new(0),
            open: RwLock::new(open(credentials)),
            vitals,
        }))
    }

    /// New requests go out under these credentials, on a new connection. Those under way end on the old one, which
    /// closes after the last of them.
    pub fn exchange(&self, credentials: Credentials) {
        *self.0.open.write() = open(credentials);
    }

    /// A client for everything above HTTP.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.clone(), "default")
    }
}

impl Shared {
    fn server(&self) -> (usize, &Uri) {
        let index = self.current.load(Ordering::Relaxed) % self.servers.len();
        (index, &self.servers[index])
    }

    /// Passes on to the next server, unless somebody did already.
    fn skip(&self, index: usize) {
        let next = (index + 1) % self.servers.len();
        let _ = self
            .current
            .compare_exchange(index, next, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// `path` at `server`, which may have a path of its own.
fn at(server: &Uri, path: &Uri) -> Result<Uri, http::Error> {
    let prefix = server.path().trim_end_matches('/');
    let path = path.path_and_query().map_or("/", |path| path.as_str());
    let mut builder = Uri::builder();
    if let Some(scheme) = server.scheme() {
        builder = builder.scheme(scheme.clone());
    }
    if let Some(authority) = server.authority() {
        builder = builder.authority(authority.clone());
    }
    builder.path_and_query(format!("{prefix}{path}")).build()
}

impl tower::Service<Request<Body>> for Channel {
    type Response = Response<Incoming>;
    type Error = tower::BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Incoming>, tower::BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), tower::BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let shared = Arc::clone(&self.0);
        let open = shared.open.read().clone();
        Box::pin(async move {
            let (index, server) = shared.server();
            *request.uri_mut() = at(server, request.uri())?;
            if let Some(bearer) = open.bearer {
                request.headers_mut().insert(header::AUTHORIZATION, bearer);
            }
            match open.client.request(request).await {
                Ok(response) => {
                    shared.vitals.control_plane_answered();
                    Ok(response)
                }
                Err(error) => {
                    if error.is_connect() {
                        shared.skip(index);
                    }
                    let error = super::call::chain(&error);
                    let error = format!("{server}: {error}");
                    shared.vitals.control_plane_silent(&error);
                    Err(error.into())
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_to_the_servers() {
        for (server, path, whole) in [
            ("https://a:6443", "/api?x=1", "https://a:6443/api?x=1"),
            ("https://a/fleet/", "/apis/x", "https://a/fleet/apis/x"),
            ("https://[::1]:6443/", "/", "https://[::1]:6443/"),
        ] {
            let joined = at(&server.parse().unwrap(), &path.parse().unwrap()).unwrap();
            assert_eq!(joined.to_string(), whole);
        }
    }
}
