//! What must never happen, watched in every run: [`Rule`], and [`Violation`] when it did.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::frame::{Packet, Parcel, Trail, Trigger};
use crate::index::NodeIndex;
use crate::lan::addresses;
use crate::traffic::Numbered;
use node_lib::mac::{Mac, NodeId};
use node_lib::messages::{ETHERNET_HEADER_LEN, Message};
use node_lib::start::RADIO_MTU;
use node_lib::time::Timestamp;

/// What a checker watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// One copy of a data packet came to a node it had already been to: a forwarding loop, or a
    /// packet that was overtaken by a change of routes.
    VisitedTwice,
    /// Following the upstreams of nodes attached to one RSU leads back to where one began.
    Cycle,
    /// A node sent the same flood twice.
    FloodedTwice,
    /// A relay did not lower the hop limit.
    HopLimit,
    /// A node handed a numbered frame to its TAP twice, or one reached a client on a LAN twice.
    Doubled,
    /// A node handed to its TAP a packet that was addressed to another node, or a client's frame
    /// whose client is known to live elsewhere.
    WrongDelivery,
    /// A client's frame came back out on the side it came from, or a packet was sent back to the
    /// neighbour that had just sent it.
    Echo,
    /// A reply is not a well-formed frame.
    Malformed,
    /// A node asks to be woken all the time, or has events without end.
    Spin,
}

/// A broken [`Rule`], and all that is needed to see it again.
#[derive(Clone, Debug)]
pub struct Violation {
    /// Seed of the world.
    pub seed: u64,
    /// When.
    pub time: Timestamp,
    /// Which node did it.
    pub node: NodeIndex,
    /// Which rule.
    pub rule: Rule,
    /// The frame or packet in question.
    pub detail: String,
    /// The last lines before it.
    pub trace: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, time, node, rule, detail, trace } = self;
        for line in trace {
            writeln!(f, "    {line}")?;
        }
        write!(f, "{rule:?} at {node}, {time}, seed {seed}: {detail}")
    }
}

impl Violation {
    /// It without what led to it.
    pub fn in_a_line(&self) -> Self {
        Self { trace: Vec::new(), ..self.clone() }
    }
}

impl std::error::Error for Violation {}

/// A rule a node just broke.
#[derive(Debug)]
pub(super) struct Breach {
    pub(super) rule: Rule,
    pub(super) detail: String,
}

/// Shorthand: nothing wrong, or what.
type Checked = Result<(), Breach>;

fn ensure(holds: bool, rule: Rule, detail: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(Breach { rule, detail: detail() }) }
}

/// One broadcast domain of clients: behind one TAP that is on no LAN, or a LAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Segment {
    Tap(usize),
    Lan(usize),
}

/// Who got a numbered frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Receiver {
    /// The TAP of a node, in one life: a node that starts again has forgotten what it handed over.
    Tap(usize, u32),
    /// A client on a LAN, while the RSUs there live: one that starts again has forgotten as well.
    Client(usize, u32),
}

/// What the checkers must know of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject {
    pub(super) index: usize,
    /// Tells one life of a node from the next.
    pub(super) life: u32,
    pub(super) id: NodeId,
    pub(super) mac: Mac,
    pub(super) segment: Segment,
}

/// All checkers, and what they remember.
#[derive(Debug)]
pub(super) struct Checker {
    /// Where each client lives.
    homes: BTreeMap<Mac, Segment>,
    /// Data packets sent, by whom and to whom, and the way each went so far.
    sent: Recent<(Packet, usize, u32, Mac), Arc<Trail>>,
    /// How each packet last came to a node, for nodes that send later than they hear.
    arrived: Recent<(Packet, usize), Arc<Trail>>,
    /// Numbered frames handed out, one bit each.
    handed: BTreeMap<(Receiver, u32), Vec<u64>>,
    repeats: u64,
    /// Nodes a copy may come to again.
    pub(super) revisits_max: usize,
    /// Longest frame the radios carry.
    frame_len_max: usize,
}

