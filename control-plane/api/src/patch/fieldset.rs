//! Sets of fields: what a manager owns, what changed.

use std::{cmp::Ordering, fmt};

use serde_json::{Map, Value};

use super::path::PathElement;
use crate::schema::{ANY, Ty};

/// fieldsV1 that is nested deeper than this is refused.
const MAX_DEPTH: usize = 128;

/// A set of paths as a tree: each node's children are sorted by their element, so that set operations are merges.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub struct FieldSet(Vec<Node>);

/// A path element below another, with what is known below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub(crate) element: PathElement,
    /// The path up to here is in the set, and not only something below it.
    pub(crate) member: bool,
    pub(crate) children: FieldSet,
}

/// fieldsV1 that cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not a set of fields: {0}")]
pub struct FieldsError(String);

impl FieldsError {
    pub(super) fn new(why: &str) -> Self {
        Self(why.into())
    }
}

impl FieldSet {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, element: &PathElement) -> Option<&Node> {
        self.0
            .binary_search_by(|node| node.element.cmp(element))
            .ok()
            .map(|place| &self.0[place])
    }

    /// A field among the children, without building a path element for it.
    pub(crate) fn field(&self, name: &str) -> Option<&Node> {
        self.0
            .binary_search_by(|node| match &node.element {
                PathElement::Field(field) => (**field).cmp(name),
                _ => Ordering::Greater,
            })
            .ok()
            .map(|place| &self.0[place])
    }

    /// Adds a node unless it says nothing. The caller sorts when done, or adds in order.
    pub(crate) fn push(&mut self, element: PathElement, member: bool, children: Self) {
        if member || !children.is_empty() {
            self.0.push(Node {
                element,
                member,
                children,
            });
        }
    }

    /// The same for a field, whose name is copied only when the node is kept.
    pub(crate) fn push_field(&mut self, name: &str, member: bool, children: Self) {
        if member || !children.is_empty() {
            self.push(PathElement::Field(name.into()), member, children);
        }
    }

    /// Restores the order after pushes, joining nodes of the same element.
    pub(crate) fn sort(&mut self) {
        if self.0.is_sorted_by(|a, b| a.element < b.element) {
            return;
        }
        self.0.sort_by(|a, b| a.element.cmp(&b.element));
        let mut joined: Vec<Node> = Vec::with_capacity(self.0.len());
        for node in self.0.drain(..) {
            match joined.last_mut() {
                Some(last) if last.element == node.element => {
                    last.member |= node.member;
                    last.children = last.children.union(&node.children);
                }
                _ => joined.push(node),
            }
        }
        self.0 = joined;
    }

    /// The set of the given paths of fields.
    pub(crate) fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let mut one = Self::default();
            for (depth, name) in path.iter().rev().enumerate() {
                let below = std::mem::take(&mut one);
                one.push_field(name, depth == 0, below);
            }
            set = set.union(&one);
        }
        set
    }

    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        if self.is_empty() {
            return other.clone();
        }
        let mut out = Vec::with_capacity(self.0.len().max(other.0.len()));
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        loop {
            let order = match (a.peek(), b.peek()) {
                (Some(a), Some(b)) => a.element.cmp(&b.element),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return Self(out),
            };
            match order {
                Ordering::Less => out.extend(a.next().cloned()),
                Ordering::Greater => out.extend(b.next().cloned()),
                Ordering::Equal => {
                    if let (Some(a), Some(b)) = (a.next(), b.next()) {
                        out.push(Node {
                            element: a.element.clone(),
                            member: a.member || b.member,
                            children: a.children.union(&b.children),
                        });
                    }
                }
            }
        }
    }

    /// The paths of `self` that are not in `other`. What lies below a path of `other` stays.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.zip_left(other, |node, other| {
            (
                node.member && !other.member,
                node.children.difference(&other.children),
            )
        })
    }

    /// The paths of `self` that are neither in `other` nor below a path of it.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        self.zip_left(other, |node, other| {
            if other.member {
                (false, Self::default())
            } else {
                (node.member, node.children.without(&other.children))
            }
        })
    }

    fn zip_left(&self, other: &Self, join: impl Fn(&Node, &Node) -> (bool, Self)) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        let mut out = Self(Vec::with_capacity(self.0.len()));
        let mut others = other.0.iter().peekable();
        for node in &self.0 {
            while others
                .next_if(|other| other.element < node.element)
                .is_some()
            {}
            match others.next_if(|other| other.element == node.element) {
                Some(other) => {
                    let (member, children) = join(node, other);
                    if member || !children.is_empty() {
                        out.push(node.element.clone(), member, children);
                    }
                }
                None => out.0.push(node.clone()),
            }
        }
        out
    }

    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut out = Self::default();
        let mut others = other.0.iter().peekable();
        for node in &self.0 {
            while others
                .next_if(|other| other.element < node.element)
                .is_some()
            {}
            if let Some(other) = others.next_if(|other| other.element == node.element) {
                let children = node.children.intersection(&other.children);
                let member = node.member && other.member;
                if member || !children.is_empty() {
                    out.push(node.element.clone(), member, children);
                }
            }
        }
        out
    }

    /// Whether every path of `self` is in `other`.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.0.iter().all(|node| {
            other.get(&node.element).is_some_and(|other| {
                (!node.member || other.member) && node.children.is_subset(&other.children)
            })
        })
    }

    /// The set in which every named field of a struct that has something below it is there itself too: removing all of a
    /// struct's fields removes the struct.
    pub(crate) fn with_named_fields(&self, ty: Ty<'_>) -> Self {
        let map = ty.map();
        let nodes = self.0.iter().map(|node| {
            let mut member = node.member;
            let below = match (&node.element, map) {
                (PathElement::Field(name), Some(map)) => {
                    member |= map.field(name).is_some();
                    ty.child(map, name)
                }
                (PathElement::Key(_), _) => {
                    ty.list().map_or(ty.at(ANY), |list| ty.at(list.element))
                }
                _ => ty.at(ANY),
            };
            Node {
                element: node.element.clone(),
                member,
                children: node.children.with_named_fields(below),
            }
        });
        Self(nodes.collect())
    }

    /// Every path, those of a level before what lies below them.
    pub fn for_each_path(&self, visit: &mut dyn FnMut(&[&PathElement])) {
        self.walk(&mut Vec::new(), visit);
    }

    fn walk<'a>(&'a self, lead: &mut Vec<&'a PathElement>, visit: &mut dyn FnMut(&[&PathElement])) {
        for node in self.0.iter().filter(|node| node.member) {
            lead.push(&node.element);
            visit(lead);
            lead.pop();
        }
        for node in self.0.iter().filter(|node| !node.children.is_empty()) {
            lead.push(&node.element);
            node.children.walk(lead, visit);
            lead.pop();
        }
    }

    /// Reads a fieldsV1 object.
    pub fn from_fields_v1(fields: &Value) -> Result<Self, FieldsError> {
        Self::read(fields, 0).map(|(set, _)| set)
    }

    /// The set below a node, and whether the node itself is a member.
    fn read(fields: &Value, depth: usize) -> Result<(Self, bool), FieldsError> {
        if depth > MAX_DEPTH {
            return Err(FieldsError("nested too deeply".into()));
        }
        let fields = fields
            .as_object()
            .ok_or_else(|| FieldsError("not an object".into()))?;
        let mut set = Self(Vec::with_capacity(fields.len()));
        let mut itself = fields.is_empty();
        for (key, below) in fields {
            if key == "." {
                itself = true;
                continue;
            }
            let element =
                PathElement::parse(key).ok_or_else(|| FieldsError(format!("key {key:?}")))?;
            let (children, member) = Self::read(below, depth + 1)?;
            set.push(element, member, children);
        }
        set.sort();
        Ok((set, itself))
    }

    /// The fieldsV1 object.
    pub fn to_fields_v1(&self) -> Value {
        self.write(false)
    }

    fn write(&self, member: bool) -> Value {
        let mut out = Map::new();
        if member && !self.is_empty() {
            out.insert(".".into(), Value::Object(Map::new()));
        }
        for node in &self.0 {
            out.insert(node.element.to_key(), node.children.write(node.member));
        }
        Value::Object(out)
    }

    /// Whether a fieldsV1 object, as this module writes it, has a path of this set. Nothing is parsed.
    pub(crate) fn meets(&self, fields: &Value) -> bool {
        let Some(fields) = fields.as_object() else {
            return false;
        };
        self.0.iter().any(|node| {
            fields.get(&node.element.to_key()).is_some_and(|below| {
                let is_member = below
                    .as_object()
                    .is_some_and(|below| below.is_empty() || below.contains_key("."));
                (node.member && is_member) || node.children.meets(below)
            })
        })
    }
}

/// A whole path as conflicts print it.
pub(crate) struct PathText<'a>(pub &'a [&'a PathElement]);

impl fmt::Display for PathText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(f))
    }
}
