//! Sums over the census: what the member has, what is taken, what is asked for, and how its nodes are filled.

use std::collections::HashSet;

use evenkeel_shared::{
    cluster::{AllocatableModeling, NodeSummary, ResourceList, ResourceModel, ResourceSummary},
    quantity::Quantity,
};

use super::census::{Amounts, Census, Group};

const PODS: &str = "pods";

/// The number of nodes, and of those that are ready.
pub fn node_summary(census: &Census) -> NodeSummary {
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    NodeSummary {
        total_num: count(census.node_count()),
        ready_num: count(census.nodes().filter(|node| node.ready).count()),
    }
}

/// Allocatable of all nodes; requests of pods on nodes and of pods without one, finished ones left out, each pod
/// counting one of `pods`; nodes by class of what they have free.
pub fn resource_summary(census: &Census, models: &[ResourceModel]) -> ResourceSummary {
    let mut allocatable = ResourceList::new();
    for node in census.nodes() {
        add_times(&mut allocatable, node.allocatable, 1);
    }
    let mut allocated = ResourceList::new();
    let mut allocating = ResourceList::new();
    let mut classes = Classes::new(census, models);
    for group in census.groups() {
        if let Some(node) = group.node {
            add_group(&mut allocated, &group);
            classes.take(node, &group);
        } else {
            add_group(&mut allocating, &group);
        }
    }
    ResourceSummary {
        allocatable,
        allocating,
        allocated,
        allocatable_modelings: classes.counted(),
    }
}

fn add_times(sum: &mut ResourceList, amounts: &Amounts, times: u32) {
    for (name, amount) in amounts.iter() {
        let amount = amount.times(times);
        match sum.get_mut(name) {
            Some(total) => *total += amount,
            None => {
                sum.insert(name.to_owned(), amount);
            }
        }
    }
}

fn add_group(sum: &mut ResourceList, group: &Group<'_>) {
    add_times(sum, group.requests, group.pods);
    *sum.entry(PODS.to_owned()).or_default() += Quantity::from_units(i64::from(group.pods));
}

/// Every class with its number of nodes. A node without room for a pod is in none; the others are looked at whatever
/// it is like. Groups come in the order of their nodes, so one node is filled at a time.
struct Classes<'a> {
    census: &'a Census,
    models: &'a [ResourceModel],
    counts: Vec<AllocatableModeling>,
    filled: HashSet<u32>,
    filling: Option<(u32, ResourceList)>,
}

impl<'a> Classes<'a> {
    fn new(census: &'a Census, models: &'a [ResourceModel]) -> Self {
        Self {
            census,
            models,
            counts: models
                .iter()
                .map(|model| AllocatableModeling {
                    grade: model.grade,
                    count: 0,
                })
                .collect(),
            filled: HashSet::new(),
            filling: None,
        }
    }

    fn take(&mut self, node: u32, group: &Group<'_>) {
        if self.models.is_empty() {
            return;
        }
        if self
            .filling
            .as_ref()
            .is_none_or(|(other, _)| *other != node)
        {
            self.close();
        }
        let (_, used) = self
            .filling
            .get_or_insert_with(|| (node, ResourceList::new()));
        add_group(used, group);
    }

    /// The node that was being filled has no more pods.
    fn close(&mut self) {
        if let Some((node, used)) = self.filling.take()
            && let Some(node) = self.census.node(node)
        {
            self.filled.insert(node.id);
            self.count(node.allocatable, &used);
        }
    }

    fn count(&mut self, allocatable: &Amounts, used: &ResourceList) {
        if let Some(class) = class_of(allocatable, used, self.models) {
            self.counts[class].count += 1;
        }
    }

    fn counted(mut self) -> Vec<AllocatableModeling> {
        self.close();
        let nothing = ResourceList::new();
        for node in self.census.nodes() {
            if !self.filled.contains(&node.id) {
                self.count(node.allocatable, &nothing);
            }
        }
        self.counts
    }
}

