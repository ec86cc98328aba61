//! Many steady streams of numbered frames at once, between addresses that need no IP stack.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use node_lib::Mac;

use super::frames::{FRAME_MAX, NumberedFrame};
use crate::arena::netns::Netns;
use crate::arena::sys::PromiscuousSocket;

/// Where streams begin and end.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The namespace of its interface.
    pub ns: Netns,
    /// Its interface.
    pub interface: String,
    /// Its address. Frames for others that reach the interface are not counted.
    pub mac: Mac,
}

/// Frames sent at even times. No two streams may have the same ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Index of the sender.
    pub from: usize,
    /// Index of the receiver.
    pub to: usize,
    /// Time between two frames.
    pub every: Duration,
}

/// What became of a stream. Times count from the start of its run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamLog {
    /// Time between two frames.
    pub every: Duration,
    /// When each frame was sent.
    pub sent: Vec<Duration>,
    /// How often each frame arrived.
    pub arrivals: Vec<u32>,
}

/// Streams under way.
#[derive(Debug)]
pub struct Streams {
    started: Instant,
    streams: Vec<Stream>,
    stop_sending: Arc<AtomicBool>,
    stop_receiving: Arc<AtomicBool>,
    sender: JoinHandle<Sent>,
    receiver: JoinHandle<Vec<Vec<u32>>>,
}

/// What [`Streams::stop`] tells.
#[derive(Debug)]
pub struct StreamsReport {
    /// One per stream, in their order.
    pub logs: Vec<StreamLog>,
    /// By how much the sender was late at worst: how long the machine let it wait.
    pub late_max: Duration,
}

#[derive(Debug)]
struct Sent {
    times: Vec<Vec<Duration>>,
    late_max: Duration,
}

/// A sender that comes later than this does not catch up: a burst is not what was asked for.
const LATE_MAX: Duration = Duration::from_millis(20);
/// How long after the last frame one still counts.
const GRACE: Duration = Duration::from_millis(500);
/// How often a receiver looks whether to stop, in milliseconds.
const LOOK_EVERY_MS: u16 = 20;

impl Streams {
    /// Starts sending frames with this payload (at least 4 bytes) over all streams, their first
    /// frames spread evenly over their intervals.
    pub fn start(endpoints: &[Endpoint], streams: &[Stream], payload_len: usize) -> Result<Self> {
        let open = |Endpoint { ns, interface, .. }: &Endpoint| {
            ns.run(|| PromiscuousSocket::open(interface).with_context(|| interface.clone()))
        };
        let to_send = endpoints.iter().map(open).collect::<Result<Vec<_>>>()?;
        let to_receive = endpoints.iter().map(open).collect::<Result<Vec<_>>>()?;
        let macs: Vec<Mac> = endpoints.iter().map(|endpoint| endpoint.mac).collect();
        let ends = streams.iter().map(|stream| {
            let mac = |index: usize| macs.get(index).copied().context("a stream without an end");
            Ok((mac(stream.from)?, mac(stream.to)?))
        });
        let ends = ends.collect::<Result<Vec<(Mac, Mac)>>>()?;
        let by_ends: BTreeMap<_, _> = ends.iter().copied().zip(0..).collect();
        anyhow::ensure!(by_ends.len() == ends.len(), "two streams have the same ends");

        let started = Instant::now();
        let (stop_sending, stop_receiving) = <(Arc<AtomicBool>, Arc<AtomicBool>)>::default();
        let receiver = {
            let stop = Arc::clone(&stop_receiving);
            std::thread::spawn(move || receive(&to_receive, &macs, &by_ends, &stop))
        };
        let sender = {
            let (streams, stop) = (streams.to_vec(), Arc::clone(&stop_sending));
            std::thread::spawn(move || send(&to_send, &streams, &ends, payload_len, started, &stop))
        };
        let streams = streams.to_vec();
        Ok(Self { started, streams, stop_sending, stop_receiving, sender, receiver })
    }

    /// From when times count.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Stops sending, waits a moment for the last frames, and reports.
    pub fn stop(self) -> Result<StreamsReport> {
        self.stop_sending.store(true, Ordering::Relaxed);
        let sent = self.sender.join().map_err(|_| anyhow!("the sender died"))?;
        std::thread::sleep(GRACE);
        self.stop_receiving.store(true, Ordering::Relaxed);
        let arrivals = self.receiver.join().map_err(|_| anyhow!("the receiver died"))?;
        let logs = self.streams.iter().zip(sent.times).zip(arrivals);
        let logs = logs.map(|((stream, sent), mut arrivals)| {
            arrivals.resize(sent.len(), 0);
            StreamLog { every: stream.every, sent, arrivals }
        });
        Ok(StreamsReport { logs: logs.collect(), late_max: sent.late_max })
    }
}

