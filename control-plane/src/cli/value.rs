//! Durations and sizes as people write them.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Deserializer, de};

/// A positive duration, written `10s` or `1m30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim_start().starts_with('-') {
            return Err("a duration cannot be negative".into());
        }
        let duration = humantime::parse_duration(text)
            .map_err(|error| format!("{error}; write it like 10s, 1m30s or 2h"))?;
        if duration.is_zero() {
            return Err("a duration of zero makes no sense here".into());
        }
        Ok(Self(duration))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

/// A number of bytes, written `3145728`, `512Ki` or `3Mi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub usize);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (number, unit) = [("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30)]
            .iter()
            .find_map(|(suffix, unit)| Some((text.strip_suffix(suffix)?, *unit)))
            .unwrap_or((text, 1_usize));
        let number = number
            .trim()
            .parse::<usize>()
            .map_err(|_| "not a number of bytes; write it like 3145728, 512Ki or 3Mi".to_owned())?;
        match number.checked_mul(unit) {
            Some(0) => Err("a size of zero makes no sense here".into()),
            Some(bytes) => Ok(Self(bytes)),
            None => Err("too large".into()),
        }
    }
}

macro_rules! from_text {
    ($($Type:ident),*) => { $(
        impl<'de> Deserialize<'de> for $Type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?
                    .parse()
                    .map_err(de::Error::custom)
            }
        }
    )* };
}
from_text!(Span, Size);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans() {
        let table: &[(&str, Option<u64>)] = &[
            ("10s", Some(10_000)),
            ("1m30s", Some(90_000)),
            ("250ms", Some(250)),
            ("0s", None),
            ("-5s", None),
            ("5", None),
            ("", None),
            ("soon", None),
        ];
        for (text, expected) in table {
            let got = text.parse::<Span>().ok().map(|span| span.0);
            assert_eq!(got, expected.map(Duration::from_millis), "{text:?}");
        }
    }

    #[test]
    fn sizes() {
        let table: &[(&str, Option<usize>)] = &[
            ("100", Some(100)),
            ("512Ki", Some(524_288)),
            ("3Mi", Some(3_145_728)),
            ("0", None),
            ("-1", None),
            ("3MB", None),
            ("99999999999999999999", None),
            ("99999999999Gi", None),
        ];
        for (text, expected) in table {
            assert_eq!(
                text.parse::<Size>().ok().map(|size| size.0),
                *expected,
                "{text:?}"
            );
        }
    }
}
