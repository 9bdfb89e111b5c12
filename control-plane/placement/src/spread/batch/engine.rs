//! The course of a batch.

use super::{
    Direction, Placed, Request, TooMuch,
    buckets::Buckets,
    classes::Classes,
    dimension::{Dimension, Role},
    layout::lay,
    order::Chooser,
    rounds::Rounds,
};

/// How many classes and buckets are looked at and moved before a batch gives up.
const MOST_WORK: u64 = 1 << 30;

/// More than any workload has; counts of them, over any number of places, are sure to fit.
const MOST_REPLICAS: u64 = 1 << 36;

pub(super) struct Batch {
    pub dims: Vec<Dimension>,
    pub classes: Classes,
    pub buckets: Buckets,
    /// Room left, by place: how many replicas may still be put there, or taken off.
    pub room: Vec<u64>,
    by_distinct: Vec<usize>,
}

/// Deals with `request.replicas` replicas.
pub(super) fn run(
    request: Request<'_>,
    kept: &[u64],
    direction: Direction,
) -> Result<Placed, TooMuch> {
    let places = request.order.len();
    let mut placed = Placed {
        replicas: vec![0; places],
        unplaced: 0,
    };
    if request.replicas > MOST_REPLICAS || kept.iter().any(|&kept| kept > MOST_REPLICAS) {
        return Err(TooMuch {
            done: 0,
            replicas: request.replicas,
        });
    }
    if request.replicas == 0 || places == 0 {
        placed.unplaced = request.replicas;
        return Ok(placed);
    }
    let order: Vec<u32> = match direction {
        Direction::Add => request.order.to_vec(),
        Direction::Remove => request.order.iter().rev().copied().collect(),
    };
    let mut batch = Batch::new(request, &order, kept, direction);
    let mut chooser = Chooser::new(direction, &batch.dims);
    let mut rounds = Rounds::new(&batch.dims, batch.classes.len());
    let mut left = request.replicas;
    while left > 0 {
        if batch.buckets.work > MOST_WORK {
            return Err(TooMuch {
                done: request.replicas - left,
                replicas: request.replicas,
            });
        }
        let choice = chooser.choose(&batch.dims, &batch.classes, &mut batch.buckets);
        let Some(choice) = choice else {
            placed.unplaced = left;
            break;
        };
        let Some(turn) = batch.classes.next(choice.class) else {
            placed.unplaced = left;
            break;
        };
        let place = order[turn as usize] as usize;
        let replicas = choice.replicas.min(left).min(batch.room[place]);
        let filled = batch.take(choice.class, place, replicas, direction);
        placed.replicas[place] += replicas;
        left -= replicas;
        rounds.record(
            place,
            replicas,
            choice.by_differences,
            filled,
            &mut batch.dims,
        );
        left = rounds.skip(&mut batch, &mut placed.replicas, left, direction);
    }
    Ok(placed)
}

impl Batch {
    fn new(request: Request<'_>, order: &[u32], kept: &[u64], direction: Direction) -> Self {
        let laid = lay(request.axes, order.len(), kept, direction);
        let room = request.capacity.to_vec();
        let classes = Classes::new(&laid, order, &room);
        let mut dims = laid.dims;
        let count = u32::try_from(classes.len()).unwrap_or(u32::MAX);
        for (dim, dimension) in dims.iter_mut().enumerate() {
            let readers = (0..count).map(|class| classes.position(class, dim));
            dimension.start(readers.filter(|at| at.reads).map(|at| at.domain));
        }
        let by_distinct: Vec<usize> = (0..dims.len())
            .filter(|&dim| {
                let soft = matches!(
                    dims[dim].role,
                    Role::Soft {
                        per_node: false,
                        ..
                    }
                );
                soft && direction == Direction::Add
            })
            .collect();
        let buckets = Buckets::new(&dims, &classes, &by_distinct);
        Self {
            dims,
            classes,
            buckets,
            room,
            by_distinct,
        }
    }

    /// Counts replicas on a place, the next one of a class. Whether that used up its room.
    fn take(&mut self, class: u32, place: usize, replicas: u64, direction: Direction) -> bool {
        let count = i64::try_from(replicas).unwrap_or(i64::MAX);
        for (dimension, position) in self.dims.iter_mut().zip(self.classes.positions(class)) {
            if position.adds {
                dimension.count(position.domain, count, direction);
            }
        }
        let room = &mut self.room[place];
        if *room != u64::MAX {
            *room -= replicas;
        }
        let filled = *room == 0;
        self.buckets
            .update(class, filled, &self.dims, &mut self.classes);
        if filled && self.classes.next(class).is_none() {
            for (dimension, position) in self.dims.iter_mut().zip(self.classes.positions(class)) {
                if position.reads {
                    dimension.lose_reader(position.domain);
                }
            }
        }
        filled
    }

    /// Sorts the classes into buckets anew, after counts were changed at large.
    pub fn rebuild(&mut self) {
        let work = self.buckets.work + self.classes.len() as u64;
        self.buckets = Buckets::new(&self.dims, &self.classes, &self.by_distinct);
        self.buckets.work = work;
    }
}
