//! All of access in one place, for whoever puts the server together.

use std::sync::Arc;

use evenkeel_api::{
    access::{
        Admission, Authenticator, Authorizer, Clock,
        bootstrap::BootstrapTokenAuthenticator,
        certificate::CertificateAuthenticator,
        masters::Masters,
        rbac::{Rbac, RbacAdmission},
        reviews,
    },
    failure::Failure,
    kind::Kind,
    local::Client,
};
use evenkeel_shared::names::{CLUSTER_NAMESPACE, SYSTEM_NAMESPACE};
use evenkeel_store::{Key, Resource, Store};
use futures::{FutureExt as _, future::BoxFuture};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    RequesterOf, admission::AgentAdmission, agent::AgentAuthorizer, defaults,
    newcomer::NewcomerAuthorizer,
};
use crate::{
    enrol::FleetView,
    pki::{Pki, kubeconfig},
};

/// The chains of a control plane, in their order.
pub struct Access {
    pub authenticators: Arc<[Arc<dyn Authenticator>]>,
    pub authorizers: Arc<[Arc<dyn Authorizer>]>,
    pub admissions: Vec<Arc<dyn Admission>>,
    /// The kinds of access reviews, answered by these chains.
    pub reviews: Vec<Kind>,
    /// What enrolment goes by.
    pub fleet: Arc<FleetView>,
    /// Keeps all this in step with the store until the token given is cancelled; to be spawned.
    pub follow: BoxFuture<'static, ()>,
}

impl Access {
    pub fn of_store(store: &Store, clock: &Clock, stop: &CancellationToken) -> Self {
        let (rbac, follow_rbac) = Rbac::of_store(store, stop.clone());
        let (fleet, follow_fleet) = FleetView::of_store(store, stop.clone());
        let requester: RequesterOf = {
            let store = store.clone();
            Arc::new(move |name| FleetView::requester(&store, name))
        };
        let secrets = {
            let store = store.clone();
            Arc::new(move |namespace: &str, name: &str| {
                let key = Key::new(Resource::new("", "secrets"), Some(namespace), name);
                store.get(&key).map(|secret| secret.json.clone())
            })
        };
        let authenticators: Arc<[Arc<dyn Authenticator>]> = Arc::new([
            Arc::new(CertificateAuthenticator::new(Arc::clone(clock))) as _,
            Arc::new(BootstrapTokenAuthenticator::new(secrets, Arc::clone(clock))) as _,
        ]);
        let authorizers: Arc<[Arc<dyn Authorizer>]> = Arc::new([
            Arc::new(Masters) as _,
            Arc::new(AgentAuthorizer::new(Arc::clone(&requester))) as _,
            Arc::new(NewcomerAuthorizer::new(requester)) as _,
            Arc::clone(&rbac) as _,
        ]);
        Self {
            reviews: reviews::kinds(Arc::clone(&authenticators), &authorizers),
            admissions: vec![
                Arc::new(AgentAdmission::new(Arc::clone(&fleet) as _)),
                Arc::new(RbacAdmission::new(rbac, store.clone())),
            ],
            authenticators,
            authorizers,
            fleet,
            follow: futures::future::join(follow_rbac, follow_fleet)
                .map(|_| ())
                .boxed(),
        }
    }
}

/// Namespaces that access and joining need.
const NAMESPACES: [&str; 4] = [
    "kube-system",
    "kube-public",
    CLUSTER_NAMESPACE,
    SYSTEM_NAMESPACE,
];

/// Makes what is there from the start: namespaces, default roles and bindings, and cluster-info. What is there already
/// is left as it is, save for cluster-info, which tells the server's address and authority of now.
pub async fn prepare(client: &Client, pki: &Pki, server: &str) -> Result<(), Failure> {
    for name in NAMESPACES {
        ensure(
            client,
            "",
            "Namespace",
            None,
            json!({"metadata": {"name": name}}),
        )
        .await?;
    }
    for (kind, namespace, object) in defaults::objects() {
        ensure(client, "rbac.authorization.k8s.io", kind, namespace, object).await?;
    }
    let data = json!({"kubeconfig": kubeconfig::anonymous(server, pki.authority())});
    let info = json!({"metadata": {"name": "cluster-info"}, "data": data});
    ensure(client, "", "ConfigMap", Some("kube-public"), info).await?;
    let kind = kind(client, "", "ConfigMap")?;
    let standing = client
        .get(&kind, Some("kube-public"), "cluster-info")
        .await?;
    if standing["data"]["kubeconfig"] != data["kubeconfig"] {
        client
            .patch_merge(
                &kind,
                Some("kube-public"),
                "cluster-info",
                None,
                &json!({"data": data}),
                evenkeel_shared::stamps::CONTROL_PLANE_MANAGER,
            )
            .await?;
    }
    Ok(())
}

fn kind(client: &Client, group: &str, kind: &str) -> Result<Arc<Kind>, Failure> {
    client
        .server()
        .registry()
        .table()
        .find_kind(group, kind)
        .cloned()
        .ok_or_else(|| Failure::internal(format!("the kind {kind} is not served")))
}

async fn ensure(
    client: &Client,
    group: &str,
    name: &str,
    namespace: Option<&str>,
    object: Value,
) -> Result<(), Failure> {
    let kind = kind(client, group, name)?;
    match client.create(&kind, namespace, object).await {
        Err(failure) if failure.reason != "AlreadyExists" => Err(failure),
        _ => Ok(()),
    }
}
