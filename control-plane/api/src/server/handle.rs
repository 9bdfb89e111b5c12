//! One request, from its head to the head of its answer.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::FutureExt as _;
use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{self, HeaderMap, HeaderName},
    request::Parts,
};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    Server,
    body::Body,
    metrics::{LatencyLabels, RequestLabels},
    resource,
};
use crate::{
    access::{Attributes, Credentials, UserInfo, chain, denial},
    failure::Failure,
    request::{
        accept::Discovery,
        path::{self, Route},
        query::Query,
    },
    verb::select,
};

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// What is known of the other side of a connection.
#[derive(Default)]
pub(crate) struct Peer {
    /// The client certificate in DER.
    pub certificate: Option<Vec<u8>>,
    /// Who the certificate says it is, and when that was asked.
    user: Mutex<Option<(Instant, Arc<UserInfo>)>>,
}

/// How long it is not asked again who a certificate says it is: the certificate of a connection does not change, but
/// it runs out.
const REMEMBERED: Duration = Duration::from_mins(1);

impl Peer {
    pub fn new(certificate: Option<Vec<u8>>) -> Self {
        Self {
            certificate,
            user: Mutex::default(),
        }
    }

    fn known(&self) -> Option<Arc<UserInfo>> {
        self.user
            .lock()
            .as_ref()
            .filter(|(asked, _)| asked.elapsed() < REMEMBERED)
            .map(|(_, user)| Arc::clone(user))
    }
}

/// What is told of a request when it is done.
pub(super) struct Seen {
    pub user: Arc<UserInfo>,
    pub attributes: Attributes,
    pub verb: &'static str,
    pub group: &'static str,
    pub resource: &'static str,
}

/// Answers a request. Nothing that a client sends makes this panic; what does all the same is answered 500 and costs
/// no other request of the connection.
pub(crate) async fn handle<B>(
    server: Arc<Server>,
    peer: Arc<Peer>,
    request: Request<B>,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let started = Instant::now();
    let (parts, body) = request.into_parts();
    let mut seen = Seen {
        user: Arc::new(UserInfo::default()),
        attributes: Attributes::default(),
        verb: "",
        group: "",
        resource: "",
    };
    let answer = tokio::time::timeout(
        server.limits.request_timeout,
        AssertUnwindSafe(answer(&server, &peer, &parts, body, &mut seen)).catch_unwind(),
    )
    .await;
    let response = match answer {
        Ok(Ok(Ok(response))) => response,
        Ok(Ok(Err(failure))) => failed(&server, &failure),
        Ok(Err(_panic)) => {
            tracing::error!(path = parts.uri.path(), "a request handler panicked");
            failed(
                &server,
                &Failure::internal("an unexpected error on the server"),
            )
        }
        Err(_elapsed) => failed(
            &server,
            &Failure::new(
                StatusCode::GATEWAY_TIMEOUT,
                "Timeout",
                "Timeout: request did not complete within the allotted timeout",
            ),
        ),
    };
    tell(&server, &parts, &seen, &response, started);
    response
}

fn tell(server: &Server, parts: &Parts, seen: &Seen, response: &Response<Body>, started: Instant) {
    let code = response.status().as_u16();
    let (verb, group, resource) = (seen.verb, seen.group, seen.resource);
    server
        .metrics
        .requests
        .get_or_create(&RequestLabels {
            verb,
            group,
            resource,
            code,
        })
        .inc();
    if verb != "watch" {
        server
            .metrics
            .seconds
            .get_or_create(&LatencyLabels {
                verb,
                group,
                resource,
            })
            .observe(started.elapsed().as_secs_f64());
    }
    for observer in &server.observers {
        observer.served(&seen.user, &seen.attributes, code);
    }
    tracing::debug!(
        user = seen.user.name,
        method = %parts.method,
        path = parts.uri.path(),
        code,
        "served"
    );
}

/// The Status of a failure.
pub(super) fn failed(server: &Arc<Server>, failure: &Failure) -> Response<Body> {
    let mut response = Response::new(Body::whole(
        server,
        serde_json::to_vec(&failure.body()).unwrap_or_default(),
    ));
    *response.status_mut() = failure.code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, JSON);
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, private"),
    );
    if let Some(seconds) = failure.retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// An answer in plain text.
fn text(server: &Arc<Server>, code: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::whole(server, text));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, TEXT);
    response.headers_mut().insert(
        HeaderName::from_static("x-content-type-options"),
        HeaderValue::from_static("nosniff"),
    );
    response
}

/// The answer to a path that names nothing at all.
pub(super) fn nothing_there(server: &Arc<Server>) -> Response<Body> {
    text(server, StatusCode::NOT_FOUND, "404 page not found\n")
}

