//! The strategies of a policy: all to each, by fixed weights, by what is free, or in as few clusters as will do.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use evenkeel_shared::{
    binding::TargetCluster,
    placement::{ReplicaDivisionPreference, ReplicaSchedulingStrategy, ReplicaSchedulingType},
};

use super::webster::{ByName, Party, allocate};
use crate::{affinity, fleet::ClusterView};

/// A cluster that was chosen.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// The cluster.
    pub cluster: &'a ClusterView,
    /// How many more replicas it takes.
    pub allocatable: i64,
    /// 0 for the clusters of the affinity itself, 1 and up for those of its overflow terms, in order.
    pub tier: u32,
}

/// What is to be divided.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    /// The replicas of the template.
    pub replicas: i64,
    /// `None`: each cluster gets all of them.
    pub strategy: Option<&'a ReplicaSchedulingStrategy>,
    /// Where they are now.
    pub previous: &'a [TargetCluster],
    /// Breaks ties.
    pub uid: &'a str,
    /// Somebody asked for a division from scratch, regardless of where the replicas are now.
    pub fresh: bool,
}

/// Why replicas could not be divided.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DivisionError {
    /// Nothing to divide among.
    #[error("no clusters available to schedule")]
    NoClusters,
    /// The clusters have less room than is needed.
    #[error("{context}Clusters available replicas {available} are not enough to schedule.")]
    NotEnough {
        /// What was being done.
        context: &'static str,
        /// What there is.
        available: i64,
    },
    /// Not even all tiers of overflow together have the room.
    #[error("Clusters available replicas are not enough to schedule.")]
    TiersNotEnough,
    /// Divided, and it is not said how. Admission fills that in, so it is the sign of an object from elsewhere.
    #[error(
        "unsupported replica scheduling strategy, replicaSchedulingType: Divided, replicaDivisionPreference: , please try another scheduling strategy"
    )]
    NoPreference,
}

enum Method<'a> {
    Duplicated,
    Static(&'a ReplicaSchedulingStrategy),
    Dynamic,
    Aggregated,
}

fn method(strategy: Option<&ReplicaSchedulingStrategy>) -> Result<Method<'_>, DivisionError> {
    let Some(strategy) = strategy else {
        return Ok(Method::Duplicated);
    };
    if strategy.replica_scheduling_type == Some(ReplicaSchedulingType::Duplicated) {
        return Ok(Method::Duplicated);
    }
    match &strategy.replica_division_preference {
        Some(ReplicaDivisionPreference::Aggregated) => Ok(Method::Aggregated),
        Some(ReplicaDivisionPreference::Weighted) => {
            let preference = strategy.weight_preference.as_ref();
            let dynamic = preference.is_some_and(|weights| weights.dynamic_weight.is_some());
            Ok(if dynamic {
                Method::Dynamic
            } else {
                Method::Static(strategy)
            })
        }
        None | Some(ReplicaDivisionPreference::Other(_)) => Err(DivisionError::NoPreference),
    }
}

/// Divides replicas among the candidates, whose order counts where capacities tie. The result is sorted by name and
/// holds no cluster with zero replicas, save where there is nothing to divide: with zero replicas wanted every candidate
/// that has the workload keeps it, at zero.
pub fn assign(
    demand: Demand<'_>,
    candidates: &[Candidate<'_>],
) -> Result<Vec<TargetCluster>, DivisionError> {
    if candidates.is_empty() {
        return Err(DivisionError::NoClusters);
    }
    let method = method(demand.strategy)?;
    if demand.replicas <= 0 {
        return Ok(at_zero(demand, candidates, &method));
    }
    let mut tiers: BTreeMap<u32, Vec<Candidate<'_>>> = BTreeMap::new();
    for candidate in candidates {
        tiers.entry(candidate.tier).or_default().push(*candidate);
    }
    let mut shares = Shares::new();
    if tiers.len() == 1 || matches!(method, Method::Duplicated) {
        share(demand, candidates, &method, demand.replicas, &mut shares)?;
    } else {
        let previous = replicas_of(demand.previous);
        let mut left = demand.replicas;
        for tier in tiers.values() {
            let own = |candidate: &Candidate<'_>| {
                let own = previous
                    .get(candidate.cluster.name.as_str())
                    .copied()
                    .unwrap_or(0);
                candidate.allocatable.saturating_add(own)
            };
            let room = tier.iter().map(own).fold(0, i64::saturating_add);
            let target = left.min(room);
            if target > 0 {
                share(demand, tier, &method, target, &mut shares)?;
            }
            left -= target;
        }
        if left > 0 {
            return Err(DivisionError::TiersNotEnough);
        }
    }
    Ok(shares
        .into_iter()
        .filter(|&(_, replicas)| replicas > 0)
        .map(|(name, replicas)| target(name, replicas))
        .collect())
}

/// Replicas by cluster.
type Shares<'a> = BTreeMap<&'a str, i64>;

fn target(name: &str, replicas: i64) -> TargetCluster {
    TargetCluster {
        name: name.to_owned(),
        replicas: i32::try_from(replicas).unwrap_or(i32::MAX),
        ..TargetCluster::default()
    }
}

fn replicas_of(targets: &[TargetCluster]) -> HashMap<&str, i64> {
    targets
        .iter()
        .map(|target| (target.name.as_str(), i64::from(target.replicas)))
        .collect()
}