impl Checker {
    pub(super) fn new() -> Self {
        Self {
            homes: BTreeMap::new(),
            sent: Recent::default(),
            arrived: Recent::default(),
            handed: BTreeMap::new(),
            repeats: 0,
            revisits_max: 0,
            frame_len_max: ETHERNET_HEADER_LEN + RADIO_MTU,
        }
    }

    /// Radios carry so many bytes behind the Ethernet header.
    pub(super) fn carry(&mut self, mtu: usize) {
        self.frame_len_max = ETHERNET_HEADER_LEN + mtu;
    }

    /// A client lives here.
    pub(super) fn settle(&mut self, client: Mac, home: Segment) {
        self.homes.insert(client, home);
    }

    /// Data packets a node sent more than once to the same neighbour: no loop, but wasted air.
    pub(super) fn repeats(&self) -> u64 {
        self.repeats
    }

    /// Forgets what cannot be under way any more; called as time passes.
    pub(super) fn forget_old(&mut self) {
        self.sent.turn();
        self.arrived.turn();
    }

    /// A packet in a frame to this address came in.
    pub(super) fn heard(&mut self, node: Subject, to: Mac, parcel: &Parcel) -> Checked {
        let Parcel { packet, trail: Some(trail), .. } = parcel else { return Ok(()) };
        if packet.is_flood || to != node.mac {
            return Ok(());
        }
        self.arrived.insert((*packet, node.index), Arc::clone(trail));
        let came_by = || Trail::nodes(Some(trail));
        let revisits = came_by().filter(|before| *before == node.index).count();
        ensure(revisits <= self.revisits_max, Rule::VisitedTwice, || {
            let way: Vec<String> = came_by().map(|n| NodeIndex(n).to_string()).collect();
            format!("{packet:?} came by {} (last first)", way.join(" "))
        })
    }

    /// A node gives a frame for the radio, perhaps because of one it heard.
    pub(super) fn sends(
        &mut self,
        node: Subject,
        frame: &[u8],
        cause: Option<Trigger<'_>>,
    ) -> Checked {
        check_wire_frame(node, frame, self.frame_len_max)?;
        let Some((packet, limit)) = Packet::of(frame) else { return Ok(()) };
        let to = addresses(frame).map_or(Mac::ZERO, |(to, _)| to);
        let relayed = cause.filter(|cause| cause.parcel.packet == packet);
        if let Some(Trigger { parcel, from }) = relayed {
            let before = parcel.limit;
            ensure(limit < before, Rule::HopLimit, || {
                format!("{packet:?} heard with {before} hops to go, sent with {limit}")
            })?;
            ensure(from != to, Rule::Echo, || {
                format!("{packet:?} back to {to}, where it came from")
            })?;
        }
        let before = match relayed {
            Some(cause) => cause.parcel.trail.clone(),
            // What goes another way from here begins a way of its own, whether or not another such
            // copy has come by here.
            None if self.is_kept(packet, node) => None,
            None => self.arrived.get(&(packet, node.index)).cloned(),
        };
        let trail = Arc::new(Trail { node: node.index, before });
        if self.sent.insert(sending(packet, node, to), trail) {
            self.repeats += 1;
            ensure(!packet.is_flood, Rule::FloodedTwice, || format!("{packet:?} to {to}"))?;
        }
        Ok(())
    }

    /// This packet goes another way, and the node has what it gave its last next hop: it took the
    /// frame from its TAP, or that came to it before.
    fn is_kept(&self, packet: Packet, node: Subject) -> bool {
        let first = Packet { is_again: false, ..packet };
        let came = || self.arrived.get(&(first, node.index)).is_some();
        packet.is_again && (packet.source == node.id || came())
    }

