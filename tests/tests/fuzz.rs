//! The brief pass of the fuzz targets on the stable toolchain: bytes, and texts that are nearly right.

use evenkeel_tests::fuzz;
use proptest::prelude::*;

/// Pieces that paths, queries, selectors and objects are made of, in any order.
fn text(pieces: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(
        prop_oneof![8 => proptest::sample::select(pieces).prop_map(|piece| piece.as_bytes().to_vec()), 1 => proptest::collection::vec(any::<u8>(), 0..4)],
        0..24,
    )
    .prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_breaks_on_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        fuzz::path(&bytes);
        fuzz::query(&bytes);
        fuzz::selector(&bytes);
        fuzz::object(&bytes);
        fuzz::json_patch(&bytes);
    }

    #[test]
    fn paths(bytes in text(&["/", "api", "apis", "v1", "namespaces", "pods", "status", "watch", "%2F", "%", "..", "a"])) {
        fuzz::path(&bytes);
    }

    #[test]
    fn queries(bytes in text(&[
        "&", "=", "limit", "continue", "watch", "resourceVersion", "resourceVersionMatch", "NotOlderThan", "Exact", "true", "0", "-1",
        "99999999999999999999", "sendInitialEvents", "dryRun", "All", "fieldManager", "fieldValidation", "labelSelector", "%3D", "+", ";",
        "application/json", "as", "Table", "g", "meta.k8s.io", "*/*", "q", ",",
    ])) {
        fuzz::query(&bytes);
    }

    #[test]
    fn selectors(bytes in text(&["a", "b/c", "=", "==", "!=", "!", " in ", " notin ", "(", ")", ",", " ", "metadata.name", "\\", "<", ">", "1", "in", "notin"])) {
        fuzz::selector(&bytes);
    }

    #[test]
    fn objects(bytes in text(&["{", "}", "[", "]", ":", ",", "\"a\"", "\"", "\\u", "1", "-", "e9", "null", "true", "\n", "- ", "&x", "*x", "<<: ", "|", " "])) {
        fuzz::object(&bytes);
    }

    #[test]
    fn json_patches(
        document in text(&["{", "}", "[", "]", ":", ",", "\"a\"", "1", "null"]),
        patch in text(&["[", "]", "{", "}", "\"op\":", "\"add\"", "\"copy\"", "\"move\"", "\"remove\"", "\"test\"", ",", "\"path\":", "\"from\":", "\"\"", "\"/a\"", "\"/-\"", "\"/a/0\"", "\"/~1~0\"", "\"value\":", "1", "{}"]),
    ) {
        fuzz::json_patch(&[&document[..], b"\n", &patch[..]].concat());
        fuzz::json_patch(&[&br#"{"a":[1,{"b":2}],"c":{}}"#[..], b"\n", &patch[..]].concat());
    }
}

/// A patch that copies a document into itself again and again doubles it with each line.
#[test]
fn a_patch_of_copies_does_not_fill_the_memory() {
    let copy = r#"{"op":"copy","from":"/a","path":"/a/-"}"#;
    let patch = format!("[{}]", vec![copy; 60].join(","));
    fuzz::json_patch(format!("{{\"a\":[\"xxxxxxxxxxxxxxxx\"]}}\n{patch}").as_bytes());
}
