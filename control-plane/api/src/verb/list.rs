//! List, and its paging.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use evenkeel_store::{Expired, ListQuery, Listing, Object, Revision, Scope};
use http::StatusCode;
use serde::{Deserialize, Serialize};

use super::{Call, read, select::Selection};
use crate::{
    failure::Failure,
    request::query::{ListOptions, Match},
    server::Server,
};

/// A page of objects.
pub(crate) struct Page {
    pub objects: Vec<Arc<Object>>,
    pub revision: Revision,
    /// Empty on the last page.
    pub continue_: String,
    /// Known only without selectors, and only when there is more.
    pub remaining: Option<usize>,
}

/// Where a list goes on. The form is the reference server's, which some tools look into.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Token {
    v: String,
    /// The revision of the first page; -1: whatever is there now.
    rv: i64,
    /// The last path of the page before, relative to the namespace of the list, and a NUL.
    start: String,
}

const TOKEN_VERSION: &str = "meta.k8s.io/v1";

impl Token {
    fn encode(revision: i64, path: &str) -> String {
        let token = Self {
            v: TOKEN_VERSION.to_owned(),
            rv: revision,
            start: format!("{path}\0"),
        };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).unwrap_or_default())
    }

    fn decode(text: &str) -> Result<Self, Failure> {
        let invalid = |why: &str| {
            Failure::bad_request(format!(
                "invalid continue token: continue key is not valid: {why}"
            ))
        };
        let bytes = URL_SAFE_NO_PAD
            .decode(text.trim_end_matches('='))
            .map_err(|error| invalid(&error.to_string()))?;
        let token: Self =
            serde_json::from_slice(&bytes).map_err(|error| invalid(&error.to_string()))?;
        if token.v != TOKEN_VERSION {
            return Err(invalid("server does not recognize this encoded version"));
        }
        if token.rv == 0 || token.rv < -1 {
            return Err(invalid("incorrect encoded start resourceVersion"));
        }
        if token.start.is_empty() || token.start.split('/').any(|part| part == "..") {
            return Err(invalid(&token.start));
        }
        Ok(token)
    }
}

/// Lists what a call is about.
pub(crate) async fn list(
    server: &Server,
    call: &Call,
    options: &ListOptions,
) -> Result<Page, Failure> {
    let selection = Selection::parse(options, &call.kind)?;
    let scope = selection.scope(call);
    let (at, after) = if options.continue_.is_empty() {
        (start(server, options).await?, None)
    } else {
        if !options.resource_version.is_empty() && options.resource_version != "0" {
            return Err(Failure::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let token = Token::decode(&options.continue_)?;
        let at = u64::try_from(token.rv).ok().map(Revision);
        let path = token.start.trim_end_matches('\0');
        let after = match scope.namespace.as_deref() {
            Some(namespace) => format!("{namespace}/{path}"),
            None => path.to_owned(),
        };
        (at, Some(after))
    };
    if let Some(at) = at {
        read::reach(server, at).await?;
    }
    let query = ListQuery {
        after,
        limit: options.limit,
        at,
    };
    let listing = server
        .store()
        .list(&scope, &query, &|object| selection.matches(object))
        .map_err(|Expired { .. }| expired(options, query.after.as_deref(), &scope))?;
    Ok(page(listing, at, &selection, &scope))
}

/// The snapshot that a list without a token reads: `None` is the newest state.
async fn start(server: &Server, options: &ListOptions) -> Result<Option<Revision>, Failure> {
    let Some(revision) = read::revision(&options.resource_version)? else {
        return Ok(None);
    };
    let exact = match options.version_match {
        Match::Exact => true,
        Match::NotOlderThan => false,
        Match::Unset => options.limit.is_some(),
    };
    if exact {
        return Ok(Some(revision));
    }
    read::reach(server, revision).await?;
    Ok(None)
}

fn page(listing: Listing, at: Option<Revision>, selection: &Selection, scope: &Scope) -> Page {
    let revision = at.unwrap_or(listing.revision);
    let last = listing.objects.last().filter(|_| listing.more);
    let continue_ = last.map_or_else(String::new, |object| {
        Token::encode(
            i64::try_from(revision.0).unwrap_or(i64::MAX),
            relative(&object.key.path, scope),
        )
    });
    Page {
        remaining: listing
            .remaining
            .filter(|_| listing.more && selection.is_empty()),
        objects: listing.objects,
        revision,
        continue_,
    }
}

fn relative<'a>(path: &'a str, scope: &Scope) -> &'a str {
    match scope.namespace.as_deref() {
        Some(namespace) => path
            .strip_prefix(namespace)
            .and_then(|path| path.strip_prefix('/'))
            .unwrap_or(path),
        None => path,
    }
}

fn expired(options: &ListOptions, after: Option<&str>, scope: &Scope) -> Failure {
    if options.continue_.is_empty() {
        return Failure::new(
            StatusCode::GONE,
            "Expired",
            "The resourceVersion for the provided list is too old.",
        );
    }
    let mut failure = Failure::new(
        StatusCode::GONE,
        "Expired",
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    );
    failure.continue_ = Some(Token::encode(
        -1,
        relative(after.unwrap_or_default(), scope),
    ));
    failure
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_the_reference_servers_token() {
        let token =
            Token::decode("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6Miwic3RhcnQiOiJjMFx1MDAwMCJ9")
                .unwrap();
        assert_eq!((token.rv, token.start.as_str()), (2, "c0\0"));
    }

    proptest! {
        /// A token gives back what was put in, and any other text is refused or read.
        #[test]
        fn tokens_go_around(rv in 1..i64::MAX, path in "[a-z0-9/-]{1,40}", noise in "\\PC{0,60}") {
            let token = Token::decode(&Token::encode(rv, &path)).unwrap();
            prop_assert_eq!(token.rv, rv);
            prop_assert_eq!(token.start, format!("{path}\0"));
            let _ = Token::decode(&noise);
        }
    }
}
