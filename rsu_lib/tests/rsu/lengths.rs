//! No frame down is longer than the smallest radio on its way, and who sends what is too long for
//! it hears what fits.

use node_lib::control::counters::Counters;
use node_lib::control::node::Node;
use node_lib::control::reassembly::Reassembly;
use node_lib::messages::capacity::tap_mtu_max;
use node_lib::messages::fragment::Fragment;
use node_lib::messages::{Message, PacketType};
use node_lib::{Mac, Start, Timestamp};
use rsu_lib::{Rsu, Settings};

use crate::talk::{A, B, CAMERA, RELAY, SERVER, SIGN, Talk, US, packet};

/// Another relay.
const OTHER: Mac = Mac([2, 0, 0, 0, 0, 0x1f]);

/// A is attached with the camera behind two relays. These are the MTUs of their radios, and of A's:
/// the one beside us first.
fn behind_two(settings: Settings, [first, second, last]: [u16; 3]) -> Talk {
    let mut t = Talk::with(settings);
    t.mtus.extend([(RELAY, first), (OTHER, second), (A, last)]);
    t.relay(RELAY, US);
    t.relay(OTHER, RELAY);
    t.announce(A, OTHER, 1, &[CAMERA]);
    t.clear();
    t
}

/// Radio packets a client's frame is sent down in, by their lengths.
fn lengths(t: &mut Talk, frame: &[u8]) -> Vec<usize> {
    t.clear();
    t.tap_frame(frame);
    let is_control =
        |sent: &[u8]| matches!(Message::try_from(sent).unwrap().packet, PacketType::Control(_));
    let data = t.sent.iter().filter(|(_, sent)| !is_control(sent));
    data.map(|(_, sent)| sent.len() - 14).collect()
}

/// The MTU that the sender of a packet with "don't fragment" has just been told.
fn told(t: &Talk) -> Vec<u16> {
    let icmp = |frame: &Vec<u8>| {
        assert_eq!((frame[23], &frame[34..36]), (1, &[3, 4][..]), "fragmentation needed");
        assert_eq!(frame[..12], [SERVER.0, CAMERA.0].concat());
        u16::from_be_bytes([frame[40], frame[41]])
    };
    t.taps.iter().map(icmp).collect()
}

#[test]
fn the_smallest_radio_on_the_way_says_how_long_a_frame_may_be_wherever_it_is() {
    for mtus in [[1000, 1500, 1500], [1500, 1000, 1500], [1500, 1500, 1000], [1500, 1200, 1000]] {
        let mut t = behind_two(Settings::default(), mtus);
        // Our header, four bytes for the label of the second relay, the Ethernet header of the
        // client.
        let most = 1000 - 22 - 4 - 14;
        assert_eq!(lengths(&mut t, &packet(most, CAMERA)), [1000], "{mtus:?}");
        assert_eq!(t.rsu.counters().fragmented, 0, "{mtus:?}");
        let frame = packet(most + 1, CAMERA);
        let sent = lengths(&mut t, &frame);
        // Two halves of 1001 bytes, behind 12 each.
        assert_eq!(sent, [12 + 501, 12 + 500], "{mtus:?}");
        assert_eq!(t.rsu.counters().fragmented, 1);
        let mut whole = None;
        let (mut reassembly, mut counters) = (Reassembly::new(), Counters::default());
        for (_, sent) in &t.sent {
            assert_eq!(sent[..6], RELAY.0, "{mtus:?}");
            let fragment = Fragment::try_from(&sent[14..]).unwrap();
            whole = reassembly.add(Timestamp::ZERO, sent, &fragment, &mut counters);
        }
        let whole = whole.unwrap();
        assert!(Message::try_from(&whole[..]).is_ok() && whole.ends_with(&frame), "{mtus:?}");
    }
}

#[test]
fn a_way_past_other_radios_carries_longer_frames_from_the_next_word_on() {
    let mut t = behind_two(Settings::default(), [1500, 1000, 1500]);
    let frame = packet(1400, CAMERA);
    assert_eq!(lengths(&mut t, &frame).len(), 2);
    // The relay's radio has another MTU, and A does not know.
    t.mtus.insert(OTHER, 1500);
    t.relay(OTHER, RELAY);
    assert_eq!(lengths(&mut t, &frame), [1400 + 14 + 22 + 4]);
    t.mtus.insert(RELAY, 700);
    t.relay(RELAY, US);
    assert_eq!(lengths(&mut t, &frame).len(), 3);
    // A goes past it.
    t.announce(A, US, 1, &[CAMERA]);
    assert_eq!(lengths(&mut t, &frame), [1400 + 14 + 22]);
}

