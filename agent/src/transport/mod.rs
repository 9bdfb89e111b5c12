//! How the agent talks: one HTTP/2 connection per side, deadlines on every request, and errors that tell who failed.
//!
//! What is asked and what the answers mean is for the modules above.

mod call;
mod channel;
mod connector;
mod member;
mod trust;

pub use call::{Caller, Failure};
pub use channel::{Channel, Credentials};
pub use connector::Connector;
pub use member::{MemberError, connect as connect_member};
pub use trust::{TrustError, client_config, pinned, unverified};
