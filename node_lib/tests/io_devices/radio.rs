//! The packet socket: what it delivers, and a radio that comes and goes.

use node_lib::Mac;
use node_lib::device::ethertypes::EthertypeSurvey;
use node_lib::device::netlink::Netlink;
use node_lib::device::packet::{self, PacketSocket};
use node_lib::device::{Device, Outgoing};

use crate::bench::{ETHERTYPE, carrier, end, frame, receive, send, silent, veth_pair};
use crate::io_support::{in_namespace, ip};

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
        let mut survey = EthertypeSurvey::open("radio1", ETHERTYPE).unwrap();
        of(0x88b6, &[0x21; 60]);
        survey.begin().unwrap();
        for (ethertype, first) in
            [(0x88b7, 0x21), (0x88b7, 0x2c), (ETHERTYPE, 0x21), (0x0800, 0x45), (0x0806, 0)]
        {
            of(ethertype, &[first; 60]);
        }
        // Our own frames are nobody else's.
        let mut own = frame(Mac::BROADCAST, b.mac, &[0x21; 60]);
        own[12..14].copy_from_slice(&[0x88, 0xb8]);
        send(&mut b.radio, &own);
        assert_eq!(survey.end(), [0x88b7]);
        of(0x88b9, &[0x21; 60]);
        assert_eq!(survey.end(), []);
        survey.begin().unwrap();
        assert_eq!(survey.end(), [], "what came between rounds");
    });
}

#[test]
fn a_survey_keeps_no_more_ethertypes_and_frames_than_there_is_room_for() {
    in_namespace(async || {
        let (mut a, _b) = veth_pair().await;
        let mut survey = EthertypeSurvey::open("radio1", ETHERTYPE).unwrap();
        survey.begin().unwrap();
        for ethertype in 0x9000..0xa000_u16 {
            let mut frame = frame(Mac::BROADCAST, a.mac, &[0x21; 1000]);
            frame[12..14].copy_from_slice(&ethertype.to_be_bytes());
            send(&mut a.radio, &frame);
        }
        assert_eq!(survey.end().len(), 8);
        survey.begin().unwrap();
        assert_eq!(survey.end(), [], "nothing is left of the round before");
    });
}

#[test]
fn a_survey_goes_where_the_name_of_the_radio_goes() {
    in_namespace(async || {
        let mut survey = EthertypeSurvey::open("radio1", ETHERTYPE).unwrap();
        assert!(survey.begin().is_err(), "there is none yet");
        let hears = async |survey: &mut EthertypeSurvey, to: &str| {
            carrier(&["radio0", to]).await;
            let mut a = end("radio0").await;
            let mut frame = frame(Mac::BROADCAST, a.mac, &[0x21; 60]);
            frame[12..14].copy_from_slice(&[0x88, 0xb6]);
            send(&mut a.radio, &frame);
            survey.look();
        };
        let make = || {
            ip("link add radio0 type veth peer name radio1");
            ip("link set radio0 up");
            ip("link set radio1 up");
        };
        make();
        survey.begin().unwrap();
        hears(&mut survey, "radio1").await;
        assert_eq!(survey.end(), [0x88b6]);
        // Deleted and made again between two rounds, and then while it listens.
        ip("link del radio0");
        assert!(survey.begin().is_err());
        assert_eq!(survey.end(), []);
        make();
        survey.begin().unwrap();
        ip("link del radio0");
        make();
        hears(&mut survey, "radio1").await;
        assert_eq!(survey.end(), [], "it is another interface until the next round");
        survey.begin().unwrap();
        hears(&mut survey, "radio1").await;
        assert_eq!(survey.end(), [0x88b6]);
        // It is down when the round begins, and comes up.
        ip("link set radio1 down");
        survey.begin().unwrap();
        ip("link set radio1 up");
        hears(&mut survey, "radio1").await;
        assert_eq!(survey.end(), [0x88b6]);
        // Renamed: there is no radio any more, and then another one.
        ip("link set radio1 down");
        ip("link set radio1 name other1");
        ip("link set other1 up");
        assert!(survey.begin().is_err());
        hears(&mut survey, "other1").await;
        assert_eq!(survey.end(), []);
        ip("link set other1 down");
        ip("link set other1 name radio1");
        ip("link set radio1 up");
        survey.begin().unwrap();
        hears(&mut survey, "radio1").await;
        assert_eq!(survey.end(), [0x88b6]);
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
