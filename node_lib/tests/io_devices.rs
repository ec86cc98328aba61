//! What the devices do with a real kernel: TAP, packet socket, netlink, in namespaces of their own.
//!
//! Each test runs on a thread in a new network namespace, which vanishes with it. That needs
//! CAP_SYS_ADMIN, and /dev/net/tun for the TAPs: run as root. There is no skipping: a test that
//! cannot run has failed. `ip` (iproute2) plays the operator.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::time::Duration;

use nix::sys::socket::{getsockopt, sockopt};
use node_lib::Mac;
use node_lib::control::event::{Limit, TooLong};
use node_lib::device::memory;
use node_lib::device::netlink::{Netlink, TapSettings};
use node_lib::device::packet::{self, PacketSocket};
use node_lib::device::tap::{Tap, TapOffload};
use node_lib::device::udp::Udp;
use node_lib::device::{
    Burst, Device, LinkChange, LinkState, Links, Outgoing, Problem, Received, Sent, Side,
};

mod io_support;
use io_support::{in_namespace, ip, operate, wait, wait_readable};
use rustix::event::PollFlags;

const ETHERTYPE: u16 = 0x88b5;
/// A frame that has been sent is there in no time.
const WAKE_WITHIN: Duration = Duration::from_secs(2);

#[test]
fn frames_cross_and_our_own_do_not_come_back() {
    in_namespace(async || {
        let (mut a, mut b) = veth_pair().await;
        let (mac_a, mac_b) = (a.mac, b.mac);
        send(&mut a.radio, &frame(mac_b, mac_a, b"to b"));
        send(&mut b.radio, &frame(Mac::BROADCAST, mac_b, b"to all"));
        assert_eq!(receive(&mut b.radio, 1).await, [frame(mac_b, mac_a, b"to b")]);
        assert_eq!(receive(&mut a.radio, 1).await, [frame(Mac::BROADCAST, mac_b, b"to all")]);
        assert!(silent(&mut a.radio).await && silent(&mut b.radio).await);
        assert_eq!(a.radio.counters().rx_frames, 1);
        assert_eq!(a.radio.counters().rx_errors, 0);
    });
}

#[test]
fn a_vlan_tagged_frame_is_dropped_even_if_it_is_to_our_address() {
    in_namespace(async || {
        let (mut a, mut b) = veth_pair().await;
        let mut tagged = [&b.mac.0[..], &a.mac.0, &[0x81, 0x00, 0x00, 0x05]].concat();
        tagged.extend_from_slice(&ETHERTYPE.to_be_bytes());
        tagged.extend_from_slice(&[7; 60]);
        send(&mut a.radio, &tagged);
        assert!(silent(&mut b.radio).await);
        assert_eq!(b.radio.counters().rx_foreign, 1);
        // One to everybody shows by its mark that it had a tag.
        tagged[..6].copy_from_slice(&Mac::BROADCAST.0);
        send(&mut a.radio, &tagged);
        assert!(silent(&mut b.radio).await);
        let counters = b.radio.counters();
        assert_eq!((counters.rx_tagged, counters.rx_foreign, counters.rx_frames), (1, 1, 0));
    });
}

#[test]
fn unicast_to_others_and_other_ethertypes_are_not_delivered() {
    in_namespace(async || {
        let (mut a, mut b) = veth_pair().await;
        let (mac_a, mac_b) = (a.mac, b.mac);
        ip("link set radio1 promisc on");
        send(&mut a.radio, &frame(Mac([2, 9, 9, 9, 9, 9]), mac_a, b"to another"));
        let mut other = frame(mac_b, mac_a, b"of another kind");
        other[12..14].copy_from_slice(&[0x88, 0xb6]);
        send(&mut a.radio, &other);
        assert!(silent(&mut b.radio).await);
        let counters = b.radio.counters();
        assert_eq!((counters.rx_foreign, counters.rx_frames), (1, 0));
    });
}

