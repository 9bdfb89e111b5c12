//! `/api`, `/apis` and what is below them: which groups, versions and resources there are.

use std::{fmt::Write as _, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    kind::{Kind, KindScope, Storage, SubresourceKind, Table},
    request::{accept::Discovery, path::Route},
};

/// A discovery document.
#[derive(Clone)]
pub(crate) struct Document {
    pub body: Bytes,
    pub content_type: &'static str,
    /// Quoted, as the header has it.
    pub etag: String,
}

/// Documents made of the table of kinds as it is, each once.
#[derive(Default)]
pub(crate) struct Cache {
    made: Mutex<Made>,
}

#[derive(Default)]
struct Made {
    table: Option<Arc<Table>>,
    documents: Vec<(Route, Discovery, Document)>,
}

/// The most documents that are kept.
const KEPT: usize = 512;

impl Cache {
    /// The document of a route; `None` when there is no such group or version. `host`: where the client reached the
    /// server.
    pub fn document(
        &self,
        table: &Arc<Table>,
        route: &Route,
        form: Discovery,
        host: &str,
    ) -> Option<Document> {
        let form = form_of(route, form);
        if *route == Route::Core && form == Discovery::Plain {
            return make(table, route, form, host).map(|value| encode(&value, form));
        }
        let mut made = self.made.lock();
        if made
            .table
            .as_ref()
            .is_none_or(|known| !Arc::ptr_eq(known, table))
        {
            *made = Made {
                table: Some(Arc::clone(table)),
                documents: Vec::new(),
            };
        }
        let known = made
            .documents
            .iter()
            .find(|(known, known_form, _)| known == route && *known_form == form);
        if let Some((_, _, document)) = known {
            return Some(document.clone());
        }
        let document = encode(&make(table, route, form, host)?, form);
        if made.documents.len() < KEPT {
            made.documents.push((route.clone(), form, document.clone()));
        }
        Some(document)
    }
}

/// Only the two roots have an aggregated form.
fn form_of(route: &Route, form: Discovery) -> Discovery {
    match route {
        Route::Core | Route::Groups => form,
        _ => Discovery::Plain,
    }
}

fn encode(value: &Value, form: Discovery) -> Document {
    let body = serde_json::to_vec(value).unwrap_or_default();
    let hash = Sha256::digest(&body)
        .iter()
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02X}");
            text
        });
    Document {
        body: body.into(),
        content_type: match form {
            Discovery::Plain => "application/json",
            Discovery::Aggregated("v2beta1") => {
                "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
            }
            Discovery::Aggregated(_) => {
                "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
            }
        },
        etag: format!("\"{hash}\""),
    }
}

fn make(table: &Table, route: &Route, form: Discovery, host: &str) -> Option<Value> {
    let groups = groups(table);
    match (route, form) {
        (Route::Core, Discovery::Plain) => Some(json!({
            "kind": "APIVersions",
            "versions": versions(table, "").iter().map(|(version, _)| version).collect::<Vec<_>>(),
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}],
        })),
        (Route::Groups, Discovery::Plain) => Some(json!({
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": groups.iter().map(|group| plain_group(table, group, false)).collect::<Vec<_>>(),
        })),
        (Route::Core, Discovery::Aggregated(version)) => Some(aggregated(table, &[""], version)),
        (Route::Groups, Discovery::Aggregated(version)) => {
            Some(aggregated(table, &groups, version))
        }
        (Route::Group(group), _) => groups
            .contains(&group.as_str())
            .then(|| plain_group(table, group, true)),
        (Route::GroupVersion { group, version }, _) => resources(table, group, version),
        _ => None,
    }
}

/// The groups but the core one, in the order of registration.
fn groups(table: &Table) -> Vec<&str> {
    let mut groups = Vec::new();
    for kind in &table.kinds {
        if !kind.group.is_empty() && !groups.contains(&kind.group) {
            groups.push(kind.group);
        }
    }
    groups
}

/// The versions of a group with their kinds, the most stable and newest first.
fn versions<'a>(table: &'a Table, group: &str) -> Vec<(&'a str, Vec<&'a Kind>)> {
    let mut versions: Vec<(&str, Vec<&Kind>)> = Vec::new();
    for kind in table.kinds.iter().filter(|kind| kind.group == group) {
        match versions
            .iter_mut()
            .find(|(known, _)| *known == kind.version)
        {
            Some((_, kinds)) => kinds.push(kind),
            None => versions.push((kind.version, vec![kind])),
        }
    }
    versions.sort_by_key(|(version, _)| std::cmp::Reverse(priority(version)));
    for (_, kinds) in &mut versions {
        if kinds.iter().all(|kind| kind.builtin) {
            kinds.sort_by_key(|kind| kind.plural);
        }
    }
    versions
}

/// How a version compares: stable before beta before alpha, then by number.
fn priority(version: &str) -> (u8, u32, u32) {
    let digits = |text: &str| text.parse::<u32>().unwrap_or_default();
    let number = version.trim_start_matches('v');
    if let Some((major, minor)) = number.split_once("alpha") {
        (0, digits(major), digits(minor))
    } else if let Some((major, minor)) = number.split_once("beta") {
        (1, digits(major), digits(minor))
    } else {
        (2, digits(number), 0)
    }
}

