//! A plan with its reasons, place by place and domain by domain: for programs as JSON, for people as tables.

mod table;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{
    axis::{Axes, Axis},
    constraint::{DO_NOT_SCHEDULE, SCHEDULE_ANYWAY},
    filter::{Filter, Verdict},
    places::Exclusion,
    plan::{Plan, Wish},
};

/// What is known of the places beside what decides.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts<'a> {
    /// Names, by place.
    pub names: &'a [&'a str],
    /// By place: it has no nodes yet. May be left empty.
    pub empty: &'a [bool],
    /// By topology key: values that are known to be possible, though no place has them yet.
    pub known: Option<&'a BTreeMap<String, BTreeSet<String>>>,
}

/// Everything that there is to say of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// How many replicas there are to be.
    pub replicas: u64,
    /// For how many of them there is no place.
    pub unplaced: u64,
    /// In the order of their names.
    pub places: Vec<PlaceReport>,
    /// The hard ones first, in the order of the constraints.
    pub constraints: Vec<ConstraintReport>,
}

/// One place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlaceReport {
    /// Its name.
    pub name: String,
    /// Replicas that it is to hold.
    pub replicas: u64,
    /// Replicas that it holds.
    pub previous: u64,
    /// Replicas that it could hold; `None`: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// Whether it would take one more, and why not.
    #[serde(flatten)]
    pub answer: Answer,
    /// The same in words.
    pub reason: String,
}

/// Whether a place would take one more replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all_fields = "camelCase")]
pub enum Answer {
    /// It would.
    Open,
    /// It holds all that it can.
    Full,
    /// The affinity of the pod leaves it out.
    NotAccepted,
    /// The pod does not tolerate a taint.
    Tainted {
        /// `key=value:effect`.
        taint: String,
    },
    /// It lacks the label of a hard constraint.
    MissingKey {
        /// The label.
        topology_key: String,
    },
    /// A hard constraint would be broken.
    Skewed {
        /// The label of the constraint.
        topology_key: String,
        /// The domain of the place.
        domain: String,
        /// Pods in the domain.
        count: i64,
        /// What skew is measured from.
        minimum: i64,
        /// What the skew would be.
        skew: i64,
        /// What it may be.
        max_skew: i64,
    },
}

/// One constraint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConstraintReport {
    /// The label whose values are the domains.
    pub topology_key: String,
    /// `DoNotSchedule` or `ScheduleAnyway`.
    pub when_unsatisfiable: &'static str,
    /// What the skew may be.
    pub max_skew: i64,
    /// How many domains there must be for the minimum to count.
    pub min_domains: i64,
    /// Domains that count.
    pub counted_domains: usize,
    /// What skew is measured from.
    pub minimum: i64,
    /// How far the fullest domain lies above that.
    pub skew: i64,
    /// By value.
    pub domains: Vec<DomainReport>,
}

/// One domain of a constraint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DomainReport {
    /// The value of the label.
    pub value: String,
    /// Pods that the constraint counts, those planned included.
    pub count: i64,
    /// Replicas of the plan.
    pub replicas: u64,
    /// Places in it.
    pub places: usize,
    /// Whether it counts for the minimum.
    pub counted: bool,
    /// It is known, and has no nodes yet.
    pub empty: bool,
}

/// Explains a plan.
pub fn explain(wish: Wish<'_>, plan: &Plan, facts: Facts<'_>) -> Explanation {
    let filter = Filter::beside(wish.axes, &plan.replicas);
    let places = wish
        .order
        .iter()
        .map(|&place| place as usize)
        .map(|place| {
            let answer = answer(wish, plan, &filter, place);
            let limit = wish.capacity[place];
            PlaceReport {
                name: facts
                    .names
                    .get(place)
                    .copied()
                    .unwrap_or_default()
                    .to_owned(),
                replicas: plan.replicas[place],
                previous: wish.previous[place],
                capacity: (limit != u64::MAX).then_some(limit),
                reason: answer.to_string(),
                answer,
            }
        })
        .collect();
    Explanation {
        replicas: wish.replicas,
        unplaced: plan.unplaced,
        places,
        constraints: wish
            .axes
            .all()
            .map(|axis| constraint(wish.axes, axis, plan, facts))
            .collect(),
    }
}

