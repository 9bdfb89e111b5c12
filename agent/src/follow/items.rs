//! The items of a Kubernetes list, one at a time, from bytes as they arrive.
//!
//! Only the structure is looked at: strings, escapes and brackets. Whether an item is good JSON is for its reader.

/// Collects bytes and gives out whole items. What is not in `items` is kept as the envelope.
pub struct Items {
    largest: usize,
    /// Bytes of the current item that is not whole yet.
    item: Vec<u8>,
    /// Whole items not taken yet: their ends in `ready`.
    ready: Vec<u8>,
    ends: std::collections::VecDeque<usize>,
    taken: usize,
    envelope: Vec<u8>,
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The key that was read last at depth 1.
    key: Vec<u8>,
    reading_key: bool,
    expect_key: bool,
    listing: bool,
}

impl Items {
    pub fn new(largest: usize) -> Self {
        Self {
            largest,
            item: Vec::new(),
            ready: Vec::new(),
            ends: std::collections::VecDeque::new(),
            taken: 0,
            envelope: Vec::new(),
            depth: 0,
            in_string: false,
            escaped: false,
            key: Vec::new(),
            reading_key: false,
            expect_key: false,
            listing: false,
        }
    }

    /// Fails when an item, or what is around them, is too long.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), String> {
        if self.ends.is_empty() {
            self.ready.clear();
            self.taken = 0;
        }
        for byte in bytes {
            self.step(*byte);
            if self.item.len() > self.largest || self.envelope.len() > self.largest {
                return Err(format!("more than {} bytes in one item", self.largest));
            }
        }
        Ok(())
    }

    /// The next whole item.
    pub fn next(&mut self) -> Option<&[u8]> {
        let end = self.ends.pop_front()?;
        let start = std::mem::replace(&mut self.taken, end);
        Some(&self.ready[start..end])
    }

    /// The list without its items. Complete after the last byte.
    pub fn envelope(&self) -> &[u8] {
        &self.envelope
    }

    /// Inside one of the items, as opposed to between them.
    fn within_item(&self) -> bool {
        self.listing && self.depth > 2
    }

    fn step(&mut self, byte: u8) {
        let inside = self.within_item();
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => {
                    self.in_string = false;
                    self.reading_key = false;
                }
                _ => {}
            }
            if self.reading_key && self.key.len() < 16 {
                self.key.push(byte);
            }
            self.keep(byte, inside);
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if self.depth == 1 && self.expect_key {
                    self.reading_key = true;
                    self.key.clear();
                }
                self.keep(byte, inside);
            }
            b'{' | b'[' => {
                self.depth += 1;
                if self.depth == 1 {
                    self.expect_key = true;
                }
                if self.depth == 2 && byte == b'[' && self.key == b"items" {
                    self.listing = true;
                }
                let inside = self.within_item();
                self.keep(byte, inside);
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.keep(byte, inside);
                if inside && self.depth == 2 {
                    self.ready.append(&mut self.item);
                    self.ends.push_back(self.ready.len());
                }
                if self.depth < 2 {
                    self.listing = false;
                }
            }
            b':' | b',' => {
                if self.depth == 1 {
                    self.expect_key = byte == b',';
                }
                // The commas between the items go with the items.
                if !(self.listing && self.depth == 2) {
                    self.keep(byte, inside);
                }
            }
            _ => self.keep(byte, inside),
        }
    }

    fn keep(&mut self, byte: u8, inside: bool) {
        if inside {
            self.item.push(byte);
        } else {
            self.envelope.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn run(text: &[u8], chunk: usize) -> (Vec<Value>, Value) {
        let mut items = Items::new(1 << 20);
        let mut found = Vec::new();
        for bytes in text.chunks(chunk) {
            items.push(bytes).unwrap();
            while let Some(item) = items.next() {
                found.push(serde_json::from_slice(item).unwrap());
            }
        }
        let envelope = serde_json::from_slice(items.envelope()).unwrap();
        (found, envelope)
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i32>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            r#"[\\"\[\]{}:,items]{0,12}"#.prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(
                    (
                        prop_oneof![Just("items".to_owned()), any::<String>()],
                        inner
                    ),
                    0..4
                )
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Items come out as they went in, whatever they hold, wherever the list has them and however the bytes arrive.
        #[test]
        fn items_come_out_as_they_went_in(
            objects in prop::collection::vec(prop::collection::btree_map(any::<String>(), value(), 0..4), 0..6),
            other in value(),
            first in any::<bool>(),
            pretty in any::<bool>(),
            chunk in 1_usize..40,
        ) {
            let objects: Vec<Value> = objects
                .into_iter()
                .map(|map| Value::Object(map.into_iter().collect()))
                .collect();
            let encode = |value: &Value| if pretty {
                serde_json::to_string_pretty(value).unwrap()
            } else {
                value.to_string()
            };
            let list = encode(&Value::from(objects.clone()));
            let other_text = encode(&other);
            let text = if first {
                format!(r#"{{"items":{list},"metadata":{other_text}}}"#)
            } else {
                format!(r#"{{"kind":"items","metadata":{other_text}, "items" : {list}}}"#)
            };
            let (found, envelope) = run(text.as_bytes(), chunk);
            prop_assert_eq!(found, objects);
            prop_assert_eq!(&envelope["items"], &json!([]));
            prop_assert_eq!(&envelope["metadata"], &other);
        }
    }

    #[test]
    fn a_list_without_items_is_empty() {
        let (found, envelope) = run(br#"{"metadata":{"resourceVersion":"5"},"items":null}"#, 7);
        assert_eq!(found, Vec::<Value>::new());
        assert_eq!(envelope["metadata"]["resourceVersion"], "5");
    }

    #[test]
    fn an_item_without_end_is_given_up() {
        let mut items = Items::new(32);
        items.push(br#"{"items":[{"a":""#).unwrap();
        assert!(items.push(&[b'x'; 64]).is_err());
    }
}
