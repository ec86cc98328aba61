//! Steady streams of numbered frames that can be looked at while they run, for as long as one
//! likes.
//!
//! [`Streams`](super::Streams) keeps everything and tells it at the end. This keeps what was sent
//! in the last minute and totals of the rest, so a run of days needs no more memory than one of
//! minutes.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use node_lib::Mac;

use super::frames::{FRAME_MAX, NumberedFrame};
use super::streams::Endpoint;
use crate::arena::netns::Netns;
use crate::arena::sys::PromiscuousSocket;

/// How long each frame is remembered. What arrives later than that is counted as stray.
const KEPT: Duration = Duration::from_secs(60);
/// Doubled frames remembered until somebody asks.
const DOUBLED_MAX: usize = 100;
/// A sender that comes later than this does not catch up: a burst is not what was asked for.
const LATE_MAX: Duration = Duration::from_millis(20);
/// How often a receiver looks whether to stop, in milliseconds.
const LOOK_EVERY_MS: u16 = 20;

/// Streams under way, all at the same pace. They end with this value.
#[derive(Debug)]
pub struct Pulse {
    every: Duration,
    state: Arc<Mutex<State>>,
    stop: Arc<AtomicBool>,
    is_paused: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct State {
    streams: Vec<History>,
    totals: Totals,
    late_max: Duration,
    /// Those that nobody has asked for yet.
    doubled: Vec<Doubled>,
}

/// A frame that arrived again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubled {
    /// Its stream.
    pub stream: usize,
    /// When it was sent.
    pub sent: Instant,
    /// When it arrived again.
    pub again: Instant,
}

/// What happened to all frames of all streams so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Sent.
    pub sent: u64,
    /// Different frames that arrived.
    pub arrived: u64,
    /// Arrivals beyond the first of a frame.
    pub doubled: u64,
    /// Frames of ours whose bytes were not as sent, or whose number is none of the stream's.
    pub harmed: u64,
    /// Arrivals more than a minute after the frame was sent.
    pub stray: u64,
}

/// One frame as it was sent, and how often it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Beat {
    sent: Instant,
    arrivals: u32,
}

#[derive(Debug, Default)]
struct History {
    /// Number of the first frame still kept.
    first: u32,
    kept: VecDeque<Beat>,
}

/// How long a stream was without a way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outage {
    /// Frames sent before it ran steadily: an outage times their distance.
    pub frames: u32,
    /// The same on the clock, which a busy machine bends.
    pub time: Duration,
}

impl Pulse {
    /// Starts sending frames with this payload (at least 4 bytes), one each `every` from the first
    /// to the second of each pair of endpoints. No pair may be there twice.
    pub fn start(
        endpoints: &[Endpoint],
        pairs: &[(usize, usize)],
        every: Duration,
        payload_len: usize,
    ) -> Result<Self> {
        let mac = |index: usize| endpoints.get(index).map(|end| end.mac);
        let ends = pairs.iter().map(|(from, to)| mac(*from).zip(mac(*to)));
        let ends = ends.collect::<Option<Vec<_>>>().context("a stream without an end")?;
        let by_ends: BTreeMap<_, _> = ends.iter().copied().zip(0..).collect();
        ensure!(by_ends.len() == pairs.len(), "two streams have the same ends");
        let open = |end: &Endpoint| open(&end.ns, &end.interface);
        let to_send = pairs.iter().filter_map(|(from, _)| endpoints.get(*from)).map(open);
        let to_send = to_send.collect::<Result<Vec<_>>>()?;
        let to_receive = endpoints.iter().map(|end| Ok((open(end)?, end.mac)));
        let to_receive = to_receive.collect::<Result<Vec<_>>>()?;

        let streams = pairs.iter().map(|_| History::default()).collect();
        let totals = Totals::default();
        let late_max = Duration::ZERO;
        let state = Arc::new(Mutex::new(State { streams, totals, late_max, doubled: Vec::new() }));
        let (stop, is_paused) = <(Arc<AtomicBool>, Arc<AtomicBool>)>::default();
        let receiver = {
            let (state, stop) = (Arc::clone(&state), Arc::clone(&stop));
            std::thread::spawn(move || receive(&to_receive, &by_ends, &state, &stop))
        };
        let sender = {
            let (state, stop) = (Arc::clone(&state), Arc::clone(&is_paused));
            std::thread::spawn(move || send(&to_send, &ends, every, payload_len, &state, &stop))
        };
        Ok(Self { every, state, stop, is_paused, threads: vec![receiver, sender] })
    }

