//! `networking.k8s.io/v1` and `discovery.k8s.io/v1`: Ingress, IngressClass, NetworkPolicy, EndpointSlice.

use std::sync::Arc;

use evenkeel_api::{
    failure::Failure,
    kind::{Column, Kind, KindScope, RequestContext, Strategy},
};
use evenkeel_shared::field::FieldError;
use serde_json::{Value, json};

use super::{
    builtin,
    column::{age, shown},
    look::{at, child, drop_nothing, each, fill, items, text},
    print, status,
};

/// The kinds of both groups.
pub fn kinds() -> Vec<Kind> {
    vec![
        Kind {
            scope: KindScope::Cluster,
            columns: ingress_class_columns(),
            generation: true,
            unconditional_update: true,
            ..builtin(
                "networking.k8s.io",
                "v1",
                "IngressClass",
                "ingressclasses",
                "ingressclass",
            )
        },
        Kind {
            short_names: &["ing"],
            columns: ingress_columns(),
            subresources: vec![status()],
            strategy: Arc::new(Ingress),
            generation: true,
            unconditional_update: true,
            ..builtin("networking.k8s.io", "v1", "Ingress", "ingresses", "ingress")
        },
        Kind {
            short_names: &["netpol"],
            columns: vec![
                shown(
                    "Pod-Selector",
                    "string",
                    "podSelector selects the pods to which this NetworkPolicy object applies. The array of rules is applied to any pods selected by this field. An empty selector matches all pods in the policy's namespace. Multiple network policies can select the same set of pods. In this case, the ingress rules for each are combined additively. This field is optional. If it is not specified, it defaults to an empty selector.",
                    |object, _| print::selector(object, "/spec/podSelector").into(),
                ),
                age(),
            ],
            strategy: Arc::new(NetworkPolicy),
            generation: true,
            unconditional_update: true,
            ..builtin(
                "networking.k8s.io",
                "v1",
                "NetworkPolicy",
                "networkpolicies",
                "networkpolicy",
            )
        },
        Kind {
            columns: endpoint_slice_columns(),
            generation: true,
            unconditional_update: true,
            ..builtin(
                "discovery.k8s.io",
                "v1",
                "EndpointSlice",
                "endpointslices",
                "endpointslice",
            )
        },
    ]
}

fn ingress_class_columns() -> Vec<Column> {
    vec![
        shown(
            "Controller",
            "string",
            "Controller that is responsible for handling this class",
            |object, _| text(object, "/spec/controller").into(),
        ),
        shown(
            "Parameters",
            "string",
            "A reference to a resource with additional parameters",
            |object, _| {
                let parameters = at(object, "/spec/parameters");
                if parameters.is_null() {
                    return print::NONE.into();
                }
                let group = text(parameters, "/apiGroup");
                let dot = if group.is_empty() { "" } else { "." };
                format!(
                    "{}{dot}{group}/{}",
                    text(parameters, "/kind"),
                    text(parameters, "/name")
                )
                .into()
            },
        ),
        age(),
    ]
}

fn ingress_columns() -> Vec<Column> {
    vec![
        shown(
            "Class",
            "string",
            "The name of the IngressClass resource that should be used for additional configuration",
            |object, _| print::scalar(object, "/spec/ingressClassName", print::NONE).into(),
        ),
        shown(
            "Hosts",
            "string",
            "Hosts that incoming requests are matched against before the ingress rule",
            |object, _| hosts(object).into(),
        ),
        shown(
            "Address",
            "string",
            "Address is a list containing ingress points for the load-balancer",
            |object, _| load_balancer(object).into(),
        ),
        shown(
            "Ports",
            "string",
            "Ports of TLS configurations that open",
            |object, _| {
                if items(object, "/spec/tls").is_empty() {
                    "80".into()
                } else {
                    "80, 443".into()
                }
            },
        ),
        age(),
    ]
}

fn hosts(object: &Value) -> String {
    let hosts = items(object, "/spec/rules")
        .iter()
        .map(|rule| text(rule, "/host"))
        .filter(|host| !host.is_empty())
        .collect::<Vec<_>>();
    match hosts.as_slice() {
        [] => "*".into(),
        [first @ .., _] if hosts.len() > 3 => {
            format!("{} + {} more...", first[..3].join(","), hosts.len() - 3)
        }
        all => all.join(","),
    }
}

/// The addresses of a load balancer, each once.
pub fn load_balancer(object: &Value) -> String {
    let mut addresses = items(object, "/status/loadBalancer/ingress")
        .iter()
        .map(|ingress| print::or(text(ingress, "/ip"), text(ingress, "/hostname")))
        .filter(|address| !address.is_empty())
        .collect::<Vec<_>>();
    addresses.sort_unstable();
    addresses.dedup();
    addresses.join(",")
}

