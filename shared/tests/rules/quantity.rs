use evenkeel_shared::quantity::{Format, Quantity};
use proptest::prelude::*;

fn read(text: &str) -> Quantity {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn quantities_print_in_canonical_form() {
    // text, printed, value, milli value
    let table = [
        ("0", "0", 0, 0),
        ("-0", "0", 0, 0),
        ("1", "1", 1, 1000),
        ("+1", "1", 1, 1000),
        ("100m", "100m", 1, 100),
        ("0.1", "100m", 1, 100),
        (".5", "500m", 1, 500),
        ("5.", "5", 5, 5000),
        ("1500m", "1500m", 2, 1500),
        ("2000m", "2", 2, 2000),
        ("1000", "1k", 1000, 1_000_000),
        ("1024", "1024", 1024, 1_024_000),
        ("1Ki", "1Ki", 1024, 1_024_000),
        ("1024Ki", "1Mi", 1 << 20, (1 << 20) * 1000),
        ("1.5Gi", "1536Mi", 1_610_612_736, 1_610_612_736_000),
        ("0.5Ki", "512", 512, 512_000),
        ("1023Ki", "1023Ki", 1_047_552, 1_047_552_000),
        ("0Ki", "0", 0, 0),
        ("0.25Ki", "256", 256, 256_000),
        ("1e3", "1e3", 1000, 1_000_000),
        ("1E3", "1e3", 1000, 1_000_000),
        ("12e-1", "1200e-3", 2, 1200),
        ("1E", "1E", 1_000_000_000_000_000_000, i64::MAX),
        ("10E", "10E", i64::MAX, i64::MAX),
        ("1n", "1n", 1, 1),
        ("0.1n", "1n", 1, 1),
        ("-0.1n", "-1n", -1, -1),
        ("-1.5", "-1500m", -2, -1500),
        ("-2Gi", "-2Gi", -2_147_483_648, -2_147_483_648_000),
        (
            "9223372036854775807",
            "9223372036854775807",
            i64::MAX,
            i64::MAX,
        ),
        ("1e99", "9223372036854775807", i64::MAX, i64::MAX),
        (
            "0.0000000000000000000000000000000000000000000001",
            "1n",
            1,
            1,
        ),
    ];
    for (text, printed, value, milli) in table {
        let quantity = read(text);
        assert_eq!(quantity.to_string(), printed, "{text}");
        assert_eq!(quantity.value(), value, "{text}");
        assert_eq!(quantity.milli_value(), milli, "{text}");
    }
}

#[test]
fn what_is_no_quantity_is_refused() {
    for text in [
        "",
        "-",
        "+",
        ".",
        "x",
        "1x",
        "1KI",
        "1ki",
        "1 ",
        " 1",
        "1.2.3",
        "1e",
        "1e+",
        "1e1.5",
        "1mi",
        "--1",
        "1-",
        "١",
        "1e99999999999",
    ] {
        assert!(text.parse::<Quantity>().is_err(), "{text:?} is read");
    }
    assert!("1".repeat(129).parse::<Quantity>().is_err());
}

#[test]
fn json_may_hold_text_or_numbers() {
    for (json, printed) in [
        ("\"1Gi\"", "1Gi"),
        ("2", "2"),
        ("-3", "-3"),
        ("0.5", "500m"),
        ("18446744073709551615", "18446744073709551615"),
    ] {
        let quantity: Quantity = serde_json::from_str(json).expect(json);
        assert_eq!(quantity.to_string(), printed);
    }
    assert!(serde_json::from_str::<Quantity>("true").is_err());
    assert!(serde_json::from_str::<Quantity>("\"a\"").is_err());
}

fn quantities() -> impl Strategy<Value = (Quantity, i128)> {
    let suffixes = prop_oneof![
        Just(("n", 1_i128)),
        Just(("u", 1_000)),
        Just(("m", 1_000_000)),
        Just(("", 1_000_000_000)),
        Just(("k", 1_000_000_000_000)),
        Just(("Ki", 1_024_000_000_000)),
        Just(("Mi", 1_048_576_000_000_000)),
        Just(("e2", 100_000_000_000)),
    ];
    (any::<i32>(), suffixes).prop_map(|(number, (suffix, nanos))| {
        (
            read(&format!("{number}{suffix}")),
            i128::from(number) * nanos,
        )
    })
}

proptest! {
    /// Whatever is read prints as something that reads as the same amount in the same format.
    #[test]
    fn print_and_read_round_trip((quantity, nanos) in quantities()) {
        prop_assert_eq!(quantity.nanos(), nanos);
        let printed = quantity.to_string();
        let again = read(&printed);
        prop_assert_eq!(again, quantity, "{}", printed);
        prop_assert_eq!(again.to_string(), printed);
    }

    /// Sums, differences, order and rounding are those of whole billionths.
    #[test]
    fn arithmetic_is_exact((a, a_nanos) in quantities(), (b, b_nanos) in quantities()) {
        prop_assert_eq!(a.plus(b).nanos(), a_nanos + b_nanos);
        prop_assert_eq!(a.minus(b).nanos(), a_nanos - b_nanos);
        prop_assert_eq!(a.plus(b).minus(b), a);
        prop_assert_eq!(a.cmp(&b), a_nanos.cmp(&b_nanos));
        let whole = i128::from(a.value()) * 1_000_000_000;
        prop_assert!(whole.abs() >= a_nanos.abs() && whole.abs() - a_nanos.abs() < 1_000_000_000);
        let thousandths = i128::from(a.milli_value()) * 1_000_000;
        prop_assert!(thousandths.abs() >= a_nanos.abs() && thousandths.abs() - a_nanos.abs() < 1_000_000);
    }

    /// A fraction keeps its nine places; what is finer is rounded away from zero.
    #[test]
    fn fractions_round_away_from_zero(whole in 0_i64..1_000_000, fraction in "[0-9]{0,40}") {
        let quantity = read(&format!("{whole}.{fraction}"));
        let mut places = fraction.clone();
        while places.len() < 9 { places.push('0'); }
        let (kept, rest) = places.split_at(9);
        let up = i128::from(rest.bytes().any(|digit| digit != b'0'));
        let expected = i128::from(whole) * 1_000_000_000 + kept.parse::<i128>().unwrap_or_default() + up;
        prop_assert_eq!(quantity.nanos(), expected);
        prop_assert_eq!(quantity.format(), Format::Decimal);
    }

    /// Reading any text ends.
    #[test]
    fn reading_any_text_ends(text in "[-+0-9.eEkKMGTPimnu]{0,48}|.{0,12}") {
        if let Ok(quantity) = text.parse::<Quantity>() {
            prop_assert_eq!(read(&quantity.to_string()), quantity);
        }
    }
}
