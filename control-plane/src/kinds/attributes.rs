//! Labels and selectable fields of stored objects, read without building the whole object: this runs over every object
//! when a store is opened.

use std::{borrow::Cow, collections::HashMap, fmt, sync::Arc};

use evenkeel_api::kind::{FieldPlace, Kind};
use evenkeel_store::{Attributes, AttributesOf, Resource};
use serde::{
    Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

type Field = (Box<str>, Box<str>);

/// Reads the attributes of objects of these kinds. Objects of other kinds have labels alone.
pub fn attributes_of(kinds: &[Kind]) -> AttributesOf {
    let fields = kinds
        .iter()
        .map(|kind| {
            let places = kind.selectable_fields.iter();
            (
                kind.resource(),
                places.map(|field| kind.field_place(field)).collect(),
            )
        })
        .collect::<HashMap<Resource, Vec<FieldPlace>>>();
    Arc::new(move |resource: &Resource, json: &[u8]| {
        let places = fields.get(resource).map(Vec::as_slice).unwrap_or_default();
        read(json, places)
    })
}

fn read(json: &[u8], places: &[FieldPlace]) -> Attributes {
    let paths = places.iter().map(|place| place.path).collect::<Vec<_>>();
    let mut found = Found {
        paths: &paths,
        labels: Vec::new(),
        fields: Vec::new(),
    };
    let mut input = serde_json::Deserializer::from_slice(json);
    let level = Level {
        found: &mut found,
        prefix: String::new(),
    };
    if level.deserialize(&mut input).is_err() {
        return Attributes::default();
    }
    found.labels.sort();
    let mut fields = places
        .iter()
        .map(|place| {
            let value = found
                .fields
                .iter()
                .find(|(path, value)| path.as_ref() == place.path && !value.is_empty())
                .map_or_else(|| place.absent.into(), |(_, value)| value.clone());
            (place.field.into(), value)
        })
        .collect::<Vec<Field>>();
    fields.sort();
    Attributes {
        labels: found.labels.into(),
        fields: fields.into(),
    }
}

struct Found<'p> {
    paths: &'p [&'p str],
    labels: Vec<Field>,
    fields: Vec<Field>,
}

/// One struct of the object, under a dotted prefix.
struct Level<'f, 'p> {
    found: &'f mut Found<'p>,
    prefix: String,
}

impl<'de> DeserializeSeed<'de> for Level<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_any(self)
    }
}

impl Level<'_, '_> {
    /// A scalar where a selectable field is.
    fn keep(self, value: &str) {
        if self.found.paths.contains(&self.prefix.as_str()) {
            self.found.fields.push((self.prefix.into(), value.into()));
        }
    }
}

impl<'de> Visitor<'de> for Level<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            let path = if self.prefix.is_empty() {
                key.into_owned()
            } else {
                format!("{}.{key}", self.prefix)
            };
            let deeper = self.found.paths.iter().any(|wanted| {
                wanted.starts_with(&path)
                    && matches!(wanted.as_bytes().get(path.len()), None | Some(b'.'))
            });
            if path == "metadata.labels" {
                map.next_value_seed(Labels(&mut *self.found))?;
            } else if deeper || path == "metadata" {
                map.next_value_seed(Level {
                    found: &mut *self.found,
                    prefix: path,
                })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.keep(value);
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.keep(if value { "true" } else { "false" });
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.keep(&value.to_string());
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.keep(&value.to_string());
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.keep(&value.to_string());
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

struct Labels<'f, 'p>(&'f mut Found<'p>);

impl<'de> DeserializeSeed<'de> for Labels<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        let labels: Option<HashMap<Box<str>, Box<str>>> = serde::Deserialize::deserialize(input)?;
        self.0.labels.extend(labels.into_iter().flatten());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_api::object::encode;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Box<[Field]> {
        let pairs = pairs.iter().map(|(a, b)| ((*a).into(), (*b).into()));
        pairs.collect()
    }

    #[test]
    fn labels_and_fields_are_read() {
        let place = |field, path, absent| FieldPlace {
            field,
            path,
            absent,
        };
        let places = [
            place("status.phase", "status.phase", ""),
            place("type", "type", ""),
            place("spec.unschedulable", "spec.unschedulable", "false"),
            place("status.successful", "status.succeeded", "0"),
        ];
        let object = json!({
            "metadata": {"name": "a", "labels": {"b": "2", "a": "1"}, "annotations": {"type": "x"}},
            "type": "Opaque", "status": {"phase": "Active", "succeeded": 3, "conditions": [{"type": "y"}]},
            "data": {"status": {"phase": "z"}},
        });
        let found = read(object.to_string().as_bytes(), &places);
        assert_eq!(found.labels, pairs(&[("a", "1"), ("b", "2")]));
        let fields = [
            ("spec.unschedulable", "false"),
            ("status.phase", "Active"),
            ("status.successful", "3"),
            ("type", "Opaque"),
        ];
        assert_eq!(found.fields, pairs(&fields));
    }

    proptest! {
        /// What is read from the bytes is what the server took from the object; and broken bytes have nothing.
        #[test]
        fn reading_agrees_with_the_server(text in "[a-z]{0,4}|\\PC{0,3}", on in any::<bool>(), n in any::<i64>(), cut in 0_usize..400) {
            let object = json!({
                "metadata": {"name": "a", "labels": {"l": text, "k": "v"}}, "type": text, "reason": text,
                "spec": {"unschedulable": on, "nodeName": text, "type": on},
                "status": {"phase": text, "succeeded": n, "replicas": n},
            });
            for kind in crate::kinds::kubernetes() {
                let body = encode::encode(&object, &kind);
                let read = attributes_of(std::slice::from_ref(&kind));
                let resource = kind.resource();
                prop_assert_eq!(read(&resource, &body.json), body.attributes, "{}", kind.kind);
                let end = cut.min(body.json.len() - 1);
                prop_assert_eq!(read(&resource, &body.json[..end]), Attributes::default());
            }
        }
    }
}
