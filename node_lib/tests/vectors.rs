//! The format, held against frames written by hand (`vectors/*.hex`) and against
//! `docs/wire-format.md`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, and that is all"
)]

#[path = "vectors/read.rs"]
mod read;
#[path = "vectors/tables.rs"]
mod tables;

use std::collections::BTreeSet;

use node_lib::messages::control::ack::{AckStatus, AnnouncementAck};
use node_lib::messages::control::announcement::{Announcement, Client, Clients, client_digest};
use node_lib::messages::control::echo::{Echo, Path, Verdict};
use node_lib::messages::control::heartbeat::{Heartbeat, HeartbeatReply};
use node_lib::messages::control::position::{Coordinates, Position};
use node_lib::messages::control::probe::{AnsweredRoute, Probe, ProbeAnswer};
use node_lib::messages::control::withdrawal::{NodeIds, Withdrawal};
use node_lib::messages::data::{Destination, ToDownstream, ToUpstream};
use node_lib::messages::fragment::{Fragment, PartPlace};
use node_lib::messages::{
    Cost, ETHERTYPE_DEFAULT, Kind, Label, MIN_FRAME_LEN, Message, PacketType, ParseError, Rhythm,
    Way, bundle,
};
use node_lib::{Boot, Mac, NodeId, Order, Seq};
use tables::{Row, section, source};

const fn node(last: u8) -> NodeId {
    NodeId([2, 0, 0, 0, 0, last])
}

const RSU: NodeId = node(0x01);
const RELAY: NodeId = node(0x21);
const OBU: NodeId = node(0x31);

