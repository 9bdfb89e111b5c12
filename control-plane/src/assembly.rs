//! Putting the parts together, and taking them down again.

use std::{
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use evenkeel_api::{
    Server, VersionInfo,
    access::{MASTERS, Observer, UserInfo},
    failure::Failure,
    kind::{Kind, Registry},
    lifecycle,
    local::Client,
};
use evenkeel_shared::stamps;
use evenkeel_store::{OpenError, Resource, Store, StoreOptions, engine::EngineError};
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    access::assembly::{Access, prepare},
    backup::{self, BackupRoute},
    cli::Settings,
    clock::{self, Stopwatch},
    clusters::{
        controller::{Controller as Clusters, Kinds},
        prerequisites,
    },
    enrol::{self, FleetView, controller::Enrolment, sign::Lifetimes},
    expiry,
    fleet::Fleet,
    kinds,
    liveness::{hearing::Hearing, metrics::Metrics as LivenessMetrics, monitor::Monitor},
    lock::{DirLock, LockError},
    metrics,
    pki::{Pki, PkiError, PkiOptions},
    propagation::controller::Controller as Propagation,
};

/// Between failing readiness and closing the door.
const LEAVE: Duration = Duration::from_millis(200);
/// For controllers to finish what is under way.
const FINISH: Duration = Duration::from_secs(10);

