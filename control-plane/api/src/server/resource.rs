//! Requests to resources: which verb, with which options, and the answer in the form that was asked for.

use std::sync::Arc;

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Response, StatusCode,
    header::{self, HeaderMap},
    request::Parts,
};
use serde_json::json;

use super::{
    Server,
    body::Body,
    handle::{self, Seen},
};
use crate::{
    clock,
    failure::Failure,
    kind::{Kind, KindScope, Storage, SubresourceKind, Table},
    request::{
        accept::{Accept, Encoding},
        body::{self, Media},
        path::ResourcePath,
        query::{ListOptions, Query, WriteOptions},
    },
    show::{self, Rendered, View, table::Include},
    verb::{
        Answer, Call, create,
        delete::{self, DeleteOptions},
        list, patch, read, scale, update, watch,
    },
};

/// Whether a group is one of the reference server's own: its texts for what is not there differ.
pub(super) fn is_builtin(table: &Table, group: &str) -> bool {
    table
        .kinds
        .iter()
        .any(|kind| kind.builtin && kind.group == group)
}

/// Answers a request that was authorized.
pub(super) async fn answer<B>(
    server: &Arc<Server>,
    parts: &Parts,
    query: &Query,
    path: ResourcePath,
    body: B,
    seen: &mut Seen,
) -> Result<Response<Body>, Failure>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let table = server.registry.table();
    let kind = table
        .find(&path.group, &path.version, &path.resource)
        .filter(|_| !path.malformed)
        .cloned();
    let Some(kind) = kind else {
        return if is_builtin(&table, &path.group) {
            Err(Failure::unknown_path())
        } else {
            Ok(handle::nothing_there(server))
        };
    };
    (seen.group, seen.resource) = (kind.group, kind.plural);
    let namespaced = kind.scope == KindScope::Namespaced;
    if (path.namespace.is_some() && !namespaced)
        || (path.name.is_some() && path.namespace.is_none() && namespaced)
    {
        return Err(Failure::unknown_path());
    }
    if let Some(subresource) = &path.subresource
        && kind.subresource(subresource).is_none()
    {
        return Err(if kind.builtin {
            Failure::unknown_path()
        } else {
            Failure::not_found(
                kind.group,
                kind.plural,
                path.name.as_deref().unwrap_or_default(),
            )
        });
    }
    let call = Call {
        user: Arc::clone(&seen.user),
        attributes: seen.attributes.clone(),
        namespace: path.namespace,
        name: path.name.unwrap_or_default(),
        subresource: path.subresource,
        manager: manager(&parts.headers),
        now: clock::now(),
        restricted: true,
        kind,
    };
    let view = View {
        accept: Accept::parse(handle::header_text(&parts.headers, &header::ACCEPT))?,
        pretty: query
            .get("pretty")
            .is_some_and(|value| value == "true" || value == "1"),
        include: Include::parse(query.text("includeObject")),
    };
    Request {
        server,
        parts,
        query,
        call,
        view,
    }
    .answer(seen.verb, body)
    .await
}

/// Who writes, when the request's options do not say: the program in User-Agent.
fn manager(headers: &HeaderMap) -> String {
    match handle::header_text(headers, &header::USER_AGENT)
        .split('/')
        .next()
    {
        None | Some("") => "unknown".to_owned(),
        Some(program) => program.to_owned(),
    }
}

struct Request<'a> {
    server: &'a Arc<Server>,
    parts: &'a Parts,
    query: &'a Query,
    call: Call,
    view: View,
}

