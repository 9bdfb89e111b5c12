//! The wall clock, read in this one place. Rules take `now` as an argument.

use jiff::Timestamp;

/// The time of day, for timestamps in objects.
pub(crate) fn now() -> Timestamp {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place of this crate where the wall clock is read"
    )]
    Timestamp::now()
}

/// As `metadata` has it: seconds, UTC.
pub fn seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
