//! An OBU and an RSU that hear each other, driven by hand until the OBU is attached.

use node_lib::control::node::{Node, Replies, ReplyType};
use node_lib::{Mac, Timestamp};
use obu_lib::Obu;
use rsu_lib::Rsu;

/// MAC of the RSU.
pub(crate) const RSU: Mac = Mac([2, 0, 0, 0, 0, 0x10]);
/// MAC of the OBU.
pub(crate) const OBU: Mac = Mac([2, 0, 0, 0, 0, 0x01]);
/// A client behind the OBU.
pub(crate) const CAR: Mac = Mac([2, 0, 0, 0, 1, 1]);
/// A client on the LAN of the RSU.
pub(crate) const HOST: Mac = Mac([2, 0, 0, 0, 1, 2]);

/// Both nodes and the time.
pub(crate) struct Pair {
    /// The vehicle.
    pub(crate) obu: Obu,
    /// The road side.
    pub(crate) rsu: Rsu,
    /// Now.
    pub(crate) now: Timestamp,
    /// Where replies go.
    pub(crate) out: Replies,
}

impl Pair {
    /// A pair past its first second, with both clients known to both.
    pub(crate) fn attached() -> Self {
        let now = Timestamp::ZERO;
        let mut pair = Self {
            obu: Obu::new(obu_lib::Config::new(OBU), now),
            rsu: Rsu::new(rsu_lib::Config::new(RSU), now),
            now,
            out: Replies::new(),
        };
        pair.run_until(Timestamp::from_millis(1000));
        assert!(pair.obu.attachment().is_some(), "the OBU hears the RSU, so it is attached");
        let up = pair.tap_to_wire(&frame(CAR, HOST, 64));
        pair.rsu.handle_wire(pair.now, &up, &mut pair.out);
        pair.out.recycle();
        pair.rsu.handle_tap(pair.now, &frame(HOST, CAR, 64), &mut pair.out);
        pair.out.recycle();
        pair
    }

    /// What the OBU sends when this frame comes out of its TAP.
    pub(crate) fn tap_to_wire(&mut self, frame: &[u8]) -> Vec<u8> {
        self.obu.handle_tap(self.now, frame, &mut self.out);
        wire(self.out.take()).pop().expect("an attached OBU sends what its clients say")
    }

    fn run_until(&mut self, until: Timestamp) {
        loop {
            let due = self.obu.poll_timeout().into_iter().chain(self.rsu.poll_timeout()).min();
            let Some(due) = due.filter(|due| *due <= until) else { break };
            self.now = self.now.max(due);
            self.obu.handle_timeout(self.now, &mut self.out);
            let mut to_rsu = wire(self.out.take());
            self.rsu.handle_timeout(self.now, &mut self.out);
            let mut to_obu = wire(self.out.take());
            while !(to_rsu.is_empty() && to_obu.is_empty()) {
                for frame in std::mem::take(&mut to_rsu) {
                    self.rsu.handle_wire(self.now, &frame, &mut self.out);
                    to_obu.extend(wire(self.out.take()));
                }
                for frame in std::mem::take(&mut to_obu) {
                    self.obu.handle_wire(self.now, &frame, &mut self.out);
                    to_rsu.extend(wire(self.out.take()));
                }
            }
        }
        self.now = until;
    }
}

fn wire(replies: Vec<ReplyType>) -> Vec<Vec<u8>> {
    let flat = |reply| match reply {
        ReplyType::WireFlat(flat) => Some(flat),
        _ => None,
    };
    replies.into_iter().filter_map(flat).collect()
}

/// A client's IPv4 frame of `len` bytes.
pub(crate) fn frame(from: Mac, to: Mac, len: usize) -> Vec<u8> {
    let mut frame = [&to.0[..], &from.0, &[0x08, 0x00]].concat();
    frame.resize(len.max(60), 0);
    frame
}
