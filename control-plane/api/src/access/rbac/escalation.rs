//! Nobody gives what they do not have: which of the rules of a new role or binding its writer lacks.

use std::collections::{BTreeSet, HashMap};

use super::rule::{PolicyRule, quoted};
use crate::access::UserInfo;

/// Rules are broken down into single rights before they are compared; no sensible role has more of them.
const MAX_RIGHTS: usize = 100_000;

/// Whether `owned` covers all of `wanted`; what is missing, in the reference server's words, where not.
pub fn check(user: &UserInfo, owned: &[PolicyRule], wanted: &[PolicyRule]) -> Result<(), String> {
    let total: usize = wanted.iter().map(rights).fold(0, usize::saturating_add);
    if total > MAX_RIGHTS {
        return Err(format!(
            "the rules name {total} single rights, of which {MAX_RIGHTS} at most can be compared with the writer's own"
        ));
    }
    let mut missing = Vec::new();
    for rule in wanted {
        break_down(rule, &mut |right| {
            if !owned.iter().any(|rule| rule.covers(&right)) {
                missing.push(right);
            }
        });
    }
    if missing.is_empty() {
        return Ok(());
    }
    let lines: BTreeSet<_> = compact(missing).iter().map(PolicyRule::describe).collect();
    Err(format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        quoted(&user.groups),
        lines.into_iter().collect::<Vec<_>>().join("\n")
    ))
}

fn rights(rule: &PolicyRule) -> usize {
    let resources = rule
        .verbs
        .len()
        .saturating_mul(rule.api_groups.len())
        .saturating_mul(rule.resources.len())
        .saturating_mul(rule.resource_names.len().max(1));
    resources.saturating_add(
        rule.verbs
            .len()
            .saturating_mul(rule.non_resource_urls.len()),
    )
}

fn break_down(rule: &PolicyRule, each: &mut impl FnMut(PolicyRule)) {
    let one = |item: &String| vec![item.clone()];
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                let right = PolicyRule {
                    verbs: one(verb),
                    api_groups: one(group),
                    resources: one(resource),
                    ..PolicyRule::default()
                };
                if rule.resource_names.is_empty() {
                    each(right);
                } else {
                    for name in &rule.resource_names {
                        each(PolicyRule {
                            resource_names: one(name),
                            ..right.clone()
                        });
                    }
                }
            }
        }
    }
    for path in &rule.non_resource_urls {
        for verb in &rule.verbs {
            each(PolicyRule {
                verbs: one(verb),
                non_resource_urls: one(path),
                ..PolicyRule::default()
            });
        }
    }
}

