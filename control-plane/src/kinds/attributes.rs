//! Labels and selectable fields of stored objects, read without building the whole object: this runs over every object
//! when a store is opened.

use std::{borrow::Cow, collections::HashMap, fmt, sync::Arc};

use evenkeel_api::kind::Kind;
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
        .map(|kind| (kind.resource(), kind.selectable_fields))
        .collect::<HashMap<Resource, &'static [&'static str]>>();
    Arc::new(move |resource: &Resource, json: &[u8]| {
        let paths = fields.get(resource).copied().unwrap_or_default();
        read(json, paths)
    })
}

fn read(json: &[u8], paths: &[&str]) -> Attributes {
    let mut found = Found {
        paths,
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
    for path in paths {
        if !found.fields.iter().any(|(seen, _)| seen.as_ref() == *path) {
            found.fields.push(((*path).into(), "".into()));
        }
    }
    found.labels.sort();
    found.fields.sort();
    Attributes {
        labels: found.labels.into(),
        fields: found.fields.into(),
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
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    const PATHS: [&str; 4] = [
        "status.phase",
        "type",
        "spec.unschedulable",
        "status.replicas",
    ];

    fn pairs(pairs: &[(&str, &str)]) -> Box<[Field]> {
        pairs
            .iter()
            .map(|(a, b)| ((*a).into(), (*b).into()))
            .collect()
    }

    #[test]
    fn labels_and_fields_are_read() {
        let object = json!({
            "metadata": {"name": "a", "labels": {"b": "2", "a": "1"}, "annotations": {"type": "x"}},
            "type": "Opaque", "status": {"phase": "Active", "replicas": 3, "conditions": [{"type": "y"}]},
            "data": {"status": {"phase": "z"}},
        });
        let found = read(object.to_string().as_bytes(), &PATHS);
        assert_eq!(found.labels, pairs(&[("a", "1"), ("b", "2")]));
        let fields = [
            ("spec.unschedulable", ""),
            ("status.phase", "Active"),
            ("status.replicas", "3"),
            ("type", "Opaque"),
        ];
        assert_eq!(found.fields, pairs(&fields));
    }

    proptest! {
        /// Whatever the bytes, reading ends; and it finds what the parsed object holds.
        #[test]
        fn reading_agrees_with_the_parsed_object(phase in "[a-z]{0,4}|\\PC{0,3}", on in any::<bool>(), cut in 0_usize..200) {
            let object = json!({"metadata": {"labels": {"l": phase}}, "spec": {"unschedulable": on}, "status": {"phase": phase}});
            let text = object.to_string();
            let found = read(text.as_bytes(), &PATHS);
            let at = |path: &str| found.fields.iter().find(|(p, _)| p.as_ref() == path).map(|(_, v)| v.to_string());
            prop_assert_eq!(at("status.phase"), Some(phase.clone()));
            prop_assert_eq!(at("spec.unschedulable"), Some(on.to_string()));
            let bytes = text.as_bytes();
            let broken = read(&bytes[..cut.min(bytes.len() - 1)], &PATHS);
            prop_assert_eq!(broken, Attributes::default());
            let _ = serde_json::from_str::<Value>(&text);
        }
    }
}
