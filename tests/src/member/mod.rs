//! Simulated member clusters: Evenkeel's generic API server over a store in memory, with nodes that do not exist and
//! controllers that behave as those of a real cluster, behind a network that can be broken.
//!
//! - [`workload`]: the rules of the controllers, pure
//! - [`view`], [`controllers`]: what they know, and the loop that acts
//! - [`population`]: nodes and pods at the start
//! - [`front`], [`switches`]: how a member is broken

pub mod controllers;
pub mod front;
pub mod population;
pub mod switches;
pub mod view;
pub mod workload;

use std::{io, net::SocketAddr, sync::Arc};

use evenkeel_api::{Server, VersionInfo, access, kind::Registry, local::Client};
use evenkeel_store::{Change, Key, Precondition, Resource, Store, StoreOptions, Write};
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{authority::Authority, clock};
use population::Population;
use switches::Switches;

/// The version that members say they are.
pub const KUBERNETES_VERSION: &str = "v1.36.2";

/// How to start a member.
#[derive(Clone, Debug)]
pub struct MemberOptions {
    pub name: String,
    /// Port 0 takes a free one.
    pub bind: SocketAddr,
    /// Where to serve the switches, if anywhere.
    pub control: Option<SocketAddr>,
    pub population: Population,
}

impl MemberOptions {
    /// A small member on a free port of the loopback interface: three nodes in three zones of one region.
    pub fn small(name: &str, region: &str) -> Self {
        Self {
            name: name.into(),
            bind: ([127, 0, 0, 1], 0).into(),
            control: None,
            population: Population {
                nodes: 3,
                regions: vec![region.into()],
                zones_per_region: 3,
                pods: 0,
            },
        }
    }
}

/// Why a member did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    #[error("cannot make certificates: {0}")]
    Certificates(#[from] rcgen::Error),
    #[error("cannot use the certificates: {0}")]
    Tls(#[from] rustls::Error),
    #[error("cannot populate: {0}")]
    Populate(String),
}

/// A running member. Ends when dropped.
pub struct Member {
    pub name: String,
    pub address: SocketAddr,
    pub control: Option<SocketAddr>,
    pub switches: Switches,
    /// Access within the process, for tests to look at and change what is in the member.
    pub client: Client,
    pub registry: Arc<Registry>,
    pub store: Store,
    token: String,
    authority: Authority,
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

/// Writes of one transaction while populating.
const BATCH: usize = 512;

impl Member {
    /// Starts a member and returns when it serves.
    pub async fn start(options: MemberOptions) -> Result<Self, StartError> {
        let authority = Authority::new(&format!("{} ca", options.name))?;
        let identity = authority.server(&[options.bind.ip(), [127, 0, 0, 1].into()])?;
        let tls = crate::authority::server_config(&identity)?;
        let token = format!("{:032x}", rand::random::<u128>());
        let store = Store::in_memory(StoreOptions::new(
            evenkeel_control_plane::kinds::attributes(),
        ));
        let registry = Arc::new(Registry::new(evenkeel_control_plane::kinds::kubernetes()));
        populate(&store, &registry, &options.population).await?;

        let switches = Switches::default();
        let masters = access::UserInfo {
            name: "admin".into(),
            groups: vec![access::MASTERS.into(), access::AUTHENTICATED.into()],
            ..Default::default()
        };
        let mut builder = Server::builder(store.clone(), registry.clone())
            .authenticator(Arc::new(access::statictoken::StaticTokens::new([(
                token.clone(),
                masters.clone(),
            )])))
            .authorizer(Arc::new(access::masters::Masters))
            .namespaces(Resource::new("", "namespaces"))
            .version(VersionInfo {
                major: "1".into(),
                minor: "36".into(),
                git_version: KUBERNETES_VERSION.into(),
                ..Default::default()
            });
        for check in switches::CHECKS {
            let switches = switches.clone();
            builder = builder.readiness(check, Arc::new(move || switches.check(check)));
        }
        let server = builder.build();

        let shutdown = CancellationToken::new();
        let tasks = TaskTracker::new();
        let listen = |address: SocketAddr| async move {
            TcpListener::bind(address)
                .await
                .map_err(|error| StartError::Listen(address, error))
        };
        let outer = listen(options.bind).await?;
        let inner = listen(([127, 0, 0, 1], 0).into()).await?;
        let local = |listener: &TcpListener| {
            listener
                .local_addr()
                .map_err(|error| StartError::Listen(options.bind, error))
        };
        let (address, inner_address) = (local(&outer)?, local(&inner)?);
        let (_, tls) = tokio::sync::watch::channel(Arc::new(tls));
        tasks.spawn(server.clone().serve(inner, Some(tls), shutdown.clone()));
        tasks.spawn(front::run(
            outer,
            inner_address,
            switches.network(),
            shutdown.clone(),
        ));
        tasks.spawn(evenkeel_api::lifecycle::run(
            server.clone(),
            shutdown.clone(),
        ));
        let control = match options.control {
            None => None,
            Some(control) => {
                let listener = listen(control).await?;
                let bound = local(&listener)?;
                tasks.spawn(switches::serve(
                    listener,
                    switches.clone(),
                    shutdown.clone(),
                ));
                Some(bound)
            }
        };
        let client = Client::new(server, Arc::new(masters)).as_manager("kube-controller-manager");
        let kinds = controllers::kinds(&registry.table()).ok_or_else(|| {
            StartError::Populate("the table lacks a kind of the controllers".into())
        })?;
        let controllers = controllers::Controllers {
            store: store.clone(),
            client: client.clone(),
            kinds,
            switches: switches.clone(),
        };
        tasks.spawn(controllers.run(shutdown.clone()));
        tasks.close();
        Ok(Self {
            name: options.name,
            address,
            control,
            switches,
            client,
            registry,
            store,
            token,
            authority,
            shutdown,
            tasks,
        })
    }

    /// A kubeconfig of one context, named as the member, that may do everything.
    pub fn kubeconfig(&self) -> String {
        crate::kubeconfig::with_token(
            &self.name,
            &format!("https://{}", self.address),
            self.authority.certificate(),
            &self.token,
        )
    }

    /// Ends everything and waits for it.
    pub async fn stop(self) {
        self.shutdown.cancel();
        self.tasks.wait().await;
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

async fn populate(
    store: &Store,
    registry: &Registry,
    population: &Population,
) -> Result<(), StartError> {
    let table = registry.table();
    let mut batch = Vec::with_capacity(BATCH);
    for seed in population.objects(clock::now()) {
        let (group, version, plural) = seed.path;
        let kind = table
            .find(group, version, plural)
            .ok_or_else(|| StartError::Populate(format!("{plural} are not served")))?;
        let namespace = workload::text(&seed.object, "/metadata/namespace");
        batch.push(Write {
            key: Key::new(kind.resource(), namespace, workload::name(&seed.object)),
            precondition: Precondition::Absent,
            change: Change::Put(evenkeel_api::encode(&seed.object, kind)),
        });
        if batch.len() == BATCH {
            commit(store, std::mem::take(&mut batch)).await?;
        }
    }
    commit(store, batch).await
}

async fn commit(store: &Store, batch: Vec<Write>) -> Result<(), StartError> {
    store
        .commit(batch)
        .await
        .map(drop)
        .map_err(|error| StartError::Populate(error.to_string()))
}