#[test]
fn a_survey_names_the_ethertypes_of_others_and_nothing_else() {
    in_namespace(async || {
        let (mut a, mut b) = veth_pair().await;
        let mut of = |ethertype: u16, payload: &[u8]| {
            let mut frame = frame(Mac::BROADCAST, a.mac, payload);
            frame[12..14].copy_from_slice(&ethertype.to_be_bytes());
            send(&mut a.radio, &frame);
        };
        of(0x88b6, &[0x21; 60]);
        b.radio.begin_survey();
        for (ethertype, first) in
            [(0x88b6, 0x21), (0x88b6, 0x2c), (ETHERTYPE, 0x21), (0x0800, 0x45), (0x0806, 0)]
        {
            of(ethertype, &[first; 60]);
        }
        assert_eq!(b.radio.end_survey(), [0x88b6]);
        assert_eq!(b.radio.end_survey(), []);
        // Our own frames are nobody else's.
        b.radio.begin_survey();
        let mut own = frame(Mac::BROADCAST, b.mac, &[0x21; 60]);
        own[12..14].copy_from_slice(&[0x88, 0xb6]);
        send(&mut b.radio, &own);
        assert_eq!(b.radio.end_survey(), []);
    });
}

#[test]
fn control_frames_come_by_themselves_and_have_room_whatever_waits_of_data() {
    in_namespace(async || {
        let (mut a, mut b) = veth_pair().await;
        let (mac_a, mac_b) = (a.mac, b.mac);
        let of = |first: u8| frame(mac_b, mac_a, &[first; 100]);
        // More data than the buffer holds.
        for _ in 0..20_000 {
            send(&mut a.radio, &of(0x28));
        }
        let control = [0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27];
        control.iter().for_each(|first| send(&mut a.radio, &of(*first)));
        assert!(b.radio.counters().rx_kernel_drops > 0, "a test with room for all tests nothing");
        let mut burst = Burst::new(64);
        assert_eq!(b.radio.recv_control(&mut burst), Received::Drained);
        let heard: Vec<_> = burst.frames().map(|frame| frame[14]).collect();
        assert_eq!(heard, control);
        // The rest is data, bundles and what nobody knows.
        let mut first_bytes = std::collections::BTreeSet::new();
        while b.radio.recv(&mut burst) == Received::More || !burst.is_empty() {
            first_bytes.extend(burst.frames().map(|frame| frame[14]));
        }
        assert_eq!(first_bytes.into_iter().collect::<Vec<_>>(), [0x28]);
        let others = [0x29, 0x2a, 0x2c, 0x20, 0x2b, 0x2f, 0x11, 0xff];
        others.iter().for_each(|first| send(&mut a.radio, &of(*first)));
        let others = others.map(of);
        assert_eq!(receive(&mut b.radio, others.len()).await, others);
    });
}

#[test]
fn a_radio_that_was_down_works_again_without_being_bound_again() {
    in_namespace(async || {
        let (mut a, mut b) = veth_pair().await;
        let (mac_a, mac_b) = (a.mac, b.mac);
        ip("link set radio0 down");
        a.radio.send(&[Outgoing::new(&frame(mac_b, mac_a, b"lost"))]);
        assert!(silent(&mut a.radio).await);
        assert_eq!(a.radio.counters().tx_down, 1);
        ip("link set radio0 up");
        carrier(&["radio0", "radio1"]).await;
        let link = a.netlink.link("radio0").await.unwrap();
        a.radio.link_changed(Some(&link)).unwrap();
        let wanted = frame(mac_b, mac_a, b"back");
        send(&mut a.radio, &wanted);
        assert_eq!(receive(&mut b.radio, 1).await, [wanted]);
        assert_eq!(a.radio.counters().reopened, 0);
    });
}

#[test]
fn a_radio_that_is_down_can_be_opened_and_works_once_it_is_up() {
    in_namespace(async || {
        ip("link add radio0 type veth peer name radio1");
        let (mut a, mut b) = (end("radio0").await, end("radio1").await);
        assert!(!a.link.up);
        ip("link set radio0 up");
        ip("link set radio1 up");
        carrier(&["radio0", "radio1"]).await;
        let wanted = frame(b.mac, a.mac, b"at last");
        send(&mut a.radio, &wanted);
        assert_eq!(receive(&mut b.radio, 1).await, [wanted]);
    });
}

