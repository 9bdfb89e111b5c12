//! From settings to a running agent: identity, registration, then every task at once, until it is told to stop.

use std::{future::Future, sync::Arc, time::Duration};

use evenkeel_shared::cluster::Cluster;
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use crate::{
    backoff::Backoff,
    config::{IdentityPlace, Settings},
    deliver::Engine,
    follow::{Target, follow},
    health,
    identity::{self, Enrolment, Identity, IdentityError, Store},
    lease::{self, ClusterLease},
    metrics::Metrics,
    register::{CLUSTERS, Facts, RegisterError, known, member_id, register},
    status::{
        census::{Census, NodeItem, PodItem},
        collector::Collector,
        watchers::{ClusterSink, NodeSink, PodSink, Served, Standing, keep_served},
    },
    transport::{Caller, Channel, MemberError, connect_member},
    vitals::Vitals,
};

const CONTROL_DEADLINE: Duration = Duration::from_secs(15);
const MEMBER_DEADLINE: Duration = Duration::from_secs(30);
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MOST: Duration = Duration::from_secs(30);
/// The pod's namespace, where its Secret is.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Why the agent ends by itself. All of it is a matter of what it was told.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Member(#[from] MemberError),
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error(transparent)]
    Register(#[from] RegisterError),
    #[error(transparent)]
    Health(std::io::Error),
    #[error("the pod's namespace cannot be read from {NAMESPACE_FILE}: {0}")]
    Namespace(std::io::Error),
    #[error("a task ended: {0}")]
    Task(String),
}

/// Runs until `stop`. A control plane or a member that is away is waited for; only what cannot work until somebody
/// changes the settings is an error.
pub async fn run(settings: Settings, stop: CancellationToken) -> Result<(), RunError> {
    let mut registry = Registry::default();
    let vitals = Arc::new(Vitals::new(Metrics::new(&mut registry)));
    let listener = health::bind(settings.health_bind)
        .await
        .map_err(RunError::Health)?;
    tracing::info!(address = %settings.health_bind, "health endpoint");
    let mut tasks = JoinSet::new();
    tasks.spawn(health::serve(
        listener,
        Arc::clone(&vitals),
        Arc::new(registry),
    ));
    let stopped = stop.clone();
    let outcome = tokio::select! {
        () = stopped.cancelled() => Ok(()),
        outcome = start(&settings, &vitals, &mut tasks) => match outcome {
            Ok(()) => tokio::select! {
                () = stop.cancelled() => Ok(()),
                Some(ended) = tasks.join_next() => Err(RunError::Task(match ended {
                    Ok(()) => "it returned".to_owned(),
                    Err(error) => error.to_string(),
                })),
            },
            Err(error) => Err(error),
        },
    };
    tracing::info!("stopping");
    tasks.shutdown().await;
    outcome
}

/// Tries until it works or cannot; waits longer each time.
async fn until_done<T, E, F>(
    what: &'static str,
    is_final: impl Fn(&E) -> bool,
    tell: impl Fn(&str),
    mut attempt: impl FnMut() -> F,
) -> Result<T, E>
where
    E: std::fmt::Display,
    F: Future<Output = Result<T, E>>,
{
    let mut backoff = Backoff::new(RETRY_FIRST, RETRY_MOST);
    loop {
        match attempt().await {
            Ok(done) => return Ok(done),
            Err(error) if is_final(&error) => return Err(error),
            Err(error) => {
                let wait = backoff.wait();
                let text = error.to_string();
                tell(&text);
                tracing::warn!(error = text, retry_in = ?wait, "{what}: not yet");
                tokio::time::sleep(wait).await;
            }
        }
    }
}

async fn start(
    settings: &Settings,
    vitals: &Arc<Vitals>,
    tasks: &mut JoinSet<()>,
) -> Result<(), RunError> {
    let (member, endpoint) = connect_member(&settings.member).await?;
    let member_caller = Caller::new(member.clone(), MEMBER_DEADLINE);
    let store = match &settings.identity {
        IdentityPlace::Directory(directory) => Store::Directory(directory.clone()),
        IdentityPlace::Secret { name } => Store::Secret {
            member: member_caller.clone(),
            namespace: tokio::fs::read_to_string(NAMESPACE_FILE)
                .await
                .map_err(RunError::Namespace)?
                .trim()
                .to_owned(),
            name: name.clone(),
        },
    };
    let enrolment = Enrolment {
        servers: settings.servers.clone(),
        cluster: settings.cluster.clone(),
        token: settings.token.clone(),
        trust: settings.trust.clone(),
        vitals: Arc::clone(vitals),
    };
    let identity = identity::obtain(&enrolment, &store).await?;
    vitals.identity(identity.not_after);
    let channel = Channel::new(
        settings.servers.clone(),
        identity.credentials()?,
        Arc::clone(vitals),
    );
    tasks.spawn(identity::keep_fresh(
        Identity::clone(&identity),
        enrolment,
        store,
        channel.clone(),
    ));
    let control = Caller::new(channel.client(), CONTROL_DEADLINE);
    let cluster = registered(settings, vitals, &control, &member_caller, &endpoint).await?;
    tracing::info!(cluster = settings.cluster, "registered");
    vitals.registered(None);
    report(settings, vitals, tasks, control, member_caller, cluster);
    Ok(())
}

