//! The merge schema: what server-side apply and strategic merge need to know of a kind's fields.
//!
//! A schema is an arena of types; a [`TypeRef`] names one of them and keeps the arena alive. Types refer to each other by
//! index, so recursive kinds (`JSONSchemaProps`) need no reference cycles. What a schema does not say is *untyped*: maps are
//! granular, lists are atomic.

mod builtin;
mod structural;

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use serde_json::Value;

pub use builtin::{SchemaError, Schemas};

/// Place of a type in its arena.
pub(crate) type TypeId = u32;

/// The type of everything that no schema describes. The first four places are the same in every arena.
pub(crate) const ANY: TypeId = 0;
const ANY_MAP: TypeId = 1;
const ANY_LIST: TypeId = 2;
const ANY_SCALAR: TypeId = 3;

/// A scalar as far as merging tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Text,
    Number,
    Boolean,
    /// Quantities, int-or-string.
    Any,
}

/// How the elements of a list are told apart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ListKind {
    /// One value as a whole.
    Atomic,
    /// Scalars, each at most once.
    Set,
    /// Objects, identified by these fields, sorted by name. An absent field takes the default of the element's schema.
    Map(Box<[(Box<str>, Option<Value>)]>),
}

#[derive(Clone, Debug)]
pub(crate) struct ListType {
    pub element: TypeId,
    pub kind: ListKind,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct MapType {
    /// Sorted by name.
    pub fields: Vec<(Box<str>, Field)>,
    /// The type of what is not named in `fields`; `None` when nothing else is allowed.
    pub element: Option<TypeId>,
    /// One value as a whole.
    pub atomic: bool,
}

impl MapType {
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields
            .binary_search_by(|(candidate, _)| (**candidate).cmp(name))
            .ok()
            .map(|place| &self.fields[place].1)
    }
}

/// A named field of a map.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub type_: TypeId,
    /// The field is there even when it is left out, with this zero value (`{}`, `""`, `0`): built-in kinds only, whose
    /// struct fields cannot be absent.
    pub zero: Option<Value>,
    pub strategic: Strategic,
}

/// What strategic merge patch does with a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Strategic {
    /// Lists only: elements are merged and not replaced.
    pub merge: bool,
    /// Directive `$retainKeys` is honoured.
    pub retain_keys: bool,
    pub merge_key: Option<Box<str>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Type {
    /// Takes the form of the value.
    Any,
    Scalar(Scalar),
    Map(MapType),
    List(ListType),
}

/// An arena of types.
#[derive(Debug)]
pub(crate) struct Arena {
    types: Vec<Type>,
    /// Absent fields have zero values and nulls mean absent, as in typed objects.
    builtin: bool,
}

impl Arena {
    fn new(builtin: bool) -> Self {
        let map = MapType {
            element: Some(ANY),
            ..MapType::default()
        };
        let list = ListType {
            element: ANY,
            kind: ListKind::Atomic,
        };
        Self {
            types: vec![
                Type::Any,
                Type::Map(map),
                Type::List(list),
                Type::Scalar(Scalar::Any),
            ],
            builtin,
        }
    }

    fn push(&mut self, type_: Type) -> TypeId {
        self.types.push(type_);
        TypeId::try_from(self.types.len() - 1).unwrap_or(ANY)
    }
}

/// One type in its arena, borrowed: what the walkers pass on.
#[derive(Clone, Copy)]
pub(crate) struct Ty<'a> {
    arena: &'a Arena,
    id: TypeId,
}

/// A type seen together with a value: untyped takes the value's form.
#[derive(Clone, Copy)]
pub(crate) enum Form<'a> {
    Scalar(Scalar),
    Map(&'a MapType),
    List(&'a ListType),
}

impl<'a> Ty<'a> {
    pub(crate) fn at(self, id: TypeId) -> Self {
        Self { id, ..self }
    }

    pub(crate) fn builtin(self) -> bool {
        self.arena.builtin
    }

    /// The form that this type gives `value`.
    pub(crate) fn form(self, value: &Value) -> Form<'a> {
        match &self.arena.types[self.id as usize] {
            Type::Scalar(scalar) => Form::Scalar(*scalar),
            Type::Map(map) => Form::Map(map),
            Type::List(list) => Form::List(list),
            Type::Any => match value {
                Value::Array(_) => self.at(ANY_LIST).form(value),
                Value::Object(_) | Value::Null => self.at(ANY_MAP).form(value),
                _ => self.at(ANY_SCALAR).form(value),
            },
        }
    }

    /// The map that this type describes, when it does.
    pub(crate) fn map(self) -> Option<&'a MapType> {
        match &self.arena.types[self.id as usize] {
            Type::Map(map) => Some(map),
            Type::Any => self.at(ANY_MAP).map(),
            _ => None,
        }
    }

    /// The list that this type describes, when it does.
    pub(crate) fn list(self) -> Option<&'a ListType> {
        match &self.arena.types[self.id as usize] {
            Type::List(list) => Some(list),
            Type::Any => self.at(ANY_LIST).list(),
            _ => None,
        }
    }

    /// The type of a field or key; untyped when the map names none.
    pub(crate) fn child(self, map: &MapType, name: &str) -> Self {
        let id = match map.field(name) {
            Some(field) => field.type_,
            None => map.element.unwrap_or(ANY),
        };
        self.at(id)
    }
}

/// The schema of a kind. Cheap to clone.
#[derive(Clone)]
pub struct TypeRef {
    arena: Arc<Arena>,
    id: TypeId,
}

impl TypeRef {
    /// A custom resource without a schema: metadata as everywhere, else granular maps and atomic lists.
    pub fn untyped() -> Self {
        static UNTYPED: OnceLock<TypeRef> = OnceLock::new();
        UNTYPED
            .get_or_init(|| {
                let mut arena = Arena::new(false);
                let metadata = builtin::object_meta(&mut arena);
                let root = MapType {
                    fields: vec![("metadata".into(), Field::plain(metadata))],
                    element: Some(ANY),
                    atomic: false,
                };
                let id = arena.push(Type::Map(root));
                Self {
                    arena: Arc::new(arena),
                    id,
                }
            })
            .clone()
    }

    /// The schema of a custom resource, from the `openAPIV3Schema` of its definition. Never fails: what is not understood is
    /// untyped.
    pub fn structural(schema: &Value) -> Self {
        structural::build(schema)
    }

    /// Whether the kind is one of Kubernetes' own, with typed objects.
    pub fn is_builtin(&self) -> bool {
        self.arena.builtin
    }

    pub(crate) fn ty(&self) -> Ty<'_> {
        Ty {
            arena: &self.arena,
            id: self.id,
        }
    }
}

impl fmt::Debug for TypeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypeRef")
            .field("id", &self.id)
            .field("builtin", &self.arena.builtin)
            .finish_non_exhaustive()
    }
}

impl Field {
    fn plain(type_: TypeId) -> Self {
        Self {
            type_,
            zero: None,
            strategic: Strategic::default(),
        }
    }
}
