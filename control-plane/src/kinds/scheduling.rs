//! `scheduling.k8s.io/v1`: PriorityClass.

use std::sync::Arc;

use evenkeel_api::kind::{Kind, KindScope, Strategy};
use evenkeel_shared::field::FieldError;
use serde_json::Value;

use super::{
    builtin,
    column::{age, shown},
    look::{at, drop_nothing, fill, number},
    print,
    rules::immutable,
};

/// PriorityClass.
pub fn kinds() -> Vec<Kind> {
    vec![Kind {
        short_names: &["pc"],
        scope: KindScope::Cluster,
        columns: vec![
            shown(
                "Value",
                "string",
                "Value represents the integer value of this priority class.",
                |object, _| number(object, "/value").into(),
            ),
            shown(
                "Global-Default",
                "string",
                "Whether pods without a class get this one.",
                |object, _| (at(object, "/globalDefault") == true).into(),
            ),
            age(),
            shown(
                "PreemptionPolicy",
                "string",
                "Whether pods of this class displace others.",
                |object, _| print::scalar(object, "/preemptionPolicy", print::NONE).into(),
            ),
        ],
        strategy: Arc::new(PriorityClass),
        generation: true,
        unconditional_update: true,
        ..builtin(
            "scheduling.k8s.io",
            "v1",
            "PriorityClass",
            "priorityclasses",
            "priorityclass",
        )
    }]
}

struct PriorityClass;

impl Strategy for PriorityClass {
    fn default(&self, object: &mut Value) {
        drop_nothing(object);
        fill(object, "preemptionPolicy", "PreemptLowerPriority");
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        immutable(new, old, &["value", "preemptionPolicy"])
    }
}
