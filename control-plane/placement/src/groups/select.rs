//! All constraints of a placement together.

use std::collections::BTreeMap;

use evenkeel_shared::placement::{SpreadConstraint, SpreadField};

use super::{
    choose::{Group, choose},
    clusters,
    order::{Candidate, Limits, Need, sort},
};
use crate::fleet::ClusterView;

/// Why the constraints cannot be kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// There are fewer clusters than `minGroups` of the constraint on clusters.
    #[error("{found} clusters fit, and the policy wants at least {wanted}")]
    TooFewClusters {
        /// Candidates that there are.
        found: usize,
        /// `minGroups`.
        wanted: usize,
    },
    /// There are fewer groups than `minGroups`.
    #[error(
        "the clusters that fit lie in {found} groups by {by}, and the policy wants at least {wanted}"
    )]
    TooFewGroups {
        /// What is grouped by.
        by: String,
        /// Groups that there are.
        found: usize,
        /// `minGroups`.
        wanted: usize,
    },
    /// No allowed number of groups holds as many clusters as are wanted.
    #[error("no {max} groups by {by} hold the {clusters} clusters that the policy wants at least")]
    GroupsTooSmall {
        /// What is grouped by.
        by: String,
        /// `maxGroups`.
        max: usize,
        /// `minGroups` of the constraint on clusters.
        clusters: usize,
    },
    /// As many clusters as are allowed have too little room.
    #[error(
        "{clusters} clusters, as many as the policy allows, have room for {room} of {replicas} replicas"
    )]
    TooLittleRoom {
        /// Clusters that were looked at together.
        clusters: usize,
        /// Their room.
        room: i64,
        /// What is wanted.
        replicas: i64,
    },
}

/// What a constraint groups by.
#[derive(Clone, Debug, PartialEq, Eq)]
enum By<'a> {
    Region,
    Zone,
    Provider,
    Label(&'a str),
}

impl By<'_> {
    /// The group of a cluster; `None` when it lies in none, and so cannot be chosen. A cluster in several zones is in a
    /// group of its own with those that lie in the same ones.
    fn of(&self, cluster: &ClusterView) -> Option<String> {
        let given = |value: &str| (!value.is_empty()).then(|| value.to_owned());
        match self {
            Self::Region => given(&cluster.region),
            Self::Provider => given(&cluster.provider),
            Self::Zone => given(&cluster.zones.join(",")),
            Self::Label(key) => cluster.labels.get(*key).cloned(),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Region => "region".into(),
            Self::Zone => "zone".into(),
            Self::Provider => "provider".into(),
            Self::Label(key) => format!("label {key}"),
        }
    }
}

/// What a policy asks of the groups.
#[derive(Clone, Debug, Default)]
struct Wanted<'a> {
    clusters: Limits,
    groups: Vec<(By<'a>, Limits)>,
}

impl<'a> Wanted<'a> {
    fn new(constraints: &'a [SpreadConstraint]) -> Self {
        let mut wanted = Self::default();
        for constraint in constraints {
            let number = |given: Option<i64>| {
                given
                    .and_then(|given| usize::try_from(given).ok())
                    .filter(|&given| given > 0)
            };
            let limits = Limits {
                min: number(constraint.min_groups).unwrap_or(1),
                max: number(constraint.max_groups).unwrap_or(usize::MAX),
            };
            let by = match constraint.spread_by_field {
                _ if !constraint.spread_by_label.is_empty() => {
                    By::Label(&constraint.spread_by_label)
                }
                Some(SpreadField::Region) => By::Region,
                Some(SpreadField::Zone) => By::Zone,
                Some(SpreadField::Provider) => By::Provider,
                _ => {
                    wanted.clusters = limits;
                    continue;
                }
            };
            wanted.groups.push((by, limits));
        }
        wanted
    }
}

/// Chooses clusters so that all constraints are kept, the preferred first.
///
/// One grouping is solved exactly. With several, the first (region before zone, provider and labels) is, and of the
/// others the limits are kept by leaving out clusters that would exceed them; a choice that they leave too small is an
/// error, never a broken constraint.
pub fn select<'a>(
    candidates: &[Candidate<'a>],
    constraints: &[SpreadConstraint],
    need: Need,
) -> Result<Vec<Candidate<'a>>, SelectError> {
    let mut sorted = candidates.to_vec();
    sort(&mut sorted);
    if constraints.is_empty() {
        return Ok(sorted);
    }
    let mut wanted = Wanted::new(constraints);
    wanted.groups.sort_by_key(|(by, _)| *by != By::Region);
    sorted.retain(|candidate| {
        wanted
            .groups
            .iter()
            .all(|(by, _)| by.of(candidate.cluster).is_some())
    });
    match wanted.groups.as_slice() {
        [] => clusters::choose(&sorted, wanted.clusters, need),
        [(by, limits), others @ ..] => {
            let chosen = by_group(&sorted, (by, *limits), wanted.clusters, need, others)?;
            check(&chosen, wanted.clusters, &wanted.groups)?;
            Ok(chosen)
        }
    }
}

