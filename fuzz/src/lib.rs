//! What must hold for any bytes, whoever makes them up: `cargo fuzz` (`fuzz_targets/`), or a test
//! on the stable toolchain that changes the vectors of the wire format (`tests/stable.rs`).
//!
//! ```sh
//! cargo test -p fuzz                                      # 20,000 inputs; FUZZ_RUNS=1000000
//! cargo run -p fuzz --example corpus                      # writes the vectors to fuzz/corpus/
//! make fuzz                                               # libFuzzer: a minute for each target
//! ```

#![allow(clippy::panic, reason = "this is how something is found")]

use node_lib::control::node::{Interface, LinkEvent, Node, Replies};
use node_lib::control::positions::Located;
use node_lib::messages::bundle::{Messages, is_bundle};
use node_lib::messages::control::position::Coordinates;
use node_lib::messages::{ETHERNET_HEADER_LEN, Message};
use node_lib::{Mac, Start, Timestamp};
use obu_lib::Obu;
use rsu_lib::Rsu;

/// A frame is refused, or it is read, and then its three forms are one and say the same again. What
/// is in a bundle lies inside its frame.
pub fn messages(frame: &[u8]) {
    if let Ok(message) = Message::try_from(frame) {
        let flat: Vec<u8> = (&message).into();
        assert_eq!(flat.len(), message.wire_len());
        assert!(flat.len() <= frame.len(), "more than was read");
        assert_eq!(Message::try_from(&flat[..]), Ok(message));
        assert_eq!(Vec::<Vec<u8>>::from(&message).concat(), flat);
    }
    if is_bundle(frame)
        && let Ok(mut messages) = Messages::open(frame)
    {
        let mut end = ETHERNET_HEADER_LEN;
        while let Some(found) = messages.next_in(frame) {
            let Ok(range) = found else { break };
            assert!(range.start >= end && range.end > range.start && range.end <= frame.len());
            end = range.end;
        }
    }
}

/// Frames of one run: more would say the same.
const STEPS_MAX: usize = 64;

/// An OBU and an RSU take whatever comes, from the radio, from the TAP, and from their interfaces.
/// What they send can be read, is from them, and is not without end.
///
/// Each step is a byte that says what happens, one for the time since the last, and for a frame one
/// for its length and that many bytes.
pub fn nodes(script: &[u8]) {
    let macs = [Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2])];
    let obu = obu_lib::Settings { share_position: true, ..Default::default() };
    let rsu = rsu_lib::Settings { share_position: true, ..Default::default() };
    let mut obu = Obu::new(obu.config(&Start::new(macs[0])), Timestamp::ZERO);
    let mut rsu = Rsu::new(rsu.config(&Start::new(macs[1])), Timestamp::ZERO);
    let (mut rest, mut now, mut out) = (script, Timestamp::ZERO, Replies::new());
    for _ in 0..STEPS_MAX {
        let [what, after, more @ ..] = rest else { break };
        rest = more;
        now += std::time::Duration::from_millis(u64::from(*after));
        let frame = match (what % 8, rest) {
            (0..=3, [len, bytes @ ..]) => {
                let len = usize::from(*len).min(bytes.len());
                let (frame, others) = bytes.split_at(len);
                rest = others;
                frame
            }
            _ => &[],
        };
        let both: [(&mut dyn Node, Mac); 2] = [(&mut obu, macs[0]), (&mut rsu, macs[1])];
        for (node, mac) in both {
            match what % 8 {
                0..=2 => node.handle_wire(now, frame, &mut out),
                3 => node.handle_tap(now, frame, &mut out),
                4 => node.handle_link(now, LinkEvent::Down, &mut out),
                5 if what & 8 == 0 => node.handle_link(now, LinkEvent::Up, &mut out),
                5 => node.handle_link(now, LinkEvent::ChannelBusy(*after), &mut out),
                6 => {
                    node.handle_signal(now, Mac([2, 0, 0, 0, 0, *after]), -60);
                    // Some are no place: then it is not known any more.
                    let at = Coordinates::new(f64::from(*after) / 2.0, f64::from(*what), None);
                    let is_fixed = what & 8 == 0;
                    node.handle_position(now, at.map(|at| Located { at, is_fixed }));
                }
                _ => node.handle_shutdown(now, &mut out),
            }
            node.handle_timeout(now, &mut out);
            judge(&mut out, mac);
            while node.poll_event().is_some() {}
        }
    }
}

fn judge(out: &mut Replies, from: Mac) {
    assert!(out.as_slice().len() < 1000, "{} replies to one frame", out.as_slice().len());
    for reply in out.as_slice() {
        let frame = reply.frame();
        match reply.interface() {
            Interface::Radio => match Message::try_from(&frame[..]) {
                Ok(message) => assert_eq!(message.from, from),
                Err(error) => panic!("a node sent what nobody can read: {error}"),
            },
            Interface::Tap => assert!(frame.len() >= ETHERNET_HEADER_LEN),
        }
    }
    out.recycle();
}
