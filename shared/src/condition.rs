//! Conditions: finding and setting them.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// The condition of this type, if any.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// A condition that begins now; times are kept by the second, as on the wire.
pub fn new(type_: &str, status: &str, reason: &str, message: &str, now: Timestamp) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: Time(whole_second(now)),
        observed_generation: None,
    }
}

/// Sets the condition of `wanted`'s type. `lastTransitionTime` moves only when the status changes. Returns whether
/// anything changed.
pub fn set(conditions: &mut Vec<Condition>, mut wanted: Condition) -> bool {
    let Some(current) = conditions
        .iter_mut()
        .find(|condition| condition.type_ == wanted.type_)
    else {
        conditions.push(wanted);
        return true;
    };
    if current.status == wanted.status {
        wanted.last_transition_time = current.last_transition_time.clone();
    }
    if *current == wanted {
        return false;
    }
    *current = wanted;
    true
}

/// The moment without its fraction of a second.
pub fn whole_second(moment: Timestamp) -> Timestamp {
    Timestamp::from_second(moment.as_second()).unwrap_or(moment)
}
