//! Values as the reference server's error texts print them.

use std::fmt;

use serde_json::Value;

/// A value in braces behind an ampersand: `&{x}`, `&{[a b]}`, `&{map[a:1]}`.
pub(crate) struct GoValue<'a>(pub &'a Value);

impl fmt::Display for GoValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "&{{{}}}", Plain(self.0))
    }
}

/// A value with its wrapper's name: `&value.valueUnstructured{Value:1}`.
pub(crate) struct GoRepr<'a>(pub &'a Value);

impl fmt::Display for GoRepr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "&value.valueUnstructured{{Value:{}}}", Detailed(self.0))
    }
}

/// A value without quotes: `[a b]`, `map[a:1]`.
pub(crate) struct Plain<'a>(pub &'a Value);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("<nil>"),
            Value::Bool(set) => write!(f, "{set}"),
            Value::Number(number) => write!(f, "{number}"),
            Value::String(text) => f.write_str(text),
            Value::Array(items) => {
                f.write_str("[")?;
                for (place, item) in items.iter().enumerate() {
                    let space = if place == 0 { "" } else { " " };
                    write!(f, "{space}{}", Plain(item))?;
                }
                f.write_str("]")
            }
            Value::Object(fields) => {
                f.write_str("map[")?;
                for (place, (name, value)) in fields.iter().enumerate() {
                    let space = if place == 0 { "" } else { " " };
                    write!(f, "{space}{name}:{}", Plain(value))?;
                }
                f.write_str("]")
            }
        }
    }
}

/// A value with types and quotes.
struct Detailed<'a>(&'a Value);

impl fmt::Display for Detailed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("interface {}(nil)"),
            Value::String(text) => write!(f, "{text:?}"),
            Value::Array(items) => {
                f.write_str("[]interface {}{")?;
                for (place, item) in items.iter().enumerate() {
                    let comma = if place == 0 { "" } else { ", " };
                    write!(f, "{comma}{}", Detailed(item))?;
                }
                f.write_str("}")
            }
            Value::Object(fields) => {
                f.write_str("map[string]interface {}{")?;
                for (place, (name, value)) in fields.iter().enumerate() {
                    let comma = if place == 0 { "" } else { ", " };
                    write!(f, "{comma}{name:?}:{}", Detailed(value))?;
                }
                f.write_str("}")
            }
            other => write!(f, "{}", Plain(other)),
        }
    }
}

/// The name of a value's type.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// What kind of JSON a value is.
pub(crate) fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
