//! Path elements: how fieldsV1 names one step into an object.

use std::{cmp::Ordering, fmt};

use serde_json::{Map, Number, Value};

/// One step of a path.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// `f:name`: a field, or a key of a map.
    Field(Box<str>),
    /// `k:{"name":"a"}`: an element of a list, by its key fields, sorted by name.
    Key(Box<[(Box<str>, Value)]>),
    /// `v:"a"`: a member of a set.
    Value(Value),
    /// `i:0`: an element by its place.
    Index(i64),
}

impl PathElement {
    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }

    /// Reads the key of a fieldsV1 object; `None` when it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (form, rest) = text.split_once(':')?;
        match form {
            "f" => Some(Self::Field(rest.into())),
            "v" => serde_json::from_str(rest).ok().map(Self::Value),
            "i" => rest.parse().ok().map(Self::Index),
            "k" => {
                let fields: Map<String, Value> = serde_json::from_str(rest).ok()?;
                let mut fields = fields
                    .into_iter()
                    .map(|(name, value)| (name.into_boxed_str(), value))
                    .collect::<Vec<_>>();
                fields.sort_by(|(a, _), (b, _)| a.cmp(b));
                Some(Self::Key(fields.into()))
            }
            _ => None,
        }
    }

    /// The key that fieldsV1 uses.
    pub fn to_key(&self) -> String {
        match self {
            Self::Field(name) => {
                let mut text = String::with_capacity(name.len() + 2);
                text.push_str("f:");
                text.push_str(name);
                text
            }
            Self::Value(value) => format!("v:{value}"),
            Self::Index(place) => format!("i:{place}"),
            Self::Key(fields) => {
                let mut text = String::from("k:{");
                for (place, (name, value)) in fields.iter().enumerate() {
                    if place > 0 {
                        text.push(',');
                    }
                    push_quoted(&mut text, name);
                    text.push(':');
                    match value {
                        Value::String(value) => push_quoted(&mut text, value),
                        value => text.push_str(&value.to_string()),
                    }
                }
                text.push('}');
                text
            }
        }
    }
}

/// Appends a JSON string.
fn push_quoted(text: &mut String, value: &str) {
    if value
        .bytes()
        .all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\')
    {
        text.push('"');
        text.push_str(value);
        text.push('"');
    } else {
        text.push_str(&Value::from(value).to_string());
    }
}

/// As conflicts print it: `.spec`, `[name="a"]`, `[="v"]`, `[3]`.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Index(place) => write!(f, "[{place}]"),
            Self::Key(fields) => {
                for (place, (name, value)) in fields.iter().enumerate() {
                    let lead = if place == 0 { '[' } else { ',' };
                    write!(f, "{lead}{name}={value}")?;
                }
                f.write_str("]")
            }
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Value(a), Self::Value(b)) => compare(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => a
                .iter()
                .zip(b)
                .map(|((a_name, a), (b_name, b))| a_name.cmp(b_name).then_with(|| compare(a, b)))
                .find(|order| order.is_ne())
                .unwrap_or_else(|| a.len().cmp(&b.len())),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64()) {
        return a.cmp(&b);
    }
    if let (Some(a), Some(b)) = (a.as_u64(), b.as_u64()) {
        return a.cmp(&b);
    }
    let float = |number: &Number| number.as_f64().unwrap_or(f64::MAX);
    float(a).total_cmp(&float(b))
}

/// A total order of JSON values in which 1 and 1.0 are equal.
pub(crate) fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => a
            .iter()
            .zip(b)
            .map(|(a, b)| compare(a, b))
            .find(|order| order.is_ne())
            .unwrap_or_else(|| a.len().cmp(&b.len())),
        (Value::Object(a), Value::Object(b)) => {
            // Objects iterate in the order of their keys.
            a.iter()
                .zip(b)
                .map(|((a_name, a), (b_name, b))| a_name.cmp(b_name).then_with(|| compare(a, b)))
                .find(|order| order.is_ne())
                .unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

/// Equality of JSON values in which 1 and 1.0 are equal.
pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, a)| b.get(name).is_some_and(|b| equal(a, b)))
        }
        _ => compare(a, b).is_eq(),
    }
}
