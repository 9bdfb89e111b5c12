//! kubectl, as a person would run it.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::{io::AsyncWriteExt, process::Command};

/// No command of the tests takes longer.
const DEADLINE: Duration = Duration::from_mins(1);

/// kubectl with a kubeconfig and a cache of its own.
#[derive(Clone, Debug)]
pub struct Kubectl {
    kubeconfig: PathBuf,
    home: PathBuf,
}

/// What a command printed, and how it ended.
#[derive(Clone, Debug)]
pub struct Printed {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Kubectl {
    /// Whether kubectl is on this machine. Says so loudly when not.
    pub fn is_there() -> bool {
        let there = std::process::Command::new("kubectl")
            .args(["version", "--client"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        if !there {
            eprintln!("SKIPPED: kubectl is not on this machine");
        }
        there
    }

    /// `home` takes the discovery cache.
    pub fn new(kubeconfig: &Path, home: &Path) -> Self {
        Self {
            kubeconfig: kubeconfig.into(),
            home: home.into(),
        }
    }

    /// Runs a command with this standard input. Panics when it does not end in time.
    pub async fn run_with(&self, arguments: &[&str], input: &str) -> Printed {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot run kubectl: {error}"));
        if let Some(mut stdin) = child.stdin.take() {
            // kubectl may end before it read all.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        let output = tokio::time::timeout(DEADLINE, child.wait_with_output())
            .await
            .unwrap_or_else(|_| {
                panic!(
                    "kubectl {}: not done within {DEADLINE:?}",
                    arguments.join(" ")
                )
            })
            .unwrap_or_else(|error| panic!("kubectl {}: {error}", arguments.join(" ")));
        Printed {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    pub async fn run(&self, arguments: &[&str]) -> Printed {
        self.run_with(arguments, "").await
    }

    /// What a command that succeeds prints. Panics when it fails.
    pub async fn ok(&self, arguments: &[&str]) -> String {
        self.ok_with(arguments, "").await
    }

    pub async fn ok_with(&self, arguments: &[&str], input: &str) -> String {
        let printed = self.run_with(arguments, input).await;
        assert_eq!(
            printed.code,
            Some(0),
            "kubectl {}: {}",
            arguments.join(" "),
            printed.stderr
        );
        printed.stdout
    }

    /// What a command that fails says on standard error. Panics when it succeeds.
    pub async fn fails(&self, arguments: &[&str]) -> String {
        let printed = self.run(arguments).await;
        assert_ne!(
            printed.code,
            Some(0),
            "kubectl {}: {}",
            arguments.join(" "),
            printed.stdout
        );
        printed.stderr
    }

    /// A command that goes on until it is dropped (`get -w`), with its output piped.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(arguments)
            .env("HOME", &self.home)
            .env_remove("KUBECONFIG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}
