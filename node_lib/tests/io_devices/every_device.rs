//! What devices have in common: how they refuse, how they wake; and the UDP link.

use std::time::Duration;

use node_lib::Mac;
use node_lib::device::netlink::Netlink;
use node_lib::device::packet::PacketSocket;
use node_lib::device::tap::{Tap, TapOffload};
use node_lib::device::udp::Udp;
use node_lib::device::{Device, LinkState, Outgoing, Problem, memory};

use crate::bench::{ETHERTYPE, frame, receive, send, silent, tap_with_host, veth_pair};
use crate::io_support::{in_namespace, ip, wait_readable};

/// A frame that has been sent is there in no time.
const WAKE_WITHIN: Duration = Duration::from_secs(2);

#[test]
fn an_impossible_device_is_explained() {
    in_namespace(async || {
        let _first = Tap::open("tap0", TapOffload::Off).unwrap();
        assert!(matches!(Tap::open("tap0", TapOffload::Off).unwrap_err().source, Problem::Busy));
        ip("link add radio0 type veth peer name radio1");
        assert!(matches!(
            Tap::open("radio0", TapOffload::Off).unwrap_err().source,
            Problem::NotTap
        ));
        let long = Tap::open("sixteen_bytes_xx", TapOffload::Off).unwrap_err();
        assert!(matches!(long.source, Problem::NameLength(16)));
        let netlink = Netlink::open().unwrap();
        let missing = netlink.link("radio9").await.unwrap_err();
        assert!(matches!(missing.source, Problem::NoSuchInterface), "{missing:?}");
        let loopback = netlink.link("lo").await.unwrap_err();
        assert!(matches!(loopback.source, Problem::NotEthernet(_)), "{loopback:?}");
        let nowhere = LinkState { index: 9999, mac: Mac::ZERO, mtu: 1500, up: true };
        let missing = PacketSocket::open("radio9", &nowhere, ETHERTYPE).unwrap_err();
        assert!(matches!(missing.source, Problem::NoSuchInterface), "{missing:?}");
    });
}

#[test]
fn members_of_a_udp_link_hear_each_other_and_not_themselves() {
    in_namespace(async || {
        ip("link set lo up");
        let address = "udp:239.1.2.3:4000@127.0.0.1".parse().unwrap();
        let mut a = Udp::open(&address, ETHERTYPE).unwrap();
        let mut b = Udp::open(&address, ETHERTYPE).unwrap();
        let mut c = Udp::open(&address, ETHERTYPE).unwrap();
        let all = frame(Mac::BROADCAST, a.mac(), &[1; 1458]);
        send(&mut a, &all);
        assert_eq!(receive(&mut b, 1).await, std::slice::from_ref(&all));
        assert_eq!(receive(&mut c, 1).await, [all]);
        let only_b = frame(b.mac(), a.mac(), b"for b");
        send(&mut a, &only_b);
        assert_eq!(receive(&mut b, 1).await, [only_b]);
        assert!(silent(&mut a).await && silent(&mut c).await);
        assert_eq!((a.counters().rx_own, c.counters().rx_foreign), (2, 1));
        let large = frame(Mac::BROADCAST, a.mac(), &[1; 1459]);
        a.send(&[Outgoing::new(&large)]);
        assert_eq!(a.counters().tx_oversize, 1);
    });
}

#[test]
fn readiness_wakes_a_sleeping_reader_of_every_device() {
    in_namespace(async || {
        let (mut a, mut b) = veth_pair().await;
        let out = frame(b.mac, a.mac, b"wake up");
        for _ in 0..3 {
            assert!(silent(&mut b.radio).await);
            send(&mut a.radio, &out);
            assert!(wait_readable(&[&b.radio], WAKE_WITHIN));
            assert_eq!(receive(&mut b.radio, 1).await, std::slice::from_ref(&out));
        }
        let (mut tap, mut host, link) = tap_with_host("tap0").await;
        let out = frame(Mac::BROADCAST, link.mac, b"wake up");
        for _ in 0..3 {
            assert!(silent(&mut tap).await);
            send(&mut host, &out);
            assert!(wait_readable(&[&tap], WAKE_WITHIN));
            assert_eq!(receive(&mut tap, 1).await, std::slice::from_ref(&out));
        }
        let (mut near, mut far) = memory::pair(1500).unwrap();
        assert!(silent(&mut far).await);
        send(&mut near, &out);
        assert!(wait_readable(&[&far], WAKE_WITHIN));
        assert_eq!(receive(&mut far, 1).await, [out]);
        assert!(!wait_readable(&[&far], Duration::ZERO), "there is no more");
    });
}
