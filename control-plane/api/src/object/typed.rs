//! The types of the metadata fields. A body with another type there does not decode, and the text says which one, as
//! the reference server's decoder does: with the path for its own kinds, with the bare field for custom ones.

use serde_json::Value;

#[derive(Clone, Copy)]
enum Type {
    Text,
    Number,
    Texts,
    TextMap,
    Objects(&'static str),
    Time,
}

const FIELDS: [(&str, Type); 16] = [
    ("annotations", Type::TextMap),
    ("creationTimestamp", Type::Time),
    ("deletionGracePeriodSeconds", Type::Number),
    ("deletionTimestamp", Type::Time),
    ("finalizers", Type::Texts),
    ("generateName", Type::Text),
    ("generation", Type::Number),
    ("labels", Type::TextMap),
    ("managedFields", Type::Objects("v1.ManagedFieldsEntry")),
    ("name", Type::Text),
    ("namespace", Type::Text),
    ("ownerReferences", Type::Objects("v1.OwnerReference")),
    ("resourceVersion", Type::Text),
    ("selfLink", Type::Text),
    ("uid", Type::Text),
    ("clusterName", Type::Text),
];

/// What `json` calls the type of a value.
pub fn type_name(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => "bool".into(),
        Value::Number(_) => "number".into(),
        Value::String(_) => "string".into(),
        Value::Array(_) => "array".into(),
        Value::Object(_) => "object".into(),
    }
}

/// Checks the types of `metadata` and drops what is unknown there or `null`; the names of what was unknown come back,
/// or what does not decode.
pub fn metadata(object: &mut Value, builtin: bool) -> Result<Vec<String>, String> {
    let Some(metadata) = object.get_mut("metadata") else {
        return Ok(Vec::new());
    };
    if metadata.is_null() {
        object
            .as_object_mut()
            .map(|fields| fields.remove("metadata"));
        return Ok(Vec::new());
    }
    let Some(metadata) = metadata.as_object_mut() else {
        let found = type_name(metadata);
        return Err(if builtin {
            format!(
                "json: cannot unmarshal {found} into Go struct field .metadata of type v1.ObjectMeta"
            )
        } else {
            format!("json: cannot unmarshal {found} into Go value of type v1.ObjectMeta")
        });
    };
    let mut unknown = Vec::new();
    let mut problem = None;
    metadata.retain(|name, value| {
        let Some((_, type_)) = FIELDS.iter().find(|(known, _)| known == name) else {
            unknown.push(format!("metadata.{name}"));
            return false;
        };
        if problem.is_none() {
            problem = wrong(name, value, *type_, builtin);
        }
        !value.is_null()
    });
    match problem {
        Some(problem) => Err(problem),
        None => Ok(unknown),
    }
}

fn wrong(name: &str, value: &Value, type_: Type, builtin: bool) -> Option<String> {
    let field = if builtin {
        format!("ObjectMeta.metadata.{name}")
    } else {
        format!("ObjectMeta.{name}")
    };
    let mismatch = |value: &Value, wanted: &str| {
        let found = type_name(value);
        Some(format!(
            "json: cannot unmarshal {found} into Go struct field {field} of type {wanted}"
        ))
    };
    match (type_, value) {
        (_, Value::Null) | (Type::Text | Type::Time, Value::String(_)) => match (type_, value) {
            (Type::Time, Value::String(text)) => wrong_time(text),
            _ => None,
        },
        (Type::Text | Type::Time, other) => mismatch(other, "string"),
        (Type::Number, Value::Number(number)) if number.is_i64() => None,
        (Type::Number, Value::Number(number)) => Some(format!(
            "json: cannot unmarshal number {number} into Go struct field {field} of type int64"
        )),
        (Type::Number, other) => mismatch(other, "int64"),
        (Type::Texts, Value::Array(items)) => items
            .iter()
            .find(|item| !item.is_string())
            .and_then(|item| mismatch(item, "string")),
        (Type::Texts, other) => mismatch(other, "[]string"),
        (Type::TextMap, Value::Object(entries)) => entries
            .values()
            .find(|item| !item.is_string())
            .and_then(|item| mismatch(item, "string")),
        (Type::TextMap, other) => mismatch(other, "map[string]string"),
        (Type::Objects(of), Value::Array(items)) => items
            .iter()
            .find(|item| !item.is_object())
            .and_then(|item| mismatch(item, of)),
        (Type::Objects(of), other) => mismatch(other, &format!("[]{of}")),
    }
}

fn wrong_time(text: &str) -> Option<String> {
    if text.is_empty() || text.parse::<jiff::Timestamp>().is_ok() {
        return None;
    }
    Some(format!(
        "parsing time \"{text}\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"{text}\" as \"2006\""
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_of_the_wrong_type_is_told() {
        let table = [
            (
                json!({"metadata": "str"}),
                "json: cannot unmarshal string into Go value of type v1.ObjectMeta",
            ),
            (
                json!({"metadata": {"name": 5}}),
                "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string",
            ),
            (
                json!({"metadata": {"labels": {"a": 1}}}),
                "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
            ),
        ];
        for (mut object, want) in table {
            assert_eq!(metadata(&mut object, false).unwrap_err(), want);
        }
    }

    #[test]
    fn unknown_metadata_is_dropped_and_named() {
        let mut object = json!({"metadata": {"name": "a", "bogus": 1, "labels": null}});
        assert_eq!(metadata(&mut object, false).unwrap(), ["metadata.bogus"]);
        assert_eq!(object, json!({"metadata": {"name": "a"}}));
    }
}
