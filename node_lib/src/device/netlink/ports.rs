//! The other ports of the bridge that the TAP is in. A bridge drops what is too long for the TAP
//! before we see it, counts it nowhere and tells nobody (`is_skb_forwardable`). So a port that
//! takes longer frames is what can be seen of that.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::stream::TryStreamExt;
use rtnetlink::Handle;
use rtnetlink::packet_route::link::LinkMessage;
use tracing::{debug, warn};

use super::interface::{name_of, parse};
use super::neighbours::Place;
use crate::device::BridgePort;

type Reading = Pin<Box<dyn Future<Output = Result<Vec<LinkMessage>, rtnetlink::Error>> + Send>>;

/// What is known of them.
#[derive(Default)]
pub(super) struct OtherPorts {
    /// The TAP and its bridge, while it is in one.
    place: Option<Place>,
    /// By index. A Linux bridge has 1,024 at most (`BR_MAX_PORTS`).
    ports: BTreeMap<u32, BridgePort>,
    reading: Option<Reading>,
    /// What takes longer frames than the TAP.
    wider: Option<BridgePort>,
}

impl OtherPorts {
    /// The TAP is there now. What ports there are is read, if that is somewhere else than before.
    pub(super) fn follow(&mut self, place: Option<Place>, handle: &Handle) {
        if self.place != place {
            self.place = place;
            self.read(handle);
        }
    }

    /// Reads all again.
    pub(super) fn read(&mut self, handle: &Handle) {
        self.ports.clear();
        let links = handle.link().get().execute();
        self.reading = self.place.map(|_| -> Reading { Box::pin(links.try_collect()) });
    }

    /// An interface is in this state now, or is no more.
    pub(super) fn note(&mut self, message: &LinkMessage, exists: bool) {
        let Some(Place { tap, bridge }) = self.place else { return };
        let index = message.header.index;
        let port = || {
            let seen = parse(message).filter(|seen| seen.controller == Some(bridge))?;
            Some(BridgePort { name: name_of(message)?.clone(), mtu: seen.link.mtu })
        };
        match port().filter(|_| exists && index != tap) {
            Some(port) => _ = self.ports.insert(index, port),
            None => _ = self.ports.remove(&index),
        }
    }

    /// Takes notice of what was read; ready when something was.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(reading) = &mut self.reading else { return Poll::Pending };
        let result = ready!(reading.as_mut().poll(cx));
        self.reading = None;
        match result {
            Ok(links) => links.iter().for_each(|link| self.note(link, true)),
            Err(error) => debug!(%error, "the ports of the bridge cannot be read"),
        }
        Poll::Ready(())
    }

    /// Looks for the widest port, and says so once if it is wider than the TAP.
    pub(super) fn compare(&mut self, tap_mtu: Option<usize>) {
        let widest = self.ports.values().max_by_key(|port| port.mtu);
        let wider = widest.filter(|port| tap_mtu.is_some_and(|mtu| port.mtu > mtu));
        if let Some(BridgePort { name, mtu }) =
            wider.filter(|port| self.wider.as_ref() != Some(*port))
        {
            warn!(
                port = name,
                port_mtu = mtu,
                tap_mtu,
                "a port of the TAP's bridge takes longer frames than the TAP: the bridge drops \
                 them, and tells nobody; expected the same MTU at all ports and hosts"
            );
        }
        self.wider = wider.cloned();
    }

    /// The widest port, if it takes longer frames than the TAP.
    pub(super) fn wider(&self) -> Option<&BridgePort> {
        self.wider.as_ref()
    }
}
