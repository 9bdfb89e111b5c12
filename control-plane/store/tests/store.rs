//! Reads, writes and watches, on both engines.

mod common;

use common::*;
use evenkeel_store::{
    CommitError, EventKind, Key, Lagged, ListQuery, Precondition, Resource, Revision, Scope, Store,
};

struct Opened {
    store: Store,
    _dir: Option<tempfile::TempDir>,
}

/// The same store on each engine.
async fn engines() -> Vec<(&'static str, Opened)> {
    let dir = tempfile::tempdir().expect("a directory");
    let embedded = Store::open(dir.path(), options()).await.expect("a store");
    vec![
        (
            "memory",
            Opened {
                store: Store::in_memory(options()),
                _dir: None,
            },
        ),
        (
            "embedded",
            Opened {
                store: embedded,
                _dir: Some(dir),
            },
        ),
    ]
}

fn paths(store: &Store, scope: &Scope, query: &ListQuery) -> Vec<String> {
    let listing = store.list(scope, query, &|_| true).expect("a listing");
    listing
        .objects
        .iter()
        .map(|object| object.key.path.to_string())
        .collect()
}

#[tokio::test]
async fn a_write_has_its_revision_in_its_bytes_and_is_seen_at_once() {
    for (engine, Opened { store, _dir }) in engines().await {
        assert!(store.revision() > Revision(1), "{engine}");
        let a = key("default", "a");
        let written = store.commit(vec![create(&a, "1")]).await.expect("created");
        let read = store.get(&a).expect("there");
        assert_eq!(read.json, written[0].json, "{engine}");
        let json: serde_json::Value = serde_json::from_slice(&read.json).expect("JSON");
        assert_eq!(
            json["metadata"]["resourceVersion"],
            store.revision().to_string(),
            "{engine}"
        );
        assert_eq!(read.created, read.revision, "{engine}");
        let second = commit_one(&store, update(&a, read.revision, "2")).await;
        assert!(second > read.revision, "{engine}");
        assert_eq!(store.get(&a).expect("there").created, read.created);
    }
}

#[tokio::test]
async fn preconditions_hold_or_nothing_is_written() {
    for (engine, Opened { store, _dir }) in engines().await {
        let (a, b, missing) = (key("n", "a"), key("n", "b"), key("n", "missing"));
        let at = created(&store, &a, "1").await;
        let before = store.revision();
        let refused = [
            ("create what is there", vec![create(&a, "2")], &a),
            (
                "update of an old state",
                vec![update(&a, Revision(at.0 - 1), "2")],
                &a,
            ),
            (
                "update of nothing",
                vec![update(&missing, at, "2")],
                &missing,
            ),
            ("deletion of nothing", vec![delete(&missing, at)], &missing),
            ("second of two", vec![create(&b, "1"), create(&a, "2")], &a),
            ("one key twice", vec![create(&b, "1"), create(&b, "2")], &b),
        ];
        for (name, writes, culprit) in refused {
            match store.commit(writes).await {
                Err(CommitError::Conflict { key, current }) => {
                    assert_eq!(&key, culprit, "{engine}: {name}");
                    assert_eq!(
                        current.map(|object| object.revision),
                        store.get(culprit).map(|object| object.revision),
                        "{engine}: {name}"
                    );
                }
                other => panic!("{engine}: {name}: {other:?}"),
            }
        }
        assert_eq!(store.revision(), before, "{engine}");
        assert!(store.get(&b).is_none(), "{engine}");
    }
}

#[tokio::test]
async fn a_deletion_has_a_revision_of_its_own_and_the_last_state() {
    for (engine, Opened { store, _dir }) in engines().await {
        let a = key("n", "a");
        let at = created(&store, &a, "last").await;
        let deleted = store.commit(vec![delete(&a, at)]).await.expect("deleted");
        assert!(deleted[0].revision > at, "{engine}");
        assert_eq!(value(&deleted[0].json), "last", "{engine}");
        assert_eq!(store.revision(), deleted[0].revision, "{engine}");
        assert!(store.get(&a).is_none(), "{engine}");
    }
}

