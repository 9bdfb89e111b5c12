//! The controllers that every API server needs, whatever its kinds: namespaces that are deleted lose their content
//! first, and objects whose owners are gone follow them.
//!
//! Whoever assembles a server runs them, in one process of those that share a store.
//!
//! - [`feed`]: changes of all kinds in one stream
//! - [`garbage`]: garbage collection by owner references
//! - [`namespace`]: namespace termination

mod feed;
mod garbage;
mod namespace;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::{
    access::{MASTERS, UserInfo},
    local::Client,
    server::Server,
};

/// Who owns the fields that these controllers write: the name that tools know for it.
const MANAGER: &str = "kube-controller-manager";

/// Runs the controllers until `shutdown`.
pub async fn run(server: Arc<Server>, shutdown: CancellationToken) {
    let client = |name: &str| {
        let user = UserInfo {
            name: name.to_owned(),
            groups: vec![MASTERS.to_owned()],
            ..UserInfo::default()
        };
        Client::new(Arc::clone(&server), Arc::new(user)).as_manager(MANAGER)
    };
    let garbage = garbage::run(client("system:garbage-collector"));
    let namespaces = namespace::run(client("system:namespace-controller"));
    shutdown
        .run_until_cancelled(futures::future::join(garbage, namespaces))
        .await;
}
