//! `certificates.k8s.io/v1`: CertificateSigningRequest. Its spec never changes; who asks is written by the server.

use std::sync::Arc;

use evenkeel_api::{
    failure::Failure,
    kind::{Column, Kind, KindScope, RequestContext, Strategy, Subresource, SubresourceKind},
};
use evenkeel_shared::field::FieldError;
use serde_json::{Value, json};

use super::{
    builtin,
    column::{age, shown},
    look::{at, child, drop_field, is_true, items, text},
    print, status,
};

/// CertificateSigningRequest.
pub fn kinds() -> Vec<Kind> {
    vec![Kind {
        short_names: &["csr"],
        scope: KindScope::Cluster,
        columns: columns(),
        subresources: vec![
            Subresource {
                name: "approval",
                kind: SubresourceKind::Part(approval),
            },
            status(),
        ],
        selectable_fields: &["spec.signerName"],
        strategy: Arc::new(Request),
        unconditional_update: true,
        ..builtin(
            "certificates.k8s.io",
            "v1",
            "CertificateSigningRequest",
            "certificatesigningrequests",
            "certificatesigningrequest",
        )
    }]
}

fn columns() -> Vec<Column> {
    vec![
        age(),
        shown(
            "SignerName",
            "string",
            "Who is asked to sign.",
            |object, _| text(object, "/spec/signerName").into(),
        ),
        shown("Requestor", "string", "Who asks.", |object, _| {
            text(object, "/spec/username").into()
        }),
        shown(
            "RequestedDuration",
            "string",
            "For how long.",
            |object, _| match at(object, "/spec/expirationSeconds").as_i64() {
                Some(seconds) => print::duration(seconds).into(),
                None => print::NONE.into(),
            },
        ),
        shown(
            "Condition",
            "string",
            "What was decided, and whether it was issued.",
            |object, _| condition(object).into(),
        ),
    ]
}

fn condition(object: &Value) -> String {
    let has = |type_: &str| {
        items(object, "/status/conditions")
            .iter()
            .any(|c| text(c, "/type") == type_)
    };
    let mut words = Vec::new();
    if has("Denied") {
        words.push("Denied");
    } else if has("Approved") {
        words.push("Approved");
    } else {
        words.push("Pending");
    }
    if has("Failed") {
        words.push("Failed");
    }
    if !text(object, "/status/certificate").is_empty() {
        words.push("Issued");
    }
    words.join(",")
}

fn is_verdict(condition: &Value) -> bool {
    matches!(text(condition, "/type"), "Approved" | "Denied")
}

/// The conditions of `from` for which `keep` holds, then those of `other` for which it does not.
fn verdicts_of(from: &Value, other: &Value) -> Vec<Value> {
    let verdicts = items(from, "/status/conditions")
        .iter()
        .filter(|c| is_verdict(c));
    let rest = items(other, "/status/conditions")
        .iter()
        .filter(|c| !is_verdict(c));
    verdicts.chain(rest).cloned().collect()
}

/// Approving and denying: writes those two conditions and nothing else.
fn approval(ctx: &RequestContext, body: &Value, stored: &Value) -> Result<Value, Failure> {
    let mut object = stored.clone();
    let mut conditions = verdicts_of(body, stored);
    let now = evenkeel_shared::condition::whole_second(ctx.now).to_string();
    for condition in conditions.iter_mut().filter(|c| c.is_object()) {
        let before = items(stored, "/status/conditions")
            .iter()
            .find(|old| text(old, "/type") == text(condition, "/type"));
        for field in ["lastUpdateTime", "lastTransitionTime"] {
            if condition[field].is_null() {
                condition[field] = match before.map(|before| &before[field]) {
                    Some(time) if !time.is_null() => time.clone(),
                    _ => now.clone().into(),
                };
            }
        }
    }
    match child(&mut object, "status") {
        Some(status) => status["conditions"] = conditions.into(),
        None => return Err(Failure::bad_request("status is no object")),
    }
    let refused = verdict_errors(&object, stored);
    if !refused.is_empty() {
        let name = text(stored, "/metadata/name");
        return Err(Failure::invalid(
            "certificates.k8s.io",
            "CertificateSigningRequest",
            name,
            &refused,
        ));
    }
    Ok(object)
}

