//! Namespace: kept while it terminates, until its content is gone and its finalizers are taken out.

use evenkeel_api::{
    failure::Failure,
    kind::{RequestContext, Strategy, Subresource, SubresourceKind},
};
use serde_json::{Value, json};

use crate::kinds::look::{at, child, fill, items, text};

/// The label that carries a namespace's own name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";
/// What the namespace controller takes out when the content is gone.
const FINALIZER: &str = "kubernetes";
/// Namespaces that may not be deleted.
const LASTING: [&str; 3] = ["default", "kube-system", "kube-public"];

pub struct Namespace;

impl Strategy for Namespace {
    fn default(&self, object: &mut Value) {
        let name = text(object, "/metadata/name").to_owned();
        if name.is_empty() {
            return;
        }
        if let Some(labels) =
            child(object, "metadata").and_then(|metadata| child(metadata, "labels"))
        {
            labels[NAME_LABEL] = name.into();
        }
    }

    fn prepare_create(&self, _: &RequestContext, object: &mut Value) -> Result<(), Failure> {
        // A generated name is known only now.
        self.default(object);
        let Some(spec) = child(object, "spec") else {
            return Err(Failure::bad_request("spec is no object"));
        };
        let mut finalizers = items(spec, "/finalizers").to_vec();
        if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
            finalizers.push(FINALIZER.into());
        }
        spec["finalizers"] = finalizers.into();
        object["status"] = json!({"phase": "Active"});
        Ok(())
    }

    fn prepare_update(
        &self,
        _: &RequestContext,
        new: &mut Value,
        old: &Value,
    ) -> Result<(), Failure> {
        new["spec"] = old["spec"].clone();
        Ok(())
    }

    fn validate_delete(&self, _: &RequestContext, object: &Value) -> Result<(), Failure> {
        let name = text(object, "/metadata/name");
        if LASTING.contains(&name) {
            let why = "this namespace may not be deleted";
            return Err(Failure::forbidden("", "namespaces", name, why));
        }
        Ok(())
    }

    fn begin_delete(&self, object: &mut Value) {
        if let Some(status) = child(object, "status") {
            status["phase"] = "Terminating".into();
        }
    }

    fn holds_deletion(&self, object: &Value) -> bool {
        !items(object, "/spec/finalizers").is_empty()
    }
}

/// Writes `spec.finalizers` and nothing else.
pub fn finalize() -> Subresource {
    Subresource {
        name: "finalize",
        kind: SubresourceKind::Part(|_, body, stored| {
            let mut object = stored.clone();
            if child(&mut object, "spec").is_none() {
                fill(&mut object, "spec", json!({}));
            }
            object["spec"]["finalizers"] = match at(body, "/spec/finalizers") {
                Value::Array(finalizers) => finalizers.clone().into(),
                _ => json!([]),
            };
            Ok(object)
        }),
    }
}
