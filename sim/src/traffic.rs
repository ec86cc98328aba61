//! Numbered frames between clients: [`Flow`] and what became of it, [`FlowLog`].

use std::collections::BTreeMap;
use std::time::Duration;

use crate::dice::Luck;
use crate::index::{ClientIndex, FlowIndex, NodeIndex};
use node_lib::mac::Mac;
use node_lib::messages::ethernet::Header;
use node_lib::time::Timestamp;

/// Who a flow is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// One client.
    Client(ClientIndex),
    /// Everyone, as an Ethernet broadcast.
    Everyone,
    /// An address nobody has.
    Nobody(Mac),
}

/// How the frames of a flow follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Evenly: what one sends is the same for every seed.
    Even,
    /// As a Poisson process, drawn from the seed of the world: gaps are independent and
    /// exponential. No frame is sent at this time or after it.
    Poisson {
        /// The end.
        until: Timestamp,
    },
}

/// Numbered frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Who sends.
    pub from: ClientIndex,
    /// Who should receive.
    pub to: Target,
    /// When the first frame is sent; of a Poisson process, when it begins.
    pub start: Timestamp,
    /// Time between two frames, on average.
    pub every: Duration,
    /// Frames in all, at most.
    pub count: u32,
    /// How they follow each other.
    pub arrivals: Arrivals,
    /// Bytes of each frame, Ethernet header included; at least 60.
    pub size: usize,
}

impl Flow {
    /// One frame of 60 bytes.
    pub fn once(from: ClientIndex, to: Target, at: Timestamp) -> Self {
        Self::steady(from, to, at, Duration::ZERO, 1)
    }

    /// `count` frames of 60 bytes at even times.
    pub fn steady(
        from: ClientIndex,
        to: Target,
        start: Timestamp,
        every: Duration,
        count: u32,
    ) -> Self {
        let (arrivals, size) = (Arrivals::Even, SIZE_MIN);
        Self { from, to, start, every, count, arrivals, size }
    }

    /// When the frame with this number is sent, `after` the one before it or the beginning; `None`
    /// if there is no such frame.
    pub(super) fn time_of(
        &self,
        number: u32,
        after: Timestamp,
        luck: &mut Luck,
    ) -> Option<Timestamp> {
        let time = match self.arrivals {
            Arrivals::Even if number == 0 => after,
            Arrivals::Even => after + self.every,
            Arrivals::Poisson { .. } => {
                // At least a microsecond: else time would never pass.
                let mean_us = self.every.as_micros().max(1) as f64;
                let gap_us = (-libm::log(luck.unit()) * mean_us).round().clamp(0.0, GAP_MAX_US);
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "clamped"
                )]
                let gap = Duration::from_micros(gap_us as u64);
                after + gap
            }
        };
        let is_due = match self.arrivals {
            Arrivals::Even => true,
            Arrivals::Poisson { until } => time < until,
        };
        (number < self.count && is_due).then_some(time)
    }
}

/// A hundred years: no run lasts so long, and no sum overflows.
const GAP_MAX_US: f64 = 3.2e15;

/// Shortest Ethernet frame without checksum.
const SIZE_MIN: usize = 60;

/// IEEE 802 local experimental EtherType 2: what numbered frames carry.
const ETHERTYPE: u16 = 0x88b6;

const MAGIC: [u8; 4] = *b"#sim";

/// Which frame of which flow, as it stands in the frame itself.
///
/// | offset | bytes | field                        |
/// |-------:|------:|------------------------------|
/// |      0 |    12 | destination, source          |
/// |     12 |     2 | 0x88b6                       |
/// |     14 |     4 | `#sim`                       |
/// |     18 |     4 | flow                         |
/// |     22 |     4 | number, from 0               |
/// |     26 |    34 | zero                         |
/// |     60 |       | 0x5a: what is cut is missed  |
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Numbered {
    /// The flow.
    pub flow: FlowIndex,
    /// Frame of the flow, from 0.
    pub number: u32,
}

impl Numbered {
    /// Writes the frame.
    pub fn emit(self, to: Mac, from: Mac, size: usize) -> Vec<u8> {
        let mut frame = Vec::with_capacity(size.max(SIZE_MIN));
        Header { to, from, ethertype: ETHERTYPE }.emit(&mut frame);
        frame.extend_from_slice(&MAGIC);
        frame.extend_from_slice(&self.flow.0.to_be_bytes());
        frame.extend_from_slice(&self.number.to_be_bytes());
        frame.resize(SIZE_MIN, 0);
        frame.resize(size.max(SIZE_MIN), 0x5a);
        frame
    }

