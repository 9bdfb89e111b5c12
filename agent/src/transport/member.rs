//! The client of the member's own API server.

use std::{sync::Arc, time::Duration};

use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Config,
    client::{Body, ConfigExt},
    config::{KubeConfigOptions, Kubeconfig},
};
use rustls::pki_types::ServerName;
use tower::ServiceBuilder;

use super::Connector;
use crate::config::MemberAccess;

const PING: Duration = Duration::from_secs(10);
const STREAM_WINDOW: u32 = 512 * 1024;
const CONNECTION_WINDOW: u32 = 2 * 1024 * 1024;

/// Why there is no client for the member. All of it is a matter of configuration.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    #[error("--kubeconfig {path}: {cause}")]
    Kubeconfig { path: String, cause: String },
    #[error("the pod's service account cannot be used: {0}")]
    InCluster(#[from] kube::config::InClusterError),
    #[error("the member's credentials cannot be used: {0}")]
    Credentials(#[from] kube::Error),
    #[error("the kubeconfig asks for a proxy ({0}), which the agent does not support")]
    Proxy(http::Uri),
    #[error("the kubeconfig's tls-server-name {0:?} is not a host name")]
    ServerName(String),
}

/// A client for the member and the URL that it goes to. Nothing is dialled yet.
pub async fn connect(access: &MemberAccess) -> Result<(kube::Client, http::Uri), MemberError> {
    let config = match access {
        MemberAccess::InCluster => Config::incluster()?,
        MemberAccess::Kubeconfig { path, context } => {
            let refused = |cause: kube::config::KubeconfigError| MemberError::Kubeconfig {
                path: path.display().to_string(),
                cause: super::call::chain(&cause),
            };
            let kubeconfig = Kubeconfig::read_from(path).map_err(refused)?;
            let options = KubeConfigOptions {
                context: context.clone(),
                ..KubeConfigOptions::default()
            };
            Config::from_custom_kubeconfig(kubeconfig, &options)
                .await
                .map_err(refused)?
        }
    };
    if let Some(proxy) = config.proxy_url {
        return Err(MemberError::Proxy(proxy));
    }
    let server_name = match &config.tls_server_name {
        Some(name) => Some(
            ServerName::try_from(name.clone())
                .map_err(|_| MemberError::ServerName(name.clone()))?,
        ),
        None => None,
    };
    let mut tls = config.rustls_client_config()?;
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let http = Client::builder(TokioExecutor::new())
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .http2_keep_alive_interval(PING)
        .http2_keep_alive_timeout(PING)
        .http2_keep_alive_while_idle(true)
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .build::<_, Body>(Connector::new(Some(Arc::new(tls)), server_name));
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(config.extra_headers_layer()?)
        .option_layer(config.auth_layer()?)
        .map_err(tower::BoxError::from)
        .service(http);
    let url = config.cluster_url.clone();
    Ok((kube::Client::new(service, config.default_namespace), url))
}
