//! What an operator reads: events and counters as log lines with fields.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::time::Duration;

use tracing::{debug, info, warn};

use crate::control::event::{Attachment, Event, HandOver, TooLong};
use crate::control::node::Node;
use crate::control::token_bucket::TokenBucket;
use crate::device::Device;
use crate::device::signal::SignalCounters;
use crate::mac::NodeId;
use crate::runtime::busy_poll::BusyPollCounters;
use crate::time::Timestamp;
use crate::transport::bundler::BundleCounters;
use crate::transport::outbox::OutboxCounters;

/// Lines of one kind of event that are written at once.
const BURST: u32 = 10;

/// One more line of a kind may be written this often: with the burst and the summaries 26 in the
/// first minute and 16 in each further one, whatever others say.
const EVERY: Duration = Duration::from_secs(6);

/// Where the node itself goes is what an operator looks for first: one more line …
const OWN_WAYS: [&str; 2] = ["attachment changed", "hand-over done"];

/// … this often.
const OWN_WAYS_EVERY: Duration = Duration::from_secs(1);

/// The kind of event that comes with every frame of a stream: one line of it is written at once,
/// and one more …
const TOO_LONG: &str = "frame too long";

/// … this often.
const TOO_LONG_EVERY: Duration = Duration::from_secs(10);

/// How often it is said what was not written.
const SUMMARY_EVERY: Duration = Duration::from_secs(10);

/// What remote nodes and clients cause, with as many lines for each kind as a person reads. Others
/// cannot fill a disk with it, and one kind does not hide another.
#[derive(Debug, Default)]
pub(super) struct EventLog {
    kinds: BTreeMap<&'static str, Limit>,
    /// The RSU knows our clients, from this epoch on; it says so again for every change of them.
    acknowledged: Option<(NodeId, u32)>,
}

#[derive(Debug)]
struct Limit {
    lines: TokenBucket,
    /// Events since the last summary that have no line.
    more: u64,
    summary_at: Timestamp,
}

impl Limit {
    fn of(kind: &'static str) -> Self {
        let lines = match kind {
            TOO_LONG => TokenBucket::new(1, TOO_LONG_EVERY),
            kind if OWN_WAYS.contains(&kind) => TokenBucket::new(BURST, OWN_WAYS_EVERY),
            _ => TokenBucket::new(BURST, EVERY),
        };
        Self { lines, more: 0, summary_at: Timestamp::ZERO }
    }
}

impl EventLog {
    /// One line for something that happened to the node, or one more to be told of in sum. Says
    /// whether this is the first word of an RSU that it knows our clients where we are now.
    pub(super) fn event(&mut self, now: Timestamp, event: &Event) -> bool {
        if let Event::Acknowledged { rsu, epoch, attempts } = event
            && self.acknowledged.replace((*rsu, *epoch)) == Some((*rsu, *epoch))
        {
            debug!(%rsu, epoch, attempts, "change of clients acknowledged");
            return false;
        }
        if self.may_write(now, event.kind()) {
            write(event);
        }
        matches!(event, Event::Acknowledged { .. })
    }

    fn may_write(&mut self, now: Timestamp, kind: &'static str) -> bool {
        let limit = self.kinds.entry(kind).or_insert_with(|| Limit::of(kind));
        if limit.lines.take(now) {
            return true;
        }
        if limit.more == 0 {
            limit.summary_at = now + SUMMARY_EVERY;
        }
        limit.more += 1;
        false
    }

    /// Says what was not written, if it is time. Returns how many events that were.
    pub(super) fn summarize(&mut self, now: Timestamp) -> u64 {
        let due =
            self.kinds.iter_mut().filter(|(_, limit)| limit.more > 0 && limit.summary_at <= now);
        due.map(|(kind, limit)| {
            let more = std::mem::take(&mut limit.more);
            warn!(kind, more, "too many events of one kind: these have no line");
            more
        })
        .sum()
    }

    /// When there will be something to say in sum.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        let waiting = self.kinds.values().filter(|limit| limit.more > 0);
        waiting.map(|limit| limit.summary_at).min()
    }
}

fn write(event: &Event) {
    match event {
        Event::UpstreamChanged { from, to, cause, silence } => {
            let silence_ms = millis(silence);
            info!(from = %Place(*from), to = %Place(*to), %cause, silence_ms, "attachment changed");
        }
        Event::HandOver(done) => {
            let HandOver { from, to, cause, is_settled, .. } = *done;
            let HandOver { lost, at_risk, doubled, sent_twice, .. } = *done;
            info!(
                from = %Place(Some(from)),
                to = %Place(to),
                %cause,
                is_settled,
                gap_ms = millis(&done.gap),
                lost,
                at_risk,
                doubled,
                sent_twice,
                "hand-over done"
            );
        }
        Event::ObuAttached { obu, clients, epoch } => {
            info!(%obu, clients, epoch, "OBU attached");
        }
        Event::ObuDetached { obu } => info!(%obu, "OBU detached"),
        Event::Acknowledged { rsu, epoch, attempts } => {
            info!(%rsu, epoch, attempts, "announcement acknowledged");
        }
        Event::ClientHeld { client } => warn!(
            mac = %client.mac,
            vlan = client.vlan,
            "client moves too often: look for a loop, or for two machines with one address"
        ),
        Event::ObuIdConflict { obu, mac } => warn!(
            %obu, %mac,
            "two OBUs use one node id: give one of them another with --node-id"
        ),
        Event::IdConflict { mac } => warn!(
            %mac,
            "another node uses our node id: give one of the two another with --node-id"
        ),
        Event::TooFar { obu, hops_max } => warn!(
            %obu, hops_max,
            "OBU too far away: what is for it cannot be sent over so many hops"
        ),
        Event::PaceChanged { every, busy_percent } => info!(
            every_ms = millis(every),
            busy_percent,
            "heartbeats at another pace: that of the OBUs there are, and of a channel that is full"
        ),
        Event::TooLong(frame) => {
            let TooLong { from, len, most, limit } = *frame;
            warn!(%from, bytes = len, most, cure = limit.cure(), "frame too long, dropped");
        }
    }
}

