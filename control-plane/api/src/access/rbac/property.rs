//! The compiled index against an evaluator that reads the policy as it is written, and escalation against decisions.

use proptest::{prelude::*, sample::select};

use super::{
    escalation,
    index::{Binding, Index, Metadata, Policy, Role, RoleRef, Subject, service_account_user},
    rule::PolicyRule,
};
use crate::access::{Attributes, UserInfo};

/// The definition, from binding to rule, with no shortcut.
fn naive(policy: &Policy, user: &UserInfo, request: &Attributes) -> bool {
    let is_subject = |subject: &Subject, home: &str| match subject.kind.as_str() {
        "User" => subject.name == user.name,
        "Group" => user.groups.contains(&subject.name),
        "ServiceAccount" => {
            let namespace = if subject.namespace.is_empty() {
                home
            } else {
                &subject.namespace
            };
            !namespace.is_empty() && service_account_user(namespace, &subject.name) == user.name
        }
        _ => false,
    };
    let allows = |role: Option<&Role>| {
        role.is_some_and(|role| {
            role.rules.iter().any(|rule| {
                let star = |list: &[String], item: &str| list.iter().any(|x| x == "*" || x == item);
                let full = if request.subresource.is_empty() {
                    request.resource.clone()
                } else {
                    format!("{}/{}", request.resource, request.subresource)
                };
                let any_with_subresource = format!("*/{}", request.subresource);
                star(&rule.verbs, &request.verb)
                    && if request.resource.is_empty() {
                        rule.non_resource_urls.iter().any(|url| {
                            *url == request.path
                                || url.ends_with('*')
                                    && request.path.starts_with(url.trim_end_matches('*'))
                        })
                    } else {
                        star(&rule.api_groups, &request.group)
                            && rule.resources.iter().any(|resource| {
                                resource == "*"
                                    || *resource == full
                                    || !request.subresource.is_empty()
                                        && *resource == any_with_subresource
                            })
                            && (rule.resource_names.is_empty()
                                || rule.resource_names.contains(&request.name))
                    }
            })
        })
    };
    let cluster_role = |name: &str| {
        policy
            .cluster_roles
            .iter()
            .find(|role| role.metadata.name == name)
    };
    policy.cluster_role_bindings.iter().any(|binding| {
        binding
            .subjects
            .iter()
            .any(|subject| is_subject(subject, ""))
            && binding.role_ref.kind == "ClusterRole"
            && allows(cluster_role(&binding.role_ref.name))
    }) || !request.resource.is_empty()
        && policy.role_bindings.iter().any(|binding| {
            binding.metadata.namespace == request.namespace
                && binding
                    .subjects
                    .iter()
                    .any(|subject| is_subject(subject, &binding.metadata.namespace))
                && allows(match binding.role_ref.kind.as_str() {
                    "ClusterRole" => cluster_role(&binding.role_ref.name),
                    "Role" => policy.roles.iter().find(|role| {
                        role.metadata.name == binding.role_ref.name
                            && role.metadata.namespace == binding.metadata.namespace
                    }),
                    _ => None,
                })
        })
}

fn text(options: &'static [&'static str]) -> impl Strategy<Value = String> {
    select(options).prop_map(str::to_owned)
}

fn texts(options: &'static [&'static str], most: usize) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(text(options), 0..=most)
}

const VERBS: &[&str] = &["get", "list", "create", "escalate", "*"];
const GROUPS: &[&str] = &["", "apps", "*"];
const RESOURCES: &[&str] = &[
    "pods",
    "deployments",
    "pods/log",
    "deployments/scale",
    "*/scale",
    "pods/*",
    "*",
];
const NAMES: &[&str] = &["a", "b"];
const PATHS: &[&str] = &["/x", "/x/*", "/x/y", "*"];
const NAMESPACES: &[&str] = &["n", "m"];

/// Of resources or of paths, as validation has it.
fn rule() -> impl Strategy<Value = PolicyRule> {
    let resources = (texts(GROUPS, 2), texts(RESOURCES, 2), texts(NAMES, 1)).prop_map(
        |(api_groups, resources, resource_names)| PolicyRule {
            api_groups,
            resources,
            resource_names,
            ..PolicyRule::default()
        },
    );
    let paths = texts(PATHS, 2).prop_map(|non_resource_urls| PolicyRule {
        non_resource_urls,
        ..PolicyRule::default()
    });
    (texts(VERBS, 2), prop_oneof![3 => resources, 1 => paths])
        .prop_map(|(verbs, rule)| PolicyRule { verbs, ..rule })
}