/// What each vector says, in our words. `frame` lends the payload of the data messages.
fn meaning<'a>(name: &str, frame: &'a [u8], buffer: &'a mut Vec<u8>) -> Message<'a> {
    let heartbeat = Heartbeat {
        rsu: RSU,
        order: Order::new(3, 1000),
        rhythm: Rhythm::each(100),
        obus: 7,
        sender: RSU,
        sender_boot: Boot(3),
        hello: 1001,
        via: NodeId::NONE,
        cost: Cost::ZERO,
        mtu: 1500,
        hop_limit: 15,
        hops: 0,
        children: 0,
        stride: 0,
        position: None,
    };
    let reply = HeartbeatReply {
        rsu: RSU,
        origin: OBU,
        order: Order::new(5, 77),
        epoch: 2,
        via: RELAY,
        digest: client_digest(&clients()[..1]),
        clients: 1,
        within_ds: 15,
        at_risk_10ms: 23,
        answers: Seq(1000),
        held_100us: 13,
        mtu: 1500,
        hops: 0,
        goodbye: false,
        standby: false,
        acknowledge: false,
    };
    let probe =
        Probe { sender: OBU, sender_boot: Boot(5), nonce: 0xc0ff_ee01, rsu: RSU, asked: RELAY };
    let answer = ProbeAnswer {
        sender: RELAY,
        sender_boot: Boot(9),
        asker: OBU,
        nonce: 0xc0ff_ee01,
        mtu: 1400,
        rsu: RSU,
        route: None,
    };
    let route = AnsweredRoute {
        order: Order::new(3, 1000),
        rhythm: Rhythm::each(100),
        via: RSU,
        cost: Cost(80),
        hop_limit: 14,
        hops: 1,
        stride: 1,
    };
    let withdrawal =
        Withdrawal { sender: RELAY, sender_boot: Boot(9), goodbye: true, rsus: NodeIds::EMPTY };
    let announcement = Announcement {
        rsu: RSU,
        origin: OBU,
        order: Order::new(5, 80),
        epoch: 4,
        via: RSU,
        digest: 0,
        part: 0,
        parts: 1,
        within_ds: 10,
        at_risk_10ms: 0,
        mtu: 1500,
        hops: 0,
        standby: false,
        clients: Clients::EMPTY,
    };
    let ack = AnnouncementAck {
        destination: OBU,
        rsu: RSU,
        epoch: 3,
        seq: Seq(79),
        digest: client_digest(&clients()),
        part: 0,
        parts: 1,
        status: AckStatus::Accepted,
        way: Way::new(1, &[]).unwrap(),
    };
    let to_all = Mac::BROADCAST;
    let (to, from, packet): (Mac, NodeId, PacketType<'a>) = match name {
        "heartbeat_rsu" => (to_all, RSU, heartbeat.into()),
        "heartbeat_relayed" => {
            let relayed = Heartbeat {
                sender: node(0x22),
                sender_boot: Boot(9),
                hello: 4242,
                via: RELAY,
                cost: Cost(144),
                mtu: 1400,
                hop_limit: 13,
                hops: 2,
                children: 5,
                stride: 2,
                ..heartbeat
            };
            (to_all, NodeId([0x0a, 0x11, 0x22, 0x33, 0x44, 0x55]), relayed.into())
        }
        "heartbeat_position" => {
            let position = position(481_373_216, 115_762_504, None, 0);
            (to_all, RSU, Heartbeat { position, ..heartbeat }.into())
        }
        "heartbeat_position_relayed" => {
            let relayed = Heartbeat {
                sender: node(0x22),
                sender_boot: Boot(9),
                hello: 4242,
                via: RSU,
                cost: Cost(80),
                mtu: 1400,
                hop_limit: 14,
                hops: 1,
                position: position(-338_848_768, -431_156_608, Some(25), 1300),
                ..heartbeat
            };
            (to_all, node(0x22), relayed.into())
        }
        "heartbeat_reply" => (Mac(RELAY.0), OBU, reply.into()),
        "heartbeat_reply_goodbye" => {
            let goodbye = HeartbeatReply {
                order: Order::new(5, 78),
                digest: 0,
                clients: 0,
                held_100us: u16::MAX,
                at_risk_10ms: 0,
                hops: 1,
                goodbye: true,
                ..reply
            };
            (Mac(RSU.0), RELAY, goodbye.into())
        }
        "heartbeat_reply_standby" => {
            let standby =
                HeartbeatReply { at_risk_10ms: 0, standby: true, acknowledge: true, ..reply };
            (Mac(RELAY.0), OBU, standby.into())
        }
        "probe" => (to_all, OBU, probe.into()),
        "probe_solicitation" => {
            let (rsu, asked) = (NodeId::NONE, NodeId::NONE);
            (to_all, OBU, Probe { nonce: 0xc0ff_ee02, rsu, asked, ..probe }.into())
        }
        "probe_answer" => (Mac(OBU.0), RELAY, ProbeAnswer { route: Some(route), ..answer }.into()),
        "probe_answer_no_route" => (Mac(OBU.0), RELAY, answer.into()),
        "withdrawal" => {
            NodeIds::encode(&[RSU, node(2)], buffer);
            let rsus = NodeIds::parse(buffer).unwrap();
            (to_all, RELAY, Withdrawal { goodbye: false, rsus, ..withdrawal }.into())
        }
        "withdrawal_goodbye" => (to_all, RELAY, withdrawal.into()),
        "announcement" => {
            Clients::encode(&clients(), buffer);
            let three = Announcement {
                order: Order::new(5, 79),
                epoch: 3,
                via: RELAY,
                digest: client_digest(&clients()),
                hops: 1,
                clients: Clients::parse(buffer).unwrap(),
                ..announcement
            };
            (Mac(RSU.0), RELAY, three.into())
        }
        "announcement_standby" => {
            (Mac(RSU.0), OBU, Announcement { standby: true, ..announcement }.into())
        }
        "announcement_empty" => (Mac(RSU.0), OBU, announcement.into()),
        "announcement_ack" => (Mac(RELAY.0), RSU, ack.into()),
        "announcement_ack_stale" => {
            let stale = AnnouncementAck {
                epoch: 9,
                digest: 0xdead_beef,
                part: 2,
                parts: 3,
                status: AckStatus::StaleEpoch,
                way: Way::END,
                ..ack
            };
            (Mac(OBU.0), RSU, stale.into())
        }
        "announcement_ack_known" => {
            let known = AnnouncementAck {
                epoch: 2,
                seq: Seq(77),
                digest: client_digest(&clients()[..1]),
                status: AckStatus::Known,
                way: way(&[0x22, 0x23], buffer),
                ..ack
            };
            (Mac(RELAY.0), RSU, known.into())
        }
        "echo" | "echo_answer" => {
            let is_answer = name == "echo_answer";
            let nodes: &[NodeId] = if is_answer { &[OBU, RELAY, RSU] } else { &[OBU, RELAY] };
            buffer.extend(nodes.iter().flat_map(|node| node.0));
            let echo = Echo {
                nonce: 0xc0ff_ee03,
                target: clients()[0].mac,
                rsu: RSU,
                hop_limit: 13,
                verdict: is_answer.then_some(Verdict::Client),
                at: if is_answer { 1 } else { 2 },
                path: Path::new(buffer.as_chunks().0).unwrap(),
            };
            let (to, from) = if is_answer { (RELAY, RSU) } else { (RSU, RELAY) };
            (Mac(to.0), from, echo.into())
        }
        "fragment" => {
            let place = PartPlace { total: 118, index: 1, count: 3 };
            let part = frame.get(26..).unwrap_or_default();
            let fragment = Fragment { priority: 5, id: 0x0500_0001, place, part };
            (Mac(RSU.0), RELAY, PacketType::Fragment(fragment))
        }
        _ => data_meaning(name, frame, buffer),
    };
    Message { to, from: Mac(from.0), ethertype: ETHERTYPE_DEFAULT, packet }
}

