//! `Outbox`: frames the radio has no room for right now.

use std::collections::VecDeque;
use std::time::Duration;

use arrayvec::ArrayVec;
use bytes::BytesMut;

use crate::buffer_pool::{get_buffer, return_buffer};
use crate::control::traffic_class;
use crate::time::Timestamp;

use super::{Outgoing, Sent, Sink};

/// Data frames that wait at most: four bursts. The radio's own buffer in front of it is larger;
/// this one only bridges the moment until the loop knows, and stops reading the TAP.
pub const DATA_MAX: usize = 256;

/// Control frames that wait at most.
pub const CONTROL_MAX: usize = 64;

/// How long a frame waits at most: half a heartbeat's interval. Whatever a radio could not take for
/// so long is of no use to a voice, and TCP has sent it again.
pub const AGE_MAX: Duration = Duration::from_millis(50);

/// When control that an interface refused is tried again. At 100 kbit/s a frame of 130 bytes leaves
/// every 10 ms, and makes room for another.
pub const AGAIN_AFTER: Duration = Duration::from_millis(2);

/// Frames per attempt.
const BATCH: usize = 64;

/// What became of frames that had to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutboxCounters {
    /// Frames that had to wait.
    pub held: u64,
    /// Dropped: too many were waiting already.
    pub full: u64,
    /// Dropped: waited too long.
    pub late: u64,
}

impl OutboxCounters {
    /// Name and value of each, for logs and metrics.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [("held", self.held), ("full", self.full), ("late", self.late)].into_iter()
    }
}

/// Bounded in number and age. Control never waits behind data, and the newest is dropped when it is
/// full, so that what does get through is in order and without holes.
///
/// Where an interface has one queue for all and that is full, control is refused, and nobody tells
/// when there is room. It is tried again every [`AGAIN_AFTER`], and meanwhile data that comes is
/// dropped. It would take the room as soon as there is some, and it costs nothing, because whose
/// queue is full has enough to send.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    control: VecDeque<Held>,
    data: VecDeque<Held>,
    /// Control that was refused, and when it is tried again.
    refused: VecDeque<Held>,
    again_at: Timestamp,
    counters: OutboxCounters,
}

#[derive(Debug)]
struct Held {
    frame: BytesMut,
    priority: u8,
    since: Timestamp,
}

