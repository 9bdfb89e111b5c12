//! Fields that a write does not own: those that its endpoint cannot change, and those that are never tracked.

use std::sync::OnceLock;

use super::{fieldset::FieldSet, managed::Manager};
use crate::schema::TypeRef;

/// What nobody owns: identity and what the server sets.
pub(super) fn untracked() -> &'static FieldSet {
    static SET: OnceLock<FieldSet> = OnceLock::new();
    SET.get_or_init(|| {
        FieldSet::of_fields(&[
            &["apiVersion"],
            &["kind"],
            &["metadata"],
            &["metadata", "name"],
            &["metadata", "namespace"],
            &["metadata", "creationTimestamp"],
            &["metadata", "selfLink"],
            &["metadata", "uid"],
            &["metadata", "clusterName"],
            &["metadata", "generation"],
            &["metadata", "managedFields"],
            &["metadata", "resourceVersion"],
        ])
    })
}

/// What a write through this endpoint leaves as it is, with everything below.
pub(super) fn fields(ty: &TypeRef, manager: &Manager) -> FieldSet {
    match (manager.subresource.as_deref(), ty.is_builtin()) {
        (None, _) if manager.has_status => FieldSet::of_fields(&[&["status"]]),
        (Some("status"), true) => FieldSet::of_fields(&[&["spec"], &["metadata", "labels"]]),
        (Some("status"), false) => {
            FieldSet::of_fields(&[&["apiVersion"], &["kind"], &["metadata"], &["spec"]])
        }
        _ => FieldSet::default(),
    }
}
