//! Clients' frames that may never arrive: [`AtRisk`].
//!
//! That a next hop drives off, or dies, is noticed by its silence. What it was given since its last
//! sign of life is lost as a rule, and as soon as it is noticed there mostly is another way. So a
//! copy of each frame is kept for a while, and goes that way then. Whom it is for knows a frame by
//! its source and number, and drops the second one should the first have arrived.
//!
//! In a flood of frames only the first are kept: a hand-over must not fill the radio with what is
//! old by then.

use std::time::Duration;

use crate::mac::Mac;
use crate::messages::data::Data;
use crate::time::Timestamp;

/// Older frames are not sent again. No longer does it take to notice that a next hop is gone, with
/// three heartbeats of the default interval. Who waits for an answer has asked once more by then
/// (RFC 6298 §5; Linux waits 200 ms at least), and what nobody repeats (voice, positions) is of no
/// use any more.
pub const AGE_MAX: Duration = Duration::from_millis(300);

/// Bytes kept of one term of [`AGE_MAX`]: 27 ms of a radio of 6 Mbit/s. Copies are thrown away
/// together, those of one term when the next but one begins.
pub const BYTES_MAX: usize = 20 * 1024;

/// A frame with Ethernet, IPv4 and UDP headers and nothing else has 64 bytes here. Of those as long
/// and longer there is room for as many as there are bytes for.
const SHORT: usize = 64;

/// Memory that no frame has needed for so long is given back.
const UNUSED_FOR: Duration = Duration::from_secs(5);

/// Copies of frames given to a next hop lately.
#[derive(Clone, Debug, Default)]
pub struct AtRisk {
    term: Term,
    /// The one before.
    last: Term,
    begun: Timestamp,
    /// Room is made for a whole term at once.
    is_roomy: bool,
}

/// Frames of one term, in their order.
#[derive(Clone, Debug, Default)]
struct Term {
    given: Vec<Given>,
    packets: Vec<u8>,
}

/// One frame in [`Term::packets`]. It begins where the one before ends.
#[derive(Clone, Copy, Debug)]
struct Given {
    at: Timestamp,
    /// Who had sent it to us.
    from: Mac,
    end: u32,
    /// It went another way, or did not need to.
    is_done: bool,
}

impl AtRisk {
    /// Makes room for a whole term with its first frame: pieces of ever other sizes would leave
    /// holes in the memory of a program that runs for days. For who has few of these.
    pub fn roomy() -> Self {
        Self { is_roomy: true, ..Self::default() }
    }

    /// Keeps a copy of a frame that is given to the next hop. `from`: who had sent it to us.
    /// `most`: bytes kept of one term.
    #[inline]
    pub fn keep(&mut self, now: Timestamp, from: Option<Mac>, data: Data<'_>, most: usize) {
        let age = now.since(self.begun);
        if age >= AGE_MAX {
            self.turn(now, age);
        }
        if self.term.packets.len() + data.wire_len() <= most {
            if self.is_roomy && self.term.packets.capacity() == 0 {
                self.term.reserve(most);
            }
            self.term.keep(now, from, &data);
        }
    }

    fn turn(&mut self, now: Timestamp, age: Duration) {
        std::mem::swap(&mut self.term, &mut self.last);
        self.term.clear();
        if age >= AGE_MAX * 2 {
            self.last.clear();
        }
        self.begun = now;
    }

    /// Gives back memory that is not needed any more.
    pub fn tidy(&mut self, now: Timestamp) {
        if now.since(self.begun) >= UNUSED_FOR {
            *self = Self { is_roomy: self.is_roomy, ..Self::default() };
        }
    }

    /// Nothing is kept. What is too old goes when the next frame comes, or with [`AtRisk::tidy`].
    pub fn is_empty(&self) -> bool {
        self.term.given.is_empty() && self.last.given.is_empty()
    }

    /// Hands over the frames given since then, as long as they are worth being sent again, and each
    /// of them once: the next way may end as well, but on a radio that is full every frame takes
    /// the place of another. `to`: whom they go to now; what came from there does not go back.
    pub fn reroute(
        &mut self,
        now: Timestamp,
        since: Timestamp,
        to: Mac,
        mut send: impl FnMut(Data<'_>),
    ) {
        self.last.reroute(now, since, to, &mut send);
        self.term.reroute(now, since, to, &mut send);
    }
}

impl Term {
    #[cold]
    fn reserve(&mut self, bytes: usize) {
        self.packets.reserve_exact(bytes);
        self.given.reserve_exact(bytes / SHORT);
    }

    fn keep(&mut self, now: Timestamp, from: Option<Mac>, data: &Data<'_>) {
        data.emit(&mut self.packets);
        let end = u32::try_from(self.packets.len()).unwrap_or(u32::MAX);
        let from = from.unwrap_or(Mac::ZERO);
        self.given.push(Given { at: now, from, end, is_done: false });
    }

    /// The memory stays for the next frames.
    fn clear(&mut self) {
        self.given.clear();
        self.packets.clear();
    }

