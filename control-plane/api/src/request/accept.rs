//! In which form the answer goes out.

use http::StatusCode;
use serde_json::json;

use crate::failure::Failure;

/// The text form of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    #[default]
    Json,
    Yaml,
}

/// What of an object the client wants to see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    #[default]
    Whole,
    /// Rows and columns, in `meta.k8s.io/v1` or `v1beta1`.
    Table(&'static str),
    /// Metadata alone: of one object or of a list's items.
    Partial(&'static str),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accept {
    pub encoding: Encoding,
    pub shape: Shape,
}

/// How the groups and their resources are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discovery {
    /// `APIGroupList` and the like.
    Plain,
    /// Everything in one answer, in this version of `apidiscovery.k8s.io`.
    Aggregated(&'static str),
}

/// The most clauses of an Accept header that are looked at.
const MAX_CLAUSES: usize = 32;
const AVAILABLE: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

struct Clause<'a> {
    type_: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
    quality: f32,
}

impl Clause<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.parameters
            .iter()
            .find(|(found, _)| *found == name)
            .map(|(_, value)| *value)
    }
}

/// The clauses, the most wanted first.
fn clauses(header: &str) -> Vec<Clause<'_>> {
    let mut clauses = header
        .split(',')
        .take(MAX_CLAUSES)
        .map(|clause| {
            let mut parts = clause.split(';').map(str::trim);
            let type_ = parts.next().unwrap_or_default();
            let parameters = parts
                .filter_map(|part| part.split_once('='))
                .collect::<Vec<_>>();
            let quality = parameters
                .iter()
                .find(|(name, _)| *name == "q")
                .and_then(|(_, value)| value.parse().ok())
                .unwrap_or(1.0);
            Clause {
                type_,
                parameters,
                quality,
            }
        })
        .filter(|clause| !clause.type_.is_empty())
        .collect::<Vec<_>>();
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    clauses
}

fn version(text: Option<&str>) -> Option<&'static str> {
    match text {
        Some("v1") => Some("v1"),
        Some("v1beta1") => Some("v1beta1"),
        _ => None,
    }
}

impl Accept {
    /// Reads an Accept header. Protobuf is passed over: answers are JSON or YAML.
    pub fn parse(header: &str) -> Result<Self, Failure> {
        if header.trim().is_empty() {
            return Ok(Self::default());
        }
        let mut refused = false;
        for clause in clauses(header) {
            let encoding = match clause.type_ {
                "application/json" | "*/*" | "application/*" => Encoding::Json,
                "application/yaml" => Encoding::Yaml,
                _ => continue,
            };
            let in_meta = clause.get("g") == Some("meta.k8s.io");
            let shape = match (clause.get("as"), version(clause.get("v"))) {
                (None, _) => Shape::Whole,
                (Some("Table"), Some(version)) if in_meta => Shape::Table(version),
                (Some("PartialObjectMetadata" | "PartialObjectMetadataList"), Some(version))
                    if in_meta =>
                {
                    Shape::Partial(version)
                }
                _ => {
                    refused = true;
                    continue;
                }
            };
            return Ok(Self { encoding, shape });
        }
        let failure = if refused {
            Failure::new(
                StatusCode::NOT_ACCEPTABLE,
                "NotAcceptable",
                format!("only the following media types are accepted: {AVAILABLE}"),
            )
        } else {
            Failure::new(
                StatusCode::NOT_ACCEPTABLE,
                "NotAcceptable",
                format!("406: Not Acceptable\n\nAvailable representations: {AVAILABLE}"),
            )
            .with_details(json!({}))
        };
        Err(failure)
    }
}

impl Discovery {
    pub fn parse(header: &str) -> Self {
        for clause in clauses(header) {
            if clause.type_ != "application/json" && clause.type_ != "*/*" {
                continue;
            }
            match (clause.get("g"), clause.get("v"), clause.get("as")) {
                (Some("apidiscovery.k8s.io"), Some("v2"), Some("APIGroupDiscoveryList")) => {
                    return Self::Aggregated("v2");
                }
                (Some("apidiscovery.k8s.io"), Some("v2beta1"), Some("APIGroupDiscoveryList")) => {
                    return Self::Aggregated("v2beta1");
                }
                (None, None, None) => return Self::Plain,
                _ => {}
            }
        }
        Self::Plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts() {
        let json = |shape| Accept {
            encoding: Encoding::Json,
            shape,
        };
        let table = [
            ("", json(Shape::Whole)),
            ("*/*", json(Shape::Whole)),
            ("text/html, application/json;q=0.5", json(Shape::Whole)),
            (
                "application/vnd.kubernetes.protobuf,application/json",
                json(Shape::Whole),
            ),
            (
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
                json(Shape::Table("v1")),
            ),
            (
                "application/json;q=0.1, application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io",
                json(Shape::Partial("v1beta1")),
            ),
            (
                "application/yaml",
                Accept {
                    encoding: Encoding::Yaml,
                    shape: Shape::Whole,
                },
            ),
        ];
        for (header, want) in table {
            assert_eq!(Accept::parse(header), Ok(want), "{header}");
        }
        for header in [
            "text/html",
            "application/vnd.kubernetes.protobuf",
            "application/json;as=Bogus;v=v1;g=meta.k8s.io",
        ] {
            assert_eq!(
                Accept::parse(header).unwrap_err().code,
                StatusCode::NOT_ACCEPTABLE,
                "{header}"
            );
        }
    }

    #[test]
    fn discovery_forms() {
        let kubectl = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
        assert_eq!(Discovery::parse(kubectl), Discovery::Aggregated("v2"));
        assert_eq!(Discovery::parse("application/json, */*"), Discovery::Plain);
        assert_eq!(Discovery::parse(""), Discovery::Plain);
    }
}
