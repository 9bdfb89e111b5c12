//! Talking to a control plane that serves, as its administrator: with the kubeconfig in its data directory.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use serde::Deserialize;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// For a connection to be made.
const CONNECT: Duration = Duration::from_secs(10);
/// The largest answer that is read.
const MAX_ANSWER: usize = 64 << 20;

/// Why a command could not be carried out by the control plane that serves.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    #[error("cannot read {path}: {error}; is this the data directory of a control plane that was started?", path = path.display())]
    Kubeconfig {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("{path} is not an administrator's kubeconfig: {reason}", path = path.display())]
    Malformed { path: PathBuf, reason: String },
    #[error("cannot reach the control plane at {server}: {error}; is it running?")]
    Unreachable {
        server: String,
        error: std::io::Error,
    },
    #[error("the control plane at {server} broke off: {error}")]
    Broken { server: String, error: String },
    #[error("{0}")]
    Refused(String),
}

#[derive(Deserialize)]
struct Kubeconfig {
    clusters: Vec<NamedCluster>,
    users: Vec<NamedUser>,
}

#[derive(Deserialize)]
struct NamedCluster {
    cluster: ClusterEntry,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct ClusterEntry {
    server: String,
    certificate_authority_data: String,
}

#[derive(Deserialize)]
struct NamedUser {
    user: UserEntry,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct UserEntry {
    client_certificate_data: String,
    client_key_data: String,
}

/// The administrator's way to a control plane on this machine.
pub struct Remote {
    server: String,
    host: String,
    port: u16,
    tls: Arc<ClientConfig>,
}

impl Remote {
    /// Reads `admin.kubeconfig` of a data directory.
    pub fn open(data_dir: &Path) -> Result<Self, RemoteError> {
        let path = data_dir.join("admin.kubeconfig");
        let text = std::fs::read_to_string(&path).map_err(|error| RemoteError::Kubeconfig {
            path: path.clone(),
            error,
        })?;
        Self::parse(&text).map_err(|reason| RemoteError::Malformed { path, reason })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let config: Kubeconfig = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        let cluster = config.clusters.into_iter().next().ok_or("no cluster")?;
        let user = config.users.into_iter().next().ok_or("no user")?;
        let server = cluster.cluster.server;
        let uri = server.parse::<Uri>().map_err(|error| error.to_string())?;
        let host = uri
            .host()
            .ok_or("no host")?
            .trim_matches(['[', ']'])
            .to_owned();
        let authority = pem(&cluster.cluster.certificate_authority_data)?;
        let chain = pem(&user.user.client_certificate_data)?;
        let key = pem(&user.user.client_key_data)?;
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&authority) {
            let certificate = certificate.map_err(|error| error.to_string())?;
            roots.add(certificate).map_err(|error| error.to_string())?;
        }
        let chain = CertificateDer::pem_slice_iter(&chain)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| error.to_string())?;
        let key = PrivateKeyDer::from_pem_slice(&key).map_err(|_| "no private key")?;
        let tls = ClientConfig::builder_with_provider(crate::pki::provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .map_err(|error| error.to_string())?;
        Ok(Self {
            port: uri.port_u16().unwrap_or(443),
            host,
            server,
            tls: Arc::new(tls),
        })
    }

    /// The URL that is dialled.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// One request; an answer that is no success is an error with the text of its Status.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        within: Duration,
    ) -> Result<Value, RemoteError> {
        let broken = |error: String| RemoteError::Broken {
            server: self.server.clone(),
            error,
        };
        let answer = tokio::time::timeout(within, self.exchange(method, path, body))
            .await
            .map_err(|_| {
                broken(format!(
                    "no answer within {}",
                    humantime::format_duration(within)
                ))
            })?;
        let (status, bytes) = answer?;
        let value = serde_json::from_slice::<Value>(&bytes).unwrap_or(Value::Null);
        if status.is_success() {
            return Ok(value);
        }
        let message = value["message"].as_str().map_or_else(
            || String::from_utf8_lossy(&bytes).trim().to_owned(),
            str::to_owned,
        );
        Err(RemoteError::Refused(format!("{message} ({status})")))
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Bytes), RemoteError> {
        let broken = |error: String| RemoteError::Broken {
            server: self.server.clone(),
            error,
        };
        let unreachable = |error| RemoteError::Unreachable {
            server: self.server.clone(),
            error,
        };
        let connect = async {
            let socket = TcpStream::connect((self.host.as_str(), self.port)).await?;
            let name = ServerName::try_from(self.host.clone())
                .map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidInput, error))?;
            TlsConnector::from(Arc::clone(&self.tls))
                .connect(name, socket)
                .await
        };
        let stream = tokio::time::timeout(CONNECT, connect)
            .await
            .map_err(|_| unreachable(std::io::ErrorKind::TimedOut.into()))?
            .map_err(unreachable)?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| broken(error.to_string()))?;
        let content = body.map(Value::to_string).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, format!("{}:{}", self.host, self.port))
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/json")
            .header(
                header::USER_AGENT,
                concat!("evenkeel-control-plane/", env!("CARGO_PKG_VERSION")),
            )
            .body(Full::new(Bytes::from(content)))
            .map_err(|error| broken(error.to_string()))?;
        let answer = async {
            let answer = sender
                .send_request(request)
                .await
                .map_err(|error| error.to_string())?;
            let status = answer.status();
            let bytes = Limited::new(answer.into_body(), MAX_ANSWER)
                .collect()
                .await
                .map_err(|error| error.to_string())?
                .to_bytes();
            Ok::<_, String>((status, bytes))
        };
        tokio::pin!(answer);
        tokio::select! {
            answer = &mut answer => answer.map_err(broken),
            ended = connection => match ended {
                Ok(()) => answer.await.map_err(broken),
                Err(error) => Err(broken(error.to_string())),
            },
        }
    }
}

fn pem(text: &str) -> Result<Vec<u8>, String> {
    STANDARD
        .decode(text.trim())
        .map_err(|error| error.to_string())
}
