//! Node selectors, required node affinity and taints: which nodes a pod accepts, and which accept it.

use evenkeel_shared::taint;
use k8s_openapi::api::core::v1::{
    NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration,
};

use super::{Node, requirement::Requirements};

/// What a pod asks of its node: its `nodeSelector` and its required node affinity. Preferences take no part.
#[derive(Clone, Debug, Default)]
pub struct NodeAffinity {
    selector: Requirements,
    /// One of these, when given.
    terms: Option<Vec<Term>>,
}

#[derive(Clone, Debug)]
struct Term {
    labels: Requirements,
    fields: Requirements,
    /// Neither expressions nor fields: matches nothing.
    empty: bool,
}

/// The one field that `matchFields` knows.
const NAME_FIELD: &str = "metadata.name";

impl Term {
    fn new(term: &NodeSelectorTerm) -> Self {
        let expressions = term.match_expressions.as_deref().unwrap_or_default();
        let fields = term.match_fields.as_deref().unwrap_or_default();
        Self {
            labels: requirements(expressions, |_| true),
            fields: requirements(fields, |field| {
                field.key == NAME_FIELD
                    && matches!(field.operator.as_str(), "In" | "NotIn")
                    && field
                        .values
                        .as_ref()
                        .is_some_and(|values| values.len() == 1)
            }),
            empty: expressions.is_empty() && fields.is_empty(),
        }
    }

    fn matches(&self, node: &Node) -> bool {
        let name = |key: &str| (key == NAME_FIELD).then_some(node.name.as_str());
        !self.empty && self.labels.matches(&node.labels) && self.fields.matches_by(name)
    }
}

/// What is not allowed is as unreadable as an unknown operator.
fn requirements(
    list: &[NodeSelectorRequirement],
    allowed: impl Fn(&NodeSelectorRequirement) -> bool,
) -> Requirements {
    let mut requirements = Requirements::default();
    for requirement in list {
        let operator = if allowed(requirement) {
            requirement.operator.as_str()
        } else {
            ""
        };
        let values = requirement.values.as_deref().unwrap_or_default();
        requirements.require(&requirement.key, operator, values);
    }
    requirements
}

impl NodeAffinity {
    /// What this pod asks.
    pub fn new(spec: &PodSpec) -> Self {
        let required = spec
            .affinity
            .as_ref()
            .and_then(|affinity| affinity.node_affinity.as_ref())
            .and_then(|affinity| {
                affinity
                    .required_during_scheduling_ignored_during_execution
                    .as_ref()
            });
        Self {
            selector: Requirements::of_pairs(spec.node_selector.iter().flatten()),
            terms: required
                .map(|required| required.node_selector_terms.iter().map(Term::new).collect()),
        }
    }

    /// Whether it accepts every node.
    pub fn is_empty(&self) -> bool {
        self.selector.is_empty() && self.terms.is_none()
    }

    /// Whether the node is one that the pod accepts.
    pub fn matches(&self, node: &Node) -> bool {
        self.selector.matches(&node.labels)
            && self
                .terms
                .as_ref()
                .is_none_or(|terms| terms.iter().any(|term| term.matches(node)))
    }
}

/// Whether every taint that keeps pods off (`NoSchedule`, `NoExecute`) is tolerated.
pub fn tolerates_all(taints: &[Taint], tolerations: &[Toleration]) -> bool {
    taint::first_untolerated(taints, tolerations).is_none()
}