/// The same for frames of clients, each up to where the inner frame begins.
fn data_meaning<'a>(
    name: &str,
    frame: &'a [u8],
    buffer: &'a mut Vec<u8>,
) -> (Mac, NodeId, PacketType<'a>) {
    let payload = |at: usize| frame.get(at..).unwrap_or_default();
    let down = ToDownstream {
        destination: Destination::Node { id: OBU, way: Way::new(1, &[]).unwrap() },
        source: RSU,
        boot: 3,
        seq: Seq(65_536),
        priority: 0,
        payload: payload(14 + 22),
    };
    let all = |except, hop_limit| Destination::All { except, hop_limit, taken_at: Seq(1000) };
    match name {
        "to_upstream" => {
            let up = ToUpstream {
                destination: RSU,
                source: OBU,
                hop_limit: 15,
                boot: 5,
                seq: Seq(256),
                again: false,
                priority: 0,
                payload: payload(14 + 22),
            };
            (Mac(RELAY.0), OBU, up.into())
        }
        "to_downstream" => (Mac(RELAY.0), RSU, down.into()),
        "to_downstream_labels" => {
            let way = way(&[0x22, 0x23, 0x24], buffer);
            let far = ToDownstream {
                destination: Destination::Node { id: OBU, way },
                seq: Seq(65_539),
                priority: 5,
                payload: payload(14 + 22 + 8),
                ..down
            };
            (Mac(RELAY.0), RSU, far.into())
        }
        "to_downstream_flood" => {
            let destination = all(OBU, 15);
            let payload = payload(14 + 22 + 4);
            let flood = ToDownstream { destination, seq: Seq(65_537), payload, ..down };
            (Mac::BROADCAST, RSU, flood.into())
        }
        "to_downstream_flood_all" => {
            let flood = ToDownstream {
                destination: all(NodeId::NONE, 13),
                seq: Seq(65_538),
                priority: 3,
                payload: payload(14 + 22 + 4),
                ..down
            };
            (Mac::BROADCAST, node(0x22), flood.into())
        }
        _ => panic!("{name}.hex has no meaning here yet"),
    }
}

