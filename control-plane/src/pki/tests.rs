//! Starts, restarts, broken files, renewal and hot swap, over real TLS in this process.

use std::{fs, io::Write as _, os::unix::fs::PermissionsExt as _};

use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, KeyPair};
use rustls::{
    ClientConfig, HandshakeKind, RootCertStore,
    client::Resumption,
    pki_types::{PrivateKeyDer, ServerName, UnixTime},
    time_provider::TimeProvider,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::{TlsAcceptor, TlsConnector, client::TlsStream};

use evenkeel_api::access::certificate::CertificateAuthenticator;

use super::*;

const DAY: Duration = Duration::from_hours(24);

fn start() -> Timestamp {
    "2030-01-01T00:00:00Z".parse().unwrap()
}

fn days(n: u32) -> Timestamp {
    start() + DAY * n
}

fn options(directory: &Path) -> PkiOptions {
    PkiOptions {
        data_dir: directory.into(),
        bind: "127.0.0.1:6443".parse().unwrap(),
        advertise: vec!["fleet.example.com".into()],
        operator: None,
    }
}

fn open(directory: &Path) -> Pki {
    Pki::open(&options(directory), start()).unwrap()
}

/// A clock for rustls.
#[derive(Clone)]
struct At(Clock);

impl fmt::Debug for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("At")
    }
}

impl TimeProvider for At {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from((self.0)().as_second()).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}

fn fixed(now: Timestamp) -> Clock {
    Arc::new(move || now)
}

/// A client that trusts one authority, with or without a certificate.
fn client(
    trusted: &Authority,
    identity: Option<(CertificateDer<'static>, KeyPair)>,
    clock: Clock,
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.certificate().clone()).unwrap();
    let builder = ClientConfig::builder_with_details(provider(), Arc::new(At(clock)))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => builder
            .with_client_auth_cert(
                vec![certificate],
                PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            )
            .unwrap(),
    };
    config.resumption = Resumption::in_memory_sessions(4);
    config.alpn_protocols = vec![b"h2".to_vec()];
    Arc::new(config)
}

fn client_certificate(
    authority: &Authority,
    lifetime: Duration,
    now: Timestamp,
) -> (CertificateDer<'static>, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name =
        subject("system:karmada:agent:north", Some("system:karmada:agents"));
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = authority.issue(params, &key, lifetime, now).unwrap();
    (certificate.der().clone(), key)
}

type ServerSide = tokio_rustls::server::TlsStream<tokio::io::DuplexStream>;

/// One connection: both ends after a handshake and one exchanged byte, or what went wrong at the server.
async fn connect(
    server: &Arc<ServerConfig>,
    server_time: Timestamp,
    client: &Arc<ClientConfig>,
) -> Result<(ServerSide, TlsStream<tokio::io::DuplexStream>), String> {
    let mut server = ServerConfig::clone(server);
    server.time_provider = Arc::new(At(fixed(server_time)));
    let (near, far) = tokio::io::duplex(1 << 16);
    let accept = async {
        let mut stream = TlsAcceptor::from(Arc::new(server)).accept(near).await?;
        stream.write_all(b"x").await?;
        stream.flush().await?;
        Ok::<_, std::io::Error>(stream)
    };
    let dial = async {
        let mut stream = TlsConnector::from(Arc::clone(client))
            .connect(ServerName::try_from("localhost").unwrap(), far)
            .await?;
        stream.read_exact(&mut [0]).await?;
        Ok::<_, std::io::Error>(stream)
    };
    match tokio::join!(accept, dial) {
        (Ok(server), Ok(client)) => Ok((server, client)),
        (Err(server), _) => Err(format!("server: {server}")),
        (_, Err(client)) => Err(format!("client: {client}")),
    }
}

#[test]
fn a_restart_finds_the_same_authority_and_leaves_a_good_kubeconfig() {
    let directory = tempfile::tempdir().unwrap();
    let first = open(directory.path());
    let path = directory.path().join("admin.kubeconfig");
    let kubeconfig = fs::read_to_string(&path).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    for name in ["ca.key", "ca.crt"] {
        assert_eq!(mode(&directory.path().join("pki").join(name)), 0o600);
    }
    assert!(kubeconfig.contains("server: https://127.0.0.1:6443"));

    let second = Pki::open(&options(directory.path()), days(30)).unwrap();
    assert_eq!(first.ca_pin(), second.ca_pin());
    assert!(first.ca_pin().starts_with("sha256:") && first.ca_pin().len() == 7 + 64);
    assert_eq!(fs::read_to_string(&path).unwrap(), kubeconfig);
}

