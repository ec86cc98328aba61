//! [`Tracker`]: what is known of the position, and for how long. No I/O: it is told the time.

use std::time::Duration;

use control_socket::position::{Fix, PositionReport, PositionState};
use node_lib::Timestamp;
use node_lib::control::positions::Located;
use node_lib::control::snapshot::span_ms;
use node_lib::messages::control::position::{AGE_MAX, Coordinates};

use super::source::PositionSource;
use super::tpv::{self, Says};

/// A fix is used for so long, here and by the node.
pub const FIX_AGE_MAX: Duration = AGE_MAX;

/// What is known of the position.
///
/// Ages count from the moment a report came in here. What the receiver says of the time is told on
/// and decides nothing: neither clock need be set.
#[derive(Clone, Debug)]
pub(super) struct Tracker {
    source: String,
    last: Last,
    fault: Option<String>,
    reports: u64,
    bad_lines: u64,
    /// What the node does not know yet.
    news: Option<Option<Located>>,
    is_node_told: bool,
}

/// The last that was told.
#[derive(Clone, Debug)]
enum Last {
    Nothing,
    NoFix,
    Fixed(Fix),
    Fix { fix: Fix, at: Timestamp, device: Option<String> },
}

impl Tracker {
    pub(super) fn new(source: &PositionSource) -> Self {
        let last = match source {
            PositionSource::Fixed(fix) => Last::Fixed(fix.clone()),
            _ => Last::Nothing,
        };
        let news = match &last {
            Last::Fixed(fix) => located(fix, true).map(Some),
            _ => None,
        };
        let source = source.to_string();
        let (reports, bad_lines) = (0, 0);
        Self { source, last, fault: None, reports, bad_lines, news, is_node_told: false }
    }

    /// What the node is to be told now, if anything: where it is, or that this is not known any
    /// more.
    pub(super) fn take_news(&mut self) -> Option<Option<Located>> {
        let news = self.news.take()?;
        let was_told = std::mem::replace(&mut self.is_node_told, news.is_some());
        Some(news).filter(|news| news.is_some() || was_told)
    }

    /// Takes in a line of the source; `None`: one that was too long. Returns whether it is one of
    /// gpsd.
    pub(super) fn take(&mut self, now: Timestamp, line: Option<&[u8]>) -> bool {
        let Some(Ok(report)) = line.map(tpv::parse) else {
            self.bad_lines += 1;
            return false;
        };
        self.fault = None;
        let Some(report) = report else { return true };
        match report.says {
            Says::Nothing => {}
            Says::Fix(fix) => {
                self.reports += 1;
                self.news = Some(located(&fix, false));
                self.last = Last::Fix { fix, at: now, device: report.device };
            }
            Says::NoFix => {
                self.reports += 1;
                // Of two receivers the one that has no fix takes nothing from the other.
                let is_another = matches!(&self.last, Last::Fix { at, device, .. }
                    if *device != report.device && now.since(*at) <= FIX_AGE_MAX);
                if !is_another {
                    self.last = Last::NoFix;
                    self.news = Some(None);
                }
            }
        }
        true
    }

    /// Nothing comes from the source, for this reason, until a line does.
    pub(super) fn fail(&mut self, fault: String) {
        self.fault = Some(fault);
    }

    /// What is known now.
    pub(super) fn position(&self, now: Timestamp) -> PositionReport {
        let (state, fix, age_ms) = match &self.last {
            Last::Nothing => (PositionState::Waiting, None, None),
            Last::NoFix => (PositionState::NoFix, None, None),
            Last::Fixed(fix) => (PositionState::Known, Some(fix), None),
            Last::Fix { fix, at, .. } => {
                let age = now.since(*at);
                if age <= FIX_AGE_MAX {
                    (PositionState::Known, Some(fix), Some(span_ms(age)))
                } else {
                    (PositionState::TooOld, None, Some(span_ms(age)))
                }
            }
        };
        PositionReport {
            source: self.source.clone(),
            state,
            fix: fix.cloned(),
            age_ms,
            fault: self.fault.clone(),
            reports: self.reports,
            bad_lines: self.bad_lines,
        }
    }
}

