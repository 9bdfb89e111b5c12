//! Figures for metrics and tests.

/// What a store did since it was opened, and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Durable transactions made.
    pub writes: u64,
    /// Group commits that made them; `writes / commits` is how well they share.
    pub commits: u64,
    /// Times that the operating system was asked to put data on disk.
    pub fsyncs: u64,
    /// Bytes handed to the operating system.
    pub written_bytes: u64,
    /// Transactions that wait for the writer.
    pub pending_writes: u64,
    /// Renewals: held in memory, on disk by the next checkpoint.
    pub volatile_writes: u64,
    /// Renewed objects that checkpoints put on disk.
    pub checkpointed: u64,
    /// Durable changes, each told to whoever watches.
    pub events: u64,
    pub objects: usize,
    /// Of all objects as they are now.
    pub bytes: usize,
    pub ring_events: usize,
    /// Of the bodies that the ring of recent events may keep alive.
    pub ring_bytes: usize,
    pub watchers: usize,
}
