//! How answers look: whole objects, tables, metadata alone, lists of each.
//!
//! - [`list`]: lists, which copy the stored bytes
//! - [`partial`]: metadata alone
//! - [`table`]: rows and columns

pub(crate) mod list;
pub(crate) mod partial;
pub mod table;

use bytes::Bytes;
use serde_json::Value;

use crate::{
    failure::Failure,
    kind::Kind,
    object::encode,
    request::accept::{Accept, Encoding, Shape},
    verb::{Answer, Shown, list::Page},
};

/// An encoded answer.
pub(crate) enum Rendered {
    Whole(Bytes),
    List(list::ListBytes),
}

/// How the client wants to see things.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub accept: Accept,
    pub pretty: bool,
    pub include: table::Include,
}

/// Encodes an answer about one object.
pub(crate) fn answer(
    answer: &Answer,
    kind: &Kind,
    view: View,
    now: jiff::Timestamp,
) -> Result<Rendered, Failure> {
    let plain = view.accept.encoding == Encoding::Json && !view.pretty;
    match (view.accept.shape, &answer.shown) {
        (Shape::Whole, Shown::Stored(object)) if plain => Ok(Rendered::Whole(encode::in_version(
            object,
            &encode::head(kind),
        ))),
        (Shape::Whole, Shown::Stored(object)) => value(&encode::decode(object, kind), view),
        (Shape::Partial(version), Shown::Stored(object)) => {
            value(&partial::stored(object, version), view)
        }
        // A Status, and what a review answers, has no other shape.
        (Shape::Partial(version), Shown::Value(shown)) if is_of(shown, kind) => {
            value(&partial::value(shown, version), view)
        }
        (Shape::Table(version), Shown::Stored(object)) => {
            let object = encode::decode(object, kind);
            value(&table::one(&object, kind, version, view.include, now), view)
        }
        (Shape::Table(version), Shown::Value(shown)) if is_of(shown, kind) => {
            value(&table::one(shown, kind, version, view.include, now), view)
        }
        (_, Shown::Value(shown)) => value(shown, view),
    }
}

fn is_of(shown: &Value, kind: &Kind) -> bool {
    shown["kind"] == kind.kind
}

/// Encodes a value.
pub(crate) fn value(value: &Value, view: View) -> Result<Rendered, Failure> {
    encoded(value, view.accept.encoding, view.pretty).map(Rendered::Whole)
}

/// The text of a value.
pub(crate) fn encoded(value: &Value, encoding: Encoding, pretty: bool) -> Result<Bytes, Failure> {
    let text = match encoding {
        Encoding::Json if pretty => serde_json::to_vec_pretty(value).map(|mut text| {
            text.push(b'\n');
            text
        }),
        Encoding::Json => serde_json::to_vec(value),
        Encoding::Yaml => {
            return serde_saphyr::to_string(value)
                .map(Bytes::from)
                .map_err(|error| Failure::internal(error.to_string()));
        }
    };
    text.map(Bytes::from)
        .map_err(|error| Failure::internal(error.to_string()))
}

/// Encodes a page of a list.
pub(crate) fn page(
    page: Page,
    kind: &Kind,
    view: View,
    now: jiff::Timestamp,
) -> Result<Rendered, Failure> {
    match view.accept.shape {
        Shape::Whole => {
            let list = list::ListBytes::new(page, kind);
            if view.accept.encoding == Encoding::Json && !view.pretty {
                return Ok(Rendered::List(list));
            }
            let whole: Value = serde_json::from_slice(&list.concat())
                .map_err(|error| Failure::internal(error.to_string()))?;
            value(&whole, view)
        }
        Shape::Partial(version) => value(&partial::list(&page, version), view),
        Shape::Table(version) => value(&table::list(&page, kind, version, view.include, now), view),
    }
}

/// `metadata` of a list: `continue` is there only while there is more.
pub(crate) fn list_metadata(page: &Page) -> Value {
    let mut metadata = serde_json::json!({"resourceVersion": page.revision.to_string()});
    if !page.continue_.is_empty() {
        metadata["continue"] = page.continue_.as_str().into();
    }
    if let Some(remaining) = page.remaining {
        metadata["remainingItemCount"] = remaining.into();
    }
    metadata
}
