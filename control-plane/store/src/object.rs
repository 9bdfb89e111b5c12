//! Encoded objects.

use std::{fmt, sync::Arc};

use bytes::Bytes;

use crate::Key;

/// The place of a write in the one order of all durable writes. A `resourceVersion` is its decimal form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

impl Revision {
    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What selectors look at, taken out of an object once, when it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Sorted by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// Selectable fields beyond name and namespace, sorted by path (`status.phase`).
    pub fields: Box<[(Box<str>, Box<str>)]>,
}

/// An object as its writer encoded it: JSON without `metadata.resourceVersion`, which only the commit knows.
#[derive(Clone, Debug)]
pub struct Body {
    /// One JSON object.
    pub json: Vec<u8>,
    /// Offset just behind the opening brace of `metadata`, where `"resourceVersion":"N",` goes. `metadata` is never
    /// empty: it holds a name.
    pub version_at: usize,
    pub attributes: Attributes,
}

impl Body {
    /// Whether the revision can be put in: what is wrong here would be found only when the store is opened again.
    pub(crate) fn is_sound(&self) -> bool {
        let before = self.version_at.checked_sub(1);
        before.and_then(|at| self.json.get(at)) == Some(&b'{')
            && self.json.get(self.version_at).is_some()
    }
}

/// A stored object: immutable, shared, with its revision in its bytes.
#[derive(Clone)]
pub struct Object {
    pub key: Key,
    /// JSON, with `metadata.resourceVersion`. Goes on the wire as it is.
    pub json: Bytes,
    pub revision: Revision,
    /// The revision of the write that created it.
    pub created: Revision,
    pub attributes: Arc<Attributes>,
    pub(crate) version_at: usize,
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}@{}", self.key, self.revision)
    }
}

impl Object {
    /// Puts the revision of the commit into an encoded object.
    pub fn assemble(key: Key, body: Body, revision: Revision, created: Revision) -> Self {
        let version = format!("\"resourceVersion\":\"{revision}\",");
        let mut json = Vec::with_capacity(body.json.len() + version.len());
        json.extend_from_slice(&body.json[..body.version_at]);
        json.extend_from_slice(version.as_bytes());
        json.extend_from_slice(&body.json[body.version_at..]);
        Self {
            key,
            json: json.into(),
            revision,
            created,
            attributes: Arc::new(body.attributes),
            version_at: body.version_at,
        }
    }

    /// The same content under another revision: what a deletion reports, and what a watcher sees of an object that
    /// left its selection.
    #[must_use]
    pub fn at(&self, revision: Revision) -> Self {
        let body = Body {
            json: self.body().concat(),
            version_at: self.version_at,
            attributes: Attributes::default(),
        };
        let mut object = Self::assemble(self.key.clone(), body, revision, self.created);
        object.attributes = Arc::clone(&self.attributes);
        object
    }

    /// The bytes before and behind the revision: what an engine keeps.
    pub fn body(&self) -> [&[u8]; 2] {
        let version = "\"resourceVersion\":\"\",".len() + decimal_digits(self.revision.0);
        [
            &self.json[..self.version_at],
            &self.json[self.version_at + version..],
        ]
    }
}

fn decimal_digits(n: u64) -> usize {
    n.checked_ilog10().map_or(1, |digits| digits as usize + 1)
}