fn position(
    latitude_e7: i32,
    longitude_e7: i32,
    accuracy_dm: Option<u16>,
    age_ms: u16,
) -> Option<Position> {
    let at = Coordinates::from_units(latitude_e7, longitude_e7, accuracy_dm).unwrap();
    Some(Position { at, age_ms })
}

/// A way past the next hop, and past these relays behind it.
fn way<'a>(relays: &[u8], buffer: &'a mut Vec<u8>) -> Way<'a> {
    buffer.extend(relays.iter().flat_map(|last| Label::of(node(*last)).0));
    Way::new(u8::try_from(1 + relays.len()).unwrap(), buffer.as_chunks().0).unwrap()
}

fn clients() -> [Client; 3] {
    [(0, 1), (0, 2), (100, 3)]
        .map(|(vlan, last)| Client { vlan, mac: Mac([2, 0, 0, 0, 0xc, last]) })
}

#[test]
fn every_vector_means_what_it_should() {
    for read::Vector { name, frame } in read::all() {
        let mut buffer = Vec::new();
        let read = Message::parse(&frame, ETHERTYPE_DEFAULT);
        assert_eq!(read, Ok(meaning(&name, &frame, &mut buffer)), "{name}");
    }
}

#[test]
fn every_vector_is_what_we_would_write() {
    for read::Vector { name, frame } in read::all() {
        let mut buffer = Vec::new();
        let message = meaning(&name, &frame, &mut buffer);
        let flat: Vec<u8> = (&message).into();
        assert_eq!(flat, frame, "{name}");
        assert_eq!(flat.capacity(), flat.len(), "{name}: one exact allocation");
        assert_eq!(message.wire_len(), frame.len(), "{name}");
        let nested: Vec<Vec<u8>> = (&message).into();
        assert_eq!(nested.concat(), frame, "{name}");
        let mut appended = vec![0xaa];
        message.emit(&mut appended);
        assert_eq!(appended.split_first(), Some((&0xaa, &frame[..])), "{name}");
        let packet: Vec<u8> = (&message.packet).into();
        assert_eq!(packet, frame[14..], "{name}");
        let packet: Vec<Vec<u8>> = (&message.packet).into();
        assert_eq!(packet.concat(), frame[14..], "{name}");
    }
}

/// The bytes of the example in `docs/wire-format.md`: four digits of offset, up to sixteen bytes,
/// then what they mean.
fn documented_example() -> Vec<u8> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/wire-format.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, example) = page.split_once("## An example").unwrap();
    let lines = example.lines().filter(|line| line.starts_with("00"));
    let bytes = lines.flat_map(|line| line[6..].split(' ').take_while(|word| word.len() == 2));
    bytes.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

#[test]
fn the_documented_example_is_its_vector() {
    let vectors = read::all();
    let vector = vectors.iter().find(|vector| vector.name == "heartbeat_relayed").unwrap();
    assert_eq!(documented_example(), vector.frame);
}

#[test]
fn every_kind_has_a_vector() {
    let seen: BTreeSet<Kind> =
        read::all().iter().map(|vector| Kind::peek(&vector.frame[14..]).unwrap()).collect();
    assert_eq!(seen, BTreeSet::from(Kind::ALL));
}

#[test]
fn every_truncation_is_refused() {
    for read::Vector { name, frame } in read::all() {
        for len in 0..frame.len() {
            let error = Message::parse(&frame[..len], ETHERTYPE_DEFAULT).unwrap_err();
            assert!(
                matches!(error, ParseError::Truncated { have, .. } if have <= len),
                "{name} cut to {len}: {error}"
            );
        }
    }
}

