//! A small table of kinds, enough to try every verb: Namespace, ConfigMap, Lease, and Widget, which stands for custom
//! resources.
#![allow(dead_code, reason = "each test uses a part")]

use std::sync::Arc;

use evenkeel_api::{
    Server, ServerBuilder,
    access::{Attributes, Authorizer, Decision, UserInfo},
    attributes_of,
    failure::Failure,
    kind::{
        Cell, Column, Kind, KindScope, NameRule, Registry, RequestContext, Strategy, Subresource,
        SubresourceKind,
    },
};
use evenkeel_shared::field::FieldError;
use evenkeel_store::{Store, StoreOptions};
use serde_json::{Value, json};

struct Namespaces;

impl Strategy for Namespaces {
    fn default(&self, object: &mut Value) {
        let name = object["metadata"]["name"].clone();
        object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
    }

    fn prepare_create(&self, _: &RequestContext, object: &mut Value) -> Result<(), Failure> {
        object["spec"] = json!({"finalizers": ["kubernetes"]});
        object["status"] = json!({"phase": "Active"});
        Ok(())
    }

    fn prepare_update(
        &self,
        _: &RequestContext,
        new: &mut Value,
        old: &Value,
    ) -> Result<(), Failure> {
        new["spec"] = old["spec"].clone();
        Ok(())
    }

    fn validate_delete(&self, _: &RequestContext, object: &Value) -> Result<(), Failure> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        if matches!(name, "default" | "kube-system" | "kube-public") {
            return Err(Failure::forbidden(
                "",
                "namespaces",
                name,
                "this namespace may not be deleted",
            ));
        }
        Ok(())
    }

    fn begin_delete(&self, object: &mut Value) {
        object["status"]["phase"] = "Terminating".into();
    }

    fn holds_deletion(&self, object: &Value) -> bool {
        object["spec"]["finalizers"]
            .as_array()
            .is_some_and(|finalizers| !finalizers.is_empty())
    }
}

struct Widgets;

impl Strategy for Widgets {
    fn default(&self, object: &mut Value) {
        let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) else {
            return;
        };
        for (field, value) in [
            ("color", json!("blue")),
            ("replicas", json!(1)),
            ("nested", json!({"mode": "auto"})),
        ] {
            if spec.get(field).is_none() {
                spec[field] = value;
            }
        }
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let size = &object["spec"]["size"];
        if matches!(size.as_str(), Some("small" | "medium" | "large")) {
            return Vec::new();
        }
        vec![FieldError::not_supported(
            "spec.size",
            size,
            &["small", "medium", "large"],
        )]
    }
}

struct Leases;

impl Strategy for Leases {
    fn is_volatile(&self, new: &Value, old: &Value) -> bool {
        let rest = |lease: &Value| {
            let mut lease = lease.clone();
            if let Some(spec) = lease["spec"].as_object_mut() {
                spec.remove("renewTime");
            }
            lease
        };
        rest(new) == rest(old)
    }
}

fn age() -> Column {
    Column {
        name: "Age",
        type_: "string",
        priority: 0,
        description: "Since its creation.",
        cell: Cell::Age,
    }
}

fn pointer(name: &'static str, type_: &'static str, pointer: &'static str) -> Column {
    Column {
        name,
        type_,
        priority: 0,
        description: "",
        cell: Cell::Pointer(pointer),
    }
}

/// The kinds.
pub fn kinds() -> Vec<Kind> {
    let status = Subresource {
        name: "status",
        kind: SubresourceKind::Status,
    };
    vec![
        Kind {
            scope: KindScope::Cluster,
            names: NameRule::DnsLabel,
            strategy: Arc::new(Namespaces),
            subresources: vec![status.clone()],
            selectable_fields: &["status.phase"],
            columns: vec![pointer("Status", "string", "/status/phase"), age()],
            builtin: true,
            generation: false,
            unconditional_update: true,
            delete_answers_object: true,
            delete_collection: false,
            short_names: &["ns"],
            ..Kind::new("", "v1", "Namespace", "namespaces", "namespace")
        },
        Kind {
            columns: vec![age()],
            builtin: true,
            generation: false,
            unconditional_update: true,
            short_names: &["cm"],
            ..Kind::new("", "v1", "ConfigMap", "configmaps", "configmap")
        },
        Kind {
            strategy: Arc::new(Leases),
            builtin: true,
            generation: false,
            ..Kind::new("coordination.k8s.io", "v1", "Lease", "leases", "lease")
        },
        Kind {
            strategy: Arc::new(Widgets),
            subresources: vec![
                status,
                Subresource {
                    name: "scale",
                    kind: SubresourceKind::Scale {
                        spec_replicas: "/spec/replicas",
                        status_replicas: "/status/replicas",
                        label_selector: Some("/status/selector"),
                    },
                },
            ],
            selectable_fields: &["spec.color", "spec.size"],
            columns: vec![
                pointer("Size", "string", "/spec/size"),
                pointer("Replicas", "integer", "/spec/replicas"),
                Column {
                    type_: "date",
                    ..age()
                },
            ],
            short_names: &["wd"],
            categories: &["all", "testing"],
            ..Kind::new("test.example.io", "v1", "Widget", "widgets", "widget")
        },
    ]
}

/// Lets everybody do everything.
pub struct AllowAll;

impl Authorizer for AllowAll {
    fn authorize(&self, _: &UserInfo, _: &Attributes) -> Decision {
        Decision::Allow
    }
}

/// A server over an empty store in memory.
pub fn builder() -> ServerBuilder {
    let registry = Arc::new(Registry::new(kinds()));
    let store = Store::in_memory(StoreOptions::new(attributes_of(Arc::clone(&registry))));
    let namespaces = registry.table().kinds[0].resource();
    Server::builder(store, registry).namespaces(namespaces)
}
