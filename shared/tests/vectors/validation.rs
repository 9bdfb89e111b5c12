use evenkeel_shared::{
    cluster::Cluster,
    field::{FieldError, FieldErrorKind},
    overrides::OverrideSpec,
    policy::{ClusterTaintPolicySpec, PropagationSpec},
    validate,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Where the rules here differ on purpose: by the field that the reference names, and what is said here instead.
fn field(reference: &str) -> &str {
    match reference {
        // Its paths are misspelt.
        "spec.spec" => "spec",
        "spec.Zone" => "spec.zone",
        "spec.Zones" => "spec.zones",
        "spec.suspension.suspension" => "spec.suspension",
        other => other,
    }
}

/// What the reference leaves to its schema, or lets through by an oversight, and these rules say themselves.
fn beyond(id: &str) -> Option<(FieldErrorKind, &'static str)> {
    let (kind, path) = match id {
        "policy-validation-p-0016" => (
            FieldErrorKind::NotSupported,
            "spec.placement.clusterTolerations[0].operator",
        ),
        "policy-validation-p-0024" => (
            FieldErrorKind::NotSupported,
            "spec.placement.spreadConstraints[0].spreadByField",
        ),
        "policy-validation-p-0042" => (FieldErrorKind::Required, "spec.resourceSelectors"),
        "policy-validation-p-0043" => (
            FieldErrorKind::Required,
            "spec.overriders.fieldOverrider[0]",
        ),
        _ => return None,
    };
    Some((kind, path))
}

fn read<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).expect("it decodes")
}

fn judge(input: &Value) -> Vec<FieldError> {
    let object = &input["object"];
    let spec = &object["spec"];
    let namespace = input["namespace"].as_str().unwrap_or_default();
    match input["kind"].as_str().unwrap_or_default() {
        "PropagationPolicy" | "ClusterPropagationPolicy" => {
            validate::propagation_policy(&read::<PropagationSpec>(spec), namespace)
        }
        "OverridePolicy" | "ClusterOverridePolicy" => {
            validate::override_policy(&read::<OverrideSpec>(spec), namespace)
        }
        "ClusterTaintPolicy" => validate::taint_policy(
            &read::<ClusterTaintPolicySpec>(spec),
            input["allowNoExecuteTaint"].as_bool().unwrap_or_default(),
        ),
        "Cluster" if input["oldObject"].is_object() => validate::cluster_update(
            &read::<Cluster>(object),
            &read::<Cluster>(&input["oldObject"]),
        ),
        "Cluster" => validate::cluster(&read::<Cluster>(object)),
        other => panic!("unknown kind {other}"),
    }
}

#[test]
fn policies_and_clusters_are_refused_for_the_references_reasons() {
    let mut wrong = Vec::new();
    for case in super::cases("policy-validation") {
        // Equal bounds in other units are equal here; a missing toleration is the default's matter.
        let note = case["note"].as_str().unwrap_or_default();
        if note.contains("numerically equal bounds") || note.contains("panics on this input") {
            continue;
        }
        let kinds = [
            FieldErrorKind::Required,
            FieldErrorKind::Invalid,
            FieldErrorKind::NotSupported,
            FieldErrorKind::Duplicate,
            FieldErrorKind::Forbidden,
            FieldErrorKind::TypeInvalid,
        ];
        let mut expected = Vec::new();
        for error in case["expect"]["errors"].as_array().into_iter().flatten() {
            let kind = kinds
                .into_iter()
                .find(|kind| error["type"] == kind.as_str());
            let path = field(error["field"].as_str().unwrap_or_default());
            expected.push((kind.expect("a known kind"), path.to_owned()));
        }
        let id = case["id"].as_str().unwrap_or_default();
        expected.extend(beyond(id).map(|(kind, path)| (kind, path.to_owned())));
        let mut got = judge(&case["input"])
            .into_iter()
            .map(|error| (error.kind, error.path))
            .collect::<Vec<_>>();
        let order = |list: &mut Vec<(FieldErrorKind, String)>| {
            for (_, path) in list.iter_mut() {
                // One error for all zones there, one per zone here.
                if path.starts_with("spec.zones[") {
                    "spec.zones".clone_into(path);
                }
            }
            list.sort_by_key(|(kind, path)| (path.clone(), kind.as_str()));
        };
        order(&mut got);
        order(&mut expected);
        if got != expected {
            wrong.push(format!(
                "{}: expected {expected:?}, got {got:?}; {}",
                case["id"], case["input"]
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