#[tokio::test]
async fn lists_are_ordered_by_path_bytes_scoped_and_paged() {
    for (engine, Opened { store, _dir }) in engines().await {
        for (namespace, name) in [("b", "x"), ("a", "y"), ("a-b", "z"), ("a", "x"), ("c", "x")] {
            created(&store, &key(namespace, name), "1").await;
        }
        created(
            &store,
            &Key::new(Resource::new("", "podsx"), None, "x"),
            "1",
        )
        .await;
        let scope = all();
        let of = |namespace| Scope::namespace(pods(), namespace);
        let named = Scope {
            name: Some("x".into()),
            ..all()
        };
        let after = |after: &str| ListQuery {
            after: Some(after.into()),
            ..ListQuery::default()
        };
        let table: [(&str, &Scope, ListQuery, &[&str]); 11] = [
            (
                "all",
                &scope,
                ListQuery::default(),
                &["a-b/z", "a/x", "a/y", "b/x", "c/x"],
            ),
            ("namespace", &of("a"), ListQuery::default(), &["a/x", "a/y"]),
            ("no such namespace", &of("aa"), ListQuery::default(), &[]),
            (
                "object",
                &Scope::object(&key("a", "y")),
                ListQuery::default(),
                &["a/y"],
            ),
            (
                "name in all",
                &named,
                ListQuery::default(),
                &["a/x", "b/x", "c/x"],
            ),
            ("after", &scope, after("a/x"), &["a/y", "b/x", "c/x"]),
            (
                "after what is not there",
                &scope,
                after("a/xx"),
                &["a/y", "b/x", "c/x"],
            ),
            (
                "after, before the namespace",
                &of("b"),
                after("a/x"),
                &["b/x"],
            ),
            ("after, in the namespace", &of("a"), after("a/x"), &["a/y"]),
            ("after, behind the namespace", &of("a"), after("b/x"), &[]),
            (
                "after the object",
                &Scope::object(&key("a", "y")),
                after("a/y"),
                &[],
            ),
        ];
        for (name, scope, query, expected) in table {
            assert_eq!(paths(&store, scope, &query), expected, "{engine}: {name}");
        }

        let page = ListQuery {
            limit: Some(2),
            ..ListQuery::default()
        };
        let first = store.list(&scope, &page, &|_| true).expect("a page");
        assert_eq!(
            (first.objects.len(), first.more, first.remaining),
            (2, true, Some(3))
        );
        let only_x = |object: &evenkeel_store::Object| object.key.name() == "x";
        let filtered = store.list(&scope, &page, &only_x).expect("a page");
        assert!(filtered.more, "{engine}");
        let exact = ListQuery {
            limit: Some(3),
            ..ListQuery::default()
        };
        let filtered = store.list(&scope, &exact, &only_x).expect("a page");
        assert_eq!(
            (filtered.objects.len(), filtered.more),
            (3, false),
            "{engine}"
        );
    }
}

#[tokio::test]
async fn a_list_at_an_older_revision_is_what_was_there() {
    for (engine, Opened { store, _dir }) in engines().await {
        let (a, b, c) = (key("n", "a"), key("n", "b"), key("n", "c"));
        let a1 = created(&store, &a, "1").await;
        let b1 = created(&store, &b, "1").await;
        let at = store.revision();
        commit_one(&store, update(&a, a1, "2")).await;
        commit_one(&store, delete(&b, b1)).await;
        created(&store, &c, "1").await;
        created(&store, &b, "again").await;
        let query = ListQuery {
            at: Some(at),
            ..ListQuery::default()
        };
        let then = store.list(&all(), &query, &|_| true).expect("remembered");
        let seen: Vec<_> = then
            .objects
            .iter()
            .map(|object| (object.key.name().to_owned(), value(&object.json)))
            .collect();
        assert_eq!(
            seen,
            [("a".into(), "1".into()), ("b".into(), "1".into())],
            "{engine}"
        );
        assert_eq!(then.revision, at, "{engine}");
    }
}