fn endpoint_slice_columns() -> Vec<Column> {
    vec![
        shown(
            "AddressType",
            "string",
            "addressType specifies the type of address carried by this EndpointSlice. All addresses in this slice must be the same type. This field is immutable after creation. The following address types are currently supported: * IPv4: Represents an IPv4 Address. * IPv6: Represents an IPv6 Address. * FQDN: Represents a Fully Qualified Domain Name. (Deprecated) The EndpointSlice controller only generates, and kube-proxy only processes, slices of addressType \"IPv4\" and \"IPv6\". No semantics are defined for the \"FQDN\" type.",
            |object, _| text(object, "/addressType").into(),
        ),
        shown(
            "Ports",
            "string",
            "ports specifies the list of network ports exposed by each endpoint in this slice. Each port must have a unique name. Each slice may include a maximum of 100 ports. Services always have at least 1 port, so EndpointSlices generated by the EndpointSlice controller will likewise always have at least 1 port. EndpointSlices used for other purposes may have an empty ports list.",
            |object, _| {
                let ports = items(object, "/ports").iter();
                let ports = ports
                    .map(|port| print::scalar(port, "/port", print::or(text(port, "/name"), "*")));
                first_three(&ports.collect::<Vec<_>>(), "<unset>")
            },
        ),
        shown(
            "Endpoints",
            "string",
            "endpoints is a list of unique endpoints in this slice. Each slice may include a maximum of 1000 endpoints.",
            |object, _| {
                let addresses = items(object, "/endpoints")
                    .iter()
                    .flat_map(|endpoint| print::texts(items(endpoint, "/addresses")))
                    .map(str::to_owned)
                    .collect::<Vec<_>>();
                first_three(&addresses, "<unset>")
            },
        ),
        age(),
    ]
}

/// `a,b,c + 2 more...`
pub fn first_three(list: &[String], empty: &str) -> Value {
    match list {
        [] => empty.into(),
        [a, b, c, rest @ ..] if !rest.is_empty() => {
            format!("{a},{b},{c} + {} more...", rest.len()).into()
        }
        all => all.join(",").into(),
    }
}

struct Ingress;

impl Strategy for Ingress {
    fn default(&self, object: &mut Value) {
        drop_nothing(object);
    }

    fn prepare_create(&self, _: &RequestContext, object: &mut Value) -> Result<(), Failure> {
        fill(object, "status", json!({"loadBalancer": {}}));
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if items(object, "/spec/rules").is_empty() && at(object, "/spec/defaultBackend").is_null() {
            errors.push(FieldError::invalid(
                "spec",
                &Value::Null,
                "either `defaultBackend` or `rules` must be specified",
            ));
        }
        for (i, rule) in items(object, "/spec/rules").iter().enumerate() {
            for (k, path) in items(rule, "/http/paths").iter().enumerate() {
                ingress_path(
                    path,
                    &format!("spec.rules[{i}].http.paths[{k}]"),
                    &mut errors,
                );
            }
        }
        errors
    }
}

fn ingress_path(path: &Value, at_path: &str, errors: &mut Vec<FieldError>) {
    match text(path, "/pathType") {
        "" => errors.push(FieldError::required(
            format!("{at_path}.pathType"),
            "pathType must be specified",
        )),
        "Exact" | "Prefix" if !text(path, "/path").starts_with('/') => {
            errors.push(FieldError::invalid(
                format!("{at_path}.path"),
                at(path, "/path"),
                "must be an absolute path",
            ));
        }
        "Exact" | "Prefix" | "ImplementationSpecific" => {}
        _ => errors.push(FieldError::not_supported(
            format!("{at_path}.pathType"),
            at(path, "/pathType"),
            &["Exact", "ImplementationSpecific", "Prefix"],
        )),
    }
    let backend = at(path, "/backend");
    if at(backend, "/service").is_null() && at(backend, "/resource").is_null() {
        errors.push(FieldError::invalid(
            format!("{at_path}.backend"),
            &"".into(),
            "resource or service backend is required",
        ));
    }
}

struct NetworkPolicy;

impl Strategy for NetworkPolicy {
    fn default(&self, object: &mut Value) {
        // An empty list of rules denies, an absent one says nothing: they stay apart here.
        let Some(spec) = child(object, "spec") else {
            return;
        };
        for direction in ["ingress", "egress"] {
            for rule in each(spec, direction) {
                for port in each(rule, "ports") {
                    fill(port, "protocol", "TCP");
                }
            }
        }
        let types = if spec["egress"].is_null() {
            json!(["Ingress"])
        } else {
            json!(["Ingress", "Egress"])
        };
        fill(spec, "policyTypes", types);
        fill(spec, "podSelector", json!({}));
    }
}
