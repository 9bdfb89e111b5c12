//! What the member serves: from discovery, with what a partial failure leaves unknown kept as it was.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use evenkeel_shared::{
    cluster::{ApiEnablement, ApiResource},
    stamps::{REASON_COMPLETE, REASON_EMPTY, REASON_PARTIAL},
};
use futures::{StreamExt, stream};
use http::{Request, header};
use serde::Deserialize;
use serde_json::Value;

use crate::transport::Failure;

/// One answer asks for both forms; servers without the first give the second.
const ACCEPT: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
const DEADLINE: Duration = Duration::from_secs(30);
const AT_ONCE: usize = 4;

/// A resource that the member serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    pub name: String,
    pub kind: String,
    pub namespaced: bool,
}

/// All of them, by `group/version`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalogue {
    versions: BTreeMap<String, Vec<Resource>>,
    /// Those that the last discovery could not read.
    unread: BTreeSet<String>,
}

impl Catalogue {
    /// The resource of an object's apiVersion and kind.
    pub fn find(&self, api_version: &str, kind: &str) -> Option<&Resource> {
        self.versions
            .get(api_version)?
            .iter()
            .find(|resource| resource.kind == kind)
    }

    /// The reason of the condition about completeness.
    pub fn completeness(&self) -> &'static str {
        if self.versions.is_empty() {
            REASON_EMPTY
        } else if self.unread.is_empty() {
            REASON_COMPLETE
        } else {
            REASON_PARTIAL
        }
    }

    /// What could not be read.
    pub fn unread(&self) -> impl Iterator<Item = &str> {
        self.unread.iter().map(String::as_str)
    }

    /// As the Cluster's status has it.
    pub fn enablements(&self) -> Vec<ApiEnablement> {
        self.versions
            .iter()
            .map(|(group_version, resources)| ApiEnablement {
                group_version: group_version.clone(),
                resources: resources
                    .iter()
                    .map(|resource| ApiResource {
                        name: resource.name.clone(),
                        kind: resource.kind.clone(),
                    })
                    .collect(),
            })
            .collect()
    }

    /// This, and of what it could not read what was known before.
    #[must_use]
    pub fn after(mut self, last: &Self) -> Self {
        for group_version in &self.unread {
            if let Some(known) = last.versions.get(group_version) {
                self.versions
                    .entry(group_version.clone())
                    .or_insert_with(|| known.clone());
            }
        }
        self
    }

    /// One that serves these: apiVersion, plural, kind, namespaced.
    #[cfg(test)]
    pub fn with(resources: &[(&str, &str, &str, bool)]) -> Self {
        let mut catalogue = Self::default();
        for (group_version, name, kind, namespaced) in resources {
            catalogue
                .versions
                .entry((*group_version).to_owned())
                .or_default()
                .push(Resource {
                    name: (*name).to_owned(),
                    kind: (*kind).to_owned(),
                    namespaced: *namespaced,
                });
        }
        catalogue
    }

    fn insert(&mut self, group_version: String, mut resources: Vec<Resource>) {
        resources.retain(|resource| !resource.name.contains('/'));
        resources.sort_by(|a, b| a.name.cmp(&b.name));
        if !resources.is_empty() {
            self.versions.insert(group_version, resources);
        }
    }
}

