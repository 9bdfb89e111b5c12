//! Tokens that are given at start: for tests and simulated members.

use std::fmt;

use super::{Authenticator, BadCredential, Credentials, UserInfo, token::SecretText};

/// A list of bearer tokens and whose they are.
#[derive(Default)]
pub struct StaticTokens(Vec<(SecretText, UserInfo)>);

impl StaticTokens {
    pub fn new(tokens: impl IntoIterator<Item = (String, UserInfo)>) -> Self {
        Self(
            tokens
                .into_iter()
                .map(|(token, user)| (SecretText::new(token), user))
                .collect(),
        )
    }

    /// One token, for a member of `system:masters`.
    pub fn master(token: impl Into<String>) -> Self {
        Self::new([(
            token.into(),
            UserInfo {
                name: "admin".into(),
                groups: vec![super::MASTERS.into()],
                ..UserInfo::default()
            },
        )])
    }
}

impl fmt::Debug for StaticTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|(_, user)| &user.name))
            .finish()
    }
}

impl Authenticator for StaticTokens {
    fn authenticate(
        &self,
        credentials: &Credentials<'_>,
    ) -> Result<Option<UserInfo>, BadCredential> {
        let Some(bearer) = credentials.bearer else {
            return Ok(None);
        };
        Ok(self
            .0
            .iter()
            .find(|(token, _)| token.matches(bearer))
            .map(|(_, user)| user.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_token_is_its_user_and_no_token_is_shown() {
        let tokens = StaticTokens::master("t0p");
        let ask = |bearer| {
            tokens
                .authenticate(&Credentials {
                    certificate: None,
                    bearer,
                })
                .unwrap()
        };
        assert_eq!(ask(Some("t0p")).map(|user| user.name), Some("admin".into()));
        assert_eq!(ask(Some("t0p2")), None);
        assert_eq!(ask(None), None);
        assert_eq!(format!("{tokens:?}"), r#"["admin"]"#);
    }
}