impl Request<'_> {
    async fn answer<B>(self, verb: &str, body: B) -> Result<Response<Body>, Failure>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let named = !self.call.name.is_empty();
        let part = self
            .call
            .subresource
            .as_deref()
            .and_then(|name| self.call.kind.subresource(name))
            .map(|subresource| &subresource.kind);
        // A namespaced collection without a namespace is for looking only.
        let everywhere = self.call.is_namespaced() && self.call.namespace.is_none();
        let stored = matches!(self.call.kind.storage, Storage::Stored);
        let action = matches!(part, Some(SubresourceKind::Action(_)));
        match verb {
            "get" if stored && !action => self.get().await,
            "list" if stored => self.list().await,
            "watch" if stored && part.is_none() => self.watch().await,
            "create" if action || (!named && !stored && !everywhere) => {
                let bytes = handle::read(self.server, self.parts, body).await?;
                self.review(&bytes).await
            }
            "create" if stored && !named && !everywhere => {
                let bytes = handle::read(self.server, self.parts, body).await?;
                self.create(&bytes).await
            }
            "update" if stored && named && !action => {
                let bytes = handle::read(self.server, self.parts, body).await?;
                self.update(&bytes).await
            }
            "patch" if stored && named && !action => {
                patch::supports(&self.call, self.media())?;
                let bytes = handle::read(self.server, self.parts, body).await?;
                self.patch(&bytes).await
            }
            "delete" if stored && part.is_none() => {
                let bytes = handle::read(self.server, self.parts, body).await?;
                self.delete(&bytes).await
            }
            "deletecollection" if stored && self.call.kind.delete_collection && !everywhere => {
                let bytes = handle::read(self.server, self.parts, body).await?;
                self.delete_collection(&bytes).await
            }
            verb => Err(not_allowed(&self.call.kind, verb)),
        }
    }

    fn media(&self) -> Media {
        Media::parse(
            self.parts
                .headers
                .get(header::CONTENT_TYPE)
                .and_then(|value| value.to_str().ok()),
        )
    }

    async fn get(&self) -> Result<Response<Body>, Failure> {
        let part = self
            .call
            .subresource
            .as_deref()
            .and_then(|name| self.call.kind.subresource(name));
        let answer = if matches!(
            part.map(|part| &part.kind),
            Some(SubresourceKind::Scale { .. })
        ) {
            scale::get(self.server, &self.call)?
        } else {
            read::get(self.server, &self.call, self.query.text("resourceVersion")).await?
        };
        self.show(&answer)
    }

    async fn list(&self) -> Result<Response<Body>, Failure> {
        let options = ListOptions::parse(self.query, false)?;
        let page = list::list(self.server, &self.call, &options).await?;
        let rendered = show::page(page, &self.call.kind, self.view, self.call.now)?;
        Ok(self.respond(StatusCode::OK, rendered, &[]))
    }

    async fn watch(&self) -> Result<Response<Body>, Failure> {
        let options = ListOptions::parse(self.query, true)?;
        let place = Arc::clone(&self.server.watches)
            .try_acquire_owned()
            .map_err(|_| Failure::busy("too many watches are open, please try again later"))?;
        let events = watch::watch(self.server, &self.call, &options, self.view).await?;
        let mut response = Response::new(Body::watch(self.server, events, place));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, handle::JSON);
        headers.insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("no-cache, private"),
        );
        Ok(response)
    }

    async fn create(&self, bytes: &[u8]) -> Result<Response<Body>, Failure> {
        let options = WriteOptions::parse(self.query, "CreateOptions", None)?;
        let object = body::object(bytes, self.media(), &self.call.kind)?;
        let answer = create::create(self.server, &self.call, &options, object).await?;
        self.show(&answer)
    }

    async fn update(&self, bytes: &[u8]) -> Result<Response<Body>, Failure> {
        let options = WriteOptions::parse(self.query, "UpdateOptions", None)?;
        let part = self
            .call
            .subresource
            .as_deref()
            .and_then(|name| self.call.kind.subresource(name));
        let answer = if matches!(
            part.map(|part| &part.kind),
            Some(SubresourceKind::Scale { .. })
        ) {
            let wanted = scale::decode(&self.call, bytes, self.media())?;
            scale::change(self.server, &self.call, &options, |_| Ok(wanted.clone())).await?
        } else {
            let object = body::object(bytes, self.media(), &self.call.kind)?;
            update::update(self.server, &self.call, &options, object).await?
        };
        self.show(&answer)
    }

    async fn patch(&self, bytes: &[u8]) -> Result<Response<Body>, Failure> {
        let media = self.media();
        let apply = media == Media::ApplyYaml;
        let options = WriteOptions::parse(self.query, "PatchOptions", Some(apply))?;
        let answer = patch::patch(self.server, &self.call, &options, media, bytes).await?;
        self.show(&answer)
    }

    async fn delete(&self, bytes: &[u8]) -> Result<Response<Body>, Failure> {
        let options = DeleteOptions::parse(self.query, self.media(), bytes)?;
        let answer = delete::delete(self.server, &self.call, &options).await?;
        self.show(&answer)
    }

    async fn delete_collection(&self, bytes: &[u8]) -> Result<Response<Body>, Failure> {
        let options = DeleteOptions::parse(self.query, self.media(), bytes)?;
        let selection = ListOptions::parse(self.query, false)?;
        let page = delete::collection(self.server, &self.call, &selection, &options).await?;
        let rendered = show::page(page, &self.call.kind, self.view, self.call.now)?;
        Ok(self.respond(StatusCode::OK, rendered, &[]))
    }

    /// Answers something that is computed and not stored.
    async fn review(&self, bytes: &[u8]) -> Result<Response<Body>, Failure> {
        let options = WriteOptions::parse(self.query, "CreateOptions", None)?;
        let context = self.call.context(options.dry_run);
        let part = self
            .call
            .subresource
            .as_deref()
            .and_then(|name| self.call.kind.subresource(name));
        let answer = match (part.map(|part| &part.kind), &self.call.kind.storage) {
            (Some(SubresourceKind::Action(review)), _) => {
                let media = self.media();
                let body = match media {
                    Media::Json => body::json(bytes).map_err(Failure::bad_request)?,
                    Media::Yaml => body::yaml(bytes).map_err(Failure::bad_request)?,
                    _ => return Err(body::unsupported_media()),
                };
                review.review(context, body).await?
            }
            (None, Storage::Review(review)) => {
                let object = body::object(bytes, self.media(), &self.call.kind)?;
                review.review(context, object).await?
            }
            _ => return Err(Failure::method_not_allowed()),
        };
        self.show(&Answer {
            code: StatusCode::CREATED,
            ..Answer::value(answer)
        })
    }

    fn show(&self, answer: &Answer) -> Result<Response<Body>, Failure> {
        let rendered = show::answer(answer, &self.call.kind, self.view, self.call.now)?;
        Ok(self.respond(answer.code, rendered, &answer.warnings))
    }

    fn respond(&self, code: StatusCode, rendered: Rendered, warnings: &[String]) -> Response<Body> {
        let body = match rendered {
            Rendered::Whole(bytes) => Body::whole(self.server, bytes),
            Rendered::List(list) => Body::list(self.server, list),
        };
        let mut response = Response::new(body);
        *response.status_mut() = code;
        let headers = response.headers_mut();
        let content_type = match self.view.accept.encoding {
            Encoding::Json => handle::JSON,
            Encoding::Yaml => HeaderValue::from_static("application/yaml"),
        };
        headers.insert(header::CONTENT_TYPE, content_type);
        headers.insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("no-cache, private"),
        );
        for warning in warnings {
            let escaped = warning.replace('\\', "\\\\").replace('"', "\\\"");
            if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{escaped}\"")) {
                headers.append(HeaderName::from_static("warning"), value);
            }
        }
        response
    }
}

fn not_allowed(kind: &Kind, verb: &str) -> Failure {
    if kind.builtin {
        return Failure::method_not_allowed();
    }
    Failure::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "MethodNotAllowed",
        format!(
            "{verb} is not supported on resources of kind \"{}.{}\"",
            kind.plural, kind.group
        ),
    )
    .with_details(json!({"group": kind.group, "kind": kind.plural}))
}
