//! The merge schemas of Kubernetes' own kinds, which are part of the program.

use std::sync::OnceLock;

use evenkeel_api::{
    kind::Kind,
    schema::{Schemas, TypeRef},
};

/// The merge-relevant part of the OpenAPI document of Kubernetes 1.36: types, list types and keys, defaults.
static BYTES: &[u8] = include_bytes!("merge-schema.json.gz");

/// The schema of a kind; `None` when the document does not have it.
pub fn of(kind: &Kind) -> Option<TypeRef> {
    static SCHEMAS: OnceLock<Option<Schemas>> = OnceLock::new();
    SCHEMAS
        .get_or_init(|| Schemas::from_gzip(BYTES).ok())
        .as_ref()?
        .kind(&kind.api_version(), kind.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_readable_and_has_the_common_kinds() {
        assert!(Schemas::from_gzip(BYTES).is_ok());
        for kind in crate::kinds::kubernetes() {
            let is_common = matches!(
                kind.kind,
                "Pod"
                    | "Deployment"
                    | "StatefulSet"
                    | "DaemonSet"
                    | "Job"
                    | "CronJob"
                    | "Service"
                    | "ConfigMap"
                    | "Secret"
                    | "Namespace"
                    | "ServiceAccount"
                    | "Lease"
                    | "Ingress"
            );
            assert!(!is_common || kind.schema.is_some(), "{}", kind.kind);
        }
    }
}
