//! `metadata.managedFields`: who owns which fields, and how writes other than applies move ownership.
//!
//! An entry is an owner. Its identity is (manager, operation, subresource) and, for updates, the API version. Rules of
//! [`track_update`]:
//! 1. What is added or changed goes to the writer's Update entry and is taken from every other entry.
//! 2. What is removed is taken from every entry. What stays the same changes no ownership.
//! 3. An entry that owns nothing disappears.
//! 4. Beyond [`MAX_UPDATE_ENTRIES`] the oldest Update entries are merged, by API version, into [`OLD_UPDATES`].
//! 5. An object that has a past but no entries is not tracked until its next apply.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    compare::compare,
    fieldset::{FieldSet, FieldsError},
    reset,
};
use crate::schema::TypeRef;

/// Update entries that an object has at most.
pub const MAX_UPDATE_ENTRIES: usize = 10;
/// The manager of entries that were merged because there were too many.
pub const OLD_UPDATES: &str = "ancient-changes";
/// The manager of everything that was there before the first apply to an untracked object.
pub const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Who writes, through what, and when.
#[derive(Clone, Debug)]
pub struct Manager {
    /// The `fieldManager` parameter or what stands for it. Empty: `unknown`.
    pub name: String,
    /// `status`, `scale`, …: the subresource written to.
    pub subresource: Option<String>,
    /// Of the request: `apps/v1`.
    pub api_version: String,
    pub now: Timestamp,
    /// The kind has a `/status` subresource: writes to the object own no status, writes to the status nothing else.
    pub has_status: bool,
}

impl Manager {
    pub(super) fn name(&self) -> &str {
        if self.name.is_empty() {
            "unknown"
        } else {
            &self.name
        }
    }

    fn time(&self) -> String {
        self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

/// How an entry came to own its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// The fields of an entry, parsed when somebody asks.
#[derive(Clone, Debug)]
enum Fields {
    /// As this module wrote them.
    Written(Value),
    Set(FieldSet),
}

/// One owner.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub manager: String,
    pub operation: Operation,
    pub api_version: String,
    pub subresource: String,
    pub time: Option<String>,
    fields: Fields,
}

impl Entry {
    fn decode(entry: Value, is_ours: bool) -> Result<Self, FieldsError> {
        let Value::Object(mut entry) = entry else {
            return Err(FieldsError::new("an entry is no object"));
        };
        let mut text = |name: &str| match entry.remove(name) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        let operation = match text("operation").as_str() {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return Err(FieldsError::new("operation")),
        };
        if text("fieldsType") != "FieldsV1" {
            return Err(FieldsError::new("fieldsType"));
        }
        let (manager, api_version, subresource) =
            (text("manager"), text("apiVersion"), text("subresource"));
        let time = Some(text("time")).filter(|time| !time.is_empty());
        let fields = match entry.remove("fieldsV1") {
            Some(fields) if is_ours => Fields::Written(fields),
            Some(fields) => Fields::Set(FieldSet::from_fields_v1(&fields)?),
            None => Fields::Set(FieldSet::default()),
        };
        Ok(Self {
            manager,
            operation,
            api_version,
            subresource,
            time,
            fields,
        })
    }

    fn encode(self) -> Value {
        let mut out = Map::new();
        out.insert("manager".into(), self.manager.into());
        out.insert("operation".into(), self.operation.as_str().into());
        out.insert("apiVersion".into(), self.api_version.into());
        if let Some(time) = self.time {
            out.insert("time".into(), time.into());
        }
        out.insert("fieldsType".into(), "FieldsV1".into());
        let fields = match self.fields {
            Fields::Written(fields) => fields,
            Fields::Set(set) => set.to_fields_v1(),
        };
        out.insert("fieldsV1".into(), fields);
        if !self.subresource.is_empty() {
            out.insert("subresource".into(), self.subresource.into());
        }
        Value::Object(out)
    }

    /// The parsed fields. What cannot be parsed owns nothing.
    pub(super) fn set(&mut self) -> &mut FieldSet {
        if let Fields::Written(fields) = &self.fields {
            self.fields = Fields::Set(FieldSet::from_fields_v1(fields).unwrap_or_default());
        }
        match &mut self.fields {
            Fields::Set(set) => set,
            Fields::Written(_) => unreachable!("parsed above"),
        }
    }

    fn meets(&self, fields: &FieldSet) -> bool {
        match &self.fields {
            Fields::Written(written) => fields.meets(written),
            Fields::Set(set) => !set.intersection(fields).is_empty(),
        }
    }

