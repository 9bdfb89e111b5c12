//! Reviews of who somebody is.

use std::sync::Arc;

use evenkeel_shared::field::FieldError;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{AUTHENTICATION, invalid, user_info};
use crate::{
    access::{Authenticator, Credentials, chain},
    failure::Failure,
    kind::{RequestContext, Review},
};

/// SelfSubjectReview: `kubectl auth whoami`.
pub(super) struct SelfReview;

impl Review for SelfReview {
    fn review(
        &self,
        ctx: RequestContext,
        mut body: Value,
    ) -> BoxFuture<'_, Result<Value, Failure>> {
        body["status"] = json!({"userInfo": user_info(&ctx.user)});
        Box::pin(std::future::ready(Ok(body)))
    }
}

/// TokenReview: whose a bearer token is.
pub(super) struct TokenReview(pub Arc<[Arc<dyn Authenticator>]>);

impl Review for TokenReview {
    fn review(
        &self,
        _ctx: RequestContext,
        mut body: Value,
    ) -> BoxFuture<'_, Result<Value, Failure>> {
        let token = body
            .pointer("/spec/token")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let answer = if token.is_empty() {
            Err(invalid(
                AUTHENTICATION,
                FieldError::required("spec.token", ""),
            ))
        } else {
            body["status"] = match chain::authenticate(
                &self.0,
                &Credentials {
                    certificate: None,
                    bearer: Some(token),
                },
            ) {
                Ok(user) => json!({"authenticated": true, "user": user_info(&user)}),
                Err(_) => json!({"user": {}, "error": "invalid bearer token"}),
            };
            Ok(body)
        };
        Box::pin(std::future::ready(answer))
    }
}
