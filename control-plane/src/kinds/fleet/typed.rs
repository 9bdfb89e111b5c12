//! Kinds whose spec and status are types of the protocol: unknown fields are pruned, wrong types named with their
//! place, defaults filled in, rules checked.

use evenkeel_api::kind::Strategy;
use evenkeel_shared::{
    binding::{ResourceBindingSpec, ResourceBindingStatus},
    field::FieldError,
    overrides::OverrideSpec,
    policy::{ClusterTaintPolicySpec, PropagationSpec},
    read, validate,
    work::{WorkSpec, WorkStatus},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::kinds::look::{at, fill, text};

type Parse<T> = fn(&Value) -> Result<T, FieldError>;

/// A kind with a spec of type `S`, and a status of type `T` where it has one.
pub struct Typed<S, T = ()> {
    /// Fills in what the client left out of the spec.
    pub default: fn(&mut Value),
    /// The rules of the spec, in a namespace (empty: cluster-scoped).
    pub validate: fn(&S, &str) -> Vec<FieldError>,
    /// Reads the status, where there is one.
    pub status: Option<Parse<T>>,
}

impl<S, T> Clone for Typed<S, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S, T> Copy for Typed<S, T> {}

/// Works: nothing is filled in; manifests are the template's, and stay untouched.
pub const WORK: Typed<WorkSpec, WorkStatus> = Typed {
    default: |_| {},
    validate: |spec, _| validate::work(spec),
    status: Some(parse),
};

/// Both kinds of bindings.
pub const BINDING: Typed<ResourceBindingSpec, ResourceBindingStatus> = Typed {
    default: |spec| {
        fill(spec, "conflictResolution", "Abort");
        failover(spec);
        placement(spec);
    },
    validate: |spec, _| validate::binding(spec),
    status: Some(parse),
};

/// Both kinds of propagation policies.
pub const PROPAGATION: Typed<PropagationSpec> = Typed {
    default: |spec| {
        fill(spec, "conflictResolution", "Abort");
        fill(spec, "preemption", "Never");
        fill(spec, "priority", 0);
        fill(spec, "schedulerName", "default-scheduler");
        failover(spec);
        placement(spec);
    },
    validate: validate::propagation_policy,
    status: None,
};

/// Both kinds of override policies.
pub const OVERRIDES: Typed<OverrideSpec> = Typed {
    default: |_| {},
    validate: validate::override_policy,
    status: None,
};

/// Taints by condition. Taints that evict need nobody's leave beyond the right to write the policy.
pub const TAINTS: Typed<ClusterTaintPolicySpec> = Typed {
    default: |_| {},
    validate: |spec, _| validate::taint_policy(spec, true),
    status: None,
};

fn failover(spec: &mut Value) {
    if let Some(application) = spec.pointer_mut("/failover/application") {
        fill(application, "purgeMode", "Gracefully");
        if application["purgeMode"] == "Gracefully" {
            fill(application, "gracePeriodSeconds", 600);
        }
        if let Some(conditions) = application.get_mut("decisionConditions") {
            fill(conditions, "tolerationSeconds", 300);
        }
    }
    if let Some(cluster) = spec.pointer_mut("/failover/cluster") {
        fill(cluster, "purgeMode", "Gracefully");
    }
}

fn placement(spec: &mut Value) {
    if let Some(scheduling) = spec.pointer_mut("/placement/replicaScheduling") {
        fill(scheduling, "replicaSchedulingType", "Divided");
        if text(scheduling, "/replicaSchedulingType") == "Divided" {
            fill(scheduling, "replicaDivisionPreference", "Weighted");
        }
    }
}

fn parse<T: DeserializeOwned>(status: &Value) -> Result<T, FieldError> {
    read::read(status, "status").map(|reading| reading.value)
}

/// Drops what the type does not know. What does not have the type stays, for validation to name.
pub fn prune<T: DeserializeOwned>(object: &mut Value, field: &str) {
    let Some(part) = object.get_mut(field) else {
        return;
    };
    if let Ok(dropped) = read::read::<T>(part, field).map(|reading| reading.dropped) {
        read::prune(part, &dropped);
    }
}

impl<S, T> Strategy for Typed<S, T>
where
    S: DeserializeOwned + Send + Sync + 'static,
    T: DeserializeOwned + Send + Sync + 'static,
{
    fn default(&self, object: &mut Value) {
        if let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) {
            (self.default)(spec);
        }
        prune::<S>(object, "spec");
        if self.status.is_some() {
            prune::<T>(object, "status");
        }
        // What only a status may hold, and what no type of this kind knows.
        if let Some(fields) = object.as_object_mut() {
            let known = ["apiVersion", "kind", "metadata", "spec", "status"];
            fields.retain(|name, value| {
                known.contains(&name.as_str())
                    && !value.is_null()
                    && (name != "status" || self.status.is_some())
            });
        }
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let spec = at(object, "/spec");
        if spec.is_null() {
            return vec![FieldError::required("spec", "")];
        }
        let mut errors = Vec::new();
        match read::read::<S>(spec, "spec") {
            Ok(reading) => {
                let namespace = text(object, "/metadata/namespace");
                errors.extend((self.validate)(&reading.value, namespace));
            }
            Err(error) => errors.push(error),
        }
        if let (Some(parse), Some(status)) = (self.status, object.get("status")) {
            errors.extend(parse(status).err());
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_are_the_references() {
        let mut policy = json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": "p"},
            "spec": {
                "resourceSelectors": [{"apiVersion": "v1", "kind": "Pod", "odd": 1}],
                "placement": {"replicaScheduling": {}},
                "failover": {"application": {"decisionConditions": {}}, "cluster": {}},
            },
            "status": {"x": 1},
        });
        PROPAGATION.default(&mut policy);
        assert_eq!(
            policy["spec"],
            json!({
                "conflictResolution": "Abort", "preemption": "Never", "priority": 0, "schedulerName": "default-scheduler",
                "resourceSelectors": [{"apiVersion": "v1", "kind": "Pod"}],
                "placement": {"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}},
                "failover": {
                    "application": {"decisionConditions": {"tolerationSeconds": 300}, "purgeMode": "Gracefully", "gracePeriodSeconds": 600},
                    "cluster": {"purgeMode": "Gracefully"},
                },
            })
        );
        assert!(policy.get("status").is_none());
        let again = policy.clone();
        PROPAGATION.default(&mut policy);
        assert_eq!(policy, again, "defaults are filled in once");
    }
}
