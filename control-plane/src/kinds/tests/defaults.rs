use evenkeel_api::kind::Kind;
use serde_json::{Value, json};

use super::{context, kind};

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
fn resource_models_grow_in_memory_as_in_the_reference() {
    let cluster = created(
        &kind("Cluster"),
        json!({"metadata": {"name": "c"}, "spec": {"syncMode": "Pull"}}),
    );
    let memory: Vec<_> = cluster["spec"]["resourceModels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["ranges"][1]["max"].as_str().unwrap())
        .collect();
    assert_eq!(
        memory[..8],
        [
            "4Gi", "16Gi", "32Gi", "64Gi", "128Gi", "256Gi", "512Gi", "1Ti"
        ]
    );
    assert_eq!(memory[8], "9223372036854775807");
}