#[test]
fn a_radio_that_was_deleted_and_re_created_is_bound_again() {
    in_namespace(async || {
        let (mut a, _) = veth_pair().await;
        let old = a.link.index;
        ip("link del radio0");
        a.radio.link_changed(None).unwrap();
        assert!(silent(&mut a.radio).await);
        a.radio.send(&[Outgoing::new(&frame(a.mac, a.mac, b""))]);
        ip("link add radio0 type veth peer name radio1");
        ip("link set radio0 up");
        ip("link set radio1 up");
        carrier(&["radio0", "radio1"]).await;
        let link = a.netlink.link("radio0").await.unwrap();
        assert_ne!(link.index, old);
        a.radio.link_changed(Some(&link)).unwrap();
        let mut b = end("radio1").await;
        let (there, back) = (frame(b.mac, link.mac, b"there"), frame(link.mac, b.mac, b"back"));
        // The very first frame counts: no error of the past may be in its way.
        send(&mut a.radio, &there);
        assert_eq!(receive(&mut b.radio, 1).await, [there]);
        send(&mut b.radio, &back);
        assert_eq!(receive(&mut a.radio, 1).await, [back]);
        assert_eq!(a.radio.counters().reopened, 1);
    });
}

#[test]
fn frames_too_long_or_too_short_are_counted_on_both_ways() {
    in_namespace(async || {
        let (mut a, mut b) = veth_pair().await;
        let (mac_a, mac_b) = (a.mac, b.mac);
        let long = |len: usize| frame(mac_b, mac_a, &vec![1; len]);
        a.radio.send(&[Outgoing::new(&long(1500))]);
        a.radio.send(&[Outgoing::new(&long(1501))]);
        a.radio.send(&[Outgoing::new(&[0; 5])]);
        assert_eq!((a.radio.counters().tx_oversize, a.radio.counters().tx_short), (1, 1));
        let refused = a.radio.take_too_long().expect("a frame of ours");
        assert_eq!((refused.from, refused.len, refused.limit), (mac_a, 1515, Limit::Radio));
        assert_eq!(receive(&mut b.radio, 1).await[0].len(), 1514);
        // The interfaces grow and `b` has not heard of it yet.
        ip("link set radio0 mtu 9000");
        ip("link set radio1 mtu 9000");
        send(&mut a.radio, &long(5000));
        assert!(silent(&mut b.radio).await);
        assert_eq!(b.radio.counters().rx_oversize, 1);
        let limit = Limit::Radio;
        let heard = TooLong { from: mac_a, len: 5014, most: 2047, limit };
        assert_eq!((b.radio.take_too_long(), b.radio.take_too_long()), (Some(heard), None));
        let link = b.netlink.link("radio1").await.unwrap();
        b.radio.link_changed(Some(&link)).unwrap();
        send(&mut a.radio, &long(5000));
        assert_eq!(receive(&mut b.radio, 1).await, [long(5000)]);
    });
}

#[test]
fn a_batch_arrives_whole_and_in_order_around_what_is_refused() {
    in_namespace(async || {
        let (mut a, mut b) = veth_pair().await;
        let mut wanted: Vec<_> = (0..200u16)
            .map(|n| frame(b.mac, a.mac, &[&n.to_be_bytes()[..], &[7; 50]].concat()))
            .collect();
        let (long, short) = (frame(b.mac, a.mac, &[1; 1501]), [0; 5]);
        let mut batch: Vec<_> = wanted.iter().map(|frame| Outgoing::new(frame)).collect();
        batch.insert(150, Outgoing::new(&short));
        batch.insert(70, Outgoing::new(&long));
        batch.insert(0, Outgoing::new(&long));
        assert_eq!(a.radio.send(&batch), Sent::All);
        let counters = a.radio.counters();
        assert_eq!((counters.tx_frames, counters.tx_oversize, counters.tx_short), (200, 2, 1));
        let mut burst = Burst::new(150);
        assert_eq!(b.radio.recv(&mut burst), Received::More);
        let rest = wanted.split_off(150);
        assert_eq!(burst.frames().collect::<Vec<_>>(), wanted);
        assert_eq!(b.radio.recv(&mut burst), Received::Drained);
        assert_eq!(burst.frames().collect::<Vec<_>>(), rest);
    });
}

