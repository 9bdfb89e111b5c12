//! Amounts of resources (`500m`, `1536Mi`, `1e3`), exact to a billionth of a unit.
//!
//! The text forms are those of Kubernetes' `resource.Quantity`: decimal suffixes `n u m k M G T P E`, binary ones
//! `Ki Mi Gi Ti Pi Ei`, or a decimal exponent. What is finer than a billionth is rounded away from zero. What is
//! printed is canonical: no fraction, and the largest suffix that loses nothing.

use std::{cmp::Ordering, fmt, ops, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const NANOS: i128 = 1_000_000_000;
/// Longest text that is looked at, in bytes: far more than any amount needs.
const LONGEST: usize = 128;
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// From 10^-9 in steps of a thousand.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

/// Which suffixes an amount is printed with: the ones that it was read with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// `1500m`, `2k`
    #[default]
    Decimal,
    /// `1536Mi`
    Binary,
    /// `12e6`
    Exponent,
}

/// An exact amount. Equality and order are those of the numbers, whatever the format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

/// Why a text is no quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// It does not have the form of a number with a suffix.
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    /// The suffix is not one of those listed in the module's text.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

impl Quantity {
    /// Nothing, in decimal format.
    pub const ZERO: Self = Self {
        nanos: 0,
        format: Format::Decimal,
    };

    /// That many whole units.
    pub fn from_units(units: i64) -> Self {
        Self {
            nanos: i128::from(units) * NANOS,
            format: Format::Decimal,
        }
    }

    /// That many thousandths.
    pub fn from_milli(milli: i64) -> Self {
        Self {
            nanos: i128::from(milli) * (NANOS / 1000),
            format: Format::Decimal,
        }
    }

    /// The same amount, printed in another format.
    #[must_use]
    pub fn with_format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// The format that it is printed in.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Billionths of a unit.
    pub fn nanos(&self) -> i128 {
        self.nanos
    }

    /// Whether it is nothing.
    pub fn is_zero(&self) -> bool {
        self.nanos == 0
    }

    /// Whole units, rounded away from zero; cut to what an `i64` holds.
    pub fn value(&self) -> i64 {
        self.rounded(NANOS)
    }

    /// Thousandths, rounded away from zero; cut to what an `i64` holds.
    pub fn milli_value(&self) -> i64 {
        self.rounded(NANOS / 1000)
    }

    fn rounded(&self, unit: i128) -> i64 {
        let rounded = div_away(self.nanos, unit);
        i64::try_from(rounded).unwrap_or(if rounded < 0 { i64::MIN } else { i64::MAX })
    }

    /// The sum, cut at the ends of the range. An empty left side takes the other's format.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            nanos: self.nanos.saturating_add(other.nanos),
            format: if self.is_zero() {
                other.format
            } else {
                self.format
            },
        }
    }

    /// That many times the amount, cut at the ends of the range.
    #[must_use]
    pub fn times(self, count: u32) -> Self {
        Self {
            nanos: self.nanos.saturating_mul(i128::from(count)),
            ..self
        }
    }

    /// The difference, cut at the ends of the range. An empty left side takes the other's format.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.plus(Self {
            nanos: other.nanos.saturating_neg(),
            format: other.format,
        })
    }
}

/// Division that rounds away from zero. `by` is positive.
fn div_away(nanos: i128, by: i128) -> i128 {
    let quotient = nanos / by;
    match nanos % by {
        0 => quotient,
        rest => quotient + rest.signum(),
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl ops::AddAssign for Quantity {
    fn add_assign(&mut self, other: Self) {
        *self = self.plus(other);
    }
}

impl ops::SubAssign for Quantity {
    fn sub_assign(&mut self, other: Self) {
        *self = self.minus(other);
    }
}

impl std::iter::Sum for Quantity {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Self::plus)
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        if text.len() > LONGEST {
            return Err(QuantityError::Format);
        }
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let number_len = unsigned
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(number_len);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.len() + fraction.len() == 0 || fraction.contains('.') {
            return Err(QuantityError::Format);
        }
        let (format, scale) = scale_of(suffix)?;
        let magnitude = scaled(whole, fraction, scale);
        // The reference caps what it cannot hold at the largest i64.
        let magnitude = magnitude.unwrap_or(i128::from(i64::MAX) * NANOS);
        let small = magnitude < NANOS;
        Ok(Self {
            nanos: if text.starts_with('-') {
                -magnitude
            } else {
                magnitude
            },
            format: if format == Format::Binary && small && magnitude > 0 {
                Format::Decimal
            } else {
                format
            },
        })
    }
}

/// What a suffix multiplies by.
#[derive(Clone, Copy)]
enum Scale {
    Ten(i32),
    Kibi(u32),
}

