//! Who owns which field.

use serde_json::Value;

use super::Call;
use crate::{
    failure::Failure,
    object::meta,
    patch::{self, Manager},
    request::query::WriteOptions,
};

fn manager(call: &Call, options: &WriteOptions) -> Manager {
    let name = if options.field_manager.is_empty() {
        &call.manager
    } else {
        &options.field_manager
    };
    Manager {
        name: name.clone(),
        subresource: call.subresource.clone(),
        api_version: call.kind.api_version(),
        now: call.now,
        has_status: call.kind.has_status(),
    }
}

/// Brings `managedFields` up to date for a write that is no apply.
///
/// A renewal by a manager that has an entry already changes what it owns and nothing else, so that all of it stays:
/// renewals are most of what a fleet writes, and comparing them field by field is most of what one would cost.
pub(crate) fn track(call: &Call, options: &WriteOptions, old: Option<&Value>, new: &mut Value) {
    let manager = manager(call, options);
    if let Some(old) = old
        && is_known(old, &manager)
    {
        let sent = new
            .get_mut("metadata")
            .and_then(Value::as_object_mut)
            .and_then(|metadata| metadata.remove("managedFields"));
        meta::copy(new, old, "managedFields");
        if call.kind.strategy.is_volatile(new, old) {
            return;
        }
        match sent {
            Some(sent) => meta::set(new, "managedFields", sent),
            None => meta::remove(new, "managedFields"),
        }
    }
    patch::track_update(&call.kind.merge_schema(), old, new, &manager);
}

fn is_known(old: &Value, manager: &Manager) -> bool {
    meta::list(old, "managedFields").iter().any(|entry| {
        entry["manager"] == manager.name.as_str()
            && entry["operation"] == "Update"
            && entry["apiVersion"] == manager.api_version.as_str()
            && entry["subresource"].as_str() == manager.subresource.as_deref()
    })
}

/// Applies a configuration to an object, or makes the object of it.
pub(crate) fn applied(
    call: &Call,
    options: &WriteOptions,
    live: Option<&Value>,
    config: &Value,
) -> Result<Value, Failure> {
    patch::apply::apply(
        &call.kind.merge_schema(),
        live,
        config,
        &manager(call, options),
        options.force,
        &|object| call.kind.strategy.default(object),
    )
    .map_err(Failure::from)
}
