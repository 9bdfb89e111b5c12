//! The protocol of Evenkeel: what the control plane and the agents say to each other, as plain types and rules.
//!
//! Nothing here does I/O, waits or reads a clock.
//!
//! Kinds: [`cluster`], [`work`], [`binding`], [`policy`] with [`placement`], [`overrides`].
//! Words: [`names`] of derived objects, [`stamps`] (labels, annotations, conditions), [`identity`] of agents.
//! Input: [`read`] finds wrong types and unknown fields.
//! Rules: [`validate`], [`condition`], [`taint`], [`quantity`], [`selector`], [`syntax`] of names, and [`field`] for what is wrong with an object.
#![deny(missing_docs)]

pub mod binding;
pub mod cluster;
pub mod condition;
#[expect(
    missing_docs,
    reason = "variants are named after the API's own reasons"
)]
pub mod field;
pub mod identity;
pub mod names;
pub mod overrides;
pub mod placement;
pub mod policy;
pub mod quantity;
pub mod read;
pub mod selector;
pub mod stamps;
pub mod syntax;
pub mod taint;
pub mod validate;
mod wire;
pub mod work;
