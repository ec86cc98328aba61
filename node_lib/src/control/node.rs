//! The seam: [`Node`] takes frames, time and link events; [`Replies`] takes what it wants sent.

use std::borrow::Cow;

use crate::control::counters::Counters;
use crate::control::deadline::Deadline;
use crate::control::event::Event;
use crate::control::pin::{NoPin, Pin};
use crate::control::ping::{Echoed, Ping};
use crate::control::positions::Located;
pub use crate::control::replies::Replies;
use crate::control::snapshot::{KnownRoute, NodeRole, Snapshot};
use crate::mac::{Mac, NodeId};
use crate::start::clients::Remembered;
use crate::time::Timestamp;

/// One frame a node wants sent. Drivers ask [`ReplyType::interface`] and [`ReplyType::frame`] and
/// need not tell the variants apart. Each is exactly one write to its device: several frames in one
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

/// Which of a node's two interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Interface {
    /// The one other nodes hear.
    Radio,
    /// The one clients are behind.
    Tap,
}

impl ReplyType {
    /// Where it goes.
    #[inline]
    pub fn interface(&self) -> Interface {
        match self {
            Self::WireFlat(_) | Self::Wire(_) => Interface::Radio,
            Self::TapFlat(_) | Self::Tap(_) => Interface::Tap,
        }
    }

    /// The whole frame. Only one in parts is copied, and the nodes of this suite make none of
    /// those.
    #[inline]
    pub fn frame(&self) -> Cow<'_, [u8]> {
        match self {
            Self::WireFlat(flat) | Self::TapFlat(flat) => Cow::Borrowed(flat),
            Self::Wire(parts) | Self::Tap(parts) => Cow::Owned(parts.concat()),
        }
    }

    /// The whole frame, to keep.
    pub fn into_frame(self) -> Vec<u8> {
        match self {
            Self::WireFlat(flat) | Self::TapFlat(flat) => flat,
            Self::Wire(parts) | Self::Tap(parts) => parts.concat(),
        }
    }
}

/// The frame in one piece.
impl From<ReplyType> for Vec<u8> {
    fn from(reply: ReplyType) -> Self {
        reply.into_frame()
    }
}

/// The frame in parts: one, if it is in one piece.
impl From<ReplyType> for Vec<Vec<u8>> {
    fn from(reply: ReplyType) -> Self {
        match reply {
            ReplyType::WireFlat(flat) | ReplyType::TapFlat(flat) => vec![flat],
            ReplyType::Wire(parts) | ReplyType::Tap(parts) => parts,
        }
    }
}

/// What happened to one of the node's two interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// The radio can send and receive (again).
    Up,
    /// The radio cannot: every neighbour is out of reach at once.
    Down,
    /// The radio has another MAC address.
    AddressChanged(Mac),
    /// The radio carries Ethernet payloads of at most this many bytes.
    MtuChanged(usize),
    /// In the last second the radio's channel was busy for so many per cent of the time, with
    /// whatever it was: the channel busy ratio of ETSI TS 102 687. Where a driver tells, as those
    /// of 802.11 can, about once a second.
    ChannelBusy(u8),
    /// What is written to the TAP arrives (again).
    LanUp,
    /// What is written to the TAP is lost: it is down, gone, or out of its bridge. A node that
    /// starts takes it that it is not.
    LanDown,
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
///
/// This is all there is to driving one:
///
/// ```
/// use node_lib::control::node::{Interface, Node, Replies};
/// use node_lib::{Mac, Timestamp};
/// use rsu_lib::Rsu;
///
/// let mac = Mac([2, 0, 0, 0, 0, 1]);
/// let mut node = Rsu::new(rsu_lib::Config::new(mac), Timestamp::ZERO);
/// let mut out = Replies::new();
/// let mut sent = 0;
/// while let Some(now) = node.poll_timeout().filter(|at| *at < Timestamp::from_millis(1000)) {
///     node.handle_timeout(now, &mut out);
///     for reply in out.as_slice() {
///         match reply.interface() {
///             Interface::Radio => sent += reply.frame().len(), // to every neighbour's handle_wire
///             Interface::Tap => {}                             // to the clients
///         }
///     }
///     out.recycle();
/// }
/// assert!(sent > 0, "an RSU makes itself known");
/// ```
pub trait Node {
    /// Who this node is.
    fn id(&self) -> NodeId;

    /// A whole Ethernet frame came off the radio.
    fn handle_wire(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies);

    /// A frame of the radio with address `from` came in this strong, in dBm.
    ///
    /// A measurement is an event of its own and not part of a frame, because no interface that
    /// carries Ethernet frames tells the signal with the frame. Drivers report it per station when
    /// asked (nl80211), or with a copy of the frame on a monitor interface (radiotap), before or
    /// after the frame itself. A driver calls it once for each measurement, in their order, and
    /// never where the radio does not tell. It does not average: a node learns from single frames
    /// whether a radio fades and how weak they may be. Addresses the node does not know are
    /// ignored.
    fn handle_signal(&mut self, _now: Timestamp, _from: Mac, _dbm: i8) {}

    /// The radio gave this frame of ours up: it was for one neighbour, and however often it was
    /// sent, no acknowledgement came. The neighbour may have received it all the same.
    ///
    /// `frame` is the whole Ethernet frame as it was sent; one of those in it, if it was a bundle.
    /// A driver calls it where the radio tells, as those of 802.11 can, and never where it does
    /// not.
    fn handle_unacknowledged(&mut self, _now: Timestamp, _frame: &[u8], _out: &mut Replies) {}

