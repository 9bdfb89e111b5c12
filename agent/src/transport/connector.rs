//! TCP and TLS to one server, with a deadline over both.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::{
    client::legacy::connect::{Connected, Connection},
    rt::TokioIo,
};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

/// Name resolution, TCP and TLS together.
const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

/// Opens connections; `http` URLs go without TLS.
#[derive(Clone)]
pub struct Connector {
    tls: Option<Arc<ClientConfig>>,
    /// Checked in place of the URL's host.
    server_name: Option<ServerName<'static>>,
}

impl Connector {
    pub fn new(tls: Option<Arc<ClientConfig>>, server_name: Option<ServerName<'static>>) -> Self {
        Self { tls, server_name }
    }

    async fn connect(self, uri: Uri) -> io::Result<Stream> {
        let deadline = tokio::time::timeout(CONNECT_DEADLINE, self.connect_now(&uri));
        deadline.await.unwrap_or_else(|_| {
            Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("no connection within {}s", CONNECT_DEADLINE.as_secs()),
            ))
        })
    }

    async fn connect_now(self, uri: &Uri) -> io::Result<Stream> {
        let host = uri
            .host()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the URL names no host"))?
            .trim_start_matches('[')
            .trim_end_matches(']');
        let secure = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let tcp = TcpStream::connect((host, port)).await?;
        tcp.set_nodelay(true)?;
        if !secure {
            return Ok(Stream::Plain(TokioIo::new(tcp)));
        }
        let Some(tls) = self.tls else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "there are no credentials for a TLS connection",
            ));
        };
        let name = match self.server_name {
            Some(name) => name,
            None => ServerName::try_from(host.to_owned())
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?,
        };
        let stream = TlsConnector::from(tls).connect(name, tcp).await?;
        Ok(Stream::Tls(Box::new(TokioIo::new(stream))))
    }
}

impl tower::Service<Uri> for Connector {
    type Response = Stream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}

/// An open connection.
pub enum Stream {
    Plain(TokioIo<TcpStream>),
    Tls(Box<TokioIo<TlsStream<TcpStream>>>),
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        match self {
            Self::Tls(stream) if stream.inner().get_ref().1.alpn_protocol() == Some(b"h2") => {
                Connected::new().negotiated_h2()
            }
            _ => Connected::new(),
        }
    }
}

macro_rules! delegate {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            Stream::Plain($stream) => {
                let $stream = Pin::new($stream);
                $call
            }
            Stream::Tls($stream) => {
                let $stream = Pin::new(&mut **$stream);
                $call
            }
        }
    };
}

impl Read for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        delegate!(self, stream => stream.poll_read(cx, buffer))
    }
}

impl Write for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        delegate!(self, stream => stream.poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => stream.poll_shutdown(cx))
    }
}
