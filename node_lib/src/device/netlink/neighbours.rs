//! Who is behind the other ports of the TAP's bridge: its forwarding table.
//!
//! The bridge has heard clients that say nothing to us, and for five minutes, or as long as its
//! ageing time is, it knows those that have fallen silent. A daemon that has just started knows
//! neither.

use std::io;
use std::time::Duration;

use futures_util::stream::TryStreamExt;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::link::{
    AfSpecBridge, BridgeVlanInfo, BridgeVlanInfoFlags, LinkAttribute, LinkExtentMask, LinkMessage,
};
use rtnetlink::packet_route::neighbour::{NeighbourAttribute, NeighbourMessage, NeighbourState};
use rtnetlink::{Error, Handle};

use crate::device::sys::give_memory_back;
use crate::mac::Mac;
use crate::messages::control::announcement::Client;
use crate::start::clients::{CLIENTS_MAX, Remembered};

/// What the times in messages of the kernel count (`USER_HZ`, the same on all machines but one).
const TICKS_PER_SECOND: u32 = 100;

/// A port of a bridge, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) tap: u32,
    pub(super) bridge: u32,
}

/// The clients behind the other ports of the bridge, those heard last first. Must run inside a
/// tokio runtime.
///
/// The answer is read whole before the first entry is looked at: some 300 bytes for each in the
/// bridge's table, which may have thousands. A connection keeps for good the room it needed once,
/// so this one is made for the question and goes after it.
pub(super) async fn behind(at: Place) -> io::Result<Vec<Remembered>> {
    let (connection, handle, messages) = rtnetlink::new_connection()?;
    let server = tokio::spawn(connection);
    let clients = ask(&handle, at).await.map_err(io::Error::other);
    server.abort();
    // Aborted, which is an error.
    let _ = server.await;
    drop(messages);
    give_memory_back();
    clients
}

async fn ask(handle: &Handle, at: Place) -> Result<Vec<Remembered>, Error> {
    let mask = vec![LinkExtentMask::Brvlan];
    let mut ports = handle.link().get().set_filter_mask(AddressFamily::Bridge, mask).execute();
    let mut vlans = Vec::new();
    while let Some(port) = ports.try_next().await? {
        if port.header.index == at.tap {
            vlans = vlans_of(&port);
        }
    }
    let request = handle.neighbours().get().set_address_family(AddressFamily::Bridge);
    let mut entries = std::pin::pin!(request.execute());
    let mut clients = Vec::new();
    while let Some(entry) = entries.try_next().await? {
        clients.extend(client(&entry, at, &vlans));
        if clients.len() >= 2 * CLIENTS_MAX {
            keep_the_latest(&mut clients);
        }
    }
    keep_the_latest(&mut clients);
    Ok(clients)
}

fn keep_the_latest(clients: &mut Vec<Remembered>) {
    clients.sort_unstable_by_key(|remembered| (remembered.silent_for, remembered.client));
    clients.truncate(CLIENTS_MAX);
}

/// VLANs of a port, first and last, and whether frames of them leave it without a tag.
type Vlans = Vec<(u16, u16, bool)>;

/// None where the bridge does not look at VLANs.
fn vlans_of(port: &LinkMessage) -> Vlans {
    let infos = port.attributes.iter().filter_map(|attribute| match attribute {
        LinkAttribute::AfSpecBridge(infos) => Some(infos),
        _ => None,
    });
    let (mut vlans, mut begin) = (Vlans::new(), None);
    for info in infos.flatten() {
        let AfSpecBridge::VlanInfo(BridgeVlanInfo { flags, vid }) = info else { continue };
        let is_untagged = flags.contains(BridgeVlanInfoFlags::Untagged);
        if flags.contains(BridgeVlanInfoFlags::RangeBegin) {
            begin = Some(*vid);
        } else {
            vlans.push((begin.take().unwrap_or(*vid), *vid, is_untagged));
        }
    }
    vlans
}

/// A client of the bridge's table as its frames look on the TAP; `None` for what is no client
/// behind another port.
fn client(entry: &NeighbourMessage, at: Place, vlans: &Vlans) -> Option<Remembered> {
    // Local: an address of the bridge or of a port itself.
    if entry.header.ifindex == at.tap || entry.header.state == NeighbourState::Permanent {
        return None;
    }
    let (mut mac, mut bridge, mut vlan, mut ticks) = (None, None, None, 0);
    for attribute in &entry.attributes {
        match attribute {
            NeighbourAttribute::LinkLayerAddress(bytes) => {
                mac = <[u8; 6]>::try_from(bytes.as_slice()).ok().map(Mac);
            }
            NeighbourAttribute::Controller(index) => bridge = Some(*index),
            NeighbourAttribute::Vlan(vid) => vlan = Some(*vid),
            NeighbourAttribute::CacheInfo(info) => ticks = info.updated,
            _ => {}
        }
    }
    let mac = mac.filter(|mac| mac.is_unicast() && bridge == Some(at.bridge))?;
    let vlan = match vlan {
        None => 0,
        Some(vid) => {
            let holds = |(first, last, _): &&(u16, u16, bool)| (*first..=*last).contains(&vid);
            // In a VLAN that the TAP is not in nobody is behind us.
            let (_, _, is_untagged) = vlans.iter().find(holds)?;
            if *is_untagged { 0 } else { vid }
        }
    };
    let silent_for = Duration::from_secs(u64::from(ticks / TICKS_PER_SECOND));
    // Static entries are somebody's word that this client is there.
    let is_static = entry.header.state == NeighbourState::Noarp;
    let silent_for = if is_static { Duration::ZERO } else { silent_for };
    Some(Remembered { client: Client { vlan, mac }, silent_for })
}

