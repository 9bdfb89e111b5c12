//! The member's Cluster object: made once, taken up again after a restart, never taken from another cluster.

use evenkeel_shared::cluster::{Cluster, ClusterSpec, SyncMode};
use serde_json::{Map, Value, json};

use crate::transport::{Caller, Failure};

/// Where Cluster objects are.
pub const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";

/// Why the member is not in the fleet.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    #[error(
        "the name {name} belongs to another cluster of the fleet (id {other}, this member is {own}): give this member \
         another --cluster-name, or delete the other Cluster first"
    )]
    Taken {
        name: String,
        other: String,
        own: String,
    },
    #[error("the member's identity (the UID of its namespace kube-system) cannot be read: {0}")]
    Member(Failure),
    #[error("the Cluster cannot be registered: {0}")]
    Control(#[from] Failure),
}

/// What the agent says of its member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub name: String,
    /// UID of the member's namespace kube-system.
    pub id: String,
    pub provider: Option<String>,
    pub region: Option<String>,
    pub zones: Option<Vec<String>>,
    pub endpoint: String,
}

/// What is to be done in the control plane.
#[derive(Debug, PartialEq)]
enum Step {
    Create(Box<Cluster>),
    /// A merge patch.
    Adjust(Value),
    Nothing,
    Refuse(String),
}

/// Only what the agent was told is set; what it was not told stays.
fn step(existing: Option<&Cluster>, facts: &Facts) -> Step {
    let Some(existing) = existing else {
        return Step::Create(Box::new(Cluster::new(
            &facts.name,
            ClusterSpec {
                id: facts.id.clone(),
                sync_mode: Some(SyncMode::Pull),
                api_endpoint: facts.endpoint.clone(),
                provider: facts.provider.clone().unwrap_or_default(),
                region: facts.region.clone().unwrap_or_default(),
                zones: facts.zones.clone().unwrap_or_default(),
                ..ClusterSpec::default()
            },
        )));
    };
    let spec = &existing.spec;
    if !spec.id.is_empty() && spec.id != facts.id {
        return Step::Refuse(spec.id.clone());
    }
    let mut patch = Map::new();
    let mut text = |field: &str, current: &str, wanted: Option<&String>| {
        if let Some(wanted) = wanted.filter(|wanted| *wanted != current) {
            patch.insert(field.to_owned(), json!(wanted));
        }
    };
    text("id", &spec.id, Some(&facts.id));
    text("apiEndpoint", &spec.api_endpoint, Some(&facts.endpoint));
    text("provider", &spec.provider, facts.provider.as_ref());
    text("region", &spec.region, facts.region.as_ref());
    if facts
        .zones
        .as_ref()
        .is_some_and(|zones| *zones != spec.zones)
    {
        patch.insert("zones".to_owned(), json!(facts.zones));
        if !spec.zone.is_empty() {
            patch.insert("zone".to_owned(), Value::Null);
        }
    }
    if spec.sync_mode != Some(SyncMode::Pull) {
        patch.insert("syncMode".to_owned(), json!(SyncMode::Pull));
    }
    if patch.is_empty() {
        Step::Nothing
    } else {
        Step::Adjust(json!({ "spec": patch }))
    }
}

/// The UID of the member's namespace kube-system.
pub async fn member_id(member: &Caller) -> Result<String, RegisterError> {
    let namespace: Value = member
        .get("/api/v1/namespaces/kube-system")
        .await
        .map_err(RegisterError::Member)?;
    match namespace["metadata"]["uid"].as_str() {
        Some(uid) if !uid.is_empty() => Ok(uid.to_owned()),
        _ => Err(RegisterError::Member(Failure::Garbled(
            "it has no UID".to_owned(),
        ))),
    }
}

/// The Cluster as it was registered before, when the member does not answer now: its identity cannot be compared, but
/// the agent's certificate is for this Cluster only.
pub async fn known(
    control: &Caller,
    name: &str,
    error: &RegisterError,
) -> Result<Option<Cluster>, RegisterError> {
    match error {
        RegisterError::Member(failure) if failure.is_passing() => {
            let cluster: Option<Cluster> = control.find(&format!("{CLUSTERS}/{name}")).await?;
            Ok(cluster.filter(|cluster| !cluster.spec.id.is_empty()))
        }
        _ => Ok(None),
    }
}

/// Brings the Cluster object in line with the facts, once.
pub async fn register(control: &Caller, facts: &Facts) -> Result<Cluster, RegisterError> {
    let path = format!("{CLUSTERS}/{}", facts.name);
    let existing: Option<Cluster> = control.find(&path).await?;
    match step(existing.as_ref(), facts) {
        Step::Create(cluster) => Ok(control.create(CLUSTERS, &cluster).await?),
        Step::Adjust(patch) => Ok(control.merge(&path, &patch).await?),
        Step::Nothing => Ok(existing.unwrap_or_default()),
        Step::Refuse(other) => Err(RegisterError::Taken {
            name: facts.name.clone(),
            other,
            own: facts.id.clone(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            name: "m1".into(),
            id: "uid-1".into(),
            provider: None,
            region: Some("eu".into()),
            zones: Some(vec!["eu-1".into()]),
            endpoint: "https://m1:6443".into(),
        }
    }

    fn made() -> Cluster {
        match step(None, &facts()) {
            Step::Create(cluster) => *cluster,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_new_member_is_made_in_pull_mode() {
        let spec = made().spec;
        assert_eq!(spec.sync_mode, Some(SyncMode::Pull));
        assert_eq!((spec.id.as_str(), spec.region.as_str()), ("uid-1", "eu"));
    }

    #[test]
    fn a_restart_changes_nothing() {
        assert_eq!(step(Some(&made()), &facts()), Step::Nothing);
    }

    #[test]
    fn only_what_was_told_and_differs_is_changed() {
        let mut existing = made();
        existing.spec.provider = "set by somebody".into();
        existing.spec.region = "us".into();
        existing.spec.zone = "us-1".into();
        existing.spec.zones = vec![];
        assert_eq!(
            step(Some(&existing), &facts()),
            Step::Adjust(json!({"spec": {"region": "eu", "zones": ["eu-1"], "zone": null}}))
        );
        let untold = Facts {
            region: None,
            zones: None,
            ..facts()
        };
        assert_eq!(step(Some(&existing), &untold), Step::Nothing);
    }

    #[test]
    fn one_without_an_id_is_adopted() {
        let mut existing = made();
        existing.spec.id = String::new();
        assert_eq!(
            step(Some(&existing), &facts()),
            Step::Adjust(json!({"spec": {"id": "uid-1"}}))
        );
    }

    #[test]
    fn a_name_of_another_cluster_is_refused() {
        let mut existing = made();
        existing.spec.id = "uid-2".into();
        assert_eq!(
            step(Some(&existing), &facts()),
            Step::Refuse("uid-2".into())
        );
    }
}
