//! A light HTTP client over TLS: one connection, JSON in and out, latencies not blurred by a pool.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    #[error("cannot connect: {0}")]
    Connect(#[from] std::io::Error),
    #[error(transparent)]
    Http(#[from] hyper::Error),
    #[error("cannot make the request: {0}")]
    Request(#[from] http::Error),
    #[error("no answer within {0:?}")]
    Deadline(Duration),
    #[error("the answer is not JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub code: StatusCode,
    pub headers: http::HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub fn json(&self) -> Result<Value, WireError> {
        Ok(serde_json::from_slice(&self.body)?)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Where and how to connect.
#[derive(Clone)]
pub struct Endpoint {
    pub address: SocketAddr,
    pub tls: Arc<rustls::ClientConfig>,
    /// Sent as `Authorization: Bearer`.
    pub bearer: Option<String>,
    /// For connecting, and again for each answer.
    pub deadline: Duration,
}

enum Sender {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

/// One connection. Ends when dropped.
pub struct Connection {
    sender: Sender,
    authority: String,
    bearer: Option<String>,
    deadline: Duration,
    driver: tokio::task::JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Endpoint {
    /// Connects; HTTP/2 when both sides offer it.
    pub async fn connect(&self) -> Result<Connection, WireError> {
        tokio::time::timeout(self.deadline, self.dial())
            .await
            .map_err(|_| WireError::Deadline(self.deadline))?
    }

    async fn dial(&self) -> Result<Connection, WireError> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::IpAddress(self.address.ip().into());
        let stream = TlsConnector::from(self.tls.clone())
            .connect(name, stream)
            .await?;
        let two = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let io = TokioIo::new(stream);
        let (sender, driver) = if two {
            // Windows and buffers as small as the traffic: a fleet's worth of these lives in one process.
            let (sender, connection) = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .initial_stream_window_size(64 * 1024)
                .initial_connection_window_size(64 * 1024)
                .max_send_buf_size(16 * 1024)
                .max_header_list_size(16 * 1024)
                .handshake(io)
                .await?;
            (
                Sender::Two(sender),
                tokio::spawn(async move { drop(connection.await) }),
            )
        } else {
            let (sender, connection) = http1::handshake(io).await?;
            (
                Sender::One(sender),
                tokio::spawn(async move { drop(connection.await) }),
            )
        };
        Ok(Connection {
            sender,
            authority: self.address.to_string(),
            bearer: self.bearer.clone(),
            deadline: self.deadline,
            driver,
        })
    }

    /// One request on a connection of its own.
    pub async fn once(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, WireError> {
        self.connect()
            .await?
            .send(
                method,
                path,
                "application/json",
                body.map(encode).unwrap_or_default(),
            )
            .await
    }
}

fn encode(body: &Value) -> Bytes {
    body.to_string().into()
}

impl Connection {
    pub async fn get(&mut self, path: &str) -> Result<Answer, WireError> {
        self.send(Method::GET, path, "", Bytes::new()).await
    }

    pub async fn post(&mut self, path: &str, body: &Value) -> Result<Answer, WireError> {
        self.send(Method::POST, path, "application/json", encode(body))
            .await
    }

    pub async fn put(&mut self, path: &str, body: &Value) -> Result<Answer, WireError> {
        self.send(Method::PUT, path, "application/json", encode(body))
            .await
    }

    /// A merge patch.
    pub async fn patch(&mut self, path: &str, body: &Value) -> Result<Answer, WireError> {
        self.send(
            Method::PATCH,
            path,
            "application/merge-patch+json",
            encode(body),
        )
        .await
    }

    /// A request, and its whole answer within the deadline.
    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        content: &str,
        body: Bytes,
    ) -> Result<Answer, WireError> {
        let deadline = self.deadline;
        let exchange = async {
            let response = self.open(method, path, content, body).await?;
            let (parts, body) = response.into_parts();
            let body = body.collect().await?.to_bytes();
            Ok(Answer {
                code: parts.status,
                headers: parts.headers,
                body,
            })
        };
        tokio::time::timeout(deadline, exchange)
            .await
            .map_err(|_| WireError::Deadline(deadline))?
    }

    /// A request whose answer is read as it comes: a watch.
    pub async fn open(
        &mut self,
        method: Method,
        path: &str,
        content: &str,
        body: Bytes,
    ) -> Result<http::Response<hyper::body::Incoming>, WireError> {
        let mut request = Request::builder().method(method);
        request = match &self.sender {
            Sender::One(_) => request.uri(path).header(header::HOST, &self.authority),
            Sender::Two(_) => request.uri(format!("https://{}{path}", self.authority)),
        };
        if !content.is_empty() {
            request = request.header(header::CONTENT_TYPE, content);
        }
        if let Some(bearer) = &self.bearer {
            request = request.header(header::AUTHORIZATION, format!("Bearer {bearer}"));
        }
        let request = request.body(Full::new(body))?;
        Ok(match &mut self.sender {
            Sender::One(sender) => sender.send_request(request).await?,
            Sender::Two(sender) => sender.send_request(request).await?,
        })
    }
}
