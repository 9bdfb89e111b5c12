//! Server-side apply.
//!
//! 1. The configuration must fit the schema and carry no managedFields.
//! 2. An object that was never tracked gets an owner for what is there.
//! 3. The configuration is merged into the live object.
//! 4. What this manager's last configuration had and this one has not, and nobody else owns, is removed.
//! 5. A changed field that somebody else owns is a conflict; with `force` it is taken.
//! 6. The manager's entry is what the configuration has. Nothing but times changed: the times stay.

use serde_json::{Map, Value, json};

use super::{
    PatchError,
    combine::{merge, remove},
    compare::compare,
    fieldset::{FieldSet, PathText},
    managed::{BEFORE_FIRST_APPLY, Entry, Manager, Operation, Owners},
    path::equal,
    reset,
    typed::{field_set, validate},
};
use crate::schema::{Form, Ty, TypeRef};

/// The annotation in which kubectl's client-side apply keeps its last configuration.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The manager that kubectl's server-side apply uses.
const KUBECTL: &str = "kubectl";
/// Annotations may not be longer than this, all together.
const MAX_ANNOTATIONS: usize = 256 << 10;

/// A field that somebody else owns with another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// `"m1"`, `"m2" with subresource "status" using apps/v1`.
    pub manager: String,
    /// `.spec.containers[name="a"].image`
    pub path: String,
}

/// An apply that failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ApplyError {
    /// 409, by manager in the reference server's order.
    #[error("{}", conflict_text(.0))]
    Conflicts(Vec<Conflict>),
    #[error(transparent)]
    Invalid(#[from] PatchError),
}

/// Applies `config` to `live`. The result has its managedFields; the caller validates and stores it, or finds it equal to
/// `live` and does not. `default` fills in what the configuration leaves out.
pub fn apply(
    ty: &TypeRef,
    live: Option<&Value>,
    config: &Value,
    manager: &Manager,
    force: bool,
    default: &dyn Fn(&mut Value),
) -> Result<Value, ApplyError> {
    check(ty, config)?;
    let mut state = State::new(ty, live, config, manager);
    let own = state.owners.entry(manager, Operation::Apply);
    let last = state.owners.entries[own].set().clone();
    let applied = field_set(ty.ty(), config).without(&reset::fields(ty, manager));
    let set = applied.difference(reset::untracked());

    let mut new = merge(ty.ty(), &state.live, config);
    if !last.is_subset(&set) {
        let mut managed = applied;
        for (place, entry) in state.owners.entries.iter_mut().enumerate() {
            if place != own {
                managed = managed.union(entry.set());
            }
        }
        new = prune(ty.ty(), new, &last, &managed);
    }

    let comparison = compare(ty.ty(), &state.live, &new).without(&reset::fields(ty, manager));
    let changed = comparison.added.union(&comparison.modified);
    if !force {
        let allowed = if manager.name() == KUBECTL {
            allowed_by_last_applied(ty, &state.live)
        } else {
            FieldSet::default()
        };
        let conflicts = state.conflicts(own, &changed.difference(&allowed));
        if !conflicts.is_empty() {
            return Err(ApplyError::Conflicts(list(conflicts)));
        }
    }
    state.owners.take(&changed, Some(own));
    state.owners.take(&comparison.removed, Some(own));
    let is_same_set = *state.owners.entries[own].set() == set;
    *state.owners.entries[own].set() = set;
    manager
        .api_version
        .clone_into(&mut state.owners.entries[own].api_version);
    if equal(&new, &state.live) {
        new = state.live.clone();
        if manager.name() == KUBECTL {
            sync_last_applied(&mut new, config);
        }
    } else {
        if ty.is_builtin() {
            drop_nulls(ty.ty(), &mut new);
        }
        if manager.name() == KUBECTL {
            sync_last_applied(&mut new, config);
        }
        default(&mut new);
        // Times alone are no change.
        if !(is_same_set && equal(&new, &state.live)) {
            state.owners.touch(own, manager);
        }
    }
    state.owners.store(&mut new);
    Ok(new)
}

