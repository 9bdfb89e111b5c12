//! Service, as a template: addresses and node ports are for each member to allocate.

use std::collections::BTreeSet;

use evenkeel_api::{
    failure::Failure,
    kind::{Column, RequestContext, Strategy},
};
use evenkeel_shared::field::FieldError;
use serde_json::{Value, json};

use crate::kinds::{
    column::{age, shown, wide},
    look::{at, child, drop_nothing, each, fill, items, number, text},
    networking::load_balancer,
    print,
    rules::one_of,
};

pub fn columns() -> Vec<Column> {
    vec![
        shown(
            "Type",
            "string",
            "type determines how the Service is exposed. Defaults to ClusterIP. Valid options are ExternalName, ClusterIP, NodePort, and LoadBalancer. \"ClusterIP\" allocates a cluster-internal IP address for load-balancing to endpoints. Endpoints are determined by the selector or if that is not specified, by manual construction of an Endpoints object or EndpointSlice objects. If clusterIP is \"None\", no virtual IP is allocated and the endpoints are published as a set of endpoints rather than a virtual IP. \"NodePort\" builds on ClusterIP and allocates a port on every node which routes to the same endpoints as the clusterIP. \"LoadBalancer\" builds on NodePort and creates an external load-balancer (if supported in the current cloud) which routes to the same endpoints as the clusterIP. \"ExternalName\" aliases this service to the specified externalName. Several other fields do not apply to ExternalName services. More info: https://kubernetes.io/docs/concepts/services-networking/service/#publishing-services-service-types",
            |object, _| text(object, "/spec/type").into(),
        ),
        shown(
            "Cluster-IP",
            "string",
            "clusterIP is the IP address of the service and is usually assigned randomly. If an address is specified manually, is in-range (as per system configuration), and is not in use, it will be allocated to the service; otherwise creation of the service will fail. This field may not be changed through updates unless the type field is also being changed to ExternalName (which requires this field to be blank) or the type field is being changed from ExternalName (in which case this field may optionally be specified, as describe above).  Valid values are \"None\", empty string (\"\"), or a valid IP address. Setting this to \"None\" makes a \"headless service\" (no virtual IP), which is useful when direct endpoint connections are preferred and proxying is not required.  Only applies to types ClusterIP, NodePort, and LoadBalancer. If this field is specified when creating a Service of type ExternalName, creation will fail. This field will be wiped when updating a Service to type ExternalName. More info: https://kubernetes.io/docs/concepts/services-networking/service/#virtual-ips-and-service-proxies",
            |object, _| print::or(text(object, "/spec/clusterIP"), print::NONE).into(),
        ),
        shown(
            "External-IP",
            "string",
            "externalIPs is a list of IP addresses for which nodes in the cluster will also accept traffic for this service.  These IPs are not managed by Kubernetes.  The user is responsible for ensuring that traffic arrives at a node with this IP.  A common example is external load-balancers that are not part of the Kubernetes system.",
            |object, _| external(object).into(),
        ),
        shown(
            "Port(s)",
            "string",
            "The list of ports that are exposed by this service. More info: https://kubernetes.io/docs/concepts/services-networking/service/#virtual-ips-and-service-proxies",
            |object, _| ports(object).into(),
        ),
        age(),
        wide(
            "Selector",
            "string",
            "Route service traffic to pods with label keys and values matching this selector. If empty or not present, the service is assumed to have an external process managing its endpoints, which Kubernetes will not modify. Only applies to types ClusterIP, NodePort, and LoadBalancer. Ignored if type is ExternalName. More info: https://kubernetes.io/docs/concepts/services-networking/service/",
            |object, _| print::labels(object, "/spec/selector").into(),
        ),
    ]
}

fn external(object: &Value) -> String {
    let given = print::texts(items(object, "/spec/externalIPs")).join(",");
    match text(object, "/spec/type") {
        "ExternalName" => text(object, "/spec/externalName").to_owned(),
        "LoadBalancer" => {
            let assigned = load_balancer(object);
            let all = [assigned.as_str(), given.as_str()]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join(",");
            print::or(&all, "<pending>").to_owned()
        }
        _ => print::or(&given, print::NONE).to_owned(),
    }
}