fn scale_of(suffix: &str) -> Result<(Format, Scale), QuantityError> {
    if let Some(power) = BINARY.iter().skip(1).zip(1..).find(|(s, _)| **s == suffix) {
        return Ok((Format::Binary, Scale::Kibi(power.1)));
    }
    if let Some(power) = DECIMAL.iter().zip(-3..).find(|(s, _)| **s == suffix) {
        return Ok((Format::Decimal, Scale::Ten(3 * power.1)));
    }
    let exponent = suffix
        .strip_prefix(['e', 'E'])
        .ok_or(QuantityError::Suffix)?;
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if digits.is_empty() || digits.len() > 9 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(QuantityError::Suffix);
    }
    let exponent: i32 = exponent.parse().map_err(|_| QuantityError::Suffix)?;
    Ok((Format::Exponent, Scale::Ten(exponent)))
}

/// `whole.fraction` × scale in billionths, rounded up. `None`: too large.
fn scaled(whole: &str, fraction: &str, scale: Scale) -> Option<i128> {
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    let digits = [whole, fraction].concat();
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    let places = i32::try_from(fraction.len()).ok()?;
    let (ten, factor) = match scale {
        Scale::Ten(exponent) => (9_i32.saturating_add(exponent) - places, 1),
        Scale::Kibi(power) => (9 - places, 1024_i128.pow(power)),
    };
    // digits × factor × 10^ten
    if ten >= 0 {
        let digits: i128 = digits.parse().ok()?;
        let power = 10_i128.checked_pow(u32::try_from(ten).ok()?)?;
        return digits.checked_mul(factor)?.checked_mul(power);
    }
    let drop = usize::try_from(-i64::from(ten)).ok()?;
    divided(digits, factor, drop)
}

/// `digits × factor / 10^drop`, rounded up, digit by digit so that long fractions need no larger integer.
fn divided(digits: &str, factor: i128, drop: usize) -> Option<i128> {
    if digits.len() > 30 {
        // Beyond 30 digits the rest only matters for the rounding: something is there.
        let (head, tail) = digits.split_at(30);
        let more = i128::from(tail.bytes().any(|b| b != b'0'));
        if tail.len() > drop {
            let value = divided(head, factor, 0)?;
            return value.checked_mul(10_i128.checked_pow(u32::try_from(tail.len() - drop).ok()?)?);
        }
        let head: i128 = head.parse().ok()?;
        return Some(divide_up(
            head.checked_add(more)?.checked_mul(factor)?,
            drop - tail.len(),
        ));
    }
    let digits: i128 = digits.parse().ok()?;
    Some(divide_up(digits.checked_mul(factor)?, drop))
}

fn divide_up(value: i128, drop: usize) -> i128 {
    match u32::try_from(drop)
        .ok()
        .and_then(|drop| 10_i128.checked_pow(drop))
    {
        Some(power) => div_away(value, power),
        None => i128::from(value > 0),
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kibi = 1024 * NANOS;
        if self.format == Format::Binary && self.nanos.abs() >= kibi {
            let mut number = div_away(self.nanos, NANOS);
            let mut power = 0;
            while number % 1024 == 0 && power + 1 < BINARY.len() {
                number /= 1024;
                power += 1;
            }
            return write!(f, "{number}{}", BINARY[power]);
        }
        if self.nanos == 0 {
            return f.write_str("0");
        }
        let mut number = self.nanos;
        let mut power = 0;
        while number % 1000 == 0 && power + 1 < DECIMAL.len() {
            number /= 1000;
            power += 1;
        }
        if self.format == Format::Exponent {
            return match i64::try_from(power).unwrap_or_default() * 3 - 9 {
                0 => write!(f, "{number}"),
                exponent => write!(f, "{number}e{exponent}"),
            };
        }
        write!(f, "{number}{}", DECIMAL[power])
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Quantity;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_i64<E: de::Error>(self, units: i64) -> Result<Quantity, E> {
                Ok(Quantity::from_units(units))
            }

            fn visit_u64<E: de::Error>(self, units: u64) -> Result<Quantity, E> {
                units.to_string().parse().map_err(E::custom)
            }

            fn visit_f64<E: de::Error>(self, units: f64) -> Result<Quantity, E> {
                units.to_string().parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl From<&Quantity> for k8s_openapi::apimachinery::pkg::api::resource::Quantity {
    fn from(quantity: &Quantity) -> Self {
        Self(quantity.to_string())
    }
}

impl TryFrom<&k8s_openapi::apimachinery::pkg::api::resource::Quantity> for Quantity {
    type Error = QuantityError;

    fn try_from(
        quantity: &k8s_openapi::apimachinery::pkg::api::resource::Quantity,
    ) -> Result<Self, QuantityError> {
        quantity.0.parse()
    }
}
