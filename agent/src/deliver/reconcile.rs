//! One Work: its manifests into the member, its status back, and when it goes, everything that it placed.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use evenkeel_shared::{
    stamps::{EXECUTION_FINALIZER, RETAIN_REPLICAS_LABEL},
    work::{Health, Work, WorkStatus},
};
use serde_json::{Value, json};

use super::{
    claim::{Claim, belongs_to, claim},
    health::health,
    manifest::{ObjectKey, digest, stamped, unmarked},
    member::{self, Served},
    projection::projection,
    reflect::reflect,
    verdict::{self, Fate},
};
use crate::{
    clock,
    status::apis::Catalogue,
    transport::{Caller, Failure},
};

/// What is known of an object that was placed.
#[derive(Clone, Debug)]
pub struct Placed {
    pub served: Served,
    /// Of the manifest as applied.
    pub desired: u64,
    /// Of the live object; `None`: it drifted, or is gone.
    pub projection: Option<u64>,
    /// The version of the live object that this is known from.
    pub version: u64,
    pub status: Option<Value>,
    pub health: Health,
    /// It was there before and carries no marks, so that the watch for those does not see it.
    pub shared: bool,
}

impl Placed {
    /// From a live object.
    pub fn seen(served: Served, desired: &Value, live: &Value) -> Self {
        let (status, health) = match reflect(live) {
            Ok(status) => (status, health(live)),
            Err(error) => {
                tracing::debug!(%error, "status not reported");
                (None, Health::Unknown)
            }
        };
        Self {
            served,
            desired: digest(desired),
            projection: Some(projection(desired, live)),
            version: version(live),
            status,
            health,
            shared: false,
        }
    }
}

