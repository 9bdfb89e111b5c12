//! Classes sorted by what decides at the moment.
//!
//! A dimension whose domains hold many classes each (zones) is *coarse*: classes are grouped by their domains, and a
//! replica changes a count of the group. One whose domains hold few (clusters) is *fine*: within a group, classes lie in
//! buckets by their counts, and a replica moves the few classes of one domain to another bucket. All classes of a bucket
//! have the same verdict and, to the last bit, the same score.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

use super::{
    classes::Classes,
    dimension::{Dimension, NOWHERE},
    distinct::Distinct,
};

/// The level of a class that reads none.
pub(super) const NO_LEVEL: i64 = i64::MIN;

/// Classes with the same domains in all coarse dimensions.
#[derive(Debug)]
pub(super) struct Group {
    /// A class of it, for its domains.
    pub example: u32,
    /// Those that hold a class.
    pub buckets: Vec<u32>,
    known: HashMap<Box<[i64]>, u32>,
    /// Scored classes that pass the fine hard dimensions.
    pub passing: usize,
}

/// Classes of a group with the same levels in all fine dimensions.
#[derive(Debug)]
pub(super) struct Bucket {
    group: u32,
    /// Whether it is scored, then the levels.
    pub(super) key: Box<[i64]>,
    /// The next turn and the number of each class, and some that have left.
    pub(super) turns: BinaryHeap<Reverse<u64>>,
    pub classes: usize,
    /// Places with room.
    pub places: usize,
    /// Whether it passes the fine hard dimensions.
    pub passes: bool,
}

impl Bucket {
    pub fn is_scored(&self) -> bool {
        self.key[0] != 0
    }

    /// The level in a fine dimension, by its number among the fine ones.
    pub fn level(&self, fine: usize) -> i64 {
        self.key[fine + 1]
    }
}

/// All groups and buckets.
#[derive(Debug)]
pub(super) struct Buckets {
    /// By dimension: its number among the fine ones; `None` for a coarse one.
    pub fine: Vec<Option<usize>>,
    pub(super) fine_dims: Vec<usize>,
    pub groups: Vec<Group>,
    pub(super) slab: Vec<Bucket>,
    free: Vec<u32>,
    /// By class: its bucket, [`NOWHERE`] when it has no room.
    pub(super) bucket_of: Vec<u32>,
    pub(super) group_of: Vec<u32>,
    /// By fine dimension: where the classes of each domain begin, and the classes.
    pub(super) residents: Vec<(Vec<u32>, Vec<u32>)>,
    /// The fine ceilings that `passes` was judged by.
    pub(super) ceilings: Vec<Option<i64>>,
    pub distinct: Distinct,
    pub(super) scratch: Vec<i64>,
    pub(super) moving: Vec<u32>,
    /// How much was looked at and moved, in classes and buckets.
    pub work: u64,
}

impl Buckets {
    /// `by_distinct` are the dimensions whose distinct domains among the passing places weigh.
    pub fn new(dims: &[Dimension], classes: &Classes, by_distinct: &[usize]) -> Self {
        let count = u32::try_from(classes.len()).unwrap_or(NOWHERE);
        let mut buckets = Self {
            fine: Vec::new(),
            fine_dims: Vec::new(),
            groups: Vec::new(),
            slab: Vec::new(),
            free: Vec::new(),
            bucket_of: vec![NOWHERE; classes.len()],
            group_of: vec![0; classes.len()],
            residents: Vec::new(),
            ceilings: Vec::new(),
            distinct: Distinct::default(),
            scratch: Vec::new(),
            moving: Vec::new(),
            work: 0,
        };
        for (dim, dimension) in dims.iter().enumerate() {
            let (starts, list) = residents(dimension.domains(), classes, dim);
            let most = starts.windows(2).map(|at| at[1] - at[0]).max().unwrap_or(0);
            // A coarse dimension costs a look at each domain per replica, a fine one a move of each class of a domain.
            if most as usize > dimension.domains() {
                buckets.fine.push(None);
            } else {
                buckets.fine.push(Some(buckets.residents.len()));
                buckets.fine_dims.push(dim);
                buckets.residents.push((starts, list));
            }
        }
        buckets.group(dims, classes, count);
        let tracked = by_distinct
            .iter()
            .filter_map(|&dim| buckets.fine[dim].map(|fine| (dim, fine, dims[dim].domains())));
        buckets.distinct = Distinct::new(tracked.collect(), buckets.groups.len());
        buckets.ceilings = buckets.judge(dims);
        for class in 0..count {
            buckets.enter(class, dims, classes);
        }
        buckets.recount(classes);
        buckets
    }

    fn group(&mut self, dims: &[Dimension], classes: &Classes, count: u32) {
        let coarse: Vec<usize> = (0..dims.len())
            .filter(|&dim| self.fine[dim].is_none())
            .collect();
        let mut known: HashMap<Box<[(u32, bool)]>, u32> = HashMap::new();
        let mut key = Vec::new();
        for class in 0..count {
            key.clear();
            key.extend(coarse.iter().map(|&dim| {
                let position = classes.position(class, dim);
                (position.domain, position.reads)
            }));
            let group = if let Some(&group) = known.get(key.as_slice()) {
                group
            } else {
                let group = u32::try_from(self.groups.len()).unwrap_or(NOWHERE);
                known.insert(key.as_slice().into(), group);
                self.groups.push(Group {
                    example: class,
                    buckets: Vec::new(),
                    known: HashMap::new(),
                    passing: 0,
                });
                group
            };
            self.group_of[class as usize] = group;
        }
    }

