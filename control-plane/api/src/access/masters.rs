//! The group that may do everything.

use super::{
    Attributes, Authorizer, Decision, MASTERS, Rules, UserInfo,
    rbac::{PolicyRule, rule::ALL},
};

/// Allows whatever a member of `system:masters` asks, and has no opinion on anybody else. Comes first in a chain, so
/// that no broken rule locks an operator out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Masters;

impl Authorizer for Masters {
    fn authorize(&self, user: &UserInfo, _attributes: &Attributes) -> Decision {
        if user.is_in(MASTERS) {
            Decision::Allow
        } else {
            Decision::NoOpinion
        }
    }

    fn rules(&self, user: &UserInfo, _namespace: &str) -> Rules {
        let rules = if user.is_in(MASTERS) {
            everything().into()
        } else {
            Vec::new()
        };
        Rules {
            rules,
            incomplete: None,
        }
    }
}

/// The rules that give all resources and all paths.
pub fn everything() -> [PolicyRule; 2] {
    let all = || vec![ALL.to_owned()];
    [
        PolicyRule {
            verbs: all(),
            api_groups: all(),
            resources: all(),
            ..PolicyRule::default()
        },
        PolicyRule {
            verbs: all(),
            non_resource_urls: all(),
            ..PolicyRule::default()
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masters_may_all_and_the_name_alone_gives_nothing() {
        for (name, group, expected) in [
            ("anyone", "system:masters", Decision::Allow),
            ("system:masters", "devs", Decision::NoOpinion),
            ("anyone", "system:masters2", Decision::NoOpinion),
        ] {
            let user = UserInfo {
                name: name.into(),
                groups: vec![group.into()],
                ..UserInfo::default()
            };
            assert_eq!(
                Masters.authorize(&user, &Attributes::default()),
                expected,
                "{name} in {group}"
            );
        }
    }
}