/// A header as text; empty when absent or no text.
pub(super) fn header_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

async fn answer<B>(
    server: &Arc<Server>,
    peer: &Peer,
    parts: &Parts,
    body: B,
    seen: &mut Seen,
) -> Result<Response<Body>, Failure>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let length = parts
        .uri
        .path_and_query()
        .map_or(0, |text| text.as_str().len());
    if length > server.limits.max_url {
        return Err(Failure::new(
            StatusCode::URI_TOO_LONG,
            "RequestURITooLong",
            format!(
                "the path and query may not be more than {} bytes",
                server.limits.max_url
            ),
        ));
    }
    seen.user = authenticate(server, peer, &parts.headers)?;
    refuse_impersonation(&parts.headers)?;
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let path = parts.uri.path();
    let route = path::parse(path)
        .ok_or_else(|| Failure::bad_request(format!("the path {path} is not properly escaped")))?;
    if let Route::Resource(resource) = route {
        let watch = query.flag("watch");
        let Some(verb) = path::verb(&parts.method, &resource, watch) else {
            return Err(Failure::method_not_allowed());
        };
        seen.verb = verb;
        seen.attributes = attributes(verb, &resource, &query);
        authorize(server, &seen.user, &seen.attributes)?;
        let _place = if verb == "watch" {
            None
        } else {
            Some(Place::take(server)?)
        };
        return resource::answer(server, parts, &query, resource, body, seen).await;
    }
    seen.verb = method_verb(&parts.method);
    seen.attributes = Attributes {
        verb: seen.verb.to_owned(),
        path: path.to_owned(),
        ..Attributes::default()
    };
    if !is_public(server, path, &parts.method) {
        authorize(server, &seen.user, &seen.attributes)?;
    }
    let _place = Place::take(server)?;
    other(server, parts, &query, &route, body, seen).await
}

/// A place among the requests that are being handled.
struct Place<'a> {
    server: &'a Server,
    _permit: tokio::sync::SemaphorePermit<'a>,
}

impl<'a> Place<'a> {
    fn take(server: &'a Server) -> Result<Self, Failure> {
        let permit = server.in_flight.try_acquire().map_err(|_| {
            Failure::busy("too many requests are being handled, please try again later")
        })?;
        server.metrics.in_flight.inc();
        Ok(Self {
            server,
            _permit: permit,
        })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.server.metrics.in_flight.dec();
    }
}

fn method_verb(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "get",
        "HEAD" => "head",
        "POST" => "post",
        "PUT" => "put",
        "PATCH" => "patch",
        "DELETE" => "delete",
        "OPTIONS" => "options",
        _ => "other",
    }
}

fn is_public(server: &Server, path: &str, method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
        && server.public_paths.iter().any(|public| {
            path.strip_prefix(public.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
}

fn attributes(verb: &str, path: &path::ResourcePath, query: &Query) -> Attributes {
    let field_selector = query.get("fieldSelector").unwrap_or_default();
    let name = match (&path.name, verb) {
        (Some(name), _) => name.clone(),
        (None, "list" | "watch" | "deletecollection") => {
            select::named(field_selector).unwrap_or_default()
        }
        _ => String::new(),
    };
    let namespace = match &path.namespace {
        Some(namespace) => namespace.clone(),
        None if path.resource == "namespaces" && path.group.is_empty() => {
            path.name.clone().unwrap_or_default()
        }
        None => String::new(),
    };
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Attributes {
        verb: verb.to_owned(),
        group: path.group.clone(),
        version: path.version.clone(),
        resource: path.resource.clone(),
        subresource: path.subresource.clone().unwrap_or_default(),
        namespace,
        name,
        path: String::new(),
        label_selector: query.get("labelSelector").and_then(some),
        field_selector: some(field_selector),
    }
}

fn authenticate(
    server: &Server,
    peer: &Peer,
    headers: &HeaderMap,
) -> Result<Arc<UserInfo>, Failure> {
    let bearer = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme
                .eq_ignore_ascii_case("bearer")
                .then_some(token.trim())
        });
    if bearer.is_none()
        && let Some(user) = peer.known()
    {
        return Ok(user);
    }
    let credentials = Credentials {
        certificate: peer.certificate.as_deref(),
        bearer,
    };
    match chain::authenticate(&server.authenticators, &credentials) {
        Ok(user) => {
            let user = Arc::new(user);
            if bearer.is_none() {
                *peer.user.lock() = Some((Instant::now(), Arc::clone(&user)));
            }
            Ok(user)
        }
        Err(error) => {
            tracing::debug!(%error, "credentials refused");
            Err(Failure::unauthorized())
        }
    }
}

fn refuse_impersonation(headers: &HeaderMap) -> Result<(), Failure> {
    if headers
        .keys()
        .any(|name| name.as_str().starts_with("impersonate-"))
    {
        return Err(Failure::new(
            StatusCode::FORBIDDEN,
            "Forbidden",
            "impersonation is not offered by this server",
        ));
    }
    Ok(())
}

/// Whether a user may do something; the failure says what not.
pub(crate) fn authorize(
    server: &Server,
    user: &UserInfo,
    attributes: &Attributes,
) -> Result<(), Failure> {
    let verdict = chain::authorize(&server.authorizers, user, attributes);
    if verdict.allowed {
        return Ok(());
    }
    Err(denial::forbidden(user, attributes, &verdict.reason))
}

/// Reads a body, up to the limit.
pub(super) async fn read<B>(server: &Server, parts: &Parts, body: B) -> Result<Bytes, Failure>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let limit = server.limits.max_body;
    let too_large = || {
        Failure::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            format!("Request entity too large: limit is {limit}"),
        )
    };
    let announced = header_text(&parts.headers, &header::CONTENT_LENGTH)
        .parse::<u64>()
        .unwrap_or_default();
    if announced > limit as u64 {
        return Err(too_large());
    }
    let bytes = match Limited::new(body, limit).collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return Err(too_large()),
        Err(error) => {
            return Err(Failure::bad_request(format!(
                "the body of the request could not be read: {error}"
            )));
        }
    };
    server.metrics.received_bytes.inc_by(bytes.len() as u64);
    Ok(bytes)
}

