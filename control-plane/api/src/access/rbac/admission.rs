//! Refuses roles and bindings by which their writer would give what they do not have, as the reference server does.

use std::sync::Arc;

use evenkeel_store::{Key, Resource, Store};
use serde::Deserialize as _;
use serde_json::Value;

use super::{
    PolicyRule, Rbac, escalation,
    index::{AggregationRule, Binding, GROUP, Role, RoleRef},
};
use crate::{
    access::{
        Admission, Attributes, Authorizer, MASTERS, UserInfo, chain,
        masters::{Masters, everything},
    },
    failure::Failure,
};

/// Escalation prevention. Whoever may `escalate` a role, or `bind` it, may give more than they have.
pub struct RbacAdmission {
    rbac: Arc<Rbac>,
    store: Store,
    chain: Vec<Arc<dyn Authorizer>>,
}

impl RbacAdmission {
    pub fn new(rbac: Arc<Rbac>, store: Store) -> Self {
        let chain: Vec<Arc<dyn Authorizer>> = vec![Arc::new(Masters), Arc::clone(&rbac) as _];
        Self { rbac, store, chain }
    }

    fn may(&self, user: &UserInfo, verb: &str, role: &RoleRef, namespace: &str) -> bool {
        let resource = if role.kind == "ClusterRole" {
            "clusterroles"
        } else {
            "roles"
        };
        let request = Attributes {
            verb: verb.into(),
            group: GROUP.into(),
            version: "v1".into(),
            resource: resource.into(),
            namespace: namespace.into(),
            name: role.name.clone(),
            ..Attributes::default()
        };
        chain::authorize(&self.chain, user, &request).allowed
    }

    fn role(
        &self,
        user: &UserInfo,
        attributes: &Attributes,
        old: Option<&Value>,
        new: &Value,
    ) -> Result<(), Failure> {
        let read = |object| Role::deserialize(object).map_err(unreadable);
        let (old, new) = (old.map(read).transpose()?, read(new)?);
        if old.as_ref().is_some_and(|old| {
            old.rules == new.rules && old.aggregation_rule == new.aggregation_rule
        }) {
            return Ok(());
        }
        let reference = RoleRef {
            kind: if attributes.resource == "clusterroles" {
                "ClusterRole".into()
            } else {
                "Role".into()
            },
            name: new.metadata.name.clone(),
        };
        if self.may(user, "escalate", &reference, &attributes.namespace) {
            return Ok(());
        }
        // What others put under an aggregated role is not known beforehand.
        let aggregates = |role: &Role| {
            role.aggregation_rule
                .as_ref()
                .is_some_and(|rule| *rule != AggregationRule::default())
        };
        let mut wanted = new.rules.clone();
        if aggregates(&new) || old.as_ref().is_some_and(aggregates) {
            wanted.extend(everything());
        }
        self.covered(user, attributes, &new.metadata.name, &wanted)
    }

    fn binding(
        &self,
        user: &UserInfo,
        attributes: &Attributes,
        old: Option<&Value>,
        new: &Value,
    ) -> Result<(), Failure> {
        let read = |object| Binding::deserialize(object).map_err(unreadable);
        let (old, new) = (old.map(read).transpose()?, read(new)?);
        if old.is_some_and(|old| old.role_ref == new.role_ref && old.subjects == new.subjects)
            || self.may(user, "bind", &new.role_ref, &attributes.namespace)
        {
            return Ok(());
        }
        let wanted = self.rules_of(&new.role_ref, &attributes.namespace)?;
        self.covered(user, attributes, &new.metadata.name, &wanted)
    }

    /// The rules of a role as it stands in the store, which may be ahead of the index.
    fn rules_of(&self, role: &RoleRef, namespace: &str) -> Result<Vec<PolicyRule>, Failure> {
        let (plural, namespace) = if role.kind == "ClusterRole" {
            ("clusterroles", None)
        } else {
            ("roles", Some(namespace))
        };
        let absent = || Failure::not_found(GROUP, plural, &role.name);
        let object = self
            .store
            .get(&Key::new(
                Resource::new(GROUP, plural),
                namespace,
                &role.name,
            ))
            .ok_or_else(absent)?;
        let stored: Role = serde_json::from_slice(&object.json).map_err(unreadable)?;
        if stored.aggregation_rule.is_none() {
            return Ok(stored.rules);
        }
        self.rbac
            .index()
            .cluster_role(&role.name)
            .map(|rules| rules.to_vec())
            .ok_or_else(absent)
    }

