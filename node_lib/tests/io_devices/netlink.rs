//! Interfaces that are set up and watched through netlink.

use std::time::Duration;

use node_lib::Mac;
use node_lib::device::netlink::{Netlink, TapSettings};
use node_lib::device::tap::{Tap, TapOffload};
use node_lib::device::{Device, LinkChange, LinkState, Links, Side};

use crate::bench::veth_pair;
use crate::io_support::{in_namespace, ip};

#[test]
fn addresses_mtu_and_mac_are_set_and_setting_them_twice_is_harmless() {
    in_namespace(async || {
        let _tap = Tap::open("tap0", TapOffload::Off).unwrap();
        let mut netlink = Netlink::open().unwrap();
        let settings = TapSettings {
            addresses: vec!["10.7.0.1".parse().unwrap(), "fd07::1/48".parse().unwrap()],
            mac: Some(Mac([2, 1, 2, 3, 4, 5])),
            bridge: None,
        };
        for mtu in [1460, 1400] {
            netlink.set_up_tap("tap0", settings.clone(), mtu).await.unwrap();
            let link = netlink.link("tap0").await.unwrap();
            assert!(link.up);
            assert_eq!((link.mtu, link.mac), (mtu, Mac([2, 1, 2, 3, 4, 5])));
        }
        let shown = ip("-o addr show dev tap0");
        assert!(shown.contains("10.7.0.1/24") && shown.contains("fd07::1/48"), "{shown}");
    });
}

#[test]
fn every_change_of_a_watched_interface_is_reported_once() {
    in_namespace(async || {
        let (mut a, _b) = veth_pair().await;
        let link = a.netlink.link("radio0").await.unwrap();
        a.netlink.watch(Side::Radio, "radio0", &link);
        ip("link set radio0 mtu 1400");
        let state = settled(&mut a.netlink).await.unwrap();
        assert_eq!((state.mtu, state.up), (1400, true));
        ip("link set radio0 down");
        assert!(!settled(&mut a.netlink).await.unwrap().up);
        ip("link set radio0 address 02:00:00:00:00:77 up");
        let state = settled(&mut a.netlink).await.unwrap();
        assert_eq!((state.mac, state.up), (Mac([2, 0, 0, 0, 0, 0x77]), true));
        // Without the other end there is no carrier.
        ip("link set radio1 down");
        assert!(!settled(&mut a.netlink).await.unwrap().up);
        ip("link set radio1 up");
        assert!(settled(&mut a.netlink).await.unwrap().up);
        ip("link del radio0");
        assert_eq!(settled(&mut a.netlink).await, None);
        ip("link add radio0 mtu 1300 type veth peer name radio1");
        let state = settled(&mut a.netlink).await.unwrap();
        assert_eq!((state.mtu, state.up), (1300, false));
        assert_ne!(state.index, link.index);
        ip("link set radio0 name elsewhere");
        assert_eq!(settled(&mut a.netlink).await, None);
    });
}

#[test]
fn joining_and_leaving_a_bridge_is_not_a_deletion() {
    in_namespace(async || {
        let _tap = Tap::open("tap0", TapOffload::Off).unwrap();
        let mut netlink = Netlink::open().unwrap();
        netlink.set_up_tap("tap0", TapSettings::default(), 1460).await.unwrap();
        let link = netlink.link("tap0").await.unwrap();
        netlink.watch(Side::Tap, "tap0", &link);
        ip("link add br0 type bridge");
        ip("link set tap0 master br0");
        ip("link set tap0 nomaster");
        ip("link set tap0 mtu 1400");
        while let Some(change) = next_change(&mut netlink).await {
            assert!(change.link.is_some(), "{change:?}");
        }
        assert_eq!(netlink.link("tap0").await.unwrap().mtu, 1400);
    });
}

