//! Works: what the control plane placed here, brought to the member, kept as it should be, and reported back.
//!
//! Pure: [`manifest`] (keys, marks, order), [`claim`] (whose an object is), [`projection`] (whether it drifted),
//! [`reflect`] and [`health`] (what is reported), [`verdict`] (the Work's status). Shells: [`reconcile`] (one Work),
//! [`engine`] (all of them), [`member`] (paths and calls).

mod claim;
mod engine;
mod health;
mod manifest;
mod member;
#[cfg(test)]
mod passes;
mod projection;
mod reconcile;
mod reflect;
#[cfg(test)]
mod vectors;
mod verdict;

pub use engine::Engine;
