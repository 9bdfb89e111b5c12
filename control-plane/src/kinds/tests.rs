use std::collections::BTreeSet;

use evenkeel_api::kind::{Cell, Kind, RequestContext};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{fleet, kubernetes};

fn all() -> Vec<Kind> {
    kubernetes().into_iter().chain(fleet()).collect()
}

fn kind(name: &str) -> Kind {
    let found = all().into_iter().find(|kind| kind.kind == name);
    found.unwrap_or_else(|| panic!("{name} is served"))
}

fn context() -> RequestContext {
    RequestContext {
        user: std::sync::Arc::default(),
        namespace: Some("n".into()),
        name: None,
        subresource: None,
        now: Timestamp::UNIX_EPOCH,
        dry_run: false,
    }
}

/// What is stored when this is created.
fn created(kind: &Kind, mut object: Value) -> Value {
    kind.strategy.default(&mut object);
    if let Some(fields) = object.as_object_mut().filter(|_| kind.has_status()) {
        fields.remove("status");
    }
    object["metadata"]["uid"] = "u".into();
    kind.strategy
        .prepare_create(&context(), &mut object)
        .expect("it can be created");
    object["metadata"]
        .as_object_mut()
        .map(|metadata| metadata.remove("uid"));
    object
}

#[test]
fn names_are_told_apart() {
    let mut paths = BTreeSet::new();
    let mut words = BTreeSet::new();
    for kind in all() {
        assert!(
            paths.insert((kind.group, kind.version, kind.plural)),
            "{} twice",
            kind.plural
        );
        for word in kind.short_names {
            assert!(words.insert(*word), "{word} is short for two kinds");
        }
        assert_eq!(kind.singular, kind.kind.to_lowercase());
    }
}