#[test]
fn padding_is_ignored_up_to_the_smallest_frame() {
    for read::Vector { name, frame } in read::all() {
        for byte in [0, 0xff] {
            let mut padded = frame.clone();
            while padded.len() < MIN_FRAME_LEN {
                padded.push(byte);
                let read = Message::parse(&padded, ETHERTYPE_DEFAULT);
                assert_eq!(read, Message::try_from(&frame[..]), "{name} with {}", padded.len());
            }
            padded.push(byte);
            let error = Message::parse(&padded, ETHERTYPE_DEFAULT).unwrap_err();
            assert!(matches!(error, ParseError::TrailingBytes { .. }), "{name}: {error}");
        }
    }
}

#[test]
fn one_flipped_bit_is_refused_or_read_as_something_else() {
    for read::Vector { name, frame } in read::all() {
        for bit in 0..frame.len() * 8 {
            let mut flipped = frame.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            if let Ok(message) = Message::try_from(&flipped[..]) {
                let again: Vec<u8> = (&message).into();
                // With a shorter length, the end of a smallest frame is padding.
                let all = if flipped.len() <= MIN_FRAME_LEN { again.len() } else { flipped.len() };
                assert_eq!(
                    Some(&again[..]),
                    flipped.get(..all),
                    "{name}, bit {bit}: nothing is lost on the way"
                );
            }
        }
    }
}

/// Rows of the tables in a text, whatever stands before the first `|` of a line.
fn rows(text: &str) -> Vec<Row> {
    text.lines()
        .filter_map(|line| {
            let mut cells = line.split_once('|')?.1.split('|').map(str::trim);
            let row = (cells.next()?, cells.next()?, cells.next()?);
            row.0.parse::<usize>().ok()?;
            // Another table that starts with a number has words in its second column.
            if !row.1.chars().next().is_none_or(|first| first.is_ascii_digit()) {
                return None;
            }
            Some((row.0.to_owned(), row.1.to_owned(), row.2.to_owned()))
        })
        .collect()
}

/// Where the table of a kind stands: the file, and the struct of its layout. That is in the same
/// file, but in `data.rs` for the messages of the data plane, which share one.
fn home(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Heartbeat => ("control/heartbeat.rs", "Wire"),
        Kind::HeartbeatReply => ("control/heartbeat.rs", "ReplyWire"),
        Kind::Probe => ("control/probe.rs", "Wire"),
        Kind::ProbeAnswer => ("control/probe.rs", "AnswerWire"),
        Kind::Withdrawal => ("control/withdrawal.rs", "Wire"),
        Kind::Announcement => ("control/announcement.rs", "Wire"),
        Kind::AnnouncementAck => ("control/ack.rs", "Wire"),
        Kind::Echo => ("control/echo.rs", "Wire"),
        Kind::ToUpstream => ("data/upstream.rs", "Wire"),
        Kind::ToDownstream => ("data/downstream.rs", "Wire"),
        Kind::Fragment => ("fragment.rs", "Wire"),
    }
}

/// Rows of `layout! { struct <name>: … }`, which the compiler has checked.
fn layout_rows(source: &str, name: &str) -> Vec<Row> {
    source
        .lines()
        .skip_while(|line| !line.trim_start().starts_with(&format!("struct {name}: ")))
        .skip(1)
        .map_while(|line| {
            let (offset, field) = line.trim().strip_suffix(',')?.split_once(' ')?;
            let (field, bytes) = field.split_once(": ")?;
            let field = if field == "version_type" { "type" } else { field };
            Some((offset.to_owned(), bytes.to_owned(), field.to_owned()))
        })
        .collect()
}

#[test]
fn the_document_names_each_type_and_length() {
    let document = source("../docs/wire-format.md");
    for kind in Kind::ALL {
        let (heading, text) = section(&document, kind);
        let more = if kind.is_fixed() { "" } else { " and more" };
        let need =
            format!("## {} (type {}, {} bytes{more})", kind.name(), kind.code(), kind.fixed_len());
        assert_eq!(heading, need);
        let type_row = text.lines().find(|line| line.contains("| type ")).unwrap_or_default();
        assert!(type_row.contains(&format!("`{:#04x}`", 0x20 | kind.code())), "{type_row}");
        let length_row = text.lines().find(|line| line.contains("| length ")).unwrap_or_default();
        assert!(length_row.contains(&kind.fixed_len().to_string()), "{length_row}");
    }
}

