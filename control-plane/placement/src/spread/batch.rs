//! Many replicas of one pod in one call, with the result of as many single decisions in sequence.
//!
//! A single decision takes, of the places that pass the filter, the one with the best score, and of those that tie the
//! one with the least name; the replica is counted from then on. Doing that N times over M places costs N × M. Here
//! places that the constraints cannot tell apart are one *class*, and classes are kept so that a decision looks at few
//! of them:
//!
//! - A constraint whose domains hold many classes each (zones) is *coarse*: classes are grouped by their domains, and a
//!   placement changes a count of the group.
//! - A constraint whose domains hold few (clusters) is *fine*: within a group, classes are kept in buckets by their
//!   counts, and a placement moves the few classes of one domain to another bucket.
//!
//! All classes of a bucket have the same verdict and, to the last bit, the same score, so a decision looks at one name
//! per bucket. There are few buckets, because spreading keeps counts close together.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    axis::Axes,
    dimension::{Dimension, Level, Role, dimensions},
    score::{rounded, term, weight},
};

/// What a batch places, and where it may.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The constraints over the places, with what is placed already.
    pub axes: &'a Axes,
    /// The names of the places, which break ties.
    pub names: &'a [&'a str],
    /// How many more replicas each place takes: 0 where the pod may not go at all, `u64::MAX` for no limit.
    pub capacity: &'a [u64],
    /// How many replicas to place.
    pub replicas: u64,
}

/// Where the replicas went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// Replicas of this batch on each place.
    pub replicas: Vec<u64>,
    /// Replicas for which there was no place.
    pub unplaced: u64,
}

/// Places that no constraint tells apart, as long as they have room.
#[derive(Debug)]
struct Class {
    /// Ranks (see [`Batch::ranked`]) in descending order: the next one is the last.
    members: Vec<u32>,
    group: usize,
    /// Domain in each dimension. `None` where the key is missing and the term is left out.
    domains: Box<[Option<u32>]>,
    /// The domain in which a replica is counted, in each dimension.
    adds: Box<[Option<u32>]>,
    /// Whether it is scored. Places that are not come last.
    scored: bool,
}

/// What places of one class have in common: `domains`, `adds` and `scored`.
type ClassKey = (Vec<Option<u32>>, Vec<Option<u32>>, bool);

/// Counts in the fine dimensions, in order.
type BucketKey = Box<[Level]>;

#[derive(Debug, Default)]
struct Bucket {
    /// The next member of each class, least first, and the class.
    classes: BTreeSet<(u32, u32)>,
    /// Places with room in them that are scored.
    scored: usize,
}

/// Classes with the same domains in all coarse dimensions.
#[derive(Debug, Default)]
struct Group {
    domains: Vec<Option<u32>>,
    buckets: BTreeMap<(bool, BucketKey), Bucket>,
}

/// Runs a batch. Cost: for each replica, the number of groups × the buckets of each, and the classes of one fine domain.
pub fn place(request: Request<'_>) -> Placed {
    let mut batch = Batch::new(request);
    let mut placed = Placed {
        replicas: vec![0; request.names.len()],
        unplaced: 0,
    };
    for done in 0..request.replicas {
        let Some(class) = batch.best() else {
            placed.unplaced = request.replicas - done;
            break;
        };
        let place = batch.take(class);
        placed.replicas[place] += 1;
    }
    placed
}

struct Batch {
    dims: Vec<Dimension>,
    /// Positions of the coarse and of the fine ones among `dims`.
    coarse: Vec<usize>,
    fine: Vec<usize>,
    classes: Vec<Class>,
    groups: Vec<Group>,
    /// For each fine dimension and domain: the classes in it.
    residents: Vec<Vec<Vec<u32>>>,
    /// Places by rank, which is their order by name.
    ranked: Vec<usize>,
    /// Room left, by place.
    room: Vec<u64>,
    weights: Weights,
}

/// The weights of the soft dimensions for the places that pass at the moment.
#[derive(Default)]
struct Weights {
    /// By dimension; hard ones have none.
    values: Vec<f64>,
    /// Which buckets passed when they were computed, and how many classes were used up by then.
    valid_for: Option<(Vec<bool>, usize)>,
    used_up: usize,
    known: HashMap<(Vec<bool>, usize), Vec<f64>>,
}

impl Batch {
    fn new(request: Request<'_>) -> Self {
        let mut ranked: Vec<usize> = (0..request.names.len()).collect();
        ranked.sort_by_key(|&place| request.names[place].as_bytes());
        let dims = dimensions(request.axes);
        let mut batch = Self {
            coarse: Vec::new(),
            fine: Vec::new(),
            classes: Vec::new(),
            groups: Vec::new(),
            residents: Vec::new(),
            ranked,
            room: request.capacity.to_vec(),
            weights: Weights::default(),
            dims,
        };
        batch.classify(request.axes);
        batch.arrange();
        batch
    }

