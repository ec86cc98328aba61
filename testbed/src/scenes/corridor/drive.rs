//! What one drive leaves behind, from the daemons or from the simulator, and what it says about
//! each hand-over.

use std::time::Duration;

use super::odds::Odds;
use crate::probe::StreamLog;

/// Frames sent so long before the vehicle left a road-side unit, or after it had arrived at
/// another, are looked at with the hand-over.
pub const WINDOW: Duration = Duration::from_secs(1);

/// A vehicle sends to another road-side unit, or to none, from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// When, from the start of the run.
    pub at: Duration,
    /// Before.
    pub from: Option<String>,
    /// Now.
    pub to: Option<String>,
    /// Why, in the node's own word.
    pub cause: String,
}

/// What the vehicle's node says a hand-over cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandOverReport {
    /// When it said so, from the start of the run.
    pub at: Duration,
    /// The road-side unit before.
    pub from: String,
    /// The road-side unit after.
    pub to: String,
    /// Time without a way it believed in.
    pub gap: Duration,
    /// Clients' frames it dropped for want of a way.
    pub lost: u64,
    /// Frames handed to the old upstream after its last sign of life, and to nobody else.
    pub at_risk: u64,
    /// Frames that came both ways; it delivered each once.
    pub doubled: u64,
    /// Frames it sent both ways.
    pub sent_twice: u64,
}

/// One drive.
#[derive(Clone, Debug, Default)]
pub struct Drive {
    /// When the vehicle set off, from the start of the run.
    pub departure: Duration,
    /// When it came to the end.
    pub arrival: Duration,
    /// Changes of road-side unit, in order.
    pub changes: Vec<Change>,
    /// What the node says they cost, in order.
    pub records: Vec<HandOverReport>,
    /// What the links lose by themselves.
    pub odds: Odds,
    /// Streams from the LAN to the clients.
    pub down: Vec<StreamLog>,
    /// Streams from clients to the LAN.
    pub up: Vec<StreamLog>,
}

/// A change from one road-side unit to another, and what clients saw of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveHandOver {
    /// When the vehicle left the one, from departure.
    pub left: Duration,
    /// When it had the other, from departure.
    pub at: Duration,
    /// The one.
    pub from: String,
    /// The other.
    pub to: String,
    /// Why it left.
    pub cause: String,
    /// What the node says of it.
    pub record: Option<HandOverReport>,
    /// The longest time any one client could not be reached or heard.
    pub gap: Duration,
    /// Frames sent meanwhile.
    pub sent: u64,
    /// Of those, lost.
    pub lost: u64,
    /// How many of them the link in use loses by itself, on average.
    pub lost_by_link: u64,
    /// Arrivals beyond the first.
    pub doubled: u64,
}

impl Drive {
    /// All hand-overs, in order. A road-side unit that is lost and found again counts as well.
    pub fn hand_overs(&self) -> Vec<DriveHandOver> {
        let mut found = Vec::new();
        let mut leaving: Option<&Change> = None;
        for change in self.changes.iter().filter(|change| change.at >= self.departure) {
            let Some(to) = &change.to else {
                leaving.get_or_insert(change);
                continue;
            };
            let was_cut_off = leaving.is_some();
            let left = leaving.take().unwrap_or(change);
            let Some(from) = &left.from else { continue };
            if was_cut_off || from != to {
                found.push(self.judge(left, change, from, to));
            }
        }
        found
    }

    /// Frames sent, in both directions, over the whole drive.
    pub fn sent(&self) -> u64 {
        self.sent_between(self.departure, self.arrival)
    }

    /// Of those, lost.
    pub fn lost(&self) -> u64 {
        self.lost_between(self.departure, self.arrival)
    }

    /// Frames sent, in both directions, in this span of the run.
    pub fn sent_between(&self, from: Duration, to: Duration) -> u64 {
        self.sum(|log| log.sent(from, to))
    }

    /// Of those, lost.
    pub fn lost_between(&self, from: Duration, to: Duration) -> u64 {
        self.sum(|log| log.lost(from, to))
    }

    /// Arrivals beyond the first, of all frames ever sent.
    pub fn doubled(&self) -> u64 {
        self.sum(|log| log.doubled(Duration::ZERO, Duration::MAX))
    }

    /// Frames sent per second, to the clients and from them.
    pub fn rates(&self) -> (f64, f64) {
        let seconds = (self.arrival - self.departure).as_secs_f64().max(f64::MIN_POSITIVE);
        let rate = |logs: &[StreamLog]| {
            let sent: u64 = logs.iter().map(|log| log.sent(self.departure, self.arrival)).sum();
            sent as f64 / seconds
        };
        (rate(&self.down), rate(&self.up))
    }

    fn judge(&self, left: &Change, arrived: &Change, from: &str, to: &str) -> DriveHandOver {
        let (start, end) = (left.at.saturating_sub(WINDOW), arrived.at + WINDOW);
        let logs = || self.down.iter().chain(&self.up);
        DriveHandOver {
            left: left.at - self.departure,
            at: arrived.at - self.departure,
            from: from.to_owned(),
            to: to.to_owned(),
            cause: left.cause.clone(),
            record: self.record_of(arrived.at, from, to).cloned(),
            gap: logs().map(|log| log.gap(start, end)).max().unwrap_or_default(),
            sent: self.sent_between(start, end),
            lost: self.lost_between(start, end),
            lost_by_link: self.lost_by_link(start, end),
            doubled: self.sum(|log| log.doubled(start, end)),
        }
    }

