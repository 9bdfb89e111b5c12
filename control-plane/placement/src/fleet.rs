//! What placement knows of a cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use evenkeel_shared::{
    cluster::{Cluster, ClusterStatus},
    stamps, taint,
};
use k8s_openapi::api::core::v1::Taint;

/// The kinds that a cluster serves, as `(group/version, Kind)`. Clusters of one make share one set.
pub type Apis = BTreeSet<(String, String)>;

/// One cluster, reduced to what decides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterView {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its provider; empty when not given.
    pub provider: String,
    /// Its region; empty when not given.
    pub region: String,
    /// Its zones.
    pub zones: Vec<String>,
    /// Its taints, those that its Ready condition implies included.
    pub taints: Vec<Taint>,
    /// Its Ready condition is True.
    pub ready: bool,
    /// It is being deleted.
    pub terminating: bool,
    /// What it serves.
    pub apis: Arc<Apis>,
    /// `apis` is known to be the whole list.
    pub apis_complete: bool,
}

impl ClusterView {
    /// What placement needs of a cluster. The taints that its condition implies count from the moment of the condition,
    /// whether or not they are on the object already.
    pub fn of(cluster: &Cluster) -> Self {
        let mut taints = cluster.spec.taints.clone();
        let ready = cluster
            .condition(stamps::READY)
            .map(|ready| ready.status.as_str());
        for (key, wanted) in implied_taints(ready) {
            if !wanted {
                taint::remove(&mut taints, key, stamps::NO_SCHEDULE);
            } else if !taint::has(&taints, key, stamps::NO_SCHEDULE) {
                taints.push(Taint {
                    key: key.to_owned(),
                    effect: stamps::NO_SCHEDULE.to_owned(),
                    value: None,
                    time_added: None,
                });
            }
        }
        let mut zones = cluster.spec.zones.clone();
        if zones.is_empty() && !cluster.spec.zone.is_empty() {
            zones.push(cluster.spec.zone.clone());
        }
        Self {
            name: cluster.name().to_owned(),
            labels: cluster.metadata.labels.clone().unwrap_or_default(),
            provider: cluster.spec.provider.clone(),
            region: cluster.spec.region.clone(),
            zones,
            taints,
            ready: ready == Some("True"),
            terminating: cluster.metadata.deletion_timestamp.is_some(),
            apis: Arc::new(cluster.status.as_ref().map(apis_of).unwrap_or_default()),
            apis_complete: cluster
                .condition(stamps::COMPLETE_API_ENABLEMENTS)
                .is_some_and(|complete| complete.status == "True"),
        }
    }

    /// Whether it serves a kind.
    pub fn serves(&self, api_version: &str, kind: &str) -> bool {
        self.apis
            .contains(&(api_version.to_owned(), kind.to_owned()))
    }
}

/// The taints that follow from the Ready condition, each with whether it has to be there: False or no condition is
/// not ready, Unknown is unreachable, True is neither.
pub fn implied_taints(ready: Option<&str>) -> [(&'static str, bool); 2] {
    let (not_ready, unreachable) = match ready {
        Some("True") => (false, false),
        None | Some("False") => (true, false),
        Some(_) => (false, true),
    };
    [
        (stamps::TAINT_NOT_READY, not_ready),
        (stamps::TAINT_UNREACHABLE, unreachable),
    ]
}

fn apis_of(status: &ClusterStatus) -> Apis {
    status
        .api_enablements
        .iter()
        .flat_map(|group| {
            group
                .resources
                .iter()
                .map(|resource| (group.group_version.clone(), resource.kind.clone()))
        })
        .collect()
}
