//! One rule of a role, and whether it covers a request. Matching is the reference server's, letter by letter.

use serde::{Deserialize, Deserializer, Serialize};

use crate::access::Attributes;

/// Matches every verb, group, resource or path.
pub const ALL: &str = "*";

/// What some verbs may be used on.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyRule {
    #[serde(deserialize_with = "null_is_empty")]
    pub verbs: Vec<String>,
    /// The core group is the empty text.
    #[serde(
        deserialize_with = "null_is_empty",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub api_groups: Vec<String>,
    /// Plurals, `pods/log` for a subresource, `*/scale` for that subresource of everything.
    #[serde(
        deserialize_with = "null_is_empty",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub resources: Vec<String>,
    /// Empty: all names.
    #[serde(
        deserialize_with = "null_is_empty",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub resource_names: Vec<String>,
    /// Paths, with `*` at the end for everything behind.
    #[serde(
        rename = "nonResourceURLs",
        deserialize_with = "null_is_empty",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub non_resource_urls: Vec<String>,
}

fn null_is_empty<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

fn has(list: &[String], item: &str) -> bool {
    list.iter().any(|member| member == item)
}

fn has_or_all(list: &[String], item: &str) -> bool {
    list.iter().any(|member| member == ALL || member == item)
}

impl PolicyRule {
    /// Whether this rule allows that request.
    pub fn allows(&self, request: &Attributes) -> bool {
        if !has_or_all(&self.verbs, &request.verb) {
            return false;
        }
        if request.resource.is_empty() {
            return self.covers_path(&request.path);
        }
        has_or_all(&self.api_groups, &request.group)
            && self
                .resources
                .iter()
                .any(|resource| resource_matches(resource, request))
            && (self.resource_names.is_empty() || has(&self.resource_names, &request.name))
    }

    fn covers_path(&self, path: &str) -> bool {
        self.non_resource_urls.iter().any(|pattern| {
            pattern == ALL
                || pattern == path
                || pattern
                    .strip_suffix('*')
                    .is_some_and(|prefix| path.starts_with(prefix.trim_end_matches('*')))
        })
    }

    /// Whether whoever has this rule has all of `wanted`, which names one verb, and one resource of one group, with one
    /// name at most, or one path.
    pub(super) fn covers(&self, wanted: &PolicyRule) -> bool {
        let all_of = |have: &[String], want: &[String]| {
            has(have, ALL) || want.iter().all(|item| has(have, item))
        };
        all_of(&self.verbs, &wanted.verbs)
            && all_of(&self.api_groups, &wanted.api_groups)
            && wanted.resources.iter().all(|resource| {
                has_or_all(&self.resources, resource)
                    || resource.split_once('/').is_some_and(|(_, subresource)| {
                        has(&self.resources, &format!("{ALL}/{subresource}"))
                    })
            })
            && (self.resource_names.is_empty()
                || !wanted.resource_names.is_empty()
                    && wanted
                        .resource_names
                        .iter()
                        .all(|name| has(&self.resource_names, name)))
            && wanted
                .non_resource_urls
                .iter()
                .all(|path| self.covers_path(path))
    }

    /// `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`: as the reference server writes a rule into an error.
    pub(super) fn describe(&self) -> String {
        let parts = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let parts = parts
            .iter()
            .filter(|(_, items)| !items.is_empty())
            .map(|(name, items)| format!("{name}:{}", quoted(items)))
            .collect::<Vec<_>>();
        format!("{{{}}}", parts.join(", "))
    }
}

/// `["a" "b"]`.
pub(super) fn quoted(items: &[String]) -> String {
    let items = items
        .iter()
        .map(|item| format!("{item:?}"))
        .collect::<Vec<_>>();
    format!("[{}]", items.join(" "))
}