fn millis(span: &std::time::Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// `RSU via UPSTREAM, n hops`, or `none`.
struct Place(Option<Attachment>);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("none"),
            Some(Attachment { rsu, hops: 0 | 1, .. }) => write!(f, "{rsu} (1 hop)"),
            Some(Attachment { rsu, upstream, hops }) => {
                write!(f, "{rsu} via {upstream} ({hops} hops)")
            }
        }
    }
}

/// One line with every counter that is not zero.
pub(super) fn counters(
    node: &impl Node,
    radio: &mut impl Device,
    tap: &mut impl Device,
    bundles: &BundleCounters,
    outbox: &OutboxCounters,
    busy_poll: &BusyPollCounters,
    signal: &SignalCounters,
) {
    let of_bundles = list(bundles.iter());
    let of_outbox = list(outbox.iter());
    let of_busy_poll = list(busy_poll.iter());
    let of_signal = list(signal.iter());
    let of_node = list(node.counters().iter());
    let of_radio = list(radio.counters().iter());
    let of_tap = list(tap.counters().iter());
    info!(
        id = %node.id(), node = %of_node, radio = %of_radio, bundles = %of_bundles,
        outbox = %of_outbox, busy_poll = %of_busy_poll, signal = %of_signal, tap = %of_tap,
        "counters"
    );
}

fn list(counters: impl Iterator<Item = (&'static str, u64)>) -> String {
    let mut text = String::new();
    for (name, value) in counters.filter(|(_, value)| *value != 0) {
        let gap = if text.is_empty() { "" } else { " " };
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{gap}{name}={value}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::event::{self, Cause};

    #[test]
    fn a_place_names_the_rsu_and_the_way() {
        let (rsu, upstream) = (NodeId([2, 0, 0, 0, 0, 1]), NodeId([2, 0, 0, 0, 0, 2]));
        assert_eq!(Place(None).to_string(), "none");
        let direct = Attachment { rsu, upstream: rsu, hops: 1 };
        assert_eq!(Place(Some(direct)).to_string(), "02:00:00:00:00:01 (1 hop)");
        let relayed = Attachment { rsu, upstream, hops: 2 };
        assert_eq!(
            Place(Some(relayed)).to_string(),
            "02:00:00:00:00:01 via 02:00:00:00:00:02 (2 hops)"
        );
    }

    #[test]
    fn each_kind_of_event_has_its_own_lines_and_the_rest_is_told_in_sum() {
        let mut log = EventLog::default();
        let kinds = ["OBU attached", "OBU detached"];
        let flood = |log: &mut EventLog, from: u64, to: u64| -> u64 {
            let moments = (from..to).map(Timestamp::from_millis);
            moments.map(|at| u64::from(log.may_write(at, kinds[0]))).sum()
        };
        assert_eq!(flood(&mut log, 0, 5000), u64::from(BURST));
        assert!(log.may_write(Timestamp::from_millis(5000), kinds[1]));
        let at = log.deadline().expect("something is to be told");
        assert_eq!(log.summarize(Timestamp::from_millis(5000)), 0, "not yet");
        assert_eq!(log.summarize(at), 5000 - u64::from(BURST));
        assert_eq!((log.deadline(), log.summarize(at)), (None, 0));
        // A flood that goes on has a line every six seconds and a sum every ten.
        assert_eq!(flood(&mut log, 80_000, 180_000), u64::from(BURST) + 16);
    }

    #[test]
    fn of_where_the_node_goes_there_is_a_line_a_second() {
        let place = Attachment { rsu: NodeId([2; 6]), upstream: NodeId([2; 6]), hops: 1 };
        let (cause, gap) = (Cause::Dead, Duration::ZERO);
        let (lost, at_risk, doubled, sent_twice) = (0, 0, 0, 0);
        let own = [
            Event::UpstreamChanged { from: None, to: Some(place), cause, silence: gap },
            Event::HandOver(HandOver {
                from: place,
                to: None,
                cause,
                is_settled: true,
                gap,
                lost,
                at_risk,
                doubled,
                sent_twice,
            }),
        ];
        assert_eq!(own.each_ref().map(Event::kind), OWN_WAYS);
        let mut log = EventLog::default();
        let moments = (0..5000).map(Timestamp::from_millis);
        let lines = moments.filter(|at| log.may_write(*at, OWN_WAYS[0])).count();
        assert_eq!(lines as u64, u64::from(BURST) + 4);
    }

    #[test]
    fn of_frames_that_are_too_long_there_is_a_line_in_ten_seconds() {
        let mut log = EventLog::default();
        let from = crate::mac::Mac([2; 6]);
        let frame = TooLong { from, len: 9014, most: 8000, limit: event::Limit::Fragments };
        let kind = Event::TooLong(frame).kind();
        let moments = (0..60_000).step_by(10).map(Timestamp::from_millis);
        assert_eq!(moments.filter(|at| log.may_write(*at, kind)).count(), 6);
    }

    #[test]
    fn only_counters_that_counted_are_listed() {
        let counters = [("a", 1), ("b", 0), ("c", 22)];
        assert_eq!(list(counters.into_iter()), "a=1 c=22");
    }
}
