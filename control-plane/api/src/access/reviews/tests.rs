use evenkeel_shared::field::FieldErrorKind;

use super::*;
use crate::{
    access::{
        masters::Masters,
        rbac::{Policy, Rbac},
        statictoken::StaticTokens,
    },
    kind::RequestContext,
};

fn policy() -> Policy {
    fn parse<T: serde::de::DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).unwrap()
    }
    Policy {
        cluster_roles: vec![parse(json!({"metadata": {"name": "system:discovery"},
            "rules": [{"verbs": ["get"], "nonResourceURLs": ["/api"]}]}))],
        cluster_role_bindings: vec![parse(json!({"metadata": {"name": "system:discovery"},
            "subjects": [{"kind": "Group", "name": "system:authenticated"}],
            "roleRef": {"kind": "ClusterRole", "name": "system:discovery"}}))],
        ..Policy::default()
    }
}

fn ask(plural: &str, user: &str, groups: &[&str], body: Value) -> Result<Value, Failure> {
    let authorizers: Arc<[Arc<dyn Authorizer>]> =
        Arc::new([Arc::new(Masters) as _, Arc::new(Rbac::new(&policy())) as _]);
    let tokens: Arc<[Arc<dyn Authenticator>]> =
        Arc::new([Arc::new(StaticTokens::master("t0p")) as _]);
    let kinds = kinds(tokens, &authorizers);
    let kind = kinds.iter().find(|kind| kind.plural == plural).unwrap();
    let Storage::Review(review) = &kind.storage else {
        panic!("{plural} is stored")
    };
    let ctx = RequestContext {
        user: Arc::new(UserInfo {
            name: user.into(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
            ..UserInfo::default()
        }),
        namespace: (kind.scope == KindScope::Namespaced).then(|| "ns".into()),
        name: None,
        subresource: None,
        now: "2030-01-01T00:00:00Z".parse().unwrap(),
        dry_run: false,
    };
    futures::FutureExt::now_or_never(review.review(ctx, body)).expect("answered at once")
}

const SELF: &str = "selfsubjectaccessreviews";
const OTHER: &str = "subjectaccessreviews";
const LOCAL: &str = "localsubjectaccessreviews";

#[test]
fn access_reviews_answer_as_the_reference_server() {
    let pods =
        json!({"resourceAttributes": {"namespace": "ns", "verb": "get", "resource": "pods"}});
    let path = |path: &str| json!({"nonResourceAttributes": {"path": path, "verb": "get"}});
    let by = |who: Value| {
        let mut spec = pods.clone();
        spec.as_object_mut()
            .unwrap()
            .append(&mut who.as_object().unwrap().clone());
        spec
    };
    for (plural, groups, spec, expected) in [
        (
            SELF,
            "system:masters",
            pods.clone(),
            json!({"allowed": true}),
        ),
        (SELF, "devs", pods.clone(), json!({"allowed": false})),
        (
            SELF,
            "system:authenticated",
            path("/metrics"),
            json!({"allowed": false}),
        ),
        (
            SELF,
            "system:authenticated",
            path("/api"),
            json!({"allowed": true, "reason": "RBAC: allowed by ClusterRoleBinding \"system:discovery\" of ClusterRole \"system:discovery\" to Group \"system:authenticated\""}),
        ),
        (
            OTHER,
            "system:masters",
            by(json!({"user": "alice"})),
            json!({"allowed": false}),
        ),
        (
            OTHER,
            "devs",
            by(json!({"user": "x", "groups": ["system:masters"]})),
            json!({"allowed": true}),
        ),
        (
            LOCAL,
            "devs",
            by(json!({"groups": ["system:masters"]})),
            json!({"allowed": true}),
        ),
    ] {
        let body = json!({"metadata": {"creationTimestamp": null}, "spec": spec});
        let answer = ask(plural, "alice", &[groups], body.clone()).unwrap();
        assert_eq!(answer["status"], expected, "{plural} {spec}");
        assert_eq!(answer["spec"], spec);
    }
}

#[test]
fn what_is_wrong_with_a_review_is_told_as_the_reference_server_does() {
    let pods = json!({"namespace": "ns", "verb": "get", "resource": "pods"});
    for (plural, body, message, field) in [
        (
            SELF,
            json!({"spec": {}}),
            "Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified",
            "spec.resourceAttributes",
        ),
        (
            SELF,
            json!({"spec": {"resourceAttributes": pods, "nonResourceAttributes": {"path": "/x", "verb": "get"}}}),
            "Invalid value: {\"Path\":\"/x\",\"Verb\":\"get\"}: cannot be specified in combination with resourceAttributes",
            "spec.nonResourceAttributes",
        ),
        (
            SELF,
            json!({"metadata": {"name": "x"}, "spec": {"resourceAttributes": pods}}),
            "Invalid value: {\"name\":\"x\"}: must be empty",
            "metadata",
        ),
        (
            OTHER,
            json!({"spec": {"resourceAttributes": pods}}),
            "Invalid value: \"\": at least one of user or group must be specified",
            "spec.user",
        ),
        (
            LOCAL,
            json!({"metadata": {"namespace": "ns"}, "spec": {"user": "a", "resourceAttributes": {"namespace": "other"}}}),
            "Invalid value: \"other\": must match metadata.namespace",
            "spec.resourceAttributes.namespace",
        ),
        (
            LOCAL,
            json!({"spec": {"user": "a", "nonResourceAttributes": {"path": "/x", "verb": "get"}}}),
            "Invalid value: {\"Path\":\"/x\",\"Verb\":\"get\"}: disallowed on this kind of request",
            "spec.nonResourceAttributes",
        ),
    ] {
        let failure = ask(plural, "alice", &[], body).unwrap_err();
        assert_eq!(
            failure.message,
            format!(".authorization.k8s.io \"\" is invalid: {field}: {message}")
        );
        assert_eq!(
            failure.details,
            json!({"group": "authorization.k8s.io", "causes": [
                {"reason": FieldErrorKind::Invalid.as_str(), "message": message, "field": field}]})
        );
    }
    let failure = ask(
        SELF,
        "a",
        &[],
        json!({"spec": {"resourceAttributes": {"verb": 1}}}),
    )
    .unwrap_err();
    assert_eq!(failure.code, 400);
}

#[test]
fn rules_are_listed_for_a_namespace() {
    let status = |groups: &[&str], namespace: &str| {
        ask(
            "selfsubjectrulesreviews",
            "alice",
            groups,
            json!({"spec": {"namespace": namespace}}),
        )
        .map(|answer| answer["status"].clone())
    };
    assert_eq!(
        status(&["system:authenticated"], "ns").unwrap(),
        json!({"resourceRules": [], "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/api"]}], "incomplete": false})
    );
    assert_eq!(
        status(&["system:masters"], "ns").unwrap(),
        json!({"resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}], "incomplete": false})
    );
    assert_eq!(
        status(&[], "").unwrap_err().message,
        "no namespace on request"
    );
}

#[test]
fn identities() {
    let me = ask("selfsubjectreviews", "alice", &["devs"], json!({})).unwrap();
    assert_eq!(
        me["status"],
        json!({"userInfo": {"username": "alice", "groups": ["devs"]}})
    );
    let whose = |token: &str| {
        ask(
            "tokenreviews",
            "alice",
            &[],
            json!({"spec": {"token": token}}),
        )
        .map(|answer| answer["status"].clone())
    };
    assert_eq!(
        whose("t0p").unwrap(),
        json!({"authenticated": true, "user": {"username": "admin", "groups": ["system:masters", "system:authenticated"]}})
    );
    assert_eq!(
        whose("guess").unwrap(),
        json!({"user": {}, "error": "invalid bearer token"})
    );
    assert_eq!(whose("").unwrap_err().code, 422);
}
