//! The roles and bindings that are there from the start, as the reference server's, and with the fleet's kinds in them.

use serde_json::{Value, json};

const GROUP: &str = "rbac.authorization.k8s.io";
const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];

/// Kinds of the fleet that everybody who may look may see.
const FLEET: &[(&str, &[&str])] = &[
    ("cluster.karmada.io", &["clusters", "clusters/status"]),
    (
        "hosted.evenkeel.io",
        &["hostedclusters", "hostedclusters/status"],
    ),
    ("multicluster.x-k8s.io", &["clusterprofiles"]),
    ("placement.evenkeel.io", &["placementexplanations"]),
    ("topology.evenkeel.io", &["clustertopologies"]),
    (
        "work.karmada.io",
        &[
            "clusterresourcebindings",
            "resourcebindings",
            "resourcebindings/status",
            "works",
            "works/status",
        ],
    ),
    (
        "policy.karmada.io",
        &[
            "clusteroverridepolicies",
            "clusterpropagationpolicies",
            "clustertaintpolicies",
        ],
    ),
];

/// What a team keeps in its namespace, Secrets aside.
const WORKLOADS: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "configmaps",
            "persistentvolumeclaims",
            "pods",
            "replicationcontrollers",
            "serviceaccounts",
            "services",
        ],
    ),
    (
        "apps",
        &[
            "daemonsets",
            "deployments",
            "deployments/scale",
            "replicasets",
            "replicasets/scale",
            "statefulsets",
            "statefulsets/scale",
        ],
    ),
    ("autoscaling", &["horizontalpodautoscalers"]),
    ("batch", &["cronjobs", "jobs"]),
    ("networking.k8s.io", &["ingresses", "networkpolicies"]),
    ("policy", &["poddisruptionbudgets"]),
    (
        "policy.karmada.io",
        &["overridepolicies", "propagationpolicies"],
    ),
];

fn rules(kinds: &[(&str, &[&str])], verbs: &[&str]) -> Vec<Value> {
    kinds
        .iter()
        .map(|(group, resources)| json!({"verbs": verbs, "apiGroups": [group], "resources": resources}))
        .collect()
}

fn paths(paths: &[&str]) -> Vec<Value> {
    vec![json!({"verbs": ["get"], "nonResourceURLs": paths})]
}

fn cluster_role(name: &str, labels: &[(&str, &str)], rules: &[Value]) -> Value {
    let mut all = json!({"kubernetes.io/bootstrapping": "rbac-defaults"});
    for (key, value) in labels {
        all[*key] = (*value).into();
    }
    json!({"metadata": {"name": name, "labels": all}, "rules": rules})
}

fn cluster_binding(name: &str, role: &str, groups: &[&str]) -> Value {
    let subjects: Vec<_> = groups
        .iter()
        .map(|group| json!({"kind": "Group", "apiGroup": GROUP, "name": group}))
        .collect();
    json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}},
        "roleRef": {"kind": "ClusterRole", "apiGroup": GROUP, "name": role},
        "subjects": subjects,
    })
}

/// A role that is made of all that carry its label, with what it is made of at first written out for readers.
fn aggregated(name: &str, labels: &[(&str, &str)], rules: &[Value]) -> Value {
    let mut role = cluster_role(name, labels, rules);
    let label = format!("rbac.authorization.k8s.io/aggregate-to-{name}");
    role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]});
    role
}

fn to(name: &str) -> String {
    format!("rbac.authorization.k8s.io/aggregate-to-{name}")
}

/// One object of the defaults: its kind, its namespace, and itself without them.
pub type Default = (&'static str, Option<&'static str>, Value);

