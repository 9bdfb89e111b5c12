//! The spelling of names, label keys and label values, with what is wrong in the words of the Kubernetes API.

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const QUALIFIED: &str = "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// The longest DNS subdomain, and so the longest object name, in bytes.
pub const MAX_SUBDOMAIN: usize = 253;
/// The longest DNS label, and the longest label value, in bytes.
pub const MAX_LABEL: usize = 63;

/// What is wrong with a DNS subdomain (RFC 1123): empty when it is one.
pub fn subdomain(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > MAX_SUBDOMAIN {
        wrong.push(format!("must be no more than {MAX_SUBDOMAIN} bytes"));
    }
    if !name.split('.').all(is_dns_label) {
        wrong.push(SUBDOMAIN.to_owned());
    }
    wrong
}

/// What is wrong with a DNS label (RFC 1123).
pub fn dns_label(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > MAX_LABEL {
        wrong.push(format!("must be no more than {MAX_LABEL} bytes"));
    }
    if !is_dns_label(name) {
        wrong.push(LABEL.to_owned());
    }
    wrong
}

fn is_dns_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.bytes().all(|byte| inner(byte) || byte == b'-')
        && text.bytes().next().is_some_and(inner)
        && text.bytes().last().is_some_and(inner)
}

fn is_qualified_part(text: &str) -> bool {
    let ends = |byte: u8| byte.is_ascii_alphanumeric();
    text.bytes()
        .all(|byte| ends(byte) || matches!(byte, b'-' | b'_' | b'.'))
        && text.bytes().next().is_some_and(ends)
        && text.bytes().last().is_some_and(ends)
}

/// What is wrong with a qualified name, `prefix/name` or `name`: keys of labels and annotations, names of finalizers.
pub fn qualified_name(name: &str) -> Vec<String> {
    let mut parts = name.split('/');
    let (prefix, part) = match (parts.next(), parts.next(), parts.next()) {
        (Some(part), None, None) => (None, part),
        (Some(prefix), Some(part), None) => (Some(prefix), part),
        _ => return vec![QUALIFIED.to_owned()],
    };
    let mut wrong = Vec::new();
    match prefix {
        Some("") => wrong.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => wrong.extend(
            subdomain(prefix)
                .into_iter()
                .map(|text| format!("prefix part {text}")),
        ),
        None => {}
    }
    if part.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if part.len() > MAX_LABEL {
        wrong.push(format!("name part must be no more than {MAX_LABEL} bytes"));
    }
    if !is_qualified_part(part) {
        wrong.push(QUALIFIED_PART.to_owned());
    }
    wrong
}

/// What is wrong with the value of a label.
pub fn label_value(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if value.len() > MAX_LABEL {
        wrong.push(format!("must be no more than {MAX_LABEL} bytes"));
    }
    if !value.is_empty() && !is_qualified_part(value) {
        wrong.push(LABEL_VALUE.to_owned());
    }
    wrong
}

/// What is wrong with a key of a ConfigMap or Secret.
pub fn config_key(key: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if key.len() > MAX_SUBDOMAIN {
        wrong.push(format!("must be no more than {MAX_SUBDOMAIN} bytes"));
    }
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if key.is_empty() || !key.bytes().all(inner) {
        wrong.push(CONFIG_KEY.to_owned());
    } else if key == "." || key == ".." {
        wrong.push(format!("must not be '{key}'"));
    } else if key.starts_with("..") {
        wrong.push("must not start with '..'".to_owned());
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qualified_names() {
        for (name, good) in [
            ("a", true),
            ("x.io/a", true),
            ("X_y.z", true),
            ("/a", false),
            ("x.io/", false),
            ("a/b/c", false),
            ("Bad Name", false),
            ("UP.io/a", false),
            ("", false),
        ] {
            assert_eq!(qualified_name(name).is_empty(), good, "{name}");
        }
    }

    #[test]
    fn config_keys() {
        for (key, good) in [
            ("a", true),
            ("A_b-c.d", true),
            (".a", true),
            ("", false),
            (".", false),
            ("..", false),
            ("..a", false),
            ("a/b", false),
            ("a b", false),
        ] {
            assert_eq!(config_key(key).is_empty(), good, "{key:?}");
        }
        assert!(!config_key(&"a".repeat(254)).is_empty());
    }

    #[test]
    fn dns_names() {
        for (name, is_subdomain, is_label) in [
            ("a", true, true),
            ("a.b-c.1d", true, false),
            ("1a", true, true),
            ("", false, false),
            ("a..b", false, false),
            ("-a", false, false),
            ("A", false, false),
        ] {
            assert_eq!(subdomain(name).is_empty(), is_subdomain, "{name}");
            assert_eq!(dns_label(name).is_empty(), is_label, "{name}");
        }
        assert!(!subdomain(&"a".repeat(254)).is_empty());
        assert!(!dns_label(&"a".repeat(64)).is_empty());
    }
}
