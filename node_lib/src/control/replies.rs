//! [`Replies`]: what a node wants sent, in order, and the buffers it is built in.

use std::ops::Range;

use crate::control::next_hop::NextHop;
use crate::control::node::{Interface, ReplyType};
use crate::control::traffic_class;

/// Replies in the order they are to be sent, and the spare buffers they are built in.
///
/// The driver keeps one of these for the life of the node, sends what is in it and then calls
/// [`Replies::recycle`]: from then on no reply costs an allocation.
///
/// A driver that keeps the received frame where it is until the replies are sent may say so before
/// each call: see [`Replies::lend`]. Then the payload of a frame that is passed on is not copied.
/// Every other driver (a simulator, a test) finds whole frames in [`Replies::as_slice`] and need
/// not know.
#[derive(Debug, Default)]
pub struct Replies {
    items: Vec<ReplyType>,
    /// The traffic class of each.
    classes: Vec<u8>,
    spare: Vec<Vec<u8>>,
    lent: Option<Lent>,
    loans: Vec<Loan>,
    /// Headers of the loans, one behind the other.
    heads: Vec<u8>,
    /// For whom nothing may be put together that is longer than this.
    narrow: Vec<NextHop>,
}

/// Spare buffers kept: one burst of 64 frames, each answered by at most two.
const SPARE_MAX: usize = 128;

/// What a buffer begins with: room for a header and for all but the longest control frames, so that
/// hardly any has to grow.
const SPARE_CAPACITY_MIN: usize = 256;

/// What those begin with that are made before they are needed: room for a client's frame with a
/// payload of 1500 bytes, whole on a radio with an MTU of 1568, rounded up.
const SPARE_CAPACITY: usize = 1600;

/// A spare buffer that grew beyond this (a jumbo frame) is given back to the allocator.
const SPARE_CAPACITY_MAX: usize = 16 * 1024;

/// The frame the driver is having handled.
#[derive(Clone, Debug)]
struct Lent {
    index: usize,
    /// Where it lies: numbers to compare with, nothing is ever read through them.
    place: Range<usize>,
    /// Room in front of it.
    headroom: usize,
    /// Where the payload that is already on loan begins.
    payload: Option<usize>,
    /// A header will be written in front of that payload, and there is room for only one.
    has_head: bool,
}

/// A reply whose payload still lies in the frame that was lent.
#[derive(Debug, PartialEq, Eq)]
pub struct Loan {
    /// How many of [`Replies::as_slice`] go before it.
    pub after: usize,
    /// Which frame, as given to [`Replies::lend`].
    pub index: usize,
    /// Which bytes of it.
    pub payload: Range<usize>,
    /// What goes in front of them, over what is there: see [`Replies::head`]. `None` for a frame to
    /// the TAP.
    pub head: Option<Range<usize>>,
    /// Its [traffic class](traffic_class).
    pub class: u8,
}

impl Replies {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty list, with all spare buffers that are ever kept, each with room for an Ethernet
    /// frame of the usual length: 200 KiB. For a driver that runs for days: its memory does not
    /// creep up with every burst that is longer than the last.
    pub fn with_spare_buffers() -> Self {
        let spare = (0..SPARE_MAX).map(|_| Vec::with_capacity(SPARE_CAPACITY)).collect();
        Self { spare, ..Self::default() }
    }

    /// Appends a frame for the radio, written by `build` into an empty buffer. Its traffic class is
    /// read from it; whoever knows that says it: [`Replies::wire_in_class`].
    pub fn wire(&mut self, build: impl FnOnce(&mut Vec<u8>)) {
        let mut flat = self.buffer();
        build(&mut flat);
        self.push(ReplyType::WireFlat(flat));
    }

    /// Appends a frame of this traffic class for the radio, written by `build` into an empty
    /// buffer.
    pub fn wire_in_class(&mut self, class: u8, build: impl FnOnce(&mut Vec<u8>)) {
        let mut flat = self.buffer();
        build(&mut flat);
        self.add(ReplyType::WireFlat(flat), class);
    }