/// Names are unique, as the store keeps them.
fn roles(namespaced: bool) -> impl Strategy<Value = Vec<Role>> {
    let one = prop::collection::vec(rule(), 0..3);
    prop::collection::vec(one, 4).prop_map(move |rules| {
        rules
            .into_iter()
            .enumerate()
            .map(|(n, rules)| Role {
                metadata: Metadata {
                    name: NAMES[n % 2].into(),
                    namespace: if namespaced {
                        NAMESPACES[n / 2].into()
                    } else {
                        String::new()
                    },
                    ..Metadata::default()
                },
                rules,
                aggregation_rule: None,
            })
            .take(if namespaced { 4 } else { 2 })
            .collect()
    })
}

fn bindings(namespaced: bool) -> impl Strategy<Value = Vec<Binding>> {
    let subject = (
        text(&["User", "Group", "ServiceAccount", "Robot"]),
        text(&["u", "g", "sa"]),
        text(&["", "n"]),
    )
        .prop_map(|(kind, name, namespace)| Subject {
            kind,
            name,
            namespace,
        });
    let role = (
        text(&["Role", "ClusterRole", "Rule"]),
        text(&["a", "b", "gone"]),
    )
        .prop_map(|(kind, name)| RoleRef { kind, name });
    let binding = (
        text(if namespaced { NAMESPACES } else { &[""] }),
        prop::collection::vec(subject, 0..3),
        role,
    )
        .prop_map(|(namespace, subjects, role_ref)| Binding {
            metadata: Metadata {
                namespace,
                ..Metadata::default()
            },
            subjects,
            role_ref,
        });
    prop::collection::vec(binding, 0..5)
}

fn user() -> impl Strategy<Value = UserInfo> {
    (
        text(&[
            "u",
            "g",
            "system:serviceaccount:n:sa",
            "system:serviceaccount:m:sa",
        ]),
        texts(&["g", "u"], 2),
    )
        .prop_map(|(name, groups)| UserInfo {
            name,
            groups,
            ..UserInfo::default()
        })
}

fn request() -> impl Strategy<Value = Attributes> {
    let resource = (
        text(&["", "apps"]),
        text(&["pods", "deployments"]),
        text(&["", "log", "scale", "*"]),
        text(&["", "n", "m"]),
        text(&["", "a", "b"]),
    );
    let path = text(&["/x", "/x/", "/x/y", "/z"]);
    (
        text(&["get", "list", "create", "escalate"]),
        resource,
        path,
        any::<bool>(),
    )
        .prop_map(
            |(verb, (group, resource, subresource, namespace, name), path, is_path)| {
                if is_path {
                    Attributes {
                        verb,
                        path,
                        ..Attributes::default()
                    }
                } else {
                    Attributes {
                        verb,
                        group,
                        resource,
                        subresource,
                        namespace,
                        name,
                        ..Attributes::default()
                    }
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The compiled index decides as the definition does.
    #[test]
    fn the_index_is_the_definition(
        (roles, cluster_roles) in (roles(true), roles(false)),
        (role_bindings, cluster_role_bindings) in (bindings(true), bindings(false)),
        user in user(),
        requests in prop::collection::vec(request(), 8),
    ) {
        let policy = Policy { roles, cluster_roles, role_bindings, cluster_role_bindings };
        let index = Index::compile(&policy);
        for request in requests {
            prop_assert_eq!(index.allows(&user, &request), naive(&policy, &user, &request), "{:?}", request);
        }
    }

    /// What escalation lets through gives no request that its writer could not make.
    #[test]
    fn nobody_gives_what_they_do_not_have(
        owned in prop::collection::vec(rule(), 0..4),
        wanted in prop::collection::vec(rule(), 0..3),
        requests in prop::collection::vec(request(), 16),
    ) {
        let outcome = escalation::check(&UserInfo::default(), &owned, &wanted);
        if outcome.is_ok() {
            for request in requests {
                if wanted.iter().any(|rule| rule.allows(&request)) {
                    prop_assert!(owned.iter().any(|rule| rule.allows(&request)), "{:?}", request);
                }
            }
        }
    }

    /// Whoever has the rules may give them.
    #[test]
    fn what_one_has_one_may_give(owned in prop::collection::vec(rule(), 0..4)) {
        prop_assert_eq!(escalation::check(&UserInfo::default(), &owned, &owned), Ok(()));
    }
}
