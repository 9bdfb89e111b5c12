//! The agent of one cluster can do nothing to another, whatever the verb and the kind.

use evenkeel_tests::{harness::ControlPlane, wire::Connection};
use http::{Method, StatusCode};
use serde_json::{Value, json};

const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";
const WORK: &str = "/apis/work.karmada.io/v1alpha1/namespaces";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/karmada-cluster/leases";

/// Every way of asking for something.
fn asks(collection: &str, name: &str, body: &Value) -> Vec<(Method, String, &'static str, String)> {
    let one = format!("{collection}/{name}");
    let text = body.to_string();
    let json = "application/json";
    vec![
        (Method::GET, one.clone(), "", String::new()),
        (
            Method::GET,
            format!(
                "{collection}?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3D{name}"
            ),
            "",
            String::new(),
        ),
        (
            Method::GET,
            format!("{collection}?fieldSelector=metadata.name%3D{name}"),
            "",
            String::new(),
        ),
        (Method::POST, collection.to_owned(), json, text.clone()),
        (Method::PUT, one.clone(), json, text.clone()),
        (Method::PUT, format!("{one}/status"), json, text),
        (
            Method::PATCH,
            one.clone(),
            "application/merge-patch+json",
            r#"{"metadata":{"labels":{"x":"y"}}}"#.into(),
        ),
        (
            Method::PATCH,
            one.clone(),
            "application/json-patch+json",
            "[]".into(),
        ),
        (
            Method::PATCH,
            format!("{one}/status"),
            "application/merge-patch+json",
            r#"{"status":{}}"#.into(),
        ),
        (Method::DELETE, one, json, "{}".into()),
        (Method::DELETE, collection.to_owned(), json, "{}".into()),
    ]
}

