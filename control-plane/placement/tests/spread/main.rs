//! Properties of the spread engine.

mod absurd;
mod explanation;
mod instances;
mod oracle;
mod plans;
mod sequence;
