//! What the radio gave up is sent once more.
//!
//! A radio of 802.11 sends a unicast frame up to seven times within milliseconds. Over a link that
//! was there a moment ago and is not now, or to a neighbour that somebody else drowns, all of them
//! are lost. The next best way, or a few milliseconds later the same one, is mostly there. So each
//! clients' frame that the radio gives up, ours or one we relay, goes another way once, or the same
//! one once, and then no more: on a channel that is full every frame costs another its place.
//!
//! That no acknowledgement came says little of the neighbour. On a full channel it is there, and to
//! leave it would cost all behind us their way: a silent neighbour is found by its
//! [watch](super::timing::Watch).

use node_lib::control::node::Replies;
use node_lib::messages::Message;
use node_lib::messages::data::{Data, Destination, ToUpstream};
use node_lib::{Mac, Timestamp};

use super::node::Obu;

impl Obu {
    /// No acknowledgement came for this frame of ours.
    pub(super) fn send_again(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        let Ok(packet) = Message::packet(frame, self.context.radio.ethertype) else { return };
        let Some(to) = frame.first_chunk().map(|to| Mac(*to)) else { return };
        match Data::read(packet) {
            Some(Data::Upstream(data)) => {
                let is_ours = data.source == self.context.id();
                if is_ours && !self.listens_to(now, data.destination) {
                    // The LAN of an RSU that we have left would take our clients to be there.
                    return;
                }
                let route = self.routes.get(&data.destination);
                let other = route.and_then(|route| route.way_beside(&self.context, now, to));
                let Some(other) = other else { return };
                // Over the same hop it may be lost once more: another way stays open to it.
                let is_other = other != to;
                let once = if is_other { &mut self.sent_again } else { &mut self.tried_again };
                if once.accept(now, data.source, data.boot, data.seq) {
                    let hop = self.hop(data.destination, other);
                    let again = data.again || is_other && self.context.policy.rerouting;
                    let data = ToUpstream { again, ..data };
                    self.context.counters.sent_again += 1;
                    self.context.radio.data(hop, data, out, &mut self.context.counters);
                }
            }
            Some(Data::Downstream(data)) => {
                // What is for all has reached most, and is not worth it.
                let is_for_one = matches!(data.destination, Destination::Node { .. });
                if is_for_one
                    && self.children.contains(now, to)
                    && self.sent_again.accept(now, data.source, data.boot, data.seq)
                {
                    self.context.counters.sent_again += 1;
                    out.wire(|again| again.extend_from_slice(frame));
                }
            }
            None => {}
        }
    }
}