/// A workload that is scaled to zero stays where it is, so that it is there when it is scaled up again.
fn at_zero(
    demand: Demand<'_>,
    candidates: &[Candidate<'_>],
    method: &Method<'_>,
) -> Vec<TargetCluster> {
    let has = |name: &str| demand.previous.iter().any(|previous| previous.name == name);
    let names = candidates
        .iter()
        .map(|candidate| candidate.cluster.name.as_str());
    let mut kept: Vec<&str> = names.clone().filter(|name| has(name)).collect();
    if kept.is_empty() || matches!(method, Method::Duplicated) {
        kept = names.collect();
    }
    kept.sort_unstable();
    kept.into_iter().map(|name| target(name, 0)).collect()
}

fn share<'a>(
    demand: Demand<'a>,
    candidates: &[Candidate<'a>],
    method: &Method<'_>,
    replicas: i64,
    shares: &mut Shares<'a>,
) -> Result<(), DivisionError> {
    match method {
        Method::Duplicated => {
            shares.extend(
                candidates
                    .iter()
                    .map(|candidate| (candidate.cluster.name.as_str(), replicas)),
            );
            Ok(())
        }
        Method::Static(strategy) => {
            by_static_weights(demand, candidates, strategy, replicas, shares);
            Ok(())
        }
        Method::Dynamic => by_capacity(demand, candidates, replicas, false, shares),
        Method::Aggregated => by_capacity(demand, candidates, replicas, true, shares),
    }
}

/// A cluster's weight is that of the heaviest rule that selects it; clusters that no rule selects get nothing, unless
/// that is true of all.
fn by_static_weights<'a>(
    demand: Demand<'_>,
    candidates: &[Candidate<'a>],
    strategy: &ReplicaSchedulingStrategy,
    replicas: i64,
    shares: &mut Shares<'a>,
) {
    let rules = strategy
        .weight_preference
        .as_ref()
        .map(|preference| preference.static_weight_list.as_slice())
        .unwrap_or_default();
    let weight = |cluster: &ClusterView| {
        rules
            .iter()
            .filter(|rule| affinity::matches(&rule.target_cluster, cluster))
            .map(|rule| rule.weight.max(0))
            .max()
    };
    let mut weighed: Vec<(&str, i64)> = candidates
        .iter()
        .filter_map(|candidate| Some((candidate.cluster.name.as_str(), weight(candidate.cluster)?)))
        .collect();
    if weighed.iter().all(|&(_, weight)| weight == 0) {
        weighed = candidates
            .iter()
            .map(|candidate| (candidate.cluster.name.as_str(), 1))
            .collect();
    }
    proportional(weighed, replicas, demand.uid, shares);
}

/// Adds `replicas`, in proportion to the weights, to what the clusters have in `shares`.
fn proportional<'a>(
    weighed: Vec<(&'a str, i64)>,
    replicas: i64,
    uid: &str,
    shares: &mut Shares<'a>,
) {
    let mut parties: Vec<_> = weighed
        .into_iter()
        .map(|(name, votes)| Party {
            name,
            votes: votes.max(0),
            seats: 0,
        })
        .collect();
    allocate(&mut parties, replicas, ByName::of_uid(uid));
    for party in parties {
        *shares.entry(party.name).or_default() += party.seats;
    }
}

/// Keeps what is placed: only the difference is divided, by what the clusters can take in addition, or, downwards, by
/// what they have. A fresh division counts what they have as free.
fn by_capacity<'a>(
    demand: Demand<'a>,
    candidates: &[Candidate<'a>],
    replicas: i64,
    aggregated: bool,
    shares: &mut Shares<'a>,
) -> Result<(), DivisionError> {
    let allocatable: HashMap<&str, i64> = candidates
        .iter()
        .map(|candidate| {
            (
                candidate.cluster.name.as_str(),
                candidate.allocatable.max(0),
            )
        })
        .collect();
    // In the order of the binding, which decides between equals when scaling down.
    let scheduled: Vec<(&str, i64)> = demand
        .previous
        .iter()
        .filter(|previous| allocatable.contains_key(previous.name.as_str()))
        .map(|previous| (previous.name.as_str(), i64::from(previous.replicas)))
        .collect();
    let own: HashMap<&str, i64> = scheduled.iter().copied().collect();
    let assigned = scheduled
        .iter()
        .map(|&(_, replicas)| replicas)
        .fold(0, i64::saturating_add);
    let free = |fresh: bool| -> Vec<(&'a str, i64)> {
        let of = |candidate: &Candidate<'a>| {
            let name = candidate.cluster.name.as_str();
            let own = if fresh {
                own.get(name).copied().unwrap_or(0)
            } else {
                0
            };
            (name, candidate.allocatable.max(0).saturating_add(own))
        };
        candidates.iter().map(of).collect()
    };
    let (context, mut weighed, target, keeps) = if demand.fresh {
        ("failed to do fresh scale: ", free(true), replicas, false)
    } else if assigned > replicas {
        ("failed to scale down: ", scheduled.clone(), replicas, false)
    } else if assigned < replicas {
        (
            "failed to scale up: ",
            free(false),
            replicas - assigned,
            true,
        )
    } else {
        shares.extend(scheduled);
        return Ok(());
    };
    let available = weighed
        .iter()
        .map(|&(_, weight)| weight)
        .fold(0, i64::saturating_add);
    if available < target {
        return Err(DivisionError::NotEnough { context, available });
    }
    if aggregated {
        let used = |name: &str| keeps && own.get(name).is_some_and(|&replicas| replicas > 0);
        weighed.sort_by_key(|&(name, weight)| (!used(name), Reverse(weight)));
        let mut covered = 0_i64;
        let enough = weighed.iter().position(|&(_, weight)| {
            covered = covered.saturating_add(weight);
            covered >= target
        });
        weighed.truncate(enough.map_or(weighed.len(), |last| last + 1));
    }
    if keeps {
        shares.extend(scheduled);
    }
    proportional(weighed, target, demand.uid, shares);
    Ok(())
}
