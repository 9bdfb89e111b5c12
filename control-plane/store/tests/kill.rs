//! kill -9 of a process that writes: what it acknowledged is there, and revisions go on.

mod common;

use std::{
    collections::HashMap,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Command, Stdio},
};

use common::*;
use evenkeel_store::{EventKind, Key, Revision, Store};

const DIRECTORY: &str = "EVENKEEL_STORE_KILL_DIR";
const ROUND: &str = "EVENKEEL_STORE_KILL_ROUND";
const ROUNDS: usize = 6;
const WRITERS: usize = 8;

/// Step `n` of a writer: each object is created, updated and, every second one, deleted.
fn step(namespace: &str, n: usize) -> (Key, usize) {
    (key(namespace, &format!("{:05}", n / 3)), n % 3)
}

/// What is there of an object after so many of its steps were made.
fn expected(object: usize, steps: usize) -> Option<&'static str> {
    match steps {
        1 => Some("created"),
        2 => Some("updated"),
        3 if object % 2 == 1 => Some("updated"),
        _ => None,
    }
}

#[tokio::test]
#[ignore = "the process that the test below starts and kills"]
async fn write_until_killed() {
    let dir = std::env::var(DIRECTORY).expect("started by the test below");
    let round = std::env::var(ROUND).expect("started by the test below");
    let store = Store::open(Path::new(&dir), options())
        .await
        .expect("a store");
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| tokio::spawn(write(store.clone(), format!("r{round}-w{writer}"))))
        .collect();
    for writer in writers {
        writer.await.expect("writes for ever");
    }
}

async fn write(store: Store, namespace: String) {
    let mut at = store.revision();
    for n in 0.. {
        let (key, part) = step(&namespace, n);
        at = match part {
            0 => created(&store, &key, "created").await,
            1 => commit_one(&store, update(&key, at, "updated")).await,
            _ if n / 3 % 2 == 0 => commit_one(&store, delete(&key, at)).await,
            _ => at,
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "\nack {namespace} {n} {at}").expect("told");
        out.flush().expect("told");
    }
}

/// Steps that each writer was told are done, and the highest revision told.
fn run_and_kill(
    dir: &Path,
    round: usize,
    acknowledgements: usize,
) -> (HashMap<String, usize>, Revision) {
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--ignored", "--exact", "write_until_killed", "--nocapture"])
        .env(DIRECTORY, dir)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let out = BufReader::new(child.stdout.take().expect("piped"));
    let mut done = HashMap::new();
    let mut highest = Revision(0);
    let mut count = 0;
    for line in out.lines() {
        let line = line.expect("text");
        let Some(told) = line.strip_prefix("ack ") else {
            continue;
        };
        let words: Vec<_> = told.split(' ').collect();
        // The last line may be cut off by the kill.
        let [namespace, n, revision] = words[..] else {
            continue;
        };
        let (Ok(n), Ok(revision)) = (n.parse::<usize>(), revision.parse()) else {
            continue;
        };
        done.insert(namespace.to_owned(), n + 1);
        highest = highest.max(Revision(revision));
        count += 1;
        if count == acknowledgements {
            child.kill().expect("killed");
        }
    }
    let status = child.wait().expect("ended");
    assert!(!status.success(), "it writes until it is killed");
    assert!(count >= acknowledgements, "only {count} acknowledged");
    (done, highest)
}

#[tokio::test]
async fn acknowledged_writes_survive_kill_9() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut before = evenkeel_store::engine::FIRST_REVISION;
    for round in 0..ROUNDS {
        let (done, highest) = run_and_kill(dir.path(), round, 150 + 97 * round);
        let store = Store::open(dir.path(), options()).await.expect("opens");
        assert!(highest > before, "revisions never go back");
        assert!(store.revision() >= highest, "round {round}");
        assert_eq!(done.len(), WRITERS);
        for (namespace, steps) in &done {
            for object in 0..=steps / 3 {
                let made = steps.saturating_sub(object * 3).min(3);
                let there = store.get(&step(namespace, object * 3).0);
                let there = there.map(|object| value(&object.json));
                // One write may have been made without its acknowledgement coming through.
                let possible = [expected(object, made), expected(object, made + 1)];
                let possible = if made == 3 { &possible[..1] } else { &possible };
                assert!(
                    possible.contains(&there.as_deref()),
                    "round {round}: {namespace} object {object}, {made} steps: {there:?}"
                );
            }
        }
        // A watch from before the round tells of every object that is there, once.
        let mut watch = store.watch(&all(), before).expect("known");
        let mut told = 0;
        while watch.progress().is_none() {
            let event = next(&mut watch).await;
            assert!(event.revision > before);
            told += usize::from(event.kind == EventKind::Added);
        }
        let listing = store
            .list(&all(), &evenkeel_store::ListQuery::default(), &|object| {
                object.created > before
            })
            .expect("a listing");
        assert_eq!(told, listing.objects.len(), "round {round}");
        before = store.revision();
        store.close().await.expect("closed");
    }
}
