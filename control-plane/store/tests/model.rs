//! The store against a model: whatever is done to it, in whatever order, it gives what the model gives.

mod common;

use std::collections::BTreeMap;

use common::*;
use evenkeel_store::{
    CommitError, EventKind, ListQuery, Precondition, Revision, Scope, Store, StoreOptions, Watch,
};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Op {
    /// Creates, updates or deletes, whichever the object's state allows; with `stale`, under a precondition that does
    /// not hold.
    Write {
        object: usize,
        stale: bool,
    },
    Delete {
        object: usize,
    },
    /// Two objects in one transaction.
    Both {
        first: usize,
        second: usize,
    },
    Renew,
    /// Lists and watches from this part of the past, in 256ths.
    LookBack {
        part: u8,
    },
    /// Closes and opens again, where the engine keeps things.
    Reopen,
}

const OBJECTS: usize = 7;

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let object = 0..OBJECTS;
    let op = prop_oneof![
        6 => (object.clone(), prop::bool::weighted(0.2))
            .prop_map(|(object, stale)| Op::Write { object, stale }),
        4 => object.clone().prop_map(|object| Op::Delete { object }),
        2 => (object.clone(), object).prop_map(|(first, second)| Op::Both { first, second }),
        1 => Just(Op::Renew),
        4 => any::<u8>().prop_map(|part| Op::LookBack { part }),
        1 => Just(Op::Reopen),
    ];
    prop::collection::vec(op, 1..60)
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    value: String,
    revision: Revision,
    created: Revision,
}

type States = BTreeMap<String, State>;

/// Every state that there ever was.
struct Model {
    history: BTreeMap<Revision, States>,
    renewals: usize,
}

impl Model {
    fn new(start: Revision) -> Self {
        Self {
            history: BTreeMap::from([(start, States::new())]),
            renewals: 0,
        }
    }

    fn now(&self) -> &States {
        self.history.last_key_value().expect("a start").1
    }

    fn revision(&self) -> Revision {
        *self.history.last_key_value().expect("a start").0
    }

    fn at(&self, revision: Revision) -> &States {
        self.history
            .range(..=revision)
            .next_back()
            .expect("a start")
            .1
    }
}

fn path(object: usize) -> evenkeel_store::Key {
    key(["a", "a-b", "b"][object % 3], &format!("o{object}"))
}

fn states(objects: &[std::sync::Arc<evenkeel_store::Object>]) -> States {
    objects
        .iter()
        .map(|object| {
            let state = State {
                value: value(&object.json),
                revision: object.revision,
                created: object.created,
            };
            (object.key.path.to_string(), state)
        })
        .collect()
}

/// Puts one write into store and model.
async fn write(store: &Store, model: &mut Model, objects: &[(usize, bool)], stale: bool, n: usize) {
    let mut after = model.now().clone();
    let mut writes = Vec::new();
    let mut steps = Vec::new();
    for (index, (object, deletes)) in objects.iter().enumerate() {
        let key = path(*object);
        let standing = model.now().get(&*key.path).map(|state| state.revision);
        let precondition = match (standing, stale) {
            (Some(revision), false) => Precondition::At(revision),
            (None, false) | (Some(_), true) => Precondition::Absent,
            (None, true) => Precondition::At(model.revision()),
        };
        let text = format!("{n}-{index}");
        steps.push((key.path.to_string(), *deletes, text.clone()));
        writes.push(match (*deletes, standing) {
            (true, at) => delete(&key, at.unwrap_or(Revision(1))),
            (false, _) => put(&key, precondition, &text),
        });
    }
    let possible = !stale
        && objects
            .iter()
            .all(|(object, deletes)| !deletes || model.now().contains_key(&*path(*object).path))
        && (objects.len() == 1 || objects[0].0 != objects[1].0);
    match store.commit(writes).await {
        Ok(written) => {
            assert!(possible, "{objects:?} stale {stale} was written");
            for (object, (path, deletes, text)) in written.iter().zip(steps) {
                assert!(object.revision > model.revision(), "revisions rise");
                if deletes {
                    after.remove(&path);
                } else {
                    let created = after
                        .get(&path)
                        .map_or(object.revision, |state| state.created);
                    let state = State {
                        value: text,
                        revision: object.revision,
                        created,
                    };
                    after.insert(path, state);
                }
                model.history.insert(object.revision, after.clone());
            }
        }
        Err(CommitError::Conflict { .. }) => {
            assert!(!possible, "{objects:?} was refused");
        }
        Err(other) => panic!("{other}"),
    }
    assert_eq!(store.revision(), model.revision());
}

