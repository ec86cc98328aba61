//! How full the channel is, as each receiver hears it: [`Airtime`].

/// What occupies the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Control,
    Data,
}

/// Shares of time, 0 to 1.
///
/// A unicast frame is paid for with its acknowledgement and the pause (SIFS) before it, which
/// nobody else may use: both count as what the frame is, for whoever hears the acknowledgement.
///
/// The first three are sums over frames, so two that overlap count twice; `busy` is the time in
/// which there was anything on the air, each moment once, and pauses left out. Without contention
/// ([`Access::Instant`]) nothing overlaps.
///
/// [`Access::Instant`]: crate::radio::Access::Instant
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Occupancy {
    /// Everything that is not clients' frames.
    pub control: f64,
    /// Clients' frames, each hop counted.
    pub data: f64,
    /// The part of both that is acknowledgements of the radio itself, and the pauses before them.
    pub ack: f64,
    /// Anything.
    pub busy: f64,
}

impl Occupancy {
    fn combine(self, other: Self, with: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            control: with(self.control, other.control),
            data: with(self.data, other.data),
            ack: with(self.ack, other.ack),
            busy: with(self.busy, other.busy),
        }
    }

    fn over(self, count: usize) -> Self {
        self.combine(Self::default(), |sum, _| sum / count.max(1) as f64)
    }
}

/// One second of the channel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AirtimeSecond {
    /// Receivers there were.
    pub receivers: usize,
    /// Averaged over them.
    pub mean: Occupancy,
    /// The highest at any of them, each share by itself.
    pub worst: Occupancy,
}

/// How full the channel was, second by second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Airtime {
    /// Whole seconds since the radio was set.
    pub seconds: Vec<AirtimeSecond>,
}

impl Airtime {
    /// Averaged over receivers and seconds; seconds without receivers left out.
    pub fn mean(&self) -> Occupancy {
        let heard = || self.seconds.iter().filter(|second| second.receivers > 0);
        let sum = heard().fold(Occupancy::default(), |sum, s| sum.combine(s.mean, |a, b| a + b));
        sum.over(heard().count())
    }

    /// The worst second at any receiver, each share by itself.
    pub fn worst(&self) -> Occupancy {
        let none = Occupancy::default();
        self.seconds.iter().fold(none, |worst, s| worst.combine(s.worst, f64::max))
    }
}

/// What one receiver heard in the second that runs, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tenure {
    control: u64,
    data: u64,
    ack: u64,
    busy: u64,
}

impl Tenure {
    pub(crate) fn add(&mut self, kind: Use, micros: u64) {
        *match kind {
            Use::Control => &mut self.control,
            Use::Data => &mut self.data,
        } += micros;
    }

    /// An acknowledgement of such a frame, with the pause before it.
    pub(crate) fn add_ack(&mut self, kind: Use, micros: u64) {
        self.add(kind, micros);
        self.ack += micros;
    }

    pub(crate) fn add_busy(&mut self, micros: u64) {
        self.busy += micros;
    }

    /// For how many per cent of the second there was anything on the air.
    pub(crate) fn busy_percent(&self) -> u8 {
        u8::try_from(self.busy.min(1_000_000) / 10_000).unwrap_or(100)
    }

    fn occupancy(self) -> Occupancy {
        let Self { control, data, ack, busy } = self;
        let [control, data, ack, busy] = [control, data, ack, busy].map(|us| us as f64 / 1e6);
        Occupancy { control, data, ack, busy }
    }
}

impl AirtimeSecond {
    /// Over what all receivers heard in one second.
    pub(crate) fn over(tenures: impl Iterator<Item = Tenure>) -> Self {
        let (mut receivers, mut sum, mut worst) = (0, Occupancy::default(), Occupancy::default());
        for tenure in tenures {
            let share = tenure.occupancy();
            receivers += 1;
            sum = sum.combine(share, |a, b| a + b);
            worst = worst.combine(share, f64::max);
        }
        Self { receivers, mean: sum.over(receivers), worst }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_worst_are_over_receivers_and_seconds() {
        let heard = |ms: u64| {
            let mut tenure = Tenure::default();
            tenure.add(Use::Control, 1000 * ms - 1000);
            tenure.add_ack(Use::Control, 1000);
            tenure
        };
        let one = AirtimeSecond::over([heard(10), heard(30)].into_iter());
        assert_eq!(one.receivers, 2);
        assert!((one.mean.control - 0.02).abs() < 1e-12);
        assert!((one.worst.control - 0.03).abs() < 1e-12);
        assert!((one.mean.ack - 0.001).abs() < 1e-12);
        let seconds =
            vec![one, AirtimeSecond::default(), AirtimeSecond::over([heard(60)].into_iter())];
        let airtime = Airtime { seconds };
        assert!((airtime.mean().control - 0.04).abs() < 1e-12);
        assert!((airtime.worst().control - 0.06).abs() < 1e-12);
    }
}