#[derive(Deserialize)]
struct Aggregated {
    items: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    metadata: GroupMeta,
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Default, Deserialize)]
struct GroupMeta {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Version {
    #[serde(rename = "version")]
    name: String,
    #[serde(default)]
    resources: Vec<Served>,
    #[serde(default)]
    freshness: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Served {
    resource: String,
    #[serde(default)]
    response_kind: ResponseKind,
    #[serde(default)]
    scope: String,
}

#[derive(Default, Deserialize)]
struct ResponseKind {
    #[serde(default)]
    kind: String,
}

fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

/// Takes an aggregated answer into the catalogue. `None`: the server answered in the older form.
fn aggregated(catalogue: &mut Catalogue, answer: &Value) -> Option<Result<(), Failure>> {
    if answer["kind"] != "APIGroupDiscoveryList" {
        return None;
    }
    let list = match Aggregated::deserialize(answer) {
        Ok(list) => list,
        Err(error) => return Some(Err(Failure::Garbled(error.to_string()))),
    };
    for group in list.items {
        for version in group.versions {
            let name = group_version(&group.metadata.name, &version.name);
            if version.freshness == "Stale" {
                catalogue.unread.insert(name);
                continue;
            }
            let resources = version
                .resources
                .into_iter()
                .filter(|served| !served.response_kind.kind.is_empty())
                .map(|served| Resource {
                    name: served.resource,
                    kind: served.response_kind.kind,
                    namespaced: served.scope == "Namespaced",
                })
                .collect();
            catalogue.insert(name, resources);
        }
    }
    Some(Ok(()))
}

/// The `group/version`s that an answer in the older form names.
fn older(answer: &Value) -> Vec<String> {
    if answer["kind"] == "APIVersions" {
        let versions = answer["versions"].as_array().into_iter().flatten();
        return versions
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
    }
    let groups = answer["groups"].as_array().into_iter().flatten();
    groups
        .flat_map(|group| group["versions"].as_array().into_iter().flatten())
        .filter_map(|version| version["groupVersion"].as_str())
        .map(str::to_owned)
        .collect()
}

/// The resources of an APIResourceList.
fn listed(answer: &Value) -> Vec<Resource> {
    let text =
        |resource: &Value, name: &str| resource[name].as_str().unwrap_or_default().to_owned();
    answer["resources"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|resource| Resource {
            name: text(resource, "name"),
            kind: text(resource, "kind"),
            namespaced: resource["namespaced"].as_bool().unwrap_or_default(),
        })
        .collect()
}

async fn get(client: &kube::Client, path: &str) -> Result<Value, Failure> {
    let request = Request::get(path)
        .header(header::ACCEPT, ACCEPT)
        .body(Vec::new())
        .map_err(|error| Failure::Garbled(error.to_string()))?;
    match tokio::time::timeout(DEADLINE, client.request(request)).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(Failure::Late(DEADLINE)),
    }
}

/// Asks the member for everything that it serves. Fails only when nothing can be known.
pub async fn discover(client: &kube::Client) -> Result<Catalogue, Failure> {
    let mut catalogue = Catalogue::default();
    let mut unread = Vec::new();
    for root in ["/api", "/apis"] {
        let answer = get(client, root).await?;
        match aggregated(&mut catalogue, &answer) {
            Some(taken) => taken?,
            None => unread.extend(older(&answer)),
        }
    }
    let answers = stream::iter(unread)
        .map(|name| async move {
            let path = if name.contains('/') {
                format!("/apis/{name}")
            } else {
                format!("/api/{name}")
            };
            let answer = get(client, &path).await;
            (name, answer)
        })
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<_>>()
        .await;
    for (name, answer) in answers {
        match answer {
            Ok(answer) => catalogue.insert(name, listed(&answer)),
            Err(failure) => {
                tracing::debug!(group_version = name, error = %failure, "discovery failed in part");
                catalogue.unread.insert(name);
            }
        }
    }
    Ok(catalogue)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(freshness: &str) -> Value {
        json!({
            "kind": "APIGroupDiscoveryList",
            "items": [{
                "metadata": {"name": "apps"},
                "versions": [{
                    "version": "v1",
                    "freshness": freshness,
                    "resources": [
                        {"resource": "replicasets", "responseKind": {"kind": "ReplicaSet"}, "scope": "Namespaced"},
                        {"resource": "deployments", "responseKind": {"kind": "Deployment"}, "scope": "Namespaced",
                         "subresources": [{"subresource": "scale", "responseKind": {"kind": "Scale"}}]},
                    ],
                }],
            }],
        })
    }

    fn catalogue(freshness: &str) -> Catalogue {
        let mut catalogue = Catalogue::default();
        aggregated(&mut catalogue, &answer(freshness))
            .unwrap()
            .unwrap();
        catalogue
    }

    #[test]
    fn aggregated_answers_are_sorted() {
        let current = catalogue("Current");
        assert_eq!(current.completeness(), "Complete");
        let names: Vec<_> = current.enablements()[0]
            .resources
            .iter()
            .map(|resource| resource.name.clone())
            .collect();
        assert_eq!(names, ["deployments", "replicasets"]);
        assert!(current.find("apps/v1", "Deployment").unwrap().namespaced);
        assert_eq!(current.find("apps/v1", "Scale"), None);
    }

    #[test]
    fn what_cannot_be_read_stays_as_it_was() {
        let good = catalogue("Current");
        let stale = catalogue("Stale");
        assert_eq!(stale.completeness(), "Empty");
        let kept = stale.after(&good);
        assert_eq!(kept.completeness(), "Partial");
        assert_eq!(kept.enablements(), good.enablements());
        // A group that is no longer served goes.
        assert_eq!(Catalogue::default().after(&good), Catalogue::default());
        assert_eq!(Catalogue::default().completeness(), "Empty");
    }

    #[test]
    fn the_older_form() {
        assert_eq!(
            older(&json!({"kind": "APIVersions", "versions": ["v1"]})),
            ["v1"]
        );
        let groups = json!({"kind": "APIGroupList", "groups": [{"versions": [{"groupVersion": "apps/v1"}]}, {}]});
        assert_eq!(older(&groups), ["apps/v1"]);
        let mut catalogue = Catalogue::default();
        catalogue.insert(
            "v1".to_owned(),
            listed(&json!({"resources": [
                {"name": "pods", "kind": "Pod", "namespaced": true},
                {"name": "pods/status", "kind": "Pod", "namespaced": true},
            ]})),
        );
        assert_eq!(catalogue.enablements()[0].resources.len(), 1);
        assert!(aggregated(&mut catalogue, &groups).is_none());
    }
}