/// Rule 1.
fn check(ty: &TypeRef, config: &Value) -> Result<(), PatchError> {
    let metadata = &config["metadata"];
    if !metadata["managedFields"].is_null() {
        return Err(PatchError::BadRequest(
            "metadata.managedFields must be nil".into(),
        ));
    }
    validate(ty.ty(), config).map_err(|why| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let version = text(&config["apiVersion"]);
        let group = if version.contains('/') { "" } else { "/" };
        PatchError::Internal(format!(
            "failed to create typed patch object ({}/{}; {group}{version}, Kind={}): {why}",
            text(&metadata["namespace"]),
            text(&metadata["name"]),
            text(&config["kind"]),
        ))
    })
}

/// The live object without its managedFields, and who owns it.
struct State {
    live: Value,
    owners: Owners,
}

impl State {
    fn new(ty: &TypeRef, live: Option<&Value>, config: &Value, manager: &Manager) -> Self {
        let Some(object) = live else {
            return Self {
                live: json!({"apiVersion": config["apiVersion"], "kind": config["kind"]}),
                owners: Owners::default(),
            };
        };
        let mut owners = Owners::of(object);
        let live = without_managed_fields(object);
        if owners.entries.is_empty() {
            let first = Manager {
                name: BEFORE_FIRST_APPLY.into(),
                ..manager.clone()
            };
            owners.update(ty, &Value::Object(Map::new()), &live, &first);
        }
        Self { live, owners }
    }

    /// Changed fields that others own, by owner.
    fn conflicts(&mut self, own: usize, changed: &FieldSet) -> Vec<(&Entry, FieldSet)> {
        let mut found = Vec::new();
        for (place, entry) in self.owners.entries.iter_mut().enumerate() {
            if place != own {
                let fields = entry.set().intersection(changed);
                if !fields.is_empty() {
                    found.push((&*entry, fields));
                }
            }
        }
        found
    }
}

fn without_managed_fields(object: &Value) -> Value {
    let copy = |fields: &Map<String, Value>, leave: &str| {
        fields
            .iter()
            .filter(|(name, _)| *name != leave)
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect::<Map<_, _>>()
    };
    let Some(fields) = object.as_object() else {
        return object.clone();
    };
    let mut out = copy(fields, "metadata");
    if let Some(metadata) = fields.get("metadata") {
        let metadata = match metadata.as_object() {
            Some(fields) => Value::Object(copy(fields, "managedFields")),
            None => metadata.clone(),
        };
        out.insert("metadata".into(), metadata);
    }
    Value::Object(out)
}

/// Rule 4: of what the last configuration had, removes what nobody owns any more. `managed` is what anybody owns now.
fn prune(ty: Ty<'_>, merged: Value, last: &FieldSet, managed: &FieldSet) -> Value {
    let last = last.with_named_fields(ty);
    let all = field_set(ty, &merged).with_named_fields(ty);
    // Without everything that the last configuration had; then with what is owned put back, containers included.
    let bare = field_set(ty, &remove(ty, &merged, &last)).with_named_fields(ty);
    let owned = bare.union(&managed.with_named_fields(ty));
    let kept = remove(ty, &merged, &all.difference(&owned));
    // What went although the last configuration did not have it stays: it hung below something that is still there.
    let kept = field_set(ty, &kept).with_named_fields(ty);
    let gone = all.difference(&kept).intersection(&last);
    if gone.is_empty() {
        return merged;
    }
    remove(ty, &merged, &gone)
}

