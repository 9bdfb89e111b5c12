//! What shares one commit: the transactions, what they change, and the answers.

use std::sync::Arc;

use bytes::Bytes;
use redb::{ReadableTable as _, Table};

use super::{
    layout::{self, Head},
    writer::Reply,
};
use crate::{
    Change, Object, Revision, Write,
    engine::{Applied, EngineError, TransactError},
};

/// What shares one commit.
#[derive(Default)]
pub(super) struct Batch {
    pub transactions: Vec<Transaction>,
    pub states: Vec<(String, Bytes, Reply<(), EngineError>)>,
    pub bytes: usize,
}

pub(super) struct Transaction {
    pub writes: Vec<Write>,
    pub reply: Reply<Vec<Arc<Object>>, TransactError>,
    /// How many changes it made, or which precondition did not hold.
    pub outcome: Result<usize, crate::Key>,
}

/// The changes of a commit, and how far it came.
pub(super) struct Made {
    pub changes: Vec<Applied>,
    pub revision: Revision,
    pub floor: u64,
    pub checkpointed: u64,
}

impl Batch {
    pub fn made(&self) -> u64 {
        self.transactions
            .iter()
            .filter(|transaction| transaction.outcome.is_ok())
            .count() as u64
    }

    /// `objects` are those of all transactions, one after the other.
    pub fn answer(self, objects: Vec<Arc<Object>>) {
        let mut objects = objects.into_iter();
        for transaction in self.transactions {
            let answer = match transaction.outcome {
                Ok(count) => Ok(objects.by_ref().take(count).collect()),
                Err(key) => Err(TransactError::Conflict(key)),
            };
            let _ = transaction.reply.send(answer);
        }
        for (_, _, reply) in self.states {
            let _ = reply.send(Ok(()));
        }
    }

    pub fn fail(self, error: &EngineError) {
        for transaction in self.transactions {
            let _ = transaction.reply.send(Err(error.clone().into()));
        }
        for (_, _, reply) in self.states {
            let _ = reply.send(Err(error.clone()));
        }
    }
}

pub(super) type ObjectsTable<'a> = Table<'a, &'static [u8], &'static [u8]>;
pub(super) type DeletionsTable<'a> = Table<'a, u64, &'static [u8]>;

/// Makes one transaction, or says whose precondition does not hold.
pub(super) fn apply(
    objects: &mut ObjectsTable<'_>,
    deletions: &mut DeletionsTable<'_>,
    writes: Vec<Write>,
    made: &mut Made,
) -> Result<Result<usize, crate::Key>, redb::Error> {
    let mut heads = Vec::with_capacity(writes.len());
    for write in &writes {
        let key = layout::encode_key(&write.key);
        let head = head(objects, &key)?;
        if !write.may_follow(head.map(|head| head.revision)) {
            return Ok(Err(write.key.clone()));
        }
        heads.push((key, head));
    }
    let count = writes.len();
    for (write, (encoded, head)) in writes.into_iter().zip(heads) {
        made.revision = made.revision.next();
        let revision = made.revision;
        let change = match write.change {
            Change::Put(body) => {
                let created = head.map_or(revision, |head| head.created);
                let object = Object::assemble(write.key, body, revision, created);
                put(objects, &encoded, &object)?;
                Applied::Put(Arc::new(object))
            }
            Change::Delete => {
                if let Some(last) = objects.remove(encoded.as_slice())? {
                    let deletion = layout::encode_deletion(&encoded, last.value(), revision);
                    deletions.insert(revision.0, deletion.as_slice())?;
                }
                Applied::Delete {
                    key: write.key,
                    revision,
                }
            }
        };
        made.changes.push(change);
    }
    Ok(Ok(count))
}

pub(super) fn head(objects: &ObjectsTable<'_>, key: &[u8]) -> Result<Option<Head>, redb::Error> {
    let Some(value) = objects.get(key)? else {
        return Ok(None);
    };
    layout::decode_head(value.value())
        .map(Some)
        .map_err(|error| redb::Error::Corrupted(error.to_string()))
}

pub(super) fn put(
    objects: &mut ObjectsTable<'_>,
    key: &[u8],
    object: &Object,
) -> Result<(), redb::Error> {
    let mut value = objects.insert_reserve(key, layout::object_len(object))?;
    layout::encode_object(object, value.as_mut());
    Ok(())
}