#[tokio::test]
async fn watches_hear_what_concerns_them_in_order() {
    for (engine, Opened { store, _dir }) in engines().await {
        let start = store.revision();
        let (a, b) = (key("n", "a"), key("m", "b"));
        let mut everything = store.watch(&all(), start).expect("a watch");
        let mut namespace = store
            .watch(&Scope::namespace(pods(), "n"), start)
            .expect("a watch");
        let mut object = store.watch(&Scope::object(&b), start).expect("a watch");
        let mut other = store.watch(&Scope::all(leases()), start).expect("a watch");
        let mut named = store
            .watch(
                &Scope {
                    name: Some("b".into()),
                    ..all()
                },
                start,
            )
            .expect("a watch");
        let a1 = created(&store, &a, "1").await;
        let b1 = created(&store, &b, "1").await;
        commit_one(&store, update(&a, a1, "2")).await;
        commit_one(&store, delete(&b, b1)).await;
        let of_a = ["Added n/a 1", "Modified n/a 2"];
        let of_b = ["Added m/b 1", "Deleted m/b 1"];
        let of_all = [of_a[0], of_b[0], of_a[1], of_b[1]];
        for (watch, expected) in [
            (&mut everything, &of_all[..]),
            (&mut namespace, &of_a),
            (&mut object, &of_b),
            (&mut named, &of_b),
        ] {
            for text in expected {
                assert_eq!(told(&next(watch).await), *text, "{engine}");
            }
            assert_eq!(watch.progress(), Some(store.revision()), "{engine}");
        }
        assert_eq!(other.progress(), Some(store.revision()), "{engine}");
        drop((everything, namespace, object, named));
        assert_eq!(store.statistics().watchers, 1, "{engine}");

        // One that starts in the past hears the same.
        let mut late = store.watch(&all(), a1).expect("a watch");
        assert_eq!(late.progress(), None, "{engine}");
        for text in &of_all[1..] {
            assert_eq!(told(&next(&mut late).await), *text, "{engine}");
        }
        store.close().await.expect("closed");
        assert!(late.next().await.is_none(), "{engine}");
        assert!(other.next().await.is_none(), "{engine}");
        assert!(matches!(
            store.commit(vec![create(&a, "3")]).await,
            Err(CommitError::Unavailable(_))
        ));
    }
}

#[tokio::test]
async fn a_watch_from_the_future_is_silent_until_then() {
    let store = Store::in_memory(options());
    let (a, b) = (key("n", "a"), key("n", "b"));
    let mut watch = store
        .watch(&all(), Revision(store.revision().0 + 1))
        .expect("a watch");
    assert_eq!(watch.progress(), None);
    created(&store, &a, "1").await;
    created(&store, &b, "1").await;
    assert_eq!(told(&next(&mut watch).await), "Added n/b 1");
}

#[tokio::test]
async fn a_renewal_is_seen_by_all_and_changes_no_revision() {
    for (engine, Opened { store, _dir }) in engines().await {
        let lease = lease("m1");
        let at = created(&store, &lease, "0").await;
        let (_, mut watch) = store.list_and_watch(&Scope::object(&lease));
        let (_, other) = store.list_and_watch(&all());
        let commits = store.statistics().commits;
        for n in 1..=3 {
            let text = n.to_string();
            store.renew(&lease, body("m1", &text)).expect("renewed");
            let event = next(&mut watch).await;
            assert_eq!(told(&event), format!("Modified karmada-cluster/m1 {n}"));
            assert_eq!(event.revision, at, "{engine}");
            let previous = event.previous.expect("known");
            assert_eq!(value(&previous.json), (n - 1).to_string(), "{engine}");
        }
        assert_eq!(store.revision(), at, "{engine}");
        assert_eq!(store.statistics().commits, commits, "{engine}");
        assert_eq!(other.progress(), Some(at), "{engine}");

        // A durable write, and a deletion, go on from the renewed state.
        let deleted = store
            .commit(vec![delete(&lease, at)])
            .await
            .expect("deleted");
        assert_eq!(value(&deleted[0].json), "3", "{engine}");
        assert!(matches!(
            store.renew(&lease, body("m1", "4")),
            Err(CommitError::Conflict { current: None, .. })
        ));
    }
}

#[tokio::test]
async fn a_renewal_made_from_an_older_state_is_refused() {
    for (engine, Opened { store, _dir }) in engines().await {
        let lease = lease("m1");
        let at = created(&store, &lease, "0").await;
        let first = store.get(&lease).expect("there");
        let second = store
            .renew_from(&first, body("m1", "1"))
            .expect("nothing came in between");
        assert!(
            store.renew_from(&first, body("m1", "2")).is_err(),
            "{engine}: another renewal came in between"
        );
        store
            .commit(vec![update(&lease, at, "3")])
            .await
            .expect("updated");
        assert!(
            store.renew_from(&second, body("m1", "4")).is_err(),
            "{engine}: a durable write came in between"
        );
        let stands = store.get(&lease).expect("there");
        assert_eq!(value(&stands.json), "3", "{engine}");
    }
}

#[tokio::test]
async fn a_slow_watcher_is_told_and_ended() {
    let mut options = options();
    options.watcher_events = 3;
    let store = Store::in_memory(options);
    let (_, mut watch) = store.list_and_watch(&all());
    for n in 0..4 {
        created(&store, &key("n", &n.to_string()), "1").await;
    }
    assert_eq!(watch.progress(), None);
    assert_eq!(
        watch.next().await.map(|event| event.map(|_| ())),
        Some(Err(Lagged))
    );
    assert!(watch.next().await.is_none());
    assert_eq!(store.statistics().watchers, 0);
}

