//! What Pods and pod templates have in common: defaults and the rules that every template kind checks.

mod defaults;
mod rules;

pub use defaults::{canonical, pod, template};
pub use rules::{selected, spec};
