//! The counts that a batch keeps for each constraint.

use std::collections::BTreeMap;

use super::{Direction, recurrence::Recurrence};

/// A class is in no domain of a dimension.
pub(super) const NOWHERE: u32 = u32::MAX;

/// What a dimension decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Whether a place passes.
    Hard { max_skew: i64, own: i64 },
    /// How well it scores. `per_node`: every place is a domain of its own, and the weight goes by their number.
    Soft { max_skew: i64, per_node: bool },
}

/// What a place is to a dimension.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    /// Its domain. Places without the key have one as well; it is that of the empty value, if there is such a value.
    pub domain: u32,
    /// Whether the count of the domain matters to the place.
    pub reads: bool,
    /// Whether a replica on the place is counted.
    pub adds: bool,
}

/// One constraint in the course of a batch.
///
/// A domain is *live* as long as a place with room reads its count. Counts of live domains are relative to `base`, so
/// that all of them can be moved at once; a domain that is live no more keeps its count for good.
#[derive(Debug)]
pub(super) struct Dimension {
    pub role: Role,
    /// By domain.
    pub(super) counts: Vec<i64>,
    base: i64,
    /// By domain: whether it is in the table that the minimum is taken of.
    pub(super) in_table: Vec<bool>,
    /// Whether the table has as many domains as are asked for. If not, the minimum is 0.
    pub(super) enough: bool,
    /// How many live domains of the table have each count.
    live: BTreeMap<i64, u32>,
    /// The least count of the other domains of the table.
    settled: Option<i64>,
    /// By domain: classes that read it.
    readers: Vec<u32>,
    pub recurrence: Recurrence,
}

impl Dimension {
    pub fn new(role: Role, domains: usize) -> Self {
        Self {
            role,
            counts: vec![0; domains],
            base: 0,
            in_table: vec![false; domains],
            enough: true,
            live: BTreeMap::new(),
            settled: None,
            readers: vec![0; domains],
            recurrence: Recurrence::new(domains),
        }
    }

    /// Takes up the classes that read it, each with its domain. To be called once.
    pub fn start(&mut self, readers: impl Iterator<Item = u32>) {
        for domain in readers {
            self.readers[domain as usize] += 1;
        }
        for domain in 0..self.counts.len() {
            let count = self.counts[domain];
            let live = self.readers[domain] > 0;
            if live {
                self.recurrence.join();
            }
            if self.in_table[domain] {
                if live {
                    *self.live.entry(count).or_default() += 1;
                } else {
                    self.settled = Some(self.settled.map_or(count, |least| least.min(count)));
                }
            }
        }
        self.recurrence.restart();
    }

    pub fn domains(&self) -> usize {
        self.counts.len()
    }

    /// The count of a live domain, relative to the base.
    pub fn level(&self, domain: u32) -> i64 {
        self.counts[domain as usize]
    }

    /// What is to be added to a level for the true count.
    pub fn base(&self) -> i64 {
        self.base
    }

    /// The least true count among live domains of the table.
    pub fn live_minimum(&self) -> Option<i64> {
        self.live.keys().next().map(|least| least + self.base)
    }

    /// The least true count among the domains that change no more.
    pub fn settled_minimum(&self) -> Option<i64> {
        self.settled
    }

    /// Whether the minimum is that of the table.
    pub fn has_minimum(&self) -> bool {
        self.enough
    }

    /// The count that skew is measured from.
    pub fn minimum(&self) -> i64 {
        if !self.enough {
            return 0;
        }
        match (self.live_minimum(), self.settled) {
            (Some(live), Some(settled)) => live.min(settled),
            (one, other) => one.or(other).unwrap_or(0),
        }
    }

    /// Whether this domain alone holds the minimum, so that one more in it raises it.
    pub fn is_least_alone(&self, domain: u32) -> bool {
        let level = self.counts[domain as usize];
        self.enough
            && self.in_table[domain as usize]
            && level + self.base == self.minimum()
            && self.live.get(&level) == Some(&1)
            && self
                .settled
                .is_none_or(|settled| settled > level + self.base)
    }

    /// Whether the domain counts for the minimum.
    pub fn is_in_table(&self, domain: u32) -> bool {
        self.in_table[domain as usize]
    }

    /// The largest level that a place of a hard dimension may have and pass; `None` of a soft one.
    pub fn ceiling(&self) -> Option<i64> {
        let Role::Hard { max_skew, own } = self.role else {
            return None;
        };
        Some(max_skew + self.minimum() - own - self.base)
    }

    /// Counts replicas in a domain, or takes them off.
    pub fn count(&mut self, domain: u32, replicas: i64, direction: Direction) {
        let change = match direction {
            Direction::Add => replicas,
            Direction::Remove => -replicas,
        };
        let at = domain as usize;
        let before = self.counts[at];
        self.counts[at] += change;
        if self.readers[at] == 0 {
            return;
        }
        if self.in_table[at] {
            self.leave(before);
            *self.live.entry(before + change).or_default() += 1;
        }
        self.recurrence.moved(domain, replicas);
    }

    fn leave(&mut self, level: i64) {
        if let Some(domains) = self.live.get_mut(&level) {
            *domains -= 1;
            if *domains == 0 {
                self.live.remove(&level);
            }
        }
    }

    /// A class that read the domain has no room any more.
    pub fn lose_reader(&mut self, domain: u32) {
        let at = domain as usize;
        self.readers[at] -= 1;
        if self.readers[at] > 0 {
            return;
        }
        let level = self.counts[at];
        self.counts[at] += self.base;
        self.recurrence.part();
        if self.in_table[at] {
            self.leave(level);
            let count = level + self.base;
            self.settled = Some(self.settled.map_or(count, |least| least.min(count)));
        }
    }

    /// Moves the counts of all live domains.
    pub fn shift(&mut self, change: i64) {
        self.base += change;
    }

    /// The live domains with their levels.
    pub fn live_domains(&self) -> impl Iterator<Item = (u32, i64)> {
        (0..self.counts.len())
            .filter(|&domain| self.readers[domain] > 0)
            .map(|domain| {
                (
                    u32::try_from(domain).unwrap_or(NOWHERE),
                    self.counts[domain],
                )
            })
    }
}
