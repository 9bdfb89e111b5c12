//! Who owns which field.

use serde_json::Value;

use super::Call;
use crate::{object::meta, request::query::WriteOptions};

/// Keeps `managedFields` of an object that a client wrote: what is stored stays when the client leaves it out.
pub(crate) fn track(_call: &Call, _options: &WriteOptions, old: Option<&Value>, new: &mut Value) {
    let given = !meta::list(new, "managedFields").is_empty();
    if let Some(old) = old.filter(|_| !given) {
        meta::copy(new, old, "managedFields");
    }
}
