//! What the soft constraints weigh.

use super::{
    buckets::{Buckets, Group},
    classes::Classes,
    dimension::{Dimension, Role},
    order::Chooser,
};
use crate::spread::score::weight;

impl Chooser {
    /// Brings the weights up to the places that pass now.
    pub(super) fn weigh(&mut self, dims: &[Dimension], classes: &Classes, buckets: &mut Buckets) {
        let counts = |group: &Group, passes: bool| passes && group.passing > 0;
        for at in 0..self.soft.len() {
            let dim = self.soft[at];
            let Role::Soft { per_node, .. } = dims[dim].role else {
                continue;
            };
            let domains = if per_node {
                let groups = buckets.groups.iter().zip(&self.group_passes);
                groups
                    .filter(|(_, passes)| **passes)
                    .flat_map(|(group, _)| &group.buckets)
                    .map(|&bucket| buckets.bucket(bucket))
                    .filter(|bucket| bucket.passes && bucket.is_scored())
                    .map(|bucket| bucket.places)
                    .sum()
            } else if buckets.fine[dim].is_some() {
                let passes: Vec<bool> = buckets
                    .groups
                    .iter()
                    .zip(&self.group_passes)
                    .map(|(group, &passes)| counts(group, passes))
                    .collect();
                let (count, work) = buckets.distinct.count(dim, &passes);
                buckets.work += work;
                count
            } else {
                self.stamp += 1;
                let mut count = 0;
                for (group, &passes) in buckets.groups.iter().zip(&self.group_passes) {
                    if !counts(group, passes) {
                        continue;
                    }
                    let domain = classes.position(group.example, dim).domain as usize;
                    // The example of a group of places that are not scored is in no domain, and such a group passes
                    // nothing that is.
                    if let Some(seen) = self.seen[dim].get_mut(domain)
                        && *seen != self.stamp
                    {
                        *seen = self.stamp;
                        count += 1;
                    }
                }
                count
            };
            self.weights[dim] = weight(domains);
        }
    }
}
