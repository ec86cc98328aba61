//! Between a node and its interfaces: what a daemon and a simulation do alike with the frames a
//! node gives and is given.
//!
//! ```text
//!  node ─► Bundler ─► Outbox ─► radio            TAP, of the MTU that TapMtu says ─► node
//!          small frames for   what the radio
//!          one neighbour      has no room for    radio ─► Opened: bundles taken apart ─► node
//! ```
//!
//! Nothing here knows a socket or a clock. A radio is a [`Sink`]: a device of a daemon, or the
//! channel of a simulated world.

pub mod bundler;
pub mod mtu;
pub mod outbox;
pub mod socket;
pub mod tap_wait;

use arrayvec::ArrayVec;

use crate::control::next_hop::NextHop;
use crate::time::Timestamp;
use bundler::{BundleCounters, Bundler, Opened};
use outbox::{Outbox, OutboxCounters};
use tap_wait::TapWait;

/// Frames of one side per turn: 64 are read and answered in about 0.2 ms.
pub const BURST: usize = 64;

/// Frames of one side that are sent together: a burst, each answered twice.
pub const CHUNK: usize = 2 * BURST;

/// Bursts of the radio that may hold back a deadline: 2,048 frames, which is more than half of what
/// its sockets hold if all of them are full ones.
pub const DRAIN_TURNS: u32 = 32;

/// A whole Ethernet frame to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing<'a> {
    /// The frame.
    pub bytes: &'a [u8],
    /// User priority, 0 to 7 (IEEE 802.1Q-2018 §6.9.4), for a radio that knows traffic classes.
    pub priority: u8,
}

impl<'a> Outgoing<'a> {
    /// A frame of the usual priority.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, priority: 0 }
    }
}

impl AsRef<[u8]> for Outgoing<'_> {
    fn as_ref(&self) -> &[u8] {
        self.bytes
    }
}

/// What became of frames given to a [`Sink`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It is done with all of them: each was sent, or dropped and counted.
    All,
    /// It is done with as many, and has no room for the next; whoever waits for it will be told.
    Full(usize),
    /// It is done with as many. For the next, which is control, the queue of the interface has no
    /// room, and nobody will tell when it has: it must be tried again after a while.
    Refused(usize),
    /// Those left were dropped because the interface no longer exists.
    Gone,
}

/// Takes frames for the radio.
pub trait Sink {
    /// Sends frames in this order, each as exactly one.
    fn take(&mut self, frames: &[Outgoing<'_>]) -> Sent;

    /// This frame was dropped on its way here: too many waited, or it waited for too long. It is
    /// counted.
    fn dropped(&mut self, frame: &[u8]) {
        let _ = frame;
    }
}

/// The way of a node's frames to its radio.
#[derive(Debug, Default)]
pub struct WayOut {
    bundler: Bundler,
    outbox: Outbox,
    /// While data waits here the TAP is not read.
    tap_wait: TapWait,
}

impl WayOut {
    /// To a radio of this MTU, in bytes. With `bundles`, small frames for the same neighbour leave
    /// in one.
    pub fn new(radio_mtu: usize, bundles: bool) -> Self {
        let bundler = Bundler::new(bundles.then_some(radio_mtu));
        Self { bundler, ..Self::default() }
    }

    /// The radio has another MTU.
    pub fn set_radio_mtu(&mut self, mtu: usize) {
        self.bundler.set_radio_mtu(mtu);
    }

    /// Sends frames that were there together, up to [`CHUNK`] of them bundled at a time; what the
    /// radio has no room for waits. `narrow` is who takes shorter frames than our radio, as
    /// [`Replies::narrow`] says.
    ///
    /// [`Replies::narrow`]: crate::control::node::Replies::narrow
    pub fn send(
        &mut self,
        now: Timestamp,
        radio: &mut impl Sink,
        frames: &[Outgoing<'_>],
        narrow: &[NextHop],
    ) {
        for frames in frames.chunks(CHUNK) {
            let mut room = ArrayVec::new();
            self.outbox.send(now, radio, self.bundler.gather(frames, narrow, &mut room));
        }
        self.leave_tap(now);
    }

    /// Tries again what waits, control first, and drops what has become too old.
    pub fn retry(&mut self, now: Timestamp, radio: &mut impl Sink) {
        self.outbox.retry(now, radio);
        self.leave_tap(now);
    }

    fn leave_tap(&mut self, now: Timestamp) {
        if self.has_data() {
            self.tap_wait.begin(now);
        }
    }

    /// The TAP was left alone, and has not been read to its end since.
    pub fn has_left_tap(&self) -> bool {
        self.tap_wait.is_open()
    }

    /// So many frames were read from the TAP, a super-frame counted once, the last one there was
    /// among them or not. Whether they may have waited there for [`TAP_LATE`] or longer.
    ///
    /// [`TAP_LATE`]: tap_wait::TAP_LATE
    pub fn note_tap_read(&mut self, now: Timestamp, frames: usize, is_end: bool) -> bool {
        self.tap_wait.read(now, frames, is_end)
    }

    /// Something waits for room.
    pub fn is_waiting(&self) -> bool {
        self.outbox.is_waiting()
    }

    /// Data waits: there is no point in reading more from the TAP, whose own queue drops what is
    /// too much.
    pub fn has_data(&self) -> bool {
        self.outbox.has_data()
    }

    /// When the oldest frame will have waited too long.
    pub fn expires(&self) -> Option<Timestamp> {
        self.outbox.expires()
    }

    /// Remembers what was in a bundle that came, and says how many frames that were.
    pub fn count(&mut self, opened: &Opened) -> usize {
        self.bundler.count(opened)
    }

    /// What went through in bundles.
    pub fn bundles(&self) -> &BundleCounters {
        self.bundler.counters()
    }

    /// What had to wait.
    pub fn waited(&self) -> &OutboxCounters {
        self.outbox.counters()
    }
}