/// As the node is told of it.
fn located(fix: &Fix, is_fixed: bool) -> Option<Located> {
    let at = Coordinates::new(fix.latitude_deg, fix.longitude_deg, fix.accuracy_m)?;
    Some(Located { at, is_fixed })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIX: &[u8] = br#"{"class":"TPV","device":"a","mode":3,"lat":48.1,"lon":11.5}"#;
    const NO_FIX: &[u8] = br#"{"class":"TPV","device":"a","mode":1}"#;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn tracker(source: &str) -> Tracker {
        Tracker::new(&source.parse().unwrap())
    }

    fn shown(tracker: &Tracker, ms: u64) -> (PositionState, Option<f64>, Option<u64>) {
        let PositionReport { state, fix, age_ms, .. } = tracker.position(at(ms));
        (state, fix.map(|fix| fix.latitude_deg), age_ms)
    }

    #[test]
    fn a_fix_ages_and_is_then_no_longer_known() {
        let mut tracker = tracker("gpsd://");
        assert_eq!(shown(&tracker, 900), (PositionState::Waiting, None, None));
        assert!(tracker.take(at(1000), Some(FIX)));
        assert_eq!(shown(&tracker, 1000), (PositionState::Known, Some(48.1), Some(0)));
        assert_eq!(shown(&tracker, 6000), (PositionState::Known, Some(48.1), Some(5000)));
        assert_eq!(shown(&tracker, 6001), (PositionState::TooOld, None, Some(5001)));
        assert_eq!(shown(&tracker, 3_600_000), (PositionState::TooOld, None, Some(3_599_000)));
        assert!(tracker.take(at(3_600_000), Some(FIX)));
        assert_eq!(shown(&tracker, 3_600_100), (PositionState::Known, Some(48.1), Some(100)));
    }

    #[test]
    fn a_receiver_that_lost_its_fix_is_believed_at_once() {
        let mut tracker = tracker("gpsd://");
        tracker.take(at(0), Some(FIX));
        tracker.take(at(100), Some(NO_FIX));
        assert_eq!(shown(&tracker, 100), (PositionState::NoFix, None, None));
    }

    #[test]
    fn a_receiver_without_a_fix_takes_nothing_from_another_that_has_one() {
        let mut tracker = tracker("gpsd://");
        tracker.take(at(0), Some(FIX));
        let other = br#"{"class":"TPV","device":"b","mode":1}"#;
        tracker.take(at(100), Some(other));
        assert_eq!(shown(&tracker, 100), (PositionState::Known, Some(48.1), Some(100)));
        tracker.take(at(5001), Some(other));
        assert_eq!(shown(&tracker, 5001), (PositionState::NoFix, None, None));
    }

    #[test]
    fn only_a_position_makes_a_position_younger() {
        let mut tracker = tracker("gpsd://");
        tracker.take(at(0), Some(FIX));
        for line in [&br#"{"class":"TPV","device":"a","mode":3}"#[..], br#"{"class":"SKY"}"#] {
            assert!(tracker.take(at(3000), Some(line)));
        }
        assert_eq!(shown(&tracker, 3000), (PositionState::Known, Some(48.1), Some(3000)));
    }

    #[test]
    fn bad_lines_are_counted_and_change_nothing() {
        let mut tracker = tracker("gpsd://");
        tracker.take(at(0), Some(FIX));
        tracker.fail("gone".to_owned());
        for line in [None, Some(&b"{"[..]), Some(br#"{"class":"TPV","mode":9}"#)] {
            assert!(!tracker.take(at(10), line));
        }
        let position = tracker.position(at(10));
        assert_eq!((position.reports, position.bad_lines), (1, 3));
        assert_eq!(position.fault.as_deref(), Some("gone"), "that is no word of a gpsd");
        assert_eq!(position.age_ms, Some(10));
        tracker.take(at(20), Some(NO_FIX));
        let position = tracker.position(at(20));
        assert_eq!((position.reports, position.fault), (2, None));
    }

    #[test]
    fn the_node_is_told_of_each_fix_once_and_once_that_there_is_none() {
        let told = |tracker: &mut Tracker| {
            let news = tracker.take_news();
            assert_eq!(tracker.take_news(), None, "once");
            news.map(|news| news.map(|located| (located.at.latitude_deg(), located.is_fixed)))
        };
        assert_eq!(told(&mut tracker("-33.9,151.2")), Some(Some((-33.9, true))));
        let mut tracker = tracker("gpsd://");
        assert_eq!(told(&mut tracker), None);
        tracker.take(at(0), Some(NO_FIX));
        assert_eq!(told(&mut tracker), None, "it does not know of any");
        for ms in [100, 200] {
            tracker.take(at(ms), Some(FIX));
            assert_eq!(told(&mut tracker), Some(Some((48.1, false))));
        }
        tracker.take(at(300), Some(br#"{"class":"SKY"}"#));
        assert_eq!(told(&mut tracker), None);
        for expected in [Some(None), None] {
            tracker.take(at(400), Some(NO_FIX));
            assert_eq!(told(&mut tracker), expected);
        }
    }

    #[test]
    fn a_fixed_value_does_not_age() {
        let tracker = tracker("-33.9,151.2");
        assert_eq!(shown(&tracker, 1 << 40), (PositionState::Known, Some(-33.9), None));
    }
}