    /// Makes the classes out of the places that have room and all hard keys.
    fn classify(&mut self, axes: &Axes) {
        let mut known: HashMap<ClassKey, u32> = HashMap::new();
        for rank in (0..self.ranked.len()).rev() {
            let place = self.ranked[rank];
            let lost = axes.hard.iter().any(|axis| axis.domain[place].is_none());
            if self.room[place] == 0 || lost {
                continue;
            }
            let scored =
                !axes.need_all_keys || axes.soft.iter().all(|axis| axis.domain[place].is_some());
            let domains: Vec<_> = self.dims.iter().map(|dim| dim.domain[place]).collect();
            let adds: Vec<_> = self.dims.iter().map(|dim| dim.adds[place]).collect();
            let next = u32::try_from(self.classes.len()).unwrap_or(u32::MAX);
            let class = *known.entry((domains, adds, scored)).or_insert_with_key(
                |(domains, adds, scored)| {
                    self.classes.push(Class {
                        members: Vec::new(),
                        group: 0,
                        domains: domains.clone().into(),
                        adds: adds.clone().into(),
                        scored: *scored,
                    });
                    next
                },
            );
            // Ranks come in descending order, so the last member is the least.
            self.classes[class as usize]
                .members
                .push(u32::try_from(rank).unwrap_or(u32::MAX));
        }
    }

    /// Tells coarse from fine dimensions, and puts every class into its group and bucket.
    fn arrange(&mut self) {
        for dim in 0..self.dims.len() {
            let mut residents = vec![Vec::new(); self.dims[dim].counts.len()];
            for (class, domain) in self
                .classes
                .iter()
                .map(|class| class.domains[dim])
                .enumerate()
            {
                if let Some(domain) = domain {
                    residents[domain as usize].push(u32::try_from(class).unwrap_or(u32::MAX));
                }
            }
            // A coarse dimension costs a look at each domain per replica, a fine one a move of each class of a domain.
            let most = residents.iter().map(Vec::len).max().unwrap_or(0);
            if most > residents.len() {
                self.coarse.push(dim);
            } else {
                self.fine.push(dim);
                self.residents.push(residents);
            }
        }
        let mut known: HashMap<Vec<Option<u32>>, usize> = HashMap::new();
        for class in 0..self.classes.len() {
            let domains: Vec<_> = self
                .coarse
                .iter()
                .map(|&dim| self.classes[class].domains[dim])
                .collect();
            let next = self.groups.len();
            let group = *known.entry(domains).or_insert_with_key(|domains| {
                self.groups.push(Group {
                    domains: domains.clone(),
                    ..Group::default()
                });
                next
            });
            self.classes[class].group = group;
            self.insert(class);
        }
    }

    fn key(&self, class: usize) -> (bool, BucketKey) {
        let class = &self.classes[class];
        let level = |&dim: &usize| self.dims[dim].level(class.domains[dim]);
        (class.scored, self.fine.iter().map(level).collect())
    }

    fn insert(&mut self, class: usize) {
        let key = self.key(class);
        let (group, members, scored) = {
            let class = &self.classes[class];
            (class.group, class.members.len(), class.scored)
        };
        let Some(&next) = self.classes[class].members.last() else {
            return;
        };
        let bucket = self.groups[group].buckets.entry(key).or_default();
        bucket
            .classes
            .insert((next, u32::try_from(class).unwrap_or(u32::MAX)));
        bucket.scored += if scored { members } else { 0 };
    }

    fn remove(&mut self, class: usize) {
        let key = self.key(class);
        let (group, members, scored) = {
            let class = &self.classes[class];
            (class.group, class.members.len(), class.scored)
        };
        let Some(&next) = self.classes[class].members.last() else {
            return;
        };
        let buckets = &mut self.groups[group].buckets;
        if let Some(bucket) = buckets.get_mut(&key) {
            bucket
                .classes
                .remove(&(next, u32::try_from(class).unwrap_or(u32::MAX)));
            bucket.scored -= if scored { members } else { 0 };
            if bucket.classes.is_empty() {
                buckets.remove(&key);
            }
        }
    }

    /// The class that the next replica goes to.
    fn best(&mut self) -> Option<usize> {
        let passing = self.passing();
        self.weigh(&passing);
        let mut best: Option<(i64, u32, u32)> = None;
        let mut at = 0;
        for group in &self.groups {
            for ((scored, levels), bucket) in &group.buckets {
                let passes = passing[at];
                at += 1;
                let Some(&(rank, class)) = bucket.classes.first().filter(|_| passes) else {
                    continue;
                };
                let raw = if *scored {
                    self.raw(group, levels)
                } else {
                    i64::MAX
                };
                if best.is_none_or(|(best, least, _)| (raw, rank) < (best, least)) {
                    best = Some((raw, rank, class));
                }
            }
        }
        best.map(|(_, _, class)| class as usize)
    }

    /// Counts of one bucket in every dimension.
    fn level(&self, dim: usize, group: &Group, levels: &[Level]) -> Level {
        match self.coarse.binary_search(&dim) {
            Ok(at) => self.dims[dim].level(group.domains[at]),
            Err(before) => levels[dim - before],
        }
    }

