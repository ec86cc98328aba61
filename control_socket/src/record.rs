//! What a daemon keeps of what happened: [`History`], bounded.

use std::collections::VecDeque;
use std::time::Duration;

use node_lib::Timestamp;
use node_lib::control::event::{Attachment, Cause, Event, HandOver};
use node_lib::control::snapshot::{KnownRoute, RouteStanding, span_ms};
use serde::{Deserialize, Serialize};

/// Upper ends of the classes of gaps, in milliseconds: the promised 50 and 300 among them.
pub const GAP_CLASSES_MS: [u64; 8] = [0, 10, 50, 100, 200, 300, 1000, u64::MAX];

/// Events kept.
pub const EVENTS_KEPT: usize = 512;

/// Changes of upstream kept.
pub const CHANGES_KEPT: usize = 256;

/// Of so many, the last ones, what there was to choose from is kept as well: a kilobyte or two
/// each, seven at most. Earlier ones are in a recording.
pub const CHOICES_KEPT: usize = 32;

/// Of what there was to choose from at a change, so many RSUs are kept, those in use first …
const ROUTES_KEPT: usize = 4;

/// … and so many candidates of each, the best first.
const CANDIDATES_KEPT: usize = 8;

/// A fault is there for so long after it was last noticed.
const FAULT_FOR: Duration = Duration::from_secs(10 * 60);

/// Kinds of faults kept; there are not so many.
const FAULTS_KEPT: usize = 16;

/// An event, when, and its number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Happened {
    /// Counts all events of the daemon: a number that is left out was missed.
    pub number: u64,
    /// When, in milliseconds since 1970.
    pub at_unix_ms: u64,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// A change of upstream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The number of its event.
    pub number: u64,
    /// When, in milliseconds since 1970.
    pub at_unix_ms: u64,
    /// Before.
    pub from: Option<Attachment>,
    /// Now.
    pub to: Option<Attachment>,
    /// Why.
    pub cause: Cause,
    /// The old upstream had been silent for so long.
    pub silence_ms: u64,
    /// What it cost, as soon as that is known.
    pub cost: Option<HandOver>,
    /// What there was to choose from, right after the decision. Empty where that is not kept any
    /// more ([`CHOICES_KEPT`]).
    pub routes: Vec<KnownRoute>,
}

/// When something happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moment {
    /// The date, in milliseconds since 1970, for people.
    pub unix_ms: u64,
    /// On a clock that nobody sets.
    pub clock: Timestamp,
}

/// A fault that was noticed, maybe often.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// How often.
    pub times: u64,
    /// The first time.
    pub first: Happened,
    /// When it was, on a clock that nobody sets: the date it had does not tell how long ago it is.
    pub began: Timestamp,
    /// When it was noticed last.
    pub noticed: Timestamp,
}

impl Fault {
    /// It was noticed so lately that it counts as there.
    pub fn is_there(&self, now: Timestamp) -> bool {
        now.since(self.noticed) < FAULT_FOR
    }
}

/// Gaps of hand-overs since the start, by class: the oldest are counted as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GapTally {
    /// All of them together, in milliseconds.
    pub sum_ms: u64,
    /// How many are in each of the classes, and in none below.
    counts: [u64; GAP_CLASSES_MS.len()],
}

impl GapTally {
    /// Counts one of so many milliseconds.
    pub fn note(&mut self, gap_ms: u64) {
        self.sum_ms = self.sum_ms.saturating_add(gap_ms);
        let class = GAP_CLASSES_MS.iter().zip(&mut self.counts).find(|(most, _)| gap_ms <= **most);
        if let Some((_, count)) = class {
            *count += 1;
        }
    }

