//! Every change of upstream or RSU, and what clients saw of it: [`HandOverRecord`].

use std::collections::BTreeMap;
use std::time::Duration;

use node_lib::control::event::{self, Attachment, Cause, Event};
use node_lib::{NodeId, Timestamp};
use sim::{ClientIndex, NodeIndex};

use super::flows::{Frame, Frames, millis};
use super::record::{End, HandOverRecord, Lost, OwnRecord};
use crate::cast::To;
use crate::watch::LostTo;

/// How far from a change a lost frame still belongs to it.
const WINDOW: Duration = Duration::from_secs(1);

/// A change while it is noted.
#[derive(Clone, Debug)]
pub(super) struct UpstreamChange {
    node: NodeIndex,
    begins: Timestamp,
    /// When the OBU had an upstream again.
    ends: Option<Timestamp>,
    cause: Cause,
    from: Attachment,
    to: Option<Attachment>,
    silence: Duration,
    own: Option<OwnRecord>,
}

/// Changes of all OBUs so far.
#[derive(Debug, Default)]
pub(super) struct Changes {
    all: Vec<UpstreamChange>,
    /// The change each OBU without an upstream is in.
    open: BTreeMap<NodeIndex, usize>,
}

impl Changes {
    pub(super) fn note(&mut self, time: Timestamp, node: NodeIndex, event: &Event) {
        let (from, to, cause, silence) = match event {
            Event::UpstreamChanged { from, to, cause, silence } => (from, to, cause, silence),
            Event::HandOver(record) => return self.note_own(node, record),
            _ => return,
        };
        match (*from, *to) {
            (Some(from), to) => {
                let ends = to.map(|_| time);
                if to.is_none() {
                    self.open.insert(node, self.all.len());
                }
                let (cause, silence) = (*cause, *silence);
                let begins = time;
                self.all.push(UpstreamChange {
                    node,
                    begins,
                    ends,
                    cause,
                    from,
                    to,
                    silence,
                    own: None,
                });
            }
            (None, Some(to)) => {
                let open = self.open.remove(&node).and_then(|index| self.all.get_mut(index));
                if let Some(change) = open {
                    (change.ends, change.to) = (Some(time), Some(to));
                }
            }
            (None, None) => {}
        }
    }

    /// The OBU wrote down what a change was like: the latest of its kind that has no record yet.
    fn note_own(&mut self, node: NodeIndex, record: &event::HandOver) {
        let is_it = |change: &&mut UpstreamChange| {
            change.node == node && change.from == record.from && change.cause == record.cause
        };
        let change = self.all.iter_mut().rev().find(is_it).filter(|change| change.own.is_none());
        if let Some(change) = change {
            change.own = Some(OwnRecord {
                is_settled: record.is_settled,
                gap_ms: millis(record.gap),
                lost: record.lost,
                at_risk: record.at_risk,
                doubled: record.doubled,
                sent_twice: record.sent_twice,
            });
        }
    }

    /// Changes that began at this time or later.
    pub(super) fn since(self, start: Timestamp) -> Vec<UpstreamChange> {
        self.all.into_iter().filter(|change| change.begins >= start).collect()
    }
}

impl UpstreamChange {
    /// From the moment the old upstream was left to the moment there was another.
    fn distance(&self, time: Timestamp) -> Duration {
        let end = self.ends.unwrap_or(time.max(self.begins));
        self.begins.since(time).max(time.since(end))
    }
}

/// What clients saw of one change.
#[derive(Clone, Debug, Default)]
struct Seen {
    frames: u64,
    lost: Lost,
    doubled: u64,
    sent_twice: u64,
    gap: Duration,
    gap_by_routing: Duration,
}

/// A run of lost frames of one flow while it lasts.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// When the first of them was sent.
    since: Timestamp,
    /// When the frame after the last of them was due.
    until: Timestamp,
    /// The change it belongs to: that which was near when it began.
    change: usize,
}

/// Notes a lost frame in a run, which begins with it if there is none.
fn extend(cut: &mut Option<Cut>, sent: Timestamp, every: Duration, change: usize) {
    let cut = cut.get_or_insert(Cut { since: sent, until: sent, change });
    cut.until = sent + every;
}

