//! Frames of every length there is, from either side, into either role: none harms it, and what is
//! no message is counted.

use node_lib::control::node::{Node, Replies};
use node_lib::{Boot, Mac, NodeId, Start, Timestamp};

const RADIO: Mac = Mac([2, 0, 0, 0, 0, 1]);

fn start() -> Start {
    Start {
        id: NodeId(RADIO.0),
        radio_mac: RADIO,
        radio_mtu: 1500,
        tap_mac: None,
        boot: Boot(7),
        seed: 1,
    }
}

/// Ways in which a frame can begin: with nothing of ours, each type of message, a VLAN tag.
const KINDS: u8 = 17;

fn frame(len: usize, kind: u8) -> Vec<u8> {
    let mut frame = [&RADIO.0[..], &[2, 0, 0, 0, 0, 9], &[0x88, 0xb5]].concat();
    match kind {
        0 => frame[12..].copy_from_slice(&[0x08, 0x00]),
        16 => frame[12..].copy_from_slice(&[0x81, 0x00]),
        kind => {
            frame.push(0x20 | kind);
            frame.push(0);
            let body = u16::try_from(len.saturating_sub(14)).unwrap_or(u16::MAX);
            frame.extend(body.to_be_bytes());
        }
    }
    frame.resize(len, 0x5a);
    frame
}

fn feed(mut node: impl Node) {
    let mut out = Replies::new();
    let mut given = 0;
    for (turn, len) in (0..=65_535).enumerate() {
        let now = Timestamp::from_millis(turn as u64);
        // Up to two of the longest packets in every way, and from there in one after the other.
        let in_turn = turn as u8 % KINDS;
        let kinds = if len <= 3100 { 0..KINDS } else { in_turn..in_turn + 1 };
        for kind in kinds {
            let frame = frame(len, kind);
            node.handle_wire(now, &frame, &mut out);
            node.handle_tap(now, &frame, &mut out);
            node.handle_unacknowledged(now, &frame, &mut out);
            given += 1;
            out.flatten();
            out.take();
        }
        if node.poll_timeout().is_some_and(|at| at <= now) {
            node.handle_timeout(now, &mut out);
        }
        while node.poll_event().is_some() {}
    }
    let counted = node.counters().drop_malformed + node.counters().drop_inner;
    assert!(counted > given / 2, "{counted} of {given}");
}

#[test]
fn an_obu_takes_every_length() {
    feed(obu_lib::Obu::new(obu_lib::Settings::default().config(&start()), Timestamp::ZERO));
}

#[test]
fn an_rsu_takes_every_length() {
    feed(rsu_lib::Rsu::new(rsu_lib::Settings::default().config(&start()), Timestamp::ZERO));
}
