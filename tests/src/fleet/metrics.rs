//! Numbers out of the Prometheus text format.

/// Times that the store forced data to disk.
pub const FSYNCS: &str = "evenkeel_store_fsyncs_total";

/// The sum over all series of a metric; `None` when it is not there.
pub fn sum(text: &str, name: &str) -> Option<f64> {
    let values = text.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        let value = if rest.starts_with('{') {
            rest.rsplit_once("} ")?.1
        } else {
            rest.strip_prefix(' ')?
        };
        value.split_whitespace().next()?.parse::<f64>().ok()
    });
    values.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_of_one_metric_are_added_and_others_are_not() {
        let text = "# HELP a_total Things.\na_total{x=\"1\"} 2\na_total{x=\"} 9\"} 3 1700000000\na_total_more 100\nb 7.5\n";
        for (name, expected) in [
            ("a_total", Some(5.0)),
            ("b", Some(7.5)),
            ("a", None),
            ("c", None),
        ] {
            assert_eq!(sum(text, name), expected, "{name}");
        }
    }
}