    /// Upper end and count of each class, the shortest first.
    pub fn classes(&self) -> impl Iterator<Item = (u64, u64)> {
        GAP_CLASSES_MS.into_iter().zip(self.counts)
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// What happened, as far as there is room: the oldest goes first.
#[derive(Clone, Debug, Default)]
pub struct History {
    next: u64,
    events: VecDeque<Happened>,
    changes: VecDeque<Change>,
    faults: VecDeque<Fault>,
    gaps: GapTally,
}

impl History {
    /// So many events were missed.
    pub fn note_missed(&mut self, missed: u64) {
        self.next += missed;
    }

    /// Keeps an event; `routes`: what there was to choose from.
    pub fn note(&mut self, at: Moment, event: &Event, routes: &[KnownRoute]) -> Happened {
        let Moment { unix_ms: at_unix_ms, clock } = at;
        let number = self.next;
        self.next += 1;
        let happened = Happened { number, at_unix_ms, event: event.clone() };
        match event {
            Event::UpstreamChanged { from, to, cause, silence } => {
                let (from, to, cause) = (*from, *to, *cause);
                let silence_ms = span_ms(*silence);
                let (cost, routes) = (None, kept(routes));
                let change =
                    Change { number, at_unix_ms, from, to, cause, silence_ms, cost, routes };
                push(&mut self.changes, CHANGES_KEPT, change);
                if let Some(earlier) = self.changes.iter_mut().rev().nth(CHOICES_KEPT) {
                    earlier.routes = Vec::new();
                }
            }
            Event::HandOver(cost) => {
                // One that was cut short passes the start of its gap on to the next.
                if cost.is_settled {
                    self.gaps.note(span_ms(cost.gap));
                }
                // It is of the last change to that place that has none yet.
                let is_it = |change: &&mut Change| change.cost.is_none() && change.to == cost.to;
                if let Some(change) = self.changes.iter_mut().rev().find(is_it) {
                    change.cost = Some(*cost);
                }
            }
            _ => {}
        }
        if event.cure().is_some() {
            self.note_fault(clock, &happened);
        }
        push(&mut self.events, EVENTS_KEPT, happened.clone());
        happened
    }

    fn note_fault(&mut self, now: Timestamp, happened: &Happened) {
        let kind = happened.event.kind();
        let known = self.faults.iter_mut().find(|fault| fault.first.event.kind() == kind);
        let begins = Fault { times: 1, first: happened.clone(), began: now, noticed: now };
        match known {
            Some(fault) if fault.is_there(now) => {
                fault.times += 1;
                fault.noticed = now;
            }
            Some(fault) => *fault = begins,
            None => push(&mut self.faults, FAULTS_KEPT, begins),
        }
    }

    /// Events, the oldest first.
    pub fn events(&self) -> Vec<Happened> {
        self.events.iter().cloned().collect()
    }

    /// Changes of upstream, the oldest first.
    pub fn changes(&self) -> Vec<Change> {
        self.changes.iter().cloned().collect()
    }

    /// The change with this number.
    pub fn change(&self, number: u64) -> Option<&Change> {
        self.changes.iter().find(|change| change.number == number)
    }

    /// The change of upstream that this is, or whose cost it tells.
    pub fn change_told(&self, happened: &Happened) -> Option<&Change> {
        match &happened.event {
            Event::UpstreamChanged { .. } => self.change(happened.number),
            Event::HandOver(cost) => {
                self.changes.iter().rev().find(|change| change.cost.as_ref() == Some(cost))
            }
            _ => None,
        }
    }

    /// Gaps of all hand-overs that were settled, also of those that are not kept any more.
    pub fn gaps(&self) -> GapTally {
        self.gaps
    }

    /// Faults that were noticed, one for each kind.
    pub fn faults(&self) -> impl Iterator<Item = &Fault> {
        self.faults.iter()
    }
}

fn push<T>(queue: &mut VecDeque<T>, most: usize, item: T) {
    if queue.len() >= most {
        queue.pop_front();
    }
    queue.push_back(item);
}

fn kept(routes: &[KnownRoute]) -> Vec<KnownRoute> {
    let mut routes = routes.to_vec();
    routes.sort_by_key(|route| match route.standing {
        RouteStanding::InUse => 0,
        RouteStanding::Standby => 1,
        RouteStanding::NoUpstream => 3,
        _ => 2,
    });
    // What is left out would keep its room for as long as the change is kept.
    routes.truncate(ROUTES_KEPT);
    routes.shrink_to_fit();
    for route in &mut routes {
        route.candidates.truncate(CANDIDATES_KEPT);
        route.candidates.shrink_to_fit();
    }
    routes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

    use node_lib::control::event::{Limit, TooLong};
    use node_lib::{Mac, NodeId};

    use super::*;

    fn at(unix_ms: u64) -> Moment {
        Moment { unix_ms, clock: Timestamp::from_millis(unix_ms) }
    }

    fn place(n: u8) -> Attachment {
        let rsu = NodeId([2, 0, 0, 0, 0, n]);
        Attachment { rsu, upstream: rsu, hops: 1 }
    }

    fn change(from: u8, to: u8) -> Event {
        let (from, to) = (Some(place(from)), Some(place(to)));
        Event::UpstreamChanged { from, to, cause: Cause::Dead, silence: Duration::from_millis(240) }
    }

    #[test]
    fn what_a_change_cost_is_kept_with_it() {
        let mut history = History::default();
        let number = history.note(at(1), &change(1, 2), &[]).number;
        history.note(at(2), &change(2, 3), &[]);
        let cost = HandOver {
            from: place(1),
            to: Some(place(2)),
            cause: Cause::Dead,
            is_settled: true,
            gap: Duration::from_millis(170),
            lost: 3,
            at_risk: 1,
            doubled: 0,
            sent_twice: 0,
        };
        let told = history.note(at(3), &Event::HandOver(cost), &[]);
        assert_eq!(history.change(number).unwrap().cost, Some(cost));
        assert_eq!(history.changes()[1].cost, None);
        assert_eq!(history.change_told(&told).map(|change| change.number), Some(number));
        assert_eq!(history.changes()[1].silence_ms, 240);
        // The next one came before this was settled: its gap goes on.
        history.note(at(4), &Event::HandOver(HandOver { is_settled: false, ..cost }), &[]);
        let gaps = history.gaps();
        assert_eq!((gaps.count(), gaps.sum_ms), (1, 170));
        assert_eq!(gaps.classes().find(|(_, count)| *count > 0), Some((200, 1)));
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for_and_numbers_tell_what_was_missed() {
        let mut history = History::default();
        for n in 0..2000 {
            history.note(at(n), &change(1, 2), &[]);
        }
        history.note_missed(10);
        let last = history.note(at(0), &change(1, 2), &[]);
        assert_eq!(last.number, 2010);
        assert_eq!((history.events().len(), history.changes().len()), (EVENTS_KEPT, CHANGES_KEPT));
    }

    #[test]
    fn what_there_was_to_choose_from_is_kept_of_the_last_changes() {
        let mut history = History::default();
        let route = KnownRoute {
            rsu: NodeId([2, 0, 0, 0, 0, 2]),
            standing: RouteStanding::InUse,
            upstream: None,
            hops: None,
            heard_ms: 0,
            boot: 1,
            seq: 1,
            interval_ms: 100,
            obus: 0,
            quiet_for_ms: None,
            shunned_for_ms: None,
            is_contested: false,
            position: None,
            candidates: Vec::new(),
        };
        for n in 0..2000 {
            history.note(at(n), &change(1, 2), std::slice::from_ref(&route));
        }
        let kept: Vec<_> = history.changes().iter().map(|change| change.routes.len()).collect();
        let expected = [vec![0; CHANGES_KEPT - CHOICES_KEPT], vec![1; CHOICES_KEPT]].concat();
        assert_eq!(kept, expected);
    }

    #[test]
    fn a_fault_is_kept_once_with_how_often_it_was_noticed() {
        let mut history = History::default();
        let from = Mac([2; 6]);
        let frame = |len| TooLong { from, len, most: 1514, limit: Limit::Tap };
        for len in [2000, 3000] {
            history.note(at(7), &Event::TooLong(frame(len)), &[]);
        }
        history.note(at(8), &Event::IdConflict { mac: from }, &[]);
        history.note(at(9), &change(1, 2), &[]);
        let faults: Vec<_> = history.faults().map(|f| (f.times, f.first.event.kind())).collect();
        assert_eq!(faults, [(2, "frame too long"), (1, "another node uses our node id")]);
    }
}