    fn is_empty(&self) -> bool {
        match &self.fields {
            Fields::Written(written) => written.as_object().is_none_or(Map::is_empty),
            Fields::Set(set) => set.is_empty(),
        }
    }

    /// The identity in the order in which the reference server sorts identities.
    pub(super) fn identity(&self) -> String {
        let mut identity = json!({"manager": self.manager}).to_string();
        identity.pop();
        identity.push_str(",\"operation\":\"");
        identity.push_str(self.operation.as_str());
        identity.push('"');
        if self.operation == Operation::Update {
            identity.push_str(",\"apiVersion\":\"");
            identity.push_str(&self.api_version);
            identity.push('"');
        }
        if !self.subresource.is_empty() {
            identity.push_str(",\"subresource\":\"");
            identity.push_str(&self.subresource);
            identity.push('"');
        }
        identity.push('}');
        identity
    }

    fn is_same_owner(&self, other: &Self) -> bool {
        self.operation == other.operation
            && self.manager == other.manager
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    fn seconds(&self) -> i64 {
        self.time
            .as_deref()
            .and_then(|time| time.parse::<Timestamp>().ok())
            .map_or(0, Timestamp::as_second)
    }
}

/// All owners of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Owners {
    pub entries: Vec<Entry>,
}

impl Owners {
    /// Reads managedFields. `is_ours`: they are as [`Owners::encode`] wrote them, and need no parsing yet.
    pub(super) fn decode(list: Value, is_ours: bool) -> Result<Self, FieldsError> {
        let Value::Array(list) = list else {
            return Ok(Self::default());
        };
        let mut owners = Self {
            entries: Vec::with_capacity(list.len() + 1),
        };
        for entry in list {
            let entry = Entry::decode(entry, is_ours)?;
            match owners
                .entries
                .iter()
                .position(|other| other.is_same_owner(&entry))
            {
                Some(place) => owners.entries[place] = entry,
                None => owners.entries.push(entry),
            }
        }
        Ok(owners)
    }

    /// The owners that a stored object names.
    pub(super) fn of(object: &Value) -> Self {
        let list = &object["metadata"]["managedFields"];
        Self::decode(list.clone(), true).unwrap_or_default()
    }

    /// The list, in the order of the reference server; `None` when nobody owns anything.
    pub(super) fn encode(mut self) -> Option<Value> {
        self.entries.retain(|entry| !entry.is_empty());
        if self.entries.is_empty() {
            return None;
        }
        self.entries.sort_by_cached_key(|entry| {
            (
                entry.operation,
                entry.seconds(),
                entry.manager.clone(),
                entry.api_version.clone(),
                entry.subresource.clone(),
            )
        });
        Some(self.entries.into_iter().map(Entry::encode).collect())
    }

    /// The entry of this writer, made when it is missing.
    pub(super) fn entry(&mut self, manager: &Manager, operation: Operation) -> usize {
        let wanted = Entry {
            manager: manager.name().into(),
            operation,
            api_version: manager.api_version.clone(),
            subresource: manager.subresource.clone().unwrap_or_default(),
            time: None,
            fields: Fields::Set(FieldSet::default()),
        };
        let found = self
            .entries
            .iter()
            .position(|entry| entry.is_same_owner(&wanted));
        found.unwrap_or_else(|| {
            self.entries.push(wanted);
            self.entries.len() - 1
        })
    }

    /// Takes fields from every entry but one.
    pub(super) fn take(&mut self, fields: &FieldSet, except: Option<usize>) {
        if fields.is_empty() {
            return;
        }
        for (place, entry) in self.entries.iter_mut().enumerate() {
            if Some(place) != except && entry.meets(fields) {
                let set = entry.set();
                *set = set.difference(fields);
            }
        }
    }

    /// An update's changes under rules 1 to 3.
    pub(super) fn update(&mut self, ty: &TypeRef, old: &Value, new: &Value, manager: &Manager) {
        let comparison = compare(ty.ty(), old, new).without(&reset::fields(ty, manager));
        let untracked = reset::untracked();
        let changed = comparison
            .added
            .union(&comparison.modified)
            .difference(untracked);
        self.take(&comparison.removed.difference(untracked), None);
        if changed.is_empty() {
            return;
        }
        let own = self.entry(manager, Operation::Update);
        self.take(&changed, Some(own));
        let entry = &mut self.entries[own];
        let set = entry.set();
        *set = set.union(&changed);
        entry.time = Some(manager.time());
        self.entries.retain(|entry| !entry.is_empty());
        self.cap();
    }

