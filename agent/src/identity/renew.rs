//! A new certificate in good time, taken into use without dropping what is under way.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{Enrolment, Identity, IdentityError, Store, request};
use crate::{
    backoff::Backoff,
    clock, metrics,
    transport::{Caller, Channel},
};

const DEADLINE: Duration = Duration::from_secs(15);
const RETRY_FIRST: Duration = Duration::from_secs(5);
const RETRY_MOST: Duration = Duration::from_mins(5);
/// The wall clock may be set while we sleep.
const LONGEST_SLEEP: Duration = Duration::from_hours(1);

/// When to ask for the next certificate: after two thirds of the lifetime and, for `spread` in 0..=1, up to a
/// twentieth of it more, so that a fleet that was enrolled at once does not renew at once.
fn renewal_due(not_before: Timestamp, not_after: Timestamp, spread: f64) -> Timestamp {
    let lifetime = not_after.duration_since(not_before).as_secs_f64().max(0.0);
    let wait = lifetime * (2.0 / 3.0 + spread.clamp(0.0, 1.0) / 20.0);
    SignedDuration::try_from_secs_f64(wait)
        .ok()
        .and_then(|wait| not_before.checked_add(wait).ok())
        .unwrap_or(not_after)
}

/// Renews for ever. Ends only with the task.
pub async fn keep_fresh(
    mut identity: Identity,
    enrolment: Enrolment,
    store: Store,
    channel: Channel,
) {
    let caller = Caller::new(channel.client(), DEADLINE);
    let mut backoff = Backoff::new(RETRY_FIRST, RETRY_MOST);
    loop {
        let due = renewal_due(identity.not_before, identity.not_after, rand::random());
        wait_until(due).await;
        let renewals = &enrolment.vitals.metrics.certificate_renewals;
        match renewed(&identity, &enrolment, &caller).await {
            Ok(next) => {
                match next.credentials() {
                    Ok(credentials) => channel.exchange(credentials),
                    Err(error) => {
                        tracing::error!(%error, "the new certificate cannot be used");
                        renewals.get_or_create(&metrics::FAILED).inc();
                        tokio::time::sleep(backoff.wait()).await;
                        continue;
                    }
                }
                renewals.get_or_create(&metrics::OK).inc();
                enrolment.vitals.identity(next.not_after);
                tracing::info!(until = %next.not_after, "certificate renewed");
                while let Err(error) = store.save(&next).await {
                    let wait = backoff.wait();
                    tracing::error!(%error, retry_in = ?wait, "the new certificate is in use but not kept");
                    tokio::time::sleep(wait).await;
                }
                backoff.reset();
                identity = next;
            }
            Err(error) => {
                renewals.get_or_create(&metrics::FAILED).inc();
                let wait = backoff.wait();
                tracing::warn!(%error, until = %identity.not_after, retry_in = ?wait, "certificate not renewed");
                tokio::time::sleep(wait).await;
            }
        }
    }
}

/// As itself while the certificate is valid, with the token after that.
async fn renewed(
    identity: &Identity,
    enrolment: &Enrolment,
    caller: &Caller,
) -> Result<Identity, IdentityError> {
    if identity.not_after <= clock::now() {
        return match enrolment.enrol().await {
            Err(IdentityError::NoToken) => Err(IdentityError::Expired(identity.not_after)),
            enrolled => enrolled,
        };
    }
    let client = request::certificate(caller, &enrolment.cluster).await?;
    Identity::new(identity.authority.clone(), client, &enrolment.cluster)
}

async fn wait_until(moment: Timestamp) {
    while let Ok(left) = Duration::try_from(moment.duration_since(clock::now())) {
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(LONGEST_SLEEP)).await;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn after_two_thirds() {
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(renewal_due(at(0), at(300), 0.0), at(200));
        assert_eq!(renewal_due(at(0), at(300), 1.0), at(215));
        assert_eq!(renewal_due(at(300), at(300), 0.5), at(300));
        assert_eq!(renewal_due(at(300), at(0), 0.5), at(300));
    }

    proptest! {
        /// There is always a quarter of the lifetime left to retry in.
        #[test]
        fn always_leaves_room(from in 0_i64..4_000_000_000, life in 1_i64..1_000_000_000, spread in 0.0..=1.0_f64) {
            let start = Timestamp::from_second(from).unwrap();
            let end = Timestamp::from_second(from + life).unwrap();
            let due = renewal_due(start, end, spread);
            prop_assert!(due > start && due < end);
            let left = end.duration_since(due).as_secs_f64();
            prop_assert!(left >= life as f64 * 0.25);
        }
    }
}
