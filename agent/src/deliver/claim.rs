//! Whose an object in the member is, and what may be done with it.

use evenkeel_shared::stamps::{
    CONFLICT_OVERWRITE, CONFLICT_RESOLUTION_ANNOTATION, MANAGED_LABEL, WORK_NAME_ANNOTATION,
    WORK_NAMESPACE_ANNOTATION,
};
use serde_json::Value;

/// What an apply may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Nothing is there.
    Create,
    /// It was placed by us: others' changes to what we set are taken back.
    Ours,
    /// It was there before, and the policy says to take it over.
    TakeOver,
    /// A namespace that was there before: what we set is added where nobody contradicts, and it stays when the Work
    /// goes.
    Share,
    /// It is being deleted; it is applied again when it is gone.
    Going,
    /// It was there before, and stays as it is.
    Refused,
}

fn is_managed(object: &Value) -> bool {
    object["metadata"]["labels"][MANAGED_LABEL] == "true"
}

/// What may be done to bring `live` to `desired`.
pub fn claim(live: Option<&Value>, desired: &Value) -> Claim {
    let Some(live) = live else {
        return Claim::Create;
    };
    if !live["metadata"]["deletionTimestamp"].is_null() {
        Claim::Going
    } else if is_managed(live) {
        Claim::Ours
    } else if desired["metadata"]["annotations"][CONFLICT_RESOLUTION_ANNOTATION]
        == CONFLICT_OVERWRITE
    {
        Claim::TakeOver
    } else if desired["kind"] == "Namespace" && desired["apiVersion"] == "v1" {
        Claim::Share
    } else {
        Claim::Refused
    }
}

/// Whether this object was placed by this Work, so that it goes with it.
pub fn belongs_to(live: &Value, namespace: &str, name: &str) -> bool {
    let annotations = &live["metadata"]["annotations"];
    is_managed(live)
        && annotations[WORK_NAMESPACE_ANNOTATION] == namespace
        && annotations[WORK_NAME_ANNOTATION] == name
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn claims() {
        let managed = json!({"metadata": {"labels": {"karmada.io/managed": "true"}}});
        let foreign = json!({"metadata": {"labels": {"app": "x"}}});
        let going = json!({"metadata": {"labels": {"karmada.io/managed": "true"}, "deletionTimestamp": "t"}});
        let plain = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}});
        let overwrite = json!({"kind": "Deployment", "metadata": {"annotations":
            {"work.karmada.io/conflict-resolution": "overwrite"}}});
        let abort = json!({"kind": "Deployment", "metadata": {"annotations":
            {"work.karmada.io/conflict-resolution": "abort"}}});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {}});
        let other = json!({"apiVersion": "x.io/v1", "kind": "Namespace", "metadata": {}});
        for (name, live, desired, expected) in [
            ("not there", None, &plain, Claim::Create),
            ("placed by us", Some(&managed), &plain, Claim::Ours),
            ("somebody's", Some(&foreign), &plain, Claim::Refused),
            ("somebody's, abort", Some(&foreign), &abort, Claim::Refused),
            (
                "somebody's, overwrite",
                Some(&foreign),
                &overwrite,
                Claim::TakeOver,
            ),
            ("a namespace", Some(&foreign), &namespace, Claim::Share),
            (
                "only a namesake of one",
                Some(&foreign),
                &other,
                Claim::Refused,
            ),
            ("on its way out", Some(&going), &plain, Claim::Going),
        ] {
            assert_eq!(claim(live, desired), expected, "{name}");
        }
    }

    #[test]
    fn only_what_a_work_placed_goes_with_it() {
        let object = |managed: &str, namespace: &str, name: &str| {
            json!({"metadata": {
                "labels": {"karmada.io/managed": managed},
                "annotations": {"work.karmada.io/namespace": namespace, "work.karmada.io/name": name},
            }})
        };
        let belongs = |object| belongs_to(&object, "karmada-es-m1", "w");
        assert!(belongs(object("true", "karmada-es-m1", "w")));
        assert!(!belongs(object("false", "karmada-es-m1", "w")));
        assert!(!belongs(object("true", "karmada-es-m2", "w")));
        assert!(!belongs(object("true", "karmada-es-m1", "other")));
        assert!(!belongs(json!({})));
    }
}