    /// Appends a frame for the TAP, written by `build` into an empty buffer.
    pub fn tap(&mut self, build: impl FnOnce(&mut Vec<u8>)) {
        let mut flat = self.buffer();
        build(&mut flat);
        self.push(ReplyType::TapFlat(flat));
    }

    /// Appends a frame of this traffic class for the radio: what `head` writes into an empty
    /// buffer, then `payload`, which is not copied if it is a part of the frame that was lent.
    #[inline]
    pub fn wire_around(&mut self, class: u8, payload: &[u8], head: impl FnOnce(&mut Vec<u8>)) {
        let begin = self.heads.len();
        head(&mut self.heads);
        let head = begin..self.heads.len();
        if let Some((index, payload)) = self.borrow(payload, Some(head.len())) {
            let after = self.items.len();
            self.loans.push(Loan { after, index, payload, head: Some(head), class });
        } else {
            let mut flat = self.buffer();
            flat.extend_from_slice(self.heads.get(head).unwrap_or_default());
            flat.extend_from_slice(payload);
            self.heads.truncate(begin);
            self.add(ReplyType::WireFlat(flat), class);
        }
    }

    /// Appends a frame for the TAP, which is not copied if it is a part of the frame that was lent.
    #[inline]
    pub fn tap_frame(&mut self, frame: &[u8]) {
        if let Some((index, payload)) = self.borrow(frame, None) {
            let (after, class) = (self.items.len(), traffic_class::BEST_EFFORT);
            self.loans.push(Loan { after, index, payload, head: None, class });
        } else {
            self.tap(|flat| flat.extend_from_slice(frame));
        }
    }

    /// What is for this neighbour, or for all, passes radios on its way that take no longer
    /// packets: whoever puts several frames into one has to know.
    pub fn keep_short(&mut self, to: NextHop) {
        match self.narrow.iter_mut().find(|known| known.mac == to.mac) {
            Some(known) => known.mtu = known.mtu.min(to.mtu),
            None => self.narrow.push(to),
        }
    }

    /// For whom frames must be kept shorter than our own radio takes them.
    pub fn narrow(&self) -> &[NextHop] {
        &self.narrow
    }

    /// Appends a reply built elsewhere. The traffic class of a frame for the radio is read from it.
    pub fn push(&mut self, reply: ReplyType) {
        let class = match reply.interface() {
            Interface::Radio => traffic_class::of(&reply.frame()),
            Interface::Tap => traffic_class::BEST_EFFORT,
        };
        self.add(reply, class);
    }

    fn add(&mut self, reply: ReplyType, class: u8) {
        self.items.push(reply);
        self.classes.push(class);
    }

    /// What is to be sent, first to last; without what is on loan.
    pub fn as_slice(&self) -> &[ReplyType] {
        &self.items
    }

    /// The same, each with its [traffic class](traffic_class): for a radio that has some.
    pub fn classed(&self) -> impl Iterator<Item = (&ReplyType, u8)> {
        self.items.iter().zip(self.classes.iter().copied())
    }

