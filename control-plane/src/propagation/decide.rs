//! One template, from its policy to its copies: what has to be written next.

use std::{collections::BTreeMap, sync::Arc};

use evenkeel_placement::{
    decision::{Decision, decide as place},
    fleet::ClusterView,
    unsupported,
};
use evenkeel_shared::{binding::ResourceBinding, work::Work};
use jiff::Timestamp;
use serde_json::Value;

use super::{
    aggregate::aggregate,
    binding::{self, Claim, finalizer},
    status,
    template::{Facts, is_kept_here},
    work,
};

/// Everything that a decision about one template looks at, as it stands at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot<'a> {
    /// The template; `None` when it is gone.
    pub template: Option<&'a Value>,
    /// The policy that claims it.
    pub claim: Option<Claim>,
    /// The binding of that name.
    pub binding: Option<ResourceBinding>,
    /// The binding's Works, by cluster.
    pub works: BTreeMap<String, Work>,
    /// All clusters, sorted by name.
    pub fleet: &'a [Arc<ClusterView>],
}

/// One write, made against the revision that the snapshot saw.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    CreateBinding(ResourceBinding),
    UpdateBinding(ResourceBinding),
    UpdateBindingStatus(ResourceBinding),
    DeleteBinding,
    CreateWork {
        cluster: String,
        work: Work,
    },
    UpdateWork {
        cluster: String,
        work: Work,
    },
    DeleteWork {
        cluster: String,
    },
    /// The template with its new status.
    UpdateTemplateStatus(Value),
}

impl Action {
    /// In a word, for the log.
    pub fn name(&self) -> &'static str {
        match self {
            Self::CreateBinding(_) => "create binding",
            Self::UpdateBinding(_) => "update binding",
            Self::UpdateBindingStatus(_) => "update binding status",
            Self::DeleteBinding => "delete binding",
            Self::CreateWork { .. } => "create work",
            Self::UpdateWork { .. } => "update work",
            Self::DeleteWork { .. } => "delete work",
            Self::UpdateTemplateStatus(_) => "update template status",
        }
    }
}

/// An action and why it is taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub action: Action,
    pub reason: &'static str,
}

/// What has to be written next. Carried out, it leads to a state of which nothing, or the next step, is asked; never
/// back.
pub fn decide(snapshot: &Snapshot<'_>, now: Timestamp) -> Vec<Step> {
    let template = snapshot
        .template
        .map(|object| (object, Facts::of(object)))
        .filter(|(_, facts)| !facts.terminating && !is_kept_here(&facts.namespace));
    let Some(standing) = &snapshot.binding else {
        return without_binding(snapshot, template.as_ref().map(|(_, facts)| facts));
    };
    if standing.metadata.deletion_timestamp.is_some() {
        return terminating(snapshot, standing);
    }
    let Some((object, facts)) = template else {
        return vec![step(Action::DeleteBinding, "the template is gone")];
    };
    if !binding::belongs(standing, &facts) {
        // A template of another group holds the name; the first one keeps it.
        return Vec::new();
    }
    let Some(claim) = &snapshot.claim else {
        return vec![step(Action::DeleteBinding, "no policy claims the template")];
    };

    let mut wanted = binding::wanted(&facts, claim, Some(standing));
    let decision = decision(&wanted, claim, snapshot.fleet);
    wanted.spec.clusters.clone_from(&decision.clusters);
    if wanted.metadata != standing.metadata || wanted.spec != standing.spec {
        return vec![step(
            Action::UpdateBinding(wanted),
            "the template, its policy or the fleet changed",
        )];
    }

    let mut steps = works(snapshot, object, standing);
    let items = status::aggregated(
        snapshot
            .works
            .iter()
            .map(|(cluster, work)| (cluster.as_str(), work)),
        |name| find(snapshot.fleet, name),
    );
    if let Some(status) = aggregate(object, &status::countable(&items), now) {
        let mut object = object.clone();
        object["status"] = status;
        steps.push(step(
            Action::UpdateTemplateStatus(object),
            "the copies' status changed",
        ));
    }
    let status = status::wanted(standing, &decision, items, now);
    if standing.status.as_ref() != Some(&status) {
        let mut binding = standing.clone();
        binding.status = Some(status);
        steps.push(step(
            Action::UpdateBindingStatus(binding),
            "the decision or the copies' status changed",
        ));
    }
    steps
}

