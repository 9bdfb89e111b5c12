//! `rbac.authorization.k8s.io/v1`: roles and their bindings.

use std::sync::Arc;

use evenkeel_api::kind::{Column, Kind, KindScope, NameRule, Strategy};
use evenkeel_shared::field::FieldError;
use jiff::Timestamp;
use serde_json::Value;

use super::{
    builtin,
    column::{age, created_at, shown, wide},
    look::{at, child, drop_nothing, each, fill, items, text},
};

const GROUP: &str = "rbac.authorization.k8s.io";

/// The four kinds.
pub fn kinds() -> Vec<Kind> {
    let rbac = |kind, plural, singular, scope, columns, strategy: Arc<dyn Strategy>| Kind {
        scope,
        columns,
        strategy,
        names: NameRule::PathSegment,
        unconditional_update: true,
        create_on_update: true,
        ..builtin(GROUP, "v1", kind, plural, singular)
    };
    let (cluster, namespaced) = (KindScope::Cluster, KindScope::Namespaced);
    vec![
        rbac(
            "ClusterRoleBinding",
            "clusterrolebindings",
            "clusterrolebinding",
            cluster,
            binding_columns(),
            Arc::new(Binding),
        ),
        rbac(
            "ClusterRole",
            "clusterroles",
            "clusterrole",
            cluster,
            vec![created_at()],
            Arc::new(Role),
        ),
        rbac(
            "RoleBinding",
            "rolebindings",
            "rolebinding",
            namespaced,
            binding_columns(),
            Arc::new(Binding),
        ),
        rbac(
            "Role",
            "roles",
            "role",
            namespaced,
            vec![created_at()],
            Arc::new(Role),
        ),
    ]
}

fn subjects(object: &Value, kind: &str) -> Value {
    items(object, "/subjects")
        .iter()
        .filter(|subject| text(subject, "/kind") == kind)
        .map(|subject| match kind {
            "ServiceAccount" => {
                format!("{}/{}", text(subject, "/namespace"), text(subject, "/name"))
            }
            _ => text(subject, "/name").to_owned(),
        })
        .collect::<Vec<_>>()
        .join(", ")
        .into()
}

fn role(object: &Value, _: Timestamp) -> Value {
    format!(
        "{}/{}",
        text(object, "/roleRef/kind"),
        text(object, "/roleRef/name")
    )
    .into()
}

fn binding_columns() -> Vec<Column> {
    vec![
        shown(
            "Role",
            "string",
            "RoleRef can reference a Role in the current namespace or a ClusterRole in the global namespace. If the RoleRef cannot be resolved, the Authorizer must return an error.",
            role,
        ),
        age(),
        wide(
            "Users",
            "string",
            "Users in the roleBinding",
            |object, _| subjects(object, "User"),
        ),
        wide(
            "Groups",
            "string",
            "Groups in the roleBinding",
            |object, _| subjects(object, "Group"),
        ),
        wide(
            "ServiceAccounts",
            "string",
            "ServiceAccounts in the roleBinding",
            |object, _| subjects(object, "ServiceAccount"),
        ),
    ]
}

struct Role;

impl Strategy for Role {
    fn default(&self, object: &mut Value) {
        drop_nothing(object);
        if let Some(fields) = object.as_object_mut() {
            fields.entry("rules").or_insert(Value::Null);
        }
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for (i, rule) in items(object, "/rules").iter().enumerate() {
            if items(rule, "/verbs").is_empty() {
                let why = "verbs must contain at least one value";
                errors.push(FieldError::required(format!("rules[{i}].verbs"), why));
            }
            if items(rule, "/nonResourceURLs").is_empty() {
                for (field, why) in [
                    (
                        "apiGroups",
                        "resource rules must supply at least one api group",
                    ),
                    (
                        "resources",
                        "resource rules must supply at least one resource",
                    ),
                ] {
                    if items(rule, &format!("/{field}")).is_empty() {
                        errors.push(FieldError::required(format!("rules[{i}].{field}"), why));
                    }
                }
            }
        }
        errors
    }
}

struct Binding;

impl Strategy for Binding {
    fn default(&self, object: &mut Value) {
        drop_nothing(object);
        if let Some(role) = child(object, "roleRef") {
            fill(role, "apiGroup", GROUP);
        }
        for subject in each(object, "subjects") {
            if ["User", "Group"].contains(&text(subject, "/kind")) {
                fill(subject, "apiGroup", GROUP);
            }
        }
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let namespaced = object["kind"] == "RoleBinding";
        let kinds: &[&str] = if namespaced {
            &["Role", "ClusterRole"]
        } else {
            &["ClusterRole"]
        };
        let kind = at(object, "/roleRef/kind");
        if !kinds.contains(&kind.as_str().unwrap_or_default()) {
            errors.push(FieldError::not_supported("roleRef.kind", kind, kinds));
        }
        if text(object, "/roleRef/name").is_empty() {
            errors.push(FieldError::required("roleRef.name", ""));
        }
        for (i, subject) in items(object, "/subjects").iter().enumerate() {
            if text(subject, "/name").is_empty() {
                errors.push(FieldError::required(format!("subjects[{i}].name"), ""));
            }
            let known = ["ServiceAccount", "User", "Group"];
            let kind = at(subject, "/kind");
            if !known.contains(&kind.as_str().unwrap_or_default()) {
                errors.push(FieldError::not_supported(
                    format!("subjects[{i}].kind"),
                    kind,
                    &known,
                ));
            }
            if kind == "ServiceAccount" && text(subject, "/namespace").is_empty() {
                errors.push(FieldError::required(format!("subjects[{i}].namespace"), ""));
            }
        }
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        if new["roleRef"] == old["roleRef"] {
            return Vec::new();
        }
        vec![FieldError::invalid(
            "roleRef",
            &new["roleRef"],
            "cannot change roleRef",
        )]
    }
}