/// A verdict stays, and there is only one.
fn verdict_errors(new: &Value, old: &Value) -> Vec<FieldError> {
    let path = "status.conditions";
    let mut errors = Vec::new();
    for verdict in ["Approved", "Denied"] {
        if is_true(old, verdict) && !is_true(new, verdict) {
            let why = format!("updates may not remove a condition of type \"{verdict}\"");
            errors.push(FieldError::forbidden(path, &why));
        }
    }
    if is_true(new, "Approved") && is_true(new, "Denied") {
        let why = "Approved and Denied conditions are mutually exclusive";
        errors.push(FieldError::invalid(
            path,
            &at(new, "/status/conditions").clone(),
            why,
        ));
    }
    errors
}

struct Request;

impl Strategy for Request {
    fn prepare_create(&self, ctx: &RequestContext, object: &mut Value) -> Result<(), Failure> {
        let Some(spec) = child(object, "spec") else {
            return Err(Failure::bad_request("spec is no object"));
        };
        for field in ["username", "uid", "groups", "extra"] {
            drop_field(spec, field);
        }
        spec["username"] = ctx.user.name.clone().into();
        if !ctx.user.uid.is_empty() {
            spec["uid"] = ctx.user.uid.clone().into();
        }
        if !ctx.user.groups.is_empty() {
            spec["groups"] = ctx.user.groups.clone().into();
        }
        if !ctx.user.extra.is_empty() {
            spec["extra"] = json!(ctx.user.extra);
        }
        object["status"] = json!({});
        Ok(())
    }

    fn prepare_update(
        &self,
        ctx: &RequestContext,
        new: &mut Value,
        old: &Value,
    ) -> Result<(), Failure> {
        new["spec"] = old["spec"].clone();
        // The status is written through its subresource, and verdicts through theirs alone.
        let conditions = if ctx.subresource.as_deref() == Some("status") {
            verdicts_of(old, new)
        } else {
            items(new, "/status/conditions").to_vec()
        };
        if !conditions.is_empty()
            && let Some(status) = child(new, "status")
        {
            status["conditions"] = conditions.into();
        }
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for field in ["request", "signerName"] {
            if text(object, &format!("/spec/{field}")).is_empty() {
                errors.push(FieldError::required(format!("spec.{field}"), ""));
            }
        }
        let signer = text(object, "/spec/signerName");
        if !signer.is_empty() && !signer.contains('/') {
            let why =
                "must be a fully qualified domain and path of the form 'example.com/signer-name'";
            errors.push(FieldError::invalid("spec.signerName", &signer.into(), why));
        }
        if items(object, "/spec/usages").is_empty() {
            errors.push(FieldError::required(
                "spec.usages",
                "usages must be specified",
            ));
        }
        let lifetime = at(object, "/spec/expirationSeconds");
        if lifetime.as_i64().is_some_and(|seconds| seconds < 600) {
            let why = "may not specify a duration less than 600 seconds (10 minutes)";
            errors.push(FieldError::invalid("spec.expirationSeconds", lifetime, why));
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn context() -> RequestContext {
        RequestContext {
            user: Arc::default(),
            namespace: None,
            name: None,
            subresource: Some("approval".into()),
            now: Timestamp::UNIX_EPOCH,
            dry_run: false,
        }
    }

    #[test]
    fn approval_writes_the_verdict_alone() {
        let stored = json!({"spec": {"request": "r"}, "status": {"certificate": "c", "conditions": [{"type": "Failed", "status": "True"}]}});
        let body = json!({"spec": {"request": "other"}, "status": {"certificate": "other", "conditions": [
            {"type": "Approved", "status": "True"}, {"type": "Odd", "status": "True"},
        ]}});
        let next = approval(&context(), &body, &stored).expect("it is approved");
        assert_eq!(next["spec"], stored["spec"]);
        assert_eq!(next["status"]["certificate"], "c");
        let types = items(&next, "/status/conditions")
            .iter()
            .map(|c| text(c, "/type"))
            .collect::<Vec<_>>();
        assert_eq!(types, ["Approved", "Failed"]);
        assert_eq!(
            next["status"]["conditions"][0]["lastUpdateTime"],
            "1970-01-01T00:00:00Z"
        );
        let denied = json!({"status": {"conditions": [{"type": "Denied", "status": "True"}]}});
        assert!(
            approval(&context(), &denied, &next).is_err(),
            "a verdict stays"
        );
    }
}