#[test]
fn objects_get_the_defaults_of_the_reference_server() {
    let container = json!({
        "name": "c", "image": "i", "resources": {}, "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File", "imagePullPolicy": "Always",
    });
    let pod = |policy: &str| {
        json!({
            "containers": [container], "restartPolicy": policy, "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst", "securityContext": {}, "schedulerName": "default-scheduler",
        })
    };
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let filled = json!({"metadata": {"labels": {"a": "b"}}, "spec": pod("Always")});
    let selector = json!({"matchLabels": {"a": "b"}});
    let once =
        json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    let table = [
        (
            "Deployment",
            json!({"metadata": {"name": "d"}, "spec": {"selector": selector, "template": template}}),
            json!({"metadata": {"name": "d"}, "spec": {
                "replicas": 1, "selector": selector, "template": filled,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
                "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
            }, "status": {}}),
        ),
        (
            "StatefulSet",
            json!({"metadata": {"name": "t"}, "spec": {"serviceName": "x", "selector": selector, "template": template}}),
            json!({"metadata": {"name": "t"}, "spec": {
                "replicas": 1, "selector": selector, "template": filled, "serviceName": "x",
                "podManagementPolicy": "OrderedReady",
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}, "revisionHistoryLimit": 10,
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            }, "status": {"replicas": 0, "availableReplicas": 0}}),
        ),
        (
            "Job",
            json!({"metadata": {"name": "j"}, "spec": {"suspend": true, "template": once}}),
            {
                let labels = json!({
                    "batch.kubernetes.io/controller-uid": "u", "batch.kubernetes.io/job-name": "j", "controller-uid": "u", "job-name": "j",
                });
                json!({"metadata": {"name": "j", "labels": labels}, "spec": {
                    "parallelism": 1, "completions": 1, "backoffLimit": 6,
                    "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}, "manualSelector": false,
                    "template": {"metadata": {"labels": labels}, "spec": pod("Never")},
                    "completionMode": "NonIndexed", "suspend": true, "podReplacementPolicy": "TerminatingOrFailed",
                }, "status": {}})
            },
        ),
        (
            "CronJob",
            json!({"metadata": {"name": "x"}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": once}}}}),
            json!({"metadata": {"name": "x"}, "spec": {
                "schedule": "* * * * *", "concurrencyPolicy": "Allow", "suspend": false,
                "jobTemplate": {"metadata": {}, "spec": {"template": {"metadata": {}, "spec": pod("Never")}}},
                "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1,
            }, "status": {}}),
        ),
        (
            "Service",
            json!({"metadata": {"name": "h"}, "spec": {"clusterIP": "None", "selector": {"app": "h"}, "ports": [{"name": "http", "port": 80}]}}),
            json!({"metadata": {"name": "h"}, "spec": {
                "ports": [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": 80}], "selector": {"app": "h"},
                "clusterIP": "None", "clusterIPs": ["None"], "type": "ClusterIP", "sessionAffinity": "None",
                "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster",
            }, "status": {"loadBalancer": {}}}),
        ),
        (
            "HorizontalPodAutoscaler",
            json!({"metadata": {"name": "x"}, "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 3, "metrics": [{"type": "x"}]}}),
            json!({"metadata": {"name": "x"}, "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": "d"}, "minReplicas": 1, "maxReplicas": 3, "metrics": [{"type": "x"}],
            }, "status": {"desiredReplicas": 0, "currentMetrics": null}}),
        ),
        (
            "NetworkPolicy",
            json!({"metadata": {"name": "x"}, "spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}}),
            json!({"metadata": {"name": "x"}, "spec": {
                "podSelector": {}, "ingress": [{"ports": [{"protocol": "TCP", "port": 80}]}], "policyTypes": ["Ingress"],
            }}),
        ),
        (
            "PersistentVolumeClaim",
            json!({"metadata": {"name": "x"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}}),
            json!({"metadata": {"name": "x"}, "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeMode": "Filesystem",
            }, "status": {"phase": "Pending"}}),
        ),
        (
            "Secret",
            json!({"metadata": {"name": "s"}, "stringData": {"a": "hello"}, "data": {"a": "b2xk", "c": "Yw=="}}),
            json!({"metadata": {"name": "s"}, "data": {"a": "aGVsbG8=", "c": "Yw=="}, "type": "Opaque"}),
        ),
        (
            "Namespace",
            json!({"metadata": {"name": "n", "labels": {"kubernetes.io/metadata.name": "forged"}}}),
            json!({"metadata": {"name": "n", "labels": {"kubernetes.io/metadata.name": "n"}},
                "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}),
        ),
        (
            "RoleBinding",
            json!({"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "view"}, "subjects": [{"kind": "User", "name": "d"}, {"kind": "ServiceAccount", "name": "s"}]}),
            json!({"metadata": {"name": "b"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
                "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "d"}, {"kind": "ServiceAccount", "name": "s"}]}),
        ),
        (
            "Event",
            json!({"metadata": {"name": "e", "namespace": "n"}, "involvedObject": {"namespace": "n"}, "lastTimestamp": "2024-01-01T00:00:05Z"}),
            json!({"metadata": {"name": "e", "namespace": "n"}, "involvedObject": {"namespace": "n"}, "source": {}, "firstTimestamp": null,
                "lastTimestamp": "2024-01-01T00:00:05Z", "eventTime": null, "reportingComponent": "", "reportingInstance": ""}),
        ),
    ];
    for (name, sent, stored) in table {
        let kind = kind(name);
        let got = created(&kind, sent);
        assert_eq!(got, stored, "{name}");
        let mut again = got.clone();
        kind.strategy.default(&mut again);
        assert_eq!(again, got, "{name}: defaults are filled in once");
    }
}

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

fn cells(kind: &Kind, object: &Value, now: &str) -> Vec<Value> {
    let now = now.parse().expect("a time");
    kind.columns
        .iter()
        .filter_map(|column| match column.cell {
            Cell::Pointer(pointer) => Some(object.pointer(pointer).cloned().unwrap_or(Value::Null)),
            Cell::Age => None,
            Cell::Computed(print) => Some(print(object, now)),
        })
        .collect()
}

#[test]
fn tables_show_what_the_reference_server_shows() {
    let now = "2024-01-01T00:01:05Z";
    let table = [
        (
            "ConfigMap",
            json!({"data": {"a": "1"}, "binaryData": {"b": ""}}),
            json!([2]),
        ),
        (
            "Secret",
            json!({"type": "Opaque", "data": {"a": ""}}),
            json!(["Opaque", 1]),
        ),
        (
            "Deployment",
            json!({"spec": {"replicas": 3, "selector": {"matchLabels": {"app": "d1"}}, "template": {"spec": {"containers": [{"name": "c", "image": "i:1"}, {"name": "e", "image": "j:2"}]}}}}),
            json!(["0/3", 0, 0, "c,e", "i:1,j:2", "app=d1"]),
        ),
        (
            "Service",
            json!({"spec": {"type": "NodePort", "clusterIP": "10.0.0.1", "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}, {"port": 81, "protocol": "UDP"}]}}),
            json!([
                "NodePort",
                "10.0.0.1",
                "<none>",
                "80:30080/TCP,81/UDP",
                "<none>"
            ]),
        ),
        (
            "Service",
            json!({"spec": {"type": "ExternalName", "externalName": "x.example.com"}}),
            json!([
                "ExternalName",
                "<none>",
                "x.example.com",
                "<none>",
                "<none>"
            ]),
        ),
        (
            "Event",
            json!({
                "metadata": {"name": "e5"}, "involvedObject": {"kind": "Pod", "name": "p"}, "reason": "R", "message": "m\n", "type": "Normal",
                "firstTimestamp": "2024-01-01T00:00:00Z", "lastTimestamp": "2024-01-01T00:00:05Z", "source": {"component": "c"}, "reportingInstance": "i",
            }),
            json!([
                "60s", "Normal", "R", "pod/p", "", "c, i", "m", "65s", 1, "e5"
            ]),
        ),
        (
            "Pod",
            json!({
                "spec": {"nodeName": "n1", "containers": [{"name": "a"}, {"name": "b"}]},
                "status": {"phase": "Running", "podIP": "10.0.0.9", "containerStatuses": [
                    {"name": "a", "ready": true, "restartCount": 2, "state": {"running": {}}, "lastState": {"terminated": {"finishedAt": "2024-01-01T00:00:05Z"}}},
                    {"name": "b", "ready": false, "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
                ]},
            }),
            json!([
                "1/2",
                "CrashLoopBackOff",
                "2 (60s ago)",
                "10.0.0.9",
                "n1",
                "<none>",
                "<none>"
            ]),
        ),
        (
            "Node",
            json!({
                "metadata": {"labels": {"node-role.kubernetes.io/worker": ""}}, "spec": {"unschedulable": true},
                "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"kubeletVersion": "v1"}, "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]},
            }),
            json!([
                "Ready,SchedulingDisabled",
                "worker",
                "v1",
                "10.0.0.1",
                "<none>",
                "<unknown>",
                "<unknown>",
                "<unknown>"
            ]),
        ),
        (
            "Job",
            json!({"spec": {"completions": 2, "selector": {"matchLabels": {"a": "b"}}}, "status": {"succeeded": 1, "startTime": "2024-01-01T00:00:05Z"}}),
            json!(["Running", "1/2", "60s", "", "", "a=b"]),
        ),
        (
            "HorizontalPodAutoscaler",
            json!({
                "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 3, "metrics": [
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
                ]},
                "status": {"currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 20}}}]},
            }),
            json!(["Deployment/d", "cpu: 20%/50%", "<unset>", 3, 0]),
        ),
        (
            "CertificateSigningRequest",
            json!({"spec": {"signerName": "s/x", "username": "u", "expirationSeconds": 86400}, "status": {"certificate": "x", "conditions": [{"type": "Approved"}]}}),
            json!(["s/x", "u", "24h", "Approved,Issued"]),
        ),
        (
            "Cluster",
            json!({
                "spec": {"syncMode": "Pull", "zones": ["a", "b"], "region": "r", "apiEndpoint": "https://x"},
                "status": {"kubernetesVersion": "v1.36.2", "conditions": [{"type": "Ready", "status": "True"}]},
            }),
            json!([
                "v1.36.2",
                "Pull",
                "True",
                "a,b",
                "r",
                "<none>",
                "https://x",
                "<none>"
            ]),
        ),
        (
            "Cluster",
            json!({}),
            json!([
                "", "", "Unknown", "<none>", "<none>", "<none>", "<none>", "<none>"
            ]),
        ),
        (
            "Work",
            json!({"spec": {"workload": {"manifests": [{"kind": "ConfigMap"}]}}, "status": {"conditions": [{"type": "Applied", "status": "True"}]}}),
            json!(["ConfigMap", "True"]),
        ),
        ("ResourceBinding", json!({}), json!([null, null])),
        (
            "PropagationPolicy",
            json!({"spec": {"conflictResolution": "Abort", "priority": 0}}),
            json!(["Abort", "0"]),
        ),
    ];
    for (name, object, shown) in table {
        assert_eq!(
            Value::from(cells(&kind(name), &object, now)),
            shown,
            "{name}"
        );
    }
}

#[test]
fn a_namespace_stays_until_its_finalizers_are_gone() {
    let strategy = kind("Namespace").strategy;
    let mut namespace = json!({"metadata": {"name": "n"}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}});
    strategy.begin_delete(&mut namespace);
    assert_eq!(namespace["status"]["phase"], "Terminating");
    assert!(strategy.holds_deletion(&namespace));
    let finalize = kind("Namespace")
        .subresource("finalize")
        .cloned()
        .expect("it is there");
    let evenkeel_api::kind::SubresourceKind::Part(apply) = finalize.kind else {
        panic!("finalize is a part");
    };
    let next = apply(
        &context(),
        &json!({"spec": {"finalizers": []}, "status": {"phase": "x"}}),
        &namespace,
    );
    let next = next.expect("finalizers are written");
    assert!(!strategy.holds_deletion(&next));
    assert_eq!(next["status"]["phase"], "Terminating");
    for name in ["default", "kube-system", "kube-public"] {
        let lasting = json!({"metadata": {"name": name}});
        assert!(
            strategy.validate_delete(&context(), &lasting).is_err(),
            "{name} can be deleted"
        );
    }
}

mod any {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    /// JSON that looks a little like objects.
    fn value() -> impl Strategy<Value = Value> {
        let names = vec![
            "spec",
            "status",
            "metadata",
            "name",
            "namespace",
            "labels",
            "template",
            "containers",
            "ports",
            "selector",
            "matchLabels",
            "rules",
            "subjects",
            "data",
            "stringData",
            "taints",
            "resourceModels",
            "ranges",
            "placement",
            "conditions",
            "type",
            "limits",
            "resources",
            "env",
            "volumes",
            "image",
            "strategy",
            "metrics",
            "finalizers",
        ];
        let name = prop::sample::select(names).prop_map(str::to_owned);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "\\PC{0,5}".prop_map(Value::from),
            Just(json!({})),
        ];
        leaf.prop_recursive(6, 64, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(name.clone(), inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Whatever a client sends as an object of whatever kind: defaults, rules and tables end, and defaults are
        /// filled in once.
        #[test]
        fn no_object_breaks_a_kind(object in value().prop_filter("an object", Value::is_object), old in value()) {
            for kind in super::all() {
                let mut new = object.clone();
                kind.strategy.default(&mut new);
                let mut again = new.clone();
                kind.strategy.default(&mut again);
                prop_assert_eq!(&again, &new, "{}", kind.kind);
                kind.strategy.validate(&new);
                kind.strategy.validate_update(&new, &old);
                kind.strategy.is_volatile(&new, &old);
                kind.strategy.holds_deletion(&new);
                super::cells(&kind, &new, "2024-01-01T00:00:00Z");
                let _ = kind.strategy.prepare_create(&super::context(), &mut new);
                kind.strategy.begin_delete(&mut again);
            }
        }
    }
}
