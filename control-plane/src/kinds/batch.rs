//! `batch/v1`: Job, CronJob, as templates.

use std::sync::Arc;

use evenkeel_api::{
    failure::Failure,
    kind::{Column, FieldPlace, Kind, RequestContext, Strategy},
};
use evenkeel_shared::field::FieldError;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    apps::{containers, images, selector},
    builtin,
    column::{CONTAINERS, IMAGES, age, shown, wide},
    look::{at, child, drop_nothing, fill, is_true, items, number, text},
    pod, print,
    rules::{immutable, not_negative, one_of},
    status,
};

/// Job and CronJob.
pub fn kinds() -> Vec<Kind> {
    vec![
        Kind {
            short_names: &["cj"],
            categories: &["all"],
            columns: cron_job_columns(),
            subresources: vec![status()],
            strategy: Arc::new(CronJob),
            generation: true,
            unconditional_update: true,
            ..builtin("batch", "v1", "CronJob", "cronjobs", "cronjob")
        },
        Kind {
            categories: &["all"],
            columns: job_columns(),
            subresources: vec![status()],
            selectable_fields: &["status.successful"],
            field_places: &[FieldPlace {
                field: "status.successful",
                path: "status.succeeded",
                absent: "0",
            }],
            strategy: Arc::new(Job),
            generation: true,
            unconditional_update: true,
            ..builtin("batch", "v1", "Job", "jobs", "job")
        },
    ]
}

fn job_columns() -> Vec<Column> {
    vec![
        shown("Status", "string", "Status of the job.", |object, _| {
            job_status(object).into()
        }),
        shown(
            "Completions",
            "string",
            "The number of pods which reached phase Succeeded. The value increases monotonically for a given spec. However, it may decrease in reaction to scale down of elastic indexed jobs.",
            |object, _| completions(object).into(),
        ),
        shown(
            "Duration",
            "string",
            "Time required to complete the job.",
            job_duration,
        ),
        age(),
        wide("Containers", "string", CONTAINERS, containers),
        wide("Images", "string", IMAGES, images),
        wide(
            "Selector",
            "string",
            "A label query over pods that should match the pod count. Normally, the system sets this field for you. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors",
            selector,
        ),
    ]
}

fn job_status(object: &Value) -> &'static str {
    let conditions = ["Complete", "Failed"];
    if let Some(done) = conditions.into_iter().find(|done| is_true(object, done)) {
        return done;
    }
    if !at(object, "/metadata/deletionTimestamp").is_null() {
        return "Terminating";
    }
    [
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
    ]
    .into_iter()
    .find(|(condition, _)| is_true(object, condition))
    .map_or("Running", |(_, shown)| shown)
}

fn completions(object: &Value) -> String {
    let done = number(object, "/status/succeeded");
    match at(object, "/spec/completions").as_i64() {
        Some(wanted) => format!("{done}/{wanted}"),
        None => match number(object, "/spec/parallelism") {
            parallel if parallel > 1 => format!("{done}/1 of {parallel}"),
            _ => format!("{done}/1"),
        },
    }
}

fn job_duration(object: &Value, now: Timestamp) -> Value {
    let Some(start) = print::moment(object, "/status/startTime") else {
        return "".into();
    };
    let end = print::moment(object, "/status/completionTime").unwrap_or(now);
    print::duration(end.as_second() - start.as_second()).into()
}

fn cron_job_columns() -> Vec<Column> {
    vec![
        shown(
            "Schedule",
            "string",
            "The schedule in Cron format, see https://en.wikipedia.org/wiki/Cron.",
            |object, _| text(object, "/spec/schedule").into(),
        ),
        shown(
            "Timezone",
            "string",
            "The time zone name for the given schedule, see https://en.wikipedia.org/wiki/List_of_tz_database_time_zones. If not specified, this will default to the time zone of the kube-controller-manager process. The set of valid time zone names and the time zone offset is loaded from the system-wide time zone database by the API server during CronJob validation and the controller manager during execution. If no system-wide time zone database can be found a bundled version of the database is used instead. If the time zone name becomes invalid during the lifetime of a CronJob or due to a change in host configuration, the controller will stop creating new new Jobs and will create a system event with the reason UnknownTimeZone. More information can be found in https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#time-zones",
            |object, _| print::scalar(object, "/spec/timeZone", print::NONE).into(),
        ),
        shown(
            "Suspend",
            "boolean",
            "This flag tells the controller to suspend subsequent executions, it does not apply to already started executions.  Defaults to false.",
            |object, _| match at(object, "/spec/suspend") {
                Value::Bool(true) => "True".into(),
                Value::Bool(false) => "False".into(),
                _ => "<unset>".into(),
            },
        ),
        shown(
            "Active",
            "integer",
            "A list of pointers to currently running jobs.",
            |object, _| items(object, "/status/active").len().into(),
        ),
        shown(
            "Last Schedule",
            "string",
            "Information when was the last time the job was successfully scheduled.",
            |object, now| match print::moment(object, "/status/lastScheduleTime") {
                Some(_) => print::since(object, "/status/lastScheduleTime", now).into(),
                None => print::NONE.into(),
            },
        ),
        age(),
        wide("Containers", "string", CONTAINERS, |object, now| {
            containers(at(object, "/spec/jobTemplate"), now)
        }),
        wide("Images", "string", IMAGES, |object, now| {
            images(at(object, "/spec/jobTemplate"), now)
        }),
        wide(
            "Selector",
            "string",
            "A label query over pods that should match the pod count. Normally, the system sets this field for you. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors",
            |object, now| selector(at(object, "/spec/jobTemplate"), now),
        ),
    ]
}

