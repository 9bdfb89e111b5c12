//! What outlives a process: reopening, damage, backups, checkpoints.

mod common;

use std::{path::Path, time::Duration};

use bytes::Bytes;
use common::*;
use evenkeel_store::{
    EventKind, ListQuery, OpenError, Revision, Scope, Store, StoreOptions, restore,
    restore::REVISION_GAP,
};

const FILE: &str = "store.redb";

async fn open(dir: &Path) -> Store {
    Store::open(dir, options()).await.expect("a store")
}

/// The store as a crash at this moment would leave it.
async fn crashed(dir: &Path) -> (tempfile::TempDir, Store) {
    let copy = tempfile::tempdir().expect("a directory");
    std::fs::copy(dir.join(FILE), copy.path().join(FILE)).expect("a copy");
    let store = open(copy.path()).await;
    (copy, store)
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_crash() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path()).await;
    let (a, b) = (key("n", "a"), key("n", "b"));
    let a1 = created(&store, &a, "1").await;
    let a2 = commit_one(&store, update(&a, a1, "2")).await;
    let b1 = created(&store, &b, "1").await;
    store
        .set_state("heard", Bytes::from_static(b"then"))
        .await
        .expect("kept");
    let newest = commit_one(&store, delete(&b, b1)).await;

    let (_copy, after) = crashed(dir.path()).await;
    let object = after.get(&a).expect("there");
    assert_eq!((object.revision, object.created), (a2, a1));
    assert_eq!(object.json, store.get(&a).expect("there").json);
    assert!(after.get(&b).is_none());
    assert_eq!(after.state("heard").as_deref(), Some(&b"then"[..]));
    assert_eq!(
        after.revision(),
        newest,
        "the deletion was the newest write"
    );
    assert!(created(&after, &b, "2").await > newest);
}

#[tokio::test]
async fn watches_resume_across_a_restart() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path()).await;
    let (kept, gone, brief, again) = (
        key("n", "kept"),
        key("n", "gone"),
        key("n", "brief"),
        key("n", "again"),
    );
    let kept1 = created(&store, &kept, "1").await;
    let gone1 = created(&store, &gone, "1").await;
    let again1 = created(&store, &again, "1").await;
    let seen = store.revision();
    commit_one(&store, update(&kept, kept1, "2")).await;
    let brief1 = created(&store, &brief, "1").await;
    commit_one(&store, delete(&brief, brief1)).await;
    commit_one(&store, delete(&gone, gone1)).await;
    commit_one(&store, delete(&again, again1)).await;
    created(&store, &again, "2").await;
    created(&store, &key("n", "new"), "1").await;
    store.close().await.expect("closed");

    let store = open(dir.path()).await;
    let mut watch = store.watch(&all(), seen).expect("a watch");
    let expected = [
        "Modified n/kept 2",
        "Deleted n/gone 1",
        "Deleted n/again 1",
        "Added n/again 2",
        "Added n/new 1",
    ];
    for text in expected {
        assert_eq!(told(&next(&mut watch).await), text);
    }
    assert_eq!(watch.progress(), Some(store.revision()));
    created(&store, &key("n", "live"), "1").await;
    assert_eq!(told(&next(&mut watch).await), "Added n/live 1");

    let query = ListQuery {
        at: Some(seen),
        ..ListQuery::default()
    };
    assert!(store.list(&all(), &query, &|_| true).is_err());
}

#[tokio::test]
async fn deletions_are_forgotten_on_disk_too_and_then_old_watches_expire() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut options = options();
    options.ring_events = 1;
    options.deletions = 2;
    options.checkpoint_interval = Duration::from_millis(1);
    let store = Store::open(dir.path(), options.clone())
        .await
        .expect("a store");
    let start = store.revision();
    for n in 0..5 {
        let key = key("n", &n.to_string());
        let at = created(&store, &key, "1").await;
        commit_one(&store, delete(&key, at)).await;
    }
    let oldest = store.watch(&all(), start).expect_err("forgotten").oldest;
    // The next upkeep tells the engine; the next write after it forgets.
    let mut at = created(&store, &key("n", "x"), "0").await;
    tokio::time::timeout(Duration::from_secs(10), async {
        loop {
            at = commit_one(&store, update(&key("n", "x"), at, "1")).await;
            let (_copy, copy) = crashed(dir.path()).await;
            if let Err(expired) = copy.watch(&all(), Revision(oldest.0 - 1)) {
                assert_eq!(expired.oldest, oldest);
                break;
            }
        }
    })
    .await
    .expect("forgotten in time");
}