#[test]
fn the_kubeconfig_is_written_again_when_its_time_address_or_authority_changed_or_it_is_broken() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("admin.kubeconfig");
    open(directory.path());
    let mut last = fs::read_to_string(&path).unwrap();
    let mut expect_new = |what: &str, act: &dyn Fn()| {
        act();
        let now = fs::read_to_string(&path).unwrap();
        assert_ne!(now, last, "{what}");
        last = now;
    };
    expect_new("near expiry", &|| {
        Pki::open(&options(directory.path()), days(300)).unwrap();
    });
    expect_new("address", &|| {
        let mut options = options(directory.path());
        options.bind = "[::]:7443".parse().unwrap();
        Pki::open(&options, days(300)).unwrap();
    });
    assert!(last.contains("server: https://[::1]:7443"));
    let mut expect_new = |what: &str, act: &dyn Fn()| {
        act();
        let now = fs::read_to_string(&path).unwrap();
        assert_ne!(now, last, "{what}");
        last = now;
    };
    expect_new("authority", &|| {
        fs::remove_dir_all(directory.path().join("pki")).unwrap();
        open(directory.path());
    });
    expect_new("broken", &|| {
        fs::write(&path, "clusters: [").unwrap();
        open(directory.path());
    });
}

#[test]
fn broken_authorities_are_refused_with_path_and_reason() {
    type Break = fn(&Path, &Path);
    let cases: [(&str, Break, &str, &str); 6] = [
        (
            "the key is gone",
            |_, key| fs::remove_file(key).unwrap(),
            "ca.key",
            "entity not found",
        ),
        (
            "the key is another's",
            |_, key| fs::write(key, KeyPair::generate().unwrap().serialize_pem()).unwrap(),
            "ca.key",
            "not the key of the certificate in",
        ),
        (
            "the key is cut off",
            |_, key| fs::write(key, &fs::read(key).unwrap()[..80]).unwrap(),
            "ca.key",
            "holds no PRIVATE KEY block",
        ),
        (
            "the certificate is empty",
            |certificate, _| fs::write(certificate, "").unwrap(),
            "ca.crt",
            "holds no CERTIFICATE block",
        ),
        (
            "the certificate is noise",
            |certificate, _| {
                fs::write(
                    certificate,
                    "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
                )
                .unwrap();
            },
            "ca.crt",
            "not a certificate",
        ),
        (
            "the certificate is no authority's",
            |certificate, key| {
                let leaf = KeyPair::from_pem(&fs::read_to_string(key).unwrap()).unwrap();
                let params = CertificateParams::new(["x".to_owned()]).unwrap();
                fs::write(certificate, params.self_signed(&leaf).unwrap().pem()).unwrap();
            },
            "ca.crt",
            "not the certificate of an authority",
        ),
    ];
    for (what, damage, file, reason) in cases {
        let directory = tempfile::tempdir().unwrap();
        open(directory.path());
        let pki = directory.path().join("pki");
        damage(&pki.join("ca.crt"), &pki.join("ca.key"));
        let error = Pki::open(&options(directory.path()), start())
            .map(drop)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with(&pki.join(file).display().to_string()) && error.contains(reason),
            "{what}: {error}"
        );
        assert!(!error.contains("BEGIN"), "{what}: {error}");
    }
    let directory = tempfile::tempdir().unwrap();
    open(directory.path());
    for (now, reason) in [
        (days(4000), "expired at"),
        ("2029-01-01T00:00:00Z".parse().unwrap(), "not valid before"),
    ] {
        let error = Pki::open(&options(directory.path()), now)
            .map(drop)
            .unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn a_key_left_by_a_crash_in_the_first_start_does_not_stop_the_second() {
    let directory = tempfile::tempdir().unwrap();
    open(directory.path());
    fs::remove_file(directory.path().join("pki/ca.crt")).unwrap();
    open(directory.path());
}

#[tokio::test]
async fn clients_without_a_certificate_connect_and_those_with_a_good_one_are_known() {
    let directory = tempfile::tempdir().unwrap();
    let pki = open(directory.path());
    let server = pki.server_config().borrow().clone();
    let anonymous = client(pki.authority(), None, fixed(start()));
    let (near, far) = connect(&server, start(), &anonymous).await.unwrap();
    assert!(near.get_ref().1.peer_certificates().is_none());
    assert_eq!(far.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));

    let known = client(
        pki.authority(),
        Some(client_certificate(pki.authority(), DAY, start())),
        fixed(start()),
    );
    let (near, _far) = connect(&server, start(), &known).await.unwrap();
    let shown = near.get_ref().1.peer_certificates().unwrap()[0].clone();
    let identity = CertificateAuthenticator::identity(&shown).unwrap();
    assert_eq!(identity.user.name, "system:karmada:agent:north");
    assert_eq!(identity.user.groups, ["system:karmada:agents"]);
    assert_eq!(identity.not_after, days(1));
}

