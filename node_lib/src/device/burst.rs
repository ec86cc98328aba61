//! [`Burst`]: the frames of one turn, in memory the loop owns.

use std::ops::Range;

/// Bytes in front of each frame that its reader may use. There is room for the outer Ethernet
/// header and the longest data header, so that what comes out of a TAP goes to the radio from where
/// it lies.
pub const HEADROOM: usize = 64;

/// Up to a fixed number of frames, each in a slot of its own with [`HEADROOM`] in front.
///
/// The loop owns the memory so that a device can be sent to while the frames it delivered are still
/// being looked at. Slots are equal and contiguous. A device fills them one after the other, or
/// several at once (`recvmmsg`), and then says which it keeps.
#[derive(Debug)]
pub struct Burst {
    storage: Vec<u8>,
    /// Bytes a frame may have.
    slot_len: usize,
    slots: usize,
    /// Frames that are enough.
    limit: usize,
    /// The first slot nothing was read into yet.
    vacant: usize,
    frames: Vec<Place>,
}

/// Where a frame lies.
#[derive(Clone, Copy, Debug)]
struct Place {
    slot: usize,
    len: usize,
}

impl Burst {
    /// An empty burst with room for `slots` frames.
    pub fn new(slots: usize) -> Self {
        Self {
            storage: Vec::new(),
            slot_len: 0,
            slots,
            limit: slots,
            vacant: 0,
            frames: Vec::with_capacity(slots),
        }
    }

    /// From now on this many frames are enough, though there may be room for more: a frame that
    /// comes alone need not wait until its device has been found empty.
    pub fn limit(&mut self, frames: usize) {
        self.limit = frames.min(self.slots);
    }

    /// Forgets the frames and makes every slot at least `slot_len` bytes long.
    pub fn reset(&mut self, slot_len: usize) {
        self.frames.clear();
        self.vacant = 0;
        if slot_len > self.slot_len {
            self.slot_len = slot_len;
            let len = self.stride().saturating_mul(self.slots);
            self.storage.resize(len.max(self.storage.len()), 0);
        }
    }

    fn stride(&self) -> usize {
        HEADROOM.saturating_add(self.slot_len)
    }

    /// The next free slot, as long as the last [`Burst::reset`] asked for or longer; `None` when
    /// all are taken. What is written there counts only after [`Burst::commit`].
    pub fn vacant(&mut self) -> Option<&mut [u8]> {
        self.vacant_slots().next()
    }

    /// All free slots, in order. Those that were written to are taken, or not, by as many calls of
    /// [`Burst::commit`] and [`Burst::skip`].
    pub fn vacant_slots(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let stride = self.stride();
        self.storage
            .chunks_exact_mut(stride)
            .take(self.slots)
            .skip(self.vacant)
            .filter_map(|slot| slot.get_mut(HEADROOM..))
    }

    /// From `head` bytes in front of the next free slot on `len` bytes in one piece, over the slots
    /// behind it, which are free too. It is for what is as a rule a frame and at times much longer.
    /// `None` when all are taken.
    pub fn vacant_area(&mut self, head: usize, len: usize) -> Option<&mut [u8]> {
        if self.is_full() {
            return None;
        }
        let begin = (self.vacant * self.stride() + HEADROOM).checked_sub(head)?;
        // As much as it takes behind the last slot, so that it grows only once.
        let room = (self.stride() * self.slots).saturating_add(len);
        if self.storage.len() < room {
            self.storage.resize(room, 0);
        }
        self.storage.get_mut(begin..begin.saturating_add(len))
    }

    /// Takes the first `len` bytes of the first vacant slot as a frame.
    pub fn commit(&mut self, len: usize) {
        debug_assert!(len <= self.slot_len && !self.is_full(), "a slot was there and held it");
        self.frames.push(Place { slot: self.vacant, len: len.min(self.slot_len) });
        self.vacant += 1;
    }

    /// Leaves out the first vacant slot, which holds something nobody wants.
    pub fn skip(&mut self) {
        self.vacant += 1;
    }

    /// Frames it has room for in all.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// How many more frames are wanted now.
    pub fn wanted(&self) -> usize {
        self.limit.saturating_sub(self.frames.len())
    }

    /// There are as many frames as the loop wants now.
    pub fn is_enough(&self) -> bool {
        self.frames.len() >= self.limit || self.is_full()
    }

    /// All slots are taken or left out.
    pub fn is_full(&self) -> bool {
        self.vacant >= self.slots
    }