    /// Which buckets pass the hard dimensions, in the order of groups and buckets.
    fn passing(&self) -> Vec<bool> {
        let hard: Vec<_> = self
            .dims
            .iter()
            .enumerate()
            .filter_map(|(dim, dimension)| Some((dim, dimension.ceiling()?)))
            .collect();
        let buckets = self
            .groups
            .iter()
            .flat_map(|group| group.buckets.keys().map(move |(_, levels)| (group, levels)));
        buckets
            .map(|(group, levels)| {
                hard.iter().all(|&(dim, ceiling)| {
                    self.level(dim, group, levels)
                        .is_some_and(|count| count <= ceiling)
                })
            })
            .collect()
    }

    fn raw(&self, group: &Group, levels: &[Level]) -> i64 {
        let soft = self.dims.iter().enumerate().filter_map(|(dim, dimension)| {
            let Role::Soft { max_skew, .. } = dimension.role else {
                return None;
            };
            let count = self.level(dim, group, levels)?;
            Some(term(count, self.weights.values[dim], max_skew))
        });
        rounded(soft.sum())
    }

    /// Brings the weights up to the places that pass now.
    fn weigh(&mut self, passing: &[bool]) {
        if self
            .dims
            .iter()
            .all(|dim| matches!(dim.role, Role::Hard { .. }))
        {
            return;
        }
        let hard_and_fine = self
            .fine
            .iter()
            .any(|&dim| matches!(self.dims[dim].role, Role::Hard { .. }));
        // Without a hard fine dimension all buckets of a group pass or fail together, and moves between them change no
        // weight: what passes is told by one bucket of each group.
        let state = if hard_and_fine {
            None
        } else {
            let mut at = 0;
            let groups = self.groups.iter().map(|group| {
                let first = at;
                at += group.buckets.len();
                !group.buckets.is_empty() && passing[first]
            });
            Some((groups.collect::<Vec<_>>(), self.weights.used_up))
        };
        if state.is_some() && self.weights.valid_for == state {
            return;
        }
        let known = state
            .as_ref()
            .and_then(|state| self.weights.known.get(state))
            .cloned();
        self.weights.values = known.unwrap_or_else(|| self.compute_weights(passing));
        if let Some(state) = &state {
            if self.weights.known.len() >= 256 {
                self.weights.known.clear();
            }
            self.weights
                .known
                .insert(state.clone(), self.weights.values.clone());
        }
        self.weights.valid_for = state;
    }

    fn compute_weights(&self, passing: &[bool]) -> Vec<f64> {
        let mut seen: Vec<Vec<bool>> = self
            .dims
            .iter()
            .map(|dim| vec![false; dim.counts.len() + 1])
            .collect();
        let see = |seen: &mut Vec<bool>, domain: Option<u32>| {
            let at = domain.map_or(seen.len() - 1, |domain| domain as usize);
            seen[at] = true;
        };
        // Only of these must the domains be looked up class by class.
        let by_domain = |&dim: &usize| {
            matches!(
                self.dims[dim].role,
                Role::Soft {
                    per_node: false,
                    ..
                }
            )
        };
        let walked: Vec<usize> = self.fine.iter().copied().filter(by_domain).collect();
        let mut listed = 0;
        let mut at = 0;
        for group in &self.groups {
            for ((scored, _), bucket) in &group.buckets {
                let passes = passing[at];
                at += 1;
                if !passes || !scored {
                    continue;
                }
                listed += bucket.scored;
                for (&dim, &domain) in self.coarse.iter().zip(&group.domains) {
                    see(&mut seen[dim], domain);
                }
                for &(_, class) in &bucket.classes {
                    for &dim in &walked {
                        see(&mut seen[dim], self.classes[class as usize].domains[dim]);
                    }
                    if walked.is_empty() {
                        break;
                    }
                }
            }
        }
        self.dims
            .iter()
            .zip(&seen)
            .map(|(dim, seen)| match dim.role {
                Role::Hard { .. } => 0.0,
                Role::Soft { per_node: true, .. } => weight(listed),
                Role::Soft { .. } => weight(dim.distinct(seen)),
            })
            .collect()
    }

    /// Places one replica in a class: the place with the least name that has room.
    fn take(&mut self, class: usize) -> usize {
        let rank = self.classes[class]
            .members
            .last()
            .copied()
            .unwrap_or_default();
        let place = self.ranked[rank as usize];
        // What is about to change its bucket: the classes of its fine domains, itself among them.
        let mut moving: Vec<u32> = vec![u32::try_from(class).unwrap_or(u32::MAX)];
        for (at, &dim) in self.fine.iter().enumerate() {
            if let Some(domain) = self.classes[class].adds[dim] {
                moving.extend(&self.residents[at][domain as usize]);
            }
        }
        moving.sort_unstable();
        moving.dedup();
        for &class in &moving {
            self.remove(class as usize);
        }
        for dim in 0..self.dims.len() {
            if let Some(domain) = self.classes[class].adds[dim] {
                self.dims[dim].add(domain);
            }
        }
        let room = &mut self.room[place];
        if *room != u64::MAX {
            *room -= 1;
        }
        if *room == 0 {
            self.classes[class].members.pop();
            self.weights.used_up += 1;
        }
        for &class in &moving {
            self.insert(class as usize);
        }
        place
    }
}
