//! One control plane with a data folder of its own.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use http::StatusCode;

use super::{
    Folder, Kubectl, eventually, free_port,
    process::{Process, program},
};
use crate::{
    authority::{Authority, Identity, Validity, client_config},
    wire::Endpoint,
};

/// How long a start may take, on a busy machine too.
pub const START: Duration = Duration::from_secs(30);

/// The knobs of liveness, on both sides.
#[derive(Clone, Copy, Debug)]
pub struct Timings {
    pub monitor_period: Duration,
    pub monitor_grace: Duration,
    pub startup_grace: Duration,
    pub status_frequency: Duration,
    pub probe_timeout: Duration,
    pub threshold: Duration,
    pub lease_duration: Duration,
}

impl Timings {
    /// Those that the programs have by themselves.
    pub const DEFAULT: Self = Self {
        monitor_period: Duration::from_secs(5),
        monitor_grace: Duration::from_secs(40),
        startup_grace: Duration::from_mins(1),
        status_frequency: Duration::from_secs(10),
        probe_timeout: Duration::from_secs(5),
        threshold: Duration::from_secs(30),
        lease_duration: Duration::from_secs(40),
    };

    /// About ten times as fast as the defaults.
    pub const SHORT: Self = Self {
        monitor_period: Duration::from_millis(500),
        monitor_grace: Duration::from_secs(4),
        startup_grace: Duration::from_secs(8),
        status_frequency: Duration::from_secs(1),
        probe_timeout: Duration::from_millis(800),
        threshold: Duration::from_secs(2),
        lease_duration: Duration::from_secs(4),
    };

    pub fn control_plane_flags(&self) -> Vec<String> {
        flags(&[
            ("--cluster-monitor-period", self.monitor_period),
            ("--cluster-monitor-grace-period", self.monitor_grace),
            ("--cluster-startup-grace-period", self.startup_grace),
        ])
    }

    pub fn agent_flags(&self) -> Vec<String> {
        flags(&[
            ("--cluster-status-update-frequency", self.status_frequency),
            ("--probe-timeout", self.probe_timeout),
            ("--cluster-failure-threshold", self.threshold),
            ("--cluster-success-threshold", self.threshold),
            ("--cluster-lease-duration", self.lease_duration),
        ])
    }
}

fn flags(durations: &[(&str, Duration)]) -> Vec<String> {
    durations
        .iter()
        .map(|(flag, duration)| format!("{flag}={}", humantime::format_duration(*duration)))
        .collect()
}

/// A running control plane.
pub struct ControlPlane {
    // Ends before its folder goes: its log is shown when a test fails.
    process: Process,
    pub folder: Folder,
    pub address: SocketAddr,
    pub timings: Timings,
    extra: Vec<String>,
}

impl ControlPlane {
    /// Starts one and waits until it is ready.
    pub async fn start() -> Self {
        Self::start_with(Timings::SHORT, &[]).await
    }

    pub async fn start_with(timings: Timings, extra: &[&str]) -> Self {
        let folder = Folder::new();
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let extra = timings
            .control_plane_flags()
            .into_iter()
            .chain(extra.iter().map(ToString::to_string))
            .collect::<Vec<_>>();
        let process = spawn(folder.path(), address, &extra);
        let mut this = Self {
            process,
            folder,
            address,
            timings,
            extra,
        };
        this.ready().await;
        this
    }

    pub fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub fn admin_kubeconfig(&self) -> PathBuf {
        self.data_dir().join("admin.kubeconfig")
    }

    /// Waits until `/readyz` says ok.
    pub async fn ready(&mut self) {
        eventually("the control plane is ready", START, async || {
            if let Some(status) = self.process.ended() {
                return Err(format!("it ended: {status}"));
            }
            if !self.admin_kubeconfig().is_file() {
                return Err("no admin kubeconfig yet".into());
            }
            match self
                .anonymous()
                .once(http::Method::GET, "/readyz", None)
                .await
            {
                Ok(answer) if answer.code == StatusCode::OK => Ok(()),
                Ok(answer) => Err(answer.text()),
                Err(error) => Err(error.to_string()),
            }
        })
        .await;
    }

    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// kill -9, without a new start.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again on the same port and data, and waits until it is ready.
    pub async fn start_again(&mut self) {
        self.process.kill();
        self.process = spawn(self.folder.path(), self.address, &self.extra);
        self.ready().await;
    }

