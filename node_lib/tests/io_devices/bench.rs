//! A cable with a radio at each end, a TAP with a host behind it, and what passes between them.

use std::time::Duration;

use node_lib::Mac;
use node_lib::device::netlink::{Netlink, TapSettings};
use node_lib::device::packet::PacketSocket;
use node_lib::device::tap::{Tap, TapOffload};
use node_lib::device::{Burst, Device, LinkState, Outgoing, Received, Sent};

use crate::io_support::ip;

pub(crate) const ETHERTYPE: u16 = 0x88b5;

pub(crate) struct End {
    pub(crate) radio: PacketSocket,
    pub(crate) netlink: Netlink,
    pub(crate) link: LinkState,
    pub(crate) mac: Mac,
}

pub(crate) async fn end(name: &str) -> End {
    let netlink = Netlink::open().unwrap();
    let link = netlink.link(name).await.unwrap();
    let radio = PacketSocket::open(name, &link, ETHERTYPE).unwrap();
    End { radio, netlink, mac: link.mac, link }
}

/// Two packet sockets with a cable between them.
pub(crate) async fn veth_pair() -> (End, End) {
    ip("link add radio0 type veth peer name radio1");
    ip("link set radio0 up");
    ip("link set radio1 up");
    carrier(&["radio0", "radio1"]).await;
    (end("radio0").await, end("radio1").await)
}

/// Waits until these interfaces are up and have a carrier.
pub(crate) async fn carrier(names: &[&str]) {
    let netlink = Netlink::open().unwrap();
    for name in names {
        for attempt in 0.. {
            if netlink.link(name).await.unwrap().up {
                break;
            }
            assert!(attempt < 400, "{name} did not come up");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// A TAP, and a packet socket that stands for the host behind it.
pub(crate) async fn tap_with_host(name: &str) -> (Tap, PacketSocket, LinkState) {
    let mut tap = Tap::open(name, TapOffload::Off).unwrap();
    let mut netlink = Netlink::open().unwrap();
    netlink.set_up_tap(name, TapSettings::default(), 1460).await.unwrap();
    carrier(&[name]).await;
    let link = netlink.link(name).await.unwrap();
    tap.link_changed(Some(&link)).unwrap();
    let host = PacketSocket::open(name, &link, ETHERTYPE).unwrap();
    (tap, host, link)
}

pub(crate) fn frame(dest: Mac, source: Mac, payload: &[u8]) -> Vec<u8> {
    [&dest.0[..], &source.0, &ETHERTYPE.to_be_bytes(), payload].concat()
}

pub(crate) fn send(device: &mut impl Device, frame: &[u8]) {
    let before = device.counters().tx_frames;
    assert_eq!(device.send(&[Outgoing::new(frame)]), Sent::All);
    let after = device.counters();
    assert_eq!(after.tx_frames, before + 1, "{after:?}");
}

/// The next frames of ours, waiting for them up to two seconds. What the host sends on a TAP by
/// itself (multicast listeners and the like) is passed over.
pub(crate) async fn receive(device: &mut impl Device, count: usize) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let mut burst = Burst::new(8);
    for _ in 0..400 {
        device.recv(&mut burst);
        frames.extend(burst.frames().filter(|frame| is_ours(frame)).map(<[u8]>::to_vec));
        if frames.len() >= count {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    frames
}

pub(crate) fn is_ours(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&ETHERTYPE.to_be_bytes())
}

/// No frame of ours arrives for a while.
pub(crate) async fn silent(device: &mut impl Device) -> bool {
    let mut burst = Burst::new(8);
    for _ in 0..10 {
        while device.recv(&mut burst) == Received::More {}
        if burst.frames().any(is_ours) {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    true
}
