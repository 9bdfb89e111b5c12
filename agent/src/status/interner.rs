//! Values that repeat, kept once and named by a small number.

use std::{collections::HashMap, hash::Hash, sync::Arc};

/// Counts the uses of each value and forgets those without any: what is kept is bounded by what is in use.
#[derive(Debug)]
pub struct Interner<T: ?Sized> {
    ids: HashMap<Arc<T>, u32>,
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot<T: ?Sized> {
    value: Option<Arc<T>>,
    uses: u32,
}

impl<T: ?Sized> Default for Interner<T> {
    fn default() -> Self {
        Self {
            ids: HashMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T: ?Sized + Eq + Hash> Interner<T> {
    /// One more use of this value. Pair with [`Interner::release`].
    pub fn hold<V>(&mut self, value: V) -> u32
    where
        V: AsRef<T> + Into<Arc<T>>,
    {
        if let Some(id) = self.ids.get(value.as_ref()) {
            self.slots[*id as usize].uses += 1;
            return *id;
        }
        let value: Arc<T> = value.into();
        let slot = Slot {
            value: Some(Arc::clone(&value)),
            uses: 1,
        };
        let id = if let Some(id) = self.free.pop() {
            self.slots[id as usize] = slot;
            id
        } else {
            self.slots.push(slot);
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        };
        self.ids.insert(value, id);
        id
    }

    /// One use less.
    pub fn release(&mut self, id: u32) {
        let Some(slot) = self.slots.get_mut(id as usize) else {
            return;
        };
        slot.uses = slot.uses.saturating_sub(1);
        if slot.uses == 0
            && let Some(value) = slot.value.take()
        {
            self.ids.remove(&*value);
            self.free.push(id);
        }
    }

    pub fn get(&self, id: u32) -> Option<&T> {
        self.slots.get(id as usize)?.value.as_deref()
    }

    /// The number of a value that is in use.
    pub fn find(&self, value: &T) -> Option<u32> {
        self.ids.get(value).copied()
    }

    /// How many values are in use.
    pub fn len(&self) -> usize {
        self.ids.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// An id names its value as long as it is in use, and nothing is kept that is not.
        #[test]
        fn ids_name_their_values(steps in prop::collection::vec((0_u8..6, any::<bool>()), 0..80)) {
            let mut interner = Interner::<str>::default();
            let mut held: Vec<(u8, u32)> = Vec::new();
            for (value, release) in steps {
                if release {
                    if let Some(position) = held.iter().position(|(held, _)| *held == value) {
                        interner.release(held.swap_remove(position).1);
                    }
                } else {
                    held.push((value, interner.hold(value.to_string())));
                }
                for (value, id) in &held {
                    let text = value.to_string();
                    prop_assert_eq!(interner.get(*id), Some(text.as_str()));
                    prop_assert_eq!(interner.find(&text), Some(*id));
                }
                let mut distinct: Vec<_> = held.iter().map(|(value, _)| *value).collect();
                distinct.sort_unstable();
                distinct.dedup();
                prop_assert_eq!(interner.len(), distinct.len());
            }
        }
    }
}