/// Puts the verbs on one resource (and one name) into one rule.
fn compact(rights: Vec<PolicyRule>) -> Vec<PolicyRule> {
    let mut rules: Vec<PolicyRule> = Vec::new();
    let mut places: HashMap<_, usize> = HashMap::new();
    for right in rights {
        if right.resources.is_empty() {
            rules.push(right);
            continue;
        }
        let key = (
            right.api_groups.clone(),
            right.resources.clone(),
            right.resource_names.clone(),
        );
        if let Some(&place) = places.get(&key) {
            let verbs: &mut Vec<String> = &mut rules[place].verbs;
            if !verbs.contains(&right.verbs[0]) {
                verbs.extend(right.verbs);
            }
        } else {
            places.insert(key, rules.len());
            rules.push(right);
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(verbs: &[&str], groups: &[&str], resources: &[&str], names: &[&str]) -> PolicyRule {
        let list = |items: &[&str]| items.iter().map(|&item| item.to_owned()).collect();
        PolicyRule {
            verbs: list(verbs),
            api_groups: list(groups),
            resources: list(resources),
            resource_names: list(names),
            non_resource_urls: Vec::new(),
        }
    }

    fn paths(verbs: &[&str], urls: &[&str]) -> PolicyRule {
        PolicyRule {
            non_resource_urls: urls.iter().map(|&url| url.to_owned()).collect(),
            ..rule(verbs, &[], &[], &[])
        }
    }

    #[test]
    fn what_is_covered() {
        let cases = [
            (
                vec![rule(&["*"], &["*"], &["*"], &[])],
                vec![rule(
                    &["get", "x"],
                    &["", "a"],
                    &["pods", "pods/log"],
                    &["n"],
                )],
                true,
            ),
            (
                vec![rule(&["get"], &[""], &["pods"], &[])],
                vec![rule(&["get"], &[""], &["pods"], &["n"])],
                true,
            ),
            (
                vec![rule(&["get"], &[""], &["pods"], &["n"])],
                vec![rule(&["get"], &[""], &["pods"], &[])],
                false,
            ),
            (
                vec![rule(&["get"], &[""], &["pods"], &["n", "m"])],
                vec![rule(&["get"], &[""], &["pods"], &["n"])],
                true,
            ),
            (
                vec![
                    rule(&["get"], &[""], &["pods"], &[]),
                    rule(&["list"], &[""], &["pods"], &[]),
                ],
                vec![rule(&["get", "list"], &[""], &["pods"], &[])],
                true,
            ),
            (
                vec![rule(&["get"], &[""], &["pods"], &[])],
                vec![rule(&["*"], &[""], &["pods"], &[])],
                false,
            ),
            (
                vec![rule(&["get"], &["*"], &["*/scale"], &[])],
                vec![rule(&["get"], &["apps"], &["deployments/scale"], &[])],
                true,
            ),
            (
                vec![rule(&["get"], &["*"], &["*/scale"], &[])],
                vec![rule(&["get"], &["apps"], &["deployments"], &[])],
                false,
            ),
            (
                vec![paths(&["get"], &["/api/*"])],
                vec![paths(&["get"], &["/api/v1", "/api/*"])],
                true,
            ),
            (
                vec![paths(&["get"], &["/api/*"])],
                vec![paths(&["get"], &["/ap*"])],
                false,
            ),
            (
                vec![rule(&["*"], &["*"], &["*"], &[])],
                vec![paths(&["get"], &["/x"])],
                false,
            ),
            (vec![], vec![], true),
        ];
        for (owned, wanted, expected) in cases {
            let outcome = check(&UserInfo::default(), &owned, &wanted);
            assert_eq!(
                outcome.is_ok(),
                expected,
                "{owned:?} {wanted:?} {outcome:?}"
            );
        }
    }

    #[test]
    fn the_text_lists_what_is_missing() {
        let user = UserInfo {
            name: "dave".into(),
            groups: vec!["devs".into(), "system:authenticated".into()],
            ..UserInfo::default()
        };
        let owned = [rule(&["list"], &[""], &["secrets"], &[])];
        let wanted = [
            rule(&["get", "list", "watch"], &[""], &["secrets"], &[]),
            rule(&["get"], &["apps"], &["deployments"], &["a"]),
            paths(&["get"], &["/metrics"]),
        ];
        assert_eq!(
            check(&user, &owned, &wanted).unwrap_err(),
            "user \"dave\" (groups=[\"devs\" \"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n\
             {APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\" \"watch\"]}\n\
             {APIGroups:[\"apps\"], Resources:[\"deployments\"], ResourceNames:[\"a\"], Verbs:[\"get\"]}\n\
             {NonResourceURLs:[\"/metrics\"], Verbs:[\"get\"]}"
        );
    }

    #[test]
    fn a_role_with_a_flood_of_rights_is_refused_before_it_is_compared() {
        let many: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
        let flood = PolicyRule {
            verbs: many.clone(),
            api_groups: many.clone(),
            resources: many.clone(),
            resource_names: many,
            non_resource_urls: Vec::new(),
        };
        let error = check(&UserInfo::default(), &[], &vec![flood; 3]).unwrap_err();
        assert!(
            error.starts_with("the rules name 3000000000000 single rights"),
            "{error}"
        );
    }
}
