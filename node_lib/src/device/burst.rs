//! [`Burst`]: the frames of one turn, in memory the loop owns.

/// Up to a fixed number of frames, each in a slot of its own.
///
/// The loop owns the memory so that a device can be sent to while the frames it delivered are still
/// being looked at. Slots are equal and contiguous, which is what `recvmmsg` wants.
#[derive(Debug)]
pub struct Burst {
    storage: Vec<u8>,
    slot_len: usize,
    lens: Vec<usize>,
    slots: usize,
}

impl Burst {
    /// An empty burst with room for `slots` frames.
    pub fn new(slots: usize) -> Self {
        Self { storage: Vec::new(), slot_len: 0, lens: Vec::with_capacity(slots), slots }
    }

    /// Forgets the frames and makes every slot at least `slot_len` bytes long.
    pub fn reset(&mut self, slot_len: usize) {
        self.lens.clear();
        if slot_len > self.slot_len {
            self.slot_len = slot_len;
            self.storage.resize(slot_len.saturating_mul(self.slots), 0);
        }
    }

    /// The next free slot, as long as the last [`Burst::reset`] asked for or longer; `None` when all
    /// are taken. What is written there counts only after [`Burst::commit`].
    pub fn vacant(&mut self) -> Option<&mut [u8]> {
        if self.is_full() {
            return None;
        }
        let start = self.lens.len().checked_mul(self.slot_len)?;
        self.storage.get_mut(start..start.checked_add(self.slot_len)?)
    }

    /// Takes the first `len` bytes of the vacant slot as a frame.
    pub fn commit(&mut self, len: usize) {
        debug_assert!(len <= self.slot_len && !self.is_full(), "a slot was there and held it");
        self.lens.push(len.min(self.slot_len));
    }

    /// Frames it has room for in all.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// All slots are taken.
    pub fn is_full(&self) -> bool {
        self.lens.len() >= self.slots
    }

    /// Frames in it.
    pub fn len(&self) -> usize {
        self.lens.len()
    }

    /// No frame in it.
    pub fn is_empty(&self) -> bool {
        self.lens.is_empty()
    }

    /// The frames, first to last.
    pub fn frames(&self) -> impl Iterator<Item = &[u8]> {
        // `max(1)`: a burst that was never reset has empty slots and no frames.
        self.storage
            .chunks_exact(self.slot_len.max(1))
            .zip(&self.lens)
            .map(|(slot, &len)| slot.get(..len).unwrap_or(slot))
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
}
