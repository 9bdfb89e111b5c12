//! What the workload controllers, the scheduler and the kubelets of a cluster do, as pure functions: the object and
//! its children in, the next actions out. Shapes of statuses and conditions follow the real controllers.

pub mod daemonset;
pub mod deployment;
pub mod job;
pub mod pod;
pub mod replicaset;
pub mod statefulset;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The kinds that the controllers act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Workload {
    Deployment,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Job,
    Pod,
    Node,
}

impl Workload {
    /// Nodes come before the pods that are counted on them, and owners before what they own.
    pub const ALL: [Self; 7] = [
        Self::Node,
        Self::Deployment,
        Self::ReplicaSet,
        Self::StatefulSet,
        Self::DaemonSet,
        Self::Job,
        Self::Pod,
    ];

    /// Group, version, plural.
    pub fn path(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Deployment => ("apps", "v1", "deployments"),
            Self::ReplicaSet => ("apps", "v1", "replicasets"),
            Self::StatefulSet => ("apps", "v1", "statefulsets"),
            Self::DaemonSet => ("apps", "v1", "daemonsets"),
            Self::Job => ("batch", "v1", "jobs"),
            Self::Pod => ("", "v1", "pods"),
            Self::Node => ("", "v1", "nodes"),
        }
    }
}

/// One step towards what the specs ask for.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Create {
        kind: Workload,
        object: Value,
    },
    /// A merge patch of the main resource.
    Patch {
        kind: Workload,
        namespace: String,
        name: String,
        patch: Value,
    },
    /// The whole status, put in place of what stands there.
    Status {
        kind: Workload,
        namespace: String,
        name: String,
        status: Value,
    },
    Delete {
        kind: Workload,
        namespace: String,
        name: String,
    },
}

/// What the controllers keep of a pod: a member of 150,000 pods is held in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pod {
    pub namespace: String,
    pub name: String,
    pub owner: Option<Box<str>>,
    pub node: Option<Box<str>>,
    pub ready: bool,
    pub phase: Phase,
    pub deleting: bool,
    /// `controller-revision-hash`, for StatefulSets and DaemonSets.
    pub revision: Option<Box<str>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    #[default]
    Pending,
    Running,
    Succeeded,
    Failed,
}

impl Pod {
    pub fn of(object: &Value) -> Self {
        let boxed = |pointer| text(object, pointer).map(Into::into);
        Self {
            namespace: text(object, "/metadata/namespace")
                .unwrap_or_default()
                .into(),
            name: name(object).into(),
            owner: controller(object).map(Into::into),
            node: boxed("/spec/nodeName"),
            ready: condition(object, "Ready") == Some("True"),
            phase: match text(object, "/status/phase") {
                Some("Running") => Phase::Running,
                Some("Succeeded") => Phase::Succeeded,
                Some("Failed") => Phase::Failed,
                _ => Phase::Pending,
            },
            deleting: object.pointer("/metadata/deletionTimestamp").is_some(),
            revision: boxed("/metadata/labels/controller-revision-hash"),
        }
    }

    pub fn finished(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    fn delete(&self) -> Action {
        Action::Delete {
            kind: Workload::Pod,
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
}

pub fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str)
}

pub fn int(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(Value::as_i64)
}

pub fn name(object: &Value) -> &str {
    text(object, "/metadata/name").unwrap_or_default()
}

pub fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid").unwrap_or_default()
}

/// The uid of the controlling owner.
pub fn controller(object: &Value) -> Option<&str> {
    object
        .pointer("/metadata/ownerReferences")?
        .as_array()?
        .iter()
        .find(|owner| owner.get("controller") == Some(&Value::Bool(true)))
        .and_then(|owner| text(owner, "/uid"))
}

fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a str> {
    object
        .pointer("/status/conditions")?
        .as_array()?
        .iter()
        .find(|condition| text(condition, "/type") == Some(type_))
        .and_then(|condition| text(condition, "/status"))
}

/// `owner` as an entry of ownerReferences.
fn owner_reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    })
}

