//! The core group, `v1`.

mod config;
mod endpoints;
mod namespace;
mod node;
mod pods;
mod secret;
mod service;
mod volumes;

use std::sync::Arc;

use evenkeel_api::kind::{Cell, FieldPlace, Kind, KindScope, NameRule};

use super::{
    builtin,
    column::{age, created_at, shown},
    look::text,
    status,
};

/// The kinds of the core group.
pub fn kinds() -> Vec<Kind> {
    let plain = |kind, plural, singular| Kind {
        unconditional_update: true,
        ..builtin("", "v1", kind, plural, singular)
    };
    vec![
        Kind {
            short_names: &["cm"],
            columns: config::columns(),
            strategy: Arc::new(config::ConfigMap),
            ..plain("ConfigMap", "configmaps", "configmap")
        },
        Kind {
            short_names: &["ep"],
            columns: endpoints::columns(),
            create_on_update: true,
            ..plain("Endpoints", "endpoints", "endpoints")
        },
        super::events::core(),
        Kind {
            short_names: &["limits"],
            columns: vec![created_at()],
            create_on_update: true,
            ..plain("LimitRange", "limitranges", "limitrange")
        },
        Kind {
            short_names: &["ns"],
            scope: KindScope::Cluster,
            names: NameRule::DnsLabel,
            columns: vec![
                shown(
                    "Status",
                    "string",
                    "The status of the namespace",
                    |object, _| text(object, "/status/phase").into(),
                ),
                age(),
            ],
            subresources: vec![namespace::finalize(), status()],
            selectable_fields: &["status.phase"],
            strategy: Arc::new(namespace::Namespace),
            delete_answers_object: true,
            delete_collection: false,
            ..plain("Namespace", "namespaces", "namespace")
        },
        Kind {
            short_names: &["no"],
            scope: KindScope::Cluster,
            columns: node::columns(),
            subresources: vec![status()],
            selectable_fields: &["spec.unschedulable"],
            field_places: &[FieldPlace {
                field: "spec.unschedulable",
                path: "spec.unschedulable",
                absent: "false",
            }],
            strategy: Arc::new(node::Node),
            ..plain("Node", "nodes", "node")
        },
        Kind {
            short_names: &["pvc"],
            columns: volumes::claim_columns(),
            subresources: vec![status()],
            strategy: Arc::new(volumes::Claim),
            delete_answers_object: true,
            ..plain(
                "PersistentVolumeClaim",
                "persistentvolumeclaims",
                "persistentvolumeclaim",
            )
        },
        Kind {
            short_names: &["pv"],
            scope: KindScope::Cluster,
            columns: volumes::volume_columns(),
            subresources: vec![status()],
            strategy: Arc::new(volumes::Volume),
            delete_answers_object: true,
            ..plain("PersistentVolume", "persistentvolumes", "persistentvolume")
        },
        Kind {
            short_names: &["po"],
            categories: &["all"],
            columns: pods::columns(),
            subresources: vec![status()],
            selectable_fields: pods::SELECTABLE,
            field_places: &[FieldPlace {
                field: "spec.hostNetwork",
                path: "spec.hostNetwork",
                absent: "false",
            }],
            strategy: Arc::new(pods::Pod),
            generation: true,
            delete_answers_object: true,
            ..plain("Pod", "pods", "pod")
        },
        Kind {
            columns: pods::template_columns(),
            strategy: Arc::new(pods::PodTemplate),
            generation: true,
            delete_answers_object: true,
            ..plain("PodTemplate", "podtemplates", "podtemplate")
        },
        Kind {
            short_names: &["rc"],
            categories: &["all"],
            columns: pods::replication_columns(),
            subresources: vec![super::apps::scale(Some("/spec/selector")), status()],
            selectable_fields: &["status.replicas"],
            field_places: &[FieldPlace {
                field: "status.replicas",
                path: "status.replicas",
                absent: "0",
            }],
            strategy: Arc::new(pods::ReplicationController),
            generation: true,
            ..plain(
                "ReplicationController",
                "replicationcontrollers",
                "replicationcontroller",
            )
        },
        Kind {
            short_names: &["quota"],
            columns: config::quota_columns(),
            subresources: vec![status()],
            delete_answers_object: true,
            ..plain("ResourceQuota", "resourcequotas", "resourcequota")
        },
        Kind {
            columns: secret::columns(),
            selectable_fields: &["type"],
            strategy: Arc::new(secret::Secret),
            ..plain("Secret", "secrets", "secret")
        },
        Kind {
            short_names: &["sa"],
            unconditional_update: false,
            delete_answers_object: true,
            ..plain("ServiceAccount", "serviceaccounts", "serviceaccount")
        },
        Kind {
            short_names: &["svc"],
            categories: &["all"],
            names: NameRule::DnsLabel,
            columns: service::columns(),
            subresources: vec![status()],
            selectable_fields: &["spec.clusterIP", "spec.type"],
            strategy: Arc::new(service::Service),
            create_on_update: true,
            delete_answers_object: true,
            ..plain("Service", "services", "service")
        },
    ]
}

/// A column that shows what is at a pointer.
fn pointer(
    name: &'static str,
    type_: &'static str,
    description: &'static str,
    path: &'static str,
) -> evenkeel_api::kind::Column {
    super::column::custom(name, type_, 0, description, Cell::Pointer(path))
}
