//! The table of kinds: everything that the generic server knows about what it serves.

use std::{collections::HashMap, sync::Arc};

use evenkeel_shared::field::FieldError;
use evenkeel_store::Resource;
use futures::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::RwLock;
use serde_json::Value;

use crate::{access::UserInfo, failure::Failure, schema::TypeRef};

/// Whether objects of a kind live in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindScope {
    Namespaced,
    Cluster,
}

/// Which names the objects of a kind may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// Dot-separated lower-case labels, 253 bytes at most: most kinds.
    DnsSubdomain,
    /// One lower-case label, 63 bytes at most: namespaces, services.
    DnsLabel,
    /// Whatever fits in a path segment: the RBAC kinds.
    PathSegment,
}

/// One column of the Table that `kubectl get` prints.
#[derive(Clone)]
pub struct Column {
    pub name: &'static str,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub type_: &'static str,
    /// 0 is always shown, 1 with `-o wide`.
    pub priority: i32,
    pub description: &'static str,
    pub cell: Cell,
}

/// Where the value of a cell comes from. The name column (`Name`, format `name`) is always first and not listed, unless
/// a kind lists it where it wants it; an `Age` column is listed like any other.
#[derive(Clone)]
pub enum Cell {
    /// A pointer into the object (`/spec/syncMode`); absent is an empty cell.
    Pointer(&'static str),
    /// Time since `/metadata/creationTimestamp`.
    Age,
    /// Computed from the object.
    Computed(fn(&Value, Timestamp) -> Value),
}

/// What a request is about, for hooks.
#[derive(Clone, Debug)]
pub struct RequestContext {
    pub user: Arc<UserInfo>,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub subresource: Option<String>,
    pub now: Timestamp,
    pub dry_run: bool,
}

/// What differs between kinds beyond data. All hooks are synchronous and pure: they see the object and the request.
/// Objects are whole (`apiVersion`, `kind`, `metadata`, …). Every hook has a default that does nothing.
pub trait Strategy: Send + Sync {
    /// Fills in what the client left out. Runs on everything that is decoded, before validation, and after patches.
    fn default(&self, _object: &mut Value) {}

    /// Sets what only the server may set on creation, and clears what the client may not.
    fn prepare_create(&self, _ctx: &RequestContext, _object: &mut Value) -> Result<(), Failure> {
        Ok(())
    }

    /// The same for a write to the main resource of an object that exists. `status` is already put back where the
    /// kind has a status subresource.
    fn prepare_update(
        &self,
        _ctx: &RequestContext,
        _new: &mut Value,
        _old: &Value,
    ) -> Result<(), Failure> {
        Ok(())
    }