#[test]
fn frames_come_in_order_and_what_was_lost_is_counted() {
    in_namespace(async || {
        let (mut a, mut b) = veth_pair().await;
        let numbered = |n: u32| frame(b.mac, a.mac, &n.to_be_bytes());
        let number = |frame: &[u8]| u32::from_be_bytes(frame[14..18].try_into().unwrap());
        let (mut next, mut got, mut last) = (0, 0, None);
        let mut burst = Burst::new(64);
        // Few enough for the socket's buffer, twice, and then more.
        for batch in [1500, 1500, 40_000] {
            for n in next..next + batch {
                a.radio.send(&[Outgoing::new(&numbered(n))]);
            }
            next += batch;
            while b.radio.recv(&mut burst) == Received::More || !burst.is_empty() {
                for frame in burst.frames() {
                    let n = number(frame);
                    assert!(last.is_none_or(|last| n > last), "{n} after {last:?}");
                    (got, last) = (got + 1, Some(n));
                }
            }
            if batch == 1500 {
                assert_eq!(got, next);
            }
        }
        let lost = b.radio.counters().rx_kernel_drops;
        assert!(lost > 0);
        assert_eq!(u64::from(got) + lost, u64::from(next));
    });
}

#[test]
fn frames_for_others_leave_no_hole_in_a_batch() {
    in_namespace(async || {
        let (mut a, mut b) = veth_pair().await;
        ip("link set radio1 promisc on");
        let ours = |n: u8| frame(b.mac, a.mac, &[n; 50]);
        let other = frame(Mac([2, 9, 9, 9, 9, 9]), a.mac, b"to another");
        let (first, second) = (ours(1), ours(2));
        let batch = [&other, &first, &other, &other, &second].map(|frame| Outgoing::new(frame));
        assert_eq!(a.radio.send(&batch), Sent::All);
        let mut burst = Burst::new(64);
        assert_eq!(b.radio.recv(&mut burst), Received::Drained);
        assert_eq!(burst.frames().collect::<Vec<_>>(), [first, second]);
        assert_eq!(b.radio.counters().rx_foreign, 3);
    });
}

