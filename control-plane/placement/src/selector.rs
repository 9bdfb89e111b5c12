//! Label selectors, and the requirements that they are made of.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// Whether one requirement holds of a value; `value` is `None` where the key is absent.
///
/// A requirement that admission would refuse (an unknown operator, `In` and `NotIn` without values, `Exists` and
/// `DoesNotExist` with some, `Gt` and `Lt` with other than one number) holds of nothing: `None`.
pub fn requirement(operator: &str, values: &[String], value: Option<&str>) -> Option<bool> {
    let listed = || value.is_some_and(|value| values.iter().any(|listed| listed == value));
    match operator {
        "In" if !values.is_empty() => Some(listed()),
        "NotIn" if !values.is_empty() => Some(!listed()),
        "Exists" if values.is_empty() => Some(value.is_some()),
        "DoesNotExist" if values.is_empty() => Some(value.is_none()),
        "Gt" | "Lt" => {
            let [bound] = values else { return None };
            let bound = bound.parse::<i64>().ok()?;
            let Some(number) = value.and_then(|value| value.parse::<i64>().ok()) else {
                return Some(false);
            };
            Some(if operator == "Gt" {
                number > bound
            } else {
                number < bound
            })
        }
        _ => None,
    }
}

/// Whether labels satisfy a selector: all of its parts, so an empty one matches everything. One malformed requirement
/// makes it match nothing.
pub fn matches(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let pairs = selector.match_labels.iter().flatten();
    let requirements = selector.match_expressions.iter().flatten();
    pairs
        .into_iter()
        .all(|(key, value)| labels.get(key) == Some(value))
        && requirements.into_iter().all(|part| {
            // Label selectors know four operators; Gt and Lt belong to node selectors.
            !matches!(part.operator.as_str(), "Gt" | "Lt")
                && requirement(
                    &part.operator,
                    part.values.as_deref().unwrap_or_default(),
                    labels.get(&part.key).map(String::as_str),
                ) == Some(true)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements() {
        type Case = (
            &'static str,
            &'static [&'static str],
            Option<&'static str>,
            Option<bool>,
        );
        let table: &[Case] = &[
            ("In", &["a", "b"], Some("a"), Some(true)),
            ("In", &["a"], Some("c"), Some(false)),
            ("In", &["a"], None, Some(false)),
            ("In", &[], Some("a"), None),
            ("NotIn", &["a"], Some("a"), Some(false)),
            ("NotIn", &["a"], None, Some(true)),
            ("NotIn", &[], None, None),
            ("Exists", &[], Some(""), Some(true)),
            ("Exists", &[], None, Some(false)),
            ("Exists", &["x"], Some("x"), None),
            ("DoesNotExist", &[], None, Some(true)),
            ("DoesNotExist", &[], Some("x"), Some(false)),
            ("Gt", &["1"], Some("2"), Some(true)),
            ("Gt", &["1"], Some("x"), Some(false)),
            ("Gt", &["1"], None, Some(false)),
            ("Gt", &["x"], Some("2"), None),
            ("Lt", &["3"], Some("2"), Some(true)),
            ("Lt", &["3", "4"], Some("2"), None),
            ("Near", &["a"], Some("a"), None),
        ];
        for (operator, values, value, expected) in table {
            let values = values
                .iter()
                .map(|text| (*text).to_owned())
                .collect::<Vec<_>>();
            assert_eq!(
                requirement(operator, &values, *value),
                *expected,
                "{operator} {values:?} {value:?}"
            );
        }
    }
}
