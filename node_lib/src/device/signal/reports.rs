//! Measurements on their way from a source to the loop.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::mac::Mac;

/// Measurements that wait for the loop; more are dropped and counted. As many as one look at a
/// monitor interface brings at most.
pub const WAITING_MAX: usize = 4096;

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Who sent what was measured.
    pub from: Mac,
    /// Power received, in dBm, below 0.
    pub dbm: i8,
}

impl Sample {
    /// A measurement, if it is one: drivers say 0 when they know nothing, and groups send nothing.
    pub(crate) fn new(from: Mac, dbm: i8) -> Option<Self> {
        (dbm < 0 && from.is_unicast()).then_some(Self { from, dbm })
    }
}

/// What became of measurements since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalCounters {
    /// Measurements taken.
    pub samples: u64,
    /// Measurements dropped because too many were waiting.
    pub overflow: u64,
    /// Times the source could not be asked.
    pub failures: u64,
    /// Frames of the monitor interface that could not be read.
    pub malformed: u64,
    /// Frames of the monitor interface with a wrong checksum: their sender is a guess.
    pub bad_fcs: u64,
    /// Milliseconds the radio has listened to its channel, as its driver says (nl80211 survey).
    pub channel_active_ms: u64,
    /// Of those, milliseconds the channel was busy.
    pub channel_busy_ms: u64,
}

impl SignalCounters {
    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("samples", self.samples),
            ("overflow", self.overflow),
            ("failures", self.failures),
            ("malformed", self.malformed),
            ("bad_fcs", self.bad_fcs),
            ("channel_active_ms", self.channel_active_ms),
            ("channel_busy_ms", self.channel_busy_ms),
        ]
        .into_iter()
    }
}

/// Measurements on their way to the loop, from any thread.
#[derive(Clone, Debug, Default)]
pub struct Reports(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    /// The oldest first.
    samples: VecDeque<Sample>,
    /// For how many per cent of the time between two surveys the channel was busy.
    busy: Option<u8>,
    counters: SignalCounters,
    waker: Option<Waker>,
}