#[tokio::test]
async fn a_second_process_is_told_that_the_file_is_in_use() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path()).await;
    let refused = Store::open(dir.path(), options())
        .await
        .expect_err("locked");
    assert!(matches!(refused, OpenError::Locked { .. }), "{refused}");
    store.close().await.expect("closed");
    open(dir.path()).await;
}

type Spoil = Box<dyn Fn(&Path)>;

#[tokio::test]
async fn files_that_are_not_ours_are_refused_and_left_alone() {
    let redb_of_another = |path: &Path| {
        let database = redb::Database::create(path).expect("a database");
        let transaction = database.begin_write().expect("a transaction");
        let table: redb::TableDefinition<'_, &str, &str> = redb::TableDefinition::new("songs");
        transaction.open_table(table).expect("a table");
        transaction.commit().expect("committed");
    };
    let newer = |path: &Path| {
        let database = redb::Database::open(path).expect("a database");
        let transaction = database.begin_write().expect("a transaction");
        {
            let table: redb::TableDefinition<'_, &str, &[u8]> = redb::TableDefinition::new("meta");
            let mut meta = transaction.open_table(table).expect("a table");
            meta.insert("format", 7_u32.to_le_bytes().as_slice())
                .expect("inserted");
        }
        transaction.commit().expect("committed");
    };
    let replace =
        |content: &'static [u8]| move |path: &Path| std::fs::write(path, content).expect("written");
    let table: [(&str, Spoil, &str); 4] = [
        ("empty", Box::new(replace(b"")), "the file is empty"),
        (
            "text",
            Box::new(replace(&[b'x'; 9000])),
            "not a store of Evenkeel",
        ),
        (
            "another program's",
            Box::new(move |path| {
                std::fs::remove_file(path).expect("removed");
                redb_of_another(path);
            }),
            "a database of another program",
        ),
        (
            "newer",
            Box::new(newer),
            "has format 7, and this version knows format 1",
        ),
    ];
    for (name, spoil, expected) in table {
        let dir = tempfile::tempdir().expect("a directory");
        open(dir.path()).await.close().await.expect("closed");
        let path = dir.path().join(FILE);
        spoil(&path);
        let before = std::fs::read(&path).expect("there");
        let refused = Store::open(dir.path(), options()).await.expect_err(name);
        let text = refused.to_string();
        assert!(text.contains(expected), "{name}: {text}");
        assert!(text.contains(&path.display().to_string()), "{name}: {text}");
        assert!(
            std::fs::read(&path).expect("there") == before,
            "{name}: the file was changed"
        );
    }
}

/// Wherever a file is cut off or altered, it is refused, or everything that was acknowledged is still there.
#[tokio::test]
async fn torn_and_altered_files_are_refused_or_whole() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path()).await;
    let text = "x".repeat(3000);
    for n in 0..40 {
        created(&store, &key("n", &format!("{n:02}")), &text).await;
    }
    store.close().await.expect("closed");
    let whole = std::fs::read(dir.path().join(FILE)).expect("read");
    let cuts = (1..8).map(|eighth| whole.len() * eighth / 8);
    let torn = cuts.map(|len| (format!("cut at {len}"), whole[..len].to_vec()));
    let altered = (0..60).map(|step| {
        let at = whole.len() * step / 60 + step * 37 % 4096;
        let at = at.min(whole.len() - 1);
        let mut bytes = whole.clone();
        bytes[at] ^= 0x41;
        (format!("altered at {at}"), bytes)
    });
    let (mut refused, mut total) = (0, 0);
    for (name, bytes) in torn.chain(altered) {
        total += 1;
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join(FILE), bytes).expect("written");
        match Store::open(dir.path(), options()).await {
            Err(OpenError::Damaged { .. } | OpenError::Foreign { .. }) => refused += 1,
            Err(other) => panic!("{name}: {other}"),
            Ok(store) => {
                let listing = store
                    .list(&all(), &ListQuery::default(), &|object| {
                        value(&object.json) == text
                    })
                    .expect("a listing");
                assert_eq!(listing.objects.len(), 40, "{name}");
            }
        }
    }
    assert!(
        refused * 2 > total,
        "{refused} of {total} were found damaged"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_directory_that_cannot_be_written_is_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("file");
    std::fs::write(&file, "").expect("written");
    // A file where the directory should be: this holds for root too, whom permissions do not stop.
    let refused = Store::open(&file.join("data"), options())
        .await
        .expect_err("refused");
    assert!(
        refused.to_string().contains(&file.display().to_string()),
        "{refused}"
    );
}