/// Nulls of typed objects mean absent.
fn drop_nulls(ty: Ty<'_>, value: &mut Value) {
    match ty.form(value) {
        Form::Map(map) => {
            let Some(fields) = value.as_object_mut() else {
                return;
            };
            if map.fields.is_empty() {
                // A map of values: null is the zero value there, not absence.
                return;
            }
            fields.retain(|_, value| !value.is_null());
            for (name, value) in fields {
                drop_nulls(ty.child(map, name), value);
            }
        }
        Form::List(list) => {
            for item in value.as_array_mut().into_iter().flatten() {
                drop_nulls(ty.at(list.element), item);
            }
        }
        Form::Scalar(_) => {}
    }
}

/// What kubectl's client-side apply last set and is still so: its server-side apply may take that over.
fn allowed_by_last_applied(ty: &TypeRef, live: &Value) -> FieldSet {
    let Some(last) = live["metadata"]["annotations"][LAST_APPLIED]
        .as_str()
        .and_then(|text| serde_json::from_str::<Value>(text).ok())
        .filter(|last| validate(ty.ty(), last).is_ok())
    else {
        return FieldSet::default();
    };
    let comparison = compare(ty.ty(), &last, live);
    field_set(ty.ty(), &last)
        .difference(&comparison.modified)
        .difference(&comparison.added)
        .difference(&comparison.removed)
}

/// Keeps the annotation of client-side apply, when there is one, in step with kubectl's server-side apply.
fn sync_last_applied(object: &mut Value, config: &Value) {
    let Some(annotations) = object["metadata"]
        .get_mut("annotations")
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    if annotations
        .get(LAST_APPLIED)
        .and_then(Value::as_str)
        .is_none_or(str::is_empty)
    {
        return;
    }
    let mut config = config.clone();
    if let Some(own) = config["metadata"]
        .get_mut("annotations")
        .and_then(Value::as_object_mut)
    {
        own.remove(LAST_APPLIED);
    }
    // As Go writes JSON: without the characters that mean something in HTML.
    let text = format!("{config}\n")
        .replace('&', "\\u0026")
        .replace('<', "\\u003c")
        .replace('>', "\\u003e");
    let others = annotations
        .iter()
        .filter(|(name, _)| *name != LAST_APPLIED)
        .map(|(name, value)| name.len() + value.as_str().map_or(0, str::len))
        .sum::<usize>();
    if others + LAST_APPLIED.len() + text.len() <= MAX_ANNOTATIONS {
        annotations.insert(LAST_APPLIED.into(), text.into());
    } else {
        annotations.remove(LAST_APPLIED);
    }
}

fn print(entry: &Entry) -> String {
    let through = match entry.subresource.as_str() {
        "" => String::new(),
        subresource => format!(" with subresource {subresource:?}"),
    };
    let version = match entry.operation {
        Operation::Apply => String::new(),
        Operation::Update => format!(" using {}", entry.api_version),
    };
    format!("{:?}{through}{version}", entry.manager)
}

fn list(mut conflicts: Vec<(&Entry, FieldSet)>) -> Vec<Conflict> {
    conflicts.sort_by_cached_key(|(entry, _)| entry.identity());
    let mut out = Vec::new();
    for (entry, fields) in conflicts {
        let manager = print(entry);
        fields.for_each_path(&mut |path| {
            out.push(Conflict {
                manager: manager.clone(),
                path: PathText(path).to_string(),
            });
        });
    }
    out
}

fn conflict_text(conflicts: &[Conflict]) -> String {
    if let [one] = conflicts {
        return format!(
            "Apply failed with 1 conflict: conflict with {}: {}",
            one.manager, one.path
        );
    }
    let mut lines = Vec::new();
    let mut manager = None;
    for conflict in conflicts {
        if manager != Some(&conflict.manager) {
            lines.push(format!("conflicts with {}:", conflict.manager));
            manager = Some(&conflict.manager);
        }
        lines.push(format!("- {}", conflict.path));
    }
    format!(
        "Apply failed with {} conflicts: {}",
        conflicts.len(),
        lines.join("\n")
    )
}