    /// Whether this node makes use of [`Node::handle_unacknowledged`]. If not, a driver need not
    /// ask the radio, which costs processor time for each unicast frame.
    fn wants_unacknowledged(&self) -> bool {
        false
    }

    /// A whole Ethernet frame came out of the TAP.
    fn handle_tap(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies);

    /// The same, of a frame that may have waited in the TAP for so long that it is [late], because
    /// nobody read it while the radio was full.
    ///
    /// [late]: crate::transport::tap_wait::TAP_LATE
    fn handle_tap_late(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        self.handle_tap(now, frame, out);
    }

    /// These clients are behind the TAP, though they may not have spoken since this node started.
    /// An earlier start noted them, or the bridge that the TAP is a port of knows them behind its
    /// other ports.
    ///
    /// It is hearsay. What the node has heard of a client since it started, from either side,
    /// counts for more, and a frame of it that comes off the radio ends it.
    fn handle_clients(&mut self, _now: Timestamp, _clients: &[Remembered], _out: &mut Replies) {}

    /// Who is behind the TAP, in an order that does not change: what the next start is told with
    /// [`Node::handle_clients`]. Nobody for a node that has none to announce.
    fn clients(&self, _now: Timestamp) -> Vec<Remembered> {
        Vec::new()
    }

    /// The radio or the LAN went up or down, or the radio changed.
    fn handle_link(&mut self, now: Timestamp, event: LinkEvent, out: &mut Replies);

    /// Where the node is; `None`: that is not known any more. A driver calls it with each fix of a
    /// receiver, as soon as it comes, and once for a place that stays. The node makes it older by
    /// itself. A node that tells nobody ignores it.
    fn handle_position(&mut self, _now: Timestamp, _located: Option<Located>) {}

    /// The time [`Node::poll_timeout`] named has come.
    fn handle_timeout(&mut self, now: Timestamp, out: &mut Replies);

    /// When this node next has something to do by itself.
    fn poll_timeout(&self) -> Option<Timestamp>;

    /// What [`Node::poll_timeout`] names, with its reason: for whoever asks what wakes a node.
    fn deadline(&self) -> Option<Deadline> {
        self.poll_timeout().map(|at| Deadline::new(at, "the node gives no reason"))
    }

    /// The node will stop: says goodbye to its neighbours. The driver should keep driving it for
    /// [`Node::linger`], so that frames under way arrive while the neighbours move elsewhere.
    fn handle_shutdown(&mut self, now: Timestamp, out: &mut Replies);

    /// How long to keep running after [`Node::handle_shutdown`].
    fn linger(&self) -> std::time::Duration;

    /// How many neighbours could be upstream towards the RSU in use, the upstream among them. None
    /// for an RSU, and for an OBU without a way.
    fn candidates(&self, _now: Timestamp) -> usize {
        0
    }

    /// The neighbour to which the node sends frames for this RSU, its own and those of others; none
    /// for an RSU, and for an OBU that knows no way there.
    fn upstream_for(&self, _rsu: NodeId) -> Option<NodeId> {
        None
    }

    /// How the node stands. Made when somebody asks, and never for a packet; it may allocate.
    fn snapshot(&self, _now: Timestamp) -> Snapshot {
        Snapshot::of(self.id(), NodeRole::Other)
    }

    /// Of [`Node::snapshot`] the part from which an OBU decides: taken after a decision, it says
    /// why.
    fn routes(&self, _now: Timestamp) -> Vec<KnownRoute> {
        Vec::new()
    }

    /// Forgets clients, all or those with this address, as if they had not been heard; those that
    /// speak are learnt anew. Returns how many.
    fn forget_clients(
        &mut self,
        _now: Timestamp,
        _which: Option<Mac>,
        _out: &mut Replies,
    ) -> usize {
        0
    }

    /// Puts clients behind an OBU whatever is heard of them, or no longer. Returns how many pins
    /// were put or taken off.
    fn pin_clients(
        &mut self,
        _now: Timestamp,
        _pin: Pin,
        _out: &mut Replies,
    ) -> Result<usize, NoPin> {
        Err(NoPin::NotHere)
    }

    /// An operator asks who is on the way to a node or client. A node that knows of no echoes says
    /// nothing.
    fn handle_ping(&mut self, _now: Timestamp, _ping: Ping, _out: &mut Replies) {}

    /// The oldest answer to [`Node::handle_ping`] not yet handed out. Most of them come with a
    /// frame; some questions the node answers itself, at once.
    fn poll_echo(&mut self) -> Option<Echoed> {
        None
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
    fn a_frame_is_the_same_whatever_form_it_has() {
        let parts = || vec![vec![1, 2], vec![], vec![3]];
        for (flat, nested, to) in [
            (ReplyType::WireFlat(vec![1, 2, 3]), ReplyType::Wire(parts()), Interface::Radio),
            (ReplyType::TapFlat(vec![1, 2, 3]), ReplyType::Tap(parts()), Interface::Tap),
        ] {
            assert!(matches!(flat.frame(), Cow::Borrowed(_)), "nothing is copied");
            for reply in [&flat, &nested] {
                assert_eq!(reply.interface(), to);
                assert_eq!(&reply.frame()[..], [1, 2, 3]);
                assert_eq!(Vec::<u8>::from(reply.clone()), [1, 2, 3]);
            }
            assert_eq!(Vec::<Vec<u8>>::from(nested), parts());
            assert_eq!(Vec::<Vec<u8>>::from(flat), [[1, 2, 3]]);
        }
    }
}
