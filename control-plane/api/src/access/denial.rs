//! What a client reads when it may not.

use http::StatusCode;
use serde_json::json;

use super::{Attributes, UserInfo};
use crate::failure::Failure;

/// The 403 of an authorizer, in the reference server's words. `reason` is added when an authorizer gave one.
pub fn forbidden(user: &UserInfo, attributes: &Attributes, reason: &str) -> Failure {
    let behind = if reason.is_empty() {
        String::new()
    } else {
        format!(": {reason}")
    };
    if attributes.resource.is_empty() {
        let message = format!(
            "forbidden: User \"{}\" cannot {} path \"{}\"{behind}",
            user.name, attributes.verb, attributes.path
        );
        return Failure::new(StatusCode::FORBIDDEN, "Forbidden", message).with_details(json!({}));
    }
    let resource = if attributes.subresource.is_empty() {
        attributes.resource.clone()
    } else {
        format!("{}/{}", attributes.resource, attributes.subresource)
    };
    let place = if attributes.namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace \"{}\"", attributes.namespace)
    };
    let why = format!(
        "User \"{}\" cannot {} resource \"{resource}\" in API group \"{}\" {place}{behind}",
        user.name, attributes.verb, attributes.group
    );
    Failure::forbidden(
        &attributes.group,
        &attributes.resource,
        &attributes.name,
        &why,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_the_reference_servers() {
        let user = UserInfo {
            name: "alice".into(),
            ..UserInfo::default()
        };
        let configmap = Attributes {
            verb: "get".into(),
            resource: "configmaps".into(),
            namespace: "ns".into(),
            name: "x".into(),
            ..Attributes::default()
        };
        let list = Attributes {
            verb: "list".into(),
            group: "test.example.io".into(),
            resource: "widgets".into(),
            ..Attributes::default()
        };
        let status = Attributes {
            subresource: "status".into(),
            ..list.clone()
        };
        let path = Attributes {
            verb: "get".into(),
            path: "/api".into(),
            ..Attributes::default()
        };
        for (attributes, reason, message, details) in [
            (
                &configmap,
                "",
                "configmaps \"x\" is forbidden: User \"alice\" cannot get resource \"configmaps\" in API group \"\" in the namespace \"ns\"",
                json!({"name": "x", "kind": "configmaps"}),
            ),
            (
                &list,
                "",
                "widgets.test.example.io is forbidden: User \"alice\" cannot list resource \"widgets\" in API group \"test.example.io\" at the cluster scope",
                json!({"group": "test.example.io", "kind": "widgets"}),
            ),
            (
                &status,
                "not yours",
                "widgets.test.example.io is forbidden: User \"alice\" cannot list resource \"widgets/status\" in API group \"test.example.io\" at the cluster scope: not yours",
                json!({"group": "test.example.io", "kind": "widgets"}),
            ),
            (
                &path,
                "",
                "forbidden: User \"alice\" cannot get path \"/api\"",
                json!({}),
            ),
        ] {
            let failure = forbidden(&user, attributes, reason);
            assert_eq!(failure.code, StatusCode::FORBIDDEN);
            assert_eq!(failure.message, message);
            assert_eq!(failure.details, details, "{message}");
        }
    }
}