/// Takes everything that a watch has to tell, and applies it to the states it started from.
async fn follow(watch: &mut Watch, states: &mut States) {
    let mut last = Revision(0);
    while watch.progress().is_none() {
        let event = next(watch).await;
        assert!(event.revision > last);
        last = event.revision;
        let path = event.object.key.path.to_string();
        let known = states.contains_key(&path);
        match event.kind {
            EventKind::Added => assert!(!known, "{path} was there"),
            EventKind::Modified | EventKind::Deleted => assert!(known, "{path} was not there"),
        }
        if event.kind == EventKind::Deleted {
            states.remove(&path);
        } else {
            let state = State {
                value: value(&event.object.json),
                revision: event.revision,
                created: event.object.created,
            };
            states.insert(path, state);
        }
    }
}

async fn look_back(store: &Store, model: &Model, part: u8, oldest_listed: Revision) {
    let revisions: Vec<_> = model.history.keys().copied().collect();
    let at = revisions[revisions.len() * usize::from(part) / 256];
    for scope in [all(), Scope::namespace(pods(), "a")] {
        let within = |states: &States| -> States {
            states
                .iter()
                .filter(|(path, _)| scope.namespace.is_none() || path.starts_with("a/"))
                .map(|(path, state)| (path.clone(), state.clone()))
                .collect()
        };
        let query = ListQuery {
            at: Some(at),
            ..ListQuery::default()
        };
        match store.list(&scope, &query, &|_| true) {
            Ok(listing) => {
                assert_eq!(
                    states(&listing.objects),
                    within(model.at(at)),
                    "list at {at}"
                );
                assert!(
                    listing
                        .objects
                        .is_sorted_by_key(|object| object.key.path.clone())
                );
            }
            Err(expired) => {
                assert!(at < expired.oldest && at != model.revision());
                assert!(expired.oldest >= oldest_listed);
            }
        }
        match store.watch(&scope, at) {
            Ok(mut watch) => {
                let mut states = within(model.at(at));
                follow(&mut watch, &mut states).await;
                assert_eq!(states, within(model.now()), "watch from {at}");
            }
            Err(expired) => assert!(at < expired.oldest && at != model.revision()),
        }
    }
}

async fn check(ops: Vec<Op>, dir: Option<&std::path::Path>, options: StoreOptions) {
    let open = async || match dir {
        Some(dir) => Store::open(dir, options.clone()).await.expect("a store"),
        None => Store::in_memory(options.clone()),
    };
    let mut store = open().await;
    let lease = lease("m");
    let mut lease_state = created(&store, &lease, "0").await;
    let mut model = Model::new(lease_state);
    let mut opened = model.revision();
    let (_, mut live) = store.list_and_watch(&all());
    let mut heard = States::new();
    for (n, op) in ops.into_iter().enumerate() {
        match op {
            Op::Write { object, stale } => {
                write(&store, &mut model, &[(object, false)], stale, n).await;
            }
            Op::Delete { object } => write(&store, &mut model, &[(object, true)], false, n).await,
            Op::Both { first, second } => {
                let both = [(first, false), (second, false)];
                write(&store, &mut model, &both, false, n).await;
            }
            Op::Renew => {
                model.renewals += 1;
                let body = body("m", &model.renewals.to_string());
                let renewed = store.renew(&lease, body).expect("renewed");
                assert_eq!(renewed.revision, lease_state);
                lease_state = renewed.revision;
            }
            Op::LookBack { part } => look_back(&store, &model, part, opened).await,
            Op::Reopen if dir.is_some() => {
                store.close().await.expect("closed");
                follow_to_end(&mut live, &mut heard).await;
                store = open().await;
                opened = model.revision();
                assert_eq!(store.revision(), opened);
                live = store
                    .watch(&all(), opened)
                    .expect("the newest revision is known");
            }
            Op::Reopen => {}
        }
        follow(&mut live, &mut heard).await;
        assert_eq!(&heard, model.now());
        let listing = store
            .list(&all(), &ListQuery::default(), &|_| true)
            .expect("now is known");
        assert_eq!(&states(&listing.objects), model.now());
        let held = store.get(&lease).expect("there");
        assert_eq!(value(&held.json), model.renewals.to_string());
    }
    store.close().await.expect("closed");
}

/// A closed store has nothing more to tell to one who had heard everything.
async fn follow_to_end(watch: &mut Watch, heard: &mut States) {
    let before = heard.clone();
    assert!(watch.next().await.is_none());
    assert_eq!(*heard, before);
}

fn run(check: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(check);
}

fn small(ring: usize, deletions: usize) -> StoreOptions {
    let mut options = options();
    options.ring_events = ring;
    options.deletions = deletions;
    options
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(192) })]

    #[test]
    fn in_memory(ops in ops(), ring in 1_usize..40, deletions in 1_usize..10) {
        run(check(ops, None, small(ring, deletions)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn embedded(ops in ops(), ring in 1_usize..40, deletions in 1_usize..10) {
        let dir = tempfile::tempdir().expect("a directory");
        run(check(ops, Some(dir.path()), small(ring, deletions)));
    }
}