#[test]
fn a_radio_that_is_full_says_so_and_when_there_is_room_again() {
    in_namespace(async || {
        let (mut a, mut b) = veth_pair().await;
        // One frame in 250 ms: the others wait, and count against the send buffer.
        tc("qdisc add dev radio0 root tbf rate 50kbit burst 1600 limit 100mb");
        let long = frame(b.mac, a.mac, &[1; 1500]);
        let batch = [Outgoing::new(&long); 64];
        let mut sent = 0;
        let full = loop {
            match a.radio.send(&batch) {
                Sent::All => sent += batch.len(),
                other => break other,
            }
            assert!(sent < 100_000, "the send buffer has a bound");
        };
        let Sent::Full(done) = full else { panic!("{full:?}") };
        assert!(done < batch.len());
        assert_eq!(a.radio.counters().tx_frames, (sent + done) as u64);
        assert!(!wait(&[&a.radio], PollFlags::OUT, Duration::ZERO));
        // The queue is dropped, and there is room.
        tc("qdisc del dev radio0 root");
        assert!(wait(&[&a.radio], PollFlags::OUT, Duration::from_secs(2)));
        let wanted = frame(b.mac, a.mac, b"after");
        send(&mut a.radio, &wanted);
        let mut last = Vec::new();
        let mut burst = Burst::new(64);
        while last != wanted {
            b.radio.recv(&mut burst);
            last = burst.frames().last().map_or(last, <[u8]>::to_vec);
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn each_frame_has_the_priority_it_was_given() {
    in_namespace(async || {
        let (mut a, mut b) = veth_pair().await;
        let frames: Vec<_> = (0..6).map(|n| frame(b.mac, a.mac, &[n; 50])).collect();
        // 256 + user priority is what mac80211 looks for. Control has a socket of its own.
        for (priorities, data, control) in
            [([0; 6], 256, 0), ([0, 7, 7, 0, 4, 6], 262, 263), ([7; 6], 262, 263)]
        {
            let batch = frames.iter().zip(priorities);
            let batch: Vec<_> =
                batch.map(|(bytes, priority)| Outgoing { bytes, priority }).collect();
            assert_eq!(a.radio.send(&batch), Sent::All);
            assert_eq!(getsockopt(&a.radio, sockopt::Priority), Ok(data));
            let of_control = a.radio.control_descriptor().unwrap();
            assert_eq!(getsockopt(&of_control, sockopt::Priority), Ok(control));
            assert_eq!(receive(&mut b.radio, 6).await, frames);
        }
    });
}

#[test]
fn what_the_kernel_drops_for_us_is_counted() {
    in_namespace(async || {
        let (mut a, mut b) = veth_pair().await;
        let small = frame(b.mac, a.mac, b"one of very many");
        for _ in 0..40_000 {
            a.radio.send(&[Outgoing::new(&small)]);
        }
        assert!(b.radio.counters().rx_kernel_drops > 0, "{:?}", b.radio.counters());
    });
}

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

// ---------------------------------------------------------------------------------------------

fn tc(line: &str) -> String {
    operate("tc", line)
}

struct End {
    radio: PacketSocket,
    netlink: Netlink,
    link: LinkState,
    mac: Mac,
}

async fn end(name: &str) -> End {
    let netlink = Netlink::open().unwrap();
    let link = netlink.link(name).await.unwrap();
    let radio = PacketSocket::open(name, &link, ETHERTYPE).unwrap();
    End { radio, netlink, mac: link.mac, link }
}

/// Two packet sockets with a cable between them.
async fn veth_pair() -> (End, End) {
    ip("link add radio0 type veth peer name radio1");
    ip("link set radio0 up");
    ip("link set radio1 up");
    carrier(&["radio0", "radio1"]).await;
    (end("radio0").await, end("radio1").await)
}

/// Waits until these interfaces are up and have a carrier.
async fn carrier(names: &[&str]) {
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
async fn tap_with_host(name: &str) -> (Tap, PacketSocket, LinkState) {
    let mut tap = Tap::open(name, TapOffload::Off).unwrap();
    let mut netlink = Netlink::open().unwrap();
    netlink.set_up_tap(name, TapSettings::default(), 1460).await.unwrap();
    carrier(&[name]).await;
    let link = netlink.link(name).await.unwrap();
    tap.link_changed(Some(&link)).unwrap();
    let host = PacketSocket::open(name, &link, ETHERTYPE).unwrap();
    (tap, host, link)
}

fn frame(dest: Mac, source: Mac, payload: &[u8]) -> Vec<u8> {
    [&dest.0[..], &source.0, &ETHERTYPE.to_be_bytes(), payload].concat()
}

fn send(device: &mut impl Device, frame: &[u8]) {
    let before = device.counters().tx_frames;
    assert_eq!(device.send(&[Outgoing::new(frame)]), Sent::All);
    let after = device.counters();
    assert_eq!(after.tx_frames, before + 1, "{after:?}");
}

/// The next frames of ours, waiting for them up to two seconds. What the host sends on a TAP by
/// itself (multicast listeners and the like) is passed over.
async fn receive(device: &mut impl Device, count: usize) -> Vec<Vec<u8>> {
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

fn is_ours(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&ETHERTYPE.to_be_bytes())
}

/// No frame of ours arrives for a while.
async fn silent(device: &mut impl Device) -> bool {
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
fn a_radio_that_another_program_has_is_told_from_one_that_is_free() {
    in_namespace(async || {
        let netlink = Netlink::open().unwrap();
        ip("link add radio0 type veth peer name radio1");
        let link = netlink.link("radio0").await.unwrap();
        let other = netlink.link("radio1").await.unwrap();
        let in_use = || packet::is_in_use(link.index, ETHERTYPE);
        assert!(!in_use());
        let mine = PacketSocket::open("radio0", &link, ETHERTYPE).unwrap();
        assert!(in_use() && !mine.is_shared());
        assert!(!packet::is_in_use(other.index, ETHERTYPE), "the other end of the cable is free");
        assert!(!packet::is_in_use(link.index, ETHERTYPE + 1), "another EtherType is free");
        let others = PacketSocket::open("radio1", &other, ETHERTYPE).unwrap();
        assert!(!mine.is_shared() && !others.is_shared());
        let second = PacketSocket::open("radio0", &link, ETHERTYPE).unwrap();
        assert!(mine.is_shared() && second.is_shared());
        drop(second);
        assert!(!mine.is_shared());
    });
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
