//! What holds for every message, not only for those someone thought of.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, and that is all"
)]

use node_lib::control::counters::Counters;
use node_lib::control::next_hop::NextHop;
use node_lib::control::node::{Replies, ReplyType};
use node_lib::control::radio::Radio;
use node_lib::control::reassembly::Reassembly;
use node_lib::messages::control::ack::{AckStatus, AnnouncementAck};
use node_lib::messages::control::announcement::{Announcement, Client, Clients, client_digest};
use node_lib::messages::control::echo::{Echo, Path, Verdict};
use node_lib::messages::control::heartbeat::{Heartbeat, HeartbeatReply};
use node_lib::messages::control::position::{AGE_MS_MAX, Coordinates, Position};
use node_lib::messages::control::probe::{AnsweredRoute, Probe, ProbeAnswer};
use node_lib::messages::control::withdrawal::{NodeIds, Withdrawal};
use node_lib::messages::data::{Destination, ToDownstream, ToUpstream};
use node_lib::messages::flags::{CHILDREN_MAX, STRIDE_MAX};
use node_lib::messages::fragment::{Fragment, PartPlace};
use node_lib::messages::way::{LABELS_MAX, RELAYS_MAX};
use node_lib::messages::{
    Cost, INTERVAL_MS_MAX, Kind, MAX_HOPS, Message, PACE_MAX, PacketType, ParseError, Rhythm, Way,
    bundle,
};
use node_lib::{Boot, Mac, NodeId, Order, Seq, Timestamp};
use proptest::prelude::*;

/// A message and the bytes it borrows. The fields that borrow are empty in `head`.
#[derive(Clone, Debug)]
struct Any {
    to: Mac,
    from: Mac,
    ethertype: u16,
    head: PacketType<'static>,
    tail: Vec<u8>,
}

impl Any {
    fn message(&self) -> Message<'_> {
        use node_lib::messages::control::Control;
        use node_lib::messages::data::Data;
        let packet = match self.head {
            PacketType::Control(Control::Withdrawal(head)) => {
                Withdrawal { rsus: NodeIds::parse(&self.tail).unwrap(), ..head }.into()
            }
            PacketType::Control(Control::Echo(head)) => {
                Echo { path: Path::new(self.tail.as_chunks().0).unwrap(), ..head }.into()
            }
            PacketType::Control(Control::Announcement(head)) => {
                Announcement { clients: Clients::parse(&self.tail).unwrap(), ..head }.into()
            }
            PacketType::Data(Data::Upstream(head)) => {
                ToUpstream { payload: &self.tail, ..head }.into()
            }
            PacketType::Data(Data::Downstream(head)) => {
                ToDownstream { payload: &self.tail, ..head }.into()
            }
            PacketType::Fragment(head) => {
                PacketType::Fragment(Fragment { part: &self.tail, ..head })
            }
            head => head,
        };
        Message { to: self.to, from: self.from, ethertype: self.ethertype, packet }
    }
}

fn mac() -> impl Strategy<Value = Mac> {
    any::<[u8; 6]>().prop_map(Mac)
}

fn node() -> impl Strategy<Value = NodeId> {
    any::<[u8; 6]>().prop_map(NodeId).prop_filter("a node", |&id| id != NodeId::NONE)
}

fn maybe_node() -> impl Strategy<Value = NodeId> {
    prop_oneof![1 => Just(NodeId::NONE), 4 => node()]
}

fn order() -> impl Strategy<Value = Order> {
    any::<(u32, u32)>().prop_map(|(boot, seq)| Order::new(boot, seq))
}

fn part() -> impl Strategy<Value = (u8, u8)> {
    (1..=u8::MAX).prop_flat_map(|parts| (0..parts, Just(parts)))
}

/// Sender and its upstream: who has no hops is the RSU, and has no upstream.
fn ends(rsu: NodeId, hops: u8, relay: NodeId, via: NodeId) -> (NodeId, NodeId) {
    if hops == 0 { (rsu, NodeId::NONE) } else { (relay, via) }
}

fn mtu() -> impl Strategy<Value = u16> {
    120..=u16::MAX
}

fn position() -> impl Strategy<Value = Position> {
    let latitude = -900_000_000..=900_000_000;
    let longitude = -1_800_000_000..=1_800_000_000;
    let accuracy = prop::option::of(0..u16::MAX);
    (latitude, longitude, accuracy, 0..=AGE_MS_MAX).prop_map(
        |(latitude, longitude, accuracy, age_ms)| {
            let at = Coordinates::from_units(latitude, longitude, accuracy).unwrap();
            Position { at, age_ms }
        },
    )
}

