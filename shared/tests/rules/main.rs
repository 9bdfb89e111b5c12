//! Tables and properties of the rules in this crate.

mod quantity;