    /// Frames in it.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// No frame in it.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The frames, first to last.
    pub fn frames(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.frames.len()).map(|index| self.frame(index))
    }

    /// The frame with this number; empty if there is none.
    pub fn frame(&self, index: usize) -> &[u8] {
        let len = self.frames.get(index).map_or(0, |place| place.len);
        self.part(index, 0, 0..len)
    }

    /// The frame with this number, to be written over; empty if there is none.
    pub fn frame_mut(&mut self, index: usize) -> &mut [u8] {
        let stride = self.stride();
        let bytes = self.frames.get(index).and_then(|place| {
            let begin = place.slot * stride + HEADROOM;
            self.storage.get_mut(begin..begin + place.len)
        });
        bytes.unwrap_or_default()
    }

    /// Writes `head` right in front of byte `start` of a frame, over what is there and, where that
    /// is not enough, into the headroom. `false`, and nothing done, when it does not fit.
    pub fn put_head(&mut self, index: usize, start: usize, head: &[u8]) -> bool {
        let Some(place) = self.frames.get(index) else { return false };
        let Some(begin) = (HEADROOM + start).checked_sub(head.len()) else { return false };
        let stride = self.stride();
        let slot = self.storage.get_mut(place.slot * stride..);
        let Some(room) = slot.and_then(|slot| slot.get_mut(begin..HEADROOM + start)) else {
            return false;
        };
        room.copy_from_slice(head);
        true
    }

    /// The bytes `range` of a frame and the `head` bytes in front of them; empty if they are not
    /// all there.
    pub fn part(&self, index: usize, head: usize, range: Range<usize>) -> &[u8] {
        let bytes = || {
            let place = self.frames.get(index)?;
            let begin = (HEADROOM + range.start).checked_sub(head)?;
            let stride = self.stride();
            let slot = self.storage.get(place.slot * stride..(place.slot + 1) * stride)?;
            slot.get(begin..HEADROOM + range.end.min(place.len))
        };
        bytes().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(burst: &mut Burst, frame: &[u8]) {
        burst.vacant().unwrap()[..frame.len()].copy_from_slice(frame);
        burst.commit(frame.len());
    }

    #[test]
    fn hands_out_what_was_put_in_until_it_is_full() {
        let mut burst = Burst::new(2);
        assert_eq!(burst.frames().count(), 0);
        burst.reset(4);
        put(&mut burst, &[1, 2, 3]);
        put(&mut burst, &[4]);
        assert!(burst.is_full() && burst.vacant().is_none());
        assert_eq!(burst.frames().collect::<Vec<_>>(), [&[1, 2, 3][..], &[4]]);
        burst.frame_mut(0).fill(7);
        assert_eq!(burst.frames().collect::<Vec<_>>(), [&[7, 7, 7][..], &[4]]);
        assert!(burst.frame_mut(2).is_empty());
    }

    #[test]
    fn slots_grow_and_never_shrink() {
        let mut burst = Burst::new(1);
        burst.reset(4);
        burst.reset(2);
        assert_eq!(burst.vacant().unwrap().len(), 4);
        burst.reset(9);
        assert_eq!(burst.vacant().unwrap().len(), 9);
        assert!(burst.is_empty());
    }

    #[test]
    fn a_limit_says_what_is_enough_and_takes_no_room() {
        let mut burst = Burst::new(2);
        burst.limit(1);
        burst.reset(4);
        assert!(!burst.is_enough());
        put(&mut burst, &[1]);
        assert!(burst.is_enough() && !burst.is_full() && burst.wanted() == 0);
        burst.limit(9);
        assert!(!burst.is_enough());
        put(&mut burst, &[2]);
        assert!(burst.is_enough() && burst.is_full());
    }

    #[test]
    fn slots_filled_at_once_are_kept_or_left_out_one_by_one() {
        let mut burst = Burst::new(3);
        burst.reset(4);
        put(&mut burst, &[9]);
        assert_eq!(burst.vacant_slots().count(), 2);
        for (slot, fill) in burst.vacant_slots().zip([1, 2]) {
            slot.fill(fill);
        }
        burst.skip();
        burst.commit(3);
        assert!(burst.is_full());
        assert_eq!(burst.frames().collect::<Vec<_>>(), [&[9][..], &[2, 2, 2]]);
    }

    #[test]
    fn an_area_begins_in_front_of_a_slot_and_ends_behind_all() {
        let mut burst = Burst::new(2);
        burst.reset(4);
        put(&mut burst, &[1, 2, 3, 4]);
        let area = burst.vacant_area(2, 500).unwrap();
        area.fill(9);
        assert_eq!(area.len(), 500);
        area[2..5].copy_from_slice(&[5, 6, 7]);
        burst.commit(3);
        assert_eq!(burst.frames().collect::<Vec<_>>(), [&[1, 2, 3, 4][..], &[5, 6, 7]]);
        assert_eq!(burst.part(1, 3, 0..1), [0, 9, 9, 5]);
        assert!(burst.vacant_area(0, 1).is_none() && burst.vacant_slots().next().is_none());
        burst.reset(9);
        assert_eq!(burst.vacant_slots().map(|slot| slot.len()).collect::<Vec<_>>(), [9, 9]);
    }

    #[test]
    fn a_head_goes_in_front_of_a_part_and_touches_no_other_frame() {
        let mut burst = Burst::new(2);
        burst.reset(4);
        put(&mut burst, &[1, 2, 3, 4]);
        put(&mut burst, &[5, 6, 7, 8]);
        let head = [0xaa; HEADROOM + 1];
        assert!(burst.put_head(1, 1, &head));
        assert_eq!(burst.part(1, head.len(), 1..4), [&head[..], &[6, 7, 8]].concat());
        assert_eq!(burst.frame(0), [1, 2, 3, 4]);
        // One byte more would reach into the slot before.
        assert!(!burst.put_head(1, 0, &head));
        assert!(!burst.put_head(2, 0, &[1]));
        assert!(burst.part(1, head.len(), 0..4).is_empty() && burst.part(2, 0, 0..1).is_empty());
    }
}
