//! Which clusters get a workload.

use std::{borrow::Borrow, collections::HashSet};

use evenkeel_shared::{
    binding::{ResourceBindingSpec, TargetCluster},
    placement::{ClusterAffinity, Placement},
    stamps,
};

use crate::{
    candidates::{Workload, candidates, explain},
    fleet::ClusterView,
    unsupported,
};

/// The reasons of the Scheduled condition.
pub mod reason {
    /// Placed.
    pub const SUCCESS: &str = evenkeel_shared::stamps::REASON_SCHEDULED;
    /// No cluster may get it.
    pub const NO_CLUSTER_FIT: &str = evenkeel_shared::stamps::REASON_NO_CLUSTER_FIT;
    /// The policy asks for something that is not acted on yet.
    pub const NOT_SUPPORTED: &str = "NotSupportedYet";
    /// Its placement is suspended, or left to another scheduler.
    pub const SUSPENDED: &str = "SuspendScheduling";
}

/// What was decided of a binding.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The clusters from now on, sorted by name.
    pub clusters: Vec<TargetCluster>,
    /// Whether that is what the placement asks for.
    pub scheduled: bool,
    /// One of [`reason`].
    pub reason: &'static str,
    /// In words.
    pub message: String,
    /// The affinity term that was used; empty when there are none.
    pub affinity_name: String,
}

/// Places a binding.
///
/// 1. What cannot be honoured yet, is suspended, or is another scheduler's: the clusters stay as they are.
/// 2. Affinity terms are tried in order, from the one in use on; the first with a candidate counts.
/// 3. Every candidate gets a copy with all replicas.
/// 4. Nothing fits: the clusters stay as they are. A running workload is never left without one.
/// 5. A cluster that is gone or going is dropped in every case: nothing runs there any more.
///
/// `later` names wishes that are not acted on yet; a success carries them in its message.
pub fn decide(
    binding: &ResourceBindingSpec,
    affinity_in_use: &str,
    fleet: &[impl Borrow<ClusterView>],
    held_back: &[&str],
    later: &[&str],
) -> Decision {
    let standing = standing(binding, fleet);
    let stay = |reason, message| Decision {
        clusters: standing.clone(),
        scheduled: false,
        reason,
        message,
        affinity_name: affinity_in_use.to_owned(),
    };
    let default_placement = Placement::default();
    let placement = binding.placement.as_ref().unwrap_or(&default_placement);

    if binding
        .suspension
        .as_ref()
        .is_some_and(|suspension| suspension.scheduling == Some(true))
    {
        return stay(reason::SUSPENDED, "scheduling is suspended".into());
    }
    if !matches!(
        binding.scheduler_name.as_str(),
        "" | stamps::DEFAULT_SCHEDULER
    ) {
        return stay(
            reason::SUSPENDED,
            format!("scheduling is left to {:?}", binding.scheduler_name),
        );
    }
    let mut unsupported = unsupported::in_placement(placement);
    unsupported.extend(held_back);
    if !unsupported.is_empty() {
        return stay(
            reason::NOT_SUPPORTED,
            format!(
                "the policy asks for what is not acted on yet: {}; nothing new was placed",
                unsupported.join(", ")
            ),
        );
    }

    let current = names(&binding.clusters);
    let leaving = binding
        .graceful_eviction_tasks
        .iter()
        .map(|task| task.from_cluster.clone())
        .collect::<Vec<_>>();
    let workload = Workload {
        api_version: &binding.resource.api_version,
        kind: &binding.resource.kind,
        current: &current,
        leaving: &leaving,
    };

    let mut message = String::new();
    for (name, affinity) in terms(placement, affinity_in_use) {
        let (fit, rejected) = candidates(
            workload,
            affinity,
            &placement.cluster_tolerations,
            fleet.iter().map(Borrow::borrow),
        );
        if fit.is_empty() {
            message = explain(&rejected);
            continue;
        }
        let mut clusters = fit
            .into_iter()
            .map(|cluster| TargetCluster {
                name: cluster.name.clone(),
                replicas: binding.replicas,
                ..TargetCluster::default()
            })
            .collect::<Vec<_>>();
        clusters.sort_by(|a, b| a.name.cmp(&b.name));
        let mut message = "Binding has been scheduled successfully.".to_owned();
        if !later.is_empty() {
            message = format!("{message} Not acted on yet: {}.", later.join(", "));
        }
        return Decision {
            clusters,
            scheduled: true,
            reason: reason::SUCCESS,
            message,
            affinity_name: name.to_owned(),
        };
    }
    if !standing.is_empty() {
        message = format!("{message} The last placement stays.");
    }
    stay(reason::NO_CLUSTER_FIT, message)
}

/// The clusters of a binding that are still there.
fn standing(
    binding: &ResourceBindingSpec,
    fleet: &[impl Borrow<ClusterView>],
) -> Vec<TargetCluster> {
    if binding.clusters.is_empty() {
        return Vec::new();
    }
    let there = fleet
        .iter()
        .map(Borrow::borrow)
        .filter(|cluster| !cluster.terminating)
        .map(|cluster| cluster.name.as_str())
        .collect::<HashSet<_>>();
    let mut standing = binding
        .clusters
        .iter()
        .filter(|target| there.contains(target.name.as_str()))
        .cloned()
        .collect::<Vec<_>>();
    standing.sort_by(|a, b| a.name.cmp(&b.name));
    standing
}

/// The affinity terms to try, in order: from the one in use on, or all of them when that one is unknown.
fn terms<'a>(
    placement: &'a Placement,
    in_use: &str,
) -> Vec<(&'a str, Option<&'a ClusterAffinity>)> {
    if placement.cluster_affinities.is_empty() {
        return vec![("", placement.cluster_affinity.as_ref())];
    }
    let from = placement
        .cluster_affinities
        .iter()
        .position(|term| term.affinity_name == in_use)
        .unwrap_or_default();
    placement.cluster_affinities[from..]
        .iter()
        .map(|term| (term.affinity_name.as_str(), Some(&term.affinity)))
        .collect()
}

fn names(clusters: &[TargetCluster]) -> Vec<String> {
    clusters.iter().map(|target| target.name.clone()).collect()
}