/// All default roles and bindings.
pub fn objects() -> Vec<Default> {
    let view: Vec<_> = rules(FLEET, READ)
        .into_iter()
        .chain(rules(WORKLOADS, READ))
        .chain(rules(
            &[
                ("", &["events", "namespaces"]),
                ("events.k8s.io", &["events"]),
            ],
            READ,
        ))
        .collect();
    let edit: Vec<_> = rules(WORKLOADS, WRITE)
        .into_iter()
        .chain(rules(&[("", &["secrets"])], &[READ, WRITE].concat()))
        .collect();
    let admin = rules(
        &[(GROUP, &["rolebindings", "roles"])],
        &[READ, WRITE].concat(),
    );
    let [to_view, to_edit, to_admin] = ["view", "edit", "admin"].map(to);
    let aggregates = [
        ("system:aggregate-to-view", &to_view, view.clone()),
        ("system:aggregate-to-edit", &to_edit, edit.clone()),
        ("system:aggregate-to-admin", &to_admin, admin.clone()),
    ];
    let mut all: Vec<Default> = aggregates
        .into_iter()
        .map(|(name, label, rules)| {
            (
                "ClusterRole",
                None,
                cluster_role(name, &[(label, "true")], &rules),
            )
        })
        .collect();
    let edit = [edit, view.clone()].concat();
    let admin = [admin, edit.clone()].concat();
    let open = ["/healthz", "/livez", "/readyz", "/version", "/version/"];
    let discovery = [
        "/api",
        "/api/*",
        "/apis",
        "/apis/*",
        "/openapi",
        "/openapi/*",
    ];
    let everything = vec![
        json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}),
        json!({"verbs": ["*"], "nonResourceURLs": ["*"]}),
    ];
    let about_oneself = [
        rules(
            &[(
                "authorization.k8s.io",
                &["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
            )],
            &["create"],
        ),
        rules(
            &[("authentication.k8s.io", &["selfsubjectreviews"])],
            &["create"],
        ),
    ];
    for role in [
        cluster_role("cluster-admin", &[], &everything),
        aggregated("admin", &[], &admin),
        aggregated("edit", &[(&to_admin, "true")], &edit),
        aggregated("view", &[(&to_edit, "true")], &view),
        cluster_role(
            "system:discovery",
            &[],
            &paths(&[&discovery[..], &open].concat()),
        ),
        cluster_role("system:basic-user", &[], &about_oneself.concat()),
        cluster_role("system:public-info-viewer", &[], &paths(&open)),
    ] {
        all.push(("ClusterRole", None, role));
    }
    for (name, groups) in [
        ("cluster-admin", &["system:masters"][..]),
        ("system:discovery", &["system:authenticated"]),
        ("system:basic-user", &["system:authenticated"]),
        (
            "system:public-info-viewer",
            &["system:authenticated", "system:unauthenticated"],
        ),
    ] {
        all.push((
            "ClusterRoleBinding",
            None,
            cluster_binding(name, name, groups),
        ));
    }
    all.push((
        "Role",
        Some("kube-public"),
        json!({"metadata": {"name": "evenkeel:cluster-info"}, "rules": [
            {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["cluster-info"]}]}),
    ));
    all.push((
        "RoleBinding",
        Some("kube-public"),
        json!({
            "metadata": {"name": "evenkeel:cluster-info"},
            "roleRef": {"kind": "Role", "apiGroup": GROUP, "name": "evenkeel:cluster-info"},
            "subjects": [
                {"kind": "Group", "apiGroup": GROUP, "name": "system:unauthenticated"},
                {"kind": "Group", "apiGroup": GROUP, "name": "system:authenticated"},
            ],
        }),
    ));
    all
}

#[cfg(test)]
mod tests {
    use evenkeel_api::access::{
        Attributes, UserInfo,
        rbac::{Index, Policy},
    };

    use super::*;

    fn policy() -> Policy {
        let mut policy = Policy::default();
        for (kind, namespace, mut object) in objects() {
            if let Some(namespace) = namespace {
                object["metadata"]["namespace"] = namespace.into();
            }
            match kind {
                "Role" => policy.roles.push(serde_json::from_value(object).unwrap()),
                "ClusterRole" => policy
                    .cluster_roles
                    .push(serde_json::from_value(object).unwrap()),
                "RoleBinding" => policy
                    .role_bindings
                    .push(serde_json::from_value(object).unwrap()),
                _ => policy
                    .cluster_role_bindings
                    .push(serde_json::from_value(object).unwrap()),
            }
        }
        for (name, role) in [("v", "view"), ("e", "edit"), ("a", "admin")] {
            let mut binding = cluster_binding(name, role, &[name]);
            binding["metadata"]["namespace"] = "team".into();
            policy
                .role_bindings
                .push(serde_json::from_value(binding).unwrap());
        }
        policy
    }