    /// A frame goes to the radio, which has to carry it.
    pub(super) fn is_carried(&self, frame: &[u8]) -> Checked {
        ensure(frame.len() <= self.frame_len_max, Rule::Malformed, || {
            format!("{} bytes to the radio, which carries {}", frame.len(), self.frame_len_max)
        })
    }

    /// The way a packet went so far that this node has just sent to this address.
    pub(super) fn trail_of(&self, packet: Packet, node: Subject, to: Mac) -> Option<Arc<Trail>> {
        self.sent.get(&sending(packet, node, to)).cloned()
    }

    /// A node hands a frame to its TAP.
    pub(super) fn hands_over(
        &mut self,
        node: Subject,
        frame: &[u8],
        cause: Option<Trigger<'_>>,
    ) -> Checked {
        let Some((to, from)) = addresses(frame) else {
            return ensure(false, Rule::Malformed, || format!("{} bytes to a TAP", frame.len()));
        };
        ensure(from.is_unicast(), Rule::Malformed, || format!("frame from {from} to a TAP"))?;
        ensure(self.homes.get(&from) != Some(&node.segment), Rule::Echo, || {
            format!("frame of {from}, a client on this side")
        })?;
        if let Some(packet) = cause.map(|cause| cause.parcel.packet)
            && !packet.is_flood
        {
            let destination = packet.destination;
            ensure(
                destination == node.id || destination == NodeId::NONE,
                Rule::WrongDelivery,
                || format!("packet for node {destination} handed over by {}", node.id),
            )?;
            // Towards a LAN a bridge may send what it does not know; out of an OBU it may not.
            if matches!(node.segment, Segment::Tap(_)) && !matches!(packet.kind.0, 8) {
                let home = self.homes.get(&to);
                ensure(home.is_none_or(|home| *home == node.segment), Rule::WrongDelivery, || {
                    format!("frame for {to}, which lives at {home:?}")
                })?;
            }
        }
        match Numbered::parse(frame) {
            Some(numbered) => self.received(Receiver::Tap(node.index, node.life), numbered),
            None => Ok(()),
        }
    }

    /// A numbered frame reached a TAP or a client.
    pub(super) fn received(&mut self, receiver: Receiver, numbered: Numbered) -> Checked {
        let bits = self.handed.entry((receiver, numbered.flow.0)).or_default();
        let (word, bit) = (numbered.number as usize / 64, numbered.number % 64);
        if bits.len() <= word {
            bits.resize(word + 1, 0);
        }
        let Some(word) = bits.get_mut(word) else { return Ok(()) };
        let is_new = *word >> bit & 1 == 0;
        *word |= 1 << bit;
        ensure(is_new, Rule::Doubled, || format!("{numbered:?} again at {receiver:?}"))
    }
}

/// What a packet on one hop is known by. A flood is one frame, to whomever; anything else may go to
/// two neighbours for a moment.
fn sending(packet: Packet, node: Subject, to: Mac) -> (Packet, usize, u32, Mac) {
    (packet, node.index, node.life, if packet.is_flood { Mac::ZERO } else { to })
}

fn check_wire_frame(node: Subject, frame: &[u8], len_max: usize) -> Checked {
    let malformed = |what: String| Err(Breach { rule: Rule::Malformed, detail: what });
    let Some((to, from)) = addresses(frame) else {
        return malformed(format!("{} bytes to the radio", frame.len()));
    };
    if frame.len() > len_max {
        return malformed(format!("{} bytes to the radio, which carries {len_max}", frame.len()));
    }
    if from != node.mac || to == Mac::ZERO || to == node.mac {
        return malformed(format!("frame from {from} to {to}, sent by {}", node.mac));
    }
    match Message::try_from(frame) {
        Ok(_) => Ok(()),
        Err(error) => malformed(format!("to the radio: {error}")),
    }
}

