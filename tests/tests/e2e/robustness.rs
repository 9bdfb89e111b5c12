//! What a network can send that no client should: an error or a closed connection, and never harm.

use std::{sync::Arc, time::Duration};

use evenkeel_tests::{
    authority::{Authority, Validity, client_config},
    harness::ControlPlane,
};
use http::{Method, StatusCode};
use rustls::pki_types::ServerName;
use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

/// Longer than any deadline of the server for a client that dawdles.
const PATIENCE: Duration = Duration::from_secs(45);
/// What the process may grow by under abuse, in bytes.
const GROWTH: u64 = 64 << 20;

async fn raw(control_plane: &ControlPlane) -> impl AsyncRead + AsyncWrite + Unpin + use<> {
    let tls = client_config(
        &control_plane.authority(),
        Some(&control_plane.admin()),
        &["http/1.1"],
    )
    .unwrap();
    let stream = TcpStream::connect(control_plane.address).await.unwrap();
    let name = ServerName::IpAddress(control_plane.address.ip().into());
    TlsConnector::from(Arc::new(tls))
        .connect(name, stream)
        .await
        .unwrap()
}

/// Sends bytes and reads what comes until the other side closes, or the first answer is complete enough to judge.
async fn exchange(control_plane: &ControlPlane, bytes: &[u8]) -> String {
    let mut stream = raw(control_plane).await;
    let mut answer = Vec::new();
    let exchange = async {
        // The server may answer and close before it has read all.
        let _ = stream.write_all(bytes).await;
        let _ = stream.flush().await;
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = stream.read(&mut piece).await {
            answer.extend_from_slice(&piece[..length]);
            if answer.windows(4).any(|window| window == b"\r\n\r\n") {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, exchange)
        .await
        .expect("an answer or the end of the connection");
    String::from_utf8_lossy(&answer).into_owned()
}

fn post(headers: &str, body: &[u8]) -> Vec<u8> {
    let mut request = format!(
        "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{headers}\r\n"
    )
    .into_bytes();
    request.extend_from_slice(body);
    request
}

fn sized(body: &[u8]) -> Vec<u8> {
    post(&format!("Content-Length: {}\r\n", body.len()), body)
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_requests_get_an_error_or_a_closed_connection() {
    let mut control_plane = ControlPlane::start().await;
    let deep = |open: &str, close: &str| {
        let body = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"deep"}},"x":{}1{}}}"#,
            open.repeat(100_000),
            close.repeat(100_000)
        );
        sized(body.as_bytes())
    };
    let large = vec![b'x'; 32 << 20];
    let cases: Vec<(&str, Vec<u8>, &[&str])> = vec![
        ("no request", b"\x00\x01\x02\x03\r\n\r\n".to_vec(), &["", "400"]),
        ("no version", b"GET /readyz\r\n\r\n".to_vec(), &["", "400"]),
        ("another protocol", b"SSH-2.0-OpenSSH_9.9\r\n".to_vec(), &["", "400"]),
        ("a bad header", b"GET /readyz HTTP/1.1\r\nHost x\r\n\r\n".to_vec(), &["", "400"]),
        ("a header of a megabyte", [b"GET /readyz HTTP/1.1\r\nX: ", vec![b'a'; 1 << 20].as_slice(), b"\r\n\r\n"].concat(), &["", "400", "431"]),
        ("a path of a megabyte", [b"GET /", vec![b'a'; 1 << 20].as_slice(), b" HTTP/1.1\r\nHost: x\r\n\r\n"].concat(), &["", "400", "414", "431"]),
        ("ten thousand headers", [b"GET /readyz HTTP/1.1\r\n".as_slice(), b"A: b\r\n".repeat(10_000).as_slice(), b"\r\n"].concat(), &["", "400", "431"]),
        ("two lengths", post("Content-Length: 2\r\nContent-Length: 3\r\n", b"{}"), &["", "400"]),
        ("a negative length", post("Content-Length: -1\r\n", b"{}"), &["", "400"]),
        ("a bad chunk", post("Transfer-Encoding: chunked\r\n", b"zz\r\n{}\r\n0\r\n\r\n"), &["", "400"]),
        ("a body of 32 MB", sized(&large), &["", "413", "400"]),
        ("no JSON", sized(b"{\"a\":"), &["400"]),
        ("JSON that is no object", sized(b"[1,2]"), &["400"]),
        ("text that is no UTF-8", sized(b"{\"a\":\"\xff\xfe\"}"), &["400"]),
        ("arrays in arrays", deep("[", "]"), &["400", "413"]),
        ("objects in objects", deep(r#"{"a":"#, "}"), &["400", "413"]),
        ("a number out of range", sized(br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n","generation":1e999}}"#), &["400"]),
        ("a name of a megabyte", sized(format!(r#"{{"metadata":{{"name":"{}"}}}}"#, "a".repeat(1 << 20)).as_bytes()), &["400", "413", "422"]),
        ("an unknown content", b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Type: image/png\r\nContent-Length: 2\r\n\r\n{}".to_vec(), &["415"]),
        ("bad percents", b"GET /api/v1/namespaces/%zz%00/configmaps HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), &["", "400", "404", "200"]),
        ("a bad selector", b"GET /api/v1/pods?labelSelector=a%3D%3D%3D%28 HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), &["400"]),
        ("a bad continue", b"GET /api/v1/pods?continue=AAAA HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), &["400"]),
        ("a bad limit", b"GET /api/v1/pods?limit=x HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), &["400"]),
        ("a bad version", b"GET /api/v1/pods?watch=true&resourceVersion=x HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), &["400", "500"]),
        ("a climbing path", b"GET /api/v1/../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), &["", "400", "404", "301"]),
    ];
    let before = control_plane.process().resident();
    for round in 0..3 {
        for (name, bytes, expected) in &cases {
            let answer = exchange(&control_plane, bytes).await;
            let code = answer
                .strip_prefix("HTTP/1.1 ")
                .and_then(|rest| rest.get(..3))
                .unwrap_or("");
            assert!(
                expected.contains(&code),
                "{name} (round {round}): {answer:.300}"
            );
        }
    }
    healthy(&mut control_plane, before).await;
}

/// The process lives, serves, has not panicked and has not grown.
async fn healthy(control_plane: &mut ControlPlane, before: u64) {
    assert!(
        control_plane.process().ended().is_none(),
        "the control plane ended"
    );
    let answer = control_plane
        .anonymous()
        .once(Method::GET, "/readyz", None)
        .await
        .unwrap();
    assert_eq!(answer.code, StatusCode::OK, "{}", answer.text());
    let log = control_plane.process().log();
    assert!(!log.contains("panicked"), "{log}");
    let after = control_plane.process().resident();
    assert!(
        after < before + GROWTH,
        "resident memory went from {before} to {after}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_dawdle_are_let_go_and_hold_nobody_up() {
    let mut control_plane = ControlPlane::start().await;
    let before = control_plane.process().resident();
    // Connected, and silent before TLS.
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(TcpStream::connect(control_plane.address).await.unwrap());
    }
    // Half a request, and half a body.
    let mut half = Vec::new();
    for bytes in [
        b"GET /readyz HTTP/1.1\r\nHost:".to_vec(),
        post("Content-Length: 1000\r\n", b"{\"metadata\":"),
    ] {
        for _ in 0..20 {
            let mut stream = raw(&control_plane).await;
            stream.write_all(&bytes).await.unwrap();
            stream.flush().await.unwrap();
            half.push(stream);
        }
    }
    let answer = control_plane
        .anonymous()
        .once(Method::GET, "/readyz", None)
        .await
        .unwrap();
    assert_eq!(answer.code, StatusCode::OK, "served while others dawdle");
    let closed = async {
        let mut rest = Vec::new();
        for stream in &mut silent {
            let _ = stream.read_to_end(&mut rest).await;
        }
        for stream in &mut half {
            let _ = stream.read_to_end(&mut rest).await;
        }
    };
    tokio::time::timeout(PATIENCE * 2, closed)
        .await
        .expect("every one of them is let go");
    healthy(&mut control_plane, before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_http_and_broken_handshakes_are_closed() {
    let mut control_plane = ControlPlane::start().await;
    let before = control_plane.process().resident();
    for bytes in [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        vec![0x16, 3, 1, 0xff, 0xff, 1],
        vec![0; 64 * 1024],
    ] {
        let mut stream = TcpStream::connect(control_plane.address).await.unwrap();
        let _ = stream.write_all(&bytes).await;
        let mut answer = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
        assert!(read.is_ok(), "still open");
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{answer:?}");
    }
    healthy(&mut control_plane, before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_certificates_and_tokens_are_refused() {
    let mut control_plane = ControlPlane::start().await;
    let before = control_plane.process().resident();
    let path = "/api/v1/namespaces/default/configmaps";
    let groups = ["system:masters"];
    let foreign = Authority::new("somebody else").unwrap();
    let own = control_plane.signing_authority();
    for (name, identity) in [
        (
            "of another authority",
            foreign.client("admin", &groups, Validity::DAY).unwrap(),
        ),
        (
            "expired",
            own.client("admin", &groups, Validity::OVER).unwrap(),
        ),
    ] {
        match control_plane
            .endpoint(Some(&identity), &["http/1.1"])
            .once(Method::GET, path, None)
            .await
        {
            Err(_) => {}
            Ok(answer) => assert_eq!(
                answer.code,
                StatusCode::UNAUTHORIZED,
                "a certificate {name}: {}",
                answer.text()
            ),
        }
    }
    // A serving certificate is not a client's.
    let server = own.server(&[]).unwrap();
    match control_plane
        .endpoint(Some(&server), &["http/1.1"])
        .once(Method::GET, path, None)
        .await
    {
        Err(_) => {}
        Ok(answer) => assert!(
            matches!(
                answer.code,
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
            ),
            "{}",
            answer.text()
        ),
    }
    // A token that has expired, made as `token create` does.
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
        "metadata": {"name": "bootstrap-token-abcdef", "namespace": "kube-system"},
        "stringData": {
            "token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
            "expiration": "2020-01-01T00:00:00Z",
        },
    });
    let answer = control_plane
        .admin_endpoint()
        .once(
            Method::POST,
            "/api/v1/namespaces/kube-system/secrets",
            Some(&secret),
        )
        .await
        .unwrap();
    assert!(answer.code.is_success(), "{}", answer.text());
    for (name, token) in [
        ("expired", "abcdef.0123456789abcdef"),
        ("unknown", "zzzzzz.0123456789abcdef"),
        ("with a wrong secret", "abcdef.fedcba9876543210"),
        ("garbage", "no token at all"),
        ("empty", ""),
    ] {
        let mut endpoint = control_plane.anonymous();
        endpoint.bearer = Some(token.into());
        let answer = endpoint.once(Method::GET, path, None).await.unwrap();
        // An empty token is none: the request is anonymous.
        let refused = if token.is_empty() {
            [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN]
        } else {
            [StatusCode::UNAUTHORIZED; 2]
        };
        assert!(
            refused.contains(&answer.code),
            "a token {name}: {} {}",
            answer.code,
            answer.text()
        );
        assert_eq!(answer.json().unwrap()["kind"], "Status", "a token {name}");
        assert!(
            token.is_empty() || !answer.text().contains(token),
            "the answer shows the token"
        );
    }
    let log = control_plane.process().log();
    assert!(!log.contains("0123456789abcdef"), "a secret is in the log");
    let answer = control_plane
        .anonymous()
        .once(Method::GET, path, None)
        .await
        .unwrap();
    assert_eq!(answer.code, StatusCode::FORBIDDEN, "anonymous");
    healthy(&mut control_plane, before).await;
}
