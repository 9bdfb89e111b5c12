//! Which names objects may have.

use evenkeel_shared::syntax;
use rand::RngExt;

use crate::kind::NameRule;

/// What a server appends to a `generateName`, in bytes.
pub const SUFFIX: usize = 5;

/// What is wrong with a name, in the reference server's words. `prefix`: a `generateName`, which may end in a dash.
pub fn check(rule: NameRule, name: &str, prefix: bool) -> Vec<String> {
    match rule {
        NameRule::DnsSubdomain => syntax::subdomain(&masked(name, prefix)),
        NameRule::DnsLabel => syntax::dns_label(&masked(name, prefix)),
        NameRule::PathSegment => path_segment(name, prefix),
    }
}

/// A prefix that ends in a dash is fine when a letter follows.
fn masked(name: &str, prefix: bool) -> String {
    match name.strip_suffix('-') {
        Some(head) if prefix && !head.is_empty() => format!("{head}a"),
        _ => name.to_owned(),
    }
}

fn path_segment(name: &str, prefix: bool) -> Vec<String> {
    if !prefix && (name == "." || name == "..") {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"]
        .iter()
        .filter(|part| name.contains(**part))
        .map(|part| format!("may not contain '{part}'"))
        .collect()
}

/// Five characters without vowels and look-alikes, as the reference server appends them.
pub fn suffix() -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut random = rand::rng();
    (0..SUFFIX)
        .map(|_| char::from(LETTERS[random.random_range(0..LETTERS.len())]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let table = [
            (NameRule::DnsSubdomain, "a.b-c.d1", false, true),
            (NameRule::DnsSubdomain, "gen-", true, true),
            (NameRule::DnsSubdomain, "gen-", false, false),
            (NameRule::DnsSubdomain, "gen.", true, false),
            (NameRule::DnsLabel, "1a", false, true),
            (NameRule::DnsLabel, "a.b", false, false),
            (NameRule::PathSegment, "system:My_Role", false, true),
            (NameRule::PathSegment, "..", false, false),
            (NameRule::PathSegment, "a/b", false, false),
            (NameRule::PathSegment, "a%b", false, false),
        ];
        for (rule, name, prefix, good) in table {
            assert_eq!(
                check(rule, name, prefix).is_empty(),
                good,
                "{rule:?} {name} {prefix}"
            );
        }
    }
}
