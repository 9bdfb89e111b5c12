//! Label and field selectors over stored objects.

use evenkeel_shared::selector::{FieldSelector, LabelSelector};
use evenkeel_store::{Object, Scope};

use super::Call;
use crate::{failure::Failure, kind::Kind, request::query::ListOptions};

/// Which objects a list or watch is about, within its scope.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selection {
    pub fn parse(options: &ListOptions, kind: &Kind) -> Result<Self, Failure> {
        let labels = LabelSelector::parse(&options.label_selector)
            .map_err(|error| Failure::bad_request(error.0))?;
        let fields = FieldSelector::parse(&options.field_selector)
            .map_err(|error| Failure::bad_request(error.0))?;
        for term in &fields.terms {
            let path = term.path.as_str();
            if matches!(path, "metadata.name" | "metadata.namespace")
                || kind.selectable_fields.contains(&path)
            {
                continue;
            }
            return Err(Failure::bad_request(
                if kind.builtin && kind.selectable_fields.is_empty() {
                    format!(
                        "\"{path}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                    )
                } else {
                    format!("field label not supported: {path}")
                },
            ));
        }
        Ok(Self { labels, fields })
    }

    /// Whether it selects everything in its scope.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub fn matches(&self, object: &Object) -> bool {
        if self.is_empty() {
            return true;
        }
        let attributes = &object.attributes;
        self.labels.matches(|key| {
            attributes
                .labels
                .binary_search_by(|(name, _)| name.as_ref().cmp(key))
                .ok()
                .map(|place| attributes.labels[place].1.as_ref())
        }) && self.fields.matches(|path| match path {
            "metadata.name" => object.key.name(),
            "metadata.namespace" => object.key.namespace().unwrap_or_default(),
            path => attributes
                .fields
                .binary_search_by(|(name, _)| name.as_ref().cmp(path))
                .map_or("", |place| attributes.fields[place].1.as_ref()),
        })
    }

    /// The narrowest scope that holds everything selected: one object, when a field selector names it.
    pub fn scope(&self, call: &Call) -> Scope {
        let resource = call.resource();
        let namespace = call
            .namespace
            .as_deref()
            .or_else(|| self.fields.required("metadata.namespace"))
            .filter(|namespace| call.is_namespaced() && !namespace.is_empty());
        let name = if call.name.is_empty() {
            self.fields.required("metadata.name")
        } else {
            Some(call.name.as_str())
        };
        Scope {
            resource,
            namespace: namespace.map(Into::into),
            name: name
                .filter(|_| namespace.is_some() || !call.is_namespaced())
                .map(Into::into),
        }
    }
}

/// The object that a list or watch is limited to by `fieldSelector=metadata.name=…`; authorization goes by it.
pub(crate) fn named(field_selector: &str) -> Option<String> {
    let fields = FieldSelector::parse(field_selector).ok()?;
    fields.required("metadata.name").map(str::to_owned)
}
