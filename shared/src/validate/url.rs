//! Addresses of members and proxies.

use crate::field::FieldError;

struct Parts<'a> {
    scheme: &'a str,
    /// With user information.
    authority: Option<&'a str>,
    query: bool,
    fragment: bool,
}

/// Takes a URL apart. `None`: the part before the first colon is no scheme, and no path either.
fn parts(text: &str) -> Option<Parts<'_>> {
    let (text, fragment) = match text.split_once('#') {
        Some((text, fragment)) => (text, !fragment.is_empty()),
        None => (text, false),
    };
    let (text, query) = match text.split_once('?') {
        Some((text, query)) => (text, !query.is_empty()),
        None => (text, false),
    };
    let segment = text.split('/').next().unwrap_or_default();
    let (scheme, rest) = match segment.split_once(':') {
        None => ("", text),
        Some((scheme, _)) => {
            let mut letters = scheme.chars();
            let starts = letters.next().is_some_and(|c| c.is_ascii_alphabetic());
            if !starts || !letters.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)) {
                return None;
            }
            (scheme, &text[scheme.len() + 1..])
        }
    };
    let authority = rest
        .strip_prefix("//")
        .map(|rest| rest.split('/').next().unwrap_or_default());
    Some(Parts {
        scheme,
        authority,
        query,
        fragment,
    })
}

/// The address of a member's API server.
pub fn endpoint(path: &str, text: &str) -> Vec<FieldError> {
    const FORMAT: &str = "desired format: hostname, hostname:port, IP or IP:port";
    let invalid = |why: &str| FieldError::invalid(path, &text.into(), why);
    let Some(parts) = parts(text) else {
        let why = format!(
            "apiEndpoint must be a valid URL: parse \"{text}\": first path segment in URL cannot contain colon; {FORMAT}"
        );
        return vec![invalid(&why)];
    };
    let (user, host) = match parts.authority.unwrap_or_default().rsplit_once('@') {
        Some((_, host)) => (true, host),
        None => (false, parts.authority.unwrap_or_default()),
    };
    let mut errors = Vec::new();
    if host.is_empty() {
        errors.push(invalid(&format!("host must be provided; {FORMAT}")));
    }
    if user {
        errors.push(invalid("user information is not permitted in the URL"));
    }
    if parts.fragment {
        errors.push(invalid("fragments are not permitted in the URL"));
    }
    if parts.query {
        errors.push(invalid("query parameters are not permitted in the URL"));
    }
    errors
}

/// The address of a proxy.
pub fn proxy(path: &str, text: &str) -> Vec<FieldError> {
    let scheme = parts(text).map_or("", |parts| parts.scheme);
    if matches!(scheme, "http" | "https" | "socks5") {
        return Vec::new();
    }
    let why = format!("unsupported scheme \"{scheme}\", must be http, https, or socks5");
    vec![FieldError::invalid(path, &text.into(), &why)]
}
