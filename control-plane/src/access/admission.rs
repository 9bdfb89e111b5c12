//! What agents and bearers of bootstrap tokens may write, where the request's address alone does not say it.

use std::sync::Arc;

use evenkeel_api::{
    access::{Admission, Attributes, UserInfo},
    failure::Failure,
};
use evenkeel_shared::identity::{AGENTS_GROUP, BOOTSTRAP_GROUP, agent_cluster};
use serde_json::{Map, Value};

use super::agent::{election_lease, secrets_of};
use crate::enrol::{CertificateRequest, Fleet, Verdict, judge};

/// Fields of a Cluster's spec that are the operator's: an agent may set them when it makes the Cluster, and never after.
const OPERATORS_FIELDS: [&str; 2] = ["taints", "resourceModels"];
/// The same of the metadata: labels and finalizers decide what a member is sent and when it is let go.
const OPERATORS_METADATA: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];
/// Annotations of a Cluster under this prefix are the agent's.
const AGENTS_ANNOTATIONS: &str = "agent.evenkeel.io/";

/// Looks at the writes of agents and newcomers, and lets everybody else's pass.
pub struct AgentAdmission {
    fleet: Arc<dyn Fleet + Send + Sync>,
}

impl AgentAdmission {
    pub fn new(fleet: Arc<dyn Fleet + Send + Sync>) -> Self {
        Self { fleet }
    }
}

impl Admission for AgentAdmission {
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
        let write = Write {
            attributes,
            old,
            new,
        };
        write.check(user, &*self.fleet).map_err(|why| {
            Failure::forbidden(
                &attributes.group,
                &attributes.resource,
                text(new, "/metadata/name"),
                &why,
            )
        })
    }
}

/// One write, as rules see it.
struct Write<'a> {
    attributes: &'a Attributes,
    old: Option<&'a Value>,
    new: &'a Value,
}

fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object
        .pointer(path)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