/// An interval with a pace, together no longer than an interval may be.
fn rhythm() -> impl Strategy<Value = Rhythm> {
    let of =
        |pace: u8| (1..=INTERVAL_MS_MAX >> pace).prop_map(move |tick_ms| Rhythm { tick_ms, pace });
    (0..=PACE_MAX).prop_flat_map(of)
}

fn heartbeat() -> impl Strategy<Value = Heartbeat> {
    (
        (node(), order(), rhythm(), any::<u16>()),
        (node(), any::<u32>(), any::<u32>(), node(), any::<u16>(), mtu()),
        (any::<u8>(), 0..=MAX_HOPS, 0..=CHILDREN_MAX, 0..=STRIDE_MAX),
        prop::option::of(position()),
    )
        .prop_map(
            |(
                (rsu, order, rhythm, obus),
                (sender, boot, hello, via, cost, mtu),
                (hop_limit, hops, children, stride),
                position,
            )| {
                let (sender, via) = ends(rsu, hops, sender, via);
                Heartbeat {
                    rsu,
                    order,
                    rhythm,
                    obus,
                    sender,
                    sender_boot: Boot(boot),
                    hello,
                    via,
                    cost: Cost(cost),
                    mtu,
                    hop_limit,
                    hops,
                    children,
                    stride,
                    position,
                }
            },
        )
}

/// An OBU and its upstream, which is another node.
fn edge() -> impl Strategy<Value = (NodeId, NodeId)> {
    (node(), node()).prop_filter("two nodes", |(origin, via)| origin != via)
}

fn reply() -> impl Strategy<Value = HeartbeatReply> {
    (
        (node(), edge(), order(), 1..=u16::MAX, mtu(), 0..=MAX_HOPS),
        any::<(u32, u32, u16, u32, u16, u8)>(),
        any::<(bool, bool, bool)>(),
    )
        .prop_map(
            |(
                (rsu, (origin, via), order, within_ds, mtu, hops),
                (epoch, digest, clients, answers, held_100us, at_risk_10ms),
                (goodbye, standby, acknowledge),
            )| HeartbeatReply {
                rsu,
                origin,
                order,
                epoch,
                via,
                digest,
                clients,
                within_ds,
                answers: Seq(answers),
                held_100us,
                mtu,
                at_risk_10ms,
                hops,
                goodbye,
                standby,
                acknowledge,
            },
        )
}

fn probe() -> impl Strategy<Value = Probe> {
    let fields = (node(), any::<u32>(), any::<u32>(), maybe_node(), maybe_node());
    fields.prop_map(|(sender, boot, nonce, rsu, asked)| Probe {
        sender,
        sender_boot: Boot(boot),
        nonce,
        rsu,
        asked,
    })
}

fn answer() -> impl Strategy<Value = ProbeAnswer> {
    let what = (any::<u8>(), any::<u16>(), node(), 0..=STRIDE_MAX);
    let route = (order(), rhythm(), 0..=MAX_HOPS, what).prop_map(
        |(order, rhythm, hops, (hop_limit, cost, via, stride))| AnsweredRoute {
            order,
            rhythm,
            via,
            cost: Cost(cost),
            hop_limit,
            hops,
            stride,
        },
    );
    let about =
        prop_oneof![maybe_node().prop_map(|rsu| (rsu, None)), (node(), route.prop_map(Some)),];
    (node(), any::<u32>(), node(), any::<u32>(), mtu(), about).prop_map(
        |(relay, boot, asker, nonce, mtu, (rsu, mut route))| {
            let mut sender = relay;
            if let Some(route) = &mut route {
                (sender, route.via) = ends(rsu, route.hops, relay, route.via);
            }
            ProbeAnswer { sender, sender_boot: Boot(boot), asker, nonce, mtu, rsu, route }
        },
    )
}

fn withdrawal() -> impl Strategy<Value = (PacketType<'static>, Vec<u8>)> {
    let ids = prop_oneof![Just(Vec::new()), prop::collection::vec(node(), 1..=64)];
    (node(), any::<u32>(), ids).prop_map(|(sender, boot, ids)| {
        let mut tail = Vec::new();
        NodeIds::encode(&ids, &mut tail);
        let goodbye = ids.is_empty();
        let head = Withdrawal { sender, sender_boot: Boot(boot), goodbye, rsus: NodeIds::EMPTY };
        (head.into(), tail)
    })
}

