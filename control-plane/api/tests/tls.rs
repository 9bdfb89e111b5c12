//! The server over TLS: protocols, identities, and certificates that change while it serves.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use evenkeel_api::{
    Limits,
    access::{Attributes, Authorizer, Decision, UserInfo, certificate::CertificateAuthenticator},
};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName},
    server::WebPkiClientVerifier,
};
use tokio::{
    io::AsyncReadExt as _,
    net::{TcpListener, TcpStream},
    sync::watch,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tokio_util::sync::CancellationToken;

mod small;

const DEADLINE: Duration = Duration::from_secs(20);

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.distinguished_name.push(DnType::CommonName, "ca");
        let certificate = params.self_signed(&key).unwrap().der().clone();
        Self {
            issuer: Issuer::new(params, key),
            certificate,
        }
    }

    fn issue(&self, name: &str) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (vec![certificate.der().clone()], key.into())
    }

    fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        Arc::new(roots)
    }

    fn server(&self) -> Arc<ServerConfig> {
        let (chain, key) = self.issue("server");
        let verifier = WebPkiClientVerifier::builder(self.roots())
            .allow_unauthenticated()
            .build()
            .unwrap();
        let mut config = ServerConfig::builder()
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Arc::new(config)
    }

    fn client(&self, name: Option<&str>, protocol: &[u8]) -> ClientConfig {
        let builder = ClientConfig::builder().with_root_certificates(self.roots());
        let mut config = match name {
            Some(name) => {
                let (chain, key) = self.issue(name);
                builder.with_client_auth_cert(chain, key).unwrap()
            }
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![protocol.to_vec()];
        config
    }
}

/// Lets one user in.
struct Only(&'static str);

impl Authorizer for Only {
    fn authorize(&self, user: &UserInfo, _: &Attributes) -> Decision {
        if user.name == self.0 {
            Decision::Allow
        } else {
            Decision::NoOpinion
        }
    }
}

struct Running {
    address: std::net::SocketAddr,
    certificates: watch::Sender<Arc<ServerConfig>>,
    shutdown: CancellationToken,
    task: tokio::task::JoinHandle<std::io::Result<()>>,
}

async fn start(authority: &Authority, limits: Limits) -> Running {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    #[expect(clippy::disallowed_methods, reason = "a test is a shell")]
    let clock = Arc::new(jiff::Timestamp::now);
    let server = small::builder()
        .limits(limits)
        .authenticator(Arc::new(CertificateAuthenticator::new(clock)))
        .authorizer(Arc::new(Only("alice")))
        .build();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (certificates, receiver) = watch::channel(authority.server());
    let shutdown = CancellationToken::new();
    let task = tokio::spawn(server.serve(listener, Some(receiver), shutdown.clone()));
    Running {
        address,
        certificates,
        shutdown,
        task,
    }
}

impl Running {
    async fn connect(&self, config: ClientConfig) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
    }

    async fn get(&self, config: ClientConfig, path: &str) -> (StatusCode, Bytes) {
        let http2 = config.alpn_protocols[0] == b"h2";
        let stream = TokioIo::new(self.connect(config).await.unwrap());
        let request = Request::builder()
            .uri(format!("https://localhost{path}"))
            .header("host", "localhost")
            .body(Empty::<Bytes>::new())
            .unwrap();
        let response = if http2 {
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), stream)
                    .await
                    .unwrap();
            tokio::spawn(connection);
            sender.send_request(request).await.unwrap()
        } else {
            let (mut sender, connection) =
                hyper::client::conn::http1::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            sender.send_request(request).await.unwrap()
        };
        let code = response.status();
        (
            code,
            response.into_body().collect().await.unwrap().to_bytes(),
        )
    }

    async fn stop(self) {
        self.shutdown.cancel();
        timeout(DEADLINE, self.task)
            .await
            .expect("the server stops")
            .unwrap()
            .unwrap();
    }
}

#[tokio::test]
async fn a_certificate_is_who_one_is() {
    let authority = Authority::new();
    let server = start(&authority, Limits::default()).await;
    for (name, protocol, code) in [
        (Some("alice"), b"h2".as_slice(), StatusCode::OK),
        (Some("alice"), b"http/1.1", StatusCode::OK),
        (Some("bob"), b"h2", StatusCode::FORBIDDEN),
        (None, b"h2", StatusCode::FORBIDDEN),
    ] {
        let config = authority.client(name, protocol);
        let (found, body) = server.get(config, "/api/v1/configmaps").await;
        assert_eq!(found, code, "{name:?} {body:?}");
    }
    let config = authority.client(None, b"h2");
    assert_eq!(server.get(config, "/healthz").await.0, StatusCode::OK);
    server.stop().await;
}

#[tokio::test]
async fn the_serving_certificate_changes_while_it_serves() {
    let (old, new) = (Authority::new(), Authority::new());
    let server = start(&old, Limits::default()).await;
    let get = |authority: &Authority| server.get(authority.client(None, b"h2"), "/healthz");
    assert_eq!(get(&old).await.0, StatusCode::OK);
    server.certificates.send(new.server()).unwrap();
    assert_eq!(get(&new).await.0, StatusCode::OK);
    assert!(server.connect(old.client(None, b"h2")).await.is_err());
    server.stop().await;
}

#[tokio::test]
async fn a_handshake_that_does_not_come_is_not_waited_for() {
    let authority = Authority::new();
    let limits = Limits {
        handshake_timeout: Duration::from_millis(50),
        ..Limits::default()
    };
    let server = start(&authority, limits).await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    let mut rest = Vec::new();
    timeout(DEADLINE, silent.read_to_end(&mut rest))
        .await
        .expect("the connection is closed")
        .ok();
    assert!(rest.is_empty());
    server.stop().await;
}

#[tokio::test]
async fn connections_beyond_the_limit_are_closed() {
    let authority = Authority::new();
    let limits = Limits {
        max_connections: 1,
        ..Limits::default()
    };
    let server = start(&authority, limits).await;
    let first = server.connect(authority.client(None, b"h2")).await.unwrap();
    assert!(server.connect(authority.client(None, b"h2")).await.is_err());
    drop(first);
    timeout(DEADLINE, async {
        while server.connect(authority.client(None, b"h2")).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the place is given back");
    server.stop().await;
}
