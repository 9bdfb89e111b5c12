//! The schemas of Kubernetes' own kinds, from the merge-relevant extract of their OpenAPI document.
//!
//! Form: `{"definitions": {name: node}, "roots": {"apps/v1 Deployment": name}}`, where a node has `type` or `ref`, and
//! `fields`, `values`, `items`, `listType`, `listKeys`, `mapType`, `patchStrategy`, `patchMergeKey`, `default`.

use std::{collections::BTreeMap, io::Read, sync::Arc};

use serde_json::{Map, Value, json};

use super::{
    ANY, Arena, Field, ListKind, ListType, MapType, Scalar, Strategic, Type, TypeId, TypeRef,
};

/// A merge schema that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    #[error("the merge schema is not gzip: {0}")]
    Gzip(#[from] std::io::Error),
    #[error("the merge schema is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the merge schema has no {0}")]
    Missing(&'static str),
}

/// The schemas of a set of kinds, in one arena.
#[derive(Clone)]
pub struct Schemas {
    arena: Arc<Arena>,
    definitions: BTreeMap<String, TypeId>,
    roots: BTreeMap<String, TypeId>,
}

/// Decompressed bytes that are read at most.
const MAX_BYTES: u64 = 16 << 20;

impl Schemas {
    /// Reads a gzip-compressed merge schema.
    pub fn from_gzip(bytes: &[u8]) -> Result<Self, SchemaError> {
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(bytes)
            .take(MAX_BYTES)
            .read_to_end(&mut text)?;
        Self::from_value(&serde_json::from_slice(&text)?)
    }

    /// Reads a merge schema.
    pub fn from_value(document: &Value) -> Result<Self, SchemaError> {
        let definitions = document["definitions"]
            .as_object()
            .ok_or(SchemaError::Missing("definitions"))?;
        let mut builder = Builder::new(Arena::new(true), definitions);
        let ids = definitions
            .keys()
            .map(|name| (name.clone(), builder.definition(name)))
            .collect::<BTreeMap<_, _>>();
        let roots = document["roots"]
            .as_object()
            .ok_or(SchemaError::Missing("roots"))?
            .iter()
            .filter_map(|(kind, name)| Some((kind.clone(), *ids.get(name.as_str()?)?)))
            .collect();
        Ok(Self {
            arena: Arc::new(builder.arena),
            definitions: ids,
            roots,
        })
    }

    /// By definition name: `io.k8s.api.apps.v1.Deployment`.
    pub fn definition(&self, name: &str) -> Option<TypeRef> {
        self.definitions.get(name).map(|id| self.reference(*id))
    }

    /// By kind: `apps/v1`, `Deployment`.
    pub fn kind(&self, api_version: &str, kind: &str) -> Option<TypeRef> {
        self.roots
            .get(&format!("{api_version} {kind}"))
            .map(|id| self.reference(*id))
    }

    fn reference(&self, id: TypeId) -> TypeRef {
        TypeRef {
            arena: Arc::clone(&self.arena),
            id,
        }
    }
}

/// Adds the type of `metadata` to an arena: custom resources share it with the built-in kinds.
pub(super) fn object_meta(arena: &mut Arena) -> TypeId {
    let text = json!({"type": "string"});
    let texts = json!({"type": "object", "values": text});
    let owner = json!({"type": "object", "mapType": "atomic", "fields": {
        "apiVersion": text, "kind": text, "name": text, "uid": text,
        "controller": {"type": "boolean"}, "blockOwnerDeletion": {"type": "boolean"},
    }});
    let schema = json!({"type": "object", "fields": {
        "annotations": texts, "labels": texts, "creationTimestamp": text, "deletionTimestamp": text,
        "deletionGracePeriodSeconds": {"type": "integer"}, "generateName": text, "generation": {"type": "integer"},
        "name": text, "namespace": text, "resourceVersion": text, "selfLink": text, "uid": text,
        "finalizers": {"type": "array", "listType": "set", "items": text},
        "ownerReferences": {"type": "array", "listType": "map", "listKeys": ["uid"], "items": owner},
        "managedFields": {"type": "array", "listType": "atomic", "items": {}},
    }});
    let none = Map::new();
    let taken = std::mem::replace(arena, Arena::new(false));
    let mut builder = Builder::new(taken, &none);
    let id = builder.node(&schema);
    *arena = builder.arena;
    id
}

struct Builder<'a> {
    arena: Arena,
    definitions: &'a Map<String, Value>,
    done: BTreeMap<&'a str, TypeId>,
}