async fn code(
    connection: &mut Connection,
    (method, path, content, body): (Method, String, &'static str, String),
) -> StatusCode {
    connection
        .send(method, &path, content, body.into())
        .await
        .unwrap_or_else(|error| panic!("{path}: {error}"))
        .code
}

async fn populated() -> ControlPlane {
    let control_plane = ControlPlane::start().await;
    for name in ["alpha", "beta"] {
        let mut connection = control_plane.agent_endpoint(name).connect().await.unwrap();
        let cluster = evenkeel_tests::fleet::objects::cluster(name, 0);
        let answer = connection.post(CLUSTERS, &cluster).await.unwrap();
        assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text());
        let lease = evenkeel_tests::fleet::objects::lease(name, evenkeel_tests::clock::now());
        let answer = connection.post(LEASES, &lease).await.unwrap();
        assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text());
    }
    for namespace in ["karmada-es-alpha", "karmada-es-beta"] {
        evenkeel_tests::harness::eventually(
            "the execution namespace is there",
            crate::ARRIVES,
            async || {
                control_plane
                    .object(&format!("/api/v1/namespaces/{namespace}"))
                    .await
            },
        )
        .await;
        let work = json!({"apiVersion": "work.karmada.io/v1alpha1", "kind": "Work", "metadata": {"name": "w", "namespace": namespace}, "spec": {"workload": {"manifests": []}}});
        let answer = control_plane
            .admin_endpoint()
            .once(
                Method::POST,
                &format!("{WORK}/{namespace}/works"),
                Some(&work),
            )
            .await
            .unwrap();
        assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text());
    }
    control_plane
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_can_do_nothing_to_another_cluster() {
    let control_plane = populated().await;
    let mut connection = control_plane
        .agent_endpoint("alpha")
        .connect()
        .await
        .unwrap();
    let named = |kind: &str, version: &str, name: &str| json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}});
    let mut tables = vec![
        (
            CLUSTERS.to_owned(),
            "beta",
            named("Cluster", "cluster.karmada.io/v1alpha1", "beta"),
        ),
        (
            LEASES.to_owned(),
            "beta",
            named("Lease", "coordination.k8s.io/v1", "beta"),
        ),
        (
            format!("{WORK}/karmada-es-beta/works"),
            "w",
            named("Work", "work.karmada.io/v1alpha1", "w"),
        ),
        (
            "/api/v1/namespaces/karmada-es-beta/secrets".into(),
            "s",
            named("Secret", "v1", "s"),
        ),
        (
            "/api/v1/namespaces/karmada-es-beta/configmaps".into(),
            "c",
            named("ConfigMap", "v1", "c"),
        ),
        (
            "/api/v1/namespaces/karmada-es-beta/events".into(),
            "e",
            named("Event", "v1", "e"),
        ),
        (
            "/api/v1/namespaces/kube-system/secrets".into(),
            "s",
            named("Secret", "v1", "s"),
        ),
        (
            "/api/v1/namespaces/karmada-cluster/secrets".into(),
            "beta",
            named("Secret", "v1", "beta"),
        ),
        (
            "/api/v1/namespaces/default/configmaps".into(),
            "c",
            named("ConfigMap", "v1", "c"),
        ),
        (
            "/api/v1/namespaces/default/pods".into(),
            "p",
            named("Pod", "v1", "p"),
        ),
    ];
    for (group, version, plural, kind) in [
        ("apps", "v1", "deployments", "Deployment"),
        (
            "work.karmada.io",
            "v1alpha2",
            "resourcebindings",
            "ResourceBinding",
        ),
        (
            "policy.karmada.io",
            "v1alpha1",
            "propagationpolicies",
            "PropagationPolicy",
        ),
        (
            "rbac.authorization.k8s.io",
            "v1",
            "rolebindings",
            "RoleBinding",
        ),
    ] {
        let version = format!("{group}/{version}");
        tables.push((
            format!("/apis/{version}/namespaces/default/{plural}"),
            "x",
            named(kind, &version, "x"),
        ));
    }
    tables.push((
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings".into(),
        "x",
        named("ClusterRoleBinding", "rbac.authorization.k8s.io/v1", "x"),
    ));
    for (collection, name, body) in tables {
        for ask in asks(&collection, name, &body) {
            let what = format!("{} {}", ask.0, ask.1);
            let code = code(&mut connection, ask).await;
            // A path that there is not tells nothing of the other cluster either.
            let refused = matches!(code, StatusCode::FORBIDDEN)
                || (code == StatusCode::NOT_FOUND && what.contains("/status"));
            assert!(refused, "{what}: {code}");
        }
    }
    for list in [
        CLUSTERS.to_owned(),
        "/apis/work.karmada.io/v1alpha1/works".into(),
        "/api/v1/secrets".into(),
        "/api/v1/namespaces".into(),
        LEASES.to_owned(),
        format!("{CLUSTERS}?watch=true&timeoutSeconds=1"),
        "/apis/certificates.k8s.io/v1/certificatesigningrequests".into(),
    ] {
        assert_eq!(
            connection.get(&list).await.unwrap().code,
            StatusCode::FORBIDDEN,
            "{list}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_can_do_what_is_its_own() {
    let control_plane = populated().await;
    let mut connection = control_plane
        .agent_endpoint("alpha")
        .connect()
        .await
        .unwrap();
    for path in [
        format!("{CLUSTERS}/alpha"),
        format!("{CLUSTERS}?fieldSelector=metadata.name%3Dalpha"),
        format!("{LEASES}/alpha"),
        format!("{WORK}/karmada-es-alpha/works"),
        format!("{WORK}/karmada-es-alpha/works/w"),
    ] {
        let answer = connection.get(&path).await.unwrap();
        assert_eq!(answer.code, StatusCode::OK, "{path}: {}", answer.text());
    }
    let status = evenkeel_tests::fleet::objects::status(evenkeel_tests::clock::now(), 1);
    let answer = connection
        .patch(&format!("{CLUSTERS}/alpha/status"), &status)
        .await
        .unwrap();
    assert_eq!(answer.code, StatusCode::OK, "{}", answer.text());
    let renewal = evenkeel_tests::fleet::objects::renewal(evenkeel_tests::clock::now());
    let answer = connection
        .patch(&format!("{LEASES}/alpha"), &renewal)
        .await
        .unwrap();
    assert_eq!(answer.code, StatusCode::OK, "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_gets_no_certificate_for_another_name() {
    let control_plane = populated().await;
    let mut connection = control_plane
        .agent_endpoint("alpha")
        .connect()
        .await
        .unwrap();
    for (name, common, organization) in [
        (
            "other",
            "system:karmada:agent:beta",
            "system:karmada:agents",
        ),
        ("master", "system:karmada:agent:alpha", "system:masters"),
        ("admin", "evenkeel-admin", "system:masters"),
    ] {
        let request = evenkeel_tests::authority::request(common, organization).unwrap();
        let body = json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
            "spec": {
                "request": request, "signerName": "kubernetes.io/kube-apiserver-client",
                "usages": ["digital signature", "key encipherment", "client auth"], "expirationSeconds": 3600,
            },
        });
        let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
        let answer = connection.post(path, &body).await.unwrap();
        if answer.code == StatusCode::FORBIDDEN {
            continue;
        }
        // Taken, it must never be signed.
        evenkeel_tests::harness::throughout(
            "it is not signed",
            std::time::Duration::from_secs(2),
            async || {
                let request = control_plane.object(&format!("{path}/{name}")).await?;
                if request["status"]["certificate"].is_null() {
                    Ok(())
                } else {
                    Err("a certificate was issued".to_owned())
                }
            },
        )
        .await;
    }
}
