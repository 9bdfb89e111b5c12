//! Objects seen through their schema: the key of a list element, the fields of an object, and whether it fits.

use serde_json::Value;

use super::{
    fieldset::FieldSet,
    golang::{GoRepr, GoValue},
    path::PathElement,
};
use crate::schema::{Form, ListKind, ListType, MapType, Scalar, Ty};

/// What names an element of a set or map list, or why nothing does (in the reference server's words).
pub(crate) fn element_key(list: &ListType, item: &Value) -> Result<PathElement, String> {
    let ListKind::Map(keys) = &list.kind else {
        return match item {
            Value::Object(_) => {
                Err("associative list without keys has an element that's a map type".into())
            }
            Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
            Value::Null => {
                Err("associative list without keys has an element that's an explicit null".into())
            }
            scalar => Ok(PathElement::Value(scalar.clone())),
        };
    };
    let fields = match item {
        Value::Object(fields) => fields,
        Value::Null => return Err("associative list with keys may not have a null element".into()),
        _ => return Err("associative list with keys may not have non-map elements".into()),
    };
    let found = keys
        .iter()
        .filter_map(|(name, default)| {
            let value = fields.get(&**name).or(default.as_ref())?;
            Some((name.clone(), value.clone()))
        })
        .collect::<Box<[_]>>();
    if found.is_empty() {
        let names = keys
            .iter()
            .map(|(name, _)| format!("{name:?}"))
            .collect::<Vec<_>>();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
            names.join(" ")
        ));
    }
    Ok(PathElement::Key(found))
}

/// The set of fields that an applied configuration owns.
pub(crate) fn field_set(ty: Ty<'_>, value: &Value) -> FieldSet {
    fields_below(ty, value).1
}

/// Whether the value itself is a leaf, and the fields below it.
fn fields_below(ty: Ty<'_>, value: &Value) -> (bool, FieldSet) {
    let mut set = FieldSet::default();
    match ty.form(value) {
        Form::Scalar(_) => return (true, set),
        Form::List(list) => {
            if list.kind == ListKind::Atomic {
                return (true, set);
            }
            for item in value.as_array().into_iter().flatten() {
                if let Ok(element) = element_key(list, item) {
                    set.push(element, true, field_set(ty.at(list.element), item));
                }
            }
            set.sort();
        }
        Form::Map(map) => {
            if map.atomic {
                return (true, set);
            }
            for (name, value) in value.as_object().into_iter().flatten() {
                let (leaf, below) = fields_below(ty.child(map, name), value);
                let is_empty =
                    value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
                set.push_field(name, leaf || is_empty || map.field(name).is_none(), below);
            }
        }
    }
    (false, set)
}

/// Checks that a value fits its type: what does not, in the reference server's words, as `.path: text`.
pub(crate) fn validate(ty: Ty<'_>, value: &Value) -> Result<(), String> {
    let mut check = Check {
        path: String::new(),
        errors: Vec::new(),
    };
    check.value(ty, value);
    match check.errors.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("errors:\n  {}", many.join("\n  "))),
    }
}

/// Errors that are collected at most.
const MAX_ERRORS: usize = 32;

struct Check {
    path: String,
    errors: Vec<String>,
}

impl Check {
    fn report(&mut self, text: impl std::fmt::Display) {
        if self.errors.len() >= MAX_ERRORS {
            return;
        }
        let separator = if self.path.is_empty() { "" } else { ": " };
        self.errors.push(format!("{}{separator}{text}", self.path));
    }

    fn below(&mut self, element: &dyn std::fmt::Display, visit: impl FnOnce(&mut Self)) {
        use std::fmt::Write as _;
        let length = self.path.len();
        // Writing to a String does not fail.
        let _ = write!(self.path, "{element}");
        visit(self);
        self.path.truncate(length);
    }

    fn value(&mut self, ty: Ty<'_>, value: &Value) {
        if value.is_null() {
            return;
        }
        match ty.form(value) {
            Form::Scalar(scalar) => self.scalar(scalar, value),
            Form::List(list) => self.list(ty, list, value),
            Form::Map(map) => self.map(ty, map, value),
        }
    }

    fn scalar(&mut self, scalar: Scalar, value: &Value) {
        match (scalar, value) {
            (Scalar::Text, Value::String(_))
            | (Scalar::Number, Value::Number(_))
            | (Scalar::Boolean, Value::Bool(_))
            | (Scalar::Any, Value::String(_) | Value::Number(_) | Value::Bool(_)) => {}
            (Scalar::Text, other) => {
                self.report(format_args!("expected string, got {}", GoRepr(other)));
            }
            (Scalar::Number, other) => self.report(format_args!(
                "expected numeric (int or float), got {}",
                super::golang::type_name(other)
            )),
            (Scalar::Boolean, other) => {
                self.report(format_args!("expected boolean, got {}", GoValue(other)));
            }
            (Scalar::Any, other) => {
                self.report(format_args!("expected any scalar, got {}", GoValue(other)));
            }
        }
    }

    fn list(&mut self, ty: Ty<'_>, list: &ListType, value: &Value) {
        let Some(items) = value.as_array() else {
            self.report(format_args!("expected list, got {}", GoValue(value)));
            return;
        };
        let mut seen = std::collections::BTreeSet::new();
        for (place, item) in items.iter().enumerate() {
            if list.kind == ListKind::Atomic {
                self.below(&format_args!("[{place}]"), |check| {
                    check.value(ty.at(list.element), item);
                });
                continue;
            }
            match element_key(list, item) {
                Err(why) => {
                    self.report(format_args!("element {place}: {why}"));
                    return;
                }
                Ok(element) => {
                    let text = element.to_string();
                    if !seen.insert(element) {
                        self.report(format_args!("duplicate entries for key {text}"));
                    }
                    self.below(&text, |check| check.value(ty.at(list.element), item));
                }
            }
        }
    }

    fn map(&mut self, ty: Ty<'_>, map: &MapType, value: &Value) {
        let Some(fields) = value.as_object() else {
            self.report(format_args!("expected map, got {}", GoValue(value)));
            return;
        };
        for (name, value) in fields {
            let is_known = map.field(name).is_some() || map.element.is_some();
            self.below(&format_args!(".{name}"), |check| {
                if is_known {
                    check.value(ty.child(map, name), value);
                } else {
                    check.report("field not declared in schema");
                }
            });
        }
    }
}
