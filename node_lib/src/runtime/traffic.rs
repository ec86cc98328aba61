//! Frames that come in: bursts of the radio, of its control and of the TAP go into the node, and
//! what it answers leaves right after.

use tracing::trace;

use super::Running;
use super::command::Commands;
use crate::control::node::{Node, Replies};
use crate::device::{Device, DeviceCounters, HEADROOM, Links, Received};
use crate::time::Timestamp;
use crate::transport::BURST;
use crate::transport::bundler::Opened;

/// How a node is told of a frame of the radio.
type Tell<N> = fn(&mut N, Timestamp, &[u8], &mut Replies);

/// How many frames to wait for when there were `last` the turn before. Where one came alone the
/// next does too: it goes on before the system call that finds no other.
fn enough_after(last: usize) -> usize {
    if last <= 1 { 1 } else { BURST }
}

/// What was read from a TAP as its queue counts it: a super-frame is one, however many frames it is
/// split into.
fn queued(counters: &DeviceCounters) -> u64 {
    (counters.rx_frames + counters.rx_super_frames).saturating_sub(counters.rx_segments)
}

impl<N: Node, R: Device, T: Device, L: Links, C: Commands> Running<'_, N, R, T, L, C> {
    /// One burst of control frames from the radio. Returns whether there may be more.
    pub(super) fn turn_control(&mut self, now: Timestamp) -> bool {
        if self.ports.radio.control_descriptor().is_none() {
            return false;
        }
        self.burst.limit(BURST);
        let received = self.ports.radio.recv_control(&mut self.burst);
        self.tell_burst(now, N::handle_wire);
        received == Received::More
    }

    /// One burst from the radio. Returns whether there may be more.
    pub(super) fn turn_radio(&mut self, now: Timestamp) -> bool {
        let mut taken = 0;
        let enough = enough_after(self.radio_last);
        let mut more = self.take_from_radio(now, enough, &mut taken);
        if more && taken < BURST {
            // An answer of the host (to a ping, to a segment) is there by the time the frame has
            // been written. What is left of it is still there when its turn comes.
            if std::mem::take(&mut self.ports.tap_written) && !self.ports.way_out.has_data() {
                self.tap_more = self.turn_tap(now);
            }
            more = self.take_from_radio(now, BURST, &mut taken);
        }
        self.radio_last = taken;
        more
    }

    fn take_from_radio(&mut self, now: Timestamp, enough: usize, taken: &mut usize) -> bool {
        // A burst of full bundles is a thousand frames: control, deadlines and the TAP must not
        // wait for so many.
        self.burst.limit(enough.div_ceil(self.per_frame));
        let received = self.ports.radio.recv(&mut self.burst);
        let frames = self.burst.len();
        let heard = self.tell_burst(now, N::handle_wire);
        if frames > 0 {
            self.per_frame = heard.div_ceil(frames).max(1);
        }
        *taken += heard;
        received == Received::More
    }

    /// What the radio gave up, one burst of it. What is left is told of again: a radio that is full
    /// of frames it gives up must not keep us from what comes.
    pub(super) fn turn_unacknowledged(&mut self, now: Timestamp) {
        self.burst.limit(BURST);
        self.ports.radio.recv_unacknowledged(&mut self.burst);
        self.tell_burst(now, N::handle_unacknowledged);
    }

    /// Tells the node of a burst of the radio, and sends what it answers. Returns how many frames
    /// it was, those in bundles each by itself.
    fn tell_burst(&mut self, now: Timestamp, tell: Tell<N>) -> usize {
        let mut taken = 0;
        for index in 0..self.burst.len() {
            let frame = self.burst.frame(index);
            trace!(len = frame.len(), "from radio");
            if let Some(bundle) = Opened::open(frame) {
                taken += self.take_apart(now, index, bundle, tell);
                continue;
            }
            taken += 1;
            self.replies.lend(index, frame, HEADROOM);
            tell(self.node, now, frame, &mut self.replies);
        }
        self.transmit(now);
        taken
    }

    /// Has each frame in a bundle handled, and says how many these are. None of them is lent: the
    /// next is written over its end.
    fn take_apart(
        &mut self,
        now: Timestamp,
        index: usize,
        mut bundle: Opened,
        tell: Tell<N>,
    ) -> usize {
        while let Some(frame) = bundle.next_in(self.burst.frame_mut(index)) {
            tell(self.node, now, frame, &mut self.replies);
            if self.replies.as_slice().len() >= BURST {
                self.transmit(now);
            }
        }
        self.ports.way_out.count(&bundle)
    }

    /// One burst from the TAP. Returns whether there may be more.
    pub(super) fn turn_tap(&mut self, now: Timestamp) -> bool {
        let (mut taken, mut enough) = (0, enough_after(self.tap_last));
        let more = loop {
            let before = taken;
            let more = self.take_from_tap(now, enough, &mut taken);
            // Sending took longer than reading: there may be more by now, though there was none a
            // moment ago.
            if taken == before || taken >= BURST || self.ports.way_out.has_data() {
                break more;
            }
            enough = BURST;
        };
        self.tap_last = taken;
        more
    }

    fn take_from_tap(&mut self, now: Timestamp, enough: usize, taken: &mut usize) -> bool {
        self.burst.limit(enough);
        let before = queued(self.ports.tap.counters());
        let received = self.ports.tap.recv(&mut self.burst);
        self.ports.tap_lost |= received == Received::Gone;
        let is_end = received != Received::More;
        let read = queued(self.ports.tap.counters()).saturating_sub(before);
        let read = usize::try_from(read).unwrap_or(usize::MAX);
        let is_late = self.ports.way_out.note_tap_read(now, read, is_end);
        for index in 0..self.burst.len() {
            let frame = self.burst.frame(index);
            trace!(len = frame.len(), "from tap");
            self.replies.lend(index, frame, HEADROOM);
            if is_late {
                self.node.handle_tap_late(now, frame, &mut self.replies);
            } else {
                self.node.handle_tap(now, frame, &mut self.replies);
            }
        }
        *taken += self.burst.len();
        self.transmit(now);
        received == Received::More
    }

    pub(super) fn transmit(&mut self, now: Timestamp) {
        self.ports.transmit(now, &mut self.replies, &mut self.burst);
    }
}
