//! Lists of whole objects: the stored bytes, copied and not encoded again.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use evenkeel_store::Object;

use crate::{kind::Kind, object::encode, verb::list::Page};

/// How many bytes go out at once.
const CHUNK: usize = 64 * 1024;

/// The bytes of a list, in pieces that are made when they are asked for: a list that a slow client reads holds
/// references to the objects, not a copy of them all.
pub(crate) struct ListBytes {
    head: Option<Bytes>,
    tail: Option<Bytes>,
    objects: std::vec::IntoIter<Arc<Object>>,
    first: bool,
    /// `Some`: items of a custom kind, which carry version and kind, in this version. Items of a built-in kind do not.
    item_head: Option<String>,
    length: u64,
}

impl ListBytes {
    pub fn new(page: Page, kind: &Kind) -> Self {
        let (api_version, list_kind) = (kind.api_version(), kind.kind);
        let revision = page.revision;
        let (head, tail) = if kind.builtin {
            let metadata = super::list_metadata(&page);
            (
                format!(
                    "{{\"kind\":\"{list_kind}List\",\"apiVersion\":\"{api_version}\",\"metadata\":{metadata},\"items\":["
                ),
                "]}".to_owned(),
            )
        } else {
            let remaining = page.remaining.map_or_else(String::new, |remaining| {
                format!("\"remainingItemCount\":{remaining},")
            });
            (
                format!("{{\"apiVersion\":\"{api_version}\",\"items\":["),
                format!(
                    "],\"kind\":\"{list_kind}List\",\"metadata\":{{\"continue\":\"{}\",{remaining}\"resourceVersion\":\"{revision}\"}}}}",
                    page.continue_
                ),
            )
        };
        let item_head = (!kind.builtin).then(|| encode::head(kind));
        let items = page
            .objects
            .iter()
            .map(|object| item_length(object, item_head.as_deref()) as u64)
            .sum::<u64>();
        let commas = page.objects.len().saturating_sub(1) as u64;
        Self {
            length: head.len() as u64 + tail.len() as u64 + items + commas,
            head: Some(head.into()),
            tail: Some(tail.into()),
            objects: page.objects.into_iter(),
            first: true,
            item_head,
        }
    }

    /// How many bytes are left.
    pub fn remaining(&self) -> u64 {
        self.length
    }

    /// The next piece.
    pub fn next_chunk(&mut self) -> Option<Bytes> {
        let mut chunk = BytesMut::new();
        if let Some(head) = self.head.take() {
            chunk.put_slice(&head);
        }
        while chunk.len() < CHUNK {
            let Some(object) = self.objects.next() else {
                break;
            };
            chunk.reserve(object.json.len() + 1);
            if !self.first {
                chunk.put_u8(b',');
            }
            self.first = false;
            put_item(&mut chunk, &object, self.item_head.as_deref());
        }
        if self.objects.as_slice().is_empty()
            && let Some(tail) = self.tail.take()
        {
            chunk.put_slice(&tail);
        }
        self.length = self.length.saturating_sub(chunk.len() as u64);
        (!chunk.is_empty()).then(|| chunk.freeze())
    }

    /// All that is left, at once.
    pub fn concat(mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(chunk) = self.next_chunk() {
            all.extend_from_slice(&chunk);
        }
        all
    }
}

fn item_length(object: &Object, head: Option<&str>) -> usize {
    match head {
        Some(head) if object.json.starts_with(head.as_bytes()) => object.json.len(),
        Some(head) => head.len() + encode::tail(object).len(),
        None => 1 + encode::tail(object).len(),
    }
}

fn put_item(chunk: &mut BytesMut, object: &Object, head: Option<&str>) {
    match head {
        Some(head) if object.json.starts_with(head.as_bytes()) => chunk.put_slice(&object.json),
        Some(head) => {
            chunk.put_slice(head.as_bytes());
            chunk.put_slice(encode::tail(object));
        }
        None => {
            chunk.put_u8(b'{');
            chunk.put_slice(encode::tail(object));
        }
    }
}
