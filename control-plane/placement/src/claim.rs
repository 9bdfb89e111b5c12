//! Which policy claims a template.

use std::{cmp::Reverse, collections::BTreeMap};

use evenkeel_shared::policy::{PropagationSpec, ResourceSelector};

use crate::selector;

/// A template, reduced to what selectors look at.
#[derive(Clone, Copy, Debug)]
pub struct Template<'a> {
    /// `group/version`.
    pub api_version: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// Empty for a cluster-scoped one.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
    /// The labels.
    pub labels: &'a BTreeMap<String, String>,
}

/// A policy that could claim it.
#[derive(Clone, Copy, Debug)]
pub struct Contender<'a> {
    /// Empty for a cluster-wide policy.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
    /// Its spec.
    pub spec: &'a PropagationSpec,
    /// A policy that is being deleted claims nothing.
    pub terminating: bool,
}

/// How closely a policy names a template; what is named closer wins among equal priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Closeness {
    /// Everything of the kind.
    All,
    /// By labels.
    Labels,
    /// By name.
    Name,
}

/// How closely one selector names a template. With a name given, its label selector is not looked at.
pub fn selects(selector: &ResourceSelector, template: Template<'_>) -> Option<Closeness> {
    if selector.api_version != template.api_version
        || selector.kind != template.kind
        || (!selector.namespace.is_empty() && selector.namespace != template.namespace)
    {
        return None;
    }
    if !selector.name.is_empty() {
        return (selector.name == template.name).then_some(Closeness::Name);
    }
    match &selector.label_selector {
        None => Some(Closeness::All),
        Some(labels) => selector::matches(labels, template.labels).then_some(Closeness::Labels),
    }
}

/// How closely a policy names a template: by the closest of its selectors.
pub fn closeness(spec: &PropagationSpec, template: Template<'_>) -> Option<Closeness> {
    spec.resource_selectors
        .iter()
        .filter_map(|selector| selects(selector, template))
        .max()
}

/// The policy that claims a template, among those of its namespace and the cluster-wide ones:
///
/// 1. those of the namespace before the cluster-wide ones;
/// 2. the higher explicit priority;
/// 3. what names it closer;
/// 4. the smaller name.
pub fn claim<'a>(
    template: Template<'_>,
    policies: impl IntoIterator<Item = Contender<'a>>,
) -> Option<Contender<'a>> {
    policies
        .into_iter()
        .filter(|policy| !policy.terminating)
        .filter(|policy| policy.namespace.is_empty() || policy.namespace == template.namespace)
        .filter_map(|policy| Some((closeness(policy.spec, template)?, policy)))
        .max_by_key(|(closeness, policy)| {
            (
                !policy.namespace.is_empty(),
                policy.spec.priority.unwrap_or_default(),
                *closeness,
                Reverse(policy.name),
            )
        })
        .map(|(_, policy)| policy)
}
