//! From a bootstrap token to an identity. A control plane that is away is waited for.

use std::{sync::Arc, time::Duration};

use http::{HeaderValue, Uri};
use jiff::Timestamp;

use super::{Identity, IdentityError, Store, certificates, discover, request};
use crate::{
    backoff::Backoff,
    clock,
    config::{TokenSource, Trust, check_token},
    transport::{Caller, Channel, Credentials, client_config, pinned},
    vitals::Vitals,
};

const DEADLINE: Duration = Duration::from_secs(15);
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MOST: Duration = Duration::from_secs(30);

/// What enrolment needs to know.
#[derive(Clone)]
pub struct Enrolment {
    pub servers: Vec<Uri>,
    pub cluster: String,
    pub token: Option<TokenSource>,
    pub trust: Option<Trust>,
    pub vitals: Arc<Vitals>,
}

/// What to do about a stored identity.
#[derive(Debug, PartialEq, Eq)]
enum Start {
    Use,
    Enrol,
    GiveUp(Timestamp),
}

/// The stored identity is used while it is valid and its authority is the pinned one.
fn start(
    stored: Option<&Identity>,
    pin: Option<&[u8; 32]>,
    has_token: bool,
    now: Timestamp,
) -> Start {
    let Some(stored) = stored else {
        return Start::Enrol;
    };
    let believed = pin.is_none_or(|pin| {
        certificates(&stored.authority)
            .unwrap_or_default()
            .iter()
            .any(|certificate| pinned(certificate, pin).unwrap_or(false))
    });
    if believed && stored.not_after > now {
        Start::Use
    } else if has_token || !believed {
        Start::Enrol
    } else {
        Start::GiveUp(stored.not_after)
    }
}

/// The stored identity, or a new one. Waits for a control plane or a member that is away; gives up only when what
/// the agent was told cannot work.
pub async fn obtain(enrolment: &Enrolment, store: &Store) -> Result<Identity, IdentityError> {
    let mut backoff = Backoff::new(RETRY_FIRST, RETRY_MOST);
    loop {
        match obtain_once(enrolment, store).await {
            Ok(identity) => return Ok(identity),
            Err(error) if error.is_final() => return Err(error),
            Err(error) => {
                let wait = backoff.wait();
                enrolment.vitals.no_identity(&error.to_string());
                tracing::warn!(%error, retry_in = ?wait, "not enrolled yet");
                tokio::time::sleep(wait).await;
            }
        }
    }
}

async fn obtain_once(enrolment: &Enrolment, store: &Store) -> Result<Identity, IdentityError> {
    let stored = match store.load(&enrolment.cluster).await {
        Err(IdentityError::Malformed(why)) => {
            tracing::warn!(
                error = why,
                "the stored identity is damaged; enrolling again"
            );
            None
        }
        stored => stored?,
    };
    let pin = match &enrolment.trust {
        Some(Trust::Pin(pin)) => Some(pin),
        _ => None,
    };
    let begin = start(
        stored.as_ref(),
        pin,
        enrolment.token.is_some(),
        clock::now(),
    );
    match (begin, stored) {
        (Start::Use, Some(identity)) => Ok(identity),
        (Start::GiveUp(expiry), _) => Err(IdentityError::Expired(expiry)),
        _ => {
            let identity = enrolment.enrol().await?;
            store.save(&identity).await?;
            tracing::info!(cluster = enrolment.cluster, until = %identity.not_after, "enrolled");
            Ok(identity)
        }
    }
}

impl Enrolment {
    /// Turns the bootstrap token into an identity, once.
    pub async fn enrol(&self) -> Result<Identity, IdentityError> {
        let token = self.token().await?;
        let authority = match &self.trust {
            Some(Trust::Pin(pin)) => discover::authority(&self.servers, pin, &self.vitals).await?,
            Some(Trust::CaFile(path)) => tokio::fs::read_to_string(path)
                .await
                .map_err(|error| IdentityError::CaFile(path.clone(), error.to_string()))?,
            None => return Err(IdentityError::NoTrust),
        };
        let mut bearer = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| IdentityError::NoToken)?;
        bearer.set_sensitive(true);
        let credentials = Credentials {
            tls: client_config(&certificates(&authority)?, None)?,
            bearer: Some(bearer),
        };
        let channel = Channel::new(self.servers.clone(), credentials, Arc::clone(&self.vitals));
        let caller = Caller::new(channel.client(), DEADLINE);
        let client = request::certificate(&caller, &self.cluster).await?;
        Identity::new(authority, client, &self.cluster)
    }

    async fn token(&self) -> Result<String, IdentityError> {
        match &self.token {
            None => Err(IdentityError::NoToken),
            Some(TokenSource::Literal(token)) => Ok(token.clone()),
            Some(TokenSource::File(path)) => {
                let failed = |why: String| IdentityError::TokenFile(path.clone(), why);
                let text = tokio::fs::read_to_string(path)
                    .await
                    .map_err(|error| failed(error.to_string()))?;
                let token = text.trim();
                check_token(token).map_err(|_| failed("holds no bootstrap token".to_owned()))?;
                Ok(token.to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_about_a_stored_identity() {
        let identity = super::super::tests::identity("m1", 100, 200).unwrap();
        let stored = Some(&identity);
        let at = |second| Timestamp::from_second(second).unwrap();
        let foreign = Some(&[0_u8; 32]);
        for (name, stored, pin, token, now, expected) in [
            ("first start", None, None, true, 150, Start::Enrol),
            ("restart", stored, None, false, 150, Start::Use),
            (
                "expired, token there",
                stored,
                None,
                true,
                200,
                Start::Enrol,
            ),
            (
                "expired, no token",
                stored,
                None,
                false,
                200,
                Start::GiveUp(at(200)),
            ),
            (
                "another control plane",
                stored,
                foreign,
                true,
                150,
                Start::Enrol,
            ),
        ] {
            assert_eq!(start(stored, pin, token, at(now)), expected, "{name}");
        }
    }
}
