//! What a bridge learns, at the moment it does: `bridge monitor fdb` with times.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use futures_util::StreamExt;
use node_lib::Mac;
use rtnetlink::MulticastGroup;
use rtnetlink::packet_core::NetlinkPayload;
use rtnetlink::packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::arena::link::mac_of;
use crate::arena::netns::Netns;

/// A bridge found an address behind a port where it had not known it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearntAddress {
    /// When the kernel said so.
    pub at: Instant,
    /// The address.
    pub mac: Mac,
    /// The port.
    pub port: String,
}

/// Watches all bridges of a namespace.
#[derive(Debug)]
pub struct FdbWatch {
    stop: Arc<AtomicBool>,
    ports: BTreeMap<u32, String>,
    thread: JoinHandle<Result<Vec<(Instant, Mac, u32)>>>,
}

/// How often it is looked whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl FdbWatch {
    /// Starts watching. Ports that are added later are not named.
    pub fn start(ns: &Netns) -> Result<Self> {
        let links = ns.links()?;
        let ports = links.into_iter().map(|(name, state)| (state.index, name)).collect();
        let stop = Arc::<AtomicBool>::default();
        let (ready, is_ready) = sync_channel(1);
        let (ns, stopped) = (ns.clone(), Arc::clone(&stop));
        let thread = std::thread::spawn(move || ns.run(|| watch(&ready, &stopped)));
        // An error ends the thread, and with it the channel; `stop` tells it.
        let _ = is_ready.recv();
        Ok(Self { stop, ports, thread })
    }

    /// What was learnt, in order. Entries refreshed at the same port are not news.
    pub fn stop(self) -> Result<Vec<LearntAddress>> {
        self.stop.store(true, Ordering::Relaxed);
        let heard = self.thread.join().map_err(|_| anyhow!("the watch died"))??;
        let mut known = BTreeMap::new();
        let is_news =
            |(_, mac, port): &(Instant, Mac, u32)| known.insert(*mac, *port) != Some(*port);
        let named = |(at, mac, port)| {
            let port = self.ports.get(&port).cloned().unwrap_or_else(|| format!("port {port}"));
            LearntAddress { at, mac, port }
        };
        Ok(heard.into_iter().filter(is_news).map(named).collect())
    }
}

fn watch(ready: &SyncSender<()>, stop: &AtomicBool) -> Result<Vec<(Instant, Mac, u32)>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (connection, _handle, mut messages) =
            rtnetlink::new_multicast_connection(&[MulticastGroup::Neigh])?;
        let connection = tokio::spawn(connection);
        ready.send(())?;
        let mut heard = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let Ok(message) = tokio::time::timeout(LOOK_EVERY, messages.next()).await else {
                continue;
            };
            let (message, _) = message.context("the kernel's notifications ended")?;
            if let NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewNeighbour(entry)) =
                message.payload
                && entry.header.family == AddressFamily::Bridge
                && let Some(mac) = mac_of(&entry)
            {
                heard.push((Instant::now(), mac, entry.header.ifindex));
            }
        }
        connection.abort();
        Ok(heard)
    })
}
