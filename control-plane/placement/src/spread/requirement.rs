//! Selectors in their structured form, as conjunctions of label requirements.

use evenkeel_shared::selector::{Operator, Requirement};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::Labels;

/// A conjunction of requirements. True of everything when there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    all: Vec<Requirement>,
    /// One of them cannot be read: nothing matches.
    unreadable: bool,
}

impl Requirements {
    /// The requirements of a `LabelSelector`.
    pub fn of_selector(selector: &LabelSelector) -> Self {
        let mut requirements = Self::of_pairs(selector.match_labels.iter().flatten());
        for expression in selector.match_expressions.iter().flatten() {
            let values = expression.values.as_deref().unwrap_or_default();
            requirements.require(&expression.key, &expression.operator, values);
        }
        requirements
    }

    /// One equality for each pair.
    pub fn of_pairs<'a>(pairs: impl IntoIterator<Item = (&'a String, &'a String)>) -> Self {
        let mut requirements = Self::default();
        for (key, value) in pairs {
            requirements.require_value(key, value);
        }
        requirements
    }

    /// Adds that a label has this value.
    pub fn require_value(&mut self, key: &str, value: &str) {
        self.require(key, "In", &[value.to_owned()]);
    }

    /// Adds a requirement in the words of a `LabelSelectorRequirement` or a `NodeSelectorRequirement`. `Gt` and `Lt`
    /// want one integer; what cannot be read matches nothing.
    pub fn require(&mut self, key: &str, operator: &str, values: &[String]) {
        let set = || values.iter().cloned().collect();
        let bound = || match values {
            [one] => one.parse().ok(),
            _ => None,
        };
        let operator = match operator {
            "In" => Some(Operator::In(set())),
            "NotIn" => Some(Operator::NotIn(set())),
            "Exists" => Some(Operator::Exists),
            "DoesNotExist" => Some(Operator::DoesNotExist),
            "Gt" => bound().map(Operator::GreaterThan),
            "Lt" => bound().map(Operator::LessThan),
            _ => None,
        };
        match operator {
            Some(operator) => self.all.push(Requirement {
                key: key.to_owned(),
                operator,
            }),
            None => self.unreadable = true,
        }
    }

    /// Adds those of another conjunction.
    pub fn and(&mut self, other: Self) {
        self.all.extend(other.all);
        self.unreadable |= other.unreadable;
    }

    /// Whether labels fulfil all of them.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.matches_by(|key| labels.get(key).map(String::as_str))
    }

    /// The same with labels looked up by key.
    pub fn matches_by<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        !self.unreadable
            && self
                .all
                .iter()
                .all(|requirement| requirement.matches(label(&requirement.key)))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && !self.unreadable
    }
}