#[tokio::test]
async fn a_backup_is_made_while_serving_and_restored_ahead() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(&dir.path().join("data")).await;
    let writes = (0..1100).map(|n| create(&key("n", &format!("{n:04}")), "1"));
    store.commit(writes.collect()).await.expect("created");
    let lease = lease("m1");
    created(&store, &lease, "0").await;
    store.renew(&lease, body("m1", "renewed")).expect("renewed");
    store
        .set_state("s", Bytes::from_static(b"kept"))
        .await
        .expect("kept");
    let writer = tokio::spawn({
        let store = store.clone();
        async move {
            for n in 0..200 {
                created(&store, &key("later", &n.to_string()), "1").await;
            }
        }
    });
    let backup = dir.path().join("backup");
    let at = store.backup(&backup).await.expect("a backup");
    writer.await.expect("written");
    let taken = store.backup(&backup).await.expect_err("is there");
    assert!(taken.to_string().contains("exists already"), "{taken}");
    let lost = store.revision();

    // What an interrupted restore left is no store, and no hindrance to the next one.
    let target = dir.path().join("restored");
    std::fs::create_dir(&target).expect("made");
    std::fs::write(target.join("store.redb.restoring"), "half").expect("written");
    let refused = Store::open(&target, options()).await.expect_err("no store");
    assert!(refused.to_string().contains("interrupted"), "{refused}");
    let restored = restore(&backup, &target).expect("restored");
    assert_eq!(restored.revision, Revision(at.0 + REVISION_GAP));
    let refused = restore(&backup, &target).expect_err("not empty");
    assert!(matches!(refused, OpenError::NotEmpty { .. }), "{refused}");

    let after = open(&target).await;
    assert_eq!(after.revision(), restored.revision);
    assert_eq!(after.statistics().objects as u64, restored.objects);
    assert_eq!(value(&after.get(&lease).expect("there").json), "renewed");
    assert_eq!(after.state("s").as_deref(), Some(&b"kept"[..]));
    let later = Scope::namespace(pods(), "later");
    let there = after
        .list(&later, &ListQuery::default(), &|_| true)
        .expect("listed");
    assert_eq!(
        there.objects.len() as u64,
        restored.objects - 1101,
        "the backup holds one state"
    );
    for revision in [at, lost] {
        assert!(
            after.watch(&all(), revision).is_err(),
            "{revision} is of another history"
        );
    }
    let written = created(&after, &key("n", "new"), "1").await;
    assert!(written > restored.revision);
}

#[tokio::test]
async fn a_damaged_backup_leaves_the_directory_empty() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(&dir.path().join("data")).await;
    for n in 0..40 {
        created(&store, &key("n", &n.to_string()), &"x".repeat(3000)).await;
    }
    let backup = dir.path().join("backup");
    store.backup(&backup).await.expect("a backup");
    let mut bytes = std::fs::read(&backup).expect("read");
    // In the middle of some object's text.
    let at = bytes
        .windows(100)
        .position(|window| window.iter().all(|byte| *byte == b'x'))
        .expect("text");
    bytes[at] = b'y';
    std::fs::write(&backup, bytes).expect("written");
    let target = dir.path().join("restored");
    let refused = restore(&backup, &target).expect_err("damaged");
    assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
    assert!(refused.to_string().contains("backup"), "{refused}");
    assert_eq!(std::fs::read_dir(&target).expect("a directory").count(), 0);
}

fn paused_options() -> StoreOptions {
    let mut options = options();
    options.checkpoint_interval = Duration::from_secs(30);
    options.checkpoint_chunk = 500;
    options
}

