//! The messages that clients send, and their JSON names.
//!
//! `metadata.managedFields` are left out on purpose: a write without them keeps the stored ones.

use std::collections::BTreeMap;

use k8s_pb::{
    api::{
        authentication::v1 as authentication, authorization::v1 as authorization,
        certificates::v1 as certificates, coordination::v1 as coordination, core::v1 as core,
        rbac::v1 as rbac,
    },
    apimachinery::pkg::apis::meta::v1 as meta,
};
use prost::Message;
use serde_json::{Map, Value};

use super::json::{Json, list, message};
use crate::kind::ProtobufDecoder;

/// The decoder of a kind's message, where there is one.
pub fn decoder(api_version: &str, kind: &str) -> Option<ProtobufDecoder> {
    Some(match (api_version, kind) {
        ("v1", "Namespace") => |raw| decode::<core::Namespace>("v1", "Namespace", raw),
        ("v1", "ConfigMap") => |raw| decode::<core::ConfigMap>("v1", "ConfigMap", raw),
        ("v1", "Secret") => |raw| decode::<core::Secret>("v1", "Secret", raw),
        ("v1", "ServiceAccount") => {
            |raw| decode::<core::ServiceAccount>("v1", "ServiceAccount", raw)
        }
        ("v1", "Event") => |raw| decode::<core::Event>("v1", "Event", raw),
        (COORDINATION, "Lease") => |raw| decode::<coordination::Lease>(COORDINATION, "Lease", raw),
        (CERTIFICATES, "CertificateSigningRequest") => |raw| {
            decode::<certificates::CertificateSigningRequest>(
                CERTIFICATES,
                "CertificateSigningRequest",
                raw,
            )
        },
        (RBAC, "Role") => |raw| decode::<rbac::Role>(RBAC, "Role", raw),
        (RBAC, "ClusterRole") => |raw| decode::<rbac::ClusterRole>(RBAC, "ClusterRole", raw),
        (RBAC, "RoleBinding") => |raw| decode::<rbac::RoleBinding>(RBAC, "RoleBinding", raw),
        (RBAC, "ClusterRoleBinding") => {
            |raw| decode::<rbac::ClusterRoleBinding>(RBAC, "ClusterRoleBinding", raw)
        }
        (AUTHORIZATION, "SelfSubjectAccessReview") => |raw| {
            decode::<authorization::SelfSubjectAccessReview>(
                AUTHORIZATION,
                "SelfSubjectAccessReview",
                raw,
            )
        },
        (AUTHORIZATION, "SelfSubjectRulesReview") => |raw| {
            decode::<authorization::SelfSubjectRulesReview>(
                AUTHORIZATION,
                "SelfSubjectRulesReview",
                raw,
            )
        },
        (AUTHORIZATION, "SubjectAccessReview") => |raw| {
            decode::<authorization::SubjectAccessReview>(AUTHORIZATION, "SubjectAccessReview", raw)
        },
        (AUTHORIZATION, "LocalSubjectAccessReview") => |raw| {
            decode::<authorization::LocalSubjectAccessReview>(
                AUTHORIZATION,
                "LocalSubjectAccessReview",
                raw,
            )
        },
        (AUTHENTICATION, "SelfSubjectReview") => |raw| {
            decode::<authentication::SelfSubjectReview>(AUTHENTICATION, "SelfSubjectReview", raw)
        },
        _ => return None,
    })
}

const COORDINATION: &str = "coordination.k8s.io/v1";
const CERTIFICATES: &str = "certificates.k8s.io/v1";
const RBAC: &str = "rbac.authorization.k8s.io/v1";
const AUTHENTICATION: &str = "authentication.k8s.io/v1";
const AUTHORIZATION: &str = "authorization.k8s.io/v1";

fn decode<T: Message + Default + Json>(
    api_version: &str,
    kind: &str,
    raw: &[u8],
) -> Result<Value, String> {
    let message = T::decode(raw).map_err(|error| error.to_string())?;
    let mut object = message.json().unwrap_or_else(|| Value::Object(Map::new()));
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".into(), api_version.into());
        fields.insert("kind".into(), kind.into());
    }
    Ok(object)
}

