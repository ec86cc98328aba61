//! The TAP: frames of all lengths, and what is deleted and made again.

use node_lib::Mac;
use node_lib::control::event::{Limit, TooLong};
use node_lib::device::netlink::{Netlink, TapSettings};
use node_lib::device::packet::PacketSocket;
use node_lib::device::{Burst, Device, LinkState, Outgoing, Received, Sent};

use crate::bench::{ETHERTYPE, frame, receive, send, silent, tap_with_host};
use crate::io_support::{in_namespace, ip};

#[test]
fn frames_cross_the_tap_both_ways_and_none_is_cut_short() {
    in_namespace(async || {
        let (mut tap, mut host, link) = tap_with_host("tap0").await;
        let out = frame(Mac::BROADCAST, link.mac, b"from the host");
        send(&mut host, &out);
        assert_eq!(receive(&mut tap, 1).await, [out]);
        let inward = frame(link.mac, Mac([2, 0, 0, 0, 0, 9]), b"from the node");
        send(&mut tap, &inward);
        assert_eq!(receive(&mut host, 1).await, [inward]);
        // The operator raises the MTU and we have not heard of it yet.
        ip("link set tap0 mtu 9000");
        send(&mut host, &frame(Mac::BROADCAST, link.mac, &[1; 5000]));
        assert!(silent(&mut tap).await);
        assert_eq!(tap.counters().rx_oversize, 1);
        tap.link_changed(Some(&LinkState { mtu: 9000, ..link })).unwrap();
        let large = frame(Mac::BROADCAST, link.mac, &[1; 9000]);
        send(&mut host, &large);
        assert_eq!(receive(&mut tap, 1).await, [large]);
        assert_eq!(tap.counters().rx_errors, 0);
    });
}

#[test]
fn writes_to_a_tap_that_is_down_or_of_impossible_length_are_counted() {
    const FAR: Mac = Mac([2, 0, 0, 0, 0, 9]);
    in_namespace(async || {
        let (mut tap, _host, link) = tap_with_host("tap0").await;
        let inward = frame(link.mac, Mac([2, 0, 0, 0, 0, 9]), b"x");
        ip("link set tap0 down");
        tap.send(&[Outgoing::new(&inward)]);
        assert_eq!(tap.counters().tx_down, 1);
        assert!(silent(&mut tap).await);
        ip("link set tap0 up");
        send(&mut tap, &inward);
        tap.send(&[Outgoing::new(&[0; 13])]);
        tap.send(&[Outgoing::new(&frame(link.mac, FAR, &[0; 70_000]))]);
        assert_eq!((tap.counters().tx_short, tap.counters().tx_oversize), (1, 1));
        let too_long = TooLong { from: FAR, len: 70_014, most: 2047, limit: Limit::Tap };
        assert_eq!((tap.take_too_long(), tap.take_too_long()), (Some(too_long), None));
    });
}

#[test]
fn a_deleted_tap_is_noticed_by_reading_and_by_writing_and_can_be_re_created() {
    in_namespace(async || {
        // Two names: `ip` may just be starting for another test, and hold the descriptor of the
        // first for a moment.
        for (name, notice_by_reading) in [("tap0", true), ("tap1", false)] {
            let (mut tap, host, link) = tap_with_host(name).await;
            ip(&format!("link del {name}"));
            drop(host);
            if notice_by_reading {
                assert_eq!(tap.recv(&mut Burst::new(4)), Received::Gone);
            } else {
                let inward = frame(link.mac, Mac([2, 0, 0, 0, 0, 9]), b"x");
                assert_eq!(tap.send(&[Outgoing::new(&inward)]), Sent::Gone);
                tap.send(&[Outgoing::new(&inward)]);
            }
            assert!(tap.descriptor().is_none(), "nothing to wait for");
            tap.reopen().unwrap();
            let mut netlink = Netlink::open().unwrap();
            let settings = TapSettings { mac: Some(link.mac), ..TapSettings::default() };
            netlink.set_up_tap(name, settings, 1460).await.unwrap();
            let again = netlink.link(name).await.unwrap();
            assert_eq!((again.mac, again.mtu), (link.mac, 1460));
            let mut host = PacketSocket::open(name, &again, ETHERTYPE).unwrap();
            let out = frame(Mac::BROADCAST, link.mac, b"again");
            send(&mut host, &out);
            assert_eq!(receive(&mut tap, 1).await, [out]);
        }
    });
}
