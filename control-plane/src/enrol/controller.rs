//! The shell of enrolment: watches requests and tokens, decides, and writes.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use evenkeel_api::{
    access::{Clock, bootstrap},
    failure::Failure,
    kind::Kind,
    local::{Client, Preconditions},
};
use evenkeel_shared::{identity::cluster_of_user, stamps::CONTROL_PLANE_MANAGER};
use evenkeel_store::{EventKind, Resource, Scope};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    CertificateRequest,
    decide::{Action, decide},
    fleet::FleetView,
    sign::{Lifetimes, sign},
};
use crate::pki::Authority;

/// How often everything is looked at, whether or not something changed: what failed is tried again, what is old goes.
const SWEEP: Duration = Duration::from_mins(1);
/// From a new request to its certificate there are two steps; more are not taken at once.
const STEPS: usize = 3;

/// What enrolment works with.
pub struct Enrolment {
    pub client: Client,
    pub authority: Arc<Authority>,
    pub fleet: Arc<FleetView>,
    pub lifetimes: Lifetimes,
    pub clock: Clock,
}

/// Approves, signs and removes requests, and removes tokens that have expired. Runs until `stop`.
pub async fn run(enrolment: Enrolment, stop: CancellationToken) {
    let registry = enrolment.client.server().registry().table();
    let (Some(requests), Some(secrets)) = (
        registry.find_kind("certificates.k8s.io", "CertificateSigningRequest"),
        registry.find_kind("", "Secret"),
    ) else {
        tracing::error!("certificate requests or Secrets are not served: nobody can join");
        return;
    };
    let controller = Controller {
        enrolment,
        requests: Arc::clone(requests),
        secrets: Arc::clone(secrets),
    };
    controller.run(stop).await;
}

struct Controller {
    enrolment: Enrolment,
    requests: Arc<Kind>,
    secrets: Arc<Kind>,
}

