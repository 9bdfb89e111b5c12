//! Serves a few kinds over plain HTTP, from memory, to anybody: for trying the server with kubectl and other clients.
//!
//! `cargo run -p evenkeel-api --example serve -- 127.0.0.1:8080`

use std::sync::Arc;

use evenkeel_api::{lifecycle, local::Client};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

#[path = "../tests/small/mod.rs"]
mod small;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:8080".into());
    let server = small::builder()
        .authorizer(Arc::new(small::AllowAll))
        .build();
    let shutdown = CancellationToken::new();
    let client = Client::new(Arc::clone(&server), Arc::default());
    let namespaces = Arc::clone(&server.registry().table().kinds[0]);
    for name in ["default", "kube-system", "kube-public"] {
        client
            .create(&namespaces, None, json!({"metadata": {"name": name}}))
            .await
            .map_err(|failure| std::io::Error::other(failure.message))?;
    }
    let listener = TcpListener::bind(&address).await?;
    println!("http://{}", listener.local_addr()?);
    let controllers = lifecycle::run(Arc::clone(&server), shutdown.clone());
    let (served, ()) = tokio::join!(server.serve(listener, None, shutdown), controllers);
    served
}