    fn covered(
        &self,
        user: &UserInfo,
        attributes: &Attributes,
        name: &str,
        wanted: &[PolicyRule],
    ) -> Result<(), Failure> {
        let owned = self.rbac.index().rules_for(user, &attributes.namespace);
        escalation::check(user, &owned, wanted)
            .map_err(|why| Failure::forbidden(GROUP, &attributes.resource, name, &why))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn unreadable(error: serde_json::Error) -> Failure {
    Failure::bad_request(error.to_string())
}

impl Admission for RbacAdmission {
    fn admit(
        &self,
        user: &UserInfo,
        attributes: &Attributes,
        old: Option<&Value>,
        new: Option<&mut Value>,
    ) -> Result<(), Failure> {
        let Some(new) = new else {
            return Ok(());
        };
        if attributes.group != GROUP || user.is_in(MASTERS) {
            return Ok(());
        }
        match attributes.resource.as_str() {
            "roles" | "clusterroles" => self.role(user, attributes, old, new),
            "rolebindings" | "clusterrolebindings" => self.binding(user, attributes, old, new),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_store::{
        Attributes as Selectable, Body, Change, Precondition, StoreOptions, Write,
    };
    use serde_json::json;

    use super::*;
    use crate::access::rbac::Policy;

    /// `dave` may write roles and bindings in `ns` and read pods there; `eve` may also escalate and bind.
    async fn admission() -> RbacAdmission {
        fn parse<T: serde::de::DeserializeOwned>(value: Value) -> T {
            serde_json::from_value(value).unwrap()
        }
        let pods = json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]});
        let policy = Policy {
            roles: vec![
                parse(json!({"metadata": {"name": "dave", "namespace": "ns"}, "rules": [pods]})),
                parse(json!({"metadata": {"name": "eve", "namespace": "ns"}, "rules": [
                    {"verbs": ["escalate", "bind"], "apiGroups": [GROUP], "resources": ["roles", "clusterroles"]}]})),
            ],
            role_bindings: ["dave", "eve"]
                .map(|name| parse(json!({"metadata": {"name": name, "namespace": "ns"},
                    "subjects": [{"kind": "User", "name": name}], "roleRef": {"kind": "Role", "name": name}})))
                .into(),
            ..Policy::default()
        };
        let store = Store::in_memory(StoreOptions::without_attributes());
        let roles = [
            (
                "reader",
                json!({"metadata": {"name": "reader"}, "rules": [pods]}),
            ),
            (
                "wide",
                json!({"metadata": {"name": "wide"}, "rules": [
                {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]}),
            ),
        ];
        let writes = roles.map(|(name, role)| {
            let json = role.to_string();
            Write {
                key: Key::new(Resource::new(GROUP, "clusterroles"), None, name),
                precondition: Precondition::Absent,
                change: Change::Put(Body {
                    version_at: json.find("\"metadata\":{").unwrap() + 12,
                    json: json.into_bytes(),
                    attributes: Selectable::default(),
                }),
            }
        });
        store.commit(writes.into()).await.unwrap();
        RbacAdmission::new(Arc::new(Rbac::new(&policy)), store)
    }

    #[tokio::test]
    async fn nobody_writes_roles_and_bindings_beyond_their_own_rights() {
        let admission = admission().await;
        let role = |verbs: &[&str]| json!({"metadata": {"name": "r2"}, "rules": [{"verbs": verbs, "apiGroups": [""], "resources": ["pods"]}]});
        let binding = |role: &str| {
            json!({"metadata": {"name": "b2"}, "subjects": [{"kind": "User", "name": "dave"}],
                "roleRef": {"kind": "ClusterRole", "name": role}})
        };
        let missing = "is forbidden: user \"dave\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n";
        for (user, plural, old, new, expected) in [
            ("dave", "roles", None, role(&["get"]), String::new()),
            (
                "dave",
                "roles",
                None,
                role(&["get", "delete"]),
                format!(
                    "roles.{GROUP} \"r2\" {missing}{{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\"]}}"
                ),
            ),
            (
                "dave",
                "roles",
                Some(role(&["delete"])),
                role(&["delete"]),
                String::new(),
            ),
            (
                "dave",
                "roles",
                Some(role(&["get"])),
                role(&["delete"]),
                format!(
                    "roles.{GROUP} \"r2\" {missing}{{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\"]}}"
                ),
            ),
            ("eve", "roles", None, role(&["delete"]), String::new()),
            (
                "dave",
                "rolebindings",
                None,
                binding("reader"),
                String::new(),
            ),
            (
                "dave",
                "rolebindings",
                None,
                binding("wide"),
                format!(
                    "rolebindings.{GROUP} \"b2\" {missing}{{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}}"
                ),
            ),
            ("eve", "rolebindings", None, binding("wide"), String::new()),
            (
                "dave",
                "rolebindings",
                Some(binding("wide")),
                binding("wide"),
                String::new(),
            ),
            (
                "dave",
                "rolebindings",
                None,
                binding("gone"),
                format!("clusterroles.{GROUP} \"gone\" not found"),
            ),
        ] {
            let attributes = Attributes {
                verb: "create".into(),
                group: GROUP.into(),
                resource: plural.into(),
                namespace: "ns".into(),
                ..Attributes::default()
            };
            let user = UserInfo {
                name: user.into(),
                groups: vec!["system:authenticated".into()],
                ..UserInfo::default()
            };
            let message = admission
                .admit(&user, &attributes, old.as_ref(), Some(&mut new.clone()))
                .map_or_else(|failure| failure.message, |()| String::new());
            assert_eq!(message, expected, "{} {plural} {new}", user.name);
        }
    }

    #[tokio::test]
    async fn an_aggregated_role_takes_all_rights_to_write() {
        let admission = admission().await;
        let attributes = Attributes {
            group: GROUP.into(),
            resource: "clusterroles".into(),
            ..Attributes::default()
        };
        let mut role = json!({"metadata": {"name": "all"}, "rules": [],
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}});
        for (groups, allowed) in [(vec![], false), (vec![MASTERS.to_owned()], true)] {
            let user = UserInfo {
                name: "dave".into(),
                groups,
                ..UserInfo::default()
            };
            let outcome = admission.admit(&user, &attributes, None, Some(&mut role));
            assert_eq!(outcome.is_ok(), allowed);
        }
    }
}