    fn validate(&self, _object: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// Runs beside `validate` when there is an older state: immutable fields, transitions.
    fn validate_update(&self, _new: &Value, _old: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// A write that changes only what is volatile (a lease's renewal): held in memory, checkpointed coarsely, and no
    /// new resourceVersion.
    fn is_volatile(&self, _new: &Value, _old: &Value) -> bool {
        false
    }

    /// Whether the change from `old` to `new` counts as a new generation. Default: anything outside `metadata` and
    /// `status`.
    fn bumps_generation(&self, new: &Value, old: &Value) -> bool {
        let content = |object: &Value| {
            object.as_object().map(|fields| {
                fields
                    .iter()
                    .filter(|(name, _)| {
                        !matches!(name.as_str(), "metadata" | "status" | "apiVersion" | "kind")
                    })
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect::<Vec<_>>()
            })
        };
        content(new) != content(old)
    }

    /// May this object be deleted at all? (`default` and the `kube-` namespaces may not.)
    fn validate_delete(&self, _ctx: &RequestContext, _object: &Value) -> Result<(), Failure> {
        Ok(())
    }

    /// What a DELETE does beyond the general rule, e.g. a namespace turns Terminating. Called when the object gets its
    /// deletionTimestamp.
    fn begin_delete(&self, _object: &mut Value) {}

    /// Kinds whose dependents stay when a DELETE does not say what becomes of them: the text of the warning that goes
    /// with it.
    fn orphans_by_default(&self) -> Option<&'static str> {
        None
    }

    /// Whether an object that is being deleted has to stay although it has no finalizers in its metadata (a namespace
    /// that still has some in its spec).
    fn holds_deletion(&self, _object: &Value) -> bool {
        false
    }
}

/// A strategy without any hook.
pub struct Plain;
impl Strategy for Plain {}

/// A part of an object with a path, and rights, of its own.
#[derive(Clone)]
pub struct Subresource {
    pub name: &'static str,
    pub kind: SubresourceKind,
}

#[derive(Clone)]
pub enum SubresourceKind {
    /// `/status`: writes take `status` alone, writes to the main resource leave it.
    Status,
    /// `/scale` in `autoscaling/v1` shape.
    Scale {
        spec_replicas: &'static str,
        status_replicas: &'static str,
        label_selector: Option<&'static str>,
    },
    /// GET reads the object, writes go through this function: (request body, stored object) -> object to store.
    Part(fn(&RequestContext, &Value, &Value) -> Result<Value, Failure>),
    /// POST answers something computed and stores nothing (`serviceaccounts/token`).
    Action(Arc<dyn Review>),
}

/// A request that is answered and not stored: access reviews, token requests.
pub trait Review: Send + Sync {
    /// `body` is the decoded request; the answer goes out with 201.
    fn review(&self, ctx: RequestContext, body: Value) -> BoxFuture<'_, Result<Value, Failure>>;
}

/// How objects of a kind come to be.
#[derive(Clone)]
pub enum Storage {
    /// In the store, with all verbs.
    Stored,
    /// POST only, answered by a review.
    Review(Arc<dyn Review>),
}

/// Where a selectable field is found.
#[derive(Clone, Copy, Debug)]
pub struct FieldPlace {
    /// The selectable field.
    pub field: &'static str,
    /// The dotted path in the object.
    pub path: &'static str,
    /// What it is compared as when it is absent.
    pub absent: &'static str,
}

/// Decodes a kind's protobuf message into its JSON object, or says what is wrong with it.
pub type ProtobufDecoder = fn(&[u8]) -> Result<Value, String>;

/// One kind in one version.
#[derive(Clone)]
pub struct Kind {
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub singular: &'static str,
    pub short_names: &'static [&'static str],
    pub categories: &'static [&'static str],
    pub scope: KindScope,
    pub names: NameRule,
    pub columns: Vec<Column>,
    pub subresources: Vec<Subresource>,
    /// Field selectors beyond `metadata.name` and `metadata.namespace`, as dotted paths (`status.phase`).
    pub selectable_fields: &'static [&'static str],
    /// Those of them that lie elsewhere than their name says, or that are not empty when absent.
    pub field_places: &'static [FieldPlace],
    pub strategy: Arc<dyn Strategy>,
    pub storage: Storage,
    /// Kubernetes' own kinds: strategic merge patch is offered, list items carry no kind, and kind and apiVersion may
    /// be left out of a body. The others behave as custom resources do.
    pub builtin: bool,
    /// `metadata.generation` is kept by the server.
    pub generation: bool,
    /// PUT without a resourceVersion overwrites.
    pub unconditional_update: bool,
    /// PUT on a name that is not there creates it.
    pub create_on_update: bool,
    /// DELETE answers the object and not a Status.
    pub delete_answers_object: bool,
    /// DELETE on the collection is served. Namespaces do not have it.
    pub delete_collection: bool,
    /// What server-side apply and strategic merge go by. `None`: all lists are atomic, all maps granular.
    pub schema: Option<TypeRef>,
    /// Decodes the kind's protobuf message, without its envelope, into the JSON object. `None`: JSON and YAML bodies only.
    pub protobuf: Option<ProtobufDecoder>,
}