    /// Nothing to send.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && self.loans.is_empty()
    }

    /// Takes the replies out, for a driver that keeps them (a simulator, a test) and lends nothing.
    pub fn take(&mut self) -> Vec<ReplyType> {
        debug_assert!(self.loans.is_empty(), "whoever lends looks at the loans");
        self.narrow.clear();
        self.classes.clear();
        std::mem::take(&mut self.items)
    }

    /// Forgets what was sent and keeps the buffers for the next replies.
    #[inline]
    pub fn recycle(&mut self) {
        self.lent = None;
        self.loans.clear();
        self.heads.clear();
        self.narrow.clear();
        self.classes.clear();
        if !self.items.is_empty() {
            self.take_back();
        }
    }

    fn take_back(&mut self) {
        for reply in self.items.drain(..) {
            let (ReplyType::WireFlat(mut flat) | ReplyType::TapFlat(mut flat)) = reply else {
                continue;
            };
            if self.spare.len() < SPARE_MAX && flat.capacity() <= SPARE_CAPACITY_MAX {
                flat.clear();
                self.spare.push(flat);
            }
        }
    }

    /// The frame that will be handled next stays where it is until [`Replies::recycle`], as number
    /// `index` of its burst, and with `headroom` bytes in front of it that may be written over. The
    /// payload of a reply that is a part of it becomes a [`Loan`] instead of a copy; of two headers
    /// for the same payload only the first, as there is room for one.
    #[inline]
    pub fn lend(&mut self, index: usize, frame: &[u8], headroom: usize) {
        let start = frame.as_ptr().addr();
        let place = start..start.saturating_add(frame.len());
        self.lent = Some(Lent { index, place, headroom, payload: None, has_head: false });
    }

    /// The frame that will be handled next does not stay where it is: what passes it on is a copy.
    pub fn lend_nothing(&mut self) {
        self.lent = None;
    }

    /// What is on loan, in the order of sending.
    #[inline]
    pub fn loans(&self) -> &[Loan] {
        &self.loans
    }

    /// What goes in front of the payload of a loan; nothing for a frame to the TAP.
    #[inline]
    pub fn head(&self, loan: &Loan) -> Option<&[u8]> {
        self.heads.get(loan.head.clone()?)
    }

    /// Joins the parts of nested replies, so that all replies are in one piece.
    pub fn flatten(&mut self) {
        for item in &mut self.items {
            let (ReplyType::Wire(parts) | ReplyType::Tap(parts)) = item else { continue };
            let mut flat = self.spare.pop().unwrap_or_default();
            parts.iter().for_each(|part| flat.extend_from_slice(part));
            *item = match item {
                ReplyType::Tap(_) => ReplyType::TapFlat(flat),
                _ => ReplyType::WireFlat(flat),
            };
        }
    }

    fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_else(|| Vec::with_capacity(SPARE_CAPACITY_MIN))
    }

    /// Which part of the lent frame `payload` is, if it is one. There must be room for a header of
    /// `head` bytes (`None`: no header) in front of it, without touching what is on loan already.
    #[inline]
    fn borrow(&mut self, payload: &[u8], head: Option<usize>) -> Option<(usize, Range<usize>)> {
        let lent = self.lent.as_mut()?;
        let at = payload.as_ptr().addr();
        if at < lent.place.start || at.checked_add(payload.len())? > lent.place.end {
            return None;
        }
        let start = at - lent.place.start;
        if lent.payload.is_some_and(|other| other != start) {
            return None;
        }
        if let Some(head) = head {
            if lent.has_head || head > start + lent.headroom {
                return None;
            }
            lent.has_head = true;
        }
        lent.payload = Some(start);
        Some((lent.index, start..start + payload.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Kind;
    use crate::messages::prefix::VERSION;

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

    #[test]
    fn buffers_made_before_are_as_many_as_are_kept_and_none_of_them_grows() {
        let mut replies = Replies::with_spare_buffers();
        let before: Vec<_> = replies.spare.iter().map(|flat| flat.as_ptr()).collect();
        for _ in 0..SPARE_MAX {
            replies.wire(|flat| flat.resize(1582, 0));
        }
        replies.recycle();
        let after: Vec<_> = replies.spare.iter().rev().map(|flat| flat.as_ptr()).collect();
        assert_eq!((before.len(), before), (SPARE_MAX, after));
    }

    #[test]
    fn each_reply_has_its_class_whoever_appends_it_in_whatever_form() {
        let control = [&[2; 14][..], &[VERSION << 4 | Kind::Probe.code()], &[0; 60]].concat();
        let mut replies = Replies::new();
        for _ in 0..2 {
            replies.wire(|flat| flat.extend_from_slice(&control));
            replies.tap_frame(&control);
            replies.wire_in_class(4, |flat| flat.push(1));
            replies.wire_around(5, &[2], |head| head.push(1));
            replies.push(ReplyType::Wire(control.chunks(7).map(<[u8]>::to_vec).collect()));
            replies.flatten();
            let classes: Vec<u8> = replies.classed().map(|(_, class)| class).collect();
            assert_eq!(classes, [traffic_class::CONTROL, 0, 4, 5, traffic_class::CONTROL]);
            // What is recycled leaves nothing behind.
            replies.recycle();
            assert_eq!(replies.classed().count(), 0);
        }
        replies.wire_in_class(4, |flat| flat.push(1));
        replies.take();
        replies.wire_in_class(2, |flat| flat.push(1));
        assert_eq!(replies.classed().map(|(_, class)| class).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn without_a_loan_a_frame_that_is_passed_on_is_whole() {
        let mut replies = Replies::new();
        replies.wire_around(0, &[3, 4], |head| head.extend_from_slice(&[1, 2]));
        replies.tap_frame(&[5]);
        assert!(replies.loans().is_empty());
        assert_eq!(
            replies.take(),
            [ReplyType::WireFlat(vec![1, 2, 3, 4]), ReplyType::TapFlat(vec![5])]
        );
    }

    #[test]
    fn a_part_of_the_lent_frame_is_not_copied_and_keeps_its_place_in_the_order() {
        let frame = [0, 1, 2, 3, 4, 5];
        let mut replies = Replies::new();
        replies.lend(7, &frame, 2);
        replies.wire(|flat| flat.push(9));
        replies.wire_around(3, &frame[2..5], |head| head.extend_from_slice(&[8; 4]));
        replies.tap_frame(&frame[2..5]);
        let loan = |head, class| Loan { after: 1, index: 7, payload: 2..5, head, class };
        assert_eq!(replies.loans(), [loan(Some(0..4), 3), loan(None, 0)]);
        let heads: Vec<_> = replies.loans().iter().map(|loan| replies.head(loan)).collect();
        assert_eq!(heads, [Some(&[8; 4][..]), None]);
        assert_eq!(replies.as_slice(), [ReplyType::WireFlat(vec![9])]);
        replies.recycle();
        assert!(replies.is_empty());
    }

    #[test]
    fn what_would_be_written_over_is_copied() {
        let frame = [0, 1, 2, 3];
        let mut replies = Replies::new();
        replies.lend(0, &frame, 2);
        replies.wire_around(0, &frame[2..], |head| head.push(7));
        // A second header has no room, nor has one for another part.
        replies.wire_around(0, &frame[2..], |head| head.push(8));
        replies.tap_frame(&frame[1..]);
        assert_eq!(replies.loans().len(), 1);
        assert_eq!(
            replies.as_slice(),
            [ReplyType::WireFlat(vec![8, 2, 3]), ReplyType::TapFlat(vec![1, 2, 3])]
        );
        replies.recycle();
        replies.lend(0, &frame, 2);
        replies.wire_around(0, &frame[1..], |head| head.extend_from_slice(&[9; 4]));
        assert_eq!(replies.take(), [ReplyType::WireFlat(vec![9, 9, 9, 9, 1, 2, 3])]);
    }

    #[test]
    fn the_loan_ends_with_recycling_and_covers_no_other_memory() {
        let frame = [0, 1, 2, 3];
        let mut replies = Replies::new();
        replies.lend(0, &frame[..3], 0);
        replies.tap_frame(&frame);
        replies.recycle();
        replies.tap_frame(&frame[..3]);
        assert_eq!(replies.take(), [ReplyType::TapFlat(vec![0, 1, 2])]);
    }

    #[test]
    fn a_frame_that_is_not_lent_is_copied_though_it_lies_where_another_was_lent() {
        let frame = [0, 1, 2, 3];
        let mut replies = Replies::new();
        replies.lend(0, &frame, 2);
        replies.lend_nothing();
        replies.tap_frame(&frame[1..]);
        replies.wire_around(0, &frame[2..], |head| head.push(9));
        assert!(replies.loans().is_empty());
        assert_eq!(
            replies.take(),
            [ReplyType::TapFlat(vec![1, 2, 3]), ReplyType::WireFlat(vec![9, 2, 3])]
        );
    }

    #[test]
    fn nested_replies_become_flat_ones() {
        let mut replies = Replies::new();
        replies.push(ReplyType::Wire(vec![vec![1], vec![2, 3]]));
        replies.push(ReplyType::Tap(vec![]));
        replies.flatten();
        assert_eq!(
            replies.take(),
            [ReplyType::WireFlat(vec![1, 2, 3]), ReplyType::TapFlat(vec![])]
        );
    }
}