/// A record of each change, in the order of time.
pub(super) fn records(frames: &Frames<'_>, changes: &[UpstreamChange]) -> Vec<HandOverRecord> {
    let mut of_node: BTreeMap<NodeIndex, Vec<usize>> = BTreeMap::new();
    for (index, change) in changes.iter().enumerate() {
        of_node.entry(change.node).or_default().push(index);
    }
    let mut seen = vec![Seen::default(); changes.len()];
    for (flow, index, log) in frames.flows() {
        let To::Client(to) = flow.to else { continue };
        let ends = [frames.cast.vehicle_of(flow.from), frames.cast.vehicle_of(to)];
        let mut near: Vec<usize> =
            ends.iter().flatten().filter_map(|node| of_node.get(node)).flatten().copied().collect();
        near.sort_unstable_by_key(|&change| changes.get(change).map(|change| change.begins));
        if !near.is_empty() {
            let doubled = log.doubled(ClientIndex(to));
            let sent = frames.of(flow, index, log, ClientIndex(to));
            look_at_flow(changes, &near, sent, doubled, flow.every, &mut seen);
        }
    }
    let both = changes.iter().zip(seen);
    both.map(|(change, seen)| record(frames, change, seen)).collect()
}

fn look_at_flow(
    changes: &[UpstreamChange],
    near: &[usize],
    frames: impl Iterator<Item = Frame>,
    doubled: &[u32],
    every: Duration,
    seen: &mut [Seen],
) {
    let (mut cut, mut cut_by_routing) = (None, None);
    for (number, frame) in (0_u32..).zip(frames) {
        let nearest = nearest(changes, near, frame.sent);
        match (frame.lost, nearest) {
            (Some(lost), Some(change)) => {
                extend(&mut cut, frame.sent, every, change);
                if lost.is_by_routing() {
                    extend(&mut cut_by_routing, frame.sent, every, change);
                } else if lost == LostTo::Distance {
                    finish(&mut cut_by_routing, seen, |seen| &mut seen.gap_by_routing);
                }
            }
            _ => {
                finish(&mut cut, seen, |seen| &mut seen.gap);
                finish(&mut cut_by_routing, seen, |seen| &mut seen.gap_by_routing);
            }
        }
        let Some(seen) = nearest.and_then(|index| seen.get_mut(index)) else { continue };
        seen.frames += 1;
        seen.sent_twice += u64::from(frame.sent_twice);
        seen.doubled += u64::from(doubled.contains(&number));
        if let Some(lost) = frame.lost {
            seen.lost.count(lost);
        }
    }
    finish(&mut cut, seen, |seen| &mut seen.gap);
    finish(&mut cut_by_routing, seen, |seen| &mut seen.gap_by_routing);
}

/// Ends a run: it may be the longest of its change.
fn finish(cut: &mut Option<Cut>, seen: &mut [Seen], longest: fn(&mut Seen) -> &mut Duration) {
    let Some(Cut { since, until, change }) = cut.take() else { return };
    if let Some(longest) = seen.get_mut(change).map(longest) {
        *longest = (*longest).max(until.since(since));
    }
}

/// The change, of those named, that is nearest to a time and no farther than the window.
fn nearest(changes: &[UpstreamChange], near: &[usize], time: Timestamp) -> Option<usize> {
    let distance = |&index: &usize| Some((changes.get(index)?.distance(time), index));
    // In the order of their beginnings: the one before and the one after are enough.
    let after = near
        .partition_point(|&index| changes.get(index).is_some_and(|change| change.begins <= time));
    let first = after.saturating_sub(2);
    let around = near.get(first..(after + 1).min(near.len())).unwrap_or_default();
    let (distance, index) = around.iter().filter_map(distance).min()?;
    (distance <= WINDOW).then_some(index)
}

fn record(frames: &Frames<'_>, change: &UpstreamChange, seen: Seen) -> HandOverRecord {
    let cast = frames.cast;
    let name = |id: NodeId| {
        let node = cast.node_of(node_lib::Mac(id.0));
        node.map_or_else(|| id.to_string(), |node| cast.name(node).to_owned())
    };
    let end = |to: Attachment| End { rsu: name(to.rsu), via: name(to.upstream), hops: to.hops };
    let gap = |gap: Duration| (seen.frames > 0).then(|| millis(gap));
    HandOverRecord {
        obu: cast.name(change.node).to_owned(),
        time_s: change.begins.as_micros() as f64 / 1e6,
        cause: change.cause.as_str(),
        from: end(change.from),
        to: change.to.map(end),
        rsu_changed: change.to.is_some_and(|to| to.rsu != change.from.rsu),
        silence_ms: millis(change.silence),
        without_ms: change.ends.map(|end| millis(end.since(change.begins))),
        frames: seen.frames,
        lost: seen.lost,
        doubled: seen.doubled,
        sent_twice: seen.sent_twice,
        gap_ms: gap(seen.gap),
        gap_by_routing_ms: gap(seen.gap_by_routing),
        own: change.own,
    }
}
