//! Roles and bindings, evaluated as the reference server evaluates them.
//!
//! - [`rule`]: one rule and what it covers
//! - [`index`]: all roles and bindings, compiled by subject
//! - [`escalation`]: what a writer of roles lacks
//! - [`admission`]: refuses what escalates
//! - `feed`: keeps the index in step with the store

pub mod admission;
pub mod escalation;
mod feed;
pub mod index;
pub mod rule;

#[cfg(test)]
mod property;

use std::sync::Arc;

use parking_lot::RwLock;

pub use admission::RbacAdmission;
pub use index::{Index, Policy};
pub use rule::PolicyRule;

use super::{Attributes, Authorizer, Decision, Rules, UserInfo};

/// Allows what roles and bindings give, and has no opinion on the rest.
#[derive(Debug, Default)]
pub struct Rbac {
    index: RwLock<Arc<Index>>,
}

impl Rbac {
    pub fn new(policy: &Policy) -> Self {
        let rbac = Self::default();
        rbac.set(policy);
        rbac
    }

    /// Goes by another policy from now on.
    pub fn set(&self, policy: &Policy) {
        let index = Arc::new(Index::compile(policy));
        *self.index.write() = index;
    }

    pub fn index(&self) -> Arc<Index> {
        Arc::clone(&self.index.read())
    }
}

impl Authorizer for Rbac {
    fn authorize(&self, user: &UserInfo, attributes: &Attributes) -> Decision {
        if self.index().allows(user, attributes) {
            Decision::Allow
        } else {
            Decision::NoOpinion
        }
    }

    fn why_allowed(&self, user: &UserInfo, attributes: &Attributes) -> String {
        self.index()
            .find(user, attributes)
            .map(index::Grant::describe)
            .unwrap_or_default()
    }

    fn rules(&self, user: &UserInfo, namespace: &str) -> Rules {
        Rules {
            rules: self.index().rules_for(user, namespace),
            incomplete: None,
        }
    }
}