/// Paths that are no resources.
async fn other<B>(
    server: &Arc<Server>,
    parts: &Parts,
    query: &Query,
    route: &Route,
    body: B,
    seen: &Seen,
) -> Result<Response<Body>, Failure>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let path = parts.uri.path();
    let found = server.routes.iter().find(|(pattern, _)| {
        path == pattern || (pattern.ends_with('/') && path.starts_with(pattern.as_str()))
    });
    if let Some((_, route)) = found {
        let bytes = read(server, parts, body).await?;
        let response = route
            .answer(Arc::clone(&seen.user), parts.clone(), bytes)
            .await;
        return Ok(response.map(|bytes| Body::whole(server, bytes)));
    }
    let read_only = matches!(parts.method, Method::GET | Method::HEAD);
    let health = ["/healthz", "/livez", "/readyz"]
        .iter()
        .any(|endpoint| path == *endpoint || path.starts_with(&format!("{endpoint}/")));
    if health && read_only {
        return Ok(match server.health(path, query) {
            Some(health) => text(server, health.code, health.text),
            None => nothing_there(server),
        });
    }
    match path {
        "/version" | "/version/" if read_only => {
            let body = serde_json::to_vec(&server.version).unwrap_or_default();
            let mut response = Response::new(Body::whole(server, body));
            response.headers_mut().insert(header::CONTENT_TYPE, JSON);
            return Ok(response);
        }
        "/metrics" if read_only => return metrics(server),
        "/version" | "/metrics" => return Err(Failure::method_not_allowed()),
        _ => {}
    }
    match route {
        Route::Other | Route::Resource(_) => Ok(nothing_there(server)),
        _ if !read_only => Err(Failure::method_not_allowed()),
        route => Ok(discovery(server, parts, route)),
    }
}

fn metrics(server: &Arc<Server>) -> Result<Response<Body>, Failure> {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &server.metrics_registry.lock())
        .map_err(|error| Failure::internal(error.to_string()))?;
    let mut response = Response::new(Body::whole(server, text));
    response.headers_mut().insert(header::CONTENT_TYPE, METRICS);
    Ok(response)
}

fn discovery(server: &Arc<Server>, parts: &Parts, route: &Route) -> Response<Body> {
    let form = Discovery::parse(header_text(&parts.headers, &header::ACCEPT));
    let host = match header_text(&parts.headers, &header::HOST) {
        "" => parts.uri.authority().map_or("", |host| host.as_str()),
        host => host,
    };
    let table = server.registry.table();
    let Some(document) = server.discovery.document(&table, route, form, host) else {
        let builtin = matches!(route, Route::GroupVersion { group, .. } if resource::is_builtin(&table, group));
        return if builtin {
            failed(server, &Failure::unknown_path())
        } else {
            nothing_there(server)
        };
    };
    let known = header_text(&parts.headers, &header::IF_NONE_MATCH)
        .split(',')
        .any(|tag| tag.trim() == document.etag);
    let mut response = if known {
        let mut response = Response::new(Body::whole(server, Bytes::new()));
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        Response::new(Body::whole(server, document.body))
    };
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(document.content_type),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    if let Ok(etag) = HeaderValue::from_str(&document.etag) {
        headers.insert(header::ETAG, etag);
    }
    response
}