message!(meta::ObjectMeta {
    name: "name",
    generate_name: "generateName",
    namespace: "namespace",
    uid: "uid",
    resource_version: "resourceVersion",
    creation_timestamp: "creationTimestamp",
    deletion_timestamp: "deletionTimestamp",
    deletion_grace_period_seconds: "deletionGracePeriodSeconds",
    labels: "labels",
    annotations: "annotations",
    owner_references: "ownerReferences",
    finalizers: "finalizers",
});
message!(meta::OwnerReference {
    api_version: "apiVersion",
    kind: "kind",
    name: "name",
    uid: "uid",
    controller: "controller",
    block_owner_deletion: "blockOwnerDeletion",
});
message!(meta::LabelSelector {
    match_labels: "matchLabels",
    match_expressions: "matchExpressions",
});
message!(meta::LabelSelectorRequirement {
    key: "key",
    operator: "operator",
    values: "values"
});
message!(meta::FieldSelectorRequirement {
    key: "key",
    operator: "operator",
    values: "values"
});

message!(core::Namespace {
    metadata: "metadata",
    spec: "spec",
    status: "status"
});
message!(core::NamespaceSpec {
    finalizers: "finalizers"
});
message!(core::NamespaceStatus {
    phase: "phase",
    conditions: "conditions"
});
message!(core::NamespaceCondition {
    r#type: "type",
    status: "status",
    last_transition_time: "lastTransitionTime",
    reason: "reason",
    message: "message",
});
message!(core::ConfigMap {
    metadata: "metadata",
    immutable: "immutable",
    data: "data",
    binary_data: "binaryData",
});
message!(core::Secret {
    metadata: "metadata",
    immutable: "immutable",
    data: "data",
    string_data: "stringData",
    r#type: "type",
});
message!(core::ServiceAccount {
    metadata: "metadata",
    secrets: "secrets",
    image_pull_secrets: "imagePullSecrets",
    automount_service_account_token: "automountServiceAccountToken",
});
message!(core::ObjectReference {
    kind: "kind",
    namespace: "namespace",
    name: "name",
    uid: "uid",
    api_version: "apiVersion",
    resource_version: "resourceVersion",
    field_path: "fieldPath",
});
message!(core::LocalObjectReference { name: "name" });
message!(core::Event {
    metadata: "metadata",
    involved_object: "involvedObject",
    reason: "reason",
    message: "message",
    source: "source",
    first_timestamp: "firstTimestamp",
    last_timestamp: "lastTimestamp",
    count: "count",
    r#type: "type",
    event_time: "eventTime",
    series: "series",
    action: "action",
    related: "related",
    reporting_component: "reportingComponent",
    reporting_instance: "reportingInstance",
});
message!(core::EventSource {
    component: "component",
    host: "host"
});
message!(core::EventSeries {
    count: "count",
    last_observed_time: "lastObservedTime"
});

message!(coordination::Lease {
    metadata: "metadata",
    spec: "spec"
});
message!(coordination::LeaseSpec {
    holder_identity: "holderIdentity",
    lease_duration_seconds: "leaseDurationSeconds",
    acquire_time: "acquireTime",
    renew_time: "renewTime",
    lease_transitions: "leaseTransitions",
    strategy: "strategy",
    preferred_holder: "preferredHolder",
});

message!(certificates::CertificateSigningRequest {
    metadata: "metadata",
    spec: "spec",
    status: "status",
});
message!(certificates::CertificateSigningRequestSpec {
    request: "request",
    signer_name: "signerName",
    expiration_seconds: "expirationSeconds",
    usages: "usages",
    username: "username",
    uid: "uid",
    groups: "groups",
    extra: "extra",
});
message!(certificates::CertificateSigningRequestStatus {
    conditions: "conditions",
    certificate: "certificate",
});
message!(certificates::CertificateSigningRequestCondition {
    r#type: "type",
    status: "status",
    reason: "reason",
    message: "message",
    last_update_time: "lastUpdateTime",
    last_transition_time: "lastTransitionTime",
});

message!(rbac::Role {
    metadata: "metadata",
    rules: "rules"
});
message!(rbac::ClusterRole {
    metadata: "metadata",
    rules: "rules",
    aggregation_rule: "aggregationRule",
});
message!(rbac::AggregationRule {
    cluster_role_selectors: "clusterRoleSelectors"
});
message!(rbac::PolicyRule {
    verbs: "verbs",
    api_groups: "apiGroups",
    resources: "resources",
    resource_names: "resourceNames",
    non_resource_ur_ls: "nonResourceURLs",
});
message!(rbac::RoleBinding {
    metadata: "metadata",
    subjects: "subjects",
    role_ref: "roleRef"
});
message!(rbac::ClusterRoleBinding {
    metadata: "metadata",
    subjects: "subjects",
    role_ref: "roleRef",
});
message!(rbac::Subject {
    kind: "kind",
    api_group: "apiGroup",
    name: "name",
    namespace: "namespace",
});
message!(rbac::RoleRef {
    api_group: "apiGroup",
    kind: "kind",
    name: "name"
});

