//! Query parameters and the options that they make.

use evenkeel_shared::field::{FieldError, FieldErrorKind};
use serde_json::json;

use super::syntax;
use crate::failure::Failure;

/// The parameters of a request, in order. Names may come more than once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

/// The most parameters that a request may have; further ones are not read.
const MAX_PARAMETERS: usize = 64;

impl Query {
    /// Reads `a=b&c=d`. A pair with a broken escape is left out, as the reference server does.
    pub fn parse(text: &str) -> Self {
        let mut pairs = Vec::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            if pairs.len() == MAX_PARAMETERS {
                break;
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decoded = |text: &str| super::path::decode(&text.replace('+', " "));
            if let (Some(name), Some(value)) = (decoded(name), decoded(value)) {
                pairs.push((name, value));
            }
        }
        Self(pairs)
    }

    /// The first value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }

    /// Every value of a parameter.
    pub fn all<'a>(&'a self, name: &'static str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }

    /// The first value of a parameter; empty when absent.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// Any value counts as true, save `0` and `false`; absent is false.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name)
            .is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// A whole number; a value that is none is refused.
    pub fn number(&self, name: &str) -> Result<Option<i64>, Failure> {
        match self.get(name) {
            None | Some("") => Ok(None),
            Some(value) => value.parse().map(Some).map_err(|_| {
                Failure::bad_request(format!(
                    "strconv.ParseInt: parsing {}: invalid syntax",
                    syntax::quote(value)
                ))
            }),
        }
    }
}

/// `resourceVersionMatch`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Match {
    #[default]
    Unset,
    Exact,
    NotOlderThan,
}

/// The options of a list and of a watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    pub label_selector: String,
    pub field_selector: String,
    /// `None`: no limit.
    pub limit: Option<usize>,
    pub continue_: String,
    pub resource_version: String,
    pub version_match: Match,
    pub watch: bool,
    pub bookmarks: bool,
    pub send_initial_events: Option<bool>,
    pub timeout_seconds: Option<u64>,
}

impl ListOptions {
    pub fn parse(query: &Query, watch: bool) -> Result<Self, Failure> {
        let limit = query.number("limit")?;
        let timeout = query.number("timeoutSeconds")?;
        let version_match = query.text("resourceVersionMatch");
        let options = Self {
            label_selector: query.text("labelSelector").to_owned(),
            field_selector: query.text("fieldSelector").to_owned(),
            limit: limit
                .and_then(|limit| usize::try_from(limit).ok())
                .filter(|limit| *limit > 0),
            continue_: query.text("continue").to_owned(),
            resource_version: query.text("resourceVersion").to_owned(),
            version_match: match version_match {
                "Exact" => Match::Exact,
                "NotOlderThan" => Match::NotOlderThan,
                _ => Match::Unset,
            },
            watch,
            bookmarks: query.flag("allowWatchBookmarks"),
            send_initial_events: query
                .get("sendInitialEvents")
                .map(|_| query.flag("sendInitialEvents")),
            timeout_seconds: timeout
                .and_then(|seconds| u64::try_from(seconds).ok())
                .filter(|seconds| *seconds > 0),
        };
        let errors = if watch {
            options.check_watch(version_match)
        } else {
            options.check_list(version_match)
        };
        if errors.is_empty() {
            Ok(options)
        } else {
            Err(Failure::options("ListOptions", &errors))
        }
    }