    #[test]
    fn each_default_gives_what_it_is_for() {
        let index = Index::compile(&policy());
        for (group, verb, kind, namespace, name, expected) in [
            (
                "system:masters",
                "delete",
                "apps/deployments",
                "any",
                "x",
                true,
            ),
            (
                "system:authenticated",
                "get",
                "path:/apis/apps/v1",
                "",
                "",
                true,
            ),
            (
                "system:authenticated",
                "get",
                "path:/metrics",
                "",
                "",
                false,
            ),
            (
                "system:unauthenticated",
                "get",
                "path:/readyz",
                "",
                "",
                true,
            ),
            ("system:unauthenticated", "get", "path:/apis", "", "", false),
            (
                "system:unauthenticated",
                "get",
                "/configmaps",
                "kube-public",
                "cluster-info",
                true,
            ),
            (
                "system:unauthenticated",
                "get",
                "/configmaps",
                "kube-public",
                "other",
                false,
            ),
            (
                "system:unauthenticated",
                "list",
                "/configmaps",
                "kube-public",
                "",
                false,
            ),
            (
                "system:authenticated",
                "create",
                "authorization.k8s.io/selfsubjectaccessreviews",
                "",
                "",
                true,
            ),
            (
                "system:authenticated",
                "create",
                "authorization.k8s.io/subjectaccessreviews",
                "",
                "",
                false,
            ),
            ("v", "list", "apps/deployments", "team", "", true),
            ("v", "list", "apps/deployments", "other", "", false),
            ("v", "get", "/secrets", "team", "x", false),
            ("v", "create", "apps/deployments", "team", "", false),
            (
                "e",
                "create",
                "policy.karmada.io/propagationpolicies",
                "team",
                "",
                true,
            ),
            (
                "e",
                "list",
                "policy.karmada.io/propagationpolicies",
                "team",
                "",
                true,
            ),
            ("e", "get", "/secrets", "team", "x", true),
            (
                "e",
                "create",
                "rbac.authorization.k8s.io/roles",
                "team",
                "",
                false,
            ),
            (
                "a",
                "create",
                "rbac.authorization.k8s.io/roles",
                "team",
                "",
                true,
            ),
            (
                "a",
                "escalate",
                "rbac.authorization.k8s.io/roles",
                "team",
                "x",
                false,
            ),
            ("a", "create", "apps/deployments", "team", "", true),
            ("a", "delete", "cluster.karmada.io/clusters", "", "x", false),
        ] {
            let user = UserInfo {
                name: "somebody".into(),
                groups: vec![group.into()],
                ..UserInfo::default()
            };
            let mut request = Attributes {
                verb: verb.into(),
                namespace: namespace.into(),
                name: name.into(),
                ..Attributes::default()
            };
            if let Some(path) = kind.strip_prefix("path:") {
                request.path = path.into();
            } else {
                let (group, resource) = kind.split_once('/').unwrap();
                request.group = group.into();
                request.resource = resource.into();
            }
            assert_eq!(
                index.allows(&user, &request),
                expected,
                "{group} {verb} {kind} {namespace} {name}"
            );
        }
    }

    #[test]
    fn the_rules_that_readers_see_are_those_that_count() {
        let policy = policy();
        let index = Index::compile(&policy);
        for role in &policy.cluster_roles {
            let mut written = role.rules.clone();
            let mut counted = index.cluster_role(&role.metadata.name).unwrap().to_vec();
            written.sort();
            counted.sort();
            assert_eq!(written, counted, "{}", role.metadata.name);
        }
    }
}