/// An object's version, to tell older news from newer.
pub fn version(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str();
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Everything that is placed by one Work.
pub type Objects = HashMap<ObjectKey, Placed>;

/// What a pass over a Work came to.
#[derive(Debug)]
pub struct Pass {
    /// What is placed now.
    pub objects: Objects,
    /// The Work as it is after the status was written, when it was.
    pub work: Option<Work>,
    /// It has to be done again, and why.
    pub unfinished: Option<String>,
    /// A kind was not found in the catalogue.
    pub catalogue_missed: bool,
    /// A namespace or a definition was made: others may go on now.
    pub opened: bool,
    /// The Work is gone for good.
    pub retired: bool,
}

impl Pass {
    fn new(objects: Objects) -> Self {
        Self {
            objects,
            work: None,
            unfinished: None,
            catalogue_missed: false,
            opened: false,
            retired: false,
        }
    }

    fn fail(&mut self, why: impl Into<String>) {
        self.unfinished = Some(why.into());
    }
}

/// Both sides, and the member's catalogue.
#[derive(Clone)]
pub struct Reconciler {
    pub control: Caller,
    pub member: Caller,
    pub catalogue: Arc<Catalogue>,
}

fn work_path(work: &Work) -> String {
    format!(
        "/apis/work.karmada.io/v1alpha1/namespaces/{}/works/{}",
        work.namespace(),
        work.name()
    )
}

impl Reconciler {
    /// Goes over the Work once. `known` is what earlier passes placed.
    pub async fn run(&self, work: Arc<Work>, known: Objects) -> Pass {
        if work.metadata.deletion_timestamp.is_some() {
            return self.retire(&work, known).await;
        }
        if work.spec.suspend_dispatching {
            let mut pass = Pass::new(known);
            let status = verdict::suspended(&work, clock::now());
            self.write_status(&work, &status, &mut pass).await;
            return pass;
        }
        let mut pass = Pass::new(known);
        let work = match self.with_finalizer(&work).await {
            Ok(Some(newer)) => Arc::new(newer),
            Ok(None) => work,
            Err(failure) => {
                pass.fail(format!("the finalizer cannot be set: {failure}"));
                return pass;
            }
        };
        let results = self.place(&work, &mut pass).await;
        self.prune(&work, &results, &mut pass).await;
        for result in &results {
            if let Fate::Failed(why) | Fate::Unasked(why) = &result.fate {
                pass.fail(why.as_str());
            }
        }
        let status = verdict::delivered(&work, &results, clock::now());
        self.write_status(&work, &status, &mut pass).await;
        pass
    }

    /// The Work with our finalizer, when it had none: nothing is placed that could not be taken away again.
    async fn with_finalizer(&self, work: &Work) -> Result<Option<Work>, Failure> {
        let mut finalizers = work.metadata.finalizers.clone().unwrap_or_default();
        if finalizers.iter().any(|name| name == EXECUTION_FINALIZER) {
            return Ok(None);
        }
        finalizers.push(EXECUTION_FINALIZER.to_owned());
        self.set_finalizers(work, &finalizers).await.map(Some)
    }

    async fn set_finalizers(&self, work: &Work, finalizers: &[String]) -> Result<Work, Failure> {
        let patch = json!({"metadata": {
            "resourceVersion": work.metadata.resource_version,
            "finalizers": finalizers,
        }});
        self.control.merge(&work_path(work), &patch).await
    }

    /// Applies every manifest, what must be there first first.
    async fn place(&self, work: &Work, pass: &mut Pass) -> Vec<verdict::Result> {
        let manifests = &work.spec.workload.manifests;
        let mut results: Vec<_> = manifests
            .iter()
            .enumerate()
            .map(|(ordinal, manifest)| {
                let (key, fate) = match ObjectKey::of(manifest) {
                    Ok(key) => (Some(key), Fate::Unasked(String::new())),
                    Err(why) => (None, Fate::Failed(why.to_owned())),
                };
                verdict::Result {
                    ordinal,
                    key,
                    plural: String::new(),
                    fate,
                }
            })
            .collect();
        let mut order: Vec<usize> = (0..results.len()).collect();
        order.sort_by_key(|index| results[*index].key.as_ref().map_or(0, ObjectKey::rank));
        for index in order {
            let Some(key) = results[index].key.clone() else {
                continue;
            };
            let Some(served) = Served::find(&self.catalogue, &key) else {
                pass.catalogue_missed = true;
                results[index].fate = Fate::Failed(format!(
                    "the member does not serve {} {}",
                    key.api_version, key.kind
                ));
                continue;
            };
            let key = served.placed(&key);
            results[index].plural.clone_from(&served.plural);
            let desired = stamped(&manifests[index], work);
            results[index].fate = self.place_one(&key, served, desired, pass).await;
            results[index].key = Some(key);
        }
        results
    }

    async fn place_one(
        &self,
        key: &ObjectKey,
        served: Served,
        desired: Value,
        pass: &mut Pass,
    ) -> Fate {
        let current = pass.objects.get(key).is_some_and(|placed| {
            placed.projection.is_some() && placed.desired == digest(&desired)
        });
        if !current {
            match self.apply(key, &served, desired, pass).await {
                Ok(placed) => {
                    if key.rank() < 2 && !pass.objects.contains_key(key) {
                        pass.opened = true;
                    }
                    pass.objects.insert(key.clone(), placed);
                }
                Err(fate) => return fate,
            }
        }
        match pass.objects.get(key) {
            Some(placed) => Fate::Placed {
                status: placed.status.clone(),
                health: placed.health.clone(),
            },
            None => Fate::Unasked("not known".to_owned()),
        }
    }

    async fn apply(
        &self,
        key: &ObjectKey,
        served: &Served,
        mut desired: Value,
        pass: &mut Pass,
    ) -> Result<Placed, Fate> {
        let live = member::read(&self.member, served, key)
            .await
            .map_err(|failure| fate(&failure))?;
        let digested = digest(&desired);
        let claim = claim(live.as_ref(), &desired);
        let force = match claim {
            Claim::Create | Claim::Ours | Claim::TakeOver => true,
            Claim::Share => {
                desired = unmarked(desired);
                false
            }
            Claim::Going => {
                pass.objects.remove(key);
                return Err(Fate::Failed(
                    "the object in the member is being deleted; it is applied again when it is gone"
                        .to_owned(),
                ));
            }
            Claim::Refused => {
                return Err(Fate::Failed(
                    "the object is already in the member and was not placed by the fleet; it is left alone unless \
                     the policy's conflictResolution is Overwrite"
                        .to_owned(),
                ));
            }
        };
        if let Some(live) = &live {
            retain(&mut desired, live);
        }
        let path = served.path(key);
        let mut applied = self.member.apply::<_, Value>(&path, &desired, force).await;
        if let Err(failure) = &applied
            && lacks_namespace(failure, &key.namespace)
        {
            member::make_namespace(&self.member, &key.namespace)
                .await
                .map_err(|failure| fate(&failure))?;
            applied = self.member.apply(&path, &desired, force).await;
        }
        let applied = applied.map_err(|failure| fate(&failure))?;
        let mut placed = Placed::seen(served.clone(), &desired, &applied);
        placed.desired = digested;
        placed.shared = claim == Claim::Share;
        Ok(placed)
    }

    /// Deletes what earlier versions of the Work placed and this one does not name.
    async fn prune(&self, work: &Work, results: &[verdict::Result], pass: &mut Pass) {
        let wanted: BTreeSet<&ObjectKey> = results
            .iter()
            .filter_map(|result| result.key.as_ref())
            .collect();
        let mut left: BTreeSet<ObjectKey> = self.reported(work);
        left.extend(pass.objects.keys().cloned());
        left.retain(|key| !wanted.contains(key));
        for key in left {
            match self.take_away(work, &key, false).await {
                Ok(()) => {
                    pass.objects.remove(&key);
                }
                Err(failure) => pass.fail(format!("{key} is not deleted: {failure}")),
            }
        }
    }

    /// What the Work's status says was placed.
    fn reported(&self, work: &Work) -> BTreeSet<ObjectKey> {
        let status = work.status.as_ref();
        status
            .into_iter()
            .flat_map(|status| &status.manifest_statuses)
            .map(|manifest| verdict::key_of(&manifest.identifier))
            .map(|key| match Served::find(&self.catalogue, &key) {
                Some(served) => served.placed(&key),
                None => key,
            })
            .collect()
    }

    /// Deletes, or frees, an object that this Work placed. What is somebody else's stays; a kind that the member does
    /// not serve any more has no objects.
    async fn take_away(&self, work: &Work, key: &ObjectKey, keep: bool) -> Result<(), Failure> {
        let Some(served) = Served::find(&self.catalogue, key) else {
            return Ok(());
        };
        let key = served.placed(key);
        let Some(live) = member::read(&self.member, &served, &key).await? else {
            return Ok(());
        };
        if !belongs_to(&live, work.namespace(), work.name()) {
            return Ok(());
        }
        if keep {
            member::release(&self.member, &served, &key).await
        } else if live["metadata"]["deletionTimestamp"].is_null() {
            member::delete(&self.member, &served, &key, &live).await
        } else {
            Ok(())
        }
    }

    /// Takes everything away, then lets the Work go.
    async fn retire(&self, work: &Work, known: Objects) -> Pass {
        let mut pass = Pass::new(known);
        let finalizers = work.metadata.finalizers.clone().unwrap_or_default();
        if !finalizers.iter().any(|name| name == EXECUTION_FINALIZER) {
            pass.retired = true;
            return pass;
        }
        let mut keys = self.reported(work);
        keys.extend(pass.objects.keys().cloned());
        for manifest in &work.spec.workload.manifests {
            if let Ok(key) = ObjectKey::of(manifest) {
                keys.insert(match Served::find(&self.catalogue, &key) {
                    Some(served) => served.placed(&key),
                    None => key,
                });
            }
        }
        let mut keys: Vec<_> = keys.into_iter().collect();
        // The last to come are the first to go.
        keys.sort_by_key(|key| std::cmp::Reverse(key.rank()));
        let keep = work.spec.preserve_resources_on_deletion;
        for key in keys {
            match self.take_away(work, &key, keep).await {
                Ok(()) => {
                    pass.objects.remove(&key);
                }
                Err(failure) => pass.fail(format!("{key} is not taken away: {failure}")),
            }
        }
        if pass.unfinished.is_some() {
            return pass;
        }
        let others: Vec<_> = finalizers
            .into_iter()
            .filter(|name| name != EXECUTION_FINALIZER)
            .collect();
        match self.set_finalizers(work, &others).await {
            Ok(_) => pass.retired = true,
            Err(failure) if failure.is_not_found() => pass.retired = true,
            Err(failure) => pass.fail(format!("the finalizer is not removed: {failure}")),
        }
        pass
    }

    async fn write_status(&self, work: &Work, status: &WorkStatus, pass: &mut Pass) {
        let Some(patch) = verdict::patch(work, status) else {
            return;
        };
        let path = format!("{}/status", work_path(work));
        match self.control.merge::<_, Work>(&path, &patch).await {
            Ok(newer) => pass.work = Some(newer),
            Err(failure) if failure.is_not_found() => {}
            Err(failure) => pass.fail(format!("the status is not written: {failure}")),
        }
    }
}

/// Whether a request failed because its namespace is not there.
fn lacks_namespace(failure: &Failure, namespace: &str) -> bool {
    matches!(failure, Failure::Refused(status)
        if status.code == 404
            && !namespace.is_empty()
            && status
                .details
                .as_ref()
                .is_some_and(|details| details.kind == "namespaces" && details.name == namespace))
}

/// A field that the member decides stays as it is there.
fn retain(desired: &mut Value, live: &Value) {
    let retains = desired["metadata"]["labels"][RETAIN_REPLICAS_LABEL] == "true";
    if retains
        && let Some(replicas) = live.pointer("/spec/replicas")
        && let Some(wanted) = desired.pointer_mut("/spec/replicas")
    {
        *wanted = replicas.clone();
    }
}

/// What a failed request makes of a manifest. Conflicts are told field by field, as the server names them.
fn fate(failure: &Failure) -> Fate {
    if failure.is_passing() {
        return Fate::Unasked(failure.to_string());
    }
    if let Failure::Refused(status) = failure
        && status.code == 409
        && let Some(details) = &status.details
        && !details.causes.is_empty()
    {
        let fields: Vec<_> = details
            .causes
            .iter()
            .map(|cause| format!("{} ({})", cause.field, cause.message))
            .collect();
        return Fate::Failed(format!("others hold {}", fields.join(", ")));
    }
    Fate::Failed(failure.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_stay_as_the_member_scaled_them_when_asked_for() {
        let live = json!({"spec": {"replicas": 7}});
        for (label, expected) in [("true", 7), ("false", 2)] {
            let mut desired = json!({
                "metadata": {"labels": {"resourcetemplate.karmada.io/retain-replicas": label}},
                "spec": {"replicas": 2},
            });
            retain(&mut desired, &live);
            assert_eq!(desired["spec"]["replicas"], expected);
        }
    }

    #[test]
    fn conflicts_are_told_by_field() {
        let status: kube::core::Status = serde_json::from_value(json!({
            "code": 409, "reason": "Conflict", "message": "Apply failed with 1 conflict",
            "details": {"causes": [{"reason": "FieldManagerConflict", "field": ".metadata.labels.team",
                                    "message": "conflict with \"kubectl\""}]},
        }))
        .unwrap();
        assert_eq!(
            fate(&Failure::Refused(Box::new(status))),
            Fate::Failed("others hold .metadata.labels.team (conflict with \"kubectl\")".into())
        );
        assert!(matches!(
            fate(&Failure::Silent("x".into())),
            Fate::Unasked(_)
        ));
    }
}