#[test]
fn our_own_radio_is_one_of_those_on_the_way() {
    let start = Start { seed: 1, radio_mtu: 600, ..Start::new(US) };
    let rsu = Rsu::new(Settings::default().config(&start), Timestamp::ZERO);
    let mut t = Talk { rsu, ..Talk::new() };
    t.announce(A, US, 1, &[CAMERA]);
    assert_eq!(lengths(&mut t, &packet(600 - 22 - 14, CAMERA)), [600]);
    assert_eq!(lengths(&mut t, &packet(600 - 22 - 14 + 1, CAMERA)).len(), 2);
}

/// A relay cuts a flood up for its own children, so what is behind it does not matter.
#[test]
fn a_flood_is_no_longer_than_the_radio_of_each_child_receives() {
    let mut t = behind_two(Settings::default(), [1500, 600, 600]);
    let frame = packet(1400, Mac::BROADCAST);
    let flood = 1400 + 14 + 26;
    assert_eq!(lengths(&mut t, &frame), [flood]);
    t.mtus.insert(B, 1000);
    t.announce(B, US, 1, &[SIGN]);
    assert_eq!(lengths(&mut t, &frame), [12 + flood / 2, 12 + flood / 2]);
    assert_eq!(t.sent[0].1[..6], Mac::BROADCAST.0);
}

#[test]
fn with_path_mtu_discovery_a_host_hears_what_the_smallest_radio_on_the_way_takes_in_one_frame() {
    for mtus in [[1000, 1500, 1500], [1500, 1000, 1500], [1500, 1500, 1000]] {
        let discovery = Settings { pmtu_discovery: true, ..Settings::default() };
        let mut t = behind_two(discovery, mtus);
        assert_eq!(lengths(&mut t, &packet(1400, CAMERA)), [], "{mtus:?}");
        assert_eq!(told(&t), [1000 - 52], "{mtus:?}");
        assert_eq!(lengths(&mut t, &packet(1000 - 52, CAMERA)), [1000 - 52 + 14 + 22 + 4]);
        assert_eq!((t.rsu.counters().too_big_told, t.rsu.counters().fragmented), (1, 0));
        // Behind radios of 1500 more fits.
        t.announce(B, US, 1, &[SIGN]);
        assert_eq!(lengths(&mut t, &packet(1400, SIGN)), [1400 + 14 + 22], "{mtus:?}");
    }
}

#[test]
fn a_host_hears_of_what_no_eight_fragments_carry_past_the_smallest_radio_on_the_way() {
    let mut t = behind_two(Settings::default(), [1500, 150, 1500]);
    assert_eq!(lengths(&mut t, &packet(1500, CAMERA)), []);
    let most = 8 * (150 - 12) - 68;
    assert_eq!((told(&t), t.rsu.counters().drop_oversize), (vec![most], 0));
    let sent = lengths(&mut t, &packet(most, CAMERA));
    assert_eq!((sent.len(), *sent.iter().max().unwrap() <= 150), (8, true), "{sent:?}");
}

/// The labels of sixteen hops take sixteen bytes more than those of eight.
#[test]
fn what_a_host_is_told_gets_through_over_the_longest_way_too() {
    let start = Start { seed: 1, radio_mtu: 200, ..Start::new(US) };
    let rsu = Rsu::new(Settings::default().config(&start), Timestamp::ZERO);
    let mut t = Talk { rsu, ..Talk::new() };
    let hop = |n| if n == 0 { US } else { Mac([2, 0, 0, 0, 6, n]) };
    for n in 1..16 {
        t.relay(hop(n), hop(n - 1));
    }
    t.announce(A, hop(15), 1, &[CAMERA]);
    assert_eq!(lengths(&mut t, &packet(1500, CAMERA)), []);
    let [most] = told(&t)[..] else { panic!("{:?}", t.taps) };
    assert_eq!(usize::from(most), tap_mtu_max(200).unwrap());
    for len in [most, most + 4] {
        // With a VLAN tag it may be four bytes longer.
        assert_eq!(lengths(&mut t, &packet(len, CAMERA)).len(), 8, "{len}");
    }
    assert_eq!(t.rsu.counters().drop_oversize, 0);
}
