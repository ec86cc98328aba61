//! How a message becomes a frame, and which frames are ours: [`Radio`].

use crate::control::counters::Counters;
use crate::control::event::{Limit, TooLong};
use crate::control::mss::Clamp;
use crate::control::next_hop::NextHop;
use crate::control::node::Replies;
use crate::control::path_mtu::PathMtu;
use crate::control::traffic_class;
use crate::mac::{Mac, NodeId};
use crate::messages::capacity::packet_max;
use crate::messages::control::Control;
use crate::messages::data::Data;
use crate::messages::ethernet::{self, Header};
use crate::messages::fragment::{Fragment, PartPlace, message_max};
use crate::messages::message::{Message, emit_head};
use crate::messages::packet_type::PacketType;
use crate::messages::prefix::Kind;
use crate::messages::way::RELAYS_MAX;
use crate::messages::{ETHERNET_HEADER_LEN, ParseError};
use crate::order::Boot;
use crate::time::Timestamp;

/// Relays a message may pass: as many as on the longest way down.
pub const HOP_LIMIT: u8 = RELAYS_MAX;

/// This node's end of the radio.
#[derive(Clone, Debug)]
pub struct Radio {
    /// Who we are.
    pub id: NodeId,
    /// Which start of ours this is.
    pub boot: Boot,
    /// MAC of the interface.
    pub mac: Mac,
    /// EtherType of our frames.
    pub ethertype: u16,
    /// Largest Ethernet payload it carries, in bytes.
    pub mtu: usize,
    /// The last number given to a message that was sent in fragments.
    cut_up: u32,
    path_mtu: PathMtu,
    /// The last frame dropped because of its length, until it is reported.
    too_long: Option<TooLong>,
}

/// A frame off the radio that is for us, read up to its message.
///
/// The message is read in the form its reader works with, and not as any of nine, to be copied from
/// hand to hand. That was a fifth of what an RSU does with a client's frame.
#[derive(Clone, Copy, Debug)]
pub struct Heard<'a> {
    /// The radio that sent it.
    pub from: Mac,
    /// It was sent to everybody in earshot.
    pub was_for_all: bool,
    packet: &'a [u8],
}

impl<'a> Heard<'a> {
    /// The client's frame in it, if it carries one.
    #[inline]
    pub fn data(&self) -> Option<Data<'a>> {
        Data::read(self.packet)
    }

    /// The part of a client's frame in it, if it carries one.
    pub fn fragment(&self) -> Option<Fragment<'a>> {
        match Kind::peek(self.packet) {
            Ok(Kind::Fragment) => Fragment::try_from(self.packet).ok(),
            _ => None,
        }
    }

    /// What it says, if it carries no client's frame. `None`, and counted, when it is malformed.
    pub fn control(&self, counters: &mut Counters) -> Option<Control<'a>> {
        match PacketType::try_from(self.packet) {
            Ok(PacketType::Control(control)) => {
                count_heard(&control, counters);
                Some(control)
            }
            Ok(PacketType::Data(_) | PacketType::Fragment(_)) => None,
            Err(error) => {
                count_malformed(self.from, error, counters);
                None
            }
        }
    }
}

impl Radio {
    /// The radio of a node that starts.
    pub fn new(id: NodeId, boot: Boot, mac: Mac, ethertype: u16, mtu: usize) -> Self {
        // No part of a message from before is taken for one from now.
        let cut_up = u32::from(boot.low_byte()) << 24;
        let path_mtu = PathMtu::new(false);
        Self { id, boot, mac, ethertype, mtu, cut_up, path_mtu, too_long: None }
    }

    /// With `is_on`, clients are told of each packet that takes more than one frame
    /// ([`PathMtu::new`]).
    #[must_use]
    pub fn with_pmtu_discovery(self, is_on: bool) -> Self {
        Self { path_mtu: PathMtu::new(is_on), ..self }
    }