/// A pod from a template, controlled by `owner`.
fn pod_from(owner: &Value, name: &str, labels: &[(&str, &str)]) -> Value {
    let template = &owner["spec"]["template"];
    let mut metadata = Map::new();
    metadata.insert("name".into(), name.into());
    metadata.insert("namespace".into(), owner["metadata"]["namespace"].clone());
    let mut all = template["metadata"]["labels"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    for (key, value) in labels {
        all.insert((*key).into(), (*value).into());
    }
    metadata.insert("labels".into(), all.into());
    if let Some(annotations) = template.pointer("/metadata/annotations") {
        metadata.insert("annotations".into(), annotations.clone());
    }
    metadata.insert("ownerReferences".into(), json!([owner_reference(owner)]));
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
}

/// A condition, whose transition time moves only when its status does.
fn transition(
    object: &Value,
    type_: &str,
    status: bool,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> Value {
    let status = if status { "True" } else { "False" };
    let old = object
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .and_then(|all| all.iter().find(|old| text(old, "/type") == Some(type_)));
    let now = Value::from(second(now));
    let since = old
        .filter(|old| text(old, "/status") == Some(status))
        .and_then(|old| old.get("lastTransitionTime").cloned());
    let updated = old
        .filter(|old| text(old, "/status") == Some(status) && text(old, "/reason") == Some(reason))
        .and_then(|old| old.get("lastUpdateTime").cloned());
    json!({
        "type": type_, "status": status, "reason": reason, "message": message,
        "lastUpdateTime": updated.unwrap_or_else(|| now.clone()),
        "lastTransitionTime": since.unwrap_or(now),
    })
}

/// A time as Kubernetes writes it: UTC, whole seconds.
pub fn second(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Leaves out numbers that are zero, as Go's `omitempty` does.
fn counts(status: &mut Map<String, Value>, counts: &[(&str, i64)]) {
    for (field, count) in counts {
        if *count != 0 {
            status.insert((*field).into(), (*count).into());
        }
    }
}

/// The status action, when the status is not already so.
fn status_of(kind: Workload, object: &Value, status: Map<String, Value>) -> Option<Action> {
    let status = Value::Object(status);
    (object.get("status") != Some(&status)).then(|| Action::Status {
        kind,
        namespace: text(object, "/metadata/namespace")
            .unwrap_or_default()
            .into(),
        name: name(object).into(),
        status,
    })
}

/// A short name for a template: equal templates have equal ones.
fn template_hash(template: &Value) -> String {
    fn feed(value: &Value, hash: &mut u64) {
        let mut bytes = |bytes: &[u8]| {
            for byte in bytes {
                *hash = (*hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            }
        };
        match value {
            Value::Object(fields) => {
                let mut sorted = fields.iter().collect::<Vec<_>>();
                sorted.sort_unstable_by_key(|(name, _)| name.as_str());
                bytes(b"{");
                for (name, value) in sorted {
                    feed(&Value::from(name.as_str()), hash);
                    feed(value, hash);
                }
            }
            Value::Array(items) => {
                bytes(b"[");
                for item in items {
                    feed(item, hash);
                }
            }
            scalar => bytes(scalar.to_string().as_bytes()),
        }
    }
    // Letters and digits that form no words, as Kubernetes' names are made of.
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut hash = 0xcbf2_9ce4_8422_2325;
    feed(template, &mut hash);
    let mut name = String::with_capacity(10);
    for _ in 0..10 {
        name.push(char::from(
            ALPHABET[usize::try_from(hash % 27).unwrap_or(0)],
        ));
        hash /= 27;
    }
    name
}

/// Deletes surplus pods: those that do less first.
fn surplus(pods: &[&Pod], count: usize) -> Vec<Action> {
    let mut order = pods.to_vec();
    order.sort_by(|a, b| {
        (a.node.is_some(), a.ready, &b.name).cmp(&(b.node.is_some(), b.ready, &a.name))
    });
    order.into_iter().take(count).map(Pod::delete).collect()
}
