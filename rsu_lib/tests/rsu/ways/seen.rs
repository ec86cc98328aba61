//! What a conversation shows of ways, and the words that change them.

use node_lib::messages::control::Control;
use node_lib::messages::control::ack::AckStatus;
use node_lib::messages::control::heartbeat::HeartbeatReply;
use node_lib::messages::data::Destination;
use node_lib::messages::way::Next;
use node_lib::messages::{Label, Way};
use node_lib::{Mac, NodeId};

use crate::talk::{SERVER, Talk, US, id};

/// Another relay.
pub(crate) const OTHER: Mac = Mac([2, 0, 0, 0, 0, 0x1f]);

/// What the relays find on this way, each in its turn.
pub(crate) fn steps(way: Way<'_>) -> Vec<Next> {
    let mut steps = Vec::new();
    let mut left = way;
    while let Some((next, beyond)) = left.next() {
        steps.push(next);
        left = beyond;
    }
    steps
}

/// Whom a frame was sent to, whom it is for, and what the relays find on its way.
pub(crate) type Sent = (Mac, NodeId, Vec<Next>);

/// To this OBU past these relays and no others.
pub(crate) fn past(relays: &[Mac], obu: Mac) -> Sent {
    let first = *relays.first().unwrap_or(&obu);
    let labels = relays.iter().skip(1).map(|relay| Next::Labelled(Label::of(id(*relay))));
    (first, id(obu), labels.chain(relays.first().map(|_| Next::Destination)).collect())
}

/// How clients' frames were sent down, each to one OBU.
pub(crate) fn sent(t: &Talk) -> Vec<Sent> {
    let way = |destination| match destination {
        Destination::Node { id, way } => (id, steps(way)),
        other => panic!("{other:?}"),
    };
    let sent = t.sent_down().into_iter().map(|(to, destination)| (to, way(destination)));
    sent.map(|(to, (obu, steps))| (to, obu, steps)).collect()
}

/// How a frame from the LAN for this client is sent down now.
pub(crate) fn sent_to(t: &mut Talk, client: Mac) -> Vec<Sent> {
    t.clear();
    t.tap(SERVER, client);
    sent(t)
}

/// Which words were answered, and how the answers were sent down.
pub(crate) fn answers(t: &Talk) -> Vec<(AckStatus, Sent)> {
    t.each(|to, control| match control {
        Control::AnnouncementAck(ack) => Some((ack.status, (to, ack.destination, steps(ack.way)))),
        _ => None,
    })
}

/// The next word of an attached OBU with these clients: that this is its upstream, and that it
/// wants to hear that the RSU knows. Nobody has heard it yet.
pub(crate) fn word(t: &mut Talk, obu: Mac, via: Mac, macs: &[Mac]) -> HeartbeatReply {
    let said = t.words(obu, 1, macs);
    let hops = u8::from(via != US);
    HeartbeatReply { via: id(via), hops, acknowledge: true, ..t.reply_of(&said) }
}

/// An attached OBU with these clients has another upstream, and says so.
pub(crate) fn moves(t: &mut Talk, obu: Mac, via: Mac, macs: &[Mac]) {
    t.moves(obu, via);
    let word = word(t, obu, via, macs);
    t.bring(obu, word.into());
}

/// Made up, or just many.
pub(crate) fn stranger(n: u16) -> Mac {
    Mac([2, 0, 0, 9, (n >> 8) as u8, n as u8])
}
