//! Cluster taints and the tolerations of policies.

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Taint, Toleration},
    apimachinery::pkg::apis::meta::v1::Time,
};

use crate::{condition::whole_second, stamps};

/// Adds a taint without value, unless one of that key and effect is there. Returns whether anything changed.
pub fn add(taints: &mut Vec<Taint>, key: &str, effect: &str, now: Timestamp) -> bool {
    if has(taints, key, effect) {
        return false;
    }
    taints.push(Taint {
        key: key.to_owned(),
        effect: effect.to_owned(),
        value: None,
        time_added: Some(Time(whole_second(now))),
    });
    true
}

/// Removes the taints of that key and effect. Returns whether anything changed.
pub fn remove(taints: &mut Vec<Taint>, key: &str, effect: &str) -> bool {
    let before = taints.len();
    taints.retain(|taint| !(taint.key == key && taint.effect == effect));
    taints.len() != before
}

/// Whether there is a taint of that key and effect.
pub fn has(taints: &[Taint], key: &str, effect: &str) -> bool {
    taints
        .iter()
        .any(|taint| taint.key == key && taint.effect == effect)
}

/// Whether this toleration covers this taint. An operator other than `Exists`, `Equal` or none covers nothing.
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let given = |part: &Option<String>| part.as_deref().is_some_and(|part| !part.is_empty());
    let text = |part: &'_ Option<String>| part.clone().unwrap_or_default();
    if given(&toleration.effect) && text(&toleration.effect) != taint.effect {
        return false;
    }
    if given(&toleration.key) && text(&toleration.key) != taint.key {
        return false;
    }
    match toleration.operator.as_deref().unwrap_or_default() {
        "" | "Equal" => text(&toleration.value) == text(&taint.value),
        "Exists" => true,
        _ => false,
    }
}

/// The first taint that keeps new work away: `NoSchedule` or `NoExecute`, and covered by no toleration.
pub fn first_untolerated<'a>(taints: &'a [Taint], tolerations: &[Toleration]) -> Option<&'a Taint> {
    taints.iter().find(|taint| {
        matches!(
            taint.effect.as_str(),
            stamps::NO_SCHEDULE | stamps::NO_EXECUTE
        ) && !tolerations
            .iter()
            .any(|toleration| tolerates(toleration, taint))
    })
}

/// When work leaves a cluster because of its taints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// A taint is not tolerated, or no longer.
    Now,
    /// When that much time has passed, in seconds.
    After(i64),
    /// All taints are tolerated for good, or there are none.
    Never,
}

/// What the `NoExecute` taints of a cluster mean for work with these tolerations.
///
/// Each taint uses the first toleration that covers it. Every toleration so used limits every taint that it covers and
/// that has a `timeAdded`, and the earliest limit counts.
pub fn eviction(taints: &[Taint], tolerations: &[Toleration], now: Timestamp) -> Eviction {
    let taints = taints
        .iter()
        .filter(|taint| taint.effect == stamps::NO_EXECUTE)
        .collect::<Vec<_>>();
    let mut used = Vec::new();
    for taint in &taints {
        match tolerations
            .iter()
            .find(|toleration| tolerates(toleration, taint))
        {
            Some(toleration) => used.push(toleration),
            None => return Eviction::Now,
        }
    }
    let deadline = used
        .iter()
        .filter_map(|toleration| Some((toleration, toleration.toleration_seconds?)))
        .flat_map(|(toleration, seconds)| {
            taints
                .iter()
                .filter(|taint| tolerates(toleration, taint))
                .filter_map(|taint| taint.time_added.as_ref())
                .map(move |added| added.0.as_second().saturating_add(seconds.max(0)))
        })
        .min();
    match deadline {
        None => Eviction::Never,
        Some(deadline) if deadline <= now.as_second() => Eviction::Now,
        Some(deadline) => Eviction::After(deadline - now.as_second()),
    }
}
