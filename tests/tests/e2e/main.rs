//! The two programs, together, over real TLS, as a person and as an agent would use them.
//!
//! With `EVENKEEL_TEST_KUBECONFIG` the tests that do not break the member run against that real cluster.

mod member;

use std::time::Duration;

/// How long a change may take from one end to the other.
const ARRIVES: Duration = Duration::from_secs(30);
