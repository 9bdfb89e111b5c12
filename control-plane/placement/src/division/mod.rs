//! How many replicas each of the chosen clusters gets.
//!
//! - [`webster`]: seats in proportion to votes
//! - [`assign`]: the strategies of a policy, and tiers of overflow

pub mod assign;
pub mod webster;
