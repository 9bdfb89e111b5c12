//! What holds for every server-side apply, whatever is applied.

use std::collections::BTreeMap;

use evenkeel_api::{
    patch::{FieldSet, Manager, apply, json, merge, strategic, track_update},
    schema::TypeRef,
};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Map, Value, json as value};

fn schema() -> TypeRef {
    TypeRef::structural(
        &value!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "a": {"type": "string"},
            "n": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": {"type": "string"}, "v": {"type": "integer"}}}},
        }}}}),
    )
}

fn manager(name: &str, second: i64) -> Manager {
    Manager {
        name: name.into(),
        subresource: None,
        api_version: "x.io/v1".into(),
        now: Timestamp::from_second(1_700_000_000 + second).expect("time"),
        has_status: false,
    }
}

/// A configuration that fits the schema.
fn config() -> impl Strategy<Value = Value> {
    let names = || prop::sample::subsequence(vec!["p", "q", "r", "s"], 0..4).prop_shuffle();
    (
        prop::option::of("[ab]"),
        prop::option::of((prop::option::of(0..3i64), prop::option::of(0..3i64))),
        prop::option::of(names()),
        prop::option::of((names(), prop::collection::vec(prop::option::of(0..3i64), 4))),
        prop::option::of(prop::collection::btree_map("[klm]", 0..3i64, 0..3)),
    )
        .prop_map(|(a, n, set, parts, free)| {
            let mut spec = Map::new();
            let mut put = |name: &str, field: Option<Value>| {
                if let Some(field) = field {
                    spec.insert(name.into(), field);
                }
            };
            put("a", a.map(Into::into));
            put(
                "n",
                n.map(|(x, y)| {
                    let fields = [("x", x), ("y", y)]
                        .into_iter()
                        .filter_map(|(name, v)| Some((name.to_owned(), v?.into())));
                    Value::Object(fields.collect())
                }),
            );
            put("set", set.map(Into::into));
            put(
                "parts",
                parts.map(|(names, values)| {
                    let items = names.iter().zip(values).map(|(name, v)| match v {
                        Some(v) => value!({"name": name, "v": v}),
                        None => value!({"name": name}),
                    });
                    items.collect()
                }),
            );
            put("free", free.map(|free| value!(free)));
            value!({"apiVersion": "x.io/v1", "kind": "X", "metadata": {"name": "x"}, "spec": spec})
        })
}

fn run(live: Option<&Value>, config: &Value, name: &str, second: i64) -> Value {
    let mut out = apply::apply(
        &schema(),
        live,
        config,
        &manager(name, second),
        true,
        &|_| (),
    )
    .expect("a forced apply of a fitting configuration");
    out["metadata"]["uid"] = "u".into();
    out
}

/// The fields of each entry.
fn owned(object: &Value) -> BTreeMap<String, FieldSet> {
    let entries = object["metadata"]["managedFields"].as_array();
    entries
        .into_iter()
        .flatten()
        .map(|entry| {
            let key = format!("{} {}", entry["manager"], entry["operation"]);
            (
                key,
                FieldSet::from_fields_v1(&entry["fieldsV1"]).expect("fieldsV1"),
            )
        })
        .collect()
}

/// Whether every leaf of the configuration is in the object.
fn has_all(config: &Value, object: &Value) -> bool {
    match (config, object) {
        (Value::Object(config), Value::Object(object)) => config
            .iter()
            .all(|(name, value)| object.get(name).is_some_and(|other| has_all(value, other))),
        (Value::Array(config), Value::Array(object)) => config
            .iter()
            .all(|item| object.iter().any(|other| has_all(item, other))),
        _ => config == object,
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        "[a-z$/.]{0,6}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let name = prop_oneof![
            Just("metadata".to_owned()),
            Just("spec".to_owned()),
            Just("parts".to_owned()),
            Just("set".to_owned()),
            Just("name".to_owned()),
            Just("managedFields".to_owned()),
            Just("$patch".to_owned()),
            Just("$setElementOrder/parts".to_owned()),
            "[a-z]{0,3}",
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
            prop::collection::btree_map(name, inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Applying the same again changes nothing, not even a time.
    #[test]
    fn apply_is_idempotent(first in config(), second in config()) {
        let live = run(None, &first, "one", 0);
        let live = run(Some(&live), &second, "two", 1);
        let again = run(Some(&live), &second, "two", 2);
        prop_assert_eq!(live, again);
    }

    /// The result has everything that was applied.
    #[test]
    fn the_result_has_the_configuration(first in config(), second in config()) {
        let live = run(None, &first, "one", 0);
        let live = run(Some(&live), &second, "two", 1);
        prop_assert!(has_all(&second, &live), "{} in {}", second, live);
    }

    /// A manager that applies nothing any more owns nothing.
    #[test]
    fn what_is_left_out_is_released(own in config(), other in config()) {
        let live = run(None, &other, "other", 0);
        let live = run(Some(&live), &own, "own", 1);
        let nothing = value!({"apiVersion": "x.io/v1", "kind": "X", "metadata": {"name": "x"}});
        let live = run(Some(&live), &nothing, "own", 2);
        let owners = owned(&live);
        prop_assert!(!owners.contains_key("\"own\" \"Apply\""));
    }

    /// Without force, nobody loses a field that did not change, and a conflict changes nothing.
    #[test]
    fn no_ownership_is_lost_without_force(first in config(), second in config()) {
        let live = run(None, &first, "one", 0);
        let result = apply::apply(&schema(), Some(&live), &second, &manager("two", 1), false, &|_| ());
        if let Ok(next) = result {
            let (before, after) = (owned(&live), owned(&next));
            let one = "\"one\" \"Apply\"";
            prop_assert_eq!(before.get(one), after.get(one));
        }
    }

    /// What is written as fieldsV1 is read as the same set.
    #[test]
    fn fields_survive_their_encoding(config in config()) {
        for set in owned(&run(None, &config, "one", 0)).values() {
            prop_assert_eq!(&FieldSet::from_fields_v1(&set.to_fields_v1()).expect("fieldsV1"), set);
        }
    }

    /// An update that changes nothing leaves all owners as they are.
    #[test]
    fn an_empty_update_keeps_owners(config in config()) {
        let live = run(None, &config, "one", 0);
        let mut new = live.clone();
        track_update(&schema(), Some(&live), &mut new, &manager("two", 1));
        prop_assert_eq!(live, new);
    }

    /// Whatever arrives is applied or refused.
    #[test]
    fn nothing_panics(live in any_json(), patch in any_json(), text in "\\PC{0,40}") {
        let ty = schema();
        let _ = apply::apply(&ty, Some(&live), &patch, &manager("m", 0), false, &|_| ());
        let _ = apply::apply(&TypeRef::untyped(), Some(&live), &patch, &manager("m", 0), true, &|_| ());
        let _ = strategic::apply(&ty, &live, &patch);
        let _ = json::apply(&live, patch.to_string().as_bytes());
        let _ = json::apply(&live, text.as_bytes());
        let _ = merge::parse(text.as_bytes());
        let _ = merge::apply(&live, &patch);
        let _ = FieldSet::from_fields_v1(&patch);
        let mut new = patch;
        track_update(&ty, Some(&live), &mut new, &manager("m", 0));
        let _ = TypeRef::structural(&live);
    }
}
