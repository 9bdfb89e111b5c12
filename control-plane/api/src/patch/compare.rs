//! What changed between two objects, through their schema.

use serde_json::Value;

use super::{
    fieldset::FieldSet,
    path::{PathElement, equal},
    typed::element_key,
};
use crate::schema::{Form, ListKind, ListType, MapType, Ty};

/// The fields in which two objects differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    pub added: FieldSet,
    pub modified: FieldSet,
    pub removed: FieldSet,
}

impl Comparison {
    pub fn is_same(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// The same without some fields and what lies below them.
    #[must_use]
    pub fn without(&self, fields: &FieldSet) -> Self {
        Self {
            added: self.added.without(fields),
            modified: self.modified.without(fields),
            removed: self.removed.without(fields),
        }
    }

    fn sort(&mut self) {
        self.added.sort();
        self.modified.sort();
        self.removed.sort();
    }

    /// Puts a change below a path element.
    fn push(&mut self, element: &dyn Fn() -> PathElement, change: Change) {
        let Change { own, below } = change;
        for (set, mine, below) in [
            (&mut self.added, own == Own::Added, below.added),
            (&mut self.modified, own == Own::Modified, below.modified),
            (&mut self.removed, own == Own::Removed, below.removed),
        ] {
            if mine || !below.is_empty() {
                set.push(element(), mine, below);
            }
        }
    }
}

/// What happened to a node itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Own {
    Same,
    Added,
    Modified,
    Removed,
}

struct Change {
    own: Own,
    below: Comparison,
}

impl Change {
    fn leaf(own: Own) -> Self {
        Self {
            own,
            below: Comparison::default(),
        }
    }

    fn is_same(&self) -> bool {
        self.own == Own::Same && self.below.is_same()
    }
}

/// Compares two states of an object.
pub fn compare(ty: Ty<'_>, old: &Value, new: &Value) -> Comparison {
    node(ty, Some(old), Some(new)).below
}

fn node(ty: Ty<'_>, old: Option<&Value>, new: Option<&Value>) -> Change {
    let (form, shape) = match (old, new) {
        (None, None) => return Change::leaf(Own::Same),
        (Some(one), None) | (None, Some(one)) => (ty.form(one), one),
        (Some(old), Some(new)) => {
            let form = ty.form(new);
            // Untyped values of two forms: the value changed, what was below it went, and what is below it now is new.
            if !same_form(form, ty.form(old)) {
                return Change {
                    own: Own::Modified,
                    below: Comparison {
                        added: node(ty, None, Some(new)).below.added,
                        modified: FieldSet::default(),
                        removed: node(ty, Some(old), None).below.removed,
                    },
                };
            }
            (form, new)
        }
    };
    let below = match form {
        Form::Scalar(_) => return leaf(old, new),
        Form::List(list) => {
            let is_empty =
                |value: Option<&Value>| value.and_then(Value::as_array).is_none_or(Vec::is_empty);
            if list.kind == ListKind::Atomic
                || (is_empty(old) && is_empty(new))
                || !(shape.is_array() || shape.is_null())
            {
                return leaf(old, new);
            }
            lists(ty, list, old, new)
        }
        Form::Map(map) => {
            let is_empty = |value: Option<&Value>| {
                value
                    .and_then(Value::as_object)
                    .is_none_or(|fields| fields.is_empty() && !(ty.builtin() && has_zeros(map)))
            };
            if map.atomic
                || (is_empty(old) && is_empty(new))
                || !(shape.is_object() || shape.is_null())
            {
                return leaf(old, new);
            }
            maps(ty, map, old, new)
        }
    };
    let own = match (old, new) {
        (None, Some(_)) => Own::Added,
        (Some(_), None) => Own::Removed,
        _ => Own::Same,
    };
    Change { own, below }
}

fn has_zeros(map: &MapType) -> bool {
    map.fields.iter().any(|(_, field)| field.zero.is_some())
}