    /// Reads it; `None` if it is another frame.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let (header, rest) = Header::read(frame)?;
        let (magic, rest) = rest.split_first_chunk::<4>()?;
        let (flow, rest) = rest.split_first_chunk::<4>()?;
        let (number, _) = rest.split_first_chunk::<4>()?;
        (header.ethertype == ETHERTYPE && *magic == MAGIC).then(|| Self {
            flow: FlowIndex(u32::from_be_bytes(*flow)),
            number: u32::from_be_bytes(*number),
        })
    }
}

/// What became of a flow.
#[derive(Clone, Debug, Default)]
pub struct FlowLog {
    sent: Vec<Timestamp>,
    received: BTreeMap<ClientIndex, Vec<Option<Timestamp>>>,
    lost_on_air: BTreeMap<u32, AirLoss>,
    lost_in_queue: BTreeMap<u32, (Timestamp, NodeIndex)>,
    doubled: BTreeMap<ClientIndex, Vec<u32>>,
}

/// Where the radio lost a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AirLoss {
    /// When the radio was done with it.
    pub time: Timestamp,
    /// Who sent it.
    pub from: NodeIndex,
    /// To whom; `None` if nobody has the address it was sent to.
    pub to: Option<NodeIndex>,
}

impl FlowLog {
    pub(super) fn note_sent(&mut self, now: Timestamp) {
        self.sent.push(now);
    }

    pub(super) fn note_received(&mut self, now: Timestamp, client: ClientIndex, number: u32) {
        let times = self.received.entry(client).or_default();
        let index = number as usize;
        if times.len() <= index {
            times.resize(index + 1, None);
        }
        match times.get_mut(index) {
            Some(Some(_)) => self.doubled.entry(client).or_default().push(number),
            Some(time) => *time = Some(now),
            None => {}
        }
    }

    pub(super) fn note_lost_on_air(&mut self, number: u32, loss: AirLoss) {
        self.lost_on_air.insert(number, loss);
    }

    pub(super) fn note_lost_in_queue(&mut self, number: u32, now: Timestamp, node: NodeIndex) {
        self.lost_in_queue.insert(number, (now, node));
    }

    /// Where the radio lost frame `number`, if it did: on a unicast hop, after all retries. A frame
    /// sent two ways may have been lost on one and arrived over the other. Where several hops lost
    /// it, the last.
    pub fn lost_on_air(&self, number: u32) -> Option<AirLoss> {
        self.lost_on_air.get(&number).copied()
    }

    /// When and where frame `number` found the queue of a radio full.
    pub fn lost_in_queue(&self, number: u32) -> Option<(Timestamp, NodeIndex)> {
        self.lost_in_queue.get(&number).copied()
    }

    /// When each frame was sent.
    pub fn sent(&self) -> &[Timestamp] {
        &self.sent
    }

    /// When `client` received frame `number`.
    pub fn received_at(&self, client: ClientIndex, number: u32) -> Option<Timestamp> {
        *self.received.get(&client)?.get(number as usize)?
    }

    /// Frames `client` received.
    pub fn received(&self, client: ClientIndex) -> usize {
        self.received.get(&client).map_or(0, |times| times.iter().flatten().count())
    }

    /// Frames `client` received again, once per further time: a node that started again has
    /// forgotten what it handed over.
    pub fn doubled(&self, client: ClientIndex) -> &[u32] {
        self.doubled.get(&client).map_or(&[], Vec::as_slice)
    }

    /// Clients that received at least one frame.
    pub fn receivers(&self) -> impl Iterator<Item = ClientIndex> {
        self.received.keys().copied()
    }

    /// When each frame was sent, of those sent in this span, that `client` never received.
    fn lost_ones(
        &self,
        client: ClientIndex,
        from: Timestamp,
        to: Timestamp,
    ) -> impl Iterator<Item = Timestamp> {
        let is_lost = move |&(number, &sent): &(u32, &Timestamp)| {
            sent >= from && sent < to && self.received_at(client, number).is_none()
        };
        (0..).zip(&self.sent).filter(is_lost).map(|(_, &sent)| sent)
    }

    /// When the last frame was sent, of those sent in this span, that `client` never received.
    pub fn last_lost(
        &self,
        client: ClientIndex,
        from: Timestamp,
        to: Timestamp,
    ) -> Option<Timestamp> {
        self.lost_ones(client, from, to).last()
    }