fn answer(wish: Wish<'_>, plan: &Plan, filter: &Filter<'_>, place: usize) -> Answer {
    match &wish.exclusions[place] {
        Some(Exclusion::Affinity) => return Answer::NotAccepted,
        Some(Exclusion::Taint(taint)) => {
            return Answer::Tainted {
                taint: taint.clone(),
            };
        }
        None => {}
    }
    match filter.verdict(place) {
        Verdict::UnschedulableAndUnresolvable { axis } => Answer::MissingKey {
            topology_key: wish.axes.hard[axis].constraint.topology_key.clone(),
        },
        _ if plan.replicas[place] >= wish.capacity[place] => Answer::Full,
        Verdict::Success => Answer::Open,
        Verdict::Unschedulable(refusal) => {
            let axis = &wish.axes.hard[refusal.axis];
            let domain = axis.domains()[place].map(|domain| axis.values()[domain as usize].clone());
            Answer::Skewed {
                topology_key: axis.constraint.topology_key.clone(),
                domain: domain.unwrap_or_default(),
                count: refusal.count,
                minimum: refusal.minimum,
                skew: refusal.skew,
                max_skew: axis.constraint.max_skew,
            }
        }
    }
}

fn constraint(axes: &Axes, axis: &Axis, plan: &Plan, facts: Facts<'_>) -> ConstraintReport {
    let constraint = &axis.constraint;
    let mut domains: Vec<DomainReport> = axis
        .values()
        .iter()
        .map(|value| DomainReport {
            value: value.clone(),
            count: 0,
            replicas: 0,
            places: 0,
            counted: false,
            empty: true,
        })
        .collect();
    let kind = if constraint.hard {
        &axes.hard
    } else {
        &axes.soft
    };
    let needs_all = constraint.hard || axes.need_all_keys;
    for (place, domain) in axis.domains().iter().enumerate() {
        let Some(domain) = domain else { continue };
        let report = &mut domains[*domain as usize];
        let replicas = plan.replicas[place];
        report.replicas += replicas;
        report.places += 1;
        report.empty &= facts.empty.get(place).copied().unwrap_or(false);
        let whole = !needs_all || kind.iter().all(|axis| axis.domains()[place].is_some());
        if whole && axis.takes_part[place] {
            report.counted = true;
            let copies = if axis.counts_copies { replicas } else { 0 };
            let copies = i64::try_from(copies).unwrap_or(i64::MAX);
            report.count = report
                .count
                .saturating_add(copies.saturating_add(i64::from(axis.pods[place])));
        }
    }
    let counted = || domains.iter().filter(|domain| domain.counted);
    let counted_domains = counted().count();
    let enough = i64::try_from(counted_domains).is_ok_and(|count| count >= constraint.min_domains);
    let minimum = counted()
        .map(|domain| domain.count)
        .min()
        .filter(|_| enough || !constraint.hard)
        .unwrap_or(0);
    let skew = counted()
        .map(|domain| domain.count - minimum)
        .max()
        .unwrap_or(0);
    let known = facts
        .known
        .and_then(|known| known.get(&constraint.topology_key));
    for value in known.into_iter().flatten() {
        if !axis.values().contains(value) {
            domains.push(DomainReport {
                value: value.clone(),
                count: 0,
                replicas: 0,
                places: 0,
                counted: false,
                empty: true,
            });
        }
    }
    domains.sort_by(|a, b| a.value.cmp(&b.value));
    ConstraintReport {
        topology_key: constraint.topology_key.clone(),
        when_unsatisfiable: if constraint.hard {
            DO_NOT_SCHEDULE
        } else {
            SCHEDULE_ANYWAY
        },
        max_skew: constraint.max_skew,
        min_domains: constraint.min_domains,
        counted_domains,
        minimum,
        skew,
        domains,
    }
}