fn by_group<'a>(
    sorted: &[Candidate<'a>],
    (by, limits): (&By<'_>, Limits),
    clusters: Limits,
    need: Need,
    others: &[(By<'_>, Limits)],
) -> Result<Vec<Candidate<'a>>, SelectError> {
    let mut members: BTreeMap<String, Vec<Candidate<'a>>> = BTreeMap::new();
    for candidate in sorted {
        if let Some(group) = by.of(candidate.cluster) {
            members.entry(group).or_default().push(*candidate);
        }
    }
    if members.len() < limits.min {
        return Err(SelectError::TooFewGroups {
            by: by.text(),
            found: members.len(),
            wanted: limits.min,
        });
    }
    let weigh = |members: &[Candidate<'_>]| match need {
        Need::Shares(replicas) => divided_weight(members, replicas, limits, clusters),
        Need::Copies(replicas) => duplicated_weight(members, replicas),
    };
    let groups: Vec<Group<'_>> = members
        .iter()
        .map(|(name, members)| Group {
            name,
            size: members.len(),
            weight: weigh(members),
        })
        .collect();
    // More groups than clusters are allowed would take more clusters than are allowed.
    let limits = Limits {
        min: limits.min,
        max: limits.max.min(clusters.max),
    };
    let set = choose(&groups, limits, clusters.min).ok_or(SelectError::GroupsTooSmall {
        by: by.text(),
        max: limits.max.min(groups.len()),
        clusters: clusters.min,
    })?;
    let mut rest = Vec::new();
    let mut chosen = Vec::new();
    for at in set {
        let members = &members[groups[at].name];
        chosen.push(members[0]);
        rest.extend_from_slice(&members[1..]);
    }
    sort(&mut rest);
    for candidate in rest {
        if chosen.len() >= clusters.max {
            break;
        }
        if others
            .iter()
            .all(|(by, limits)| fits(&chosen, &candidate, by, *limits))
        {
            chosen.push(candidate);
        }
    }
    Ok(chosen)
}

/// Whether one more cluster keeps the number of groups within the limit.
fn fits(chosen: &[Candidate<'_>], more: &Candidate<'_>, by: &By<'_>, limits: Limits) -> bool {
    let mut groups: Vec<_> = chosen
        .iter()
        .chain([more])
        .map(|one| by.of(one.cluster))
        .collect();
    groups.sort();
    groups.dedup();
    groups.len() <= limits.max
}

/// What must hold of every choice.
fn check(
    chosen: &[Candidate<'_>],
    clusters: Limits,
    groups: &[(By<'_>, Limits)],
) -> Result<(), SelectError> {
    if chosen.len() < clusters.min {
        return Err(SelectError::TooFewClusters {
            found: chosen.len(),
            wanted: clusters.min,
        });
    }
    for (by, limits) in groups {
        let mut found: Vec<_> = chosen.iter().map(|one| by.of(one.cluster)).collect();
        found.sort();
        found.dedup();
        if found.len() < limits.min {
            let (by, found, wanted) = (by.text(), found.len(), limits.min);
            return Err(SelectError::TooFewGroups { by, found, wanted });
        }
        if found.len() > limits.max {
            let (by, max, clusters) = (by.text(), limits.max, clusters.min);
            return Err(SelectError::GroupsTooSmall { by, max, clusters });
        }
    }
    Ok(())
}

/// Of how much a full count of clusters or replicas outweighs their scores.
const UNIT: i64 = 1000;

/// Each cluster gets all replicas: groups with more clusters that can hold them weigh more.
fn duplicated_weight(members: &[Candidate<'_>], replicas: i64) -> i64 {
    let valid: Vec<i64> = members
        .iter()
        .filter(|member| member.available >= replicas)
        .map(|member| member.score)
        .collect();
    let count = i64::try_from(valid.len()).unwrap_or(i64::MAX);
    if count == 0 {
        0
    } else {
        count.saturating_mul(UNIT) + valid.iter().sum::<i64>() / count
    }
}

/// Replicas are divided: a group weighs what it can hold of its share, and the scores of the clusters that hold it.
fn divided_weight(
    members: &[Candidate<'_>],
    replicas: i64,
    groups: Limits,
    clusters: Limits,
) -> i64 {
    let shares = i64::try_from(groups.min).unwrap_or(i64::MAX);
    let target = replicas / shares + i64::from(replicas % shares != 0);
    let enough = clusters.min.max(groups.min);
    let (mut room, mut score, mut count) = (0_i64, 0_i64, 0_usize);
    for member in members {
        room = room.saturating_add(member.available);
        score = score.saturating_add(member.score);
        count += 1;
        if count >= enough && room >= target {
            break;
        }
    }
    let count = i64::try_from(count).unwrap_or(i64::MAX).max(1);
    room.min(target)
        .saturating_mul(UNIT)
        .saturating_add(score / count)
}