    /// Frames sent in this span that `client` never received.
    pub fn lost(&self, client: ClientIndex, from: Timestamp, to: Timestamp) -> usize {
        self.lost_ones(client, from, to).count()
    }

    /// The longest time under way of a frame that was sent in this span and that `client` received.
    pub fn longest_delay(&self, client: ClientIndex, from: Timestamp, to: Timestamp) -> Duration {
        let delay = |(number, &sent): (u32, &Timestamp)| {
            let is_in = sent >= from && sent < to;
            Some(self.received_at(client, number).filter(|_| is_in)?.since(sent))
        };
        (0..).zip(&self.sent).filter_map(delay).max().unwrap_or_default()
    }

    /// The longest time `client` was cut off, among frames sent in this span. It is from the first
    /// frame of a run of lost ones to the next that came through, or to `to` if none did. As fine
    /// as the flow's interval.
    pub fn longest_gap(&self, client: ClientIndex, from: Timestamp, to: Timestamp) -> Duration {
        let mut longest = Duration::ZERO;
        let mut lost_since = None;
        for (number, &sent) in (0..).zip(&self.sent) {
            if sent < from || sent >= to {
                continue;
            }
            if self.received_at(client, number).is_some() {
                if let Some(since) = lost_since.take() {
                    longest = longest.max(sent - since);
                }
            } else {
                lost_since.get_or_insert(sent);
            }
        }
        lost_since.map_or(longest, |since| longest.max(to - since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_numbered_frame_reads_back() {
        let numbered = Numbered { flow: FlowIndex(7), number: 513 };
        let frame = numbered.emit(Mac([2; 6]), Mac([4; 6]), 0);
        assert_eq!(frame.len(), 60);
        assert_eq!(Numbered::parse(&frame), Some(numbered));
        assert_eq!(Numbered::parse(&frame[..25]), None);
        assert_eq!(Numbered::parse(&[0; 60]), None);
    }

    #[test]
    fn gaps_of_a_poisson_process_are_exponential_and_end_in_time() {
        let (mean, until) = (Duration::from_millis(100), Timestamp::from_millis(10_000_000));
        let flow = Flow {
            arrivals: Arrivals::Poisson { until },
            ..Flow::steady(ClientIndex(0), Target::Everyone, Timestamp::ZERO, mean, u32::MAX)
        };
        let mut times = vec![Timestamp::ZERO];
        for number in 0.. {
            let mut luck = Luck::new(7, 3, 0, number);
            let after = *times.last().unwrap();
            let number = u32::try_from(number).unwrap();
            match flow.time_of(number, after, &mut luck) {
                Some(time) => times.push(time),
                None => break,
            }
        }
        // 100,000 on average; three standard deviations.
        assert!((99_050..100_950).contains(&times.len()), "{}", times.len());
        assert!(times.last().unwrap() < &until);
        let gaps: Vec<f64> =
            times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64() / 0.1).collect();
        let longer =
            |than: f64| gaps.iter().filter(|gap| **gap > than).count() as f64 / gaps.len() as f64;
        for than in [0.1, 1.0, 3.0] {
            assert!((longer(than) - (-than).exp()).abs() < 0.005, "{than}: {}", longer(than));
        }
        // One long gap says nothing of the next.
        let pairs = gaps.windows(2).filter(|pair| pair[0] > 1.0 && pair[1] > 1.0).count() as f64;
        assert!((pairs / gaps.len() as f64 - (-2.0_f64).exp()).abs() < 0.005);
    }

    #[test]
    fn the_longest_gap_lasts_from_the_first_lost_frame_to_the_next_good_one() {
        let at = Timestamp::from_millis;
        let mut log = FlowLog::default();
        for time in [0, 10, 20, 30, 40, 50] {
            log.note_sent(at(time));
        }
        let client = ClientIndex(1);
        for number in [0, 3, 4] {
            log.note_received(at(99), client, number);
        }
        log.note_received(at(100), client, 3);
        assert_eq!(log.doubled(client), [3]);
        assert_eq!(log.received_at(client, 3), Some(at(99)));
        let gap = |from, to| log.longest_gap(client, at(from), at(to));
        assert_eq!(gap(0, 45), Duration::from_millis(20));
        assert_eq!(gap(30, 50), Duration::ZERO);
        assert_eq!(gap(0, 100), Duration::from_millis(50));
        assert_eq!(log.received(client), 3);
        assert_eq!(log.last_lost(client, at(0), at(45)), Some(at(20)));
        assert_eq!(log.last_lost(client, at(30), at(45)), None);
    }
}
