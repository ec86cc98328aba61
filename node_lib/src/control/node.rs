//! The seam: [`Node`] takes frames, time and link events; [`Replies`] takes what it wants sent.

use crate::control::counters::Counters;
use crate::control::event::Event;
use crate::mac::{Mac, NodeId};
use crate::time::Timestamp;

/// One frame a node wants sent. Each is exactly one write to its device: several frames in one
/// `writev` would become one broken frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyType {
    /// Whole Ethernet frame for the radio, in one piece.
    WireFlat(Vec<u8>),
    /// Whole Ethernet frame for the TAP, in one piece.
    TapFlat(Vec<u8>),
    /// Frame for the radio in parts, to be gathered into one write.
    Wire(Vec<Vec<u8>>),
    /// Frame for the TAP in parts, to be gathered into one write.
    Tap(Vec<Vec<u8>>),
}

/// Replies in the order they are to be sent, and the spare buffers they are built in.
///
/// The driver keeps one of these for the life of the node, sends what is in it after every call and
/// then calls [`Replies::recycle`]: from then on no reply costs an allocation.
#[derive(Debug, Default)]
pub struct Replies {
    items: Vec<ReplyType>,
    spare: Vec<Vec<u8>>,
}

/// Spare buffers kept: one burst of 64 frames, each answered by at most two.
const SPARE_MAX: usize = 128;

/// A spare buffer that grew beyond this (a jumbo frame) is given back to the allocator.
const SPARE_CAPACITY_MAX: usize = 16 * 1024;

impl Replies {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a frame for the radio, written by `build` into an empty buffer.
    pub fn wire(&mut self, build: impl FnOnce(&mut Vec<u8>)) {
        let mut flat = self.spare.pop().unwrap_or_default();
        build(&mut flat);
        self.items.push(ReplyType::WireFlat(flat));
    }

    /// Appends a frame for the TAP, written by `build` into an empty buffer.
    pub fn tap(&mut self, build: impl FnOnce(&mut Vec<u8>)) {
        let mut flat = self.spare.pop().unwrap_or_default();
        build(&mut flat);
        self.items.push(ReplyType::TapFlat(flat));
    }

    /// Appends a reply built elsewhere.
    pub fn push(&mut self, reply: ReplyType) {
        self.items.push(reply);
    }

    /// What is to be sent, first to last.
    pub fn as_slice(&self) -> &[ReplyType] {
        &self.items
    }

    /// Nothing to send.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Takes the replies out, for a driver that keeps them (a simulator, a test).
    pub fn take(&mut self) -> Vec<ReplyType> {
        std::mem::take(&mut self.items)
    }

    /// Forgets what was sent and keeps the buffers for the next replies.
    pub fn recycle(&mut self) {
        for reply in self.items.drain(..) {
            if let ReplyType::WireFlat(mut flat) | ReplyType::TapFlat(mut flat) = reply
                && self.spare.len() < SPARE_MAX
                && flat.capacity() <= SPARE_CAPACITY_MAX
            {
                flat.clear();
                self.spare.push(flat);
            }
        }
    }
}

/// What happened to the radio interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// It can send and receive (again).
    Up,
    /// It cannot: every neighbour is out of reach at once.
    Down,
    /// It has another MAC address.
    AddressChanged(Mac),
    /// It carries Ethernet payloads of at most this many bytes.
    MtuChanged(usize),
}

/// A V2X node without I/O: the contract between a control plane and whoever drives it.
///
/// * `handle_*` push one event in. Replies are appended to `out` and must be sent in list order.
/// * [`Node::poll_timeout`] says when to call [`Node::handle_timeout`]; it may change after every
///   `handle_*` call. Coming back early is harmless; coming back late is noticed, and the node does
///   not blame its neighbours for its own delay.
/// * [`Node::poll_event`] hands out what an operator wants to know, until it returns `None`.
/// * `now` must never decrease.
///
/// Nothing here panics, whatever the bytes; what cannot be used is counted in
/// [`Node::counters`] and dropped. Every table has a bound and a rule for who is evicted.
pub trait Node {
    /// Who this node is.
    fn id(&self) -> NodeId;

    /// A whole Ethernet frame came off the radio.
    fn handle_wire(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies);

    /// How strong the frame came in that the next [`Node::handle_wire`] will bring, in dBm, and whose
    /// it is. A driver calls it where the radio tells, and never where it does not.
    fn handle_signal(&mut self, _from: Mac, _dbm: i8) {}

    /// A whole Ethernet frame came out of the TAP.
    fn handle_tap(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies);

    /// The radio went up, down or got another address.
    fn handle_link(&mut self, now: Timestamp, event: LinkEvent, out: &mut Replies);

    /// The time [`Node::poll_timeout`] named has come.
    fn handle_timeout(&mut self, now: Timestamp, out: &mut Replies);

    /// When this node next has something to do by itself.
    fn poll_timeout(&self) -> Option<Timestamp>;

    /// The node will stop: says goodbye to its neighbours. The driver should keep driving it for
    /// [`Node::linger`], so that frames under way arrive while the neighbours move elsewhere.
    fn handle_shutdown(&mut self, now: Timestamp, out: &mut Replies);

    /// How long to keep running after [`Node::handle_shutdown`].
    fn linger(&self) -> std::time::Duration;

    /// How many neighbours could be upstream towards the RSU in use, the upstream among them. None for an
    /// RSU, and for an OBU without a way.
    fn candidates(&self, _now: Timestamp) -> usize {
        0
    }

    /// What was counted since the start.
    fn counters(&self) -> &Counters;

    /// The oldest event not yet handed out.
    fn poll_event(&mut self) -> Option<Event>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recycled_buffers_are_used_again_and_come_back_empty() {
        let mut replies = Replies::new();
        replies.wire(|flat| flat.extend_from_slice(&[1; 100]));
        let address = match replies.as_slice() {
            [ReplyType::WireFlat(flat)] => flat.as_ptr(),
            other => panic!("{other:?}"),
        };
        replies.recycle();
        assert!(replies.is_empty());
        replies.tap(|flat| {
            assert!(flat.is_empty());
            assert_eq!(flat.as_ptr(), address);
            flat.push(2);
        });
        assert_eq!(replies.take(), [ReplyType::TapFlat(vec![2])]);
    }

    #[test]
    fn the_number_and_size_of_spare_buffers_is_bounded() {
        let mut replies = Replies::new();
        for _ in 0..SPARE_MAX + 10 {
            replies.wire(|flat| flat.push(0));
        }
        replies.recycle();
        assert_eq!(replies.spare.len(), SPARE_MAX);
        replies.spare.clear();
        replies.wire(|flat| flat.resize(SPARE_CAPACITY_MAX + 1, 0));
        replies.recycle();
        assert!(replies.spare.is_empty());
    }
}
