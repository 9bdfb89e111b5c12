//! Listeners, TLS, connections, shutdown.

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use http::{Request, Response};
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Server,
    body::Body,
    handle::{Peer, handle},
    limits::Limits,
};

/// How long the listener rests when the process has no file descriptor left.
const REST: Duration = Duration::from_millis(50);
/// The flow-control windows of HTTP/2: a client may send this much of a body before it is read. Small, for they bound
/// what ten thousand connections can make the server hold; a status of 7 kB fits well.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 256 * 1024;
/// How much of an answer is held for a client that is slow to take it, per stream.
const SEND_BUFFER: usize = 64 * 1024;

impl Server {
    /// Serves until `shutdown`: then no connection is accepted, watches end, and what is being handled may finish
    /// within the drain timeout. Without `tls` it speaks plain HTTP; the configuration of `tls` may change while it
    /// serves, and new connections get the new one.
    ///
    /// # Errors
    /// The listener failed for good.
    pub async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        tls: Option<watch::Receiver<Arc<ServerConfig>>>,
        shutdown: CancellationToken,
    ) -> io::Result<()> {
        let places = Arc::new(Semaphore::new(self.limits.max_connections));
        let connections = TaskTracker::new();
        let closing = CancellationToken::new();
        let killed = CancellationToken::new();
        let outcome = loop {
            let accepted = tokio::select! {
                biased;
                () = shutdown.cancelled() => break Ok(()),
                accepted = listener.accept() => accepted,
            };
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) if is_fatal(&error) => break Err(error),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(REST).await;
                    continue;
                }
            };
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                self.metrics.refused_connections.inc();
                drop(stream);
                continue;
            };
            let connection = Connection {
                server: Arc::clone(&self),
                address,
                closing: closing.clone(),
                _place: place,
            };
            let tls = tls.as_ref().map(|tls| Arc::clone(&tls.borrow()));
            let killed = killed.clone();
            connections.spawn(async move {
                killed
                    .run_until_cancelled(connection.run(stream, tls))
                    .await;
            });
        };
        drop(listener);
        self.ending.cancel();
        closing.cancel();
        connections.close();
        if timeout(self.limits.drain_timeout, connections.wait())
            .await
            .is_err()
        {
            tracing::warn!(
                left = connections.len(),
                "connections cut at the end of the drain"
            );
            killed.cancel();
            connections.wait().await;
        }
        outcome
    }
}

/// Running out of descriptors or memory passes; a listener that is none does not.
fn is_fatal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidInput | io::ErrorKind::NotConnected
    )
}

/// An answer in the making, boxed: a connection holds one for each of its open streams.
type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

struct Connection {
    server: Arc<Server>,
    address: SocketAddr,
    closing: CancellationToken,
    _place: OwnedSemaphorePermit,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.server.metrics.connections.dec();
    }
}

impl Connection {
    async fn run(self, stream: TcpStream, tls: Option<Arc<ServerConfig>>) {
        self.server.metrics.connections.inc();
        let _ = stream.set_nodelay(true);
        let ended = match tls {
            Some(tls) => self.secure(stream, tls).await,
            None => self.plain(stream).await,
        };
        if let Err(error) = ended {
            tracing::debug!(address = %self.address, %error, "connection ended");
        }
    }

    async fn secure(&self, stream: TcpStream, tls: Arc<ServerConfig>) -> Result<(), String> {
        let handshake = TlsAcceptor::from(tls).accept(stream);
        let stream = match timeout(self.server.limits.handshake_timeout, handshake).await {
            Ok(Ok(stream)) => stream,
            failed => {
                self.server.metrics.failed_handshakes.inc();
                return Err(match failed {
                    Ok(Err(error)) => format!("TLS handshake: {error}"),
                    _ => "TLS handshake took too long".into(),
                });
            }
        };
        let (_, session) = stream.get_ref();
        let certificate = session
            .peer_certificates()
            .and_then(|chain| chain.first())
            .map(|certificate| certificate.as_ref().to_vec());
        let http2 = session.alpn_protocol() == Some(b"h2");
        let peer = Arc::new(Peer::new(certificate));
        if http2 {
            Box::pin(self.http2(stream, peer)).await
        } else {
            Box::pin(self.http1(stream, peer)).await
        }
    }

    /// Without TLS there is no ALPN: an HTTP/2 client begins with `PRI`, which no HTTP/1.1 method does.
    async fn plain(&self, stream: TcpStream) -> Result<(), String> {
        let mut head = [0; 3];
        let seen = timeout(self.server.limits.header_timeout, stream.peek(&mut head))
            .await
            .map_err(|_| "no request came".to_owned())?
            .map_err(|error| error.to_string())?;
        let peer = Arc::new(Peer::new(None));
        if &head[..seen] == b"PRI" {
            Box::pin(self.http2(stream, peer)).await
        } else {
            Box::pin(self.http1(stream, peer)).await
        }
    }

    fn service(&self, peer: Arc<Peer>) -> impl Fn(Request<Incoming>) -> Answer + Clone + use<> {
        let server = Arc::clone(&self.server);
        move |request| {
            let (server, peer) = (Arc::clone(&server), Arc::clone(&peer));
            Box::pin(async move { Ok(handle(server, peer, request).await) })
        }
    }

    async fn http2(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        peer: Arc<Peer>,
    ) -> Result<(), String> {
        let Limits {
            max_streams,
            max_headers,
            ping_interval,
            ping_timeout,
            ..
        } = self.server.limits;
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(max_streams)
            .max_header_list_size(max_headers)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(SEND_BUFFER)
            .keep_alive_interval(ping_interval)
            .keep_alive_timeout(ping_timeout)
            .serve_connection(TokioIo::new(stream), service_fn(self.service(peer)));
        let mut connection = pin!(connection);
        tokio::select! {
            ended = connection.as_mut() => return ended.map_err(|error| error.to_string()),
            () = self.closing.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        connection.await.map_err(|error| error.to_string())
    }

    async fn http1(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        peer: Arc<Peer>,
    ) -> Result<(), String> {
        let limits = &self.server.limits;
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.header_timeout)
            .max_buf_size((limits.max_headers as usize + limits.max_url).max(8 * 1024))
            .serve_connection(TokioIo::new(stream), service_fn(self.service(peer)));
        let mut connection = pin!(connection);
        tokio::select! {
            ended = connection.as_mut() => return ended.map_err(|error| error.to_string()),
            () = self.closing.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        connection.await.map_err(|error| error.to_string())
    }
}
