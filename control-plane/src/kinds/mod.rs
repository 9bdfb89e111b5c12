//! What the control plane serves: Kubernetes' own kinds, most of them as templates, and the kinds of the fleet.
//!
//! A file per API group; each answers a list of [`Kind`]s with their columns, defaults and rules. Nothing here stores,
//! waits or reads a clock.
//!
//! - [`look`], [`print`], [`column`], [`rules`]: reading objects, printing cells, rules that several kinds share
//! - [`pod`]: pod templates
//! - [`schema`]: what patches and applies go by
//! - [`attributes`]: labels and selectable fields of stored objects, fast

mod apps;
pub mod attributes;
mod autoscaling;
mod batch;
mod certificates;
mod column;
mod coordination;
mod core;
mod events;
mod fleet;
mod look;
mod networking;
mod pod;
mod policy;
mod print;
mod rbac;
mod rules;
mod scheduling;
pub mod schema;
mod storage;

use evenkeel_api::kind::{Kind, Subresource, SubresourceKind};
use evenkeel_store::AttributesOf;

pub use fleet::kinds as fleet;

/// Kubernetes' own kinds, in the order of their groups' priority. Access reviews are not among them.
pub fn kubernetes() -> Vec<Kind> {
    [
        core::kinds(),
        apps::kinds(),
        batch::kinds(),
        networking::kinds(),
        autoscaling::kinds(),
        policy::kinds(),
        storage::kinds(),
        scheduling::kinds(),
        coordination::kinds(),
        certificates::kinds(),
        rbac::kinds(),
        events::kinds(),
    ]
    .into_iter()
    .flatten()
    .map(|kind| Kind {
        schema: schema::of(&kind),
        protobuf: evenkeel_api::protobuf::decoder(&kind.api_version(), kind.kind),
        ..kind
    })
    .collect()
}

/// How attributes are read when a store is opened that holds these kinds.
pub fn attributes() -> AttributesOf {
    let kinds = kubernetes().into_iter().chain(fleet()).collect::<Vec<_>>();
    attributes::attributes_of(&kinds)
}

/// A stored kind of Kubernetes' own: no generation unless it is said.
fn builtin(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
) -> Kind {
    Kind {
        builtin: true,
        generation: false,
        columns: vec![column::age()],
        ..Kind::new(group, version, kind, plural, singular)
    }
}

/// The status subresource.
fn status() -> Subresource {
    Subresource {
        name: "status",
        kind: SubresourceKind::Status,
    }
}

#[cfg(test)]
mod tests;