#[test]
fn the_tables_of_document_rustdoc_and_code_agree() {
    let document = source("../docs/wire-format.md");
    for kind in Kind::ALL {
        let (file, layout) = home(kind);
        let described = source(&format!("src/messages/{file}"));
        let is_data = matches!(kind, Kind::ToUpstream | Kind::ToDownstream);
        let code = if is_data { source("src/messages/data.rs") } else { described.clone() };
        let documented = rows(&section(&document, kind).1);

        let mut layout = layout_rows(&code, layout);
        // Byte 16 of the data plane has two meanings.
        let limit = if kind == Kind::ToUpstream { "hop_limit" } else { "relays" };
        for (_, _, field) in layout.iter_mut().filter(|(_, _, field)| field == "limit") {
            limit.clone_into(field);
        }
        let sizes = layout.iter().map(|(_, bytes, _)| bytes.parse::<usize>().unwrap());
        assert_eq!(sizes.sum::<usize>(), kind.fixed_len(), "{}", kind.name());
        assert_eq!(documented.get(..layout.len()), Some(&layout[..]), "{}", kind.name());

        if kind == Kind::Heartbeat {
            // What may follow has a table and a layout of its own.
            let mut end = layout_rows(&source("src/messages/control/position.rs"), "Wire");
            for (offset, ..) in &mut end {
                *offset = (offset.parse::<usize>().unwrap() + kind.fixed_len()).to_string();
            }
            assert_eq!(documented.get(layout.len()..), Some(&end[..]));
        }

        let rustdoc = rows(
            &described
                .lines()
                .filter(|line| line.starts_with("//! |"))
                .collect::<Vec<_>>()
                .join("\n"),
        );
        assert!(
            rustdoc.windows(documented.len()).any(|table| table == documented),
            "{}: {documented:#?}",
            kind.name()
        );
    }
}

#[test]
fn a_bundle_is_what_the_document_says() {
    let document = source("../docs/wire-format.md");
    let start = format!("## Bundle (type {}, {} bytes and more)", bundle::CODE, bundle::HEADER_LEN);
    let text = document.split(&start).nth(1).expect("a section of that name");
    let documented = rows(text.split("\n## ").next().unwrap());
    let code = source("src/messages/bundle.rs");
    let rustdoc: Vec<_> = code.lines().filter(|line| line.starts_with("//! |")).collect();
    assert_eq!(documented, rows(&rustdoc.join("\n")));
    assert_eq!(documented.len(), 4);

    // Two frames of the vectors in one: by hand, from the table.
    let frame = read::all().into_iter().find(|vector| vector.name == "to_upstream").unwrap().frame;
    let (ethernet, message) = frame.split_at(14);
    let length = u16::try_from(4 + 2 * message.len()).unwrap().to_be_bytes();
    let expected = [ethernet, &[0x2a, 0], &length, message, message].concat();
    let mut made = Vec::new();
    bundle::emit([&frame[..], &frame[..]], &mut made);
    assert_eq!(made, expected);
    let refused = Message::parse(&made, ETHERTYPE_DEFAULT).unwrap_err();
    assert_eq!(refused, ParseError::UnknownType { have: 10 }, "it is opened before");
}

#[test]
fn the_document_holds_the_numbers_of_the_prefix() {
    let document = source("../docs/wire-format.md");
    let prefix = document.split("## The prefix").nth(1).unwrap().split("\n## ").next().unwrap();
    let code = source("src/messages/prefix.rs");
    assert_eq!(rows(prefix), rows(&code)[..3]);
    assert_eq!(rows(prefix).last().unwrap().2, "length");
}
