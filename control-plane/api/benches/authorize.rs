//! One decision by RBAC, in a policy of 1,000 namespaces with a role and two bindings each, and some wide ClusterRoles.
//!
//! `cargo bench -p evenkeel-api --bench authorize`

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use evenkeel_api::access::{
    Attributes, Authorizer, UserInfo,
    rbac::{Policy, Rbac},
};
use serde_json::{Value, json};

fn parse<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("of the right shape")
}

fn policy() -> Policy {
    let resources: Vec<_> = (0..60).map(|n| format!("kinds{n}")).collect();
    let mut policy = Policy::default();
    for name in ["admin", "edit", "view"] {
        let rules: Vec<_> = (0..12)
            .map(|n| json!({"verbs": ["get", "list", "watch"], "apiGroups": [format!("group{n}")], "resources": resources}))
            .collect();
        policy
            .cluster_roles
            .push(parse(json!({"metadata": {"name": name}, "rules": rules})));
    }
    policy.cluster_role_bindings.push(parse(json!({"metadata": {"name": "viewers"},
        "subjects": [{"kind": "Group", "name": "viewers"}], "roleRef": {"kind": "ClusterRole", "name": "view"}})));
    for n in 0..1000 {
        let namespace = format!("team-{n}");
        policy.roles.push(parse(
            json!({"metadata": {"name": "own", "namespace": namespace},
            "rules": [{"verbs": ["*"], "apiGroups": [""], "resources": ["configmaps"]}]}),
        ));
        for (kind, role) in [("Role", "own"), ("ClusterRole", "admin")] {
            policy.role_bindings.push(parse(json!({"metadata": {"name": role, "namespace": namespace},
                "subjects": [{"kind": "Group", "name": namespace}, {"kind": "User", "name": "roamer"}],
                "roleRef": {"kind": kind, "name": role}})));
        }
    }
    policy
}

fn user(groups: &[&str]) -> UserInfo {
    UserInfo {
        name: "roamer".into(),
        groups: groups.iter().map(|&group| group.to_owned()).collect(),
        ..UserInfo::default()
    }
}

fn request(group: &str, resource: &str) -> Attributes {
    Attributes {
        verb: "list".into(),
        group: group.into(),
        resource: resource.into(),
        namespace: "team-500".into(),
        ..Attributes::default()
    }
}

fn authorize(c: &mut Criterion) {
    let policy = policy();
    let rbac = Rbac::new(&policy);
    let user = user(&["team-500", "viewers", "system:authenticated"]);
    for (name, request) in [
        ("allowed by a role", request("", "configmaps")),
        ("allowed by the last rule", request("group11", "kinds59")),
        ("allowed by nothing", request("group11", "nothing")),
    ] {
        c.bench_function(name, |b| {
            b.iter(|| rbac.authorize(black_box(&user), black_box(&request)));
        });
    }
    c.bench_function("compile 1,000 roles and 2,000 bindings", |b| {
        b.iter(|| rbac.set(black_box(&policy)));
    });
}

criterion_group!(benches, authorize);
criterion_main!(benches);
