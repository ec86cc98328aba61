//! Two ends of a cable in one process, for tests and benches. Frames keep their order; a full queue
//! drops the newest, like a network card. Frames wait in buffers of the pool, so with both ends on
//! one thread none costs an allocation once the queues are warm. An event descriptor (eventfd(2))
//! tells that there are some, so that one thread can wait for the other.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;

use super::{Burst, Device, DeviceCounters, EventFd, Outgoing, Received, Sent};
use crate::buffer_pool::{get_buffer, return_buffer};

/// Frames that wait in one direction, as many as in a TAP's queue by default.
pub const QUEUE_MAX: usize = 1000;

/// Frames on their way in one direction.
#[derive(Debug)]
struct Lane {
    frames: Mutex<VecDeque<BytesMut>>,
    /// Readable while there are frames, always writable.
    event: EventFd,
}

impl Lane {
    fn new() -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self { frames: Mutex::default(), event: EventFd::new()? }))
    }

    /// A lane is whole between any two operations on it, so one poisoned elsewhere is still good.
    fn frames(&self) -> MutexGuard<'_, VecDeque<BytesMut>> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One end.
#[derive(Debug)]
pub struct Memory {
    name: String,
    inbound: Arc<Lane>,
    outbound: Arc<Lane>,
    frame_max: usize,
    counters: DeviceCounters,
}

/// Two ends of a cable for frames with payloads of up to `mtu` bytes. An error is that of the
/// kernel: too many files are open.
pub fn pair(mtu: usize) -> io::Result<(Memory, Memory)> {
    let (there, back) = (Lane::new()?, Lane::new()?);
    let end = |name: &str, inbound: &Arc<Lane>, outbound: &Arc<Lane>| Memory {
        name: name.to_owned(),
        inbound: Arc::clone(inbound),
        outbound: Arc::clone(outbound),
        // Header and one VLAN tag.
        frame_max: mtu.saturating_add(14 + 4),
        counters: DeviceCounters::default(),
    };
    Ok((end("memory0", &there, &back), end("memory1", &back, &there)))
}

impl Device for Memory {
    fn name(&self) -> &str {
        &self.name
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.inbound.event.as_fd())
    }

    fn recv(&mut self, burst: &mut Burst) -> Received {
        burst.reset(self.frame_max);
        let mut frames = self.inbound.frames();
        while !burst.is_enough() {
            let Some(frame) = frames.pop_front() else {
                return Received::Drained;
            };
            if frames.is_empty() {
                // While the lock is held, so that the next frame is told anew.
                self.inbound.event.clear();
            }
            if let Some(slot) = burst.vacant().and_then(|slot| slot.get_mut(..frame.len())) {
                slot.copy_from_slice(&frame);
                burst.commit(frame.len());
                self.counters.count_rx(frame.len());
            } else {
                self.counters.rx_oversize += 1;
            }
            return_buffer(frame);
        }
        Received::More
    }

    fn send(&mut self, outgoing: &[Outgoing<'_>]) -> Sent {
        let mut frames = self.outbound.frames();
        let was_empty = frames.is_empty();
        for Outgoing { bytes, .. } in outgoing {
            if bytes.len() > self.frame_max {
                self.counters.tx_oversize += 1;
            } else if frames.len() >= QUEUE_MAX {
                self.counters.tx_full += 1;
            } else {
                let mut frame = get_buffer(bytes.len());
                frame.extend_from_slice(bytes);
                frames.push_back(frame);
                self.counters.count_tx(bytes.len());
            }
        }
        if was_empty && !frames.is_empty() {
            self.outbound.event.raise();
        }
        Sent::All
    }

    fn counters(&mut self) -> &DeviceCounters {
        &self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_end_sends_the_other_receives_in_order_and_whole() {
        let (mut a, mut b) = pair(1500).unwrap();
        a.send(&[Outgoing::new(&[1, 2, 3]), Outgoing::new(&[4])]);
        let mut burst = Burst::new(8);
        assert_eq!(b.recv(&mut burst), Received::Drained);
        assert_eq!(burst.frames().collect::<Vec<_>>(), [&[1, 2, 3][..], &[4]]);
        assert_eq!(a.recv(&mut burst), Received::Drained);
        assert!(burst.is_empty());
    }

    #[test]
    fn a_burst_is_bounded_and_the_rest_stays() {
        let (mut a, mut b) = pair(100).unwrap();
        for n in 0..3 {
            a.send(&[Outgoing::new(&[n; 60])]);
        }
        let mut burst = Burst::new(2);
        assert_eq!(b.recv(&mut burst), Received::More);
        assert_eq!(burst.len(), 2);
        assert_eq!(b.recv(&mut burst), Received::Drained);
        assert_eq!(burst.len(), 1);
    }

    #[test]
    fn a_full_queue_drops_the_newest_and_counts_it() {
        let (mut a, mut b) = pair(100).unwrap();
        for _ in 0..QUEUE_MAX {
            assert_eq!(a.send(&[Outgoing::new(&[0; 14])]), Sent::All);
        }
        assert_eq!(a.counters().tx_full, 0);
        a.send(&[Outgoing::new(&[1; 14])]);
        assert_eq!((a.counters().tx_full, a.counters().tx_frames), (1, QUEUE_MAX as u64));
        let mut burst = Burst::new(QUEUE_MAX + 1);
        b.recv(&mut burst);
        assert!(burst.frames().all(|frame| frame == [0; 14]));
    }
}