async fn registered(
    settings: &Settings,
    vitals: &Vitals,
    control: &Caller,
    member: &Caller,
    endpoint: &http::Uri,
) -> Result<Cluster, RegisterError> {
    until_done(
        "registration",
        |error| matches!(error, RegisterError::Taken { .. }),
        |why| vitals.registered(Some(why)),
        || async {
            let id = match member_id(member).await {
                Ok(id) => id,
                // A member that is down after a restart is reported as such, by an agent that was let in before.
                Err(error) => match known(control, &settings.cluster, &error).await? {
                    Some(cluster) => return Ok(cluster),
                    None => return Err(error),
                },
            };
            let facts = Facts {
                name: settings.cluster.clone(),
                id,
                provider: settings.provider.clone(),
                region: settings.region.clone(),
                zones: settings.zones.clone(),
                endpoint: endpoint.to_string().trim_end_matches('/').to_owned(),
            };
            register(control, &facts).await
        },
    )
    .await
}

/// Starts everything that goes on for as long as the agent runs.
fn report(
    settings: &Settings,
    vitals: &Arc<Vitals>,
    tasks: &mut JoinSet<()>,
    control: Caller,
    member: Caller,
    cluster: Cluster,
) {
    let metrics = vitals.metrics.clone();
    let census = Arc::new(Mutex::new(Census::default()));
    let owner = cluster.metadata.uid.clone().unwrap_or_default();
    let (standing, known) = watch::channel(Standing {
        cluster: Arc::new(cluster),
        removed: false,
    });
    let (served_sender, served) = watch::channel(Served::default());
    let (ready_sender, ready) = watch::channel(false);
    let discover = Arc::new(Notify::new());

    tasks.spawn(follow::<Cluster>(
        control.client().clone(),
        Target {
            path: CLUSTERS.to_owned(),
            selector: format!("fieldSelector=metadata.name%3D{}", settings.cluster),
        },
        metrics.clone(),
        ClusterSink::new(standing.clone(), Arc::clone(vitals)),
    ));
    let everything = |path: &str| Target {
        path: path.to_owned(),
        selector: String::new(),
    };
    tasks.spawn(follow::<NodeItem>(
        member.client().clone(),
        everything("/api/v1/nodes"),
        metrics.clone(),
        NodeSink(Arc::clone(&census)),
    ));
    tasks.spawn(follow::<PodItem>(
        member.client().clone(),
        everything("/api/v1/pods"),
        metrics.clone(),
        PodSink(Arc::clone(&census)),
    ));
    tasks.spawn(keep_served(
        member.clone(),
        served_sender,
        Arc::clone(&discover),
    ));
    let lease = ClusterLease::new(
        control.clone(),
        settings.cluster.clone(),
        owner,
        settings.timings.lease_duration,
    );
    tasks.spawn(heartbeat(
        lease,
        settings.timings.lease_interval,
        metrics,
        known,
    ));
    tasks.spawn(
        Collector {
            control: control.clone(),
            member: member.client().clone(),
            timings: settings.timings.clone(),
            census,
            served: served.clone(),
            standing,
            ready: ready_sender,
            vitals: Arc::clone(vitals),
        }
        .run(),
    );
    tasks.spawn(
        Engine {
            cluster: settings.cluster.clone(),
            control,
            member,
            served,
            discover,
            ready,
            vitals: Arc::clone(vitals),
        }
        .run(),
    );
}

/// The lease, for as long as the member is of the fleet.
async fn heartbeat(
    lease: ClusterLease,
    interval: Duration,
    metrics: Metrics,
    mut standing: watch::Receiver<Standing>,
) {
    let removed = async {
        // Without a sender there is no news any more, and the agent ends.
        standing.wait_for(|standing| standing.removed).await.is_ok()
    };
    tokio::select! {
        () = lease::keep(lease, interval, &metrics) => {}
        _ = removed => {}
    }
    // A Cluster that is gone has no heartbeat; the task stays, as the agent does.
    std::future::pending::<()>().await;
}
