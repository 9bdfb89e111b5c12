//! Roles and bindings, compiled: from a subject to what it may, so that a decision looks at nothing else.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
    sync::Arc,
};

use evenkeel_shared::selector::LabelSelector;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use serde::{Deserialize, Deserializer};

use super::rule::PolicyRule;
use crate::access::{Attributes, UserInfo};

/// The group of all RBAC kinds.
pub const GROUP: &str = "rbac.authorization.k8s.io";

fn null_is_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// A Role or ClusterRole, as far as decisions need it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Role {
    pub metadata: Metadata,
    #[serde(deserialize_with = "null_is_default")]
    pub rules: Vec<PolicyRule>,
    /// Its rules are those of the ClusterRoles that any of these selectors match.
    pub aggregation_rule: Option<AggregationRule>,
}

/// Which ClusterRoles a ClusterRole is made of.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AggregationRule {
    #[serde(deserialize_with = "null_is_default")]
    pub cluster_role_selectors: Vec<meta::LabelSelector>,
}

/// Of `metadata`, what RBAC looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Metadata {
    pub name: String,
    pub namespace: String,
    #[serde(deserialize_with = "null_is_default")]
    pub labels: BTreeMap<String, String>,
}

/// A RoleBinding or ClusterRoleBinding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Binding {
    pub metadata: Metadata,
    #[serde(deserialize_with = "null_is_default")]
    pub subjects: Vec<Subject>,
    pub role_ref: RoleRef,
}

/// Whom a binding is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Subject {
    /// `User`, `Group` or `ServiceAccount`.
    pub kind: String,
    pub name: String,
    /// Of a service account; empty is the binding's own.
    pub namespace: String,
}

/// What a binding gives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct RoleRef {
    /// `Role` or `ClusterRole`.
    pub kind: String,
    pub name: String,
}

/// Everything that RBAC knows at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    pub roles: Vec<Role>,
    pub cluster_roles: Vec<Role>,
    pub role_bindings: Vec<Binding>,
    pub cluster_role_bindings: Vec<Binding>,
}

/// What one binding gives to one subject.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    rules: Arc<[PolicyRule]>,
    binding: Arc<Binding>,
    subject: usize,
}

#[derive(Debug, Default)]
struct Grants {
    everywhere: Vec<Grant>,
    in_namespace: HashMap<String, Vec<Grant>>,
}

/// The compiled policy.
#[derive(Debug, Default)]
pub struct Index {
    users: HashMap<String, Grants>,
    groups: HashMap<String, Grants>,
    roles: HashMap<(String, String), Arc<[PolicyRule]>>,
    cluster_roles: HashMap<String, Arc<[PolicyRule]>>,
}

/// The user name of a service account.
pub fn service_account_user(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

impl Index {
    pub fn compile(policy: &Policy) -> Self {
        let mut index = Self {
            cluster_roles: aggregate(&policy.cluster_roles),
            ..Self::default()
        };
        for role in &policy.roles {
            index.roles.insert(
                (role.metadata.namespace.clone(), role.metadata.name.clone()),
                role.rules.clone().into(),
            );
        }
        for binding in &policy.cluster_role_bindings {
            index.add(binding, None);
        }
        for binding in &policy.role_bindings {
            index.add(binding, Some(&binding.metadata.namespace));
        }
        index
    }

    fn add(&mut self, binding: &Binding, namespace: Option<&str>) {
        let Some(rules) = self.role(&binding.role_ref, namespace.unwrap_or_default()) else {
            return;
        };
        let shared = Arc::new(binding.clone());
        for (place, subject) in binding.subjects.iter().enumerate() {
            let grants = match subject.kind.as_str() {
                "User" => self.users.entry(subject.name.clone()),
                "Group" => self.groups.entry(subject.name.clone()),
                "ServiceAccount" => {
                    let home = if subject.namespace.is_empty() {
                        namespace.unwrap_or_default()
                    } else {
                        &subject.namespace
                    };
                    if home.is_empty() {
                        continue;
                    }
                    self.users.entry(service_account_user(home, &subject.name))
                }
                _ => continue,
            }
            .or_default();
            let list = match namespace {
                None => &mut grants.everywhere,
                Some(namespace) => grants.in_namespace.entry(namespace.to_owned()).or_default(),
            };
            list.push(Grant {
                rules: Arc::clone(&rules),
                binding: Arc::clone(&shared),
                subject: place,
            });
        }
    }

    /// The rules of a role as a binding in this namespace names it. `None`: there is no such role.
    pub fn role(&self, role: &RoleRef, namespace: &str) -> Option<Arc<[PolicyRule]>> {
        match role.kind.as_str() {
            "ClusterRole" => self.cluster_roles.get(&role.name).cloned(),
            "Role" => self
                .roles
                .get(&(namespace.to_owned(), role.name.clone()))
                .cloned(),
            _ => None,
        }
    }

    /// Everything that applies to a user in a namespace (empty: at the cluster scope).
    fn grants<'a>(
        &'a self,
        user: &'a UserInfo,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Grant> {
        let holders = self.users.get(&user.name).into_iter().chain(
            user.groups
                .iter()
                .filter_map(|group| self.groups.get(group)),
        );
        holders.flat_map(move |grants| {
            grants
                .everywhere
                .iter()
                .chain(grants.in_namespace.get(namespace).into_iter().flatten())
        })
    }

    /// The grant that allows a request.
    pub(super) fn find<'a>(
        &'a self,
        user: &'a UserInfo,
        request: &'a Attributes,
    ) -> Option<&'a Grant> {
        // A path is in no namespace.
        let namespace = if request.resource.is_empty() {
            ""
        } else {
            &request.namespace
        };
        self.grants(user, namespace)
            .find(|grant| grant.rules.iter().any(|rule| rule.allows(request)))
    }

    pub fn allows(&self, user: &UserInfo, request: &Attributes) -> bool {
        self.find(user, request).is_some()
    }

    /// Every rule that a user has in a namespace (empty: at the cluster scope).
    pub fn rules_for(&self, user: &UserInfo, namespace: &str) -> Vec<PolicyRule> {
        self.grants(user, namespace)
            .flat_map(|grant| grant.rules.iter().cloned())
            .collect()
    }

    /// A ClusterRole's rules, aggregated ones included.
    pub fn cluster_role(&self, name: &str) -> Option<&Arc<[PolicyRule]>> {
        self.cluster_roles.get(name)
    }
}