impl Controller {
    async fn run(&self, stop: CancellationToken) {
        let scope = Scope::all(Resource::new(
            "certificates.k8s.io",
            "certificatesigningrequests",
        ));
        let store = self.enrolment.client.server().store().clone();
        let mut watch = store.list_and_watch(&scope).1;
        let mut sweep = tokio::time::interval(SWEEP);
        sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = sweep.tick() => self.sweep().await,
                event = watch.next() => match event {
                    None => return,
                    Some(Ok(event)) if event.kind == EventKind::Deleted => {
                        self.enrolment.fleet.release(event.object.key.name());
                    }
                    Some(Ok(event)) => match serde_json::from_slice(&event.object.json) {
                        Ok(object) => self.advance(object).await,
                        Err(error) => tracing::warn!(key = ?event.object.key, %error, "unreadable request"),
                    },
                    Some(Err(_)) => {
                        watch = store.list_and_watch(&scope).1;
                        self.sweep().await;
                    }
                },
            }
        }
    }

    async fn sweep(&self) {
        match self.enrolment.client.list(&self.requests, None, "").await {
            Ok(requests) => {
                for request in requests {
                    self.advance(request).await;
                }
            }
            Err(error) => {
                tracing::warn!(error = %error.message, "cannot list certificate requests");
            }
        }
        self.remove_expired_tokens().await;
    }

    /// Takes a request as far as it goes now.
    async fn advance(&self, mut object: Value) {
        for _ in 0..STEPS {
            let Ok(request) = CertificateRequest::read(&object) else {
                return;
            };
            self.remember(&request);
            let action = decide(&request, &*self.enrolment.fleet, (self.enrolment.clock)());
            match self.act(&request, &object, action).await {
                Ok(Some(next)) => object = next,
                Ok(None) => return,
                // Somebody else wrote it, or removed it: the next event or sweep decides anew.
                Err(error) if matches!(error.code.as_u16(), 404 | 409) => return,
                Err(error) => {
                    tracing::warn!(request = request.metadata.name, error = %error.message, "certificate request not served");
                    return;
                }
            }
        }
    }

    /// An approved request for an agent claims its cluster's name.
    fn remember(&self, request: &CertificateRequest) {
        let alive = request.condition("Approved").is_some()
            && request.condition("Denied").is_none()
            && request.condition("Failed").is_none();
        if alive
            && let Ok(subject) = request.subject()
            && let Some(cluster) = cluster_of_user(&subject.common_name)
        {
            self.enrolment
                .fleet
                .claim(cluster, &request.metadata.name, &subject);
        }
    }

    /// Does one step; the object after it, where there may be another.
    async fn act(
        &self,
        request: &CertificateRequest,
        object: &Value,
        action: Action,
    ) -> Result<Option<Value>, Failure> {
        let name = &request.metadata.name;
        let maker = &request.spec.username;
        match action {
            Action::Leave => Ok(None),
            Action::Approve { cluster, why } => {
                let next = self
                    .condition(object, "approval", "Approved", "AutoApproved", &why)
                    .await?;
                tracing::info!(
                    request = name,
                    cluster,
                    maker,
                    why,
                    "certificate request approved"
                );
                Ok(Some(next))
            }
            Action::Deny(why) => {
                self.condition(object, "approval", "Denied", "Refused", &why)
                    .await?;
                tracing::warn!(request = name, maker, why, "certificate request denied");
                Ok(None)
            }
            Action::Sign => {
                let signed = sign(
                    &self.enrolment.authority,
                    request,
                    self.enrolment.lifetimes,
                    (self.enrolment.clock)(),
                );
                match signed {
                    Ok(pem) => {
                        let status = json!({"certificate": BASE64_STANDARD.encode(pem)});
                        self.patch(object, "status", status).await?;
                        tracing::info!(request = name, maker, "certificate issued");
                    }
                    Err(why) => {
                        self.condition(object, "status", "Failed", "SigningFailed", &why)
                            .await?;
                        tracing::warn!(request = name, maker, why, "certificate not issued");
                    }
                }
                Ok(None)
            }
            Action::Remove(why) => {
                self.enrolment
                    .client
                    .delete(
                        &self.requests,
                        None,
                        name,
                        &Preconditions {
                            uid: Some(request.metadata.uid.clone()),
                            resource_version: Some(request.metadata.resource_version.clone()),
                        },
                    )
                    .await?;
                tracing::debug!(request = name, why, "certificate request removed");
                Ok(None)
            }
        }
    }

    async fn condition(
        &self,
        object: &Value,
        subresource: &str,
        type_: &str,
        reason: &str,
        message: &str,
    ) -> Result<Value, Failure> {
        let now = evenkeel_api::clock::seconds((self.enrolment.clock)());
        let mut conditions = object
            .pointer("/status/conditions")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        conditions.push(json!({
            "type": type_, "status": "True", "reason": reason, "message": message,
            "lastUpdateTime": now, "lastTransitionTime": now,
        }));
        self.patch(object, subresource, json!({"conditions": conditions}))
            .await
    }

    /// Writes a part of the status, if the request still stands as it was seen.
    async fn patch(
        &self,
        object: &Value,
        subresource: &str,
        status: Value,
    ) -> Result<Value, Failure> {
        let metadata = &object["metadata"];
        let name = metadata["name"].as_str().unwrap_or_default();
        let patch = json!({
            "metadata": {"resourceVersion": metadata["resourceVersion"]},
            "status": status,
        });
        self.enrolment
            .client
            .patch_merge(
                &self.requests,
                None,
                name,
                Some(subresource),
                &patch,
                CONTROL_PLANE_MANAGER,
            )
            .await
    }

    async fn remove_expired_tokens(&self) {
        let client = &self.enrolment.client;
        let secrets = match client
            .list(&self.secrets, Some(bootstrap::NAMESPACE), "")
            .await
        {
            Ok(secrets) => secrets,
            Err(error) => {
                tracing::warn!(error = %error.message, "cannot list tokens");
                return;
            }
        };
        let now = (self.enrolment.clock)();
        for secret in secrets {
            if secret["type"] != bootstrap::SECRET_TYPE {
                continue;
            }
            let Ok(token) = bootstrap::TokenRecord::decode(secret.to_string().as_bytes()) else {
                continue;
            };
            if !token.is_expired(now) || token.deleted {
                continue;
            }
            let text = |field: &str| secret["metadata"][field].as_str().map(str::to_owned);
            let preconditions = Preconditions {
                uid: text("uid"),
                resource_version: text("resourceVersion"),
            };
            let name = text("name").unwrap_or_default();
            match client
                .delete(
                    &self.secrets,
                    Some(bootstrap::NAMESPACE),
                    &name,
                    &preconditions,
                )
                .await
            {
                Ok(()) => tracing::info!(token = token.id, "expired token removed"),
                Err(error) => {
                    tracing::warn!(token = token.id, error = %error.message, "expired token not removed");
                }
            }
        }
    }
}
