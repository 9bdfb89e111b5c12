//! Runs the two programs, members and kubectl for end-to-end tests. Everything lives in one temporary folder, every
//! wait has a deadline, and whatever was started ends when its handle is dropped. When a test fails, the ends of the
//! programs' logs are shown.
//!
//! `EVENKEEL_TEST_KUBECONFIG` names the kubeconfig of a real cluster: [`target::Target::start`] then hands that out in
//! place of a simulated member.

pub mod agent;
pub mod control_plane;
pub mod kubectl;
pub mod process;
pub mod target;
pub mod wait;

use std::path::{Path, PathBuf};

pub use agent::Agent;
pub use control_plane::{ControlPlane, Timings};
pub use kubectl::Kubectl;
pub use target::Target;
pub use wait::{eventually, throughout};

/// The folder of one test.
pub struct Folder(tempfile::TempDir);

impl Folder {
    /// Panics when the machine has no room for it.
    pub fn new() -> Self {
        Self(
            tempfile::Builder::new()
                .prefix("evenkeel-")
                .tempdir()
                .unwrap_or_else(|error| panic!("no temporary folder: {error}")),
        )
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file that only this user may read, and says where it is.
    pub fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, content)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }
}

impl Default for Folder {
    fn default() -> Self {
        Self::new()
    }
}

/// A port of the loopback interface that was free a moment ago.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .unwrap_or_else(|error| panic!("no free port: {error}"))
        .port()
}
