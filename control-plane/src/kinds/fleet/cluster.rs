//! `cluster.karmada.io/v1alpha1` Cluster.

use std::sync::Arc;

use evenkeel_api::{
    failure::Failure,
    kind::{Cell, Column, Kind, KindScope, RequestContext, Strategy},
};
use evenkeel_shared::{
    cluster::{Cluster, ClusterSpec, ClusterStatus},
    condition::whole_second,
    field::FieldError,
    read, stamps, validate,
};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{fleet_kind, typed::prune};
use crate::kinds::{
    column::custom,
    look::{at, child, condition, drop_field, each, fill, items, text},
    print, status,
};

pub fn kind() -> Kind {
    Kind {
        scope: KindScope::Cluster,
        columns: columns(),
        subresources: vec![status()],
        strategy: Arc::new(Clusters),
        unconditional_update: true,
        ..fleet_kind(
            "cluster.karmada.io",
            "v1alpha1",
            "Cluster",
            "clusters",
            "cluster",
        )
    }
}

fn columns() -> Vec<Column> {
    let column = |name, priority, description, print: fn(&Value, Timestamp) -> Value| {
        custom(name, "string", priority, description, Cell::Computed(print))
    };
    vec![
        column(
            "Version",
            0,
            "KubernetesVersion represents version of the member cluster.",
            |object, _| text(object, "/status/kubernetesVersion").into(),
        ),
        column(
            "Mode",
            0,
            "SyncMode describes how a cluster sync resources from karmada control plane.",
            |object, _| text(object, "/spec/syncMode").into(),
        ),
        column(
            "Ready",
            0,
            "The aggregate readiness state of this cluster for accepting workloads.",
            |object, _| {
                condition(object, stamps::READY)
                    .map_or("Unknown", |ready| text(ready, "/status"))
                    .into()
            },
        ),
        custom("Age", "date", 0, crate::kinds::column::CREATED, Cell::Age),
        column(
            "Zones",
            1,
            "Zones represents the failure zones(also called availability zones) of the member cluster.",
            |object, _| {
                print::or(
                    &print::texts(items(object, "/spec/zones")).join(","),
                    print::NONE,
                )
                .into()
            },
        ),
        column(
            "Region",
            1,
            "Region represents the region in which the member cluster locate in.",
            |object, _| print::or(text(object, "/spec/region"), print::NONE).into(),
        ),
        column(
            "Provider",
            1,
            "Provider represents the cloud provider name of the member cluster.",
            |object, _| print::or(text(object, "/spec/provider"), print::NONE).into(),
        ),
        column(
            "API-Endpoint",
            1,
            "The API endpoint of the member cluster.",
            |object, _| print::or(text(object, "/spec/apiEndpoint"), print::NONE).into(),
        ),
        column(
            "Proxy-URL",
            1,
            "The proxy URL of the member cluster.",
            |object, _| print::or(text(object, "/spec/proxyURL"), print::NONE).into(),
        ),
    ]
}

struct Clusters;

impl Clusters {
    fn prepare(ctx: &RequestContext, object: &mut Value) {
        let now = whole_second(ctx.now).to_string();
        if let Some(spec) = child(object, "spec") {
            for taint in each(spec, "taints") {
                if taint["effect"] == stamps::NO_EXECUTE {
                    fill(taint, "timeAdded", now.as_str());
                }
            }
        }
    }
}

impl Strategy for Clusters {
    fn default(&self, object: &mut Value) {
        if let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) {
            let zone = text(spec, "/zone").to_owned();
            if !zone.is_empty() && items(spec, "/zones").is_empty() {
                spec["zones"] = json!([zone]);
                drop_field(spec, "zone");
            }
            if items(spec, "/resourceModels").is_empty() {
                spec["resourceModels"] = default_models();
            } else {
                widen_models(spec);
            }
        }
        prune::<ClusterSpec>(object, "spec");
        prune::<ClusterStatus>(object, "status");
    }

    fn prepare_create(&self, ctx: &RequestContext, object: &mut Value) -> Result<(), Failure> {
        Self::prepare(ctx, object);
        Ok(())
    }

    fn prepare_update(
        &self,
        ctx: &RequestContext,
        new: &mut Value,
        _: &Value,
    ) -> Result<(), Failure> {
        Self::prepare(ctx, new);
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if let Err(error) = read::read::<ClusterSpec>(at(object, "/spec"), "spec") {
            errors.push(error);
        }
        if let Some(status) = object.get("status")
            && let Err(error) = read::read::<ClusterStatus>(status, "status")
        {
            errors.push(error);
        }
        if errors.is_empty() {
            match Cluster::deserialize(object) {
                Ok(cluster) => errors.extend(validate::cluster(&cluster)),
                Err(error) => errors.push(FieldError::invalid(
                    "metadata",
                    &Value::Null,
                    &error.to_string(),
                )),
            }
        }
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        // A cluster is told from another of the same name by its id.
        let (new_id, old_id) = (at(new, "/spec/id"), at(old, "/spec/id"));
        if old_id.is_null() || new_id == old_id {
            return Vec::new();
        }
        vec![FieldError::invalid("spec.id", new_id, "field is immutable")]
    }
}

/// The nine classes that are used when none are given, as Karmada has them.
fn default_models() -> Value {
    const UNBOUNDED: &str = "9223372036854775807";
    const CPU: [&str; 10] = ["0", "1", "2", "4", "8", "16", "32", "64", "128", UNBOUNDED];
    const MEMORY: [&str; 10] = [
        "0", "4Gi", "16Gi", "32Gi", "64Gi", "128Gi", "256Gi", "512Gi", "1Ti", UNBOUNDED,
    ];
    (0..CPU.len() - 1)
        .map(|grade| {
            json!({"grade": grade, "ranges": [
                {"name": "cpu", "min": CPU[grade], "max": CPU[grade + 1]},
                {"name": "memory", "min": MEMORY[grade], "max": MEMORY[grade + 1]},
            ]})
        })
        .collect::<Vec<_>>()
        .into()
}

/// Given classes are sorted, begin at nothing and end at everything.
fn widen_models(spec: &mut Value) {
    let Some(models) = spec["resourceModels"].as_array_mut() else {
        return;
    };
    models.sort_by_key(|model| model["grade"].as_u64());
    for range in models
        .first_mut()
        .into_iter()
        .flat_map(|model| each(model, "ranges"))
    {
        range["min"] = "0".into();
    }
    for range in models
        .last_mut()
        .into_iter()
        .flat_map(|model| each(model, "ranges"))
    {
        range["max"] = "9223372036854775807".into();
    }
}
