//! The two programs, together, over real TLS, as a person and as an agent would use them.
//!
//! With `EVENKEEL_TEST_KUBECONFIG` the tests that do not break the member run against that real cluster.

mod certificates;
mod conformance;
mod crash;
mod isolation;
mod join;
mod kubectl;
mod liveness;
mod member;
mod propagation;
mod robustness;

use std::time::Duration;

/// How long a cluster may take from the start of its agent to Ready.
const JOINS: Duration = Duration::from_secs(40);
/// How long a change may take from one end to the other.
const ARRIVES: Duration = Duration::from_secs(30);