    /// Frames the road-side unit in use loses on its link, on average, of those sent in this span.
    /// What is sent while there is none is not the fault of a link.
    pub fn lost_by_link(&self, from: Duration, to: Duration) -> u64 {
        let of = |logs: &[StreamLog], odds: &dyn Fn(&str, Duration) -> f64| {
            let sent = logs.iter().flat_map(|log| &log.sent);
            let share = |time: &Duration| {
                let rsu = self.in_use(*time)?;
                Some(odds(rsu, time.saturating_sub(self.departure)))
            };
            sent.filter(|time| (from..to).contains(*time)).filter_map(share).sum::<f64>()
        };
        let down = of(&self.down, &|rsu, time| self.odds.down(rsu, time));
        let up = of(&self.up, &|rsu, time| self.odds.up(rsu, time));
        (down + up).round() as u64
    }

    /// The road-side unit the vehicle sends to.
    pub fn in_use(&self, time: Duration) -> Option<&str> {
        let change = self.changes.iter().rfind(|change| change.at <= time);
        change.and_then(|change| change.to.as_deref())
    }

    /// A record is written some time after the change.
    fn record_of(&self, change: Duration, from: &str, to: &str) -> Option<&HandOverReport> {
        let is_it = |record: &&HandOverReport| {
            record.at >= change && record.from == from && record.to == to
        };
        self.records.iter().find(is_it)
    }

    fn sum(&self, of: impl Fn(&StreamLog) -> u64) -> u64 {
        self.down.iter().chain(&self.up).map(of).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::MediumLinkTrace;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn change(at: u64, from: &str, to: &str) -> Change {
        let place = |name: &str| (name != "none").then(|| name.to_owned());
        let cause = format!("at {at}");
        Change { at: ms(at), from: place(from), to: place(to), cause }
    }

    /// Both ways, `a` loses a tenth; `b` half of what it sends and nothing that is sent to it.
    fn links() -> MediumLinkTrace {
        let rows = "0,a,car,0.1,0\n0,car,a,0.1,0\n0,b,car,0.5,0\n0,car,b,0,0\n";
        MediumLinkTrace::read(format!("time_s,from,to,loss,delay_us\n{rows}").as_bytes()).unwrap()
    }

    /// A frame every 10 ms for 20 s, all of which arrive but these.
    fn log(lost: &[usize], doubled: &[usize]) -> StreamLog {
        let sent = (0..2000).map(|n| ms(10 * n)).collect();
        let mut arrivals = vec![1; 2000];
        lost.iter().for_each(|n| arrivals[*n] = 0);
        doubled.iter().for_each(|n| arrivals[*n] = 2);
        StreamLog { every: ms(10), sent, arrivals }
    }

    fn drive(changes: Vec<Change>, down: StreamLog) -> Drive {
        let up = vec![log(&[], &[])];
        let (departure, arrival, down) = (ms(2000), ms(18_000), vec![down]);
        let odds = Odds::new(&links(), "car", 0);
        Drive { departure, arrival, changes, records: Vec::new(), odds, down, up }
    }

    #[test]
    fn a_hand_over_has_the_frames_around_it() {
        let changes = vec![change(100, "none", "a"), change(5000, "a", "b")];
        let drive = drive(changes, log(&[10, 390, 400, 499, 500, 600], &[450, 700]));
        let [only] = &drive.hand_overs()[..] else { panic!("{:?}", drive.hand_overs()) };
        assert_eq!((only.left, only.at), (ms(3000), ms(3000)));
        assert_eq!((only.from.as_str(), only.to.as_str()), ("a", "b"));
        assert_eq!((only.gap, only.sent, only.lost, only.doubled), (ms(20), 400, 3, 1));
        // A second at a, 100 frames each way, and a second at b.
        assert_eq!(only.lost_by_link, 10 + 10 + 50);
        assert_eq!((drive.lost(), drive.doubled()), (5, 2));
        assert_eq!(drive.rates(), (100.0, 100.0));
    }

    #[test]
    fn a_record_belongs_to_the_change_before_it() {
        let record = |at, from: &str, to: &str| HandOverReport {
            at: ms(at),
            from: from.to_owned(),
            to: to.to_owned(),
            gap: ms(at),
            lost: 0,
            at_risk: 0,
            doubled: 0,
            sent_twice: 0,
        };
        let changes = [(3000, "a", "b"), (6000, "b", "a"), (9000, "a", "b")]
            .map(|(at, from, to)| change(at, from, to));
        let records = [record(3100, "a", "b"), record(9500, "a", "b")].to_vec();
        let drive = Drive { records, ..drive(changes.to_vec(), log(&[], &[])) };
        let gaps = drive.hand_overs().into_iter().map(|h| h.record.map(|record| record.gap));
        assert_eq!(gaps.collect::<Vec<_>>(), [Some(ms(3100)), None, Some(ms(9500))]);
    }

    #[test]
    fn time_without_a_road_side_unit_belongs_to_the_hand_over() {
        let changes = vec![
            change(4000, "a", "none"),
            change(4500, "none", "b"),
            change(9000, "b", "b"),
            change(12_000, "b", "none"),
            change(12_100, "none", "b"),
        ];
        let drive = drive(changes, log(&[400, 401, 402], &[]));
        let seen: Vec<_> = drive
            .hand_overs()
            .iter()
            .map(|h| (h.left, h.at, h.cause.clone(), h.lost, h.gap))
            .collect();
        assert_eq!(
            seen,
            [
                (ms(2000), ms(2500), "at 4000".to_owned(), 3, ms(30)),
                (ms(10_000), ms(10_100), "at 12000".to_owned(), 0, ms(0)),
            ]
        );
    }
}
