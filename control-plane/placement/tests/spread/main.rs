//! Properties of the spread engine.

mod instances;
mod sequence;