impl Kind {
    /// A stored, namespaced kind with nothing special; the fields are public for the rest.
    pub fn new(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
        singular: &'static str,
    ) -> Self {
        Self {
            group,
            version,
            kind,
            plural,
            singular,
            short_names: &[],
            categories: &[],
            scope: KindScope::Namespaced,
            names: NameRule::DnsSubdomain,
            columns: vec![Column {
                name: "Age",
                type_: "date",
                priority: 0,
                description: "Time since the object was created.",
                cell: Cell::Age,
            }],
            subresources: Vec::new(),
            selectable_fields: &[],
            field_places: &[],
            strategy: Arc::new(Plain),
            storage: Storage::Stored,
            builtin: false,
            generation: true,
            unconditional_update: false,
            create_on_update: false,
            delete_answers_object: false,
            delete_collection: true,
            schema: None,
            protobuf: None,
        }
    }

    pub fn resource(&self) -> Resource {
        Resource::new(self.group, self.plural)
    }

    /// `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.into()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources
            .iter()
            .find(|subresource| subresource.name == name)
    }

    /// Where a selectable field is found: by default where its name says, and empty when absent.
    pub fn field_place(&self, field: &'static str) -> FieldPlace {
        let place = self.field_places.iter().find(|place| place.field == field);
        place.copied().unwrap_or(FieldPlace {
            field,
            path: field,
            absent: "",
        })
    }

    /// The merge schema; untyped when the kind has none.
    pub fn merge_schema(&self) -> TypeRef {
        self.schema.clone().unwrap_or_else(TypeRef::untyped)
    }

    pub fn has_status(&self) -> bool {
        self.subresources
            .iter()
            .any(|subresource| matches!(subresource.kind, SubresourceKind::Status))
    }
}

/// The kinds that a server serves. Kinds may come and go while it runs.
#[derive(Default)]
pub struct Registry {
    table: RwLock<Arc<Table>>,
}

/// One state of the registry.
#[derive(Default)]
pub struct Table {
    /// In the order of registration.
    pub kinds: Vec<Arc<Kind>>,
    by_path: HashMap<(String, String, String), Arc<Kind>>,
}

impl Table {
    /// By group, version and plural: what a URL names.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        self.by_path
            .get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// By group and kind, in the first registered version: what a reference names.
    pub fn find_kind(&self, group: &str, kind: &str) -> Option<&Arc<Kind>> {
        self.kinds
            .iter()
            .find(|candidate| candidate.group == group && candidate.kind == kind)
    }

    /// By the store's name for it.
    pub fn find_resource(&self, resource: &Resource) -> Option<&Arc<Kind>> {
        self.kinds
            .iter()
            .find(|kind| kind.group == resource.group() && kind.plural == resource.plural())
    }
}

impl Registry {
    pub fn new(kinds: impl IntoIterator<Item = Kind>) -> Self {
        let registry = Self::default();
        registry.register(kinds);
        registry
    }

    /// Adds kinds; one of the same group, version and plural is replaced.
    pub fn register(&self, kinds: impl IntoIterator<Item = Kind>) {
        let mut table = self.table.write();
        let mut all = table.kinds.clone();
        for kind in kinds {
            let kind = Arc::new(kind);
            match all.iter().position(|old| {
                (old.group, old.version, old.plural) == (kind.group, kind.version, kind.plural)
            }) {
                Some(place) => all[place] = kind,
                None => all.push(kind),
            }
        }
        let by_path = all
            .iter()
            .map(|kind| {
                (
                    (
                        kind.group.to_owned(),
                        kind.version.to_owned(),
                        kind.plural.to_owned(),
                    ),
                    Arc::clone(kind),
                )
            })
            .collect();
        *table = Arc::new(Table {
            kinds: all,
            by_path,
        });
    }

    pub fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.read())
    }
}