/// The last class whose lower bounds the node's free resources reach, resource by resource; the lowest of them
/// counts. `None`: no room for a pod.
fn class_of(allocatable: &Amounts, used: &ResourceList, models: &[ResourceModel]) -> Option<usize> {
    let free = |name: &str| {
        let all = allocatable
            .iter()
            .find(|(other, _)| *other == name)
            .map_or(Quantity::ZERO, |(_, amount)| amount);
        all.minus(used.get(name).copied().unwrap_or_default())
    };
    if free(PODS) <= Quantity::ZERO {
        return None;
    }
    let reached = |name: &str, free: Quantity| {
        models
            .iter()
            .rposition(|model| {
                model
                    .ranges
                    .iter()
                    .any(|range| range.name == name && range.min <= free)
            })
            .unwrap_or(0)
    };
    models
        .first()?
        .ranges
        .iter()
        .map(|range| reached(&range.name, free(&range.name)))
        .min()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn models() -> Vec<ResourceModel> {
        let ranges = |cpu: [&str; 2], memory: [&str; 2]| {
            json!([
                {"name": "cpu", "min": cpu[0], "max": cpu[1]},
                {"name": "memory", "min": memory[0], "max": memory[1]},
            ])
        };
        serde_json::from_value(json!([
            {"grade": 0, "ranges": ranges(["0", "1"], ["0", "4Gi"])},
            {"grade": 1, "ranges": ranges(["1", "2"], ["4Gi", "16Gi"])},
            {"grade": 2, "ranges": ranges(["2", "100"], ["16Gi", "1Ti"])},
        ]))
        .unwrap()
    }

    fn node(census: &mut Census, name: &str, cpu: &str, memory: &str, pods: u32) {
        census.put_node(
            serde_json::from_value(json!({
                "metadata": {"name": name},
                "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": pods.to_string()}},
            }))
            .unwrap(),
        );
    }

    fn pod(census: &mut Census, name: &str, node: Option<&str>, cpu: &str) {
        census.put_pod(
            &serde_json::from_value(json!({
                "metadata": {"uid": name},
                "spec": {"nodeName": node, "containers": [{"resources": {"requests": {"cpu": cpu}}}]},
            }))
            .unwrap(),
        );
    }

    fn text(list: &ResourceList) -> String {
        let parts: Vec<_> = list.iter().map(|(n, q)| format!("{n}={q}")).collect();
        parts.join(" ")
    }

    #[test]
    fn sums() {
        let mut census = Census::default();
        node(&mut census, "a", "4", "8Gi", 10);
        node(&mut census, "b", "3500m", "8Gi", 10);
        pod(&mut census, "p1", Some("a"), "250m");
        pod(&mut census, "p2", Some("a"), "250m");
        pod(&mut census, "p3", Some("gone"), "1");
        pod(&mut census, "p4", None, "2");
        let summary = resource_summary(&census, &[]);
        assert_eq!(text(&summary.allocatable), "cpu=7500m memory=16Gi pods=20");
        assert_eq!(text(&summary.allocated), "cpu=1500m pods=3");
        assert_eq!(text(&summary.allocating), "cpu=2 pods=1");
        assert_eq!(summary.allocatable_modelings, []);
    }

    #[test]
    fn one_full_node_hides_no_other() {
        let mut census = Census::default();
        node(&mut census, "full", "8", "64Gi", 1);
        pod(&mut census, "p", Some("full"), "1");
        node(&mut census, "small", "1", "2Gi", 10);
        node(&mut census, "lopsided", "64", "4Gi", 10);
        node(&mut census, "large", "64", "512Gi", 10);
        node(&mut census, "overcommitted", "1", "64Gi", 10);
        pod(&mut census, "q", Some("overcommitted"), "3");
        let counts: Vec<_> = resource_summary(&census, &models())
            .allocatable_modelings
            .iter()
            .map(|class| (class.grade, class.count))
            .collect();
        assert_eq!(counts, [(0, 2), (1, 1), (2, 1)]);
    }

    #[test]
    fn readiness_is_counted_and_empty_is_zero() {
        assert_eq!(
            node_summary(&Census::default()),
            NodeSummary {
                total_num: 0,
                ready_num: 0
            }
        );
        let empty = resource_summary(&Census::default(), &models());
        assert!(empty.allocatable.is_empty());
        assert_eq!(empty.allocatable_modelings.len(), 3);
    }
}