fn ports(object: &Value) -> String {
    let ports = items(object, "/spec/ports")
        .iter()
        .map(|port| {
            let (number_, protocol) = (number(port, "/port"), text(port, "/protocol"));
            match number(port, "/nodePort") {
                0 => format!("{number_}/{protocol}"),
                node => format!("{number_}:{node}/{protocol}"),
            }
        })
        .collect::<Vec<_>>()
        .join(",");
    print::or(&ports, print::NONE).to_owned()
}

pub struct Service;

impl Strategy for Service {
    fn default(&self, object: &mut Value) {
        drop_nothing(object);
        let Some(spec) = child(object, "spec") else {
            return;
        };
        fill(spec, "sessionAffinity", "None");
        fill(spec, "type", "ClusterIP");
        if spec["sessionAffinity"] == "ClientIP" {
            let config = json!({"clientIP": {"timeoutSeconds": 10_800}});
            fill(spec, "sessionAffinityConfig", config);
        }
        for port in each(spec, "ports") {
            fill(port, "protocol", "TCP");
            if port["targetPort"].is_null() || port["targetPort"] == 0 || port["targetPort"] == "" {
                port["targetPort"] = port["port"].clone();
            }
        }
        let type_ = text(spec, "/type").to_owned();
        let outside = ["NodePort", "LoadBalancer"].contains(&type_.as_str());
        if outside {
            fill(spec, "externalTrafficPolicy", "Cluster");
        }
        if outside || type_ == "ClusterIP" {
            fill(spec, "internalTrafficPolicy", "Cluster");
        }
        if type_ == "LoadBalancer" {
            fill(spec, "allocateLoadBalancerNodePorts", true);
        }
        if spec["clusterIP"] == "None" {
            fill(spec, "clusterIPs", json!(["None"]));
            fill(spec, "ipFamilies", json!(["IPv4"]));
            fill(spec, "ipFamilyPolicy", "SingleStack");
        }
    }

    fn prepare_create(&self, _: &RequestContext, object: &mut Value) -> Result<(), Failure> {
        fill(object, "status", json!({"loadBalancer": {}}));
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let type_ = text(object, "/spec/type");
        let ports = items(object, "/spec/ports");
        if ports.is_empty() && type_ != "ExternalName" && at(object, "/spec/clusterIP") != "None" {
            errors.push(FieldError::required("spec.ports", ""));
        }
        if type_ == "ExternalName" && text(object, "/spec/externalName").is_empty() {
            errors.push(FieldError::required("spec.externalName", ""));
        }
        let mut names = BTreeSet::new();
        for (i, port) in ports.iter().enumerate() {
            service_port(
                port,
                &format!("spec.ports[{i}]"),
                ports.len() > 1,
                &mut names,
                &mut errors,
            );
            if type_ == "ClusterIP" && number(port, "/nodePort") != 0 {
                errors.push(FieldError::forbidden(
                    format!("spec.ports[{i}].nodePort"),
                    "may not be used when `type` is 'ClusterIP'",
                ));
            }
        }
        errors.extend(one_of(
            object,
            "spec.sessionAffinity",
            &["ClientIP", "None"],
        ));
        let types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
        errors.extend(one_of(object, "spec.type", &types));
        errors
    }
}

fn service_port<'a>(
    port: &'a Value,
    path: &str,
    several: bool,
    names: &mut BTreeSet<&'a str>,
    errors: &mut Vec<FieldError>,
) {
    let name = text(port, "/name");
    if name.is_empty() && several {
        errors.push(FieldError::required(format!("{path}.name"), ""));
    }
    if !name.is_empty() && !names.insert(name) {
        errors.push(FieldError::duplicate(format!("{path}.name"), &name.into()));
    }
    for field in ["port", "targetPort"] {
        let value = at(port, &format!("/{field}"));
        let absent = field == "port" && value.is_null();
        if absent
            || value
                .as_i64()
                .is_some_and(|value| !(1..=65535).contains(&value))
        {
            let why = "must be between 1 and 65535, inclusive";
            let value = if absent { &json!(0) } else { value };
            errors.push(FieldError::invalid(format!("{path}.{field}"), value, why));
        }
    }
    let protocol = at(port, "/protocol");
    let known = ["SCTP", "TCP", "UDP"];
    if !known.contains(&protocol.as_str().unwrap_or_default()) {
        errors.push(FieldError::not_supported(
            format!("{path}.protocol"),
            protocol,
            &known,
        ));
    }
}