impl Outbox {
    /// Sends frames, or keeps those the radio has no room for.
    pub(super) fn send(&mut self, now: Timestamp, radio: &mut impl Sink, frames: &[Outgoing<'_>]) {
        if self.is_waiting() {
            frames.iter().for_each(|frame| self.hold(now, radio, frame));
            self.retry(now, radio);
        } else if !self.refused.is_empty() {
            self.refuse(now, radio, frames);
        } else {
            match radio.take(frames) {
                Sent::Full(done) => {
                    frames.iter().skip(done).for_each(|frame| self.hold(now, radio, frame));
                    if !self.control.is_empty() {
                        // There may be room for control all the same.
                        self.retry(now, radio);
                    }
                }
                Sent::Refused(done) => {
                    self.again_at = now + AGAIN_AFTER;
                    self.refuse(now, radio, frames.get(done..).unwrap_or_default());
                }
                Sent::All | Sent::Gone => {}
            }
        }
    }

    /// Keeps control until it is tried again, and drops data.
    fn refuse(&mut self, now: Timestamp, radio: &mut impl Sink, frames: &[Outgoing<'_>]) {
        for outgoing in frames {
            let is_control = outgoing.priority == traffic_class::CONTROL;
            if is_control && self.refused.len() < CONTROL_MAX {
                let mut frame = get_buffer(outgoing.bytes.len());
                frame.extend_from_slice(outgoing.bytes);
                let priority = outgoing.priority;
                self.refused.push_back(Held { frame, priority, since: now });
                self.counters.held += 1;
            } else {
                self.counters.full += 1;
                radio.dropped(outgoing.bytes);
            }
        }
    }

    /// Tries what was refused again, if it is time.
    fn try_refused(&mut self, now: Timestamp, radio: &mut impl Sink) {
        while now >= self.again_at
            && let Some(held) = self.refused.front()
        {
            match radio.take(&[Outgoing { bytes: &held.frame, priority: held.priority }]) {
                Sent::Refused(_) | Sent::Full(_) => self.again_at = now + AGAIN_AFTER,
                Sent::All | Sent::Gone => {
                    if let Some(held) = self.refused.pop_front() {
                        return_buffer(held.frame);
                    }
                }
            }
        }
    }

    fn hold(&mut self, now: Timestamp, radio: &mut impl Sink, outgoing: &Outgoing<'_>) {
        let (queue, max) = if outgoing.priority == traffic_class::CONTROL {
            (&mut self.control, CONTROL_MAX)
        } else {
            (&mut self.data, DATA_MAX)
        };
        if queue.len() >= max {
            self.counters.full += 1;
            return radio.dropped(outgoing.bytes);
        }
        let mut frame = get_buffer(outgoing.bytes.len());
        frame.extend_from_slice(outgoing.bytes);
        queue.push_back(Held { frame, priority: outgoing.priority, since: now });
        self.counters.held += 1;
    }

    /// Tries again, control first, and drops what has become too old.
    pub(super) fn retry(&mut self, now: Timestamp, radio: &mut impl Sink) {
        // Both, before either is sent: a radio that takes no control must not make data grow older
        // than it may, nor keep a deadline that has passed.
        self.drop_late(now, radio);
        self.try_refused(now, radio);
        for queue in [&mut self.control, &mut self.data] {
            while !queue.is_empty() {
                let batch: ArrayVec<Outgoing<'_>, BATCH> = queue
                    .iter()
                    .take(BATCH)
                    .map(|held| Outgoing { bytes: &held.frame, priority: held.priority })
                    .collect();
                let (done, full) = match radio.take(&batch) {
                    Sent::Full(done) | Sent::Refused(done) => (done, true),
                    Sent::All | Sent::Gone => (batch.len(), false),
                };
                drop(batch);
                queue.drain(..done.min(queue.len())).for_each(|held| return_buffer(held.frame));
                if full {
                    return;
                }
            }
        }
    }

    fn drop_late(&mut self, now: Timestamp, radio: &mut impl Sink) {
        for queue in [&mut self.control, &mut self.data, &mut self.refused] {
            while queue.front().is_some_and(|held| now.since(held.since) >= AGE_MAX) {
                if let Some(held) = queue.pop_front() {
                    radio.dropped(&held.frame);
                    return_buffer(held.frame);
                }
                self.counters.late += 1;
            }
        }
    }

    /// Something waits for room.
    pub(super) fn is_waiting(&self) -> bool {
        !(self.control.is_empty() && self.data.is_empty())
    }

    /// Data waits: there is no point in reading more from the TAP, whose own queue drops what is
    /// too much.
    pub(super) fn has_data(&self) -> bool {
        !self.data.is_empty()
    }

    /// When the oldest frame will have waited too long, or what was refused is tried again.
    pub(super) fn expires(&self) -> Option<Timestamp> {
        let waiting = [self.control.front(), self.data.front()].into_iter().flatten();
        let again = (!self.refused.is_empty()).then_some(self.again_at);
        waiting.map(|held| held.since + AGE_MAX).chain(again).min()
    }

    /// What was counted.
    pub(super) fn counters(&self) -> &OutboxCounters {
        &self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes as many as it has room for, and remembers the first byte of each, also of those
    /// dropped.
    #[derive(Default)]
    struct Narrow {
        room: usize,
        got: Vec<u8>,
        dropped: Vec<u8>,
    }

    impl Sink for Narrow {
        fn take(&mut self, frames: &[Outgoing<'_>]) -> Sent {
            let taken = frames.len().min(self.room);
            self.got.extend(frames.iter().take(taken).filter_map(|frame| frame.bytes.first()));
            self.room -= taken;
            if taken < frames.len() { Sent::Full(taken) } else { Sent::All }
        }

        fn dropped(&mut self, frame: &[u8]) {
            self.dropped.extend(frame.first());
        }
    }

    fn data(bytes: &[u8]) -> Outgoing<'_> {
        Outgoing::new(bytes)
    }

    fn control(bytes: &[u8]) -> Outgoing<'_> {
        Outgoing { bytes, priority: traffic_class::CONTROL }
    }

    #[test]
    fn what_does_not_fit_goes_out_later_in_order_and_control_first() {
        let (mut outbox, mut radio) = (Outbox::default(), Narrow { room: 1, ..Narrow::default() });
        let now = Timestamp::ZERO;
        outbox.send(now, &mut radio, &[data(&[1]), data(&[2]), data(&[3])]);
        assert!(outbox.has_data());
        outbox.send(now, &mut radio, &[data(&[4]), control(&[9])]);
        radio.room = 2;
        outbox.retry(now, &mut radio);
        assert_eq!(radio.got, [1, 9, 2]);
        radio.room = 100;
        outbox.send(now, &mut radio, &[data(&[5])]);
        assert_eq!(radio.got, [1, 9, 2, 3, 4, 5]);
        assert!(!outbox.is_waiting() && outbox.expires().is_none());
        assert_eq!(*outbox.counters(), OutboxCounters { held: 5, full: 0, late: 0 });
    }

    #[test]
    fn the_newest_is_dropped_when_too_many_wait_and_control_has_room_of_its_own() {
        let (mut outbox, mut radio) = (Outbox::default(), Narrow::default());
        let now = Timestamp::ZERO;
        for n in 0..DATA_MAX + 10 {
            outbox.send(now, &mut radio, &[data(&[u8::from(n >= DATA_MAX)])]);
        }
        for _ in 0..CONTROL_MAX + 1 {
            outbox.send(now, &mut radio, &[control(&[9])]);
        }
        assert_eq!(outbox.counters().full, 10 + 1);
        assert_eq!(radio.dropped, [vec![1; 10], vec![9]].concat());
        radio.room = 10_000;
        outbox.retry(now, &mut radio);
        assert_eq!(radio.got, [vec![9; CONTROL_MAX], vec![0; DATA_MAX]].concat());
    }

    #[test]
    fn data_grows_no_older_while_the_radio_takes_no_control() {
        let (mut outbox, mut radio) = (Outbox::default(), Narrow::default());
        outbox.send(Timestamp::ZERO, &mut radio, &[data(&[1])]);
        outbox.send(Timestamp::from_millis(30), &mut radio, &[control(&[9])]);
        outbox.retry(Timestamp::ZERO + AGE_MAX, &mut radio);
        assert_eq!(outbox.counters().late, 1);
        assert!(!outbox.has_data());
        assert_eq!(outbox.expires(), Some(Timestamp::from_millis(30) + AGE_MAX));
    }

    /// One queue for all, of which nobody tells when it has room.
    #[derive(Default)]
    struct Silent(Narrow);

    impl Sink for Silent {
        fn take(&mut self, frames: &[Outgoing<'_>]) -> Sent {
            for (done, frame) in frames.iter().enumerate() {
                let is_control = frame.priority == traffic_class::CONTROL;
                match self.0.take(&[*frame]) {
                    Sent::Full(_) if is_control => return Sent::Refused(done),
                    Sent::Full(_) => self.0.dropped(frame.bytes),
                    _ => {}
                }
            }
            Sent::All
        }

        fn dropped(&mut self, frame: &[u8]) {
            self.0.dropped(frame);
        }
    }

    #[test]
    fn control_that_is_refused_is_tried_again_and_data_does_not_take_its_room() {
        let (mut outbox, mut radio) = (Outbox::default(), Silent::default());
        let now = Timestamp::from_millis(7);
        outbox.send(now, &mut radio, &[data(&[1]), control(&[9]), data(&[2]), control(&[8])]);
        assert!(!outbox.is_waiting(), "nobody will say that there is room");
        assert_eq!(outbox.expires(), Some(now + AGAIN_AFTER));
        radio.0.room = 1;
        outbox.send(now, &mut radio, &[data(&[3])]);
        assert_eq!((&radio.0.got[..], &radio.0.dropped[..]), (&[][..], &[1, 2, 3][..]));
        // Early is no reason to try.
        outbox.retry(now, &mut radio);
        assert_eq!(radio.0.got, []);
        outbox.retry(now + AGAIN_AFTER, &mut radio);
        assert_eq!(radio.0.got, [9]);
        assert_eq!(outbox.expires(), Some(now + AGAIN_AFTER * 2));
        radio.0.room = 9;
        outbox.retry(now + AGAIN_AFTER * 2, &mut radio);
        outbox.send(now + AGAIN_AFTER * 2, &mut radio, &[data(&[4])]);
        assert_eq!((&radio.0.got[..], outbox.expires()), (&[9, 8, 4][..], None));
    }

    #[test]
    fn control_that_is_refused_for_too_long_is_dropped() {
        let (mut outbox, mut radio) = (Outbox::default(), Silent::default());
        outbox.send(Timestamp::ZERO, &mut radio, &[control(&[9])]);
        outbox.retry(Timestamp::ZERO + AGE_MAX, &mut radio);
        assert_eq!((&radio.0.dropped[..], outbox.counters().late), (&[9][..], 1));
        assert_eq!(outbox.expires(), None);
        for _ in 0..=CONTROL_MAX {
            outbox.send(Timestamp::ZERO, &mut radio, &[control(&[9])]);
        }
        assert_eq!((outbox.refused.len(), outbox.counters().full), (CONTROL_MAX, 1));
    }

    #[test]
    fn what_waited_too_long_is_dropped() {
        let (mut outbox, mut radio) = (Outbox::default(), Narrow::default());
        outbox.send(Timestamp::ZERO, &mut radio, &[data(&[1])]);
        assert_eq!(outbox.expires(), Some(Timestamp::ZERO + AGE_MAX));
        outbox.send(Timestamp::from_millis(30), &mut radio, &[data(&[2])]);
        outbox.retry(Timestamp::ZERO + AGE_MAX, &mut radio);
        assert_eq!((outbox.counters().late, &radio.dropped[..]), (1, &[1][..]));
        radio.room = 10;
        outbox.retry(Timestamp::ZERO + AGE_MAX, &mut radio);
        assert_eq!(radio.got, [2]);
    }
}
