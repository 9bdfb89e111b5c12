//! Places that no constraint tells apart, as long as they have room.

use std::collections::HashMap;

use super::{
    dimension::{NOWHERE, Position},
    layout::Laid,
};

/// The classes of a batch, as flat tables. A class is an index; `members` and their order are what breaks ties.
#[derive(Debug, Default)]
pub(super) struct Classes {
    dims: usize,
    /// By class and dimension.
    positions: Vec<Position>,
    /// By class.
    pub scored: Vec<bool>,
    /// Turns, class by class, each in ascending order.
    members: Vec<u32>,
    /// By class: its next member, and where its members end.
    next: Vec<u32>,
    end: Vec<u32>,
}

/// A place's class goes by these, dimension by dimension.
fn key(position: Position) -> u64 {
    u64::from(position.domain) << 2 | u64::from(position.reads) << 1 | u64::from(position.adds)
}

impl Classes {
    /// Sorts the places with room (in turn: `order`) into classes.
    pub fn new(laid: &Laid, order: &[u32], room: &[u64]) -> Self {
        let dims = laid.dims.len();
        let turns: Vec<u32> = (0..order.len())
            .filter(|&turn| {
                let place = order[turn] as usize;
                room[place] > 0 && laid.candidate[place]
            })
            .map(|turn| u32::try_from(turn).unwrap_or(NOWHERE))
            .collect();
        let hard = laid
            .dims
            .iter()
            .take_while(|dim| dim.ceiling().is_some())
            .count();
        // Soft dimensions are nothing to a place that is not scored.
        let position = |dim: usize, place: usize| {
            if dim >= hard && !laid.scored[place] {
                Position {
                    domain: NOWHERE,
                    reads: false,
                    adds: false,
                }
            } else {
                laid.positions[dim][place]
            }
        };
        let mut class_of = vec![0_u32; turns.len()];
        let mut count = refine(&mut class_of, 1, 2, |at| {
            u64::from(laid.scored[order[turns[at] as usize] as usize])
        });
        for dim in 0..dims {
            let kinds = (laid.dims[dim].domains() as u64) << 2;
            count = refine(&mut class_of, count, kinds, |at| {
                key(position(dim, order[turns[at] as usize] as usize))
            });
        }
        let mut classes = Self {
            dims,
            positions: Vec::with_capacity(count * dims),
            scored: Vec::with_capacity(count),
            members: vec![0; turns.len()],
            next: vec![0; count],
            end: vec![0; count],
        };
        for &class in &class_of {
            classes.end[class as usize] += 1;
        }
        let mut start = 0;
        for class in 0..count {
            classes.next[class] = start;
            start += classes.end[class];
            classes.end[class] = classes.next[class];
        }
        for (at, &class) in class_of.iter().enumerate() {
            let place = order[turns[at] as usize] as usize;
            let end = &mut classes.end[class as usize];
            if *end == classes.next[class as usize] && class as usize == classes.scored.len() {
                classes
                    .positions
                    .extend((0..dims).map(|dim| position(dim, place)));
                classes.scored.push(laid.scored[place]);
            }
            classes.members[*end as usize] = turns[at];
            *end += 1;
        }
        classes
    }

    pub fn len(&self) -> usize {
        self.next.len()
    }

    /// What the class is to a dimension.
    pub fn position(&self, class: u32, dim: usize) -> Position {
        self.positions[class as usize * self.dims + dim]
    }

    /// What it is to all of them.
    pub fn positions(&self, class: u32) -> &[Position] {
        &self.positions[class as usize * self.dims..][..self.dims]
    }

    /// The turn of its next member.
    pub fn next(&self, class: u32) -> Option<u32> {
        let class = class as usize;
        (self.next[class] < self.end[class]).then(|| self.members[self.next[class] as usize])
    }

    /// How many members have room.
    pub fn left(&self, class: u32) -> usize {
        let class = class as usize;
        (self.end[class] - self.next[class]) as usize
    }

    /// Its next member has no room any more.
    pub fn advance(&mut self, class: u32) {
        self.next[class as usize] += 1;
    }
}

/// Splits classes by one more property, of which there are about `kinds`. Classes stay numbered by first sight.
fn refine(class_of: &mut [u32], count: usize, kinds: u64, kind: impl Fn(usize) -> u64) -> usize {
    let mut classes = 0;
    let mut fresh = || {
        classes += 1;
        classes - 1
    };
    let table = usize::try_from(kinds)
        .ok()
        .and_then(|kinds| count.checked_mul(kinds))
        .filter(|&size| size <= 16 * class_of.len() + 1024);
    if let Some(size) = table {
        // The last entries are for what is in no domain.
        let mut known = vec![NOWHERE; size + count];
        for (at, of) in class_of.iter_mut().enumerate() {
            let class = *of as usize;
            let kind = kind(at);
            let entry = if kind < kinds {
                // Fits: it is less than `kinds`, which is a usize.
                class * usize::try_from(kinds).unwrap_or(0) + usize::try_from(kind).unwrap_or(0)
            } else {
                size + class
            };
            if known[entry] == NOWHERE {
                known[entry] = fresh();
            }
            *of = known[entry];
        }
    } else {
        let mut known = HashMap::new();
        for (at, of) in class_of.iter_mut().enumerate() {
            let key = (*of, kind(at));
            *of = *known.entry(key).or_insert_with(&mut fresh);
        }
    }
    classes as usize
}
