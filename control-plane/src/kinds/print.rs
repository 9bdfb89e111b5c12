//! Cells of tables, as `kubectl get` shows them.

use jiff::Timestamp;
use serde_json::Value;

use super::look::{at, items, pairs, text};

/// What stands in a cell that has nothing to say.
pub const NONE: &str = "<none>";
/// What stands for a time that is not known.
pub const UNKNOWN: &str = "<unknown>";

/// `3s`, `2m5s`, `4d3h`, `2y12d`: shorter the longer it is. Negative ones are `<invalid>`, save for clock jitter.
pub fn duration(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    let pair = |a: i64, a_unit: &str, b: i64, b_unit: &str| {
        if b == 0 {
            format!("{a}{a_unit}")
        } else {
            format!("{a}{a_unit}{b}{b_unit}")
        }
    };
    match seconds {
        ..-1 => "<invalid>".into(),
        -1 => "0s".into(),
        0..120 => format!("{seconds}s"),
        120..600 => pair(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => pair(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => pair(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => pair(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

/// The time that passed since the moment at a pointer; `<unknown>` when there is none.
pub fn since(object: &Value, pointer: &str, now: Timestamp) -> String {
    moment(object, pointer).map_or_else(
        || UNKNOWN.into(),
        |then| duration(now.as_second() - then.as_second()),
    )
}

/// The moment at a pointer.
pub fn moment(object: &Value, pointer: &str) -> Option<Timestamp> {
    text(object, pointer).parse().ok()
}

/// A text, or what stands for an empty one.
pub fn or<'a>(text: &'a str, empty: &'a str) -> &'a str {
    if text.is_empty() { empty } else { text }
}

/// `a=b,c=d`, or `<none>`.
pub fn labels(object: &Value, pointer: &str) -> String {
    let labels = pairs(object, pointer)
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect::<Vec<_>>()
        .join(",");
    or(&labels, NONE).to_owned()
}

/// A label selector in an object, in its text form, or `<none>`.
pub fn selector(object: &Value, pointer: &str) -> String {
    let mut parts = pairs(object, &format!("{pointer}/matchLabels"))
        .iter()
        .map(|(key, value)| ((*key).to_owned(), format!("{key}={value}")))
        .collect::<Vec<_>>();
    for expression in items(object, &format!("{pointer}/matchExpressions")) {
        let key = text(expression, "/key");
        let values = texts(items(expression, "/values")).join(",");
        let part = match text(expression, "/operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => "<error>".to_owned(),
        };
        parts.push((key.to_owned(), part));
    }
    parts.sort();
    let parts = parts.into_iter().map(|(_, part)| part).collect::<Vec<_>>();
    or(&parts.join(","), NONE).to_owned()
}

/// The texts of a list.
pub fn texts(items: &[Value]) -> Vec<&str> {
    items.iter().filter_map(Value::as_str).collect()
}

/// The values of one field of the structs of a list, joined by commas.
pub fn column(list: &[Value], field: &str) -> String {
    list.iter()
        .map(|item| text(item, field))
        .collect::<Vec<_>>()
        .join(",")
}

/// A number or a text as it is, or what stands for an absent one.
pub fn scalar(object: &Value, pointer: &str, absent: &str) -> String {
    match at(object, pointer) {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => absent.to_owned(),
    }
}

/// `RWO,ROX`.
pub fn access_modes(modes: &[Value]) -> String {
    let all = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let modes = texts(modes);
    all.iter()
        .filter(|(mode, _)| modes.contains(mode))
        .map(|(_, short)| *short)
        .collect::<Vec<_>>()
        .join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn durations_get_coarser() {
        let table = [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (599, "9m59s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (11_100, "3h5m"),
            (28_800, "8h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (176_400, "2d1h"),
            (691_200, "8d"),
            (63_072_000, "2y"),
            (63_158_400, "2y1d"),
            (252_288_000, "8y"),
        ];
        for (seconds, printed) in table {
            assert_eq!(duration(seconds), printed, "{seconds}");
        }
    }

    #[test]
    fn selectors_print_in_their_text_form() {
        let object = json!({"s": {
            "matchLabels": {"b": "1"},
            "matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["x", "y"]}, {"key": "c", "operator": "Exists"}],
        }});
        assert_eq!(selector(&object, "/s"), "a notin (x,y),b=1,c");
        assert_eq!(selector(&object, "/t"), "<none>");
    }
}