impl Reports {
    /// Adds measurements and tells the loop. Each is passed on as it is: how far frames are apart
    /// tells whether a radio fades, and the weakest of them where links end.
    pub fn add(&self, samples: impl IntoIterator<Item = Sample>) {
        let waker = {
            let mut waiting = self.lock();
            for sample in samples {
                if waiting.samples.len() < WAITING_MAX {
                    waiting.counters.samples += 1;
                    waiting.samples.push_back(sample);
                } else {
                    waiting.counters.overflow += 1;
                }
            }
            if waiting.samples.is_empty() { None } else { waiting.waker.take() }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The next measurement, if there is one.
    pub fn poll(&self, cx: &mut Context<'_>) -> Poll<Sample> {
        let mut waiting = self.lock();
        match waiting.samples.pop_front() {
            Some(sample) => Poll::Ready(sample),
            None => {
                waiting.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// The radio has listened to its channel for so long since it was set up, and for so long of
    /// that it was busy: what it said before tells how busy it was meanwhile. A radio that began
    /// anew says nothing of that.
    pub(super) fn note_survey(&self, active_ms: u64, busy_ms: u64) {
        let waker = {
            let mut waiting = self.lock();
            let SignalCounters { channel_active_ms, channel_busy_ms, .. } = waiting.counters;
            let active = active_ms.checked_sub(channel_active_ms).filter(|active| *active > 0);
            let busy = busy_ms.checked_sub(channel_busy_ms);
            let is_first = channel_active_ms == 0;
            waiting.counters.channel_active_ms = active_ms;
            waiting.counters.channel_busy_ms = busy_ms;
            match active.zip(busy) {
                Some((active, busy)) if !is_first => {
                    waiting.busy = u8::try_from(busy.min(active) * 100 / active).ok();
                    waiting.waker.take()
                }
                _ => None,
            }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// How busy the channel was between the last two surveys in per cent, if that is news.
    pub fn poll_channel_busy(&self, cx: &mut Context<'_>) -> Poll<u8> {
        let mut waiting = self.lock();
        match waiting.busy.take() {
            Some(percent) => Poll::Ready(percent),
            None => {
                waiting.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// What was counted so far.
    pub fn counters(&self) -> SignalCounters {
        self.lock().counters
    }

    pub(super) fn count(&self, count: impl FnOnce(&mut SignalCounters)) {
        count(&mut self.lock().counters);
    }

    /// Whole between any two operations on it.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mac(n: u8) -> Mac {
        Mac([2, 0, 0, 0, 0, n])
    }

    fn sample(n: u8, dbm: i8) -> Sample {
        Sample::new(mac(n), dbm).unwrap()
    }

    fn take(reports: &Reports) -> Vec<Sample> {
        let mut cx = Context::from_waker(Waker::noop());
        let next = || match reports.poll(&mut cx) {
            Poll::Ready(sample) => Some(sample),
            Poll::Pending => None,
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn every_measurement_is_passed_on_as_it_is_in_order_and_once() {
        let reports = Reports::default();
        reports.add([sample(2, -60), sample(1, -70), sample(2, -63)]);
        reports.add([sample(2, -90)]);
        let told = [sample(2, -60), sample(1, -70), sample(2, -63), sample(2, -90)];
        assert_eq!(take(&reports), told);
        assert_eq!(take(&reports), []);
        assert_eq!(reports.counters().samples, 4);
    }

    #[test]
    fn more_measurements_than_there_is_room_for_are_counted() {
        let reports = Reports::default();
        reports.add((0..WAITING_MAX + 5).map(|_| sample(1, -50)));
        assert_eq!(take(&reports).len(), WAITING_MAX);
        let SignalCounters { samples, overflow, .. } = reports.counters();
        assert_eq!((samples, overflow), (WAITING_MAX as u64, 5));
        reports.add([sample(1, -50)]);
        assert_eq!(take(&reports).len(), 1, "there is room again");
    }

    #[test]
    fn how_busy_the_channel_was_is_told_from_one_survey_to_the_next() {
        let reports = Reports::default();
        let mut cx = Context::from_waker(Waker::noop());
        let mut after = |active_ms, busy_ms| {
            reports.note_survey(active_ms, busy_ms);
            match reports.poll_channel_busy(&mut cx) {
                Poll::Ready(percent) => Some(percent),
                Poll::Pending => None,
            }
        };
        assert_eq!(after(5000, 4000), None, "of the time before nobody asked");
        assert_eq!(after(6000, 4600), Some(60));
        assert_eq!(after(7000, 4600), Some(0));
        assert_eq!(after(7000, 4600), None, "it did not listen");
        assert_eq!(after(8000, 6000), Some(100), "counted a moment later");
        assert_eq!(after(300, 200), None, "it was set up anew");
        assert_eq!(after(1300, 700), Some(50));
        let counters = reports.counters();
        assert_eq!((counters.channel_active_ms, counters.channel_busy_ms), (1300, 700));
    }

    #[test]
    fn whoever_asked_in_vain_is_woken_once_there_is_something() {
        struct Woken(std::sync::atomic::AtomicUsize);
        impl std::task::Wake for Woken {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
        }
        let woken = Arc::new(Woken(0.into()));
        let waker = Waker::from(Arc::clone(&woken));
        let reports = Reports::default();
        assert!(reports.poll(&mut Context::from_waker(&waker)).is_pending());
        let times = || woken.0.load(std::sync::atomic::Ordering::Relaxed);
        reports.add([]);
        assert_eq!(times(), 0);
        reports.add([sample(1, -50)]);
        reports.add([sample(1, -50)]);
        assert_eq!(times(), 1);
    }

    #[test]
    fn nothing_is_measured_at_0_dbm_or_of_a_group() {
        assert_eq!(Sample::new(mac(1), 0), None);
        assert_eq!(Sample::new(mac(1), 5), None);
        assert_eq!(Sample::new(Mac::BROADCAST, -50), None);
    }
}
