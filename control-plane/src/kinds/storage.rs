//! `storage.k8s.io/v1`: StorageClass, as a template.

use std::sync::Arc;

use evenkeel_api::kind::{Kind, KindScope, Strategy};
use evenkeel_shared::field::FieldError;
use serde_json::Value;

use super::{
    builtin,
    column::{age, shown},
    look::{at, drop_nothing, fill, text},
    print,
    rules::immutable,
};

/// StorageClass.
pub fn kinds() -> Vec<Kind> {
    vec![Kind {
        short_names: &["sc"],
        scope: KindScope::Cluster,
        columns: vec![
            shown(
                "Provisioner",
                "string",
                "Provisioner indicates the type of the provisioner.",
                |object, _| text(object, "/provisioner").into(),
            ),
            shown(
                "ReclaimPolicy",
                "string",
                "The reclaim policy of volumes that this class makes.",
                |object, _| print::scalar(object, "/reclaimPolicy", "Delete").into(),
            ),
            shown(
                "VolumeBindingMode",
                "string",
                "When volumes are bound.",
                |object, _| print::scalar(object, "/volumeBindingMode", "<unset>").into(),
            ),
            shown(
                "AllowVolumeExpansion",
                "string",
                "Whether volumes may grow.",
                |object, _| (at(object, "/allowVolumeExpansion") == true).into(),
            ),
            age(),
        ],
        strategy: Arc::new(StorageClass),
        unconditional_update: true,
        ..builtin(
            "storage.k8s.io",
            "v1",
            "StorageClass",
            "storageclasses",
            "storageclass",
        )
    }]
}

struct StorageClass;

impl Strategy for StorageClass {
    fn default(&self, object: &mut Value) {
        drop_nothing(object);
        fill(object, "reclaimPolicy", "Delete");
        fill(object, "volumeBindingMode", "Immediate");
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        if text(object, "/provisioner").is_empty() {
            return vec![FieldError::required("provisioner", "")];
        }
        Vec::new()
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        immutable(
            new,
            old,
            &[
                "provisioner",
                "parameters",
                "reclaimPolicy",
                "volumeBindingMode",
            ],
        )
    }
}
