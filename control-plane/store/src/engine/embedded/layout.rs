//! What is in the file, and how it is encoded. All numbers are little-endian.
//!
//! | table | key | value |
//! |---|---|---|
//! | `meta` | name | `magic`, `format` (u32), `revision` (u64), `floor` (u64) |
//! | `objects` | resource, 0, path | created (u64), revision (u64), offset of the revision (u32), JSON without it |
//! | `deletions` | revision | length of the key (u32), key, then as in `objects` |
//! | `state` | name | a blob |
//!
//! There is no log of changes: a live object knows the revision of its last change, so what changed since a revision
//! can be told from `objects` and `deletions`. A write thus touches two leaves: the object's, and that of `meta`,
//! which a whole group commit shares.

use std::sync::Arc;

use redb::TableDefinition;

use crate::{Body, Key, Object, Resource, Revision, StoreOptions};

pub(super) const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
pub(super) const OBJECTS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("objects");
pub(super) const DELETIONS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("deletions");
pub(super) const STATE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("state");

/// The version of this layout.
pub const FORMAT: u32 = 1;
pub(super) const MAGIC: &[u8] = b"evenkeel store";

const HEADER: usize = 8 + 8 + 4;

/// A value that cannot be one.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Malformed(pub &'static str);

/// What a write needs to know of the object that stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub created: Revision,
    pub revision: Revision,
}

pub(super) fn encode_key(key: &Key) -> Vec<u8> {
    let resource = key.resource.as_str().as_bytes();
    let mut bytes = Vec::with_capacity(resource.len() + 1 + key.path.len());
    bytes.extend_from_slice(resource);
    bytes.push(0);
    bytes.extend_from_slice(key.path.as_bytes());
    bytes
}

pub(super) fn decode_key(bytes: &[u8]) -> Result<Key, Malformed> {
    let text = std::str::from_utf8(bytes).map_err(|_| Malformed("a key is not text"))?;
    let (resource, path) = text
        .split_once('\0')
        .ok_or(Malformed("a key has no resource"))?;
    let (group, plural) = resource
        .split_once('/')
        .ok_or(Malformed("a resource has no group"))?;
    Ok(Key {
        resource: Resource::new(group, plural),
        path: path.into(),
    })
}

/// How long the value of an object is.
pub(super) fn object_len(object: &Object) -> usize {
    HEADER + object.body().map(<[u8]>::len).iter().sum::<usize>()
}

/// Writes the value of an object into a buffer of [`object_len`] bytes.
pub(super) fn encode_object(object: &Object, out: &mut [u8]) {
    let [before, behind] = object.body();
    out[..8].copy_from_slice(&object.created.0.to_le_bytes());
    out[8..16].copy_from_slice(&object.revision.0.to_le_bytes());
    // Bodies are far smaller than 4 GiB: redb takes none above 3 GiB.
    let version_at = u32::try_from(before.len()).unwrap_or(u32::MAX);
    out[16..HEADER].copy_from_slice(&version_at.to_le_bytes());
    out[HEADER..HEADER + before.len()].copy_from_slice(before);
    out[HEADER + before.len()..].copy_from_slice(behind);
}

pub(super) fn decode_head(value: &[u8]) -> Result<Head, Malformed> {
    Ok(Head {
        created: Revision(number(value, 0)?),
        revision: Revision(number(value, 8)?),
    })
}

pub(super) fn decode_object(
    key: Key,
    value: &[u8],
    options: &StoreOptions,
) -> Result<Object, Malformed> {
    let head = decode_head(value)?;
    let version_at = value
        .get(16..HEADER)
        .and_then(|bytes| bytes.try_into().ok())
        .map(u32::from_le_bytes)
        .ok_or(Malformed("an object is cut off"))? as usize;
    let json = &value[HEADER..];
    // The brace of `metadata` is before the revision, and a quote behind it.
    if version_at == 0 || json.get(version_at - 1) != Some(&b'{') {
        return Err(Malformed("the place of an object's revision is wrong"));
    }
    let attributes = (options.attributes)(&key.resource, json);
    let body = Body {
        json: json.to_vec(),
        version_at,
        attributes,
    };
    Ok(Object::assemble(key, body, head.revision, head.created))
}

/// A deletion: the key, and the last state with the deletion's revision.
pub(super) fn encode_deletion(key: &[u8], value: &[u8], revision: Revision) -> Vec<u8> {
    let key_len = u32::try_from(key.len()).unwrap_or(u32::MAX);
    let mut bytes = Vec::with_capacity(4 + key.len() + value.len());
    bytes.extend_from_slice(&key_len.to_le_bytes());
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(value);
    let at = 4 + key.len() + 8;
    if let Some(slot) = bytes.get_mut(at..at + 8) {
        slot.copy_from_slice(&revision.0.to_le_bytes());
    }
    bytes
}

pub(super) fn decode_deletion(
    value: &[u8],
    options: &StoreOptions,
) -> Result<Arc<Object>, Malformed> {
    const CUT: Malformed = Malformed("a deletion is cut off");
    let (len, rest) = value.split_first_chunk::<4>().ok_or(CUT)?;
    let (key, value) = rest
        .split_at_checked(u32::from_le_bytes(*len) as usize)
        .ok_or(CUT)?;
    Ok(Arc::new(decode_object(decode_key(key)?, value, options)?))
}

pub(super) fn number(value: &[u8], at: usize) -> Result<u64, Malformed> {
    value
        .get(at..at + 8)
        .and_then(|bytes| bytes.try_into().ok())
        .map(u64::from_le_bytes)
        .ok_or(Malformed("a number is cut off"))
}