fn same_form(a: Form<'_>, b: Form<'_>) -> bool {
    matches!(
        (a, b),
        (Form::Scalar(_), Form::Scalar(_))
            | (Form::List(_), Form::List(_))
            | (Form::Map(_), Form::Map(_))
    )
}

fn leaf(old: Option<&Value>, new: Option<&Value>) -> Change {
    Change::leaf(match (old, new) {
        (None, Some(_)) => Own::Added,
        (Some(_), None) => Own::Removed,
        (Some(old), Some(new)) if !equal(old, new) => Own::Modified,
        _ => Own::Same,
    })
}

fn maps(ty: Ty<'_>, map: &MapType, old: Option<&Value>, new: Option<&Value>) -> Comparison {
    let mut out = Comparison::default();
    let (old_fields, new_fields) = (
        old.and_then(Value::as_object),
        new.and_then(Value::as_object),
    );
    let mut one = |name: &str, old: Option<&Value>, new: Option<&Value>| {
        let zero = map.field(name).and_then(|field| field.zero.as_ref());
        let old = old.or(zero.filter(|_| old_fields.is_some()));
        let new = new.or(zero.filter(|_| new_fields.is_some()));
        let change = node(ty.child(map, name), old, new);
        if !change.is_same() {
            out.push(&|| PathElement::Field(name.into()), change);
        }
    };
    for (name, old) in old_fields.into_iter().flatten() {
        one(
            name,
            Some(old),
            new_fields.and_then(|fields| fields.get(name)),
        );
    }
    for (name, new) in new_fields.into_iter().flatten() {
        if old_fields.is_none_or(|fields| !fields.contains_key(name)) {
            one(name, None, Some(new));
        }
    }
    // Zero values that are written in neither object still come and go with their parent.
    if old_fields.is_some() != new_fields.is_some() {
        let present = old_fields.or(new_fields);
        for (name, field) in &map.fields {
            if field.zero.is_some() && present.is_none_or(|fields| !fields.contains_key(&**name)) {
                one(name, None, None);
            }
        }
    }
    out.sort();
    out
}

fn lists(ty: Ty<'_>, list: &ListType, old: Option<&Value>, new: Option<&Value>) -> Comparison {
    let old = indexed(list, old);
    let new = indexed(list, new);
    let mut out = Comparison::default();
    let (mut a, mut b) = (old.as_slice(), new.as_slice());
    while let Some(element) = [a.first(), b.first()]
        .into_iter()
        .flatten()
        .map(|(element, _)| element)
        .min()
    {
        let take = |rest: &mut &[(PathElement, &Value)]| {
            let length = rest
                .iter()
                .take_while(|(other, _)| other == element)
                .count();
            let (run, after) = rest.split_at(length);
            *rest = after;
            run.len()
        };
        let (a_run, b_run) = (a, b);
        let (a_length, b_length) = (take(&mut a), take(&mut b));
        let (a_run, b_run) = (&a_run[..a_length], &b_run[..b_length]);
        let change = if a_length < 2 && b_length < 2 {
            node(
                ty.at(list.element),
                a_run.first().map(|(_, value)| *value),
                b_run.first().map(|(_, value)| *value),
            )
        } else {
            // Duplicates, which only older objects can have, are compared as a whole.
            let is_same =
                a_length == b_length && a_run.iter().zip(b_run).all(|((_, a), (_, b))| equal(a, b));
            Change::leaf(match (is_same, a_length, b_length) {
                (true, ..) => Own::Same,
                (_, 0, _) => Own::Added,
                (_, _, 0) => Own::Removed,
                _ => Own::Modified,
            })
        };
        if !change.is_same() {
            out.push(&|| element.clone(), change);
        }
    }
    out
}

/// The elements by key, sorted; duplicates stay in their order. Elements without a key are left out.
fn indexed<'a>(list: &ListType, value: Option<&'a Value>) -> Vec<(PathElement, &'a Value)> {
    let mut items = value
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|item| Some((element_key(list, item).ok()?, item)))
        .collect::<Vec<_>>();
    items.sort_by(|(a, _), (b, _)| a.cmp(b));
    items
}
