//! Tables over all kinds.

mod any;
mod defaults;
mod rules;
mod tables;

use std::collections::BTreeSet;

use evenkeel_api::kind::{Cell, Kind, RequestContext};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{fleet, kubernetes};

fn all() -> Vec<Kind> {
    kubernetes().into_iter().chain(fleet()).collect()
}

fn kind(name: &str) -> Kind {
    let found = all().into_iter().find(|kind| kind.kind == name);
    found.unwrap_or_else(|| panic!("{name} is served"))
}

fn context() -> RequestContext {
    RequestContext {
        user: std::sync::Arc::default(),
        namespace: Some("n".into()),
        name: None,
        subresource: None,
        now: Timestamp::UNIX_EPOCH,
        dry_run: false,
    }
}

#[test]
fn names_are_told_apart() {
    let mut paths = BTreeSet::new();
    let mut words = BTreeSet::new();
    for kind in all() {
        assert!(
            paths.insert((kind.group, kind.version, kind.plural)),
            "{} twice",
            kind.plural
        );
        for word in kind.short_names {
            assert!(words.insert(*word), "{word} is short for two kinds");
        }
        assert_eq!(kind.singular, kind.kind.to_lowercase());
    }
}

fn cells(kind: &Kind, object: &Value, now: &str) -> Vec<Value> {
    let now = now.parse().expect("a time");
    kind.columns
        .iter()
        .filter_map(|column| match column.cell {
            Cell::Pointer(pointer) => Some(object.pointer(pointer).cloned().unwrap_or(Value::Null)),
            Cell::Age => None,
            Cell::Computed(print) => Some(print(object, now)),
        })
        .collect()
}

#[test]
fn a_namespace_stays_until_its_finalizers_are_gone() {
    let strategy = kind("Namespace").strategy;
    let mut namespace = json!({"metadata": {"name": "n"}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}});
    strategy.begin_delete(&mut namespace);
    assert_eq!(namespace["status"]["phase"], "Terminating");
    assert!(strategy.holds_deletion(&namespace));
    let finalize = kind("Namespace")
        .subresource("finalize")
        .cloned()
        .expect("it is there");
    let evenkeel_api::kind::SubresourceKind::Part(apply) = finalize.kind else {
        panic!("finalize is a part");
    };
    let next = apply(
        &context(),
        &json!({"spec": {"finalizers": []}, "status": {"phase": "x"}}),
        &namespace,
    );
    let next = next.expect("finalizers are written");
    assert!(!strategy.holds_deletion(&next));
    assert_eq!(next["status"]["phase"], "Terminating");
    for name in ["default", "kube-system", "kube-public"] {
        let lasting = json!({"metadata": {"name": name}});
        assert!(
            strategy.validate_delete(&context(), &lasting).is_err(),
            "{name} can be deleted"
        );
    }
}