fn plain_group(table: &Table, group: &str, whole: bool) -> Value {
    let versions = versions(table, group)
        .iter()
        .map(|(version, _)| {
            json!({"groupVersion": format!("{group}/{version}"), "version": version})
        })
        .collect::<Vec<_>>();
    let mut value = json!({
        "name": group,
        "preferredVersion": versions.first(),
        "versions": versions,
    });
    if whole {
        value["kind"] = "APIGroup".into();
        value["apiVersion"] = "v1".into();
    }
    value
}

fn resources(table: &Table, group: &str, version: &str) -> Option<Value> {
    let (_, kinds) = versions(table, group)
        .into_iter()
        .find(|(found, _)| *found == version)?;
    let mut resources = Vec::new();
    for kind in kinds {
        resources.push(resource(kind));
        for subresource in &kind.subresources {
            let mut value = json!({
                "name": format!("{}/{}", kind.plural, subresource.name),
                "singularName": "",
                "namespaced": kind.scope == KindScope::Namespaced,
                "kind": kind.kind,
                "verbs": subresource_verbs(&subresource.kind),
            });
            if matches!(subresource.kind, SubresourceKind::Scale { .. }) {
                value["group"] = "autoscaling".into();
                value["version"] = "v1".into();
                value["kind"] = "Scale".into();
            }
            resources.push(value);
        }
    }
    if group.is_empty() {
        return Some(json!({
            "kind": "APIResourceList",
            "groupVersion": version,
            "resources": resources,
        }));
    }
    Some(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": format!("{group}/{version}"),
        "resources": resources,
    }))
}

fn named(kind: &Kind, mut value: Value) -> Value {
    value["verbs"] = json!(verbs(kind));
    if !kind.short_names.is_empty() {
        value["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        value["categories"] = json!(kind.categories);
    }
    value
}

fn resource(kind: &Kind) -> Value {
    let mut value = json!({
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.scope == KindScope::Namespaced,
        "kind": kind.kind,
    });
    if matches!(kind.storage, Storage::Stored) {
        let hash = Sha256::digest(format!("{}/{}/{}", kind.group, kind.version, kind.kind));
        value["storageVersionHash"] = STANDARD.encode(&hash[..8]).into();
    }
    named(kind, value)
}

/// The order is that of the reference server, which differs between its own kinds and custom ones.
fn verbs(kind: &Kind) -> Vec<&'static str> {
    let all: &[&str] = match (&kind.storage, kind.builtin) {
        (Storage::Review(_), _) => &["create"],
        (Storage::Stored, true) => &[
            "create",
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "update",
            "watch",
        ],
        (Storage::Stored, false) => &[
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "create",
            "update",
            "watch",
        ],
    };
    all.iter()
        .copied()
        .filter(|verb| kind.delete_collection || *verb != "deletecollection")
        .collect()
}

fn subresource_verbs(kind: &SubresourceKind) -> &'static [&'static str] {
    match kind {
        SubresourceKind::Action(_) => &["create"],
        _ => &["get", "patch", "update"],
    }
}

fn aggregated(table: &Table, groups: &[&str], version: &str) -> Value {
    let items = groups
        .iter()
        .filter_map(|group| {
            let versions = versions(table, group)
                .into_iter()
                .map(|(version, kinds)| {
                    json!({
                        "version": version,
                        "resources": kinds.into_iter().map(aggregated_resource).collect::<Vec<_>>(),
                        "freshness": "Current",
                    })
                })
                .collect::<Vec<_>>();
            let metadata = if group.is_empty() {
                json!({"creationTimestamp": null})
            } else {
                json!({"name": group, "creationTimestamp": null})
            };
            (!versions.is_empty()).then(|| json!({"metadata": metadata, "versions": versions}))
        })
        .collect::<Vec<_>>();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{version}"),
        "metadata": {},
        "items": items,
    })
}

fn aggregated_resource(kind: &Kind) -> Value {
    let own = json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
    let scope = match kind.scope {
        KindScope::Namespaced => "Namespaced",
        KindScope::Cluster => "Cluster",
    };
    let mut value = json!({
        "resource": kind.plural,
        "responseKind": own,
        "scope": scope,
        "singularResource": kind.singular,
    });
    if !kind.subresources.is_empty() {
        value["subresources"] = kind
            .subresources
            .iter()
            .map(|subresource| {
                let response = match subresource.kind {
                    SubresourceKind::Scale { .. } => {
                        json!({"group": "autoscaling", "version": "v1", "kind": "Scale"})
                    }
                    _ => own.clone(),
                };
                json!({
                    "subresource": subresource.name,
                    "responseKind": response,
                    "verbs": subresource_verbs(&subresource.kind),
                })
            })
            .collect();
    }
    named(kind, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_versions_come_first() {
        let mut versions = ["v1alpha1", "v2beta1", "v1", "v1beta2", "v2", "v1alpha2"];
        versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
        assert_eq!(
            versions,
            ["v2", "v1", "v2beta1", "v1beta2", "v1alpha2", "v1alpha1"]
        );
    }
}
