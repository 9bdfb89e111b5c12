//! Reading objects that clients send into typed ones: where a type is wrong, and which fields nobody knows.

use std::{cell::RefCell, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Visitor},
    forward_to_deserialize_any,
};
use serde_json::Value;

use crate::field::{FieldError, FieldErrorKind};

/// One step of a path: a field, or an index of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A field of a struct or a key of a map.
    Field(String),
    /// A place in a list.
    Index(usize),
}

/// What reading found.
#[derive(Clone, Debug)]
pub struct Reading<T> {
    /// The typed object.
    pub value: T,
    /// Fields that the type does not know or that are `null`, as steps from the top, in the order met.
    pub dropped: Vec<Vec<Step>>,
}

/// Reads a value that is the field `root` (`spec`) of an object. An error names the place and what was expected there.
pub fn read<'de, T: Deserialize<'de>>(
    value: &'de Value,
    root: &str,
) -> Result<Reading<T>, FieldError> {
    let dropped = RefCell::new(Vec::new());
    let path = RefCell::new(Vec::new());
    let reader = Reader {
        value,
        path: &path,
        dropped: &dropped,
    };
    match T::deserialize(reader) {
        Ok(value) => Ok(Reading {
            value,
            dropped: dropped.into_inner(),
        }),
        Err(Problem { text, at }) => {
            let path = text_of(root, &at.unwrap_or_default());
            Err(FieldError {
                kind: FieldErrorKind::TypeInvalid,
                message: format!("Invalid value: {text}"),
                path,
            })
        }
    }
}

/// Takes the fields out of a value that reading dropped.
pub fn prune(value: &mut Value, dropped: &[Vec<Step>]) {
    for steps in dropped {
        let Some((Step::Field(last), above)) = steps.split_last() else {
            continue;
        };
        let holder = above
            .iter()
            .try_fold(&mut *value, |value, step| match step {
                Step::Field(name) => value.get_mut(name),
                Step::Index(index) => value.get_mut(index),
            });
        if let Some(holder) = holder.and_then(Value::as_object_mut) {
            holder.remove(last);
        }
    }
}

/// `spec.taints[0].key`
fn text_of(root: &str, steps: &[Step]) -> String {
    let mut text = root.to_owned();
    for step in steps {
        match step {
            Step::Field(name) if text.is_empty() => text.push_str(name),
            Step::Field(name) => {
                text.push('.');
                text.push_str(name);
            }
            Step::Index(index) => {
                text.push('[');
                text.push_str(&index.to_string());
                text.push(']');
            }
        }
    }
    text
}

/// Why a value does not have the type, and where.
#[derive(Debug)]
struct Problem {
    text: String,
    at: Option<Vec<Step>>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Problem {}

impl de::Error for Problem {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self {
            text: text.to_string(),
            at: None,
        }
    }
}

#[derive(Clone, Copy)]
struct Reader<'de, 'r> {
    value: &'de Value,
    path: &'r RefCell<Vec<Step>>,
    dropped: &'r RefCell<Vec<Vec<Step>>>,
}

impl<'de> Reader<'de, '_> {
    fn into<T>(
        self,
        value: &'de Value,
        step: Step,
        read: impl FnOnce(Self) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        self.path.borrow_mut().push(step);
        let result = read(Self { value, ..self }).map_err(|problem| Problem {
            at: problem.at.or_else(|| Some(self.path.borrow().clone())),
            text: problem.text,
        });
        self.path.borrow_mut().pop();
        result
    }

    fn drop_here(self) {
        self.dropped.borrow_mut().push(self.path.borrow().clone());
    }
}

impl<'de> Deserializer<'de> for Reader<'de, '_> {
    type Error = Problem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::String(value) => visitor.visit_borrowed_str(value),
            Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(value), _) => visitor.visit_i64(value),
                (None, Some(value)) => visitor.visit_u64(value),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or_default()),
            },
            Value::Array(items) => visitor.visit_seq(Items {
                reader: self,
                items: items.iter().enumerate(),
            }),
            Value::Object(fields) => visitor.visit_map(Fields {
                reader: self,
                rest: fields.iter(),
                value: None,
            }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        if self.value.is_null() {
            self.drop_here();
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        visitor.visit_newtype_struct(self)
    }

    /// A list is no struct, although derived readers would take one.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        if self.value.is_array() {
            return Err(de::Error::invalid_type(de::Unexpected::Seq, &visitor));
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.drop_here();
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map enum identifier
    }
}

struct Items<'de, 'r> {
    reader: Reader<'de, 'r>,
    items: std::iter::Enumerate<std::slice::Iter<'de, Value>>,
}

