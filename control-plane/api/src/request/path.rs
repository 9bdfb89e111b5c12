//! Paths: which resource, or which other endpoint.

use http::Method;

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// `/api`
    Core,
    /// `/apis`
    Groups,
    /// `/apis/apps`
    Group(String),
    /// `/api/v1`, `/apis/apps/v1`; the core group is empty.
    GroupVersion { group: String, version: String },
    /// Something in a group and version.
    Resource(ResourcePath),
    /// Anything else: `/healthz`.
    Other,
}

/// A resource, an object or a part of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourcePath {
    pub group: String,
    pub version: String,
    pub namespace: Option<String>,
    /// Plural.
    pub resource: String,
    pub name: Option<String>,
    pub subresource: Option<String>,
    /// The old `/watch/` form.
    pub watch: bool,
    /// Nothing can be there: a segment is empty, or there are too many.
    pub malformed: bool,
}

/// The most segments that a path may have; what is longer names nothing.
const MAX_SEGMENTS: usize = 16;

/// Understands a path. `None`: a percent-escape is broken or does not make UTF-8.
pub fn parse(path: &str) -> Option<Route> {
    let trimmed = path.trim_matches('/');
    let mut segments = Vec::new();
    for segment in trimmed.split('/').take(MAX_SEGMENTS + 1) {
        segments.push(decode(segment)?);
    }
    let mut segments = segments.into_iter();
    let (group, version) = match segments.next().as_deref() {
        Some("api") => match segments.next() {
            None => return Some(Route::Core),
            Some(version) => (String::new(), version),
        },
        Some("apis") => match (segments.next(), segments.next()) {
            (None, _) => return Some(Route::Groups),
            (Some(group), None) => return Some(Route::Group(group)),
            (Some(group), Some(version)) => (group, version),
        },
        _ => return Some(Route::Other),
    };
    let rest = segments.collect::<Vec<_>>();
    if rest.is_empty() {
        return Some(Route::GroupVersion { group, version });
    }
    // `/apis//v1/pods` is not another name of `/api/v1/pods`.
    let nameless = version.is_empty() || (group.is_empty() && trimmed.starts_with("apis"));
    let mut path = resource(group, version, rest);
    path.malformed |= nameless;
    Some(Route::Resource(path))
}

fn resource(group: String, version: String, rest: Vec<String>) -> ResourcePath {
    let mut path = ResourcePath {
        group,
        version,
        malformed: rest.iter().any(String::is_empty),
        ..ResourcePath::default()
    };
    let mut rest = rest.into_iter().peekable();
    if rest.peek().is_some_and(|first| first == "watch") {
        rest.next();
        path.watch = true;
    }
    let mut rest = rest.collect::<Vec<_>>();
    // `/namespaces/a` is the namespace itself, `/namespaces/a/status` and `/namespaces/a/finalize` are parts of it, and
    // `/namespaces/a/pods` are the pods in it.
    if rest.len() > 2
        && rest[0] == "namespaces"
        && !(rest.len() == 3 && matches!(rest[2].as_str(), "status" | "finalize"))
    {
        path.namespace = Some(std::mem::take(&mut rest[1]));
        rest.drain(..2);
    }
    let mut rest = rest.into_iter();
    path.resource = rest.next().unwrap_or_default();
    path.name = rest.next();
    path.subresource = rest.next();
    path.malformed |= rest.next().is_some() || path.resource.is_empty();
    path
}

/// The verb of a request to a resource, in RBAC's words; `None` for methods that no resource has.
pub fn verb(method: &Method, path: &ResourcePath, watch: bool) -> Option<&'static str> {
    match (method.as_str(), path.name.is_some()) {
        ("GET" | "HEAD", true) if path.watch => Some("watch"),
        ("GET" | "HEAD", true) => Some("get"),
        ("GET" | "HEAD", false) if watch || path.watch => Some("watch"),
        ("GET" | "HEAD", false) => Some("list"),
        ("POST", _) => Some("create"),
        ("PUT", _) => Some("update"),
        ("PATCH", _) => Some("patch"),
        ("DELETE", true) => Some("delete"),
        ("DELETE", false) => Some("deletecollection"),
        _ => None,
    }
}

/// Undoes percent-escapes. `None` when one is broken or the result is no UTF-8.
pub fn decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            let value = digit(rest.next())? * 16 + digit(rest.next())?;
            bytes.push(u8::try_from(value).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(
        group: &str,
        namespace: Option<&str>,
        resource: &str,
        name: Option<&str>,
        subresource: Option<&str>,
    ) -> Route {
        Route::Resource(ResourcePath {
            group: group.into(),
            version: "v1".into(),
            namespace: namespace.map(Into::into),
            resource: resource.into(),
            name: name.map(Into::into),
            subresource: subresource.map(Into::into),
            watch: false,
            malformed: false,
        })
    }

    #[test]
    fn paths() {
        let table = [
            ("/api", Route::Core),
            ("/api/", Route::Core),
            ("/apis", Route::Groups),
            ("/apis/apps", Route::Group("apps".into())),
            (
                "/api/v1/",
                Route::GroupVersion {
                    group: String::new(),
                    version: "v1".into(),
                },
            ),
            ("/healthz", Route::Other),
            ("/", Route::Other),
            ("/api/v1/nodes", path("", None, "nodes", None, None)),
            (
                "/api/v1/namespaces",
                path("", None, "namespaces", None, None),
            ),
            (
                "/api/v1/namespaces/a",
                path("", None, "namespaces", Some("a"), None),
            ),
            (
                "/api/v1/namespaces/a/finalize",
                path("", None, "namespaces", Some("a"), Some("finalize")),
            ),
            (
                "/api/v1/namespaces/a/pods/",
                path("", Some("a"), "pods", None, None),
            ),
            (
                "/api/v1/namespaces/a/status/b",
                path("", Some("a"), "status", Some("b"), None),
            ),
            (
                "/apis/apps/v1/namespaces/a/deployments/c%31/scale",
                path("apps", Some("a"), "deployments", Some("c1"), Some("scale")),
            ),
        ];
        for (text, want) in table {
            assert_eq!(parse(text), Some(want), "{text}");
        }
        for broken in ["/api/v1/pods/%", "/api/v1/pods/%f", "/api/v1/pods/%ff"] {
            assert_eq!(parse(broken), None, "{broken}");
        }
        for malformed in ["/api/v1//namespaces", "/api/v1/namespaces/a/pods/b/c/d"] {
            let Some(Route::Resource(path)) = parse(malformed) else {
                panic!("{malformed}")
            };
            assert!(path.malformed, "{malformed}");
        }
    }

    proptest! {
        /// Any text is understood or refused, and what is understood holds no percent-escape that came in.
        #[test]
        fn never_panics(text in "[/a-z%0-9\\PC]{0,80}") {
            let _ = parse(&text);
            let _ = decode(&text);
        }

        /// Escaping a name and parsing it gives the name.
        #[test]
        fn escapes(name in "[^/]{1,20}") {
            let escaped = name.bytes().fold(String::new(), |text, byte| format!("{text}%{byte:02X}"));
            let parsed = parse(&format!("/api/v1/nodes/{escaped}"));
            prop_assert_eq!(parsed, Some(path("", None, "nodes", Some(&name), None)));
        }
    }
}