fn send(
    sockets: &[PromiscuousSocket],
    streams: &[Stream],
    ends: &[(Mac, Mac)],
    payload_len: usize,
    started: Instant,
    stop: &AtomicBool,
) -> Sent {
    let mut sent = Sent { times: vec![Vec::new(); streams.len()], late_max: Duration::ZERO };
    let share = |index| stream_offset(index, streams);
    let mut due: BinaryHeap<_> =
        (0..streams.len()).map(|index| Reverse((share(index), index))).collect();
    while !stop.load(Ordering::Relaxed)
        && let Some(Reverse((at, index))) = due.pop()
    {
        std::thread::sleep(at.saturating_sub(started.elapsed()));
        let now = started.elapsed();
        let late = now.saturating_sub(at);
        sent.late_max = sent.late_max.max(late);
        let (Some(stream), Some((from, to)), Some(times)) =
            (streams.get(index), ends.get(index), sent.times.get_mut(index))
        else {
            continue;
        };
        let (to, from, number) = (*to, *from, u32::try_from(times.len()).unwrap_or(u32::MAX));
        let frame = NumberedFrame { to, from, vlan: None, number, payload_len }.emit();
        // What the stack refuses to send is lost, like anything else.
        let _ = sockets.get(stream.from).map(|socket| socket.send(&frame));
        times.push(now);
        let base = if late > LATE_MAX { now } else { at };
        due.push(Reverse((base + stream.every, index)));
    }
    sent
}

/// When a stream begins: all share the interval evenly.
fn stream_offset(index: usize, streams: &[Stream]) -> Duration {
    let every = streams.get(index).map_or(Duration::ZERO, |stream| stream.every);
    let count = u32::try_from(streams.len().max(1)).unwrap_or(u32::MAX);
    every * u32::try_from(index).unwrap_or(0) / count
}

fn receive(
    sockets: &[PromiscuousSocket],
    macs: &[Mac],
    by_ends: &BTreeMap<(Mac, Mac), usize>,
    stop: &AtomicBool,
) -> Vec<Vec<u32>> {
    let mut arrivals: Vec<Vec<u32>> = vec![Vec::new(); by_ends.len()];
    let mut buf = vec![0; FRAME_MAX];
    loop {
        // Looked at before reading: what arrived until then is read.
        let is_last_round = stop.load(Ordering::Relaxed);
        for (socket, mac) in sockets.iter().zip(macs) {
            while let Ok(Some(frame)) = socket.recv(&mut buf) {
                if let Some(frame) = NumberedFrame::parse(frame).filter(|frame| frame.to == *mac)
                    && let Some(stream) = by_ends.get(&(frame.from, frame.to))
                    && let Some(counts) = arrivals.get_mut(*stream)
                {
                    let number = frame.number as usize;
                    counts.resize(counts.len().max(number + 1), 0);
                    if let Some(count) = counts.get_mut(number) {
                        *count += 1;
                    }
                }
            }
        }
        if is_last_round {
            return arrivals;
        }
        let mut polled: Vec<_> =
            sockets.iter().map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN)).collect();
        let _ = poll(&mut polled, PollTimeout::from(LOOK_EVERY_MS));
    }
}

impl StreamLog {
    /// Frames sent in this span that never arrived.
    pub fn lost(&self, from: Duration, to: Duration) -> u64 {
        self.within(from, to).filter(|arrivals| *arrivals == 0).count() as u64
    }

    /// Arrivals beyond the first, of frames sent in this span.
    pub fn doubled(&self, from: Duration, to: Duration) -> u64 {
        self.within(from, to).map(|arrivals| u64::from(arrivals.saturating_sub(1))).sum()
    }

    /// Frames sent in this span.
    pub fn sent(&self, from: Duration, to: Duration) -> u64 {
        self.within(from, to).count() as u64
    }

    /// How long the receiver was cut off at worst, among frames sent in this span: lost frames in a
    /// row, times their distance. So a sender or receiver that has to wait for the processor makes
    /// no gap.
    pub fn gap(&self, from: Duration, to: Duration) -> Duration {
        let (mut longest, mut run) = (0_u32, 0);
        for arrivals in self.within(from, to) {
            run = if arrivals == 0 { run + 1 } else { 0 };
            longest = longest.max(run);
        }
        self.every * longest
    }

    fn within(&self, from: Duration, to: Duration) -> impl Iterator<Item = u32> {
        let is_inside = move |(sent, _): &(&Duration, u32)| (from..to).contains(*sent);
        self.sent.iter().zip(self.arrivals.iter().copied()).filter(is_inside).map(|(_, n)| n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn a_gap_is_lost_frames_in_a_row_times_their_distance() {
        let sent = (0..10).map(|n| ms(10 * n)).collect();
        let log = StreamLog { every: ms(10), sent, arrivals: vec![1, 0, 1, 0, 0, 0, 1, 2, 1, 0] };
        assert_eq!(log.gap(ms(0), ms(100)), ms(30));
        assert_eq!(log.gap(ms(0), ms(50)), ms(20));
        assert_eq!(log.gap(ms(60), ms(90)), ms(0));
        assert_eq!((log.lost(ms(0), ms(100)), log.doubled(ms(0), ms(100))), (5, 1));
        assert_eq!((log.sent(ms(10), ms(30)), log.doubled(ms(0), ms(70))), (2, 0));
    }

    #[test]
    fn first_frames_are_spread_over_the_interval() {
        let streams = [8, 8, 4, 4].map(|every| Stream { from: 0, to: 1, every: ms(every) });
        let offsets: Vec<_> =
            (0..4).map(|index| stream_offset(index, &streams).as_millis()).collect();
        assert_eq!(offsets, [0, 2, 2, 3]);
    }
}
