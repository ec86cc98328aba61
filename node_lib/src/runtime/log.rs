//! What an operator reads: events and counters as log lines with fields.

use std::fmt::{self, Write};

use tracing::{info, warn};

use crate::control::event::{Attachment, Event, HandOver};
use crate::control::node::Node;
use crate::device::Device;
use crate::runtime::bundler::BundleCounters;
use crate::runtime::busy_poll::BusyPollCounters;
use crate::runtime::outbox::OutboxCounters;

/// One line for something that happened to the node.
pub(super) fn event(event: &Event) {
    match event {
        Event::UpstreamChanged { from, to, cause, silence } => {
            let silence_ms = millis(silence);
            info!(from = %Place(*from), to = %Place(*to), %cause, silence_ms, "attachment changed");
        }
        Event::HandOver(done) => {
            let HandOver { from, to, cause, acknowledged, .. } = *done;
            let HandOver { lost, at_risk, doubled, sent_twice, .. } = *done;
            info!(
                from = %Place(Some(from)),
                to = %Place(to),
                %cause,
                acknowledged,
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
        Event::IdConflict { mac } => warn!(
            %mac,
            "another node uses our node id: give one of the two another with --node-id"
        ),
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
) {
    let of_bundles = list(bundles.iter());
    let of_outbox = list(outbox.iter());
    let of_busy_poll = list(busy_poll.iter());
    let of_node = list(node.counters().iter());
    let of_radio = list(radio.counters().iter());
    let of_tap = list(tap.counters().iter());
    info!(id = %node.id(), node = %of_node, radio = %of_radio, bundles = %of_bundles, outbox = %of_outbox, busy_poll = %of_busy_poll, tap = %of_tap, "counters");
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
    use crate::NodeId;

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
    fn only_counters_that_counted_are_listed() {
        let counters = [("a", 1), ("b", 0), ("c", 22)];
        assert_eq!(list(counters.into_iter()), "a=1 c=22");
    }
}