#[tokio::test]
async fn what_the_ring_forgot_is_expired_for_lists_and_one_event_each_for_watches() {
    let mut options = options();
    options.ring_events = 4;
    options.deletions = 2;
    let store = Store::in_memory(options);
    let start = store.revision();
    let (kept, gone) = (key("n", "kept"), key("n", "gone"));
    let mut at = created(&store, &kept, "0").await;
    let born = created(&store, &gone, "0").await;
    for n in 1..=5 {
        at = commit_one(&store, update(&kept, at, &n.to_string())).await;
    }
    commit_one(&store, delete(&gone, born)).await;
    let query = ListQuery {
        at: Some(born),
        ..ListQuery::default()
    };
    assert_eq!(
        store
            .list(&all(), &query, &|_| true)
            .expect_err("forgotten")
            .requested,
        born
    );
    // Neither was there at the start; only one is there now.
    let mut watch = store.watch(&all(), start).expect("a watch");
    let event = next(&mut watch).await;
    assert_eq!(told(&event), "Added n/kept 5");
    assert!(event.previous.is_none());
    assert_eq!(watch.progress(), Some(store.revision()));
    // Both were there at `born`.
    let mut watch = store.watch(&all(), born).expect("a watch");
    assert_eq!(told(&next(&mut watch).await), "Modified n/kept 5");
    assert_eq!(next(&mut watch).await.kind, EventKind::Deleted);

    for name in ["x", "y"] {
        let at = created(&store, &key("n", name), "0").await;
        commit_one(&store, delete(&key("n", name), at)).await;
    }
    let expired = store
        .watch(&all(), born)
        .expect_err("deletions are forgotten");
    assert_eq!(expired.requested, born);
    assert!(expired.oldest > born);
    assert!(store.watch(&all(), expired.oldest).is_ok());
}

#[tokio::test]
async fn reached_waits_for_a_revision() {
    let store = Store::in_memory(options());
    let target = Revision(store.revision().0 + 2);
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { store.reached(target).await }
    });
    created(&store, &key("n", "a"), "1").await;
    assert!(!waiting.is_finished());
    created(&store, &key("n", "b"), "1").await;
    tokio::time::timeout(std::time::Duration::from_secs(10), waiting)
        .await
        .expect("in time")
        .expect("reached");
}

#[tokio::test]
async fn an_empty_transaction_is_no_write() {
    for (engine, Opened { store, _dir }) in engines().await {
        assert!(store.commit(Vec::new()).await.expect("nothing").is_empty());
        assert_eq!(store.statistics().writes, 0, "{engine}");
    }
}

#[tokio::test]
async fn writes_of_one_transaction_have_rising_revisions() {
    for (engine, Opened { store, _dir }) in engines().await {
        let objects = store
            .commit(vec![
                create(&key("n", "a"), "1"),
                create(&key("n", "b"), "1"),
            ])
            .await
            .expect("written");
        assert_eq!(
            objects[1].revision,
            Revision(objects[0].revision.0 + 1),
            "{engine}"
        );
        // One who stopped between the two resumes with the second.
        let mut watch = store.watch(&all(), objects[0].revision).expect("a watch");
        assert_eq!(told(&next(&mut watch).await), "Added n/b 1", "{engine}");
        let stale = Precondition::At(objects[0].revision);
        assert!(
            store
                .commit(vec![put(&key("n", "b"), stale, "2")])
                .await
                .is_err()
        );
    }
}

#[tokio::test]
async fn a_body_without_a_place_for_its_revision_is_refused() {
    for (engine, Opened { store, _dir }) in engines().await {
        let a = key("n", "a");
        let at = created(&store, &a, "1").await;
        for version_at in [0, 3, 10_000] {
            let mut unsound = body("a", "2");
            unsound.version_at = version_at;
            let write = evenkeel_store::Write {
                key: a.clone(),
                precondition: Precondition::At(at),
                change: evenkeel_store::Change::Put(unsound.clone()),
            };
            assert!(
                store.commit(vec![write]).await.is_err(),
                "{engine} {version_at}"
            );
            assert!(store.renew(&a, unsound).is_err(), "{engine} {version_at}");
        }
        assert_eq!(store.revision(), at, "{engine}");
    }
}
