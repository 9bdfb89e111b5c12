use serde_json::{Value, json};

use super::{cells, kind};

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