fn resource_matches(pattern: &str, request: &Attributes) -> bool {
    if pattern == ALL {
        return true;
    }
    if request.subresource.is_empty() {
        return pattern == request.resource;
    }
    // `pods/*` is not a pattern there, and so gives nothing here.
    pattern
        .split_once('/')
        .is_some_and(|(resource, subresource)| {
            subresource == request.subresource && (resource == ALL || resource == request.resource)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(items: &[&str]) -> Vec<String> {
        items.iter().map(|&item| item.to_owned()).collect()
    }

    fn rule(verbs: &[&str], groups: &[&str], resources: &[&str], names: &[&str]) -> PolicyRule {
        PolicyRule {
            verbs: list(verbs),
            api_groups: list(groups),
            resources: list(resources),
            resource_names: list(names),
            non_resource_urls: Vec::new(),
        }
    }

    #[test]
    fn resources() {
        let wide = rule(&["*"], &["*"], &["*"], &[]);
        let named = rule(&["get", "update"], &["apps"], &["deployments"], &["a", "b"]);
        let scale = rule(&["get"], &["*"], &["*/scale", "pods/log"], &[]);
        let star = rule(&["get"], &[""], &["pods/*"], &[]);
        let core = rule(&["get"], &[""], &["pods"], &[]);
        for (rule, verb, group, resource, name, expected) in [
            (&wide, "escalate", "x", "ys/z", "", true),
            (&named, "get", "apps", "deployments", "a", true),
            (&named, "get", "apps", "deployments", "c", false),
            (&named, "get", "apps", "deployments", "", false),
            (&named, "list", "apps", "deployments", "a", false),
            (&named, "get", "", "deployments", "a", false),
            (&named, "get", "apps", "deployments/status", "a", false),
            (&scale, "get", "apps", "deployments/scale", "a", true),
            (&scale, "get", "apps", "deployments", "a", false),
            (&scale, "get", "", "pods/log", "a", true),
            (&scale, "get", "", "pods", "a", false),
            (&scale, "get", "", "pods/exec", "a", false),
            (&star, "get", "", "pods/log", "a", false),
            (&core, "get", "", "pods", "a", true),
            (&core, "get", "", "pods/log", "a", false),
        ] {
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            let request = Attributes {
                verb: verb.into(),
                group: group.into(),
                resource: resource.into(),
                subresource: subresource.into(),
                name: name.into(),
                ..Attributes::default()
            };
            assert_eq!(rule.allows(&request), expected, "{rule:?} {request:?}");
        }
    }

    #[test]
    fn paths() {
        let rule = |urls: &[&str]| PolicyRule {
            verbs: list(&["get"]),
            non_resource_urls: list(urls),
            ..PolicyRule::default()
        };
        for (urls, verb, path, expected) in [
            (&["/healthz"][..], "get", "/healthz", true),
            (&["/healthz"], "get", "/healthz/ping", false),
            (&["/healthz"], "post", "/healthz", false),
            (&["/healthz/*"], "get", "/healthz/ping", true),
            (&["/healthz/*"], "get", "/healthz", false),
            (&["/api*"], "get", "/apis/apps", true),
            (&["*"], "get", "/anything", true),
            (&[], "get", "/anything", false),
        ] {
            let request = Attributes {
                verb: verb.into(),
                path: path.into(),
                ..Attributes::default()
            };
            assert_eq!(rule(urls).allows(&request), expected, "{urls:?} {path}");
        }
        let everything = super::PolicyRule {
            verbs: list(&["*"]),
            api_groups: list(&["*"]),
            resources: list(&["*"]),
            ..PolicyRule::default()
        };
        let request = Attributes {
            verb: "get".into(),
            path: "/metrics".into(),
            ..Attributes::default()
        };
        assert!(
            !everything.allows(&request),
            "all resources are not all paths"
        );
    }

    #[test]
    fn null_lists_are_empty_and_unknown_fields_are_ignored() {
        let rule: PolicyRule = serde_json::from_str(
            r#"{"verbs":["get"],"resources":null,"nonResourceURLs":["/x"],"x":1}"#,
        )
        .unwrap();
        assert_eq!(rule.non_resource_urls, ["/x"]);
        assert!(rule.resources.is_empty());
    }
}