message!(authorization::SelfSubjectAccessReview {
    metadata: "metadata",
    spec: "spec"
});
message!(authorization::SelfSubjectAccessReviewSpec {
    resource_attributes: "resourceAttributes",
    non_resource_attributes: "nonResourceAttributes",
});
message!(authorization::ResourceAttributes {
    namespace: "namespace",
    verb: "verb",
    group: "group",
    version: "version",
    resource: "resource",
    subresource: "subresource",
    name: "name",
    field_selector: "fieldSelector",
    label_selector: "labelSelector",
});
message!(authorization::FieldSelectorAttributes {
    raw_selector: "rawSelector",
    requirements: "requirements",
});
message!(authorization::LabelSelectorAttributes {
    raw_selector: "rawSelector",
    requirements: "requirements",
});
message!(authorization::NonResourceAttributes {
    path: "path",
    verb: "verb"
});
// The server alone fills in its status.
message!(authentication::SelfSubjectReview {
    metadata: "metadata"
});
message!(authorization::SelfSubjectRulesReview {
    metadata: "metadata",
    spec: "spec"
});
message!(authorization::SelfSubjectRulesReviewSpec {
    namespace: "namespace"
});
message!(authorization::SubjectAccessReview {
    metadata: "metadata",
    spec: "spec"
});
message!(authorization::LocalSubjectAccessReview {
    metadata: "metadata",
    spec: "spec"
});
message!(authorization::SubjectAccessReviewSpec {
    resource_attributes: "resourceAttributes",
    non_resource_attributes: "nonResourceAttributes",
    user: "user",
    groups: "groups",
    extra: "extra",
    uid: "uid",
});

list!(
    meta::OwnerReference,
    meta::LabelSelector,
    meta::LabelSelectorRequirement,
    meta::FieldSelectorRequirement,
    core::NamespaceCondition,
    core::ObjectReference,
    core::LocalObjectReference,
    certificates::CertificateSigningRequestCondition,
    rbac::PolicyRule,
    rbac::Subject,
);

/// What else is known of a user: lists of strings by key.
macro_rules! extra {
    ($($type:path),*) => {
        $(
            impl Json for BTreeMap<String, $type> {
                fn json(&self) -> Option<Value> {
                    let fields = self
                        .iter()
                        .map(|(name, values)| (name.clone(), values.items.clone().into()))
                        .collect::<Map<_, _>>();
                    (!fields.is_empty()).then_some(Value::Object(fields))
                }
            }
        )*
    };
}
extra!(authorization::ExtraValue, certificates::ExtraValue);

#[cfg(test)]
mod tests {
    use k8s_pb::{
        api::{coordination::v1 as coordination, core::v1 as core},
        apimachinery::pkg::apis::meta::v1 as meta,
    };
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_as_its_json() {
        let secret = core::Secret {
            metadata: Some(meta::ObjectMeta {
                name: Some("s".into()),
                namespace: Some(String::new()),
                creation_timestamp: Some(meta::Time::default()),
                labels: [("a".to_owned(), "b".to_owned())].into(),
                ..meta::ObjectMeta::default()
            }),
            immutable: Some(false),
            data: [("k".to_owned(), b"value".to_vec())].into(),
            r#type: Some("Opaque".into()),
            ..core::Secret::default()
        };
        let decode = decoder("v1", "Secret").expect("a decoder");
        assert_eq!(
            decode(&secret.encode_to_vec()),
            Ok(json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "labels": {"a": "b"}},
                "immutable": false, "data": {"k": "dmFsdWU="}, "type": "Opaque",
            }))
        );
    }

    #[test]
    fn times_of_a_lease_have_six_digits() {
        let lease = coordination::Lease {
            metadata: None,
            spec: Some(coordination::LeaseSpec {
                holder_identity: Some("me".into()),
                lease_duration_seconds: Some(0),
                renew_time: Some(meta::MicroTime {
                    seconds: Some(1_700_000_000),
                    nanos: Some(1_500_000),
                }),
                ..coordination::LeaseSpec::default()
            }),
        };
        let decode = decoder("coordination.k8s.io/v1", "Lease").expect("a decoder");
        assert_eq!(
            decode(&lease.encode_to_vec()).expect("a lease")["spec"],
            json!({"holderIdentity": "me", "leaseDurationSeconds": 0, "renewTime": "2023-11-14T22:13:20.001500Z"})
        );
    }

    proptest! {
        /// Whatever arrives, it is decoded or refused.
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for (version, kind) in [("v1", "Secret"), ("v1", "Event"), ("coordination.k8s.io/v1", "Lease")] {
                let _ = decoder(version, kind).expect("a decoder")(&bytes);
            }
        }
    }
}
