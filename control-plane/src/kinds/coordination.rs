//! `coordination.k8s.io/v1`: Lease. The renewals of members' leases are volatile.

use std::sync::Arc;

use evenkeel_api::kind::{Kind, Strategy};
use evenkeel_shared::{field::FieldError, names};
use serde_json::Value;

use super::{
    builtin,
    column::{age, shown},
    look::{at, drop_field, text},
};

/// Lease.
pub fn kinds() -> Vec<Kind> {
    vec![Kind {
        columns: vec![
            shown(
                "Holder",
                "string",
                "holderIdentity contains the identity of the holder of a current lease. If Coordinated Leader Election is used, the holder identity must be equal to the elected LeaseCandidate.metadata.name field.",
                |object, _| text(object, "/spec/holderIdentity").into(),
            ),
            age(),
        ],
        strategy: Arc::new(Lease),
        create_on_update: true,
        ..builtin("coordination.k8s.io", "v1", "Lease", "leases", "lease")
    }]
}

struct Lease;

impl Strategy for Lease {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let positive = |field: &str| {
            let value = at(object, &format!("/spec/{field}"));
            value.as_i64().is_some_and(|value| value <= 0).then(|| {
                FieldError::invalid(format!("spec.{field}"), value, "must be greater than 0")
            })
        };
        let negative = |field: &str| {
            let value = at(object, &format!("/spec/{field}"));
            value.as_i64().is_some_and(|value| value < 0).then(|| {
                let why = "must be greater than or equal to 0";
                FieldError::invalid(format!("spec.{field}"), value, why)
            })
        };
        positive("leaseDurationSeconds")
            .into_iter()
            .chain(negative("leaseTransitions"))
            .collect()
    }

    /// A renewal changes `spec.renewTime`, and with it the times in managedFields, and nothing else.
    fn is_volatile(&self, new: &Value, old: &Value) -> bool {
        text(new, "/metadata/namespace") == names::CLUSTER_NAMESPACE
            && without_renewal(new) == without_renewal(old)
    }
}

fn without_renewal(lease: &Value) -> Value {
    let mut lease = lease.clone();
    if let Some(spec) = lease.get_mut("spec") {
        drop_field(spec, "renewTime");
    }
    if let Some(metadata) = lease.get_mut("metadata") {
        drop_field(metadata, "resourceVersion");
        for entry in super::look::each(metadata, "managedFields") {
            drop_field(entry, "time");
        }
    }
    lease
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_renewals_of_members_leases_are_volatile() {
        let lease = |namespace: &str, holder: &str, renewed: &str, entry: &str| {
            json!({
                "metadata": {"name": "a", "namespace": namespace, "resourceVersion": renewed, "managedFields": [
                    {"manager": "m", "time": renewed, "fieldsV1": {"f:spec": {entry: {}}}},
                ]},
                "spec": {"holderIdentity": holder, "renewTime": renewed},
            })
        };
        let old = lease("karmada-cluster", "a", "1", "f:x");
        for (name, new, volatile) in [
            ("a renewal", lease("karmada-cluster", "a", "2", "f:x"), true),
            (
                "another holder",
                lease("karmada-cluster", "b", "2", "f:x"),
                false,
            ),
            (
                "another owner of a field",
                lease("karmada-cluster", "a", "2", "f:y"),
                false,
            ),
        ] {
            assert_eq!(Lease.is_volatile(&new, &old), volatile, "{name}");
        }
        let elsewhere = lease("default", "a", "1", "f:x");
        assert!(!Lease.is_volatile(&lease("default", "a", "2", "f:x"), &elsewhere));
    }
}