impl<'a> Builder<'a> {
    fn new(arena: Arena, definitions: &'a Map<String, Value>) -> Self {
        Self {
            arena,
            definitions,
            done: BTreeMap::new(),
        }
    }

    /// A place is taken before the definition is read, so that it may refer to itself.
    fn definition(&mut self, name: &str) -> TypeId {
        if let Some(id) = self.done.get(name) {
            return *id;
        }
        let Some((name, node)) = self.definitions.get_key_value(name) else {
            return ANY;
        };
        let id = self.arena.push(Type::Any);
        self.done.insert(name, id);
        let type_ = self.read(node);
        self.arena.types[id as usize] = type_;
        id
    }

    fn node(&mut self, node: &Value) -> TypeId {
        if let Some(name) = node["ref"].as_str() {
            let id = self.definition(name);
            let Some(map_type) = node["mapType"].as_str() else {
                return id;
            };
            let mut type_ = self.arena.types[id as usize].clone();
            if let Type::Map(map) = &mut type_ {
                map.atomic = map_type == "atomic";
            }
            return self.arena.push(type_);
        }
        match self.read(node) {
            Type::Any => ANY,
            type_ => self.arena.push(type_),
        }
    }

    fn read(&mut self, node: &Value) -> Type {
        match node["type"].as_str() {
            Some("string") => Type::Scalar(Scalar::Text),
            Some("integer" | "number") => Type::Scalar(Scalar::Number),
            Some("boolean") => Type::Scalar(Scalar::Boolean),
            Some("int-or-string") => Type::Scalar(Scalar::Any),
            Some("array") => {
                let element = self.node(&node["items"]);
                Type::List(ListType {
                    element,
                    kind: self.list_kind(node),
                })
            }
            Some("object") => {
                let is_required = |name: &str| {
                    let required = node["required"].as_array();
                    required.is_some_and(|required| required.iter().any(|other| other == name))
                };
                let mut fields = Vec::new();
                for (name, schema) in node["fields"].as_object().into_iter().flatten() {
                    let mut field = self.field(schema);
                    // A list, map or pointer that is always written is null when nothing is in it.
                    if field.zero.is_none()
                        && self.arena.builtin
                        && schema["default"].is_null()
                        && is_required(name)
                    {
                        field.zero = Some(Value::Null);
                    }
                    fields.push((name.as_str().into(), field));
                }
                fields.sort_by(|(a, _): &(Box<str>, _), (b, _)| a.cmp(b));
                let element = match &node["values"] {
                    Value::Null if fields.is_empty() => Some(ANY),
                    Value::Null => None,
                    values => Some(self.node(values)),
                };
                Type::Map(MapType {
                    fields,
                    element,
                    atomic: node["mapType"] == "atomic",
                })
            }
            _ => match node["ref"].as_str() {
                Some(name) => {
                    let id = self.definition(name);
                    self.arena.types[id as usize].clone()
                }
                None => Type::Any,
            },
        }
    }

    fn field(&mut self, node: &Value) -> Field {
        let strategy = node["patchStrategy"].as_str().unwrap_or_default();
        let default = &node["default"];
        let is_zero = match default {
            Value::Object(fields) => fields.is_empty(),
            Value::String(text) => text.is_empty(),
            Value::Number(number) => number.as_f64() == Some(0.0),
            Value::Bool(set) => !set,
            _ => false,
        };
        Field {
            type_: self.node(node),
            zero: (self.arena.builtin && is_zero).then(|| default.clone()),
            strategic: Strategic {
                merge: strategy.split(',').any(|part| part == "merge"),
                retain_keys: strategy.split(',').any(|part| part == "retainKeys"),
                merge_key: node["patchMergeKey"].as_str().map(Into::into),
            },
        }
    }

    fn list_kind(&self, node: &Value) -> ListKind {
        match node["listType"].as_str() {
            Some("set") => ListKind::Set,
            Some("map") => {
                let mut keys = node["listKeys"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .map(|key| (Box::<str>::from(key), self.key_default(node, key)))
                    .collect::<Vec<_>>();
                keys.sort_by(|(a, _), (b, _)| a.cmp(b));
                ListKind::Map(keys.into())
            }
            _ => ListKind::Atomic,
        }
    }

    /// The default of a key field as the element's schema gives it, zero values included.
    fn key_default(&self, node: &Value, key: &str) -> Option<Value> {
        let items = &node["items"];
        let schema = match items["ref"].as_str() {
            Some(name) => self.definitions.get(name)?,
            None => items,
        };
        schema["fields"][key].get("default").cloned()
    }
}
