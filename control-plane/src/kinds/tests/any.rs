use proptest::prelude::*;
use serde_json::{Value, json};

/// JSON that looks a little like objects.
fn value() -> impl Strategy<Value = Value> {
    let names = vec![
        "spec",
        "status",
        "metadata",
        "name",
        "namespace",
        "labels",
        "template",
        "containers",
        "ports",
        "selector",
        "matchLabels",
        "rules",
        "subjects",
        "data",
        "stringData",
        "taints",
        "resourceModels",
        "ranges",
        "placement",
        "conditions",
        "type",
        "limits",
        "resources",
        "env",
        "volumes",
        "image",
        "strategy",
        "metrics",
        "finalizers",
    ];
    let name = prop::sample::select(names).prop_map(str::to_owned);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,5}".prop_map(Value::from),
        Just(json!({})),
    ];
    leaf.prop_recursive(6, 64, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Whatever a client sends as an object of whatever kind: defaults, rules and tables end, and defaults are
    /// filled in once.
    #[test]
    fn no_object_breaks_a_kind(object in value().prop_filter("an object", Value::is_object), old in value()) {
        for kind in super::all() {
            let mut new = object.clone();
            kind.strategy.default(&mut new);
            let mut again = new.clone();
            kind.strategy.default(&mut again);
            prop_assert_eq!(&again, &new, "{}", kind.kind);
            kind.strategy.validate(&new);
            kind.strategy.validate_update(&new, &old);
            kind.strategy.is_volatile(&new, &old);
            kind.strategy.holds_deletion(&new);
            super::cells(&kind, &new, "2024-01-01T00:00:00Z");
            let _ = kind.strategy.prepare_create(&super::context(), &mut new);
            kind.strategy.begin_delete(&mut again);
        }
    }
}