fn echo() -> impl Strategy<Value = (PacketType<'static>, Vec<u8>)> {
    const SOMEBODY: [[u8; 6]; 1] = [[2; 6]];
    let said = (any::<u32>(), node(), node(), 0..=MAX_HOPS, 0..=5_u8);
    let path = prop::collection::vec(node(), 2..=33);
    (said, path, any::<prop::sample::Index>()).prop_map(
        |((nonce, target, rsu, hop_limit, verdict), path, place)| {
            let verdict = Verdict::of(verdict);
            let at = match verdict {
                None => 1 + place.index(path.len()),
                Some(_) => place.index(path.len() - 1),
            };
            let (target, at) = (Mac(target.0), u8::try_from(at).unwrap());
            let somebody = Path::new(&SOMEBODY).unwrap();
            let head = Echo { nonce, target, rsu, hop_limit, verdict, at, path: somebody };
            (head.into(), path.iter().flat_map(|id| id.0).collect())
        },
    )
}

fn clients() -> impl Strategy<Value = Vec<Client>> {
    let unicast = mac().prop_filter("an interface", |mac| mac.is_unicast());
    let vlan = prop_oneof![Just(0), 0..5_u16, 0..=4094_u16];
    let client = (vlan, unicast).prop_map(|(vlan, mac)| Client { vlan, mac });
    prop::collection::btree_set(client, 0..=230).prop_map(|set| set.into_iter().collect())
}

fn announcement() -> impl Strategy<Value = (PacketType<'static>, Vec<u8>)> {
    let set = (clients(), any::<bool>());
    let said = (any::<u32>(), 1..=u16::MAX, mtu(), any::<u8>(), 0..=MAX_HOPS, part());
    (node(), edge(), order(), said, set).prop_map(
        |(
            rsu,
            (origin, via),
            order,
            (epoch, within_ds, mtu, at_risk_10ms, hops, (part, parts)),
            (clients, standby),
        )| {
            let mut tail = Vec::new();
            Clients::encode(&clients, &mut tail);
            let head = Announcement {
                rsu,
                origin,
                order,
                epoch,
                via,
                digest: client_digest(&clients),
                part,
                parts,
                within_ds,
                mtu,
                at_risk_10ms,
                hops,
                standby,
                clients: Clients::EMPTY,
            };
            (head.into(), tail)
        },
    )
}

/// A way with labels of its own, which live as long as the test run.
fn way() -> impl Strategy<Value = Way<'static>> {
    (0..=RELAYS_MAX, any::<[[u8; 2]; LABELS_MAX]>()).prop_map(|(relays, labels)| {
        let count = usize::from(relays.saturating_sub(1));
        let labels = Vec::leak(labels[..count].to_vec());
        Way::new(relays, labels).unwrap()
    })
}

fn ack() -> impl Strategy<Value = AnnouncementAck<'static>> {
    let status = prop::sample::select(vec![
        AckStatus::Accepted,
        AckStatus::StaleEpoch,
        AckStatus::SendAll,
        AckStatus::Known,
    ]);
    (node(), node(), any::<(u32, u32, u32)>(), part(), status, way()).prop_map(
        |(destination, rsu, (epoch, seq, digest), (part, parts), status, way)| AnnouncementAck {
            destination,
            rsu,
            epoch,
            seq: Seq(seq),
            digest,
            part,
            parts,
            status,
            way,
        },
    )
}

fn data() -> impl Strategy<Value = (PacketType<'static>, Vec<u8>)> {
    let all = (maybe_node(), any::<(u8, u32)>()).prop_map(|(except, (hop_limit, taken_at))| {
        Destination::All { except, hop_limit, taken_at: Seq(taken_at) }
    });
    let down = prop_oneof![
        Just(None),
        (node(), way()).prop_map(|(id, way)| Some(Destination::Node { id, way })),
        all.prop_map(Some),
    ];
    let payload = prop::collection::vec(any::<u8>(), 14..1600);
    (node(), down, node(), any::<(u8, u8, u32)>(), 0..=7u8, payload).prop_map(
        |(node, down, source, (hop_limit, boot, seq), priority, payload)| {
            let seq = Seq(seq);
            let head = match down {
                Some(destination) => {
                    ToDownstream { destination, source, boot, seq, priority, payload: &[] }.into()
                }
                None => {
                    let (destination, payload) = (node, &[]);
                    ToUpstream {
                        destination,
                        source,
                        hop_limit,
                        boot,
                        seq,
                        again: seq.0 & 1 != 0,
                        priority,
                        payload,
                    }
                    .into()
                }
            };
            (head, payload)
        },
    )
}