struct Job;

/// Labels that tie the pods of a Job to it: with the Job's UID, and with its name.
const UID_LABELS: [&str; 2] = ["batch.kubernetes.io/controller-uid", "controller-uid"];
const NAME_LABELS: [&str; 2] = ["batch.kubernetes.io/job-name", "job-name"];

impl Strategy for Job {
    fn orphans_by_default(&self) -> Option<&'static str> {
        Some(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
        )
    }

    fn default(&self, object: &mut Value) {
        drop_nothing(object);
        let labels = at(object, "/spec/template/metadata/labels").clone();
        if labels.as_object().is_some_and(|labels| !labels.is_empty())
            && let Some(metadata) = child(object, "metadata")
        {
            fill(metadata, "labels", labels);
        }
        let Some(spec) = child(object, "spec") else {
            return;
        };
        if spec["completions"].is_null() && spec["parallelism"].is_null() {
            fill(spec, "completions", 1);
        }
        fill(spec, "parallelism", 1);
        fill(spec, "backoffLimit", 6);
        fill(spec, "manualSelector", false);
        fill(spec, "completionMode", "NonIndexed");
        fill(spec, "suspend", false);
        let replacement = if spec["podFailurePolicy"].is_null() {
            "TerminatingOrFailed"
        } else {
            "Failed"
        };
        fill(spec, "podReplacementPolicy", replacement);
        pod::template(spec);
    }

    fn prepare_create(&self, _: &RequestContext, object: &mut Value) -> Result<(), Failure> {
        if at(object, "/spec/manualSelector") != true {
            generate_selector(object);
        }
        fill(object, "status", json!({}));
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = not_negative(
            object,
            &[
                "parallelism",
                "completions",
                "activeDeadlineSeconds",
                "backoffLimit",
                "ttlSecondsAfterFinished",
            ],
        );
        errors.extend(one_of(
            object,
            "spec.completionMode",
            &["NonIndexed", "Indexed"],
        ));
        errors.extend(job_pods(object, "spec"));
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        immutable(new, old, &["spec.selector", "spec.completionMode"])
    }
}

/// A Job selects its pods by its own UID, unless its author selects by hand.
fn generate_selector(object: &mut Value) {
    let uid = text(object, "/metadata/uid").to_owned();
    let name = text(object, "/metadata/name").to_owned();
    if uid.is_empty() {
        return;
    }
    let stamp = |holder: &mut Value| {
        if let Some(labels) = child(holder, "labels") {
            for label in UID_LABELS {
                fill(labels, label, uid.as_str());
            }
            for label in NAME_LABELS {
                fill(labels, label, name.as_str());
            }
        }
    };
    if let Some(metadata) = child(object, "metadata") {
        stamp(metadata);
    }
    let Some(spec) = child(object, "spec") else {
        return;
    };
    if let Some(metadata) = child(spec, "template").and_then(|template| child(template, "metadata"))
    {
        stamp(metadata);
    }
    if let Some(labels) =
        child(spec, "selector").and_then(|selector| child(selector, "matchLabels"))
    {
        fill(labels, UID_LABELS[0], uid.as_str());
    }
}

fn job_pods(object: &Value, path: &str) -> Vec<FieldError> {
    let pointer = format!("/{}/template/spec", path.replace('.', "/"));
    let template = at(object, &pointer);
    let path = format!("{path}.template.spec");
    let mut errors = pod::spec(template, &path);
    if !["OnFailure", "Never"].contains(&text(template, "/restartPolicy")) {
        errors.retain(|error| error.path != format!("{path}.restartPolicy"));
        errors.push(FieldError::required(
            format!("{path}.restartPolicy"),
            "valid values: \"OnFailure\", \"Never\"",
        ));
    }
    errors
}

struct CronJob;

impl Strategy for CronJob {
    fn default(&self, object: &mut Value) {
        drop_nothing(object);
        let Some(spec) = child(object, "spec") else {
            return;
        };
        fill(spec, "concurrencyPolicy", "Allow");
        fill(spec, "suspend", false);
        fill(spec, "successfulJobsHistoryLimit", 3);
        fill(spec, "failedJobsHistoryLimit", 1);
        if let Some(job) = child(spec, "jobTemplate") {
            fill(job, "metadata", json!({}));
            if let Some(spec) = child(job, "spec") {
                pod::template(spec);
            }
        }
    }

    fn prepare_create(&self, _: &RequestContext, object: &mut Value) -> Result<(), Failure> {
        fill(object, "status", json!({}));
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if text(object, "/spec/schedule").is_empty() {
            errors.push(FieldError::required("spec.schedule", ""));
        }
        let policies = ["Allow", "Forbid", "Replace"];
        errors.extend(one_of(object, "spec.concurrencyPolicy", &policies));
        errors.extend(not_negative(
            object,
            &["successfulJobsHistoryLimit", "failedJobsHistoryLimit"],
        ));
        errors.extend(job_pods(object, "spec.jobTemplate.spec"));
        errors
    }
}
