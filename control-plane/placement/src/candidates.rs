//! Which clusters may get a workload, and why the others may not.

use std::collections::BTreeMap;

use evenkeel_shared::{placement::ClusterAffinity, taint};
use k8s_openapi::api::core::v1::Toleration;

use crate::{affinity, fleet::ClusterView};

/// What is to be placed.
#[derive(Clone, Copy, Debug)]
pub struct Workload<'a> {
    /// `group/version` of the template.
    pub api_version: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// The clusters that have it now.
    pub current: &'a [String],
    /// The clusters that it is being evicted from.
    pub leaving: &'a [String],
}

/// Why a cluster may not get it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rejection {
    /// The affinity leaves it out.
    Affinity,
    /// A taint is not tolerated: key and effect as `key=value:effect`.
    Taint(String),
    /// It does not serve the kind.
    Api,
    /// The workload is being evicted from it.
    Leaving,
    /// It is being deleted.
    Terminating,
}

impl Rejection {
    /// In words, behind a number of clusters.
    pub fn text(&self) -> String {
        match self {
            Self::Affinity => {
                "cluster(s) did not match the placement cluster affinity constraint".into()
            }
            Self::Taint(taint) => format!("cluster(s) had untolerated taint {{{taint}}}"),
            Self::Api => "cluster(s) did not have the API resource".into(),
            Self::Leaving => "cluster(s) is in the process of eviction".into(),
            Self::Terminating => "cluster(s) is being deleted".into(),
        }
    }
}

/// Whether one cluster may get a workload.
///
/// A cluster that has it already keeps it in spite of taints (failover is what moves it) and of an API list that is
/// not known to be whole; not in spite of the affinity, or of its own deletion.
pub fn admit(
    workload: Workload<'_>,
    affinity: Option<&ClusterAffinity>,
    tolerations: &[Toleration],
    cluster: &ClusterView,
) -> Result<(), Rejection> {
    let has_it = workload.current.contains(&cluster.name);
    if cluster.terminating {
        return Err(Rejection::Terminating);
    }
    if affinity.is_some_and(|affinity| !affinity::matches(affinity, cluster)) {
        return Err(Rejection::Affinity);
    }
    if workload.leaving.contains(&cluster.name) {
        return Err(Rejection::Leaving);
    }
    if !has_it && let Some(taint) = taint::first_untolerated(&cluster.taints, tolerations) {
        let value = taint.value.as_deref().unwrap_or_default();
        let equals = if value.is_empty() { "" } else { "=" };
        return Err(Rejection::Taint(format!(
            "{}{equals}{value}:{}",
            taint.key, taint.effect
        )));
    }
    let keeps = has_it && !cluster.apis_complete;
    if !keeps && !cluster.serves(workload.api_version, workload.kind) {
        return Err(Rejection::Api);
    }
    Ok(())
}

/// All clusters that may get it, in the order given, and how often each reason kept one out.
pub fn candidates<'a>(
    workload: Workload<'_>,
    affinity: Option<&ClusterAffinity>,
    tolerations: &[Toleration],
    fleet: impl IntoIterator<Item = &'a ClusterView>,
) -> (Vec<&'a ClusterView>, BTreeMap<Rejection, usize>) {
    let mut fit = Vec::new();
    let mut rejected = BTreeMap::new();
    for cluster in fleet {
        match admit(workload, affinity, tolerations, cluster) {
            Ok(()) => fit.push(cluster),
            Err(rejection) => *rejected.entry(rejection).or_insert(0) += 1,
        }
    }
    (fit, rejected)
}

/// Why nothing fits, in one line: `0/3 clusters are available: 2 cluster(s) …, 1 cluster(s) ….`
pub fn explain(rejected: &BTreeMap<Rejection, usize>) -> String {
    let total = rejected.values().sum::<usize>();
    if total == 0 {
        return "0/0 clusters are available: no cluster has joined.".into();
    }
    let reasons = rejected
        .iter()
        .map(|(rejection, count)| format!("{count} {}", rejection.text()))
        .collect::<Vec<_>>()
        .join(", ");
    format!("0/{total} clusters are available: {reasons}.")
}
