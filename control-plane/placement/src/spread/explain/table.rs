//! Explanations in words and tables.

use std::fmt::{self, Write as _};

use super::{Answer, ConstraintReport, DomainReport, Explanation, PlaceReport};

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("takes more"),
            Self::Full => f.write_str("full"),
            Self::NotAccepted => f.write_str("left out by node selector or affinity"),
            Self::Tainted { taint } => write!(f, "taint {taint} is not tolerated"),
            Self::MissingKey { topology_key } => write!(f, "has no label {topology_key}"),
            Self::Skewed {
                topology_key,
                domain,
                count,
                minimum,
                skew,
                max_skew,
            } => write!(
                f,
                "{topology_key}={domain} holds {count}, the least {minimum}: skew would be {skew} of at most {max_skew}"
            ),
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let placed = self.replicas - self.unplaced.min(self.replicas);
        write!(f, "{placed} of {} replicas have a place", self.replicas)?;
        if self.unplaced > 0 {
            write!(f, ", {} have none", self.unplaced)?;
        }
        writeln!(f, "\n")?;
        table(
            f,
            ["PLACE", "REPLICAS", "BEFORE", "CAPACITY", "ONE MORE"],
            self.places.iter().map(place),
        )?;
        for constraint in &self.constraints {
            writeln!(f, "\n{constraint}")?;
            table(
                f,
                ["DOMAIN", "PODS", "OF THESE", "PLACES", "NOTE"],
                constraint
                    .domains
                    .iter()
                    .map(|each| domain(constraint, each)),
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for ConstraintReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} by {}: skew {} of at most {}, measured from {}",
            self.when_unsatisfiable, self.topology_key, self.skew, self.max_skew, self.minimum
        )?;
        if i64::try_from(self.counted_domains).is_ok_and(|count| count < self.min_domains) {
            write!(
                f,
                ", as there are {} domains of at least {}",
                self.counted_domains, self.min_domains
            )?;
        }
        Ok(())
    }
}

fn place(place: &PlaceReport) -> [String; 5] {
    [
        place.name.clone(),
        place.replicas.to_string(),
        place.previous.to_string(),
        place
            .capacity
            .map_or_else(|| "-".to_owned(), |capacity| capacity.to_string()),
        place.reason.clone(),
    ]
}

fn domain(constraint: &ConstraintReport, domain: &DomainReport) -> [String; 5] {
    let note = if domain.empty {
        "known, has no nodes yet"
    } else if !domain.counted {
        "left out by a policy or a missing label"
    } else if domain.count - constraint.minimum > constraint.max_skew {
        "too full"
    } else if domain.count <= constraint.minimum {
        "the least"
    } else {
        ""
    };
    [
        domain.value.clone(),
        domain.count.to_string(),
        domain.replicas.to_string(),
        domain.places.to_string(),
        note.to_owned(),
    ]
}

/// Columns as wide as their widest entry, the last one open.
fn table<const N: usize>(
    f: &mut fmt::Formatter<'_>,
    head: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> fmt::Result {
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(rows);
    let width = |column: usize| {
        let widths = lines.iter().map(|line| line[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    for line in &lines {
        let mut text = String::new();
        for (entry, width) in line.iter().zip(&widths) {
            write!(text, "{entry:<width$}  ")?;
        }
        writeln!(f, "{}", text.trim_end())?;
    }
    Ok(())
}
