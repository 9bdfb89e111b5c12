//! `spreadConstraints`: how many clusters, and how many groups of clusters (regions, zones, providers, or the values of
//! a label), a workload goes to.
//!
//! The rules are Karmada's where it has any that work: which groups are best, which clusters of them, and in which
//! order. Where it accepts a constraint and then ignores it, or never finds a cluster, the constraint is kept here:
//! no `maxGroups` is no limit, fixed weights do not switch constraints off, a limit on clusters also limits the groups,
//! and grouping by zone, by provider and by label works as by region does.
//!
//! - [`order`]: candidates, and the order that they are preferred in
//! - [`clusters`]: a number of clusters
//! - [`choose`]: a number of groups
//! - [`select`](mod@select): all constraints of a placement together

pub mod choose;
pub mod clusters;
pub mod order;
pub mod select;