/// The place of a cluster in a fleet that is sorted by name.
fn find<'a>(fleet: &'a [Arc<ClusterView>], name: &str) -> Option<&'a ClusterView> {
    fleet
        .binary_search_by(|cluster| cluster.name.as_str().cmp(name))
        .ok()
        .map(|place| fleet[place].as_ref())
}

fn decision(binding: &ResourceBinding, claim: &Claim, fleet: &[Arc<ClusterView>]) -> Decision {
    let affinity_in_use = binding
        .status
        .as_ref()
        .map(|status| status.scheduler_observed_affinity_name.as_str())
        .unwrap_or_default();
    place(
        &binding.spec,
        affinity_in_use,
        fleet,
        &unsupported::in_delivery(&claim.spec),
        &unsupported::later(&claim.spec),
    )
}

fn without_binding(snapshot: &Snapshot<'_>, template: Option<&Facts>) -> Vec<Step> {
    if let (Some(facts), Some(claim)) = (template, &snapshot.claim) {
        let mut binding = binding::wanted(facts, claim, None);
        binding.spec.clusters = decision(&binding, claim, snapshot.fleet).clusters;
        return vec![step(
            Action::CreateBinding(binding),
            "a policy claims the template",
        )];
    }
    remove(snapshot, "its binding is gone").collect()
}

/// A binding that is being deleted stays until its Works are gone: each of them goes when its agent has removed the
/// copy.
fn terminating(snapshot: &Snapshot<'_>, standing: &ResourceBinding) -> Vec<Step> {
    if !snapshot.works.is_empty() {
        return remove(snapshot, "its binding is being deleted").collect();
    }
    let finalizer = finalizer(standing.namespace());
    let mut binding = standing.clone();
    let finalizers = binding.metadata.finalizers.get_or_insert_default();
    let before = finalizers.len();
    finalizers.retain(|name| name != finalizer);
    if finalizers.len() == before {
        return Vec::new();
    }
    vec![step(Action::UpdateBinding(binding), "its Works are gone")]
}

fn remove<'a>(snapshot: &'a Snapshot<'_>, reason: &'static str) -> impl Iterator<Item = Step> + 'a {
    snapshot
        .works
        .iter()
        .filter(|(_, work)| work.metadata.deletion_timestamp.is_none())
        .map(move |(cluster, _)| {
            step(
                Action::DeleteWork {
                    cluster: cluster.clone(),
                },
                reason,
            )
        })
}

fn works(snapshot: &Snapshot<'_>, template: &Value, binding: &ResourceBinding) -> Vec<Step> {
    let targets = work::targets(binding);
    let mut steps = Vec::new();
    for (cluster, standing) in &snapshot.works {
        if standing.metadata.deletion_timestamp.is_none() && !targets.contains(cluster.as_str()) {
            let action = Action::DeleteWork {
                cluster: cluster.clone(),
            };
            steps.push(step(action, "the cluster is no longer chosen"));
        }
    }
    for cluster in targets {
        let standing = snapshot.works.get(cluster);
        // One that is on its way out is made anew once it is gone; a cluster that is going gets none.
        if standing.is_some_and(|work| work.metadata.deletion_timestamp.is_some())
            || find(snapshot.fleet, cluster).is_none_or(|cluster| cluster.terminating)
        {
            continue;
        }
        let work = work::wanted(template, binding, cluster, standing);
        let cluster = cluster.to_owned();
        match standing {
            None => steps.push(step(
                Action::CreateWork { cluster, work },
                "the cluster was chosen",
            )),
            Some(standing) if work.spec != standing.spec || work.metadata != standing.metadata => {
                steps.push(step(
                    Action::UpdateWork { cluster, work },
                    "the template or the policy changed",
                ));
            }
            Some(_) => {}
        }
    }
    steps
}

fn step(action: Action, reason: &'static str) -> Step {
    Step { action, reason }
}
