//! The times last heard, kept across restarts. They are for people (conditions, events): no verdict depends on them.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use jiff::Timestamp;

/// The name under which the store keeps them.
pub const NAME: &str = "liveness/last-heard";

/// One line per cluster: seconds since 1970, a space, the name.
pub fn encode(times: &[(Arc<str>, Timestamp)]) -> Bytes {
    let mut text = String::new();
    for (cluster, heard) in times {
        text.push_str(&heard.as_second().to_string());
        text.push(' ');
        text.push_str(cluster);
        text.push('\n');
    }
    text.into()
}

/// What is there; lines that cannot be read are left out.
pub fn decode(text: &[u8]) -> BTreeMap<String, Timestamp> {
    String::from_utf8_lossy(text)
        .lines()
        .filter_map(|line| {
            let (seconds, cluster) = line.split_once(' ')?;
            let heard = Timestamp::from_second(seconds.parse().ok()?).ok()?;
            Some((cluster.to_owned(), heard))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_comes_back() {
        let heard = Timestamp::from_second(1_700_000_000).unwrap();
        let text = encode(&[("a".into(), heard), ("b-2".into(), heard)]);
        let times = decode(&text);
        assert_eq!(times.len(), 2);
        assert_eq!(times["b-2"], heard);
        assert!(decode(b"garbage\n12\n\xff\xfe x\nx y\n").is_empty());
    }
}