/// A map that forgets: what was put in lives through one to two [`Recent::turn`]s.
#[derive(Debug)]
struct Recent<K, V> {
    young: HashMap<K, V, FixedState>,
    old: HashMap<K, V, FixedState>,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self { young: HashMap::default(), old: HashMap::default() }
    }
}

impl<K: Eq + Hash, V> Recent<K, V> {
    /// Puts it in; true if it was there before.
    fn insert(&mut self, key: K, value: V) -> bool {
        let known = self.old.contains_key(&key);
        self.young.insert(key, value).is_some() || known
    }

    fn get(&self, key: &K) -> Option<&V> {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    fn turn(&mut self) {
        std::mem::swap(&mut self.young, &mut self.old);
        self.young.clear();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use node_lib::messages::data::ToUpstream;
    use node_lib::messages::ethernet;
    use node_lib::order::Seq;

    use super::*;

    const RSU: usize = 9;

    fn mac(index: usize) -> Mac {
        Mac([2, 0, 0, 0, 0, u8::try_from(index).unwrap()])
    }

    fn node(index: usize) -> Subject {
        let segment = Segment::Tap(index);
        Subject { index, life: 0, id: NodeId(mac(index).0), mac: mac(index), segment }
    }

    /// A frame of node 0 on a hop, the first time or again.
    fn frame(from: usize, to: usize, hop_limit: u8, again: bool) -> Vec<u8> {
        let mut frame = Vec::new();
        let ethertype = node_lib::messages::ETHERTYPE_DEFAULT;
        ethernet::Header { to: mac(to), from: mac(from), ethertype }.emit(&mut frame);
        let (destination, source) = (node(RSU).id, node(0).id);
        let (boot, priority, payload) = (1, 0, &[0; 20][..]);
        let seq = Seq(1);
        ToUpstream { destination, source, hop_limit, boot, seq, priority, again, payload }
            .emit(&mut frame);
        frame
    }

    /// Gives one hop's frame to a neighbour, because of what the sender heard, if it did.
    fn hop(
        checker: &mut Checker,
        (from, to): (usize, usize),
        (hop_limit, again): (u8, bool),
        cause: Option<(&Parcel, usize)>,
    ) -> Result<Parcel, Breach> {
        let frame = frame(from, to, hop_limit, again);
        let cause = cause.map(|(parcel, from)| Trigger { parcel, from: mac(from) });
        checker.sends(node(from), &frame, cause)?;
        let (packet, limit) = Packet::of(&frame).unwrap();
        let trail = checker.trail_of(packet, node(from), mac(to));
        let parcel = Parcel { packet, limit, trail };
        checker.heard(node(to), mac(to), &parcel)?;
        Ok(parcel)
    }

    /// Node 1 has passed it on to node 3, and sends it another way, by node 2.
    fn goes_again(checker: &mut Checker) -> Parcel {
        let first = hop(checker, (0, 1), (8, false), None).unwrap();
        hop(checker, (1, 3), (7, false), Some((&first, 0))).unwrap();
        hop(checker, (1, 2), (7, true), None).unwrap()
    }

    /// The next hop of node 2 is its source still. That has lost its next hop as well, and node 2
    /// is the new one.
    #[test]
    fn what_came_back_to_its_source_goes_another_way_from_there() {
        let mut checker = Checker::new();
        let again = goes_again(&mut checker);
        hop(&mut checker, (2, 0), (6, true), Some((&again, 1))).unwrap();
        hop(&mut checker, (0, 2), (8, true), None).unwrap();
    }

    #[test]
    fn what_is_passed_on_in_a_circle_has_one_way() {
        let mut checker = Checker::new();
        let again = goes_again(&mut checker);
        let more = hop(&mut checker, (2, 4), (6, true), Some((&again, 1))).unwrap();
        let broken = hop(&mut checker, (4, 1), (5, true), Some((&more, 2))).unwrap_err();
        assert_eq!(broken.rule, Rule::VisitedTwice);
    }
}
