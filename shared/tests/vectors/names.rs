use evenkeel_shared::names;
use serde_json::{Value, json};

#[test]
fn names_are_the_references() {
    super::check("names", |input| {
        let text = |field: &str| input[field].as_str().unwrap_or_default();
        match text("op") {
            "names" => json!({
                "workName": names::work_name(text("kind"), text("name"), text("namespace")),
                "bindingName": names::binding_name(text("kind"), text("name")),
                "executionNamespace": names::execution_namespace(text("cluster")),
                "referenceKey": names::binding_reference_key(text("namespace"), text("name")),
                "reservedNamespace": names::is_reserved_namespace(text("namespace")),
            }),
            "clusterOf" => match names::cluster_of_namespace(text("executionNamespace")) {
                Some(cluster) => json!({"cluster": cluster}),
                None => json!({"error": error_text(text("executionNamespace"))}),
            },
            other => Value::from(format!("unknown op {other}")),
        }
    });
}

fn error_text(namespace: &str) -> String {
    format!("the execution space name is in wrong format: {namespace}")
}
