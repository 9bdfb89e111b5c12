//! One agent as a process.

use std::{path::Path, process::Command, time::Duration};

use super::{
    ControlPlane, Folder, Target, eventually, free_port,
    process::{Process, program},
};

/// A running agent.
pub struct Agent {
    // Ends before its folder goes: its log is shown when a test fails.
    process: Process,
    pub cluster: String,
    pub folder: Folder,
    pub health: u16,
    flags: Vec<String>,
}

impl Agent {
    /// Joins a member by a fresh token.
    pub fn join(control_plane: &ControlPlane, target: &Target) -> Self {
        Self::join_with(control_plane, target, &[])
    }

    pub fn join_with(control_plane: &ControlPlane, target: &Target, extra: &[&str]) -> Self {
        Self::start(
            &target.name,
            &control_plane.join_flags(&target.name),
            &target.kubeconfig,
            control_plane,
            extra,
        )
    }

    /// Starts an agent with flags as `token create` prints them.
    pub fn start(
        cluster: &str,
        join: &[String],
        kubeconfig: &Path,
        control_plane: &ControlPlane,
        extra: &[&str],
    ) -> Self {
        let folder = Folder::new();
        let health = free_port();
        let mut flags = join.to_vec();
        if !flags.iter().any(|flag| flag.starts_with("--cluster-name")) {
            flags.extend(["--cluster-name".into(), cluster.into()]);
        }
        flags.push(format!("--kubeconfig={}", kubeconfig.display()));
        flags.push(format!(
            "--identity-dir={}",
            folder.path().join("identity").display()
        ));
        flags.push(format!("--health-bind=127.0.0.1:{health}"));
        flags.extend(control_plane.timings.agent_flags());
        flags.extend(extra.iter().map(ToString::to_string));
        let process = spawn(cluster, &folder, &flags);
        Self {
            cluster: cluster.into(),
            folder,
            health,
            process,
            flags,
        }
    }

    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// kill -9.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again with the same flags and the identity that it has.
    pub fn start_again(&mut self) {
        self.process.kill();
        self.process = spawn(&self.cluster, &self.folder, &self.flags);
    }

    /// `GET` on its health port: status code and body.
    pub async fn health(&self, path: &str) -> Result<(u16, String), String> {
        use http_body_util::{BodyExt, Empty};
        let exchange = async {
            let stream = tokio::net::TcpStream::connect(("127.0.0.1", self.health))
                .await
                .map_err(|error| error.to_string())?;
            let (mut sender, connection) =
                hyper::client::conn::http1::handshake(hyper_util::rt::TokioIo::new(stream))
                    .await
                    .map_err(|error| error.to_string())?;
            let driver = tokio::spawn(connection);
            let request = http::Request::get(path)
                .header(http::header::HOST, "localhost")
                .body(Empty::<bytes::Bytes>::new())
                .map_err(|error| error.to_string())?;
            let answer = sender
                .send_request(request)
                .await
                .map_err(|error| error.to_string())?;
            let code = answer.status().as_u16();
            let body = answer
                .into_body()
                .collect()
                .await
                .map_err(|error| error.to_string())?
                .to_bytes();
            driver.abort();
            Ok((code, String::from_utf8_lossy(&body).into_owned()))
        };
        tokio::time::timeout(Duration::from_secs(5), exchange)
            .await
            .map_err(|_| "no answer".to_owned())?
    }

    /// Waits until its `/readyz` answers this code.
    pub async fn answers(&self, code: u16, deadline: Duration) {
        eventually(
            &format!("the agent's /readyz answers {code}"),
            deadline,
            async || match self.health("/readyz").await {
                Ok((answered, _)) if answered == code => Ok(()),
                Ok((answered, body)) => Err(format!("{answered}: {body}")),
                Err(error) => Err(error),
            },
        )
        .await;
    }
}

fn spawn(cluster: &str, folder: &Folder, flags: &[String]) -> Process {
    let mut command = Command::new(program("evenkeel-agent"));
    command.args(flags);
    Process::start(
        &format!("agent of {cluster}"),
        &mut command,
        &folder.path().join("agent.log"),
    )
    .unwrap_or_else(|error| panic!("cannot start the agent of {cluster}: {error}"))
}
