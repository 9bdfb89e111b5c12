//! The protocol of Evenkeel: what the control plane and the agents say to each other, as plain types and rules.
//!
//! Nothing here does I/O, waits or reads a clock.

pub mod field;
