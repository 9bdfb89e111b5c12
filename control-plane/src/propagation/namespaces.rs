//! Namespaces follow what is placed in them: a cluster that gets a copy of something gets its namespace first.
//!
//! A namespace stays in a member when nothing of ours is in it any more, and when it is deleted here: what else lies in
//! it there is not ours to remove.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_shared::{
    names, stamps,
    work::{Work, WorkSpec, WorkloadTemplate},
};
use serde_json::Value;

use super::{
    decide::{Action, Step},
    template::is_kept_here,
    work::{derived_id, manifest},
};

/// Says of a Work that it carries this namespace.
pub const NAMESPACE_ANNOTATION: &str = "propagation.evenkeel.io/namespace";

/// Whether a namespace follows its content: not the system's own, and not `default`, which every cluster has.
pub fn follows(name: &str) -> bool {
    name != "default" && !is_kept_here(name)
}

/// Whether a Work carries this namespace.
pub fn carries(work: &Work, namespace: &str) -> bool {
    work.metadata
        .annotations
        .as_ref()
        .and_then(|notes| notes.get(NAMESPACE_ANNOTATION))
        .is_some_and(|name| name == namespace)
}

/// What has to be written for one namespace. `wanted`: the clusters that get something of it; `works`: the Works that
/// carry it, by cluster.
pub fn decide(
    namespace: Option<&Value>,
    wanted: &BTreeSet<String>,
    works: &BTreeMap<String, Work>,
) -> Vec<Step> {
    let living = namespace.filter(|object| object.pointer("/metadata/deletionTimestamp").is_none());
    let mut steps = Vec::new();
    for (cluster, work) in works {
        let needed = living.is_some() && wanted.contains(cluster);
        if !needed && work.metadata.deletion_timestamp.is_none() {
            let action = Action::DeleteWork {
                cluster: cluster.clone(),
            };
            steps.push(Step {
                action,
                reason: "nothing in the namespace goes there",
            });
        }
    }
    let Some(object) = living else {
        return steps;
    };
    for cluster in wanted {
        let standing = works.get(cluster);
        if standing.is_some_and(|work| work.metadata.deletion_timestamp.is_some()) {
            continue;
        }
        let work = wanted_work(object, cluster, standing);
        let cluster = cluster.clone();
        let action = match standing {
            None => Action::CreateWork { cluster, work },
            Some(standing) if standing.spec != work.spec || standing.metadata != work.metadata => {
                Action::UpdateWork { cluster, work }
            }
            Some(_) => continue,
        };
        steps.push(Step {
            action,
            reason: "something in the namespace goes there",
        });
    }
    steps
}

fn wanted_work(object: &Value, cluster: &str, standing: Option<&Work>) -> Work {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let namespace = names::execution_namespace(cluster);
    let work_name = names::work_name("Namespace", name, "");
    let ids = BTreeMap::from([(
        stamps::WORK_ID_LABEL.to_owned(),
        derived_id(&format!("namespace/{name}"), cluster),
    )]);
    let mut notes = BTreeMap::from([(
        stamps::CONFLICT_RESOLUTION_ANNOTATION.to_owned(),
        stamps::CONFLICT_ABORT.to_owned(),
    )]);

    let mut work = standing.cloned().unwrap_or_default();
    work.status = None;
    let metadata = &mut work.metadata;
    metadata.name = Some(work_name.clone());
    metadata.namespace = Some(namespace.clone());
    metadata.labels.get_or_insert_default().extend(ids.clone());
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.extend(notes.clone());
    annotations.insert(NAMESPACE_ANNOTATION.to_owned(), name.to_owned());
    let finalizers = metadata.finalizers.get_or_insert_default();
    if !finalizers
        .iter()
        .any(|name| name == stamps::EXECUTION_FINALIZER)
    {
        finalizers.push(stamps::EXECUTION_FINALIZER.to_owned());
    }
    notes.insert(stamps::WORK_NAMESPACE_ANNOTATION.to_owned(), namespace);
    notes.insert(stamps::WORK_NAME_ANNOTATION.to_owned(), work_name);
    work.spec = WorkSpec {
        workload: WorkloadTemplate {
            manifests: vec![manifest(object, ids, notes)],
        },
        suspend_dispatching: false,
        preserve_resources_on_deletion: true,
    };
    work
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shop() -> Value {
        json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "shop", "uid": "n-1", "labels": {"team": "blue"}},
            "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}})
    }

    fn clusters(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_namespace_goes_where_its_content_goes_and_stays() {
        let mut works = BTreeMap::new();
        for step in decide(Some(&shop()), &clusters(&["a", "b"]), &works) {
            let Action::CreateWork { cluster, work } = step.action else {
                panic!("{step:?}");
            };
            works.insert(cluster, work);
        }
        assert_eq!(works.len(), 2);
        let work = &works["a"];
        assert!(carries(work, "shop") && !carries(work, "other"));
        assert!(work.spec.preserve_resources_on_deletion);
        let manifest = &work.spec.workload.manifests[0];
        assert_eq!(manifest["metadata"]["labels"]["team"], "blue");
        assert!(manifest.get("spec").is_none() && manifest.get("status").is_none());
        assert!(decide(Some(&shop()), &clusters(&["a", "b"]), &works).is_empty());

        let steps = decide(Some(&shop()), &clusters(&["a"]), &works);
        assert_eq!(steps.len(), 1);
        assert_eq!(
            steps[0].action,
            Action::DeleteWork {
                cluster: "b".into()
            }
        );
        assert_eq!(decide(None, &clusters(&["a", "b"]), &works).len(), 2);
    }

    #[test]
    fn which_namespaces_follow() {
        for (name, expected) in [
            ("shop", true),
            ("default", false),
            ("kube-system", false),
            ("karmada-es-a", false),
        ] {
            assert_eq!(follows(name), expected, "{name}");
        }
    }
}
