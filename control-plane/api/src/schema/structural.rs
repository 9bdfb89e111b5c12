//! From the OpenAPI v3 schema of a CustomResourceDefinition to a merge schema.

use std::sync::Arc;

use serde_json::Value;

use super::{
    ANY, ANY_SCALAR, Arena, Field, ListKind, ListType, MapType, Scalar, Type, TypeId, TypeRef,
    builtin,
};

/// Schemas nested deeper than this are untyped from there on.
const MAX_DEPTH: usize = 64;

pub(super) fn build(schema: &Value) -> TypeRef {
    let mut arena = Arena::new(false);
    let metadata = builtin::object_meta(&mut arena);
    let mut reader = Reader { arena, metadata };
    let mut root = match reader.read(schema, 0) {
        Type::Map(map) => map,
        _ => MapType {
            element: Some(ANY),
            ..MapType::default()
        },
    };
    reader.resource(&mut root);
    let id = reader.arena.push(Type::Map(root));
    TypeRef {
        arena: Arc::new(reader.arena),
        id,
    }
}

struct Reader {
    arena: Arena,
    /// The type of `metadata`.
    metadata: TypeId,
}

impl Reader {
    /// Gives a map the fields that every resource has.
    fn resource(&mut self, map: &mut MapType) {
        let text = self.arena.push(Type::Scalar(Scalar::Text));
        for (name, id) in [
            ("apiVersion", text),
            ("kind", text),
            ("metadata", self.metadata),
        ] {
            let place = map
                .fields
                .binary_search_by(|(candidate, _)| (**candidate).cmp(name));
            match place {
                Ok(place) => map.fields[place].1 = Field::plain(id),
                Err(place) => map.fields.insert(place, (name.into(), Field::plain(id))),
            }
        }
    }

    fn node(&mut self, schema: &Value, depth: usize) -> TypeId {
        if schema["x-kubernetes-int-or-string"] == true {
            return ANY_SCALAR;
        }
        match self.read(schema, depth) {
            Type::Any => ANY,
            type_ => self.arena.push(type_),
        }
    }

    fn read(&mut self, schema: &Value, depth: usize) -> Type {
        if depth > MAX_DEPTH {
            return Type::Any;
        }
        match schema["type"].as_str() {
            Some("string") => Type::Scalar(Scalar::Text),
            Some("integer" | "number") => Type::Scalar(Scalar::Number),
            Some("boolean") => Type::Scalar(Scalar::Boolean),
            Some("array") => Type::List(ListType {
                element: self.node(&schema["items"], depth + 1),
                kind: list_kind(schema),
            }),
            Some("object") => Type::Map(self.map(schema, depth)),
            _ => Type::Any,
        }
    }

    fn map(&mut self, schema: &Value, depth: usize) -> MapType {
        let mut fields = Vec::new();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let id = self.node(field, depth + 1);
            fields.push((Box::<str>::from(name.as_str()), Field::plain(id)));
        }
        fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        let is_open = fields.is_empty();
        let element = match &schema["additionalProperties"] {
            Value::Object(_) => Some(self.node(&schema["additionalProperties"], depth + 1)),
            Value::Bool(true) => Some(ANY),
            _ if is_open || schema["x-kubernetes-preserve-unknown-fields"] == true => Some(ANY),
            _ => None,
        };
        let mut map = MapType {
            fields,
            element,
            atomic: schema["x-kubernetes-map-type"] == "atomic",
        };
        if schema["x-kubernetes-embedded-resource"] == true {
            self.resource(&mut map);
        }
        map
    }
}

fn list_kind(schema: &Value) -> ListKind {
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => ListKind::Set,
        Some("map") => {
            let mut keys = schema["x-kubernetes-list-map-keys"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(|key| {
                    let default = schema["items"]["properties"][key].get("default").cloned();
                    (Box::<str>::from(key), default)
                })
                .collect::<Vec<_>>();
            keys.sort_by(|(a, _), (b, _)| a.cmp(b));
            ListKind::Map(keys.into())
        }
        _ => ListKind::Atomic,
    }
}
