//! Whether what we set is still as it was when we set it.
//!
//! The live object is looked at only where the manifest says something, so defaults, statuses and other owners' fields
//! do not count. It is compared with itself right after the apply, not with the manifest: what the member's own
//! admission made of it then is no drift, and is not fought over.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

/// A digest of the live object where the manifest says something. Only for this process.
pub fn projection(manifest: &Value, live: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    visit(manifest, live, &mut hasher);
    hasher.finish()
}

fn visit(manifest: &Value, live: &Value, hasher: &mut DefaultHasher) {
    match (manifest, live) {
        (Value::Object(wanted), Value::Object(found)) => {
            1_u8.hash(hasher);
            for (name, wanted) in wanted {
                name.hash(hasher);
                visit(wanted, found.get(name).unwrap_or(&Value::Null), hasher);
            }
        }
        (Value::Array(wanted), Value::Array(found)) => {
            2_u8.hash(hasher);
            found.len().hash(hasher);
            for (index, found) in found.iter().enumerate() {
                match wanted.get(index) {
                    Some(wanted) => visit(wanted, found, hasher),
                    None => found.to_string().hash(hasher),
                }
            }
        }
        (_, found) => {
            3_u8.hash(hasher);
            found.to_string().hash(hasher);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_the_manifest_names_counts() {
        let manifest = json!({
            "metadata": {"name": "a", "labels": {"x": "1"}},
            "spec": {"replicas": 2, "containers": [{"name": "c", "image": "i"}]},
        });
        let live = json!({
            "metadata": {"name": "a", "labels": {"x": "1"}, "resourceVersion": "1"},
            "spec": {"replicas": 2, "containers": [{"name": "c", "image": "i", "pullPolicy": "Always"}]},
            "status": {"replicas": 0},
        });
        let base = projection(&manifest, &live);
        for (name, pointer, value, same) in [
            ("status", "/status/replicas", json!(2), true),
            ("version", "/metadata/resourceVersion", json!("2"), true),
            (
                "a default",
                "/spec/containers/0/pullPolicy",
                json!("Never"),
                true,
            ),
            ("a label", "/metadata/labels/x", json!("2"), false),
            ("replicas", "/spec/replicas", json!(3), false),
            ("an image", "/spec/containers/0/image", json!("j"), false),
            (
                "one container more",
                "/spec/containers",
                json!([{"name": "c", "image": "i"}, {"name": "d"}]),
                false,
            ),
            ("no container", "/spec/containers", json!([]), false),
            ("nothing", "/spec", json!(null), false),
        ] {
            let mut changed = live.clone();
            *changed.pointer_mut(pointer).unwrap() = value;
            assert_eq!(projection(&manifest, &changed) == base, same, "{name}");
        }
    }

    proptest! {
        /// Setting a number that the manifest sets is always seen; beside it, never.
        #[test]
        fn changes_are_seen_where_they_matter(ours in 0_i32..5, theirs in 0_i32..5, other in 0_i32..5) {
            let manifest = json!({"spec": {"a": 1}});
            let live = |a, b| json!({"spec": {"a": a, "b": b}});
            let before = projection(&manifest, &live(ours, 0));
            prop_assert_eq!(projection(&manifest, &live(theirs, other)) == before, ours == theirs);
        }
    }
}
