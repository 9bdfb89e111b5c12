//! The server over real sockets, with a small table of kinds.

use std::{sync::Arc, time::Duration};

use evenkeel_api::{Limits, Server, ServerBuilder, lifecycle};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

mod small;

/// Nothing here takes longer than this.
const DEADLINE: Duration = Duration::from_secs(20);

struct Running {
    address: std::net::SocketAddr,
    shutdown: CancellationToken,
    task: JoinHandle<std::io::Result<()>>,
    server: Arc<Server>,
}

impl Running {
    async fn start(builder: ServerBuilder) -> Self {
        let server = builder.authorizer(Arc::new(small::AllowAll)).build();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(Arc::clone(&server).serve(listener, None, shutdown.clone()));
        tokio::spawn(lifecycle::run(Arc::clone(&server), shutdown.clone()));
        let running = Self {
            address,
            shutdown,
            task,
            server,
        };
        running
            .ok(
                "POST",
                "/api/v1/namespaces",
                json!({"metadata": {"name": "a"}}),
            )
            .await;
        running
    }

    /// Sends one request over a connection of its own, and reads the whole answer.
    async fn raw(&self, request: &str) -> (u16, String, Vec<u8>) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        timeout(DEADLINE, stream.read_to_end(&mut answer))
            .await
            .expect("an answer in time")
            .unwrap();
        let end = answer
            .windows(4)
            .position(|window| window == b"\r\n\r\n")
            .expect("a head");
        let head = String::from_utf8(answer[..end].to_vec()).unwrap();
        let code = head[9..12].parse().unwrap();
        let mut body = answer[end + 4..].to_vec();
        if head.to_lowercase().contains("transfer-encoding: chunked") {
            body = unchunk(&body);
        }
        (code, head, body)
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> (u16, String, Value) {
        let length = body.len();
        let (code, head, body) = self
            .raw(&format!(
                "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
            ))
            .await;
        let value = serde_json::from_slice(&body)
            .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&body).into_owned()));
        (code, head, value)
    }

    async fn ok(&self, method: &str, path: &str, body: Value) -> Value {
        let text = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let (code, _, value) = self.send(method, path, "", &text).await;
        assert!(code < 300, "{method} {path}: {code} {value}");
        value
    }

    async fn patch(&self, path: &str, patch: Value) -> Value {
        let (code, _, value) = self
            .send(
                "PATCH",
                path,
                "Content-Type: application/merge-patch+json\r\n",
                &patch.to_string(),
            )
            .await;
        assert_eq!(code, 200, "{path}: {value}");
        value
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

fn unchunk(mut body: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    while let Some(end) = body.windows(2).position(|window| window == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        if length == 0 {
            break;
        }
        plain.extend_from_slice(&body[end + 2..end + 2 + length]);
        body = &body[end + 4 + length..];
    }
    plain
}

fn widget(name: &str) -> Value {
    json!({
        "apiVersion": "test.example.io/v1", "kind": "Widget",
        "metadata": {"name": name}, "spec": {"size": "small"},
    })
}

const WIDGETS: &str = "/apis/test.example.io/v1/namespaces/a/widgets";
const MAPS: &str = "/api/v1/namespaces/a/configmaps";

#[tokio::test]
async fn an_object_lives_and_goes() {
    let server = Running::start(small::builder()).await;
    let created = server.ok("POST", WIDGETS, widget("w")).await;
    assert_eq!(created["metadata"]["generation"], 1);
    assert_eq!(created["spec"]["color"], "blue");
    let path = format!("{WIDGETS}/w");
    let got = server.ok("GET", &path, Value::Null).await;
    assert_eq!(got, created);
    let patched = server
        .patch(&path, json!({"spec": {"size": "large"}}))
        .await;
    assert_eq!(patched["metadata"]["generation"], 2);
    let again = server
        .patch(&path, json!({"spec": {"size": "large"}}))
        .await;
    assert_eq!(again, patched, "nothing changed, so nothing was stored");
    let status = server
        .patch(
            &format!("{path}/status"),
            json!({"status": {"phase": "Ready"}, "spec": {"size": "medium"}}),
        )
        .await;
    assert_eq!(status["spec"]["size"], "large");
    assert_eq!(status["status"]["phase"], "Ready");
    let deleted = server.ok("DELETE", &path, Value::Null).await;
    assert_eq!(deleted["status"], "Success");
    let (code, _, gone) = server.send("GET", &path, "", "").await;
    assert_eq!((code, &gone["reason"]), (404, &json!("NotFound")));
    server.stop().await;
}

#[tokio::test]
async fn requests_that_are_refused() {
    let server = Running::start(small::builder()).await;
    server.ok("POST", WIDGETS, widget("w")).await;
    let bad_size = json!({
        "apiVersion": "test.example.io/v1", "kind": "Widget",
        "metadata": {"name": "x"}, "spec": {"size": "huge"},
    });
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let table: [(&str, &str, String, u16, &str); 12] = [
        (
            "POST",
            WIDGETS,
            widget("w").to_string(),
            409,
            "AlreadyExists",
        ),
        ("POST", WIDGETS, bad_size.to_string(), 422, "Invalid"),
        ("POST", WIDGETS, "{".into(), 400, "BadRequest"),
        ("POST", WIDGETS, deep, 400, "BadRequest"),
        (
            "POST",
            "/apis/test.example.io/v1/namespaces/none/widgets",
            widget("w").to_string(),
            404,
            "NotFound",
        ),
        (
            "PUT",
            &format!("{WIDGETS}/w"),
            widget("w").to_string(),
            422,
            "Invalid",
        ),
        (
            "GET",
            "/api/v1/namespaces/a/gadgets",
            String::new(),
            404,
            "NotFound",
        ),
        (
            "GET",
            "/api/v1/namespaces/a/configmaps?limit=x",
            String::new(),
            400,
            "BadRequest",
        ),
        (
            "GET",
            "/api/v1/namespaces/a/configmaps?resourceVersion=99999999&resourceVersionMatch=Exact&continue=x",
            String::new(),
            422,
            "Invalid",
        ),
        (
            "DELETE",
            "/api/v1/namespaces",
            String::new(),
            405,
            "MethodNotAllowed",
        ),
        (
            "DELETE",
            "/api/v1/namespaces/default",
            String::new(),
            404,
            "NotFound",
        ),
        ("GET", "/api/v1/pods/%zz", String::new(), 400, "BadRequest"),
    ];
    for (method, path, body, code, reason) in table {
        let (found, _, status) = server.send(method, path, "", &body).await;
        assert_eq!(
            (found, status["reason"].as_str()),
            (code, Some(reason)),
            "{method} {path}: {status}"
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn impersonation_is_refused_and_not_ignored() {
    let server = Running::start(small::builder()).await;
    let (code, _, status) = server
        .send("GET", MAPS, "Impersonate-User: alice\r\n", "")
        .await;
    assert_eq!((code, &status["reason"]), (403, &json!("Forbidden")));
    server.stop().await;
}

#[tokio::test]
async fn limits_are_kept() {
    let limits = Limits {
        max_body: 1000,
        max_url: 500,
        ..Limits::default()
    };
    let server = Running::start(small::builder().limits(limits)).await;
    let map = json!({"metadata": {"name": "m"}, "data": {"k": "x".repeat(2000)}}).to_string();
    let (code, _, status) = server.send("POST", MAPS, "", &map).await;
    assert_eq!(
        (code, &status["reason"]),
        (413, &json!("RequestEntityTooLarge"))
    );
    let (code, _, _) = server
        .send(
            "GET",
            &format!("{MAPS}?labelSelector={}", "x".repeat(600)),
            "",
            "",
        )
        .await;
    assert_eq!(code, 414);
    server.stop().await;
}

#[tokio::test]
async fn pages_of_one_snapshot() {
    let server = Running::start(small::builder()).await;
    for name in ["a", "b", "c", "d", "e"] {
        server
            .ok("POST", MAPS, json!({"metadata": {"name": name}}))
            .await;
    }
    let first = server
        .ok("GET", &format!("{MAPS}?limit=2"), Value::Null)
        .await;
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    server.ok("DELETE", &format!("{MAPS}/d"), Value::Null).await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    let rest = server
        .ok(
            "GET",
            &format!("{MAPS}?limit=10&continue={token}"),
            Value::Null,
        )
        .await;
    let names = |list: &Value| {
        list["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (names(&first), names(&rest)),
        (
            vec!["a".to_owned(), "b".into()],
            vec!["c".to_owned(), "d".into(), "e".into()]
        )
    );
    assert_eq!(
        first["metadata"]["resourceVersion"],
        rest["metadata"]["resourceVersion"]
    );
    assert!(first["items"][0].get("kind").is_none());
    server.stop().await;
}

#[tokio::test]
async fn a_watch_sees_objects_enter_and_leave_its_selection() {
    let server = Running::start(small::builder()).await;
    let begin = server.ok("GET", MAPS, Value::Null).await["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .to_owned();
    server
        .ok(
            "POST",
            MAPS,
            json!({"metadata": {"name": "m", "labels": {"t": "x"}}}),
        )
        .await;
    let path = format!("{MAPS}/m");
    server.patch(&path, json!({"data": {"v": "1"}})).await;
    server
        .patch(&path, json!({"metadata": {"labels": {"t": "y"}}}))
        .await;
    server
        .patch(&path, json!({"metadata": {"labels": {"t": "x"}}}))
        .await;
    server.ok("DELETE", &path, Value::Null).await;
    let (code, _, body) = server
        .raw(&format!(
            "GET {MAPS}?watch=1&labelSelector=t%3Dx&resourceVersion={begin}&timeoutSeconds=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        ))
        .await;
    assert_eq!(code, 200);
    let types = String::from_utf8(body)
        .unwrap()
        .lines()
        .map(|line| {
            let event: Value = serde_json::from_str(line).unwrap();
            event["type"].as_str().unwrap().to_owned()
        })
        .collect::<Vec<_>>();
    assert_eq!(types, ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]);
    server.stop().await;
}

#[tokio::test]
async fn a_renewal_changes_no_resource_version() {
    let server = Running::start(small::builder()).await;
    let path = "/apis/coordination.k8s.io/v1/namespaces/a/leases";
    let lease = server
        .ok("POST", path, json!({"metadata": {"name": "l"}, "spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}}))
        .await;
    let commits = server.server.store().statistics().commits;
    let renewed = server
        .patch(
            &format!("{path}/l"),
            json!({"spec": {"renewTime": "2026-01-01T00:00:10.000000Z"}}),
        )
        .await;
    assert_eq!(renewed["spec"]["renewTime"], "2026-01-01T00:00:10.000000Z");
    assert_eq!(
        renewed["metadata"]["resourceVersion"],
        lease["metadata"]["resourceVersion"]
    );
    assert_eq!(server.server.store().statistics().commits, commits);
    server.stop().await;
}

#[tokio::test]
async fn a_namespace_takes_its_content_with_it() {
    let server = Running::start(small::builder()).await;
    server
        .ok(
            "POST",
            MAPS,
            json!({"metadata": {"name": "held", "finalizers": ["x.io/hold"]}}),
        )
        .await;
    server.ok("POST", WIDGETS, widget("w")).await;
    let terminating = server
        .ok("DELETE", "/api/v1/namespaces/a", Value::Null)
        .await;
    assert_eq!(terminating["status"]["phase"], "Terminating");
    let waited = timeout(DEADLINE, async {
        loop {
            let namespace = server.ok("GET", "/api/v1/namespaces/a", Value::Null).await;
            if namespace["status"]["conditions"][4]["status"] == "True" {
                return;
            }
            tokio::task::yield_now().await;
        }
    });
    waited.await.expect("what remains is told");
    let (code, _, status) = server
        .send(
            "POST",
            MAPS,
            "",
            &json!({"metadata": {"name": "new"}}).to_string(),
        )
        .await;
    assert_eq!(
        (code, &status["details"]["causes"][0]["reason"]),
        (403, &json!("NamespaceTerminating"))
    );
    server
        .patch(
            &format!("{MAPS}/held"),
            json!({"metadata": {"finalizers": null}}),
        )
        .await;
    let waited = timeout(DEADLINE, async {
        while server.send("GET", "/api/v1/namespaces/a", "", "").await.0 != 404 {
            tokio::task::yield_now().await;
        }
    });
    waited.await.expect("the namespace goes");
    assert_eq!(
        server.send("GET", &format!("{WIDGETS}/w"), "", "").await.0,
        404
    );
    server.stop().await;
}

#[tokio::test]
async fn dependents_follow_their_owner() {
    let server = Running::start(small::builder()).await;
    let owner = server
        .ok("POST", MAPS, json!({"metadata": {"name": "owner"}}))
        .await;
    let reference = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
    }]);
    server
        .ok(
            "POST",
            MAPS,
            json!({"metadata": {"name": "one", "ownerReferences": reference}}),
        )
        .await;
    server
        .ok("DELETE", &format!("{MAPS}/owner"), Value::Null)
        .await;
    let waited = timeout(DEADLINE, async {
        while server.send("GET", &format!("{MAPS}/one"), "", "").await.0 != 404 {
            tokio::task::yield_now().await;
        }
    });
    waited.await.expect("the dependent is collected");
    server.stop().await;
}

#[tokio::test]
async fn watches_end_when_the_server_stops() {
    let server = Running::start(small::builder()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream
        .write_all(format!("GET {MAPS}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let mut head = [0; 12];
    timeout(DEADLINE, stream.read_exact(&mut head))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    server.stop().await;
    let mut rest = Vec::new();
    timeout(DEADLINE, stream.read_to_end(&mut rest))
        .await
        .expect("the connection is closed")
        .unwrap();
}

#[tokio::test]
async fn discovery_health_and_metrics() {
    let server = Running::start(small::builder()).await;
    for (path, code, accept, want) in [
        ("/healthz", 200, "", "ok"),
        ("/readyz?verbose", 200, "", "readyz check passed"),
        ("/livez/ping", 200, "", "ok"),
        ("/livez/nope", 404, "", "404 page not found"),
        ("/version", 200, "", "gitVersion"),
        ("/metrics", 200, "", "evenkeel_api_requests_total"),
        ("/api", 200, "", "APIVersions"),
        ("/apis", 200, "", "APIGroupList"),
        (
            "/apis",
            200,
            "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList\r\n",
            "apidiscovery.k8s.io/v2",
        ),
        ("/apis/test.example.io", 200, "", "preferredVersion"),
        ("/apis/test.example.io/v1", 200, "", "widgets/scale"),
        ("/apis/test.example.io/v9", 404, "", "404 page not found"),
        ("/nothing", 404, "", "404 page not found"),
    ] {
        let (found, _, body) = server.send("GET", path, accept, "").await;
        assert_eq!(found, code, "{path}");
        assert!(body.to_string().contains(want), "{path}: {body}");
    }
    let (_, head, _) = server.send("GET", "/apis", "", "").await;
    let etag = head
        .lines()
        .find_map(|line| line.strip_prefix("etag: "))
        .unwrap();
    let (code, _, _) = server
        .send("GET", "/apis", &format!("If-None-Match: {etag}\r\n"), "")
        .await;
    assert_eq!(code, 304);
    server.stop().await;
}
