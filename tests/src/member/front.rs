//! The network in front of a member: a TCP proxy that can hang, refuse and delay.

use std::{io, net::SocketAddr, time::Duration};

use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// What the network does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    #[default]
    Open,
    /// Nobody listens, and connections that stood are closed.
    Refuse,
    /// Connections are taken and nothing moves on them.
    Hang,
    /// Every piece that moves waits this long first.
    #[serde(with = "humantime_duration")]
    Slow(Duration),
}

mod humantime_duration {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(delay: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&humantime::format_duration(*delay))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        humantime::parse_duration(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// Owns `listener`'s port and carries connections to `inner`, as `network` says, until `shutdown`.
pub async fn run(
    listener: TcpListener,
    inner: SocketAddr,
    mut network: watch::Receiver<Network>,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    let mut listener = Some(listener);
    let connections = TaskTracker::new();
    let mut standing = shutdown.child_token();
    loop {
        let now = *network.borrow_and_update();
        if now == Network::Refuse {
            listener = None;
            standing.cancel();
            standing = shutdown.child_token();
            tokio::select! {
                () = shutdown.cancelled() => break,
                changed = network.changed() => if changed.is_err() { break },
            }
            continue;
        }
        let door = match listener.take() {
            Some(door) => door,
            None => TcpListener::bind(address).await?,
        };
        tokio::select! {
            () = shutdown.cancelled() => break,
            changed = network.changed() => if changed.is_err() { break },
            accepted = door.accept() => if let Ok((outer, _)) = accepted {
                let (network, stop) = (network.clone(), standing.clone());
                connections.spawn(async move {
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = carry(outer, inner, network) => {}
                    }
                });
            },
        }
        listener = Some(door);
    }
    connections.close();
    connections.wait().await;
    Ok(())
}

async fn carry(outer: TcpStream, inner: SocketAddr, network: watch::Receiver<Network>) {
    let Ok(inner) = TcpStream::connect(inner).await else {
        return;
    };
    let _ = (outer.set_nodelay(true), inner.set_nodelay(true));
    let (from_outer, to_outer) = outer.into_split();
    let (from_inner, to_inner) = inner.into_split();
    tokio::join!(
        pump(from_outer, to_inner, network.clone()),
        pump(from_inner, to_outer, network)
    );
}

async fn pump(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut network: watch::Receiver<Network>,
) {
    let mut piece = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut piece).await {
        let Ok(now) = network
            .wait_for(|now| *now != Network::Hang)
            .await
            .map(|now| *now)
        else {
            break;
        };
        if let Network::Slow(delay) = now {
            tokio::time::sleep(delay).await;
        }
        if to.write_all(&piece[..length]).await.is_err() {
            break;
        }
    }
    let _ = to.shutdown().await;
}