fn fragment() -> impl Strategy<Value = (PacketType<'static>, Vec<u8>)> {
    let place = (36..12_000_usize, 100..1600_usize, any::<prop::sample::Index>()).prop_filter_map(
        "more than eight",
        |(total, radio_mtu, index)| {
            let places: Vec<PartPlace> = PartPlace::all(total, radio_mtu)?.collect();
            Some(*index.get(&places))
        },
    );
    (0..=7u8, any::<(u32, u8)>(), place).prop_map(|(priority, (id, fill), place)| {
        let tail = vec![fill; place.range().len()];
        (PacketType::Fragment(Fragment { priority, id, place, part: &[] }), tail)
    })
}

fn any_message() -> impl Strategy<Value = Any> {
    let alone = |head: PacketType<'static>| (head, Vec::new());
    let packet = prop_oneof![
        heartbeat().prop_map(move |message| alone(message.into())),
        reply().prop_map(move |message| alone(message.into())),
        probe().prop_map(move |message| alone(message.into())),
        answer().prop_map(move |message| alone(message.into())),
        ack().prop_map(move |message| alone(message.into())),
        withdrawal(),
        echo(),
        announcement(),
        data(),
        fragment(),
    ];
    (mac(), mac(), any::<u16>(), packet).prop_map(|(to, from, ethertype, (head, tail))| Any {
        to,
        from,
        ethertype,
        head,
        tail,
    })
}

/// Bytes that get past the prefix, so that what comes after it is tried as well.
fn plausible() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop::sample::select(Kind::ALL.to_vec());
    (kind, any::<u8>(), prop::collection::vec(any::<u8>(), 0..200), 0..3_usize).prop_map(
        |(kind, flags, rest, short)| {
            let mut bytes = vec![0x20 | kind.code(), flags & kind.known_flags()];
            let length = if kind.is_fixed() {
                kind.fixed_len()
            } else if kind == Kind::Heartbeat && short > 0 {
                // One of the two lengths it may have, which chance seldom finds.
                if short == 1 { 48 } else { 60 }
            } else {
                4 + rest.len() - short.min(rest.len())
            };
            bytes.extend(u16::try_from(length).unwrap().to_be_bytes());
            bytes.extend(
                rest.iter().copied().chain(std::iter::repeat(0)).take(length.saturating_sub(4)),
            );
            bytes
        },
    )
}

/// Whatever is accepted is written the way it came.
fn nothing_is_lost(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(packet) = PacketType::try_from(bytes) {
        let flat: Vec<u8> = (&packet).into();
        prop_assert_eq!(Some(&flat[..]), bytes.get(..packet.wire_len()));
    }
    Ok(())
}

/// Each type refuses what is another's and agrees with the dispatch about its own.
fn types_agree(bytes: &[u8]) -> Result<(), TestCaseError> {
    fn one<'a, T>(bytes: &'a [u8], kind: Kind) -> Result<(), TestCaseError>
    where
        T: TryFrom<&'a [u8], Error = ParseError> + Into<PacketType<'a>>,
    {
        let alone = T::try_from(bytes).map(Into::into);
        if Kind::peek(bytes) == Ok(kind) {
            prop_assert_eq!(alone, PacketType::try_from(bytes));
        } else {
            prop_assert!(alone.is_err());
        }
        Ok(())
    }
    one::<Heartbeat>(bytes, Kind::Heartbeat)?;
    one::<HeartbeatReply>(bytes, Kind::HeartbeatReply)?;
    one::<Probe>(bytes, Kind::Probe)?;
    one::<ProbeAnswer>(bytes, Kind::ProbeAnswer)?;
    one::<Withdrawal<'_>>(bytes, Kind::Withdrawal)?;
    one::<Announcement<'_>>(bytes, Kind::Announcement)?;
    one::<AnnouncementAck<'_>>(bytes, Kind::AnnouncementAck)?;
    one::<Echo<'_>>(bytes, Kind::Echo)?;
    one::<ToUpstream<'_>>(bytes, Kind::ToUpstream)?;
    one::<ToDownstream<'_>>(bytes, Kind::ToDownstream)?;
    if Kind::peek(bytes) != Ok(Kind::Fragment) {
        prop_assert!(Fragment::try_from(bytes).is_err());
    }
    Ok(())
}

