//! `token`: what clusters join with.

use std::{fmt::Write as _, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use clap::{Args, Subcommand};
use http::Method;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{
    DataDir,
    remote::{Remote, RemoteError},
    value::Span,
};
use crate::{
    clock,
    enrol::token::{self, Joining, NewToken, TokenError},
};

/// For the control plane to answer.
const WITHIN: Duration = Duration::from_secs(30);
/// The agent in a member cluster.
const MANIFEST: &str = include_str!("../../../deploy/agent.yaml");
const CLUSTER_INFO: &str = "/api/v1/namespaces/kube-public/configmaps/cluster-info";

/// Tokens that clusters join with. The control plane has to be running
#[derive(Debug, Args)]
pub struct TokenCommand {
    #[command(subcommand)]
    pub command: TokenAction,
}

#[derive(Debug, Subcommand)]
pub enum TokenAction {
    /// Make a token, and print the command line of the agent that joins with it, or its manifest
    Create(CreateFlags),
    /// List the tokens, without their secrets
    List(DataDir),
    /// Delete a token; clusters that joined with it stay
    Delete(DeleteFlags),
}

#[derive(Debug, Args)]
pub struct CreateFlags {
    #[command(flatten)]
    pub data: DataDir,
    /// The one cluster that may join with it. Without it: any one whose name is not taken
    #[arg(long, value_name = "NAME")]
    pub cluster_name: Option<String>,
    /// Print the objects to apply in the member, instead of a command line
    #[arg(long, requires = "cluster_name")]
    pub manifest: bool,
    /// How long it can be used [default: 24h]
    #[arg(long, value_name = "DURATION")]
    pub ttl: Option<Span>,
    /// What it is for
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub description: String,
    /// The URL that the agent is to dial. Without it: the first --advertise of the control plane, or its address
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
}

#[derive(Debug, Args)]
pub struct DeleteFlags {
    #[command(flatten)]
    pub data: DataDir,
    /// The token's id: the part before the dot
    #[arg(value_name = "ID")]
    pub id: String,
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error(transparent)]
    Remote(#[from] RemoteError),
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error("the control plane's cluster-info cannot be read: {0}")]
    ClusterInfo(String),
    #[error("{0:?} is no token's id: six lower-case letters and digits")]
    Id(String),
}

/// Carries a command out; what it returns is for standard output.
pub async fn run(command: &TokenCommand) -> Result<String, CommandError> {
    match &command.command {
        TokenAction::Create(flags) => create(flags).await,
        TokenAction::List(data) => list(data).await,
        TokenAction::Delete(flags) => delete(flags).await,
    }
}

async fn create(flags: &CreateFlags) -> Result<String, CommandError> {
    let token = NewToken {
        description: flags.description.clone(),
        ttl: Some(flags.ttl.map_or(token::DEFAULT_TTL, |ttl| ttl.0)),
        cluster: flags.cluster_name.clone(),
    };
    let issued = token.issue(clock::now())?;
    let remote = Remote::open(&flags.data.data_dir)?;
    let info = remote.call(Method::GET, CLUSTER_INFO, None, WITHIN).await?;
    let info = ClusterInfo::read(&info).map_err(CommandError::ClusterInfo)?;
    let secret: Value = serde_json::from_str(issued.secret())
        .map_err(|error| CommandError::ClusterInfo(error.to_string()))?;
    remote
        .call(Method::POST, token::SECRETS_PATH, Some(&secret), WITHIN)
        .await?;
    let joining = Joining {
        server: flags.server.as_deref().unwrap_or(&info.server),
        token: &issued,
        ca_pin: &info.pin,
        cluster: flags.cluster_name.as_deref(),
    };
    Ok(if flags.manifest {
        joining.manifest(MANIFEST).trim_end().to_owned()
    } else {
        joining.command()
    })
}

async fn list(data: &DataDir) -> Result<String, CommandError> {
    let remote = Remote::open(&data.data_dir)?;
    let secrets = remote
        .call(Method::GET, token::SECRETS_PATH, None, WITHIN)
        .await?;
    let mut text = format!(
        "{:<8} {:<24} {:<22} DESCRIPTION",
        "ID", "CLUSTER", "EXPIRES"
    );
    for record in token::listed(&secrets) {
        let expires = record.expiration.map_or_else(
            || "never".to_owned(),
            |time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        );
        let cluster = token::bound_cluster(&record).unwrap_or("<any new>");
        // Writing to a String does not fail.
        let _ = write!(
            text,
            "\n{:<8} {cluster:<24} {expires:<22} {}",
            record.id, record.description
        );
    }
    Ok(text)
}

async fn delete(flags: &DeleteFlags) -> Result<String, CommandError> {
    let is_id = flags.id.len() == 6
        && flags
            .id
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if !is_id {
        return Err(CommandError::Id(flags.id.clone()));
    }
    let remote = Remote::open(&flags.data.data_dir)?;
    let path = token::secret_path(&flags.id);
    remote.call(Method::DELETE, &path, None, WITHIN).await?;
    Ok(format!("token {} is deleted", flags.id))
}

/// What a joining agent has to know of the server.
struct ClusterInfo {
    server: String,
    /// `sha256:<hex>` of the authority's public key.
    pin: String,
}

impl ClusterInfo {
    fn read(config_map: &Value) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Kubeconfig {
            clusters: Vec<Named>,
        }
        #[derive(Deserialize)]
        struct Named {
            cluster: Entry,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "kebab-case")]
        struct Entry {
            server: String,
            certificate_authority_data: String,
        }
        let text = config_map["data"]["kubeconfig"]
            .as_str()
            .ok_or("it holds no kubeconfig")?;
        let config: Kubeconfig = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        let entry = config
            .clusters
            .into_iter()
            .next()
            .ok_or("its kubeconfig names no cluster")?
            .cluster;
        let pem = STANDARD
            .decode(entry.certificate_authority_data.trim())
            .map_err(|error| error.to_string())?;
        let der = CertificateDer::from_pem_slice(&pem).map_err(|error| error.to_string())?;
        let (_, certificate) =
            X509Certificate::from_der(&der).map_err(|error| error.to_string())?;
        let mut pin = "sha256:".to_owned();
        for byte in Sha256::digest(certificate.public_key().raw) {
            let _ = write!(pin, "{byte:02x}");
        }
        Ok(Self {
            server: entry.server,
            pin,
        })
    }
}