#[tokio::test]
async fn foreign_expired_and_future_certificates_fail_the_handshake_and_say_why() {
    let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (ours, theirs) = (open(ours.path()), open(theirs.path()));
    let server = ours.server_config().borrow().clone();
    let with = |authority: &Authority, now| {
        client(
            ours.authority(),
            Some(client_certificate(authority, DAY, now)),
            fixed(start()),
        )
    };
    for (what, client, server_time, expected) in [
        (
            "foreign",
            with(theirs.authority(), start()),
            start(),
            "UnknownIssuer",
        ),
        (
            "expired",
            with(ours.authority(), start()),
            days(2),
            "certificate expired",
        ),
        (
            "future",
            with(ours.authority(), days(5)),
            start(),
            "not valid yet",
        ),
    ] {
        let error = connect(&server, server_time, &client)
            .await
            .map(drop)
            .unwrap_err();
        assert!(error.contains(expected), "{what}: {error}");
    }
    // A server with another authority is not trusted.
    let stranger = client(theirs.authority(), None, fixed(start()));
    let error = connect(&server, start(), &stranger)
        .await
        .map(drop)
        .unwrap_err();
    assert!(
        error.contains("UnknownCA") || error.contains("UnknownIssuer"),
        "{error}"
    );
}

#[test]
fn a_connection_that_outlives_its_certificate_is_refused_with_the_next_request() {
    use evenkeel_api::access::{Authenticator as _, Credentials};
    let directory = tempfile::tempdir().unwrap();
    let pki = open(directory.path());
    let (certificate, _) = client_certificate(pki.authority(), DAY, start());
    let ask = |now| {
        CertificateAuthenticator::new(fixed(now)).authenticate(&Credentials {
            certificate: Some(&certificate),
            bearer: None,
        })
    };
    assert!(ask(start()).unwrap().is_some());
    assert!(ask(days(1)).unwrap().is_some());
    let error = ask(days(2)).unwrap_err().to_string();
    assert_eq!(
        error,
        "client certificate of \"system:karmada:agent:north\" expired at 2030-01-02T00:00:00Z"
    );
}

/// A wall clock that goes with tokio's.
fn moving() -> Clock {
    let zero = tokio::time::Instant::now();
    Arc::new(move || start() + zero.elapsed())
}

#[tokio::test(start_paused = true)]
async fn the_serving_certificate_is_renewed_before_it_expires_and_swapped_under_open_connections() {
    let directory = tempfile::tempdir().unwrap();
    let pki = Arc::new(open(directory.path()));
    let clock = moving();
    let stop = CancellationToken::new();
    let task = tokio::spawn({
        let (pki, clock, stop) = (Arc::clone(&pki), Arc::clone(&clock), stop.clone());
        async move { pki.run(clock, stop).await }
    });
    let mut config = pki.server_config();
    let before = config.borrow_and_update().clone();
    let client = client(pki.authority(), None, Arc::clone(&clock));
    let (mut old_near, mut old_far) = connect(&before, clock(), &client).await.unwrap();

    tokio::time::sleep(DAY * 59).await;
    assert!(!config.has_changed().unwrap(), "renewed too early");
    tokio::time::timeout(DAY * 2, config.changed())
        .await
        .unwrap()
        .unwrap();
    let after = config.borrow_and_update().clone();
    assert!(pki.serving_not_after() > clock() + DAY * 85);

    // The open connection goes on; a new one gets the new certificate, by a cheap resumption at first.
    old_far.write_all(b"still here").await.unwrap();
    old_far.flush().await.unwrap();
    let mut heard = [0; 10];
    old_near.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"still here");
    let shown = |far: &TlsStream<_>| far.get_ref().1.peer_certificates().unwrap()[0].clone();
    let fresh = self::client(pki.authority(), None, Arc::clone(&clock));
    let (_near, far) = connect(&after, clock(), &fresh).await.unwrap();
    assert_ne!(shown(&far), shown(&old_far));
    let (_near, far) = connect(&after, clock(), &fresh).await.unwrap();
    assert_eq!(
        far.get_ref().1.handshake_kind(),
        Some(HandshakeKind::Resumed)
    );

    // The first certificate would have expired by now; its successor is still good.
    tokio::time::sleep(DAY * 40).await;
    let (_near, _far) = connect(
        &config.borrow_and_update().clone(),
        clock(),
        &self::client(pki.authority(), None, Arc::clone(&clock)),
    )
    .await
    .unwrap();
    stop.cancel();
    task.await.unwrap();
}