    /// Time between two frames of a stream.
    pub fn every(&self) -> Duration {
        self.every
    }

    /// What happened so far.
    pub fn totals(&self) -> Totals {
        self.state().totals
    }

    /// By how much the sender was late at worst since [`Pulse::take_late_max`].
    pub fn late_max(&self) -> Duration {
        self.state().late_max
    }

    /// The frames that arrived again since this was asked last, as far as they were remembered.
    pub fn take_doubled(&self) -> Vec<Doubled> {
        std::mem::take(&mut self.state().doubled)
    }

    /// Sends no more. What is still on its way counts when it arrives.
    pub fn pause(&self) {
        self.is_paused.store(true, Ordering::Relaxed);
    }

    /// By how much the sender was late at worst since this was asked last.
    pub fn take_late_max(&self) -> Duration {
        std::mem::take(&mut self.state().late_max)
    }

    /// How long a stream was without a way since then: until the first of `steady` frames in a row
    /// that arrived. `None` while there are none. `since` may be at most a minute ago.
    pub fn outage(&self, stream: usize, since: Instant, steady: usize) -> Option<Outage> {
        self.state().streams.get(stream)?.outage(since, steady)
    }

    /// Frames of a stream lost among those sent in this span, and the most in a row.
    pub fn lost(&self, stream: usize, from: Instant, to: Instant) -> (u32, u32) {
        self.state().streams.get(stream).map_or((0, 0), |history| history.lost(from, to))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.pause();
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open(ns: &Netns, interface: &str) -> Result<PromiscuousSocket> {
    ns.run(|| PromiscuousSocket::open(interface).with_context(|| interface.to_owned()))
}

impl State {
    /// Notes a frame about to be sent. Its number.
    fn send(&mut self, stream: usize, now: Instant) -> Option<u32> {
        let history = self.streams.get_mut(stream)?;
        while history.kept.front().is_some_and(|beat| now.duration_since(beat.sent) > KEPT) {
            history.kept.pop_front();
            history.first = history.first.wrapping_add(1);
        }
        let number = history.first.wrapping_add(u32::try_from(history.kept.len()).ok()?);
        history.kept.push_back(Beat { sent: now, arrivals: 0 });
        self.totals.sent += 1;
        Some(number)
    }

    fn arrive(&mut self, stream: usize, number: u32) {
        let Some(history) = self.streams.get_mut(stream) else { return };
        let index = number.wrapping_sub(history.first);
        match history.kept.get_mut(index as usize) {
            Some(beat) => {
                beat.arrivals += 1;
                if beat.arrivals == 1 {
                    self.totals.arrived += 1;
                } else {
                    self.totals.doubled += 1;
                    if self.doubled.len() < DOUBLED_MAX {
                        let (sent, again) = (beat.sent, Instant::now());
                        self.doubled.push(Doubled { stream, sent, again });
                    }
                }
            }
            // Serial-number order (RFC 1982): before the first that is kept, or never sent.
            None if index > u32::MAX / 2 => self.totals.stray += 1,
            None => self.totals.harmed += 1,
        }
    }
}

impl History {
    fn outage(&self, since: Instant, steady: usize) -> Option<Outage> {
        let beats = self.kept.iter().filter(|beat| beat.sent >= since);
        let (mut before, mut run, mut began) = (0, 0, since);
        for beat in beats {
            if beat.arrivals == 0 {
                before += run + 1;
                run = 0;
                continue;
            }
            if run == 0 {
                began = beat.sent;
            }
            run += 1;
            if run as usize >= steady {
                return Some(Outage { frames: before, time: began.duration_since(since) });
            }
        }
        None
    }

    fn lost(&self, from: Instant, to: Instant) -> (u32, u32) {
        let (mut lost, mut run, mut longest) = (0, 0, 0);
        for beat in self.kept.iter().filter(|beat| (from..to).contains(&beat.sent)) {
            run = if beat.arrivals == 0 { run + 1 } else { 0 };
            lost += u32::from(beat.arrivals == 0);
            longest = longest.max(run);
        }
        (lost, longest)
    }
}

fn send(
    sockets: &[PromiscuousSocket],
    ends: &[(Mac, Mac)],
    every: Duration,
    payload_len: usize,
    state: &Mutex<State>,
    stop: &AtomicBool,
) {
    let count = u32::try_from(ends.len().max(1)).unwrap_or(u32::MAX);
    let mut due = Instant::now();
    // All share the interval evenly: one frame of one stream, then a part of the interval's rest.
    for (stream, (socket, (from, to))) in sockets.iter().zip(ends).enumerate().cycle() {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let now = Instant::now();
        let late = now.saturating_duration_since(due);
        let number = {
            let mut state = lock(state);
            state.late_max = state.late_max.max(late);
            state.send(stream, now)
        };
        let Some(number) = number else { return };
        let frame = NumberedFrame { to: *to, from: *from, vlan: None, number, payload_len };
        // What the stack refuses to send is lost, like anything else.
        let _ = socket.send(&frame.emit());
        due = if late > LATE_MAX { now } else { due } + every / count;
    }
}

fn receive(
    sockets: &[(PromiscuousSocket, Mac)],
    by_ends: &BTreeMap<(Mac, Mac), usize>,
    state: &Mutex<State>,
    stop: &AtomicBool,
) {
    let mut buf = vec![0; FRAME_MAX];
    while !stop.load(Ordering::Relaxed) {
        let mut polled: Vec<_> = sockets
            .iter()
            .map(|(socket, _)| PollFd::new(socket.as_fd(), PollFlags::POLLIN))
            .collect();
        let _ = poll(&mut polled, PollTimeout::from(LOOK_EVERY_MS));
        for (socket, mac) in sockets {
            while let Ok(Some(frame)) = socket.recv(&mut buf) {
                take(frame, *mac, by_ends, &mut lock(state));
            }
        }
    }
}

/// Notes a frame that arrived at the receiver with this address.
fn take(frame: &[u8], mac: Mac, by_ends: &BTreeMap<(Mac, Mac), usize>, state: &mut State) {
    if !NumberedFrame::is_one(frame) {
        return;
    }
    match NumberedFrame::parse(frame) {
        // Others' frames pass by as well: bridges flood what they do not know.
        Some(frame) if frame.to != mac => {}
        Some(frame) => match by_ends.get(&(frame.from, frame.to)) {
            Some(stream) => state.arrive(*stream, frame.number),
            None => state.totals.harmed += 1,
        },
        None => state.totals.harmed += 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const B: Mac = Mac([2, 0, 0, 0, 0, 2]);

    fn state() -> State {
        let streams = vec![History::default()];
        State { streams, totals: Totals::default(), late_max: Duration::ZERO, doubled: Vec::new() }
    }

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn an_outage_ends_with_a_steady_run_and_not_with_one_lucky_frame() {
        let (mut state, start) = (state(), Instant::now());
        for n in 0..12 {
            state.send(0, start + ms(10 * n));
        }
        for number in [0, 1, 4, 7, 8, 9] {
            state.arrive(0, number);
        }
        let history = &state.streams[0];
        assert_eq!(history.outage(start, 2), Some(Outage { frames: 0, time: ms(0) }));
        assert_eq!(history.outage(start + ms(20), 3), Some(Outage { frames: 5, time: ms(50) }));
        assert_eq!(history.outage(start + ms(20), 4), None);
        assert_eq!(history.lost(start, start + ms(100)), (4, 2));
    }

    #[test]
    fn doubled_harmed_and_stray_frames_are_told_apart() {
        let (mut state, start) = (state(), Instant::now());
        let by_ends = [((A, B), 0)].into();
        let frame = |from, to, number| {
            NumberedFrame { to, from, vlan: None, number, payload_len: 60 }.emit()
        };
        for _ in 0..3 {
            state.send(0, start);
        }
        let mut flipped = frame(A, B, 2);
        flipped[30] ^= 1;
        for bytes in [frame(A, B, 0), frame(A, B, 0), frame(A, B, 9), frame(B, A, 0), flipped] {
            take(&bytes, B, &by_ends, &mut state);
        }
        let expected = Totals { sent: 3, arrived: 1, doubled: 1, harmed: 2, stray: 0 };
        assert_eq!(state.totals, expected);
        // A minute later the first three are forgotten, and counted by nobody again.
        state.send(0, start + KEPT + ms(1));
        take(&frame(A, B, 1), B, &by_ends, &mut state);
        take(&frame(A, B, 3), B, &by_ends, &mut state);
        assert_eq!(state.streams[0].kept.len(), 1);
        let expected = Totals { sent: 4, arrived: 2, doubled: 1, harmed: 2, stray: 1 };
        assert_eq!(state.totals, expected);
    }
}
