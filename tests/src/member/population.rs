//! What a member is populated with at the start: namespaces, nodes in zones, and many pods where asked for.

use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use super::workload::{pod, second};

/// Size and place of a member.
#[derive(Clone, Debug)]
pub struct Population {
    pub nodes: usize,
    /// Nodes are spread over the regions, and over the zones of each, in turn.
    pub regions: Vec<String>,
    pub zones_per_region: usize,
    /// Pods that run from the start, in Deployments of 500, each pod asking for 100m CPU and 128Mi.
    pub pods: usize,
}

/// Pods of one Deployment of the initial population.
const PODS_PER_DEPLOYMENT: usize = 500;
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];
/// Name, CPUs, GiB: as clouds offer them.
const INSTANCE_TYPES: [(&str, u32, u32); 3] = [
    ("m5.large", 2, 8),
    ("m5.xlarge", 4, 16),
    ("m5.2xlarge", 8, 32),
];

/// An object and where it goes: group, version and plural are its own.
pub struct Seed {
    pub path: (&'static str, &'static str, &'static str),
    pub object: Value,
}

impl Population {
    /// Everything, in the order of creation; produced lazily, since a member may hold 150,000 pods.
    pub fn objects(&self, now: Timestamp) -> impl Iterator<Item = Seed> + '_ {
        let namespaces = NAMESPACES.iter().map(move |name| Seed {
            path: ("", "v1", "namespaces"),
            object: json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": metadata(name, None, now, &json!({"kubernetes.io/metadata.name": name})),
                "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
            }),
        });
        let nodes = (0..self.nodes).map(move |index| Seed {
            path: ("", "v1", "nodes"),
            object: self.node(index, now),
        });
        let workloads = (0..self.pods.div_ceil(PODS_PER_DEPLOYMENT))
            .flat_map(move |index| self.deployment(index, now));
        namespaces.chain(nodes).chain(workloads)
    }

    pub fn node_name(index: usize) -> String {
        format!("node-{index:04}")
    }

    fn node(&self, index: usize, now: Timestamp) -> Value {
        let regions = self.regions.len().max(1);
        let region = self
            .regions
            .get(index % regions)
            .map_or("local", String::as_str);
        let zone = index / regions % self.zones_per_region.clamp(1, 26);
        let zone = format!(
            "{region}{}",
            char::from(b'a' + u8::try_from(zone).unwrap_or(0))
        );
        let (instance, cpus, gibs) = INSTANCE_TYPES[index % INSTANCE_TYPES.len()];
        let name = Self::node_name(index);
        let since = second(now);
        let labels = json!({
            "beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": name,
            "node.kubernetes.io/instance-type": instance,
            "topology.kubernetes.io/region": region, "topology.kubernetes.io/zone": zone,
        });
        let resources = |reserved_milli: u32, reserved_mebi: u32| {
            json!({
                "cpu": format!("{}m", cpus * 1000 - reserved_milli), "memory": format!("{}Mi", gibs * 1024 - reserved_mebi),
                "ephemeral-storage": "100Gi", "pods": "110",
            })
        };
        let condition = |type_: &str, status: &str, reason: &str| json!({"type": type_, "status": status, "reason": reason, "message": reason, "lastHeartbeatTime": since, "lastTransitionTime": since});
        json!({
            "apiVersion": "v1", "kind": "Node", "metadata": metadata(&name, None, now, &labels),
            "spec": {"providerID": format!("sim:///{zone}/{name}")},
            "status": {
                "capacity": resources(0, 0), "allocatable": resources(100, 512),
                "addresses": [{"type": "InternalIP", "address": address(index)}, {"type": "Hostname", "address": name}],
                "conditions": [
                    condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                    condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                    condition("PIDPressure", "False", "KubeletHasSufficientPID"),
                    condition("Ready", "True", "KubeletReady"),
                ],
                "nodeInfo": {
                    "architecture": "amd64", "operatingSystem": "linux", "osImage": "Simulated", "kernelVersion": "6.12.0",
                    "kubeletVersion": super::KUBERNETES_VERSION, "kubeProxyVersion": super::KUBERNETES_VERSION,
                    "containerRuntimeVersion": "containerd://2.1.0", "machineID": name, "systemUUID": name, "bootID": name,
                },
            },
        })
    }

    /// A Deployment with its ReplicaSet and pods, all settled.
    fn deployment(&self, index: usize, now: Timestamp) -> Vec<Seed> {
        let pods = PODS_PER_DEPLOYMENT.min(self.pods - index * PODS_PER_DEPLOYMENT);
        let name = format!("load-{index:03}");
        let set_name = format!("{name}-initial");
        let labels = json!({"app": name});
        let set_labels = json!({"app": name, "pod-template-hash": "initial"});
        let spec = json!({"containers": [{
            "name": "main", "image": "registry.example/load:1", "imagePullPolicy": "IfNotPresent",
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        }], "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler",
            "securityContext": {}, "terminationGracePeriodSeconds": 30});
        let (uid, set_uid) = (Uuid::new_v4().to_string(), Uuid::new_v4().to_string());
        let owner = |kind: &str, name: &str, uid: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": true, "blockOwnerDeletion": true}]);
        let mut deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(&name, Some("default"), now, &labels),
            "spec": {
                "replicas": pods, "selector": {"matchLabels": labels}, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        });
        deployment["metadata"]["uid"] = uid.as_str().into();
        deployment["metadata"]["generation"] = 1.into();
        deployment["metadata"]["annotations"] = json!({"deployment.kubernetes.io/revision": "1"});
        let mut set = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata(&set_name, Some("default"), now, &set_labels),
            "spec": {
                "replicas": pods, "selector": {"matchLabels": set_labels},
                "template": {"metadata": {"labels": set_labels}, "spec": spec},
            },
            "status": {
                "replicas": pods, "fullyLabeledReplicas": pods, "readyReplicas": pods, "availableReplicas": pods, "observedGeneration": 1,
            },
        });
        set["metadata"]["uid"] = set_uid.as_str().into();
        set["metadata"]["generation"] = 1.into();
        set["metadata"]["annotations"] = json!({"deployment.kubernetes.io/revision": "1"});
        set["metadata"]["ownerReferences"] = owner("Deployment", &name, &uid);
        let mut seeds = Vec::with_capacity(pods + 2);
        seeds.push(Seed {
            path: ("apps", "v1", "deployments"),
            object: deployment,
        });
        seeds.push(Seed {
            path: ("apps", "v1", "replicasets"),
            object: set,
        });
        for number in 0..pods {
            let node = (index * PODS_PER_DEPLOYMENT + number) % self.nodes.max(1);
            let mut object = json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": metadata(&format!("{set_name}-{number:03}"), Some("default"), now, &set_labels), "spec": spec,
            });
            object["metadata"]["ownerReferences"] = owner("ReplicaSet", &set_name, &set_uid);
            if self.nodes > 0 {
                object["spec"]["nodeName"] = Self::node_name(node).into();
                object["status"] = pod::run(&object, &address(node), false, now);
            }
            seeds.push(Seed {
                path: ("", "v1", "pods"),
                object,
            });
        }
        seeds
    }
}

fn metadata(name: &str, namespace: Option<&str>, now: Timestamp, labels: &Value) -> Value {
    let mut metadata = json!({
        "name": name, "uid": Uuid::new_v4().to_string(), "creationTimestamp": second(now), "labels": labels,
    });
    if let Some(namespace) = namespace {
        metadata["namespace"] = namespace.into();
    }
    metadata
}

/// The address of a node.
pub fn address(index: usize) -> String {
    format!(
        "10.{}.{}.{}",
        index / 65_536 % 256,
        index / 256 % 256,
        index % 256
    )
}
