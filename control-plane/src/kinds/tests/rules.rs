use serde_json::{Value, json};

use super::kind;

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let containers = json!([{"name": "c", "image": "i"}]);
    let labels = json!({"labels": {"a": "b"}});
    let selector = json!({"matchLabels": {"a": "b"}});
    let table: [(&str, Value, &[&str]); 16] = [
        (
            "Deployment",
            json!({}),
            &[
                "spec.selector",
                "spec.template.metadata.labels",
                "spec.template.spec.containers",
            ],
        ),
        (
            "Deployment",
            json!({"spec": {"selector": {"matchLabels": {"a": "x"}}, "template": {"metadata": labels, "spec": {"containers": containers}}}}),
            &["spec.template.metadata.labels"],
        ),
        (
            "Deployment",
            json!({"spec": {"replicas": -1, "selector": selector, "template": {"metadata": labels, "spec": {"containers": containers}}}}),
            &["spec.replicas"],
        ),
        (
            "Deployment",
            json!({"spec": {"strategy": {"type": "Bogus"}, "selector": selector, "template": {"metadata": labels, "spec": {"containers": containers}}}}),
            &["spec.strategy"],
        ),
        (
            "Deployment",
            json!({"spec": {"selector": selector, "template": {"metadata": labels, "spec": {"containers": [
                {"name": "c", "image": "i", "ports": [{"containerPort": 0}, {"containerPort": 70000}, {"containerPort": 80, "protocol": "X"}]}, {"name": "c"},
            ]}}}}),
            &[
                "spec.template.spec.containers[0].ports[0].containerPort",
                "spec.template.spec.containers[0].ports[1].containerPort",
                "spec.template.spec.containers[0].ports[2].protocol",
                "spec.template.spec.containers[1].name",
                "spec.template.spec.containers[1].image",
            ],
        ),
        (
            "Job",
            json!({"spec": {}}),
            &[
                "spec.template.spec.containers",
                "spec.template.spec.restartPolicy",
            ],
        ),
        ("Service", json!({"spec": {}}), &["spec.ports"]),
        (
            "Service",
            json!({"spec": {"ports": [{"port": 80}, {"port": 81}]}}),
            &["spec.ports[0].name", "spec.ports[1].name"],
        ),
        (
            "Service",
            json!({"spec": {"ports": [{"port": 0}]}}),
            &["spec.ports[0].port", "spec.ports[0].targetPort"],
        ),
        ("Ingress", json!({"spec": {}}), &["spec"]),
        (
            "Secret",
            json!({"type": "kubernetes.io/tls"}),
            &["data[tls.crt]", "data[tls.key]"],
        ),
        (
            "Secret",
            json!({"stringData": {"bad key": "x"}}),
            &["data[bad key]"],
        ),
        (
            "Cluster",
            json!({"metadata": {"name": "m"}, "spec": {"taints": [{"key": 1}]}}),
            &["spec.taints[0].key"],
        ),
        (
            "Cluster",
            json!({"metadata": {"name": "a.b"}, "spec": {"syncMode": "Pull"}}),
            &["metadata.name"],
        ),
        (
            "PropagationPolicy",
            json!({"spec": {"resourceSelectors": [{"kind": "Pod"}]}}),
            &["spec.resourceSelectors[0].apiVersion"],
        ),
        (
            "Work",
            json!({"spec": {"workload": {"manifests": [{"kind": "Pod"}]}}}),
            &["spec.workload.manifests[0].apiVersion"],
        ),
    ];
    for (name, mut object, paths) in table {
        let kind = kind(name);
        kind.strategy.default(&mut object);
        let got = kind.strategy.validate(&object);
        let got = got
            .iter()
            .map(|error| error.path.as_str())
            .collect::<Vec<_>>();
        assert_eq!(got, paths, "{name} {object}");
    }
}

#[test]
fn what_may_not_change_is_refused() {
    let table = [
        ("Secret", json!({"type": "a"}), json!({"type": "b"}), "type"),
        (
            "Secret",
            json!({"type": "a", "immutable": true, "data": {}}),
            json!({"type": "a", "immutable": true, "data": {"x": "eA=="}}),
            "data",
        ),
        (
            "ConfigMap",
            json!({"immutable": true}),
            json!({}),
            "immutable",
        ),
        (
            "Deployment",
            json!({"spec": {"selector": {"matchLabels": {"a": "1"}}}}),
            json!({"spec": {"selector": {"matchLabels": {"a": "2"}}}}),
            "spec.selector",
        ),
        (
            "RoleBinding",
            json!({"roleRef": {"name": "a"}}),
            json!({"roleRef": {"name": "b"}}),
            "roleRef",
        ),
        (
            "StatefulSet",
            json!({"spec": {"serviceName": "a"}}),
            json!({"spec": {"serviceName": "b"}}),
            "spec",
        ),
        (
            "Cluster",
            json!({"spec": {"id": "a"}}),
            json!({"spec": {"id": "b"}}),
            "spec.id",
        ),
    ];
    for (name, old, new, path) in table {
        let kind = kind(name);
        let got = kind.strategy.validate_update(&new, &old);
        let got = got
            .iter()
            .map(|error| error.path.as_str())
            .collect::<Vec<_>>();
        assert_eq!(got, [path], "{name}");
        assert!(
            kind.strategy.validate_update(&old, &old).is_empty(),
            "{name}: nothing changed"
        );
    }
}
