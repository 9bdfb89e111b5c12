//! Several authenticators and authorizers in a row.

use std::sync::Arc;

use super::{
    ANONYMOUS, AUTHENTICATED, Attributes, Authenticator, Authorizer, BadCredential, Credentials,
    Decision, UNAUTHENTICATED, UserInfo,
};

/// Asks one authenticator after the other; the first that knows the credentials decides. Nobody's credentials are
/// anonymous, save a bearer token that nobody knows: that is a bad credential, as the reference server has it. The
/// groups `system:authenticated` and `system:unauthenticated` are added here.
pub fn authenticate(
    chain: &[Arc<dyn Authenticator>],
    credentials: &Credentials<'_>,
) -> Result<UserInfo, BadCredential> {
    for authenticator in chain {
        if let Some(mut user) = authenticator.authenticate(credentials)? {
            if user.name != ANONYMOUS && !user.is_in(AUTHENTICATED) {
                user.groups.push(AUTHENTICATED.into());
            }
            return Ok(user);
        }
    }
    if credentials.bearer.is_some() {
        return Err(BadCredential(
            "no authenticator knows this bearer token".into(),
        ));
    }
    Ok(UserInfo {
        name: ANONYMOUS.into(),
        groups: vec![UNAUTHENTICATED.into()],
        ..UserInfo::default()
    })
}

/// What a chain of authorizers came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub allowed: bool,
    /// Nobody allowed it, and somebody denied it outright.
    pub denied: bool,
    /// Why, where the deciding authorizer says so; shown to the client.
    pub reason: String,
}

/// Asks one authorizer after the other; the first that allows or denies decides.
pub fn authorize(
    chain: &[Arc<dyn Authorizer>],
    user: &UserInfo,
    attributes: &Attributes,
) -> Verdict {
    for authorizer in chain {
        match authorizer.authorize(user, attributes) {
            Decision::Allow => {
                return Verdict {
                    allowed: true,
                    denied: false,
                    reason: String::new(),
                };
            }
            Decision::Deny(reason) => {
                return Verdict {
                    allowed: false,
                    denied: true,
                    reason,
                };
            }
            Decision::NoOpinion => {}
        }
    }
    Verdict {
        allowed: false,
        denied: false,
        reason: String::new(),
    }
}

/// The same, and why it is allowed. For access reviews; requests do not pay for the words.
pub fn review(chain: &[Arc<dyn Authorizer>], user: &UserInfo, attributes: &Attributes) -> Verdict {
    let mut verdict = authorize(chain, user, attributes);
    if verdict.allowed
        && let Some(authorizer) = chain
            .iter()
            .find(|authorizer| authorizer.authorize(user, attributes) == Decision::Allow)
    {
        verdict.reason = authorizer.why_allowed(user, attributes);
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::statictoken::StaticTokens;

    struct Says(Decision);
    impl Authorizer for Says {
        fn authorize(&self, _: &UserInfo, _: &Attributes) -> Decision {
            self.0.clone()
        }
    }

    #[test]
    fn the_first_that_decides_wins() {
        let allow = || Arc::new(Says(Decision::Allow)) as Arc<dyn Authorizer>;
        let deny = || Arc::new(Says(Decision::Deny("never".into()))) as Arc<dyn Authorizer>;
        let none = || Arc::new(Says(Decision::NoOpinion)) as Arc<dyn Authorizer>;
        for (chain, allowed, denied, reason) in [
            (vec![], false, false, ""),
            (vec![none()], false, false, ""),
            (vec![none(), allow(), deny()], true, false, ""),
            (vec![deny(), allow()], false, true, "never"),
        ] {
            let verdict = authorize(&chain, &UserInfo::default(), &Attributes::default());
            assert_eq!(
                (verdict.allowed, verdict.denied, verdict.reason.as_str()),
                (allowed, denied, reason)
            );
        }
    }

    #[test]
    fn nobody_is_anonymous_and_an_unknown_bearer_is_refused() {
        let tokens = StaticTokens::new([(
            "secret".to_owned(),
            UserInfo {
                name: "alice".into(),
                ..UserInfo::default()
            },
        )]);
        let chain: Vec<Arc<dyn Authenticator>> = vec![Arc::new(tokens)];
        let ask = |bearer| {
            authenticate(
                &chain,
                &Credentials {
                    certificate: None,
                    bearer,
                },
            )
        };
        let alice = ask(Some("secret")).unwrap();
        assert_eq!(
            (alice.name.as_str(), alice.groups),
            ("alice", vec![AUTHENTICATED.to_owned()])
        );
        let nobody = ask(None).unwrap();
        assert_eq!(
            (nobody.name.as_str(), nobody.groups),
            (ANONYMOUS, vec![UNAUTHENTICATED.to_owned()])
        );
        assert!(ask(Some("guess")).is_err());
        assert!(ask(Some("")).is_err());
    }
}