proptest! {
    #[test]
    fn parse_undoes_emit(any in any_message()) {
        let message = any.message();
        let flat: Vec<u8> = (&message).into();
        prop_assert_eq!(Message::parse(&flat, any.ethertype), Ok(message));
        prop_assert_eq!(flat.len(), message.wire_len());
        prop_assert_eq!(flat.capacity(), flat.len());
        let error = Message::parse(&flat, !any.ethertype).unwrap_err();
        let need = ParseError::EtherType { need: !any.ethertype, have: any.ethertype };
        prop_assert_eq!(error, need);
    }

    #[test]
    fn the_three_forms_are_one(
        any in any_message(),
        before in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let message = any.message();
        let flat: Vec<u8> = (&message).into();
        let nested: Vec<Vec<u8>> = (&message).into();
        prop_assert_eq!(&nested.concat(), &flat);
        prop_assert!(nested.iter().all(|part| !part.is_empty()));
        let mut appended = before.clone();
        message.emit(&mut appended);
        prop_assert_eq!(appended, [before, flat].concat());
    }

    #[test]
    fn padding_changes_nothing(any in any_message(), byte in any::<u8>()) {
        let message = any.message();
        let mut flat: Vec<u8> = (&message).into();
        flat.resize(flat.len().max(60), byte);
        prop_assert_eq!(Message::try_from(&flat[..]), Ok(message));
        flat.push(byte);
        prop_assert!(Message::try_from(&flat[..]).is_err());
    }

    #[test]
    fn a_shorter_message_is_refused(any in any_message(), at in any::<prop::sample::Index>()) {
        let flat: Vec<u8> = (&any.message()).into();
        prop_assert!(Message::try_from(&flat[..at.index(flat.len())]).is_err());
    }

    #[test]
    fn clients_come_out_as_they_went_in(clients in clients(), room in 0..1500_usize) {
        let mut groups = Vec::new();
        Clients::encode(&clients, &mut groups);
        prop_assert_eq!(groups.len(), Clients::encoded_len(&clients));
        let read = Clients::parse(&groups).unwrap();
        prop_assert_eq!(read.len(), clients.len());
        prop_assert_eq!(read.iter().collect::<Vec<_>>(), &clients[..]);
        let fitting = Clients::fitting(&clients, room);
        prop_assert!(Clients::encoded_len(&clients[..fitting]) <= room);
        if let Some(more) = clients.get(..=fitting) {
            prop_assert!(Clients::encoded_len(more) > room);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Message::try_from(&bytes[..]);
        nothing_is_lost(&bytes)?;
        types_agree(&bytes)?;
    }

    #[test]
    fn plausible_bytes_never_panic(bytes in plausible()) {
        nothing_is_lost(&bytes)?;
        types_agree(&bytes)?;
    }

    #[test]
    fn flipped_bits_never_panic(
        any in any_message(),
        flips in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
    ) {
        let mut packet: Vec<u8> = (&any.message().packet).into();
        for flip in flips {
            let bit = flip.index(packet.len() * 8);
            packet[bit / 8] ^= 1 << (bit % 8);
        }
        nothing_is_lost(&packet)?;
        types_agree(&packet)?;
    }
}

proptest! {
    #[test]
    fn frames_in_bundles_come_out_as_they_went_in(
        tails in prop::collection::vec(
            (0..3u8, prop::collection::vec(any::<u8>(), 14..400)),
            1..40,
        ),
        frame_max in 60..1600usize,
    ) {
        let upstream = |(to, payload): &(u8, Vec<u8>)| {
            let (destination, source) = (NodeId([2; 6]), NodeId([3; 6]));
            let (hop_limit, boot, seq, again, priority) = (1, 0, Seq(0), false, 0);
            let data =
                ToUpstream { destination, source, hop_limit, boot, seq, again, priority, payload };
            let (to, from) = (Mac([*to; 6]), Mac([9; 6]));
            Vec::from(&Message { to, from, ethertype: 0x88b5, packet: data.into() })
        };
        let frames: Vec<Vec<u8>> = tails.iter().map(upstream).collect();
        let (mut left, mut out) = (&frames[..], Vec::new());
        while !left.is_empty() {
            let count = bundle::fitting(frame_max, left.iter().map(Vec::as_slice));
            let (run, rest) = left.split_at(count);
            left = rest;
            if let [one] = run {
                out.push(one.clone());
                continue;
            }
            let mut bundled = Vec::new();
            bundle::emit(run.iter().map(Vec::as_slice), &mut bundled);
            prop_assert!(bundled.len() <= frame_max);
            let mut messages = bundle::Messages::open(&bundled).unwrap();
            while let Some(message) = messages.next_in(&bundled) {
                out.push([&bundled[..14], &bundled[message.unwrap()]].concat());
            }
        }
        prop_assert_eq!(out, frames);
    }

    #[test]
    fn no_bytes_make_a_bundle_panic_or_go_on_for_ever(
        mut frame in prop::collection::vec(any::<u8>(), 0..200),
        is_headed in any::<bool>(),
    ) {
        if is_headed && let Some(rest) = frame.len().checked_sub(14) {
            let length = u16::try_from(rest).unwrap().to_be_bytes();
            for (to, from) in frame.iter_mut().skip(14).zip([0x2a, 0, length[0], length[1], 0x28]) {
                *to = from;
            }
        }
        if let Ok(mut messages) = bundle::Messages::open(&frame) {
            let mut end = 18;
            while let Some(next) = messages.next_in(&frame) {
                let Ok(range) = next else { continue };
                prop_assert_eq!(range.start, end);
                end = range.end;
            }
            prop_assert!(end <= frame.len());
        }
    }
}

/// What a radio with this MTU sends for a client's frame.
fn sent(radio: &mut Radio, seq: u32, payload: &[u8]) -> Vec<Vec<u8>> {
    let (destination, source) = (NodeId([2; 6]), NodeId([3; 6]));
    let (hop_limit, boot, seq, priority) = (9, 1, Seq(seq), 0);
    let data =
        ToUpstream { destination, source, hop_limit, boot, seq, again: false, priority, payload };
    let mut out = Replies::new();
    radio.data(
        NextHop { mac: Mac([2; 6]), mtu: u16::MAX },
        data,
        &mut out,
        &mut Counters::default(),
    );
    let flat = |reply| match reply {
        ReplyType::WireFlat(flat) => flat,
        other => panic!("{other:?}"),
    };
    out.take().into_iter().map(flat).collect()
}

proptest! {
    /// In any order, with copies and losses: what comes out was sent.
    #[test]
    fn only_what_was_sent_comes_out_of_fragments(
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 14..3000), 1..4),
        radio_mtu in 420..1500_usize,
        order in prop::collection::vec(any::<prop::sample::Index>(), 1..60),
    ) {
        let mac = Mac([4; 6]);
        let mut radio = Radio::new(mac.into(), Boot(1), mac, 0x88b5, radio_mtu);
        let mut large = Radio::new(mac.into(), Boot(1), mac, 0x88b5, 60_000);
        let mut wholes = Vec::new();
        let mut pieces = Vec::new();
        for (seq, payload) in (0..).zip(&payloads) {
            let frames = sent(&mut radio, seq, payload);
            prop_assert!(frames.iter().all(|frame| frame.len() <= 14 + radio_mtu));
            pieces.extend(frames.into_iter().map(|frame| (seq, frame)));
            wholes.extend(sent(&mut large, seq, payload));
        }
        let mut reassembly = Reassembly::new();
        let mut counters = Counters::default();
        let mut got: Vec<Vec<u8>> = Vec::new();
        for index in &order {
            let (_, frame) = index.get(&pieces);
            let Ok(PacketType::Fragment(fragment)) = PacketType::try_from(&frame[14..]) else {
                continue;
            };
            let whole = reassembly.add(Timestamp::ZERO, frame, &fragment, &mut counters);
            got.extend(whole);
        }
        prop_assert!(got.iter().all(|frame| wholes.contains(frame)));
        prop_assert!(reassembly.len() <= 8);
        // And with nothing in the way, everything.
        for (seq, whole) in (0..).zip(&wholes) {
            let mine = pieces.iter().filter(|(of, _)| *of == seq);
            let mut reassembly = Reassembly::new();
            let mut out = Vec::new();
            for (_, frame) in mine {
                match PacketType::try_from(&frame[14..]).unwrap() {
                    PacketType::Fragment(fragment) => {
                        let now = Timestamp::ZERO;
                        out.extend(reassembly.add(now, frame, &fragment, &mut counters));
                    }
                    _ => out.push(frame.clone()),
                }
            }
            prop_assert_eq!(&out, std::slice::from_ref(whole));
        }
    }
}
