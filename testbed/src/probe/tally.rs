//! Bookkeeping of a numbered stream.

use std::time::{Duration, Instant};

/// Which numbers of a stream arrived, how often and when.
#[derive(Debug, Default)]
pub struct StreamTally {
    sent: Vec<Instant>,
    arrivals: Vec<u32>,
    last_arrival: Option<Instant>,
    gap: Duration,
    highest: Option<usize>,
    reordered: u64,
    delays: Vec<Duration>,
}

/// The outcome of a numbered stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamReport {
    /// Numbers sent.
    pub sent: u64,
    /// Different numbers that arrived.
    pub received: u64,
    /// Numbers that never arrived.
    pub lost: u64,
    /// Longest run of numbers that never arrived.
    pub lost_in_a_row: u64,
    /// The highest number that arrived; 0 when none did.
    pub last_received: u64,
    /// Arrivals beyond the first of a number.
    pub duplicates: u64,
    /// Numbers that arrived after a higher one.
    pub reordered: u64,
    /// Longest time between two arrivals.
    pub gap: Duration,
    /// Each time from sending to arriving, the shortest first.
    pub delays: Vec<Duration>,
}

impl StreamReport {
    /// Median time from sending to arriving; zero when nothing arrived.
    pub fn delay_median(&self) -> Duration {
        self.delay(50)
    }

    /// The time that 99 of 100 did not exceed; zero when nothing arrived.
    pub fn delay_p99(&self) -> Duration {
        self.delay(99)
    }

    fn delay(&self, percent: usize) -> Duration {
        self.delays.get(self.delays.len() * percent / 100).copied().unwrap_or_default()
    }
}

impl StreamTally {
    /// The next number to send, sent `now`.
    pub fn send(&mut self, now: Instant) -> u32 {
        self.sent.push(now);
        self.arrivals.push(0);
        u32::try_from(self.sent.len() - 1).unwrap_or(u32::MAX)
    }

    /// A number arrived. Numbers never sent are none of ours and ignored.
    pub fn arrive(&mut self, now: Instant, number: u32) {
        let number = number as usize;
        let (Some(count), Some(sent)) = (self.arrivals.get_mut(number), self.sent.get(number))
        else {
            return;
        };
        *count += 1;
        if *count > 1 {
            return;
        }
        self.delays.push(now.saturating_duration_since(*sent));
        if let Some(last) = self.last_arrival.replace(now) {
            self.gap = self.gap.max(now.saturating_duration_since(last));
        }
        if self.highest.is_some_and(|highest| number < highest) {
            self.reordered += 1;
        }
        self.highest = self.highest.max(Some(number));
    }

    /// Whether every number sent has arrived.
    pub fn is_complete(&self) -> bool {
        self.arrivals.iter().all(|count| *count > 0)
    }

    /// What became of the stream.
    pub fn report(&self) -> StreamReport {
        let missing = |count: &&u32| **count == 0;
        let lost = self.arrivals.iter().filter(missing).count();
        let runs = self.arrivals.split(|count| *count > 0).map(<[u32]>::len);
        let mut delays = self.delays.clone();
        delays.sort_unstable();
        StreamReport {
            sent: self.sent.len() as u64,
            received: (self.arrivals.len() - lost) as u64,
            lost: lost as u64,
            lost_in_a_row: runs.max().unwrap_or(0) as u64,
            last_received: self.highest.unwrap_or(0) as u64,
            duplicates: self.arrivals.iter().map(|n| u64::from(n.saturating_sub(1))).sum(),
            reordered: self.reordered,
            gap: self.gap,
            delays,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_lost_doubled_and_late_numbers_apart() {
        let mut tally = StreamTally::default();
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        for n in 0..8 {
            assert_eq!(tally.send(at(10 * n)), n as u32);
        }
        // 3 and 4 are lost, 6 before 5, 1 twice, 99 is a stranger.
        for (ms, number) in [(1, 0), (11, 1), (12, 1), (21, 2), (61, 6), (62, 5), (71, 7), (72, 99)]
        {
            tally.arrive(at(ms), number);
        }
        let expected = StreamReport {
            sent: 8,
            received: 6,
            lost: 2,
            lost_in_a_row: 2,
            last_received: 7,
            duplicates: 1,
            reordered: 1,
            gap: Duration::from_millis(40),
            delays: [1, 1, 1, 1, 1, 12].map(Duration::from_millis).into(),
        };
        assert_eq!(tally.report(), expected);
        assert_eq!(expected.delay_median(), Duration::from_millis(1));
        assert_eq!(expected.delay_p99(), Duration::from_millis(12));
        assert!(!tally.is_complete());
    }
}