impl<'de> SeqAccess<'de> for Items<'de, '_> {
    type Error = Problem;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Problem> {
        let Some((index, item)) = self.items.next() else {
            return Ok(None);
        };
        let read = |reader| seed.deserialize(reader);
        self.reader.into(item, Step::Index(index), read).map(Some)
    }
}

struct Fields<'de, 'r> {
    reader: Reader<'de, 'r>,
    rest: serde_json::map::Iter<'de>,
    value: Option<(&'de str, &'de Value)>,
}

impl<'de> MapAccess<'de> for Fields<'de, '_> {
    type Error = Problem;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Problem> {
        let Some((name, value)) = self.rest.next() else {
            return Ok(None);
        };
        self.value = Some((name, value));
        let name: de::value::BorrowedStrDeserializer<'de, Problem> =
            de::value::BorrowedStrDeserializer::new(name);
        seed.deserialize(name.into_deserializer()).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Problem> {
        let Some((name, value)) = self.value.take() else {
            return Err(de::Error::custom("a value without its name"));
        };
        let read = |reader| seed.deserialize(reader);
        self.reader.into(value, Step::Field(name.to_owned()), read)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::{
        binding::ResourceBindingSpec, cluster::ClusterSpec, policy::PropagationSpec, work::WorkSpec,
    };

    #[test]
    fn wrong_types_are_told_with_their_place() {
        let table = [
            (
                json!({"taints": [{"key": "a"}, {"key": 1}]}),
                "spec.taints[1].key",
            ),
            (json!({"zones": ["a", {}]}), "spec.zones[1]"),
            (json!({"syncMode": 5}), "spec.syncMode"),
            (
                json!({"resourceModels": [{"ranges": [{"min": "x"}]}]}),
                "spec.resourceModels[0].ranges[0].min",
            ),
            (json!([]), "spec"),
            (json!("x"), "spec"),
        ];
        for (spec, path) in table {
            let error = read::<ClusterSpec>(&spec, "spec").expect_err("a wrong type");
            assert_eq!(error.path, path, "{spec}: {error}");
            assert_eq!(error.kind, FieldErrorKind::TypeInvalid);
        }
    }

    #[test]
    fn what_nobody_knows_is_taken_out_and_the_rest_stays_as_it_was() {
        let mut spec = json!({
            "resourceSelectors": [{"apiVersion": "v1", "kind": "Pod", "bogus": {"a": 1}}],
            "priority": 0, "association": false, "schedulerName": null, "odd": [1],
            "placement": {"clusterTolerations": [{"key": "a", "what": 1}]},
        });
        let reading = read::<PropagationSpec>(&spec, "spec").expect("the types are right");
        let dropped = reading.dropped.clone();
        prune(&mut spec, &dropped);
        let kept = json!({
            "resourceSelectors": [{"apiVersion": "v1", "kind": "Pod"}], "priority": 0, "association": false,
            "placement": {"clusterTolerations": [{"key": "a"}]},
        });
        assert_eq!(spec, kept);
    }

    #[test]
    fn manifests_stay_untouched() {
        let mut spec =
            json!({"workload": {"manifests": [{"a": null, "b": {"c": [null, 1.5, "x"]}}]}});
        let before = spec.clone();
        let dropped = read::<WorkSpec>(&spec, "spec")
            .expect("the types are right")
            .dropped;
        prune(&mut spec, &dropped);
        assert_eq!(spec, before);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let name = prop_oneof![
            "[a-z]{1,3}".boxed(),
            prop::sample::select(vec![
                "clusters",
                "resource",
                "placement",
                "taints",
                "key",
                "name",
                "replicas",
                "clusterAffinity",
                "labelSelector",
                "matchLabels",
                "spreadConstraints",
                "resourceModels",
                "ranges",
                "min",
                "clusterAffinities",
                "overflowAffinities",
                "failover",
                "application",
                "zones",
            ])
            .prop_map(str::to_owned)
            .boxed(),
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(|f| json!(f)),
            "\\PC{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 48, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(name.clone(), inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Reading arbitrary JSON ends; what is read once and pruned reads again with nothing left to drop.
        #[test]
        fn reading_any_json_ends(value in any_json()) {
            let mut pruned = value.clone();
            if let Ok(reading) = read::<ResourceBindingSpec>(&value, "spec") {
                prune(&mut pruned, &reading.dropped);
                let dropped = read::<ResourceBindingSpec>(&pruned, "spec").map(|again| again.dropped);
                prop_assert_eq!(dropped, Ok(Vec::new()));
            }
            let _ = read::<ClusterSpec>(&value, "");
        }
    }
}