#[tokio::test]
async fn tickets_stay_good_across_a_swap_of_certificates() {
    let directory = tempfile::tempdir().unwrap();
    let pki = open(directory.path());
    let client = client(pki.authority(), None, fixed(start()));
    let before = pki.server_config().borrow().clone();
    connect(&before, start(), &client).await.unwrap();
    pki.look(days(80));
    let after = pki.server_config().borrow().clone();
    assert!(!Arc::ptr_eq(&before, &after));
    let (_near, far) = connect(&after, start(), &client).await.unwrap();
    assert_eq!(
        far.get_ref().1.handshake_kind(),
        Some(HandshakeKind::Resumed)
    );
}

/// The operator's files: an authority of their own, and a serving certificate from it.
struct Operator {
    directory: tempfile::TempDir,
    authority: Authority,
}

impl Operator {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let authority = Authority::open_or_create(directory.path(), start()).unwrap();
        let operator = Self {
            directory,
            authority,
        };
        operator.write_serving(&operator.authority, DAY * 10);
        operator
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write_serving(&self, authority: &Authority, lifetime: Duration) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let certificate = authority.issue(params, &key, lifetime, start()).unwrap();
        fs::write(self.path("tls.crt"), certificate.pem()).unwrap();
        // As openssl writes keys of this kind.
        let mut file = fs::File::create(self.path("tls.key")).unwrap();
        write!(
            file,
            "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n{}",
            key.serialize_pem()
        )
        .unwrap();
    }

    fn options(&self, data_dir: &Path) -> PkiOptions {
        PkiOptions {
            operator: Some(AuthorityFiles {
                certificate: self.path("ca.crt"),
                key: self.path("ca.key"),
                serving: Some(ServingFiles {
                    certificate: self.path("tls.crt"),
                    key: self.path("tls.key"),
                }),
            }),
            ..options(data_dir)
        }
    }
}

#[tokio::test]
async fn the_operators_files_are_used_read_again_when_they_change_and_kept_out_when_broken() {
    let operator = Operator::new();
    let data = tempfile::tempdir().unwrap();
    let pki = Pki::open(&operator.options(data.path()), start()).unwrap();
    assert_eq!(pki.ca_pin(), operator.authority.pin());
    assert!(
        !data.path().join("pki").exists(),
        "no authority of our own is made"
    );
    let config = |pki: &Pki| pki.server_config().borrow().clone();
    let trusting = client(&operator.authority, None, fixed(start()));
    connect(&config(&pki), start(), &trusting).await.unwrap();

    let first = config(&pki);
    pki.look(start());
    assert!(Arc::ptr_eq(&first, &config(&pki)), "nothing changed");

    fs::write(operator.path("tls.crt"), "half a fi").unwrap();
    pki.look(start());
    assert!(
        Arc::ptr_eq(&first, &config(&pki)),
        "a broken file changes nothing"
    );

    operator.write_serving(&operator.authority, DAY * 20);
    pki.look(start());
    assert!(!Arc::ptr_eq(&first, &config(&pki)), "a good one is taken");
    assert_eq!(pki.serving_not_after(), days(20));
    connect(&config(&pki), start(), &trusting).await.unwrap();
}

#[test]
fn the_operators_serving_certificate_must_fit() {
    type Break = fn(&Operator);
    let cases: [(&str, Break, Timestamp, &str, &str); 4] = [
        (
            "from another authority",
            |operator| operator.write_serving(&Operator::new().authority, DAY),
            start(),
            "tls.crt",
            "not signed by the given authority",
        ),
        ("expired", |_| {}, days(11), "tls.crt", "has expired"),
        (
            "another key",
            |operator| {
                fs::write(
                    operator.path("tls.key"),
                    KeyPair::generate().unwrap().serialize_pem(),
                )
                .unwrap();
            },
            start(),
            "tls.key",
            "the key is not the certificate's",
        ),
        (
            "no key",
            |operator| fs::remove_file(operator.path("tls.key")).unwrap(),
            start(),
            "tls.key",
            "entity not found",
        ),
    ];
    for (what, damage, now, file, reason) in cases {
        let (operator, data) = (Operator::new(), tempfile::tempdir().unwrap());
        damage(&operator);
        let error = Pki::open(&operator.options(data.path()), now)
            .map(drop)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with(&operator.path(file).display().to_string()) && error.contains(reason),
            "{what}: {error}"
        );
    }
}