    pub fn bucket(&self, bucket: u32) -> &Bucket {
        &self.slab[bucket as usize]
    }

    /// The least turn of a bucket, and whose it is.
    pub fn first(&mut self, bucket: u32, classes: &Classes) -> Option<(u32, u32)> {
        let of = &self.bucket_of;
        let turns = &mut self.slab[bucket as usize].turns;
        while let Some(&Reverse(entry)) = turns.peek() {
            let (turn, class) = split(entry);
            if of[class as usize] == bucket && classes.next(class) == Some(turn) {
                return Some((turn, class));
            }
            turns.pop();
        }
        None
    }

    pub(super) fn judge(&self, dims: &[Dimension]) -> Vec<Option<i64>> {
        self.fine_dims
            .iter()
            .map(|&dim| dims[dim].ceiling())
            .collect()
    }

    pub(super) fn passes(ceilings: &[Option<i64>], key: &[i64]) -> bool {
        ceilings
            .iter()
            .zip(&key[1..])
            .all(|(ceiling, level)| ceiling.is_none_or(|ceiling| *level <= ceiling))
    }

    pub(super) fn set_key(&mut self, class: u32, dims: &[Dimension], classes: &Classes) {
        self.scratch.clear();
        self.scratch.push(i64::from(classes.scored[class as usize]));
        for &dim in &self.fine_dims {
            let position = classes.position(class, dim);
            self.scratch.push(if position.reads {
                dims[dim].level(position.domain)
            } else {
                NO_LEVEL
            });
        }
    }

    /// Puts a class where it belongs, if it has room.
    pub(super) fn enter(&mut self, class: u32, dims: &[Dimension], classes: &Classes) {
        let Some(turn) = classes.next(class) else {
            return;
        };
        self.set_key(class, dims, classes);
        let group = self.group_of[class as usize];
        let bucket = match self.groups[group as usize]
            .known
            .get(self.scratch.as_slice())
        {
            Some(&bucket) => bucket,
            None => self.open(group),
        };
        self.bucket_of[class as usize] = bucket;
        let entry = &mut self.slab[bucket as usize];
        entry.turns.push(Reverse(join(turn, class)));
        entry.classes += 1;
        entry.places += classes.left(class);
        if entry.passes && entry.is_scored() {
            self.groups[group as usize].passing += 1;
        }
    }

    fn open(&mut self, group: u32) -> u32 {
        let key: Box<[i64]> = self.scratch.as_slice().into();
        let fresh = Bucket {
            group,
            passes: Self::passes(&self.ceilings, &key),
            key: key.clone(),
            turns: BinaryHeap::new(),
            classes: 0,
            places: 0,
        };
        let bucket = if let Some(bucket) = self.free.pop() {
            self.slab[bucket as usize] = fresh;
            bucket
        } else {
            self.slab.push(fresh);
            u32::try_from(self.slab.len() - 1).unwrap_or(NOWHERE)
        };
        let group = &mut self.groups[group as usize];
        group.known.insert(key, bucket);
        group.buckets.push(bucket);
        bucket
    }

    /// Takes a class out of its bucket; `places` are those that it had room in when it was put there.
    pub(super) fn leave(&mut self, class: u32, places: usize) {
        let bucket = std::mem::replace(&mut self.bucket_of[class as usize], NOWHERE);
        let entry = &mut self.slab[bucket as usize];
        entry.classes -= 1;
        entry.places -= places;
        let group = &mut self.groups[entry.group as usize];
        if entry.passes && entry.is_scored() {
            group.passing -= 1;
        }
        if entry.classes == 0 {
            entry.turns = BinaryHeap::new();
            group.known.remove(&entry.key);
            if let Some(at) = group.buckets.iter().position(|&other| other == bucket) {
                group.buckets.swap_remove(at);
            }
            self.free.push(bucket);
        }
    }
}

/// Where the classes of each domain begin in the list, and the list.
fn residents(domains: usize, classes: &Classes, dim: usize) -> (Vec<u32>, Vec<u32>) {
    let count = u32::try_from(classes.len()).unwrap_or(NOWHERE);
    let domain = |class: u32| {
        Some(classes.position(class, dim).domain as usize).filter(|&domain| domain < domains)
    };
    let mut starts = vec![0_u32; domains + 1];
    for at in (0..count).filter_map(domain) {
        starts[at + 1] += 1;
    }
    for at in 0..domains {
        starts[at + 1] += starts[at];
    }
    let mut list = vec![0; starts[domains] as usize];
    let mut next = starts.clone();
    for class in 0..count {
        if let Some(at) = domain(class) {
            list[next[at] as usize] = class;
            next[at] += 1;
        }
    }
    (starts, list)
}

pub(super) fn of_domain((starts, list): &(Vec<u32>, Vec<u32>), domain: u32) -> &[u32] {
    let at = domain as usize;
    &list[starts[at] as usize..starts[at + 1] as usize]
}

fn join(turn: u32, class: u32) -> u64 {
    u64::from(turn) << 32 | u64::from(class)
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves of it")]
pub(super) fn split(entry: u64) -> (u32, u32) {
    ((entry >> 32) as u32, entry as u32)
}