    /// Takes a frame off the radio. `None`, and counted, when it is malformed or none of our
    /// business: sent to another node, or our own coming back.
    #[inline]
    pub fn hear<'a>(&self, frame: &'a [u8], counters: &mut Counters) -> Option<Heard<'a>> {
        // Addresses first: on a shared medium most frames are for others, and need no parsing.
        let Some((to, from)) = ethernet::addresses(frame) else {
            counters.drop_malformed += 1;
            return None;
        };
        if (to != self.mac && to != Mac::BROADCAST) || from == self.mac || !from.is_unicast() {
            counters.drop_foreign += 1;
            return None;
        }
        match Message::packet(frame, self.ethertype) {
            Ok(packet) => Some(Heard { from, was_for_all: to.is_group(), packet }),
            Err(error) => {
                count_malformed(from, error, counters);
                None
            }
        }
    }

    /// Sends a control message.
    pub fn control<'a>(
        &self,
        to: Mac,
        control: impl Into<PacketType<'a>>,
        out: &mut Replies,
        counters: &mut Counters,
    ) {
        let message = self.message(to, control.into());
        let kind = message.packet.kind();
        count(kind, message.wire_len(), counters);
        out.wire_in_class(traffic_class::of_kind(kind), |flat| message.emit(flat));
    }

    /// Sends a control frame that is ready but for being copied: `copy` appends it.
    pub fn ready(
        &self,
        kind: Kind,
        out: &mut Replies,
        counters: &mut Counters,
        copy: impl FnOnce(&mut Vec<u8>),
    ) {
        out.wire_in_class(traffic_class::of_kind(kind), |flat| {
            copy(flat);
            count(kind, flat.len(), counters);
        });
    }

    /// Tells the sender of a client's frame that came from the TAP if it is too long ([`PathMtu`])
    /// for the way that begins with this hop. If so, the frame is not to be sent; the sender makes
    /// a shorter one of it.
    #[inline]
    pub fn tell_too_big(
        &mut self,
        now: Timestamp,
        to: NextHop,
        frame: &[u8],
        out: &mut Replies,
        counters: &mut Counters,
    ) -> bool {
        let Some(answer) = self.path_mtu.answer(now, frame, self.mtu.min(to.mtu.into())) else {
            return false;
        };
        counters.too_big_told += 1;
        out.tap(|flat| answer.emit(flat));
        true
    }

    /// The last client's frame that was dropped because of its length, if that is news.
    pub fn take_too_long(&mut self) -> Option<TooLong> {
        self.too_long.take()
    }

    /// The longest packet, as it stands in messages.
    #[inline]
    pub fn said_mtu(&self) -> u16 {
        u16::try_from(self.mtu).unwrap_or(u16::MAX)
    }

    /// Sends a data frame, in fragments if the radios do not carry it in one. `false`, and counted,
    /// when they cannot carry it at all.
    #[inline]
    pub fn data<'a>(
        &mut self,
        to: NextHop,
        data: impl Into<Data<'a>>,
        out: &mut Replies,
        counters: &mut Counters,
    ) -> bool {
        let data = data.into();
        let mtu = self.mtu.min(to.mtu.into());
        if data.wire_len() > mtu {
            return self.data_in_fragments(to.mac, mtu, &data, out, counters);
        }
        if usize::from(to.mtu) < self.mtu {
            out.keep_short(to);
        }
        let class = traffic_class::of_data(data.priority());
        let head = |flat: &mut Vec<u8>| emit_head(to.mac, self.mac, self.ethertype, &data, flat);
        match self.clamp(data.payload(), counters) {
            None => out.wire_around(class, data.payload(), head),
            Some(clamp) => out.wire_in_class(class, |flat| {
                head(flat);
                append_clamped(clamp, data.payload(), flat);
            }),
        }
        true
    }

    #[cold]
    fn data_in_fragments(
        &mut self,
        to: Mac,
        mtu: usize,
        data: &Data<'_>,
        out: &mut Replies,
        counters: &mut Counters,
    ) -> bool {
        let head_len = data.head_len();
        let Some(places) = PartPlace::all(data.wire_len(), mtu) else {
            counters.drop_oversize += 1;
            let (inner, most) = (data.payload(), message_max(mtu).saturating_sub(head_len));
            self.too_long = Some(TooLong::new(inner, inner.len(), most, Limit::Fragments));
            return false;
        };
        let payload = data.payload();
        let priority = data.priority();
        let clamp = self.clamp(payload, counters);
        self.cut_up = self.cut_up.wrapping_add(1);
        counters.fragmented += 1;
        for place in places {
            counters.fragments_tx += 1;
            let range = place.range();
            let inner = range.start.saturating_sub(head_len)..range.end.saturating_sub(head_len);
            out.wire_in_class(traffic_class::of_data(priority), |flat| {
                Header { to, from: self.mac, ethertype: self.ethertype }.emit(flat);
                Fragment { priority, id: self.cut_up, place, part: &[] }.emit_head(flat);
                if place.index == 0 {
                    data.emit_head(flat);
                }
                let begin = flat.len();
                flat.extend_from_slice(payload.get(inner).unwrap_or_default());
                if let (0, Some(clamp)) = (place.index, clamp) {
                    clamp.apply(flat.get_mut(begin..).unwrap_or_default());
                }
            });
        }
        true
    }

    /// Hands a client's frame that came over the radio to the TAP.
    #[inline]
    pub fn deliver(&self, frame: &[u8], out: &mut Replies, counters: &mut Counters) {
        counters.wire_to_tap += 1;
        match self.clamp(frame, counters) {
            None => out.tap_frame(frame),
            Some(clamp) => out.tap(|flat| append_clamped(clamp, frame, flat)),
        }
    }

    /// TCP in either direction is to need one frame of this radio for each segment. The MSS in a
    /// SYN is what the other side may send, so what comes in counts as much as what goes out.
    #[inline]
    fn clamp(&self, frame: &[u8], counters: &mut Counters) -> Option<Clamp> {
        let clamp = Clamp::of(frame, packet_max(self.mtu))?;
        counters.mss_clamped += 1;
        Some(clamp)
    }

    #[inline]
    fn message<'a>(&self, to: Mac, packet: PacketType<'a>) -> Message<'a> {
        Message { to, from: self.mac, ethertype: self.ethertype, packet }
    }
}