    /// Rule 4.
    fn cap(&mut self) {
        let mut oldest = (0..self.entries.len())
            .filter(|place| self.entries[*place].operation == Operation::Update)
            .collect::<Vec<_>>();
        let mut length = oldest.len();
        if length <= MAX_UPDATE_ENTRIES {
            return;
        }
        oldest.sort_by_cached_key(|place| {
            let entry = &self.entries[*place];
            (entry.seconds(), entry.identity())
        });
        // The first entry of a version waits here until a second one comes.
        let mut buckets: Vec<(String, usize)> = Vec::new();
        let mut merged = Vec::new();
        for place in oldest {
            if length <= MAX_UPDATE_ENTRIES {
                break;
            }
            let version = self.entries[place].api_version.clone();
            let Some((_, bucket)) = buckets.iter().find(|(other, _)| *other == version) else {
                buckets.push((version, place));
                continue;
            };
            let bucket = *bucket;
            let set = self.entries[place].set().clone();
            let time = self.entries[place].time.clone();
            let into = &mut self.entries[bucket];
            into.manager = OLD_UPDATES.into();
            into.subresource = String::new();
            into.time = time;
            let into = into.set();
            *into = into.union(&set);
            merged.push(place);
            length -= 1;
        }
        let mut place = 0;
        self.entries.retain(|_| {
            place += 1;
            !merged.contains(&(place - 1))
        });
    }

    /// Sets the owner's time to that of the write.
    pub(super) fn touch(&mut self, place: usize, manager: &Manager) {
        self.entries[place].time = Some(manager.time());
    }

    /// Writes the list into an object's metadata.
    pub(super) fn store(self, object: &mut Value) {
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
            return;
        };
        match self.encode() {
            Some(list) => metadata.insert("managedFields".into(), list),
            None => metadata.remove("managedFields"),
        };
    }
}

/// Whether a request's managedFields ask to forget all owners: `[]` or `[{}]`.
fn is_reset(list: &Value) -> bool {
    match list.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([one]) => one.as_object().is_some_and(Map::is_empty),
        _ => false,
    }
}

/// Brings `new`'s managedFields up to date for a write that is no apply: create (`old` is `None`), PUT, and the other
/// patches. `new` may carry managedFields of the request: they replace the stored ones when they can be read, and are ignored
/// on subresources. Call it last, with the object as it will be stored.
pub fn track_update(ty: &TypeRef, old: Option<&Value>, new: &mut Value, manager: &Manager) {
    let sent = new
        .get_mut("metadata")
        .and_then(Value::as_object_mut)
        .and_then(|metadata| metadata.remove("managedFields"))
        .unwrap_or(Value::Null);
    let none = Value::Null;
    let stored = old.map_or(&none, |old| &old["metadata"]["managedFields"]);
    let of_stored = || Owners::decode(stored.clone(), true).unwrap_or_default();
    let mut owners = if sent == *stored {
        Owners::decode(sent, true).unwrap_or_default()
    } else if manager.subresource.is_some() {
        of_stored()
    } else if is_reset(&sent) {
        Owners::default()
    } else {
        match Owners::decode(sent, false) {
            Ok(owners) if !owners.entries.is_empty() => owners,
            _ => of_stored(),
        }
    };
    let has_past = old.is_some_and(|old| {
        old["metadata"]["uid"]
            .as_str()
            .is_some_and(|uid| !uid.is_empty())
    });
    if owners.entries.is_empty() && has_past {
        return;
    }
    let empty = Value::Object(Map::new());
    owners.update(ty, old.unwrap_or(&empty), new, manager);
    owners.store(new);
}

/// The same for a write through `/scale`, which changed nothing but the replicas at `path` (`["spec", "replicas"]`). As on
/// the reference server, the entry that owns them then has no time, and replicas that nobody owned stay nobody's.
pub fn track_scale(old: &Value, new: &mut Value, path: &[&str], manager: &Manager) {
    let at = |object: &Value| {
        path.iter()
            .fold(object.clone(), |at, name| at[*name].clone())
    };
    let mut owners = Owners::of(old);
    let replicas = FieldSet::of_fields(&[path]);
    let is_owned = owners.entries.iter().any(|entry| entry.meets(&replicas));
    if !is_owned || at(old) == at(new) {
        return;
    }
    let own = owners.entry(manager, Operation::Update);
    owners.take(&replicas, Some(own));
    let entry = &mut owners.entries[own];
    *entry.set() = replicas;
    entry.time = None;
    owners.store(new);
}
