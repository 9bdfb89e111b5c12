//! `policy/v1`: PodDisruptionBudget, as a template.

use std::sync::Arc;

use evenkeel_api::{
    failure::Failure,
    kind::{Kind, RequestContext, Strategy},
};
use evenkeel_shared::field::FieldError;
use serde_json::{Value, json};

use super::{
    builtin,
    column::{age, shown},
    look::{at, drop_nothing, fill, number},
    print, status,
};

/// PodDisruptionBudget.
pub fn kinds() -> Vec<Kind> {
    vec![Kind {
        short_names: &["pdb"],
        columns: vec![
            shown(
                "Min Available",
                "string",
                "The minimum number of pods that must be available.",
                |object, _| print::scalar(object, "/spec/minAvailable", "N/A").into(),
            ),
            shown(
                "Max Unavailable",
                "string",
                "The maximum number of pods that may be unavailable.",
                |object, _| print::scalar(object, "/spec/maxUnavailable", "N/A").into(),
            ),
            shown(
                "Allowed Disruptions",
                "integer",
                "Calculated number of pods that may be disrupted at this time.",
                |object, _| number(object, "/status/disruptionsAllowed").into(),
            ),
            age(),
        ],
        subresources: vec![status()],
        strategy: Arc::new(Budget),
        generation: true,
        ..builtin(
            "policy",
            "v1",
            "PodDisruptionBudget",
            "poddisruptionbudgets",
            "poddisruptionbudget",
        )
    }]
}

struct Budget;

impl Strategy for Budget {
    fn default(&self, object: &mut Value) {
        drop_nothing(object);
    }

    fn prepare_create(&self, _: &RequestContext, object: &mut Value) -> Result<(), Failure> {
        let status = json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0});
        fill(object, "status", status);
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let both = ["/spec/minAvailable", "/spec/maxUnavailable"]
            .iter()
            .all(|field| !at(object, field).is_null());
        if !both {
            return Vec::new();
        }
        vec![FieldError::invalid(
            "spec",
            at(object, "/spec"),
            "minAvailable and maxUnavailable cannot be both set",
        )]
    }
}