    fn check_list(&self, version_match: &str) -> Vec<FieldError> {
        const PATH: &str = "resourceVersionMatch";
        let mut errors = Vec::new();
        if !version_match.is_empty() {
            if self.resource_version.is_empty() {
                errors.push(FieldError::forbidden(
                    PATH,
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                ));
            }
            if !self.continue_.is_empty() {
                errors.push(FieldError::forbidden(
                    PATH,
                    "resourceVersionMatch is forbidden when continue is provided",
                ));
            }
            if self.version_match == Match::Unset {
                errors.push(FieldError::not_supported(
                    PATH,
                    &json!(version_match),
                    &["Exact", "NotOlderThan", ""],
                ));
            }
            if self.version_match == Match::Exact && self.resource_version == "0" {
                errors.push(FieldError::forbidden(
                    PATH,
                    "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                ));
            }
        }
        if self.send_initial_events.is_some() {
            errors.push(FieldError::forbidden(
                "sendInitialEvents",
                "sendInitialEvents is forbidden for list",
            ));
        }
        errors
    }

    fn check_watch(&self, version_match: &str) -> Vec<FieldError> {
        const PATH: &str = "resourceVersionMatch";
        let mut errors = Vec::new();
        if self.send_initial_events.is_some() && self.version_match != Match::NotOlderThan {
            errors.push(FieldError::forbidden(
                PATH,
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ));
        }
        if !version_match.is_empty() {
            if self.send_initial_events.is_none() {
                errors.push(FieldError::forbidden(
                    PATH,
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                ));
            }
            if self.version_match != Match::NotOlderThan {
                errors.push(FieldError::not_supported(
                    PATH,
                    &json!(version_match),
                    &["NotOlderThan"],
                ));
            }
            if !self.continue_.is_empty() {
                errors.push(FieldError::forbidden(
                    PATH,
                    "resourceVersionMatch is forbidden when continue is provided",
                ));
            }
        }
        errors
    }
}

/// `fieldValidation`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// The options of a write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    pub dry_run: bool,
    pub field_manager: String,
    pub field_validation: FieldValidation,
    /// Of an apply patch.
    pub force: bool,
}

/// The longest name of a field manager, in bytes.
const MAX_MANAGER: usize = 128;

impl WriteOptions {
    /// `kind`: `CreateOptions`, `UpdateOptions` or `PatchOptions`; `apply`: for a patch, whether it is an apply patch.
    pub fn parse(query: &Query, kind: &str, apply: Option<bool>) -> Result<Self, Failure> {
        let mut errors = Vec::new();
        let manager = query.text("fieldManager");
        if apply == Some(false) && query.get("force").is_some() {
            errors.push(FieldError::forbidden(
                "force",
                "may not be specified for non-apply patch",
            ));
        }
        if apply == Some(true) && manager.is_empty() {
            errors.push(FieldError::required(
                "fieldManager",
                "is required for apply patch",
            ));
        }
        check_manager(manager, &mut errors);
        let dry_run = dry_run(&query.all("dryRun").collect::<Vec<_>>(), &mut errors);
        let field_validation = match query.text("fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                errors.push(FieldError::not_supported(
                    "fieldValidation",
                    &json!(other),
                    &["", "Ignore", "Strict", "Warn"],
                ));
                FieldValidation::Warn
            }
        };
        if !errors.is_empty() {
            return Err(Failure::options(kind, &errors));
        }
        Ok(Self {
            dry_run,
            field_manager: manager.to_owned(),
            field_validation,
            force: query.flag("force"),
        })
    }
}

fn check_manager(manager: &str, errors: &mut Vec<FieldError>) {
    if manager.len() > MAX_MANAGER {
        errors.push(FieldError::too_long("fieldManager", MAX_MANAGER));
    }
    if let Some((position, letter)) = manager
        .chars()
        .enumerate()
        .find(|(_, letter)| letter.is_control())
    {
        errors.push(FieldError {
            kind: FieldErrorKind::Invalid,
            path: "fieldManager".into(),
            message: format!(
                "Invalid value: {}: invalid character U+{:04X} (at position {position})",
                syntax::quote(manager),
                letter as u32
            ),
        });
    }
}

/// Whether this is a dry run; values other than `All` are errors.
pub fn dry_run(values: &[&str], errors: &mut Vec<FieldError>) -> bool {
    if values.iter().any(|value| *value != "All") {
        errors.push(FieldError::not_supported(
            "dryRun",
            &json!(values),
            &["All"],
        ));
    }
    !values.is_empty()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn flags() {
        for (text, want) in [
            ("", false),
            ("watch", true),
            ("watch=1", true),
            ("watch=xyz", true),
            ("watch=0", false),
            ("watch=False", false),
        ] {
            assert_eq!(Query::parse(text).flag("watch"), want, "{text}");
        }
    }

    #[test]
    fn list_options_that_are_refused() {
        for (text, watch, want) in [
            (
                "limit=abc",
                false,
                "strconv.ParseInt: parsing \"abc\": invalid syntax",
            ),
            (
                "timeoutSeconds=30s",
                false,
                "strconv.ParseInt: parsing \"30s\": invalid syntax",
            ),
            (
                "resourceVersionMatch=Exact&resourceVersion=0",
                false,
                "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            ),
            (
                "sendInitialEvents=true",
                false,
                "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
            ),
            (
                "sendInitialEvents=true",
                true,
                "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ),
        ] {
            let failure = ListOptions::parse(&Query::parse(text), watch).unwrap_err();
            assert_eq!(failure.message, want, "{text}");
        }
    }

    #[test]
    fn write_options_that_are_refused() {
        for (text, apply, want) in [
            (
                "dryRun=",
                None,
                "X.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"\"]: supported values: \"All\"",
            ),
            (
                "force=true",
                Some(false),
                "X.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch",
            ),
            (
                "",
                Some(true),
                "X.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
            ),
            (
                "fieldManager=bad%07name",
                None,
                "X.meta.k8s.io \"\" is invalid: fieldManager: Invalid value: \"bad\\aname\": invalid character U+0007 (at position 3)",
            ),
        ] {
            let failure = WriteOptions::parse(&Query::parse(text), "X", apply).unwrap_err();
            assert_eq!(failure.message, want, "{text}");
        }
        assert!(
            WriteOptions::parse(&Query::parse("dryRun=All&dryRun=All"), "X", None)
                .unwrap()
                .dry_run
        );
    }

    proptest! {
        /// Any text makes some query, of bounded size.
        #[test]
        fn never_panics(text in "[&=%+a-z0-9\\PC]{0,200}") {
            let query = Query::parse(&text);
            prop_assert!(query.0.len() <= MAX_PARAMETERS);
            let _ = ListOptions::parse(&query, false);
            let _ = WriteOptions::parse(&query, "X", Some(true));
        }
    }
}