#[cfg(test)]
mod tests {
    use rtnetlink::packet_route::neighbour::NeighbourCacheInfo;

    use super::*;

    const AT: Place = Place { tap: 7, bridge: 2 };
    const CAMERA: Mac = Mac([2, 0, 0, 0, 0, 7]);

    fn entry(port: u32, state: NeighbourState, vlan: Option<u16>) -> NeighbourMessage {
        let mut entry = NeighbourMessage::default();
        entry.header.family = AddressFamily::Bridge;
        (entry.header.ifindex, entry.header.state) = (port, state);
        // `NeighbourCacheInfo` cannot be written down, only read.
        let ticks = [0_u32, 9900, 1250, 0].map(u32::to_ne_bytes).concat();
        entry.attributes = vec![
            NeighbourAttribute::LinkLayerAddress(CAMERA.0.to_vec()),
            NeighbourAttribute::Controller(AT.bridge),
            NeighbourAttribute::CacheInfo(NeighbourCacheInfo::parse(&ticks).unwrap()),
        ];
        entry.attributes.extend(vlan.map(NeighbourAttribute::Vlan));
        entry
    }

    fn camera(vlan: u16, silent_secs: u64) -> Remembered {
        let client = Client { vlan, mac: CAMERA };
        Remembered { client, silent_for: Duration::from_secs(silent_secs) }
    }

    #[test]
    fn what_is_learnt_behind_another_port_is_a_client() {
        let learnt = entry(3, NeighbourState::Reachable, None);
        assert_eq!(client(&learnt, AT, &vec![]), Some(camera(0, 12)));
        let fixed = entry(3, NeighbourState::Noarp, None);
        assert_eq!(client(&fixed, AT, &vec![]), Some(camera(0, 0)));
    }

    #[test]
    fn neither_local_addresses_nor_what_came_through_us_nor_another_bridge_is() {
        let mut foreign = entry(3, NeighbourState::Reachable, None);
        foreign.attributes[1] = NeighbourAttribute::Controller(9);
        let mut group = entry(3, NeighbourState::Noarp, None);
        group.attributes[0] = NeighbourAttribute::LinkLayerAddress(vec![1, 0, 0x5e, 0, 0, 1]);
        let mut short = entry(3, NeighbourState::Reachable, None);
        short.attributes[0] = NeighbourAttribute::LinkLayerAddress(vec![2, 0, 0]);
        for entry in [
            entry(3, NeighbourState::Permanent, None),
            entry(AT.tap, NeighbourState::Reachable, None),
            foreign,
            group,
            short,
        ] {
            assert_eq!(client(&entry, AT, &vec![]), None, "{entry:?}");
        }
    }

    #[test]
    fn a_vlan_of_the_bridge_is_the_tag_its_frames_have_on_the_tap() {
        let vlan = |flags, vid| AfSpecBridge::VlanInfo(BridgeVlanInfo { flags, vid });
        let mut port = LinkMessage::default();
        port.attributes = vec![LinkAttribute::AfSpecBridge(vec![
            vlan(BridgeVlanInfoFlags::Pvid | BridgeVlanInfoFlags::Untagged, 1),
            vlan(BridgeVlanInfoFlags::RangeBegin, 10),
            vlan(BridgeVlanInfoFlags::RangeEnd, 20),
            vlan(BridgeVlanInfoFlags::empty(), 30),
        ])];
        let vlans = vlans_of(&port);
        assert_eq!(vlans, [(1, 1, true), (10, 20, false), (30, 30, false)]);
        for (vid, seen) in [(1, Some(0)), (10, Some(10)), (15, Some(15)), (30, Some(30)), (9, None)]
        {
            let learnt = entry(3, NeighbourState::Reachable, Some(vid));
            assert_eq!(client(&learnt, AT, &vlans), seen.map(|vlan| camera(vlan, 12)), "{vid}");
        }
    }

    #[test]
    fn of_too_many_those_heard_last_are_kept() {
        let mut clients: Vec<_> = (0..1000).rev().map(|n| camera(0, n)).collect();
        keep_the_latest(&mut clients);
        assert_eq!((clients.len(), clients[0], clients[511]), (512, camera(0, 0), camera(0, 511)));
    }
}
