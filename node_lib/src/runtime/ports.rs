//! The two devices of the loop, and what is sent to them: replies in order, each as one frame.

use std::ops::Range;

use arrayvec::ArrayVec;

use super::busy_poll::BusyPoll;
use crate::control::next_hop::NextHop;
use crate::control::node::{Replies, ReplyType};
use crate::control::replies::Loan;
use crate::device::{Burst, Device, Outgoing, Sent, Side};
use crate::time::Timestamp;
use crate::transport::{CHUNK, WayOut};

/// The two devices, and what sending to them needs.
pub(super) struct Ports<'a, R, T> {
    pub(super) radio: &'a mut R,
    pub(super) tap: &'a mut T,
    pub(super) way_out: WayOut,
    pub(super) busy_poll: BusyPoll,
    /// The TAP was found to be gone and nobody has looked at it yet.
    pub(super) tap_lost: bool,
    /// Something was written to the TAP since this was last looked at.
    pub(super) tap_written: bool,
}

impl<R: Device, T: Device> Ports<'_, R, T> {
    /// Sends replies in order, each as one frame, and takes their buffers back. What is on loan
    /// lies in `burst`.
    pub(super) fn transmit(&mut self, now: Timestamp, replies: &mut Replies, burst: &mut Burst) {
        if replies.is_empty() {
            // A frame that nobody answers ends its loan as well: something else will lie in its
            // place.
            replies.lend_nothing();
            return;
        }
        replies.flatten();
        for loan in replies.loans() {
            self.busy_poll.passed_on(side_of(loan));
            if let Some(head) = replies.head(loan) {
                let fits = burst.put_head(loan.index, loan.payload.start, head);
                debug_assert!(fits, "lent with no more headroom than there is");
            }
        }
        self.send_in_order(now, replies, burst);
        replies.recycle();
    }

    fn send_in_order(&mut self, now: Timestamp, replies: &Replies, burst: &Burst) {
        let mut wire: ArrayVec<Outgoing<'_>, CHUNK> = ArrayVec::new();
        let mut tap: ArrayVec<Outgoing<'_>, CHUNK> = ArrayVec::new();
        for (to, frame) in in_order(replies, burst) {
            match to {
                Side::Radio => wire.push(frame),
                Side::Tap => tap.push(frame),
            }
            if wire.is_full() || tap.is_full() {
                self.send(now, &wire, &tap, replies.narrow());
                wire.clear();
                tap.clear();
            }
        }
        self.send(now, &wire, &tap, replies.narrow());
    }

    fn send(
        &mut self,
        now: Timestamp,
        wire: &[Outgoing<'_>],
        tap: &[Outgoing<'_>],
        narrow: &[NextHop],
    ) {
        if !wire.is_empty() {
            self.way_out.send(now, self.radio, wire, narrow);
        }
        if !tap.is_empty() {
            self.tap_written = true;
            self.tap_lost |= self.tap.send(tap) == Sent::Gone;
        }
    }
}

/// Where a frame that was lent goes.
fn side_of(loan: &Loan) -> Side {
    if loan.head.is_some() { Side::Radio } else { Side::Tap }
}

/// Replies and loans as whole frames, in the order in which the node gave them.
fn in_order<'a>(
    replies: &'a Replies,
    burst: &'a Burst,
) -> impl Iterator<Item = (Side, Outgoing<'a>)> {
    let mut loans = replies.loans().iter().peekable();
    let mut items = replies.classed();
    let mut taken = 0;
    std::iter::from_fn(move || {
        if let Some(loan) = loans.next_if(|loan| loan.after == taken) {
            let head = loan.head.as_ref().map_or(0, Range::len);
            let bytes = burst.part(loan.index, head, loan.payload.clone());
            return Some((side_of(loan), Outgoing { bytes, priority: loan.class }));
        }
        taken += 1;
        items.next().map(|(reply, priority)| {
            let (side, bytes) = match reply {
                ReplyType::WireFlat(flat) => (Side::Radio, &flat[..]),
                ReplyType::TapFlat(flat) => (Side::Tap, &flat[..]),
                // Made flat before.
                ReplyType::Wire(_) => (Side::Radio, &[][..]),
                ReplyType::Tap(_) => (Side::Tap, &[][..]),
            };
            (side, Outgoing { bytes, priority })
        })
    })
}
