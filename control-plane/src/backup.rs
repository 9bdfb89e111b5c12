//! The endpoint that writes a backup while the server serves.

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use evenkeel_api::{
    access::{MASTERS, UserInfo},
    failure::Failure,
    server::Route,
};
use evenkeel_store::Store;
use futures::future::BoxFuture;
use http::{Method, Response, StatusCode, header, request::Parts};
use serde::Deserialize;
use serde_json::{Value, json};

/// Where it is.
pub const PATH: &str = "/evenkeel/backup";

/// POST with `{"to": "/absolute/file"}`: the file is written on the server's machine, by the server. For
/// `system:masters` alone, whatever RBAC says.
pub struct BackupRoute {
    store: Store,
}

impl BackupRoute {
    pub fn new(store: Store) -> Arc<Self> {
        Arc::new(Self { store })
    }

    async fn backup(
        &self,
        user: &UserInfo,
        request: &Parts,
        body: &Bytes,
    ) -> Result<Value, Failure> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Order {
            to: PathBuf,
        }
        if !user.groups.iter().any(|group| group == MASTERS) {
            return Err(Failure::new(
                StatusCode::FORBIDDEN,
                "Forbidden",
                "a backup holds every Secret: only system:masters may make one",
            ));
        }
        if request.method != Method::POST {
            return Err(Failure::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "MethodNotAllowed",
                "POST {\"to\": \"/absolute/file\"}",
            ));
        }
        let order: Order = serde_json::from_slice(body)
            .map_err(|error| Failure::bad_request(format!("the body is not an order: {error}")))?;
        if !order.to.is_absolute() {
            return Err(Failure::bad_request("\"to\" is not an absolute path"));
        }
        if order.to.exists() {
            return Err(Failure::bad_request(format!(
                "{} is there already",
                order.to.display()
            )));
        }
        let revision = self.store.backup(&order.to).await.map_err(|error| {
            Failure::internal(format!("cannot write {}: {error}", order.to.display()))
        })?;
        tracing::info!(to = %order.to.display(), %revision, user = user.name, "backup written");
        Ok(json!({"to": order.to, "revision": revision.0}))
    }
}

impl Route for BackupRoute {
    fn answer(
        &self,
        user: Arc<UserInfo>,
        request: Parts,
        body: Bytes,
    ) -> BoxFuture<'_, Response<Bytes>> {
        Box::pin(async move {
            let (code, value) = match self.backup(&user, &request, &body).await {
                Ok(value) => (StatusCode::OK, value),
                Err(failure) => (failure.code, failure.body()),
            };
            let mut response = Response::new(Bytes::from(value.to_string()));
            *response.status_mut() = code;
            response.headers_mut().insert(
                header::CONTENT_TYPE,
                header::HeaderValue::from_static("application/json"),
            );
            response
        })
    }
}