#[test]
fn a_port_wider_than_the_tap_is_known_wherever_it_came_from() {
    in_namespace(async || {
        let _tap = Tap::open("tap0", TapOffload::Off).unwrap();
        ip("link add br0 type bridge");
        ip("link add port0 mtu 9000 type veth peer name host0");
        ip("link add port1 mtu 1450 type veth peer name host1");
        ip("link set port0 master br0");
        ip("link set port1 master br0");
        let mut netlink = Netlink::open().unwrap();
        netlink.set_up_tap("tap0", TapSettings::default(), 1460).await.unwrap();
        let link = netlink.link("tap0").await.unwrap();
        netlink.watch(Side::Tap, "tap0", &link);
        let mut wider = async || {
            while next_change(&mut netlink).await.is_some() {}
            netlink.wider_port().map(|port| (port.name.clone(), port.mtu))
        };
        assert_eq!(wider().await, None, "the TAP is in no bridge");
        ip("link set tap0 master br0");
        assert_eq!(wider().await, Some(("port0".to_owned(), 9000)), "it was there before");
        ip("link set port1 mtu 9100");
        assert_eq!(wider().await, Some(("port1".to_owned(), 9100)), "it changed");
        ip("link del port1");
        assert_eq!(wider().await, Some(("port0".to_owned(), 9000)), "it is gone");
        ip("link set port0 nomaster");
        assert_eq!(wider().await, None, "it is no port any more");
        ip("link set port0 master br0");
        assert_eq!(wider().await, Some(("port0".to_owned(), 9000)), "it came back");
        ip("link set tap0 nomaster");
        assert_eq!(wider().await, None, "the TAP is in no bridge any more");
    });
}

#[test]
fn a_tap_made_again_is_down_until_it_is_back_where_somebody_put_it() {
    in_namespace(async || {
        let mut tap = Tap::open("tap0", TapOffload::Off).unwrap();
        let mut netlink = Netlink::open().unwrap();
        ip("link add br0 type bridge");
        ip("link set tap0 master br0");
        netlink.set_up_tap("tap0", TapSettings::default(), 1460).await.unwrap();
        let link = netlink.link("tap0").await.unwrap();
        netlink.watch(Side::Tap, "tap0", &link);
        ip("link del tap0");
        assert_eq!(settled(&mut netlink).await, None);
        tap.reopen().unwrap();
        ip("link set tap0 up");
        assert!(!settled(&mut netlink).await.unwrap().up);
        // It lacks nothing but its place.
        assert!(settled(&mut netlink).await.unwrap().up);
        assert!(ip("link show tap0").contains("master br0"));
        // There is no way back into a bridge that is gone.
        ip("link del tap0");
        assert_eq!(settled(&mut netlink).await, None);
        ip("link del br0");
        tap.reopen().unwrap();
        ip("link set tap0 up");
        assert!(settled(&mut netlink).await.unwrap().up);
    });
}

async fn next_change(links: &mut impl Links) -> Option<LinkChange> {
    let next = std::future::poll_fn(|cx| links.poll_change(cx));
    tokio::time::timeout(Duration::from_millis(300), next).await.ok()
}

/// The last state reported before nothing more comes. Waits out the second that Linux may hold back
/// the loss of a carrier.
async fn settled(links: &mut impl Links) -> Option<LinkState> {
    let first = std::future::poll_fn(|cx| links.poll_change(cx));
    let mut last = tokio::time::timeout(Duration::from_secs(3), first).await.expect("a change");
    while let Some(change) = next_change(links).await {
        assert_ne!(change, last, "the same state twice");
        last = change;
    }
    last.link
}

#[test]
fn an_interface_is_unused_while_nothing_is_connected_to_it() {
    in_namespace(async || {
        let netlink = Netlink::open().unwrap();
        let unused = async || netlink.is_unused("tap0").await.unwrap();
        assert!(!unused().await, "there is none");
        let _tap = Tap::open("tap0", TapOffload::Off).unwrap();
        ip("link set tap0 up");
        ip("address add fe80::7/64 dev tap0");
        assert!(unused().await, "IPv6 makes such an address by itself");
        for (connect, disconnect) in [
            ("address add 10.0.0.1/24 dev tap0", "address del 10.0.0.1/24 dev tap0"),
            ("address add fd00::1/64 dev tap0", "address del fd00::1/64 dev tap0"),
            ("link add link tap0 name over0 type macvlan", "link del over0"),
            ("link add br0 type bridge", "link del br0"),
        ] {
            ip(connect);
            if connect.contains("bridge") {
                assert!(unused().await, "a bridge it is not in");
                ip("link set tap0 master br0");
            }
            assert!(!unused().await, "{connect}");
            ip(disconnect);
            assert!(unused().await, "{disconnect}");
        }
    });
}
