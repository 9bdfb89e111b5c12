//! Reviews of what somebody may.

use std::{collections::BTreeMap, sync::Arc};

use evenkeel_shared::field::FieldError;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{AUTHORIZATION, invalid};
use crate::{
    access::{Attributes, Authorizer, UserInfo, chain},
    failure::Failure,
    kind::{RequestContext, Review},
};

/// Whose access is reviewed.
pub(super) enum About {
    /// The one who asks.
    Asker,
    /// The one whom the spec names.
    Named,
    /// The same, in the namespace of the request only.
    NamedHere,
}

pub(super) struct AccessReview {
    pub about: About,
    pub chain: Arc<[Arc<dyn Authorizer>]>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    resource_attributes: Option<ResourceAttributes>,
    non_resource_attributes: Option<PathAttributes>,
    user: Option<String>,
    groups: Option<Vec<String>>,
    uid: Option<String>,
    extra: Option<BTreeMap<String, Vec<String>>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResourceAttributes {
    namespace: String,
    verb: String,
    group: String,
    version: String,
    resource: String,
    subresource: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PathAttributes {
    path: String,
    verb: String,
}

/// Wire forms write what is not set as null or as an empty value.
fn is_unset(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

impl AccessReview {
    fn answer(&self, ctx: &RequestContext, mut body: Value) -> Result<Value, Failure> {
        let fail = |error| invalid(AUTHORIZATION, error);
        let spec: Spec = match body.get("spec") {
            None | Some(Value::Null) => Spec::default(),
            Some(spec) => Spec::deserialize(spec)
                .map_err(|error| Failure::bad_request(format!("spec: {error}")))?,
        };
        let user = self.user(ctx, &spec).map_err(fail)?;
        let attributes = self.attributes(&spec).map_err(fail)?;
        self.check_metadata(ctx, &body, &attributes).map_err(fail)?;
        let verdict = chain::review(&self.chain, &user, &attributes);
        let mut status = Map::new();
        status.insert("allowed".into(), verdict.allowed.into());
        if verdict.denied {
            status.insert("denied".into(), true.into());
        }
        if !verdict.reason.is_empty() {
            status.insert("reason".into(), verdict.reason.into());
        }
        body["status"] = status.into();
        Ok(body)
    }

    fn user(&self, ctx: &RequestContext, spec: &Spec) -> Result<UserInfo, FieldError> {
        if matches!(self.about, About::Asker) {
            return Ok((*ctx.user).clone());
        }
        let user = UserInfo {
            name: spec.user.clone().unwrap_or_default(),
            uid: spec.uid.clone().unwrap_or_default(),
            groups: spec.groups.clone().unwrap_or_default(),
            extra: spec.extra.clone().unwrap_or_default(),
        };
        if user.name.is_empty() && user.groups.is_empty() {
            return Err(FieldError::invalid(
                "spec.user",
                &"".into(),
                "at least one of user or group must be specified",
            ));
        }
        Ok(user)
    }

    fn attributes(&self, spec: &Spec) -> Result<Attributes, FieldError> {
        let path_value = |path: &PathAttributes| json!({"Path": path.path, "Verb": path.verb});
        match (&spec.resource_attributes, &spec.non_resource_attributes) {
            (None, None) => Err(FieldError::invalid(
                "spec.resourceAttributes",
                &Value::Null,
                "exactly one of nonResourceAttributes or resourceAttributes must be specified",
            )),
            (Some(_), Some(path)) => Err(FieldError::invalid(
                "spec.nonResourceAttributes",
                &path_value(path),
                "cannot be specified in combination with resourceAttributes",
            )),
            (None, Some(path)) if matches!(self.about, About::NamedHere) => {
                Err(FieldError::invalid(
                    "spec.nonResourceAttributes",
                    &path_value(path),
                    "disallowed on this kind of request",
                ))
            }
            (None, Some(path)) => Ok(Attributes {
                verb: path.verb.clone(),
                path: path.path.clone(),
                ..Attributes::default()
            }),
            (Some(resource), None) => Ok(Attributes {
                verb: resource.verb.clone(),
                group: resource.group.clone(),
                version: resource.version.clone(),
                resource: resource.resource.clone(),
                subresource: resource.subresource.clone(),
                namespace: resource.namespace.clone(),
                name: resource.name.clone(),
                ..Attributes::default()
            }),
        }
    }

    fn check_metadata(
        &self,
        ctx: &RequestContext,
        body: &Value,
        attributes: &Attributes,
    ) -> Result<(), FieldError> {
        let here = matches!(self.about, About::NamedHere);
        let set = |name: &str, value: &Value| {
            name != "managedFields" && !(here && name == "namespace") && !is_unset(value)
        };
        if let Some(metadata) = body.get("metadata")
            && metadata
                .as_object()
                .is_some_and(|fields| fields.iter().any(|(name, value)| set(name, value)))
        {
            return Err(FieldError::invalid("metadata", metadata, "must be empty"));
        }
        if here && Some(attributes.namespace.as_str()) != ctx.namespace.as_deref() {
            return Err(FieldError::invalid(
                "spec.resourceAttributes.namespace",
                &attributes.namespace.clone().into(),
                "must match metadata.namespace",
            ));
        }
        Ok(())
    }
}

impl Review for AccessReview {
    fn review(&self, ctx: RequestContext, body: Value) -> BoxFuture<'_, Result<Value, Failure>> {
        Box::pin(std::future::ready(self.answer(&ctx, body)))
    }
}

/// SelfSubjectRulesReview.
pub(super) struct RulesReview(pub Arc<[Arc<dyn Authorizer>]>);

impl RulesReview {
    fn answer(&self, ctx: &RequestContext, mut body: Value) -> Result<Value, Failure> {
        let namespace = body
            .pointer("/spec/namespace")
            .and_then(Value::as_str)
            .filter(|namespace| !namespace.is_empty())
            .ok_or_else(|| Failure::bad_request("no namespace on request"))?;
        let (mut resource_rules, mut path_rules, mut incomplete) =
            (Vec::new(), Vec::new(), Vec::new());
        for authorizer in self.0.iter() {
            let rules = authorizer.rules(&ctx.user, namespace);
            incomplete.extend(rules.incomplete);
            for rule in rules.rules {
                if rule.non_resource_urls.is_empty() {
                    resource_rules.push(json!(rule));
                } else {
                    path_rules.push(
                        json!({"verbs": rule.verbs, "nonResourceURLs": rule.non_resource_urls}),
                    );
                }
            }
        }
        body["status"] = json!({
            "resourceRules": resource_rules,
            "nonResourceRules": path_rules,
            "incomplete": !incomplete.is_empty(),
        });
        if !incomplete.is_empty() {
            body["status"]["evaluationError"] = incomplete.join("; ").into();
        }
        Ok(body)
    }
}

impl Review for RulesReview {
    fn review(&self, ctx: RequestContext, body: Value) -> BoxFuture<'_, Result<Value, Failure>> {
        Box::pin(std::future::ready(self.answer(&ctx, body)))
    }
}
