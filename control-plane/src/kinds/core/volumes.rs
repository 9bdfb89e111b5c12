//! PersistentVolumeClaim and PersistentVolume, as templates.

use evenkeel_api::{
    failure::Failure,
    kind::{Column, RequestContext, Strategy},
};
use evenkeel_shared::field::FieldError;
use serde_json::{Value, json};

use super::pointer;
use crate::kinds::{
    column::{age, shown, wide},
    look::{at, child, drop_nothing, fill, items, text},
    pod, print,
};

pub fn claim_columns() -> Vec<Column> {
    vec![
        shown(
            "Status",
            "string",
            "phase represents the current phase of PersistentVolumeClaim.",
            |object, _| phase(object),
        ),
        shown(
            "Volume",
            "string",
            "volumeName is the binding reference to the PersistentVolume backing this claim.",
            |object, _| text(object, "/spec/volumeName").into(),
        ),
        shown(
            "Capacity",
            "string",
            "capacity represents the actual resources of the underlying volume.",
            |object, _| bound(object, text(object, "/status/capacity/storage")),
        ),
        shown(
            "Access Modes",
            "string",
            "accessModes contains the actual access modes the volume backing the PVC has. More info: https://kubernetes.io/docs/concepts/storage/persistent-volumes#access-modes-1",
            |object, _| {
                bound(
                    object,
                    &print::access_modes(items(object, "/status/accessModes")),
                )
            },
        ),
        shown(
            "StorageClass",
            "string",
            "StorageClass of the pvc",
            |object, _| text(object, "/spec/storageClassName").into(),
        ),
        shown(
            "VolumeAttributesClass",
            "string",
            "VolumeAttributesClass of the pvc",
            |object, _| print::scalar(object, "/spec/volumeAttributesClassName", "<unset>").into(),
        ),
        age(),
        wide(
            "VolumeMode",
            "string",
            "volumeMode defines what type of volume is required by the claim. Value of Filesystem is implied when not included in claim spec.",
            |object, _| print::scalar(object, "/spec/volumeMode", "<unset>").into(),
        ),
    ]
}

pub fn volume_columns() -> Vec<Column> {
    vec![
        pointer(
            "Capacity",
            "string",
            "The volume's size.",
            "/spec/capacity/storage",
        ),
        shown(
            "Access Modes",
            "string",
            "How the volume may be mounted.",
            |object, _| print::access_modes(items(object, "/spec/accessModes")).into(),
        ),
        pointer(
            "Reclaim Policy",
            "string",
            "What happens when its claim goes.",
            "/spec/persistentVolumeReclaimPolicy",
        ),
        shown("Status", "string", "Whether it is bound.", |object, _| {
            phase(object)
        }),
        shown(
            "Claim",
            "string",
            "The claim that it is bound to.",
            |object, _| {
                let claim = at(object, "/spec/claimRef");
                if claim.is_null() {
                    return "".into();
                }
                format!("{}/{}", text(claim, "/namespace"), text(claim, "/name")).into()
            },
        ),
        shown(
            "StorageClass",
            "string",
            "The class that it is of.",
            |object, _| text(object, "/spec/storageClassName").into(),
        ),
        shown(
            "VolumeAttributesClass",
            "string",
            "The attributes that it has.",
            |object, _| print::scalar(object, "/spec/volumeAttributesClassName", "<unset>").into(),
        ),
        shown(
            "Reason",
            "string",
            "Why it is in this state.",
            |object, _| text(object, "/status/reason").into(),
        ),
        age(),
        wide(
            "VolumeMode",
            "string",
            "Whether it is a file system.",
            |object, _| print::scalar(object, "/spec/volumeMode", "<unset>").into(),
        ),
    ]
}

fn phase(object: &Value) -> Value {
    if at(object, "/metadata/deletionTimestamp").is_null() {
        text(object, "/status/phase").into()
    } else {
        "Terminating".into()
    }
}

/// Shown only when the claim is bound to a volume.
fn bound(object: &Value, shown: &str) -> Value {
    if text(object, "/spec/volumeName").is_empty() {
        "".into()
    } else {
        shown.into()
    }
}

pub struct Claim;

impl Strategy for Claim {
    fn default(&self, object: &mut Value) {
        drop_nothing(object);
        if let Some(spec) = child(object, "spec") {
            fill(spec, "volumeMode", "Filesystem");
        }
        if let Some(amounts) = object.pointer_mut("/spec/resources/requests") {
            pod::canonical(amounts);
        }
    }

    fn prepare_create(&self, _: &RequestContext, object: &mut Value) -> Result<(), Failure> {
        fill(object, "status", json!({"phase": "Pending"}));
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if items(object, "/spec/accessModes").is_empty() {
            let why = "at least 1 access mode is required";
            errors.push(FieldError::required("spec.accessModes", why));
        }
        if at(object, "/spec/resources/requests/storage").is_null() {
            errors.push(FieldError::required("spec.resources[storage]", ""));
        }
        errors
    }
}

pub struct Volume;

impl Strategy for Volume {
    fn default(&self, object: &mut Value) {
        drop_nothing(object);
        if let Some(spec) = child(object, "spec") {
            fill(spec, "persistentVolumeReclaimPolicy", "Retain");
            fill(spec, "volumeMode", "Filesystem");
        }
    }

    fn prepare_create(&self, _: &RequestContext, object: &mut Value) -> Result<(), Failure> {
        fill(object, "status", json!({"phase": "Pending"}));
        Ok(())
    }
}