#[cold]
fn append_clamped(clamp: Clamp, frame: &[u8], flat: &mut Vec<u8>) {
    let begin = flat.len();
    flat.extend_from_slice(frame);
    clamp.apply(flat.get_mut(begin..).unwrap_or_default());
}

#[cold]
fn count_malformed(from: Mac, error: ParseError, counters: &mut Counters) {
    counters.drop_malformed += 1;
    tracing::trace!(%from, %error, "malformed frame");
}

/// How many of a kind were sent, and heard; `None` for echoes and what carries clients' frames,
/// which are counted elsewhere.
fn sent_and_heard(kind: Kind, counters: &mut Counters) -> Option<(&mut u64, &mut u64)> {
    Some(match kind {
        Kind::Heartbeat => (&mut counters.heartbeat_tx, &mut counters.heartbeat_rx),
        Kind::HeartbeatReply => (&mut counters.reply_tx, &mut counters.reply_rx),
        Kind::Probe => (&mut counters.probe_tx, &mut counters.probe_rx),
        Kind::ProbeAnswer => (&mut counters.answer_tx, &mut counters.answer_rx),
        Kind::Withdrawal => (&mut counters.withdrawal_tx, &mut counters.withdrawal_rx),
        Kind::Announcement => (&mut counters.announcement_tx, &mut counters.announcement_rx),
        Kind::AnnouncementAck => (&mut counters.ack_tx, &mut counters.ack_rx),
        Kind::Echo | Kind::ToUpstream | Kind::ToDownstream | Kind::Fragment => return None,
    })
}

fn count_heard(control: &Control<'_>, counters: &mut Counters) {
    if let Some((_, heard)) = sent_and_heard(control.kind(), counters) {
        *heard += 1;
        counters.ctl_rx_frames += 1;
        counters.ctl_rx_bytes += (ETHERNET_HEADER_LEN + control.wire_len()) as u64;
    }
}

