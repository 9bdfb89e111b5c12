//! `autoscaling/v2`: HorizontalPodAutoscaler, as a template.

use std::sync::Arc;

use evenkeel_api::{
    failure::Failure,
    kind::{Column, Kind, RequestContext, Strategy},
};
use evenkeel_shared::field::FieldError;
use serde_json::{Value, json};

use super::{
    builtin,
    column::{age, shown},
    look::{at, child, drop_nothing, fill, items, number, text},
    print, status,
};

/// HorizontalPodAutoscaler.
pub fn kinds() -> Vec<Kind> {
    vec![Kind {
        short_names: &["hpa"],
        categories: &["all"],
        columns: columns(),
        subresources: vec![status()],
        strategy: Arc::new(Autoscaler),
        unconditional_update: true,
        ..builtin(
            "autoscaling",
            "v2",
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
            "horizontalpodautoscaler",
        )
    }]
}

fn columns() -> Vec<Column> {
    vec![
        shown(
            "Reference",
            "string",
            "scaleTargetRef points to the target resource to scale, and is used to the pods for which metrics should be collected, as well as to actually change the replica count.",
            |object, _| {
                let target = at(object, "/spec/scaleTargetRef");
                format!("{}/{}", text(target, "/kind"), text(target, "/name")).into()
            },
        ),
        shown(
            "Targets",
            "string",
            "metrics contains the specifications for which to use to calculate the desired replica count (the maximum replica count across all metrics will be used).  The desired replica count is calculated multiplying the ratio between the target value and the current value by the current number of pods.  Ergo, metrics used must decrease as the pod count is increased, and vice-versa.  See the individual metric source types for more information about how each type of metric must respond. If not set, the default metric will be set to 80% average CPU utilization.",
            |object, _| targets(object).into(),
        ),
        shown(
            "MinPods",
            "string",
            "minReplicas is the lower limit for the number of replicas to which the autoscaler can scale down.  It defaults to 1 pod.  minReplicas is allowed to be 0 if the alpha feature gate HPAScaleToZero is enabled and at least one Object or External metric is configured.  Scaling is active as long as at least one metric value is available.",
            |object, _| print::scalar(object, "/spec/minReplicas", "<unset>").into(),
        ),
        shown(
            "MaxPods",
            "string",
            "maxReplicas is the upper limit for the number of replicas to which the autoscaler can scale up. It cannot be less that minReplicas.",
            |object, _| number(object, "/spec/maxReplicas").into(),
        ),
        shown(
            "Replicas",
            "string",
            "currentReplicas is current number of replicas of pods managed by this autoscaler, as last seen by the autoscaler.",
            |object, _| number(object, "/status/currentReplicas").into(),
        ),
        age(),
    ]
}

/// `cpu: 20%/50%, 3/5`: what is measured against what is wanted.
fn targets(object: &Value) -> String {
    let metrics = items(object, "/spec/metrics");
    if metrics.is_empty() {
        return print::NONE.into();
    }
    let shown = metrics.iter().enumerate().take(2).map(|(i, metric)| {
        let current = at(object, &format!("/status/currentMetrics/{i}"));
        target(metric, current)
    });
    let shown = shown.collect::<Vec<_>>().join(", ");
    match metrics.len().saturating_sub(2) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}

fn target(metric: &Value, current: &Value) -> String {
    let (part, label) = match text(metric, "/type") {
        "Resource" => ("resource", format!("{}: ", text(metric, "/resource/name"))),
        "ContainerResource" => (
            "containerResource",
            format!("{}: ", text(metric, "/containerResource/name")),
        ),
        "Pods" => ("pods", String::new()),
        "Object" => ("object", String::new()),
        "External" => ("external", String::new()),
        _ => return "<unknown type>".into(),
    };
    let (wanted, measured) = (
        at(metric, &format!("/{part}/target")),
        at(current, &format!("/{part}/current")),
    );
    let utilization = at(wanted, "/averageUtilization").as_i64();
    if let Some(wanted) = utilization {
        let measured = print::scalar(measured, "/averageUtilization", "");
        let measured = if measured.is_empty() {
            "<unknown>".into()
        } else {
            format!("{measured}%")
        };
        return format!("{label}{measured}/{wanted}%");
    }
    let (field, suffix) = match text(wanted, "/type") {
        "AverageValue" if part == "object" || part == "external" => ("/averageValue", " (avg)"),
        "AverageValue" => ("/averageValue", ""),
        _ => ("/value", ""),
    };
    let measured = print::scalar(measured, field, "<unknown>");
    format!(
        "{label}{measured}/{}{suffix}",
        print::scalar(wanted, field, "<auto>")
    )
}

struct Autoscaler;

impl Strategy for Autoscaler {
    fn default(&self, object: &mut Value) {
        drop_nothing(object);
        let Some(spec) = child(object, "spec") else {
            return;
        };
        fill(spec, "minReplicas", 1);
        let cpu = json!({"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80},
        }});
        fill(spec, "metrics", json!([cpu]));
    }

    fn prepare_create(&self, _: &RequestContext, object: &mut Value) -> Result<(), Failure> {
        fill(
            object,
            "status",
            json!({"desiredReplicas": 0, "currentMetrics": null}),
        );
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let max = number(object, "/spec/maxReplicas");
        if max < 1 {
            errors.push(FieldError::invalid(
                "spec.maxReplicas",
                &max.into(),
                "must be greater than 0",
            ));
        } else if number(object, "/spec/minReplicas") > max {
            errors.push(FieldError::invalid(
                "spec.maxReplicas",
                &max.into(),
                "must be greater than or equal to `minReplicas`",
            ));
        }
        for field in ["kind", "name"] {
            if text(object, &format!("/spec/scaleTargetRef/{field}")).is_empty() {
                errors.push(FieldError::required(
                    format!("spec.scaleTargetRef.{field}"),
                    "",
                ));
            }
        }
        errors
    }
}