#[tokio::test(start_paused = true)]
async fn renewals_are_checkpointed_in_chunks_and_only_at_their_time() {
    let dir = tempfile::tempdir().expect("a directory");
    // The clock goes on by itself while the writer works, so the only sure time is that since the opening.
    let opened = tokio::time::Instant::now();
    let store = Store::open(dir.path(), paused_options())
        .await
        .expect("a store");
    let leases: Vec<_> = (0..1200).map(|n| lease(&format!("m{n}"))).collect();
    let writes = leases.iter().map(|lease| create(lease, "0")).collect();
    store.commit(writes).await.expect("created");
    let before = store.statistics();
    for round in 1..=3 {
        for lease in &leases {
            store
                .renew(lease, body(lease.name(), &round.to_string()))
                .expect("renewed");
        }
    }
    let still = store.statistics();
    assert_eq!(still.volatile_writes, 3600);
    assert_eq!(
        (still.commits, still.fsyncs, still.checkpointed),
        (before.commits, before.fsyncs, 0),
        "no renewal waits for the disk"
    );

    // Each write that waits is in the next commit, and takes one chunk along.
    let mut commits = 0;
    while store.statistics().checkpointed < 1200 {
        store.set_state("tick", Bytes::new()).await.expect("kept");
        tokio::time::sleep(Duration::from_secs(1)).await;
        commits += 1;
        assert!(commits < 100, "the checkpoint does not come");
    }
    assert!(opened.elapsed() >= Duration::from_secs(30));
    let statistics = store.statistics();
    assert_eq!(statistics.checkpointed, 1200, "each object once");
    let more = statistics.commits - before.commits;
    assert!(
        (3..=commits + 3).contains(&more),
        "{more} commits in {commits} steps"
    );

    let (_copy, after) = crashed(dir.path()).await;
    assert_eq!(value(&after.get(&leases[7]).expect("there").json), "3");
    assert_eq!(after.revision(), store.revision());
}

#[tokio::test]
async fn closing_puts_renewals_on_disk() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path()).await;
    let lease = lease("m1");
    let at = created(&store, &lease, "0").await;
    store.renew(&lease, body("m1", "1")).expect("renewed");
    store.close().await.expect("closed");
    assert!(store.renew(&lease, body("m1", "2")).is_err());
    let store = open(dir.path()).await;
    let object = store.get(&lease).expect("there");
    assert_eq!((value(&object.json).as_str(), object.revision), ("1", at));
}

#[tokio::test]
async fn waiting_writes_share_commits() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path()).await;
    let before = store.statistics();
    let writers = (0..64).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            for n in 0..10 {
                created(&store, &key("n", &format!("{writer}-{n}")), "1").await;
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.expect("written");
    }
    let after = store.statistics();
    assert_eq!(after.writes - before.writes, 640);
    let fsyncs = after.fsyncs - before.fsyncs;
    assert!(fsyncs < 320, "{fsyncs} fsyncs for 640 writes");
}

#[tokio::test]
async fn more_than_may_wait_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut options = options();
    options.max_pending_writes = 4;
    let store = Store::open(dir.path(), options).await.expect("a store");
    let writes: Vec<_> = (0..200)
        .map(|n| {
            let key = key("n", &n.to_string());
            let store = store.clone();
            async move { store.commit(vec![create(&key, "1")]).await }
        })
        .collect();
    let results = futures::future::join_all(writes).await;
    let busy = results
        .iter()
        .filter(|result| matches!(result, Err(evenkeel_store::CommitError::Busy)))
        .count();
    let made = results.iter().filter(|result| result.is_ok()).count();
    assert!(busy > 0 && made >= 4, "{busy} refused, {made} made");
    assert_eq!(busy + made, 200);
    assert_eq!(store.statistics().objects, made);
    assert_eq!(store.statistics().pending_writes, 0);
}

#[tokio::test]
async fn events_come_in_the_order_of_revisions_whoever_writes() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path()).await;
    let (_, mut watch) = store.list_and_watch(&all());
    let writers: Vec<_> = (0..16)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                let key = key(&format!("n{writer}"), "x");
                let mut at = created(&store, &key, "0").await;
                for n in 1..20 {
                    at = commit_one(&store, update(&key, at, &n.to_string())).await;
                }
                commit_one(&store, delete(&key, at)).await;
            })
        })
        .collect();
    let mut last = Revision(0);
    let mut values = std::collections::HashMap::new();
    for _ in 0..16 * 21 {
        let event = next(&mut watch).await;
        assert!(event.revision > last);
        last = event.revision;
        let expected = values.entry(event.object.key.clone()).or_insert(0);
        match event.kind {
            EventKind::Added => assert_eq!(*expected, 0),
            EventKind::Modified => assert_eq!(value(&event.object.json), expected.to_string()),
            EventKind::Deleted => assert_eq!(*expected, 20),
        }
        *expected += 1;
        if let Some(progress) = watch.progress() {
            assert!(progress >= last, "a bookmark never goes back");
        }
    }
    for writer in writers {
        writer.await.expect("written");
    }
    assert_eq!(watch.progress(), Some(last));
}