    pub fn kubectl(&self) -> Kubectl {
        self.kubectl_with(&self.admin_kubeconfig())
    }

    pub fn kubectl_with(&self, kubeconfig: &Path) -> Kubectl {
        Kubectl::new(kubeconfig, self.folder.path())
    }

    /// A client of the administrator.
    pub async fn client(&self) -> kube::Client {
        client_of(&self.admin_kubeconfig()).await
    }

    /// The PEM of its certificate authority, as the administrator's kubeconfig has it.
    pub fn authority(&self) -> String {
        self.admin_parts().0
    }

    /// The administrator's certificate.
    pub fn admin(&self) -> Identity {
        self.admin_parts().1
    }

    fn admin_parts(&self) -> (String, Identity) {
        let path = self.admin_kubeconfig();
        crate::kubeconfig::read_with_certificate(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The authority itself, out of the data folder, to sign identities in bulk.
    pub fn signing_authority(&self) -> Authority {
        authority_of(&self.data_dir())
    }

    /// A client that shows no identity.
    pub fn anonymous(&self) -> Endpoint {
        self.endpoint(None, &["http/1.1"])
    }

    /// A client with this identity.
    pub fn endpoint(&self, identity: Option<&Identity>, protocols: &[&str]) -> Endpoint {
        let tls = client_config(&self.authority(), identity, protocols)
            .unwrap_or_else(|error| panic!("TLS: {error}"));
        Endpoint {
            address: self.address,
            tls: Arc::new(tls),
            bearer: None,
            deadline: Duration::from_secs(20),
        }
    }

    /// The administrator's own wire.
    pub fn admin_endpoint(&self) -> Endpoint {
        self.endpoint(Some(&self.admin()), &["h2", "http/1.1"])
    }

    /// A client with an agent's certificate, signed here.
    pub fn agent_endpoint(&self, cluster: &str) -> Endpoint {
        let identity = agent_identity(&self.signing_authority(), cluster);
        self.endpoint(Some(&identity), &["h2", "http/1.1"])
    }

    /// Runs a command of the control plane's program against its data folder, and gives what it printed.
    pub fn command(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(program("evenkeel-control-plane"));
        command
            .args(arguments)
            .arg("--data-dir")
            .arg(self.data_dir());
        let output = command
            .output()
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            output.status.success(),
            "{arguments:?}: {}{}",
            text(&output.stdout),
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    /// The flags with which an agent joins, as `token create` prints them.
    pub fn join_flags(&self, cluster: &str) -> Vec<String> {
        let printed = self.command(&["token", "create", "--cluster-name", cluster]);
        let line = printed
            .lines()
            .find_map(|line| line.trim().strip_prefix("evenkeel-agent "))
            .unwrap_or_else(|| panic!("no command line for an agent in: {printed}"));
        line.split_whitespace().map(Into::into).collect()
    }

    /// An object, as the administrator sees it. `Err`: why there is none.
    pub async fn object(&self, path: &str) -> Result<serde_json::Value, String> {
        let answer = self
            .admin_endpoint()
            .once(http::Method::GET, path, None)
            .await
            .map_err(|error| error.to_string())?;
        if answer.code.is_success() {
            answer.json().map_err(|error| error.to_string())
        } else {
            Err(answer.text())
        }
    }

    /// Status and reason of a cluster's Ready condition.
    pub async fn readiness(&self, cluster: &str) -> Result<(String, String), String> {
        let object = self
            .object(&format!("{}/{cluster}", crate::fleet::objects::CLUSTERS))
            .await?;
        let ready = object["status"]["conditions"]
            .as_array()
            .and_then(|all| all.iter().find(|condition| condition["type"] == "Ready"))
            .ok_or("no Ready condition yet")?;
        let text = |field: &str| ready[field].as_str().unwrap_or_default().to_owned();
        Ok((text("status"), text("reason")))
    }

    /// Waits until Ready of a cluster has this status.
    pub async fn turns(&self, cluster: &str, status: &str, deadline: Duration) -> String {
        eventually(
            &format!("Ready of {cluster} turns {status}"),
            deadline,
            async || match self.readiness(cluster).await? {
                (now, reason) if now == status => Ok(reason),
                (now, reason) => Err(format!("it is {now} ({reason})")),
            },
        )
        .await
    }

    /// Waits until a cluster is Ready, free of taints and has its whole status, and gives it.
    pub async fn reported(&self, cluster: &str, deadline: Duration) -> serde_json::Value {
        let path = format!("{}/{cluster}", crate::fleet::objects::CLUSTERS);
        eventually(
            &format!("{cluster} is Ready and has reported all"),
            deadline,
            async || {
                match self.readiness(cluster).await? {
                    (status, _) if status == "True" => {}
                    (status, reason) => return Err(format!("it is {status} ({reason})")),
                }
                let object = self.object(&path).await?;
                let parts = [
                    "kubernetesVersion",
                    "apiEnablements",
                    "nodeSummary",
                    "resourceSummary",
                ];
                if let Some(part) = parts.iter().find(|part| object["status"][**part].is_null()) {
                    return Err(format!("no {part} yet"));
                }
                if object["spec"]["taints"]
                    .as_array()
                    .is_some_and(|taints| !taints.is_empty())
                {
                    return Err("still tainted".to_owned());
                }
                Ok(object)
            },
        )
        .await
    }

    /// A number out of `/metrics`: the sum over its series.
    pub async fn metric(&self, name: &str) -> f64 {
        let answer = self
            .admin_endpoint()
            .once(http::Method::GET, "/metrics", None)
            .await;
        let text = answer
            .unwrap_or_else(|error| panic!("/metrics: {error}"))
            .text();
        crate::fleet::metrics::sum(&text, name).unwrap_or_else(|| panic!("no metric {name}"))
    }
}

fn spawn(folder: &Path, address: SocketAddr, extra: &[String]) -> Process {
    let mut command = Command::new(program("evenkeel-control-plane"));
    command
        .arg("--data-dir")
        .arg(folder.join("data"))
        .arg("--bind")
        .arg(address.to_string())
        .args(extra);
    Process::start(
        "control plane",
        &mut command,
        &folder.join("control-plane.log"),
    )
    .unwrap_or_else(|error| panic!("cannot start the control plane: {error}"))
}

/// The authority in a data folder.
pub fn authority_of(data_dir: &Path) -> Authority {
    let read = |name: &str| {
        let path = data_dir.join("pki").join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    Authority::from_pem(&read("ca.crt"), &read("ca.key"))
        .unwrap_or_else(|error| panic!("the authority: {error}"))
}

/// The identity of the agent of a cluster.
pub fn agent_identity(authority: &Authority, cluster: &str) -> Identity {
    authority
        .client(
            &format!("system:karmada:agent:{cluster}"),
            &["system:karmada:agents"],
            Validity::DAY,
        )
        .unwrap_or_else(|error| panic!("the agent's certificate: {error}"))
}

/// A kube client of the current context of a kubeconfig.
pub async fn client_of(kubeconfig: &Path) -> kube::Client {
    let read = kube::config::Kubeconfig::read_from(kubeconfig)
        .unwrap_or_else(|error| panic!("{}: {error}", kubeconfig.display()));
    let config =
        kube::Config::from_custom_kubeconfig(read, &kube::config::KubeConfigOptions::default())
            .await
            .unwrap_or_else(|error| panic!("{}: {error}", kubeconfig.display()));
    kube::Client::try_from(config)
        .unwrap_or_else(|error| panic!("{}: {error}", kubeconfig.display()))
}
