//! Limits and intervals.

use std::{sync::Arc, time::Duration};

use crate::{Attributes, Resource};

/// Takes the attributes out of the encoded JSON of an object: used for what is loaded from disk.
pub type AttributesOf = Arc<dyn Fn(&Resource, &[u8]) -> Attributes + Send + Sync>;

/// How much a store keeps and how much it lets wait.
#[derive(Clone)]
pub struct StoreOptions {
    pub attributes: AttributesOf,
    /// Bytes of object bodies in the ring of recent events: how far back lists at an older revision reach. Default
    /// 32 MiB.
    pub ring_bytes: usize,
    /// Events in the ring. Default 16,384.
    pub ring_events: usize,
    /// Deletions that are remembered, in memory and on disk: how far back a watch may start. Default 8,192.
    pub deletions: usize,
    /// Bytes of the bodies of remembered deletions. Default 8 MiB.
    pub deletion_bytes: usize,
    /// Events that may wait for one watcher before it is told [`Lagged`](crate::Lagged). Default 8,192.
    pub watcher_events: usize,
    /// Transactions that may wait for the writer; one more is [`Busy`](crate::CommitError::Busy). Default 4,096.
    pub max_pending_writes: usize,
    /// Bytes of bodies that may wait for the writer. Default 64 MiB.
    pub max_pending_bytes: usize,
    /// Transactions that share one fsync. Default 1,024.
    pub max_batch_writes: usize,
    /// Bytes of bodies that share one fsync, beyond the first transaction. Default 8 MiB.
    pub max_batch_bytes: usize,
    /// How often volatile writes are put on disk: at most so much of them is lost in a crash. Default 30 s.
    pub checkpoint_interval: Duration,
    /// Volatile objects that are put on disk with one commit, so that a checkpoint never holds up the writer.
    /// Default 500.
    pub checkpoint_chunk: usize,
    /// Pages that the embedded engine caches, in bytes. Reads come from memory anyway, so this serves the writer
    /// alone. Default 8 MiB.
    pub engine_cache_bytes: usize,
}

impl StoreOptions {
    /// The defaults.
    pub fn new(attributes: AttributesOf) -> Self {
        Self {
            attributes,
            ring_bytes: 32 << 20,
            ring_events: 16_384,
            deletions: 8_192,
            deletion_bytes: 8 << 20,
            watcher_events: 8_192,
            max_pending_writes: 4_096,
            max_pending_bytes: 64 << 20,
            max_batch_writes: 1_024,
            max_batch_bytes: 8 << 20,
            checkpoint_interval: Duration::from_secs(30),
            checkpoint_chunk: 500,
            engine_cache_bytes: 8 << 20,
        }
    }

    /// The defaults, for objects that have no attributes.
    pub fn without_attributes() -> Self {
        Self::new(Arc::new(|_, _| Attributes::default()))
    }
}
