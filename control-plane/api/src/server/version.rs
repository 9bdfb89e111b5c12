//! `/version`.

use serde::{Deserialize, Serialize};

/// What `/version` says: which Kubernetes API this server is like, and which build it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionInfo {
    pub major: String,
    pub minor: String,
    pub emulation_major: String,
    pub emulation_minor: String,
    pub min_compatibility_major: String,
    pub min_compatibility_minor: String,
    pub git_version: String,
    pub git_commit: String,
    pub git_tree_state: String,
    pub build_date: String,
    pub go_version: String,
    pub compiler: String,
    pub platform: String,
}

impl VersionInfo {
    /// A build of this project, `build` its own version (`0.1.0`).
    pub fn of(build: &str) -> Self {
        Self {
            git_version: format!("v1.36.0+evenkeel-{build}"),
            ..Self::default()
        }
    }
}

impl Default for VersionInfo {
    fn default() -> Self {
        // Go's words for the machine, which clients compare.
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        Self {
            major: "1".into(),
            minor: "36".into(),
            emulation_major: "1".into(),
            emulation_minor: "36".into(),
            min_compatibility_major: "1".into(),
            min_compatibility_minor: "35".into(),
            git_version: "v1.36.0+evenkeel".into(),
            git_commit: "unknown".into(),
            git_tree_state: "clean".into(),
            build_date: "unknown".into(),
            go_version: "none".into(),
            compiler: "rustc".into(),
            platform: format!("{}/{architecture}", std::env::consts::OS),
        }
    }
}