/// Why the control plane did not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error("--bind: cannot listen on {address}: {error}")]
    Bind {
        address: SocketAddr,
        error: io::Error,
    },
    #[error("--data-dir: {0}")]
    Store(#[from] OpenError),
    #[error("certificates: {0}")]
    Pki(#[from] PkiError),
    #[error("cannot make what everything else counts on: {}", .0.message)]
    Prerequisites(Box<Failure>),
    #[error("the kind {0} is not served")]
    MissingKind(&'static str),
    #[error("cannot accept connections: {0}")]
    Accept(io::Error),
    #[error("the store could not be closed: {0}")]
    Close(#[from] EngineError),
}

/// A control plane that serves.
pub struct ControlPlane {
    server: Arc<Server>,
    store: Store,
    pki: Arc<Pki>,
    address: SocketAddr,
    stop: CancellationToken,
    leaving: Arc<AtomicBool>,
    controllers: TaskTracker,
    serving: tokio::task::JoinHandle<io::Result<()>>,
    _lock: DirLock,
}

impl ControlPlane {
    /// Opens everything and begins to serve.
    pub async fn start(settings: Settings) -> Result<Self, ServeError> {
        let stopwatch = Stopwatch::start();
        let lock = DirLock::take(&settings.data_dir)?;
        let bind = |error| ServeError::Bind {
            address: settings.bind,
            error,
        };
        let listener = TcpListener::bind(settings.bind).await.map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        let store = Store::open(&settings.data_dir, StoreOptions::new(kinds::attributes())).await?;
        let pki = Arc::new(Pki::open(
            &PkiOptions {
                data_dir: settings.data_dir.clone(),
                bind: address,
                advertise: settings.advertise.clone(),
                operator: settings.authority.clone(),
            },
            clock::now(),
        )?);

        let registry = Arc::new(Registry::new(kinds::kubernetes()));
        registry.register(kinds::fleet());
        let fleet = Arc::new(Fleet::default());
        let hearing = Arc::new(Hearing::new(stopwatch));
        let leaving = Arc::new(AtomicBool::new(false));
        let ready = Arc::new(Ready::default());
        let stop = CancellationToken::new();
        let controllers = TaskTracker::new();
        let access = Access::of_store(&store, &clock::wall(), &stop);
        registry.register(access.reviews.iter().cloned());
        let server = server(
            &settings, &store, &registry, &pki, &hearing, &leaving, &ready, &access,
        );
        controllers.spawn(access.follow);

        let parts = Parts {
            client: Client::new(Arc::clone(&server), controller_user())
                .as_manager(stamps::CONTROL_PLANE_MANAGER),
            server: Arc::clone(&server),
            store: store.clone(),
            registry,
            fleet,
            hearing,
            pki: Arc::clone(&pki),
            joining: access.fleet,
            stopwatch,
            settings,
        };
        parts.start(&ready, &controllers, &stop).await?;

        let serving = tokio::spawn(Arc::clone(&server).serve(
            listener,
            Some(pki.server_config()),
            stop.clone(),
        ));
        Ok(Self {
            server,
            store,
            pki,
            address,
            stop,
            leaving,
            controllers,
            serving,
            _lock: lock,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL, seen from this machine.
    pub fn url(&self) -> &str {
        self.pki.local_server()
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.pki.admin_kubeconfig().to_owned()
    }

    /// The API server, for tests in the same process.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Serves until `order` comes, or until it cannot go on; then takes everything down in order: readiness fails,
    /// watches end and requests finish, controllers stop, the store is closed.
    pub async fn run_until(mut self, order: impl Future<Output = ()>) -> Result<(), ServeError> {
        let ended = tokio::select! {
            () = order => None,
            ended = &mut self.serving => Some(ended),
        };
        self.leaving.store(true, Ordering::Release);
        if ended.is_none() {
            tokio::time::sleep(LEAVE).await;
        }
        self.stop.cancel();
        let ended = match ended {
            Some(ended) => ended,
            None => (&mut self.serving).await,
        };
        self.controllers.close();
        if tokio::time::timeout(FINISH, self.controllers.wait())
            .await
            .is_err()
        {
            tracing::warn!("controllers did not finish in time");
        }
        self.store.close().await?;
        match ended {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(ServeError::Accept(error)),
            Err(error) => Err(ServeError::Accept(io::Error::other(error))),
        }
    }
}

/// What readiness asks for.
#[derive(Default)]
struct Ready {
    propagation: parking_lot::Mutex<Option<Arc<Propagation>>>,
}

impl Ready {
    fn controllers(&self) -> Result<(), String> {
        let propagation = self.propagation.lock();
        match propagation.as_ref() {
            None => Err("controllers have not started".into()),
            Some(propagation) if !propagation.is_synced() => {
                Err("controllers are still reading the store".into())
            }
            Some(_) => Ok(()),
        }
    }
}

/// Who the controllers are in managedFields and to admission.
fn controller_user() -> Arc<UserInfo> {
    Arc::new(UserInfo {
        name: stamps::CONTROL_PLANE_MANAGER.to_owned(),
        groups: vec![MASTERS.to_owned()],
        ..UserInfo::default()
    })
}

#[expect(
    clippy::too_many_arguments,
    reason = "one place that ties everything together"
)]
fn server(
    settings: &Settings,
    store: &Store,
    registry: &Arc<Registry>,
    pki: &Arc<Pki>,
    hearing: &Arc<Hearing>,
    leaving: &Arc<AtomicBool>,
    ready: &Arc<Ready>,
    access: &Access,
) -> Arc<Server> {
    let namespaces = Resource::new("", "namespaces");
    let (writable, certificate) = (store.clone(), Arc::clone(pki));
    let (leaving, ready) = (Arc::clone(leaving), Arc::clone(ready));
    let mut builder = Server::builder(store.clone(), Arc::clone(registry));
    for authenticator in access.authenticators.iter() {
        builder = builder.authenticator(Arc::clone(authenticator));
    }
    for authorizer in access.authorizers.iter() {
        builder = builder.authorizer(Arc::clone(authorizer));
    }
    for admission in &access.admissions {
        builder = builder.admission(Arc::clone(admission));
    }
    builder
        .limits(settings.limits.clone())
        .version(VersionInfo::of(env!("CARGO_PKG_VERSION")))
        .namespaces(namespaces)
        .observer(Arc::clone(hearing) as Arc<dyn Observer>)
        .route(backup::PATH, BackupRoute::new(store.clone()))
        .readiness(
            "store",
            Arc::new(move || writable.failure().map_or(Ok(()), Err)),
        )
        .readiness("controllers", Arc::new(move || ready.controllers()))
        .readiness(
            "certificate",
            Arc::new(move || {
                if certificate.serving_not_after() > clock::now() {
                    Ok(())
                } else {
                    Err("the serving certificate has expired".into())
                }
            }),
        )
        .readiness(
            "staying",
            Arc::new(move || {
                if leaving.load(Ordering::Acquire) {
                    Err("the server is about to stop".into())
                } else {
                    Ok(())
                }
            }),
        )
        .build()
}

/// The URL that joining agents are told to dial.
fn advertised(settings: &Settings, pki: &Pki) -> String {
    let Some(name) = settings.advertise.first() else {
        return pki.local_server().to_owned();
    };
    let port = pki
        .local_server()
        .rsplit_once(':')
        .map_or("6443", |(_, port)| port);
    match name.parse::<std::net::Ipv6Addr>() {
        Ok(ip) => format!("https://[{ip}]:{port}"),
        Err(_) => format!("https://{name}:{port}"),
    }
}

/// Everything that controllers are made of.
struct Parts {
    settings: Settings,
    server: Arc<Server>,
    client: Client,
    store: Store,
    registry: Arc<Registry>,
    fleet: Arc<Fleet>,
    hearing: Arc<Hearing>,
    pki: Arc<Pki>,
    joining: Arc<FleetView>,
    stopwatch: Stopwatch,
}

impl Parts {
    async fn start(
        self,
        ready: &Ready,
        controllers: &TaskTracker,
        stop: &CancellationToken,
    ) -> Result<(), ServeError> {
        let kinds = Kinds::of(&self.registry.table()).map_err(ServeError::MissingKind)?;
        let events = self.kind("", "Event")?;
        let liveness = LivenessMetrics::default();
        {
            let registry = self.server.metrics_registry();
            let mut registry = registry.lock();
            metrics::register(&mut registry, self.store.clone(), self.stopwatch);
            liveness.register(&mut registry);
        }
        prerequisites::ensure(&self.client, &kinds.namespaces)
            .await
            .map_err(|failure| ServeError::Prerequisites(Box::new(failure)))?;
        let server = advertised(&self.settings, &self.pki);
        prepare(&self.client, &self.pki, &server)
            .await
            .map_err(|failure| ServeError::Prerequisites(Box::new(failure)))?;
        controllers.spawn(enrol::controller::run(
            Enrolment {
                client: self.client.clone(),
                authority: Arc::clone(self.pki.authority()),
                fleet: Arc::clone(&self.joining),
                lifetimes: Lifetimes::default(),
                clock: clock::wall(),
            },
            stop.clone(),
        ));

        controllers.spawn({
            let (fleet, store, stop) = (Arc::clone(&self.fleet), self.store.clone(), stop.clone());
            async move { fleet.run(store, stop).await }
        });
        self.fleet.synced().await;
        controllers.spawn(lifecycle::run(Arc::clone(&self.server), stop.clone()));
        controllers.spawn({
            let (pki, stop) = (Arc::clone(&self.pki), stop.clone());
            async move { pki.run(clock::wall(), stop).await }
        });
        controllers.spawn(expiry::run(
            self.store.clone(),
            self.client.clone(),
            Arc::clone(&events),
            stop.clone(),
        ));

        let monitor = Monitor {
            store: self.store.clone(),
            client: self.client.clone(),
            clusters: Arc::clone(&kinds.clusters),
            events,
            fleet: Arc::clone(&self.fleet),
            hearing: self.hearing,
            stopwatch: self.stopwatch,
            knobs: self.settings.liveness,
            metrics: liveness,
        };
        controllers.spawn({
            let stop = stop.clone();
            async move { monitor.run(stop).await }
        });

        let clusters = Clusters {
            store: self.store.clone(),
            client: self.client.clone(),
            fleet: Arc::clone(&self.fleet),
            kinds: kinds.clone(),
        };
        controllers.spawn({
            let stop = stop.clone();
            async move { clusters.run(stop).await }
        });

        let propagation = Arc::new(Propagation::new(
            self.store,
            self.client,
            self.registry,
            self.fleet,
            kinds,
        ));
        *ready.propagation.lock() = Some(Arc::clone(&propagation));
        controllers.spawn({
            let stop = stop.clone();
            async move { propagation.run(stop).await }
        });
        Ok(())
    }

    fn kind(&self, group: &str, kind: &'static str) -> Result<Arc<Kind>, ServeError> {
        self.registry
            .table()
            .find_kind(group, kind)
            .cloned()
            .ok_or(ServeError::MissingKind(kind))
    }
}
