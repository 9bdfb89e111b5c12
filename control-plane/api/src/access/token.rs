//! Secrets that are compared and never shown.

use std::fmt;

use sha2::{Digest, Sha256};

/// A secret: printed as `[redacted]`, compared in time that says nothing of where two differ.
#[derive(Clone)]
pub struct SecretText(String);

impl SecretText {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself. Its callers print it to the one who asked for it, or send it, and nothing else.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Compares digests, so that neither length nor content of what is stored shows in the time it takes.
    pub fn matches(&self, other: &str) -> bool {
        let (a, b) = (
            Sha256::digest(self.0.as_bytes()),
            Sha256::digest(other.as_bytes()),
        );
        a.iter().zip(b.iter()).fold(0_u8, |difference, (a, b)| {
            std::hint::black_box(difference | (a ^ b))
        }) == 0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_same_text_only_and_prints_nothing_of_it() {
        let secret = SecretText::new("0123456789abcdef");
        assert!(secret.matches("0123456789abcdef"));
        for other in [
            "",
            "0123456789abcdeg",
            "0123456789abcde",
            "0123456789abcdef0",
        ] {
            assert!(!secret.matches(other), "{other}");
        }
        assert_eq!(format!("{secret:?}"), "[redacted]");
    }
}