impl Write<'_> {
    fn check(&self, user: &UserInfo, fleet: &dyn Fleet) -> Result<(), String> {
        let Attributes {
            group,
            resource,
            subresource,
            ..
        } = self.attributes;
        let kind = (group.as_str(), resource.as_str(), subresource.as_str());
        if kind == ("certificates.k8s.io", "certificatesigningrequests", "") && self.old.is_none() {
            return self.certificate_request(user, fleet);
        }
        if !user.is_in(AGENTS_GROUP) {
            return Ok(());
        }
        let Some(cluster) = agent_cluster(&user.name, &user.groups) else {
            return Err(format!(
                "a member of {AGENTS_GROUP} is named after its cluster"
            ));
        };
        match kind {
            ("cluster.karmada.io", "clusters", "") => {
                self.named(&[cluster.to_owned()])?;
                self.cluster(cluster, fleet)
            }
            ("topology.evenkeel.io", "clustertopologies", "") => self.named(&[cluster.to_owned()]),
            ("coordination.k8s.io", "leases", "") => {
                if self.attributes.namespace == evenkeel_shared::names::SYSTEM_NAMESPACE {
                    self.named(&[election_lease(cluster)])
                } else {
                    self.named(&[cluster.to_owned()])
                }
            }
            ("", "secrets", "") => self.named(&secrets_of(cluster)),
            ("work.karmada.io", "works", "") => self.work(),
            ("" | "events.k8s.io", "events", "") => self.event(cluster),
            _ => Ok(()),
        }
    }

    fn named(&self, names: &[String]) -> Result<(), String> {
        let name = text(self.new, "/metadata/name");
        if names.iter().any(|own| own == name) {
            Ok(())
        } else {
            Err(format!(
                "an agent may write only what belongs to its own cluster: {}",
                names.join(", ")
            ))
        }
    }

    fn cluster(&self, cluster: &str, fleet: &dyn Fleet) -> Result<(), String> {
        let id = text(self.new, "/spec/id");
        if text(self.new, "/spec/syncMode") != "Pull" {
            return Err("a cluster with an agent has spec.syncMode Pull".into());
        }
        if let Some(old) = self.old {
            let standing = text(old, "/spec/id");
            if !standing.is_empty() && standing != id {
                return Err(format!(
                    "the name \"{cluster}\" is taken by the cluster with id \"{standing}\", and this agent runs in the one with \
                     id \"{id}\": choose another name for it, or delete the Cluster first"
                ));
            }
            for field in OPERATORS_FIELDS {
                if !same(old.pointer("/spec"), self.new.pointer("/spec"), field) {
                    return Err(format!("spec.{field} is the operator's to change"));
                }
            }
            for field in OPERATORS_METADATA {
                let (old, new) = (
                    operators_metadata(old, field),
                    operators_metadata(self.new, field),
                );
                if old != new {
                    return Err(format!("metadata.{field} is the operator's to change"));
                }
            }
        }
        if !id.is_empty()
            && let Some(other) = fleet.cluster_with_id(id)
            && other != cluster
        {
            return Err(format!(
                "the cluster with id \"{id}\" is already here under the name \"{other}\": use that name, or delete that Cluster first"
            ));
        }
        Ok(())
    }

    /// Of a Work, an agent takes finalizers away; its status is another resource.
    fn work(&self) -> Result<(), String> {
        let Some(old) = self.old else {
            return Err("an agent makes no Works".into());
        };
        let rest = |object: &Value| {
            let mut object = object.clone();
            if let Some(fields) = object.as_object_mut() {
                fields.remove("status");
            }
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                for field in [
                    "finalizers",
                    "managedFields",
                    "resourceVersion",
                    "generation",
                ] {
                    metadata.remove(field);
                }
            }
            object
        };
        let finalizers = |object: &Value| -> Vec<Value> {
            object
                .pointer("/metadata/finalizers")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default()
        };
        let (before, after) = (finalizers(old), finalizers(self.new));
        if rest(old) != rest(self.new) || after.iter().any(|finalizer| !before.contains(finalizer))
        {
            return Err(
                "of a Work, an agent may remove finalizers and write the status, nothing else"
                    .into(),
            );
        }
        Ok(())
    }

    /// Outside its own namespace, an agent tells only of its own Cluster.
    fn event(&self, cluster: &str) -> Result<(), String> {
        if self.attributes.namespace == evenkeel_shared::names::execution_namespace(cluster) {
            return Ok(());
        }
        let is_own = |event: &Value| {
            ["involvedObject", "regarding"]
                .iter()
                .filter_map(|field| event.get(*field))
                .filter(|reference| !is_empty(reference))
                .all(|reference| {
                    reference["kind"] == "Cluster" && reference["name"].as_str() == Some(cluster)
                })
                && ["involvedObject", "regarding"].iter().any(|field| {
                    event
                        .get(*field)
                        .is_some_and(|reference| !is_empty(reference))
                })
        };
        if is_own(self.new) && self.old.is_none_or(is_own) {
            Ok(())
        } else {
            Err(format!(
                "outside its own namespace, an agent may tell of its own Cluster \"{cluster}\" only"
            ))
        }
    }

    fn certificate_request(&self, user: &UserInfo, fleet: &dyn Fleet) -> Result<(), String> {
        let mut request = CertificateRequest::read(self.new)?;
        request.spec.username.clone_from(&user.name);
        request.spec.groups.clone_from(&user.groups);
        request.spec.extra.clone_from(&user.extra);
        let fixed = user.is_in(AGENTS_GROUP) || user.is_in(BOOTSTRAP_GROUP);
        match judge(&request, fleet) {
            Verdict::Forbid(why) => Err(why),
            // What others ask for in a wrong way fails when it is signed, as the reference server has it.
            Verdict::Refuse(why) if fixed => Err(why),
            Verdict::Approve { .. } | Verdict::Ask | Verdict::Refuse(_) => Ok(()),
        }
    }
}

/// A part of the metadata without what an agent may change there; absent and empty are one.
fn operators_metadata(object: &Value, field: &str) -> Option<Value> {
    let mut value = object.pointer("/metadata")?.get(field)?.clone();
    if field == "annotations"
        && let Some(annotations) = value.as_object_mut()
    {
        annotations.retain(|name, _| !name.starts_with(AGENTS_ANNOTATIONS));
    }
    (!is_empty(&value)).then_some(value)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// Absent and empty are one.
fn same(old: Option<&Value>, new: Option<&Value>, field: &str) -> bool {
    let get = |object: Option<&Value>| {
        object
            .and_then(Value::as_object)
            .and_then(|fields: &Map<String, Value>| fields.get(field))
            .filter(|value| !is_empty(value))
            .cloned()
    };
    get(old) == get(new)
}

#[cfg(test)]
mod tests;