    fn reroute(
        &mut self,
        now: Timestamp,
        since: Timestamp,
        to: Mac,
        send: &mut impl FnMut(Data<'_>),
    ) {
        let mut begin = 0;
        for given in &mut self.given {
            let end = given.end as usize;
            let packet = self.packets.get(begin..end);
            begin = end;
            if given.at >= since && !given.is_done && now.since(given.at) < AGE_MAX {
                given.is_done = true;
                if given.from != to
                    && let Some(data) = packet.and_then(Data::read)
                {
                    send(data);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::data::ToUpstream;
    use crate::{NodeId, Seq};

    const RSU: NodeId = NodeId([2, 0, 0, 0, 0, 1]);
    const OBU: NodeId = NodeId([2, 0, 0, 0, 0, 2]);
    const CHILD: Mac = Mac([2, 0, 0, 0, 0, 3]);
    const OTHER: Mac = Mac([2, 0, 0, 0, 0, 4]);

    fn frame(seq: u32, payload: &[u8]) -> Data<'_> {
        let (destination, source) = (RSU, OBU);
        let seq = Seq(seq);
        let (hop_limit, boot, priority) = (3, 9, 5);
        ToUpstream { destination, source, hop_limit, boot, seq, again: false, priority, payload }
            .into()
    }

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// A frame of 60 bytes at each of these moments, numbered.
    fn kept(moments: impl IntoIterator<Item = u64>) -> AtRisk {
        let mut kept = AtRisk::default();
        for (ms, seq) in moments.into_iter().zip(0..) {
            kept.keep(at(ms), Some(CHILD), frame(seq, &[seq as u8; 60]), BYTES_MAX);
        }
        kept
    }

    fn again(kept: &mut AtRisk, now: u64, since: u64) -> Vec<u32> {
        let mut sent = Vec::new();
        kept.reroute(at(now), at(since), OTHER, |data| {
            let Data::Upstream(up) = data else { panic!("{data:?}") };
            assert_eq!(data, frame(up.seq.0, &[up.seq.0 as u8; 60]), "as it was given");
            sent.push(up.seq.0);
        });
        sent
    }

    #[test]
    fn what_was_given_since_comes_back_as_it_was_in_its_order() {
        let mut kept = kept([1000, 1100, 1249, 1250, 1260, 1290]);
        assert_eq!(again(&mut kept, 1295, 1100), [1, 2, 3, 4, 5]);
        assert_eq!(again(&mut kept, 1296, 0), [0], "the others went just now");
        assert!(again(&mut kept, 1297, 0).is_empty());
    }

    #[test]
    fn older_frames_do_not_come_back_and_take_no_memory() {
        let mut few = kept([1000, 1299, 1300]);
        assert_eq!(again(&mut few, 1300, 0), [1, 2]);
        let mut long = kept((0..1000).map(|n| n * 100));
        assert!(long.term.given.len() + long.last.given.len() <= 7);
        assert_eq!(again(&mut long, 99_900, 0), [997, 998, 999]);
        let mut rare = kept([0, 400, 800]);
        assert_eq!(again(&mut rare, 800, 0), [2]);
        assert!(!rare.is_empty() && AtRisk::default().is_empty());
    }

    #[test]
    fn of_a_flood_the_first_of_each_term_are_kept() {
        let mut flood = kept((0..4000).map(|n| 900 + n / 10));
        let sent = again(&mut flood, 1300, 0);
        let each = BYTES_MAX / frame(0, &[0; 60]).wire_len();
        let first: Vec<_> = (3000..).take(each).collect();
        assert_eq!(sent, first, "from 1200 on");
        assert!(flood.term.packets.capacity() <= 2 * BYTES_MAX);
    }

    #[test]
    fn room_for_a_term_is_made_once() {
        let (mut roomy, mut room) = (AtRisk::roomy(), Vec::new());
        for n in 0..4000 {
            roomy.keep(at(n / 10), None, frame(0, &[0; 42]), BYTES_MAX);
            let Term { packets, given } = &roomy.term;
            room.push((packets.as_ptr(), packets.capacity(), given.as_ptr(), given.capacity()));
        }
        room.sort_unstable();
        room.dedup();
        assert_eq!(room.len(), 2, "one of each term: {room:?}");
        assert!(room.iter().all(|(_, bytes, ..)| *bytes == BYTES_MAX));
    }

    #[test]
    fn memory_that_no_frame_needed_for_five_seconds_is_given_back() {
        let mut rare = kept([1000, 1100]);
        rare.tidy(at(5999));
        assert_eq!(again(&mut rare, 1200, 0), [0, 1]);
        rare.tidy(at(6000));
        assert!(rare.is_empty() && rare.term.packets.capacity() == 0);
    }

    #[test]
    fn none_goes_back_to_whom_it_came_from() {
        let mut kept = kept([1000]);
        assert!(!kept.is_empty());
        kept.reroute(at(1100), at(0), CHILD, |data| panic!("{data:?}"));
    }

    #[test]
    fn a_frame_longer_than_all_that_is_kept_is_not_kept() {
        let mut kept = AtRisk::default();
        kept.keep(at(1), None, frame(1, &[0; BYTES_MAX]), BYTES_MAX);
        assert!(kept.is_empty());
    }
}