fn count(kind: Kind, len: usize, counters: &mut Counters) {
    let Some((sent, _)) = sent_and_heard(kind, counters) else {
        debug_assert!(kind == Kind::Echo, "data goes through Radio::data, which checks its size");
        counters.echo_tx += u64::from(kind == Kind::Echo);
        return;
    };
    *sent += 1;
    counters.ctl_tx_frames += 1;
    counters.ctl_tx_bytes += len as u64;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::ETHERTYPE_DEFAULT;
    use crate::messages::control::probe::Probe;
    use crate::messages::data::ToUpstream;
    use crate::order::Seq;

    const US: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const NEIGHBOUR: Mac = Mac([2, 0, 0, 0, 0, 2]);
    const NEXT: NextHop = NextHop { mac: NEIGHBOUR, mtu: 1500 };

    fn radio() -> Radio {
        Radio::new(US.into(), Boot(1), US, ETHERTYPE_DEFAULT, 1500)
    }

    fn probe() -> Probe {
        Probe {
            sender: NEIGHBOUR.into(),
            sender_boot: Boot(1),
            nonce: 7,
            rsu: NodeId::NONE,
            asked: NodeId::NONE,
        }
    }

    fn data(payload: &[u8]) -> ToUpstream<'_> {
        let (destination, source) = (NodeId([9; 6]), NEIGHBOUR.into());
        ToUpstream {
            destination,
            source,
            hop_limit: 1,
            boot: 1,
            seq: Seq(1),
            again: false,
            priority: 0,
            payload,
        }
    }

    fn frame<'a>(to: Mac, packet: impl Into<PacketType<'a>>) -> Vec<u8> {
        let (from, ethertype) = (NEIGHBOUR, ETHERTYPE_DEFAULT);
        (&Message { to, from, ethertype, packet: packet.into() }).into()
    }

    #[test]
    fn a_clients_frame_is_told_from_control() {
        let mut counters = Counters::default();
        let flat = frame(US, data(&[7; 60]));
        let heard = radio().hear(&flat, &mut counters).unwrap();
        assert_eq!(heard.data(), Some(Data::Upstream(data(&[7; 60]))));
        assert_eq!((heard.from, heard.was_for_all), (NEIGHBOUR, false));
        let flat = frame(Mac::BROADCAST, probe());
        let heard = radio().hear(&flat, &mut counters).unwrap();
        assert!(heard.data().is_none() && heard.was_for_all);
        assert_eq!(heard.control(&mut counters), Some(Control::Probe(probe())));
        let ctl_rx_bytes = flat.len() as u64;
        let heard = Counters { probe_rx: 1, ctl_rx_frames: 1, ctl_rx_bytes, ..Counters::default() };
        assert_eq!(counters, heard);
    }

    #[test]
    fn a_syn_asks_for_segments_that_fit_the_radio_in_either_direction() {
        use crate::control::mss::tests::syn;
        use crate::control::node::ReplyType;
        let (syn, mss_at) = syn();
        let (mut out, mut counters) = (Replies::new(), Counters::default());
        assert!(radio().data(NEXT, data(&syn), &mut out, &mut counters));
        radio().deliver(&syn, &mut out, &mut counters);
        let replies = out.take();
        let [ReplyType::WireFlat(up), ReplyType::TapFlat(down)] = &replies[..] else {
            panic!("{replies:?}");
        };
        for frame in [&up[14 + 22..], down] {
            assert_eq!(frame[mss_at..mss_at + 2], 1408_u16.to_be_bytes());
            assert_eq!(frame.len(), syn.len());
        }
        assert_eq!((counters.mss_clamped, counters.wire_to_tap), (2, 1));
        // A larger radio has room for what the host asks for.
        let radio = Radio { mtu: 1552, ..radio() };
        radio.deliver(&syn, &mut out, &mut counters);
        assert_eq!(out.take(), [ReplyType::TapFlat(syn)]);
    }

    /// The frames with this message for a neighbour whose radio has this MTU.
    fn sent<'a>(radio: &mut Radio, mtu: u16, data: impl Into<Data<'a>>) -> Vec<Vec<u8>> {
        use crate::control::node::ReplyType;
        let mut out = Replies::new();
        let to = NextHop { mac: NEIGHBOUR, mtu };
        assert!(radio.data(to, data, &mut out, &mut Counters::default()));
        let flat = |reply| match reply {
            ReplyType::WireFlat(flat) => flat,
            other => panic!("{other:?}"),
        };
        out.take().into_iter().map(flat).collect()
    }

    #[test]
    fn who_takes_less_than_our_radio_is_told_to_whoever_bundles() {
        let mut out = Replies::new();
        let mut send = |mtu| {
            let to = NextHop { mac: NEIGHBOUR, mtu };
            radio().data(to, data(&[7; 100]), &mut out, &mut Counters::default());
            out.narrow().to_vec()
        };
        assert_eq!(send(1500), []);
        for (mtu, least) in [(1400, 1400), (1200, 1200), (1300, 1200)] {
            assert_eq!(send(mtu), [NextHop { mac: NEIGHBOUR, mtu: least }]);
        }
        out.recycle();
        assert_eq!(out.narrow(), []);
    }

    #[test]
    fn no_frame_is_longer_than_either_radio_carries() {
        let payload = [7; 1400 - 22];
        for (ours, theirs, count) in
            [(1500, 1400, 1), (1500, 1399, 2), (1399, 1500, 2), (9000, 1400, 1), (1500, 300, 5)]
        {
            let mut radio = Radio { mtu: ours, ..radio() };
            let frames = sent(&mut radio, theirs, data(&payload));
            assert_eq!(frames.len(), count, "{ours} and {theirs}");
            let most = 14 + ours.min(theirs.into());
            assert!(frames.iter().all(|frame| frame.len() <= most), "{ours} and {theirs}");
        }
        assert_eq!(radio().said_mtu(), 1500);
        assert_eq!(Radio { mtu: 65_536, ..radio() }.said_mtu(), u16::MAX);
    }

    #[test]
    fn the_longest_way_goes_over_the_smallest_radio_in_fragments() {
        use crate::control::reassembly::Reassembly;
        use crate::messages::data::{Destination, ToDownstream};
        use crate::messages::{Label, Way};
        let labels = [2; 14].map(|last| Label::of(NodeId([last; 6])).0);
        let destination =
            Destination::Node { id: NodeId([9; 6]), way: Way::new(15, &labels).unwrap() };
        let source = US.into();
        // Headers of 50: from what one frame just does not carry to what eight just do.
        for len in [71, 200, 8 * 108 - 50] {
            let payload = &(0..len).map(|n| n as u8).collect::<Vec<_>>()[..];
            let down =
                ToDownstream { destination, source, boot: 1, seq: Seq(1), priority: 3, payload };
            let [whole] = &sent(&mut radio(), 1500, down)[..] else { panic!("{len}: one frame") };
            let mut reassembly = Reassembly::new();
            let mut counters = Counters::default();
            let mut heard = None;
            for frame in sent(&mut radio(), 120, down) {
                assert!(frame.len() <= 14 + 120, "{len}");
                let fragment = Fragment::try_from(&frame[14..]).unwrap();
                assert_eq!(fragment.priority, 3, "{len}");
                heard = reassembly.add(Timestamp::ZERO, &frame, &fragment, &mut counters);
            }
            assert_eq!(heard.as_ref(), Some(whole), "{len}");
        }
    }

    #[test]
    fn what_is_malformed_is_counted_once_and_what_is_for_others_is_not_read() {
        let mut counters = Counters::default();
        let mut flat = frame(US, data(&[7; 60]));
        flat.truncate(70);
        let heard = radio().hear(&flat, &mut counters).unwrap();
        assert!(heard.data().is_none() && heard.control(&mut counters).is_none());
        assert_eq!(counters.drop_malformed, 1);
        assert!(radio().hear(&flat[..13], &mut counters).is_none());
        flat[12] ^= 1;
        assert!(radio().hear(&flat, &mut counters).is_none(), "another EtherType");
        assert_eq!(counters.drop_malformed, 3);
        assert!(radio().hear(&frame(Mac([4; 6]), probe()), &mut counters).is_none());
        assert_eq!((counters.drop_malformed, counters.drop_foreign), (3, 1));
    }
}