impl Grant {
    /// `RBAC: allowed by …`, in the reference server's words.
    pub fn describe(&self) -> String {
        let Binding {
            metadata,
            subjects,
            role_ref,
        } = &*self.binding;
        let mut text = String::from("RBAC: allowed by ");
        let _ = if metadata.namespace.is_empty() {
            write!(text, "ClusterRoleBinding {:?}", metadata.name)
        } else {
            write!(
                text,
                "RoleBinding {:?}",
                format!("{}/{}", metadata.name, metadata.namespace)
            )
        };
        let _ = write!(text, " of {} {:?} to ", role_ref.kind, role_ref.name);
        let subject = &subjects[self.subject];
        let name = match (subject.kind.as_str(), subject.namespace.as_str()) {
            ("ServiceAccount", "") => format!("{}/{}", subject.name, metadata.namespace),
            ("ServiceAccount", namespace) => format!("{}/{namespace}", subject.name),
            _ => subject.name.clone(),
        };
        let _ = write!(text, "{} {name:?}", subject.kind);
        text
    }
}

/// The rules of each ClusterRole. One with an aggregation rule has those of all that it selects, which may themselves be
/// aggregated; a circle adds nothing.
fn aggregate(roles: &[Role]) -> HashMap<String, Arc<[PolicyRule]>> {
    let selects = |role: &Role| -> Option<Vec<LabelSelector>> {
        let rule = role.aggregation_rule.as_ref()?;
        Some(
            rule.cluster_role_selectors
                .iter()
                .filter_map(|selector| LabelSelector::of(selector).ok())
                .collect(),
        )
    };
    let parts: Vec<Option<Vec<usize>>> = roles
        .iter()
        .map(|role| {
            let selectors = selects(role)?;
            let mut chosen: Vec<_> = (0..roles.len())
                .filter(|&other| {
                    selectors
                        .iter()
                        .any(|selector| selector.matches_labels(&roles[other].metadata.labels))
                })
                .collect();
            chosen.sort_by(|&a, &b| roles[a].metadata.name.cmp(&roles[b].metadata.name));
            Some(chosen)
        })
        .collect();
    let mut all = HashMap::with_capacity(roles.len());
    for (place, role) in roles.iter().enumerate() {
        let mut rules: Vec<PolicyRule> = Vec::new();
        let mut seen = vec![
            false;
            if parts[place].is_some() {
                roles.len()
            } else {
                0
            }
        ];
        let mut open = vec![place];
        if parts[place].is_none() {
            rules.clone_from(&role.rules);
            open.clear();
        }
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            match &parts[at] {
                Some(chosen) => open.extend(chosen.iter().rev()),
                None => {
                    for rule in &roles[at].rules {
                        if !rules.contains(rule) {
                            rules.push(rule.clone());
                        }
                    }
                }
            }
        }
        all.insert(role.metadata.name.clone(), rules.into());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn policy() -> Policy {
        fn parse<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> T {
            serde_json::from_value(value).unwrap()
        }
        Policy {
            roles: vec![parse(json!({
                "metadata": {"name": "r", "namespace": "ns"},
                "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]}],
            }))],
            cluster_roles: vec![
                parse(
                    json!({"metadata": {"name": "all"}, "aggregationRule": {"clusterRoleSelectors": [
                    {"matchLabels": {"to": "all"}}, {"matchExpressions": [{"key": "also", "operator": "Exists"}]}]},
                    "rules": [{"verbs": ["old"]}]}),
                ),
                parse(json!({"metadata": {"name": "a", "labels": {"to": "all"}},
                    "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}]})),
                parse(
                    json!({"metadata": {"name": "b", "labels": {"also": ""}}, "aggregationRule":
                    {"clusterRoleSelectors": [{"matchLabels": {"to": "b"}}, {"matchLabels": {"to": "all"}}]}}),
                ),
                parse(json!({"metadata": {"name": "c", "labels": {"to": "b"}},
                    "rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]})),
            ],
            role_bindings: vec![
                parse(json!({"metadata": {"name": "b", "namespace": "ns"},
                    "subjects": [{"kind": "User", "name": "alice"}, {"kind": "ServiceAccount", "name": "sa"}],
                    "roleRef": {"kind": "Role", "name": "r"}})),
                parse(json!({"metadata": {"name": "wide", "namespace": "ns"},
                    "subjects": [{"kind": "Group", "name": "devs"}],
                    "roleRef": {"kind": "ClusterRole", "name": "all"}})),
                parse(json!({"metadata": {"name": "hanging", "namespace": "ns"},
                    "subjects": [{"kind": "User", "name": "carol"}],
                    "roleRef": {"kind": "Role", "name": "gone"}})),
            ],
            cluster_role_bindings: vec![parse(json!({"metadata": {"name": "c"},
                "subjects": [{"kind": "Group", "name": "paths"}, {"kind": "ServiceAccount", "name": "nowhere"}],
                "roleRef": {"kind": "ClusterRole", "name": "b"}}))],
        }
    }

    fn user(name: &str, groups: &[&str]) -> UserInfo {
        UserInfo {
            name: name.into(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
            ..UserInfo::default()
        }
    }

    fn request(resource: &str, namespace: &str) -> Attributes {
        let mut request = Attributes {
            verb: "get".into(),
            name: "x".into(),
            namespace: namespace.into(),
            ..Attributes::default()
        };
        if resource.starts_with('/') {
            request.path = resource.into();
        } else {
            request.resource = resource.into();
        }
        request
    }

    #[test]
    fn bindings_reach_their_subjects_where_they_are_and_nobody_else() {
        let index = Index::compile(&policy());
        for (user, resource, namespace, expected) in [
            (user("alice", &[]), "configmaps", "ns", true),
            (user("alice", &[]), "configmaps", "other", false),
            (user("alice", &[]), "configmaps", "", false),
            (user("alice", &[]), "secrets", "ns", false),
            (user("bob", &["alice"]), "configmaps", "ns", false),
            (
                user("system:serviceaccount:ns:sa", &[]),
                "configmaps",
                "ns",
                true,
            ),
            (
                user("system:serviceaccount:other:sa", &[]),
                "configmaps",
                "ns",
                false,
            ),
            (user("dan", &["devs"]), "secrets", "ns", true),
            (user("dan", &["devs"]), "/x", "", false),
            (user("pat", &["paths"]), "/x", "", true),
            (user("pat", &["paths"]), "secrets", "anywhere", true),
            (user("carol", &[]), "configmaps", "ns", false),
        ] {
            let request = request(resource, namespace);
            assert_eq!(
                index.allows(&user, &request),
                expected,
                "{user:?} {request:?}"
            );
        }
    }

    #[test]
    fn aggregation_follows_labels_through_circles_and_replaces_own_rules() {
        let index = Index::compile(&policy());
        let verbs = |name: &str| {
            index
                .cluster_role(name)
                .unwrap()
                .iter()
                .map(PolicyRule::describe)
                .collect::<Vec<_>>()
        };
        let secrets = r#"{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}"#;
        let path = r#"{NonResourceURLs:["/x"], Verbs:["get"]}"#;
        assert_eq!(verbs("all"), [secrets, path]);
        assert_eq!(verbs("b"), [secrets, path]);
        let mut circle = policy();
        circle.cluster_roles[0].metadata.labels = [("to".to_owned(), "b".to_owned())].into();
        assert_eq!(Index::compile(&circle).cluster_role("b").unwrap().len(), 2);
    }

    #[test]
    fn reasons_are_the_reference_servers() {
        let index = Index::compile(&policy());
        for (user, resource, expected) in [
            (
                user("alice", &[]),
                "configmaps",
                r#"RBAC: allowed by RoleBinding "b/ns" of Role "r" to User "alice""#,
            ),
            (
                user("system:serviceaccount:ns:sa", &[]),
                "configmaps",
                r#"RBAC: allowed by RoleBinding "b/ns" of Role "r" to ServiceAccount "sa/ns""#,
            ),
            (
                user("pat", &["paths"]),
                "secrets",
                r#"RBAC: allowed by ClusterRoleBinding "c" of ClusterRole "b" to Group "paths""#,
            ),
        ] {
            let request = request(resource, "ns");
            assert_eq!(index.find(&user, &request).unwrap().describe(), expected);
        }
    }
}
