//! The Wireshark dissector, `packaging/wireshark/v2x.lua`, held against the parser: what it shows
//! of each vector, what it makes of frames that were cut, changed, bundled and fragmented, and
//! whether it knows each field of the document.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, and that is all"
)]

mod meaning;
#[path = "../vectors/read.rs"]
mod read;
#[path = "../vectors/tables.rs"]
mod tables;
mod tshark;

use std::collections::{BTreeMap, BTreeSet};

use node_lib::messages::fragment::{Fragment, PartPlace};
use node_lib::messages::{ETHERTYPE_DEFAULT, Kind, Message, ParseError, bundle};
use serde_json::Value;
use tables::{Row, section, source};
use tshark::{Captured, Shown, each, fields, layers, messages};

/// Shown of every message, and held against its table row by row.
const PREFIX: [&str; 5] =
    ["v2x.version", "v2x.type", "v2x.flags", "v2x.flags.key_slot", "v2x.length"];

/// Zero, or it would have been refused.
const ALWAYS_ZERO: [&str; 2] = ["v2x.reserved", "v2x.label_padding"];

fn captured(frames: impl IntoIterator<Item = Vec<u8>>) -> Vec<Captured> {
    frames.into_iter().map(Captured::from).collect()
}

fn vector(name: &str) -> Vec<u8> {
    read::all().into_iter().find(|vector| vector.name == name).unwrap().frame
}

/// All vectors, each with the fields that are shown of its one message.
fn shown() -> Vec<(read::Vector, BTreeMap<String, Vec<Shown>>)> {
    let vectors = read::all();
    let frames = captured(vectors.iter().map(|vector| vector.frame.clone()));
    let layers = layers(&frames, &[]);
    assert_eq!(layers.len(), vectors.len());
    let shown = layers.iter().map(|layers| {
        let [message] = messages(layers)[..] else { panic!("one message: {layers:#}") };
        fields(message)
    });
    vectors.into_iter().zip(shown).collect()
}

/// What the daemons make of a frame: of each message in it, if it is a bundle.
fn judged(frame: &[u8]) -> Result<(), ParseError> {
    if !bundle::is_bundle(frame) {
        return Message::parse(frame, ETHERTYPE_DEFAULT).map(drop);
    }
    let mut messages = bundle::Messages::open(frame)?;
    while let Some(range) = messages.next_in(frame) {
        Message::parse(&[&frame[..14], &frame[range?]].concat(), ETHERTYPE_DEFAULT)?;
    }
    Ok(())
}

/// For each frame whether it is marked as malformed and as cut. What goes wrong in the dissector
/// itself is an error.
fn marks(frames: &[Captured]) -> Vec<(bool, bool)> {
    let wanted = ["v2x.malformed", "v2x.cut", "_ws.lua.error", "_ws.malformed"];
    let mut flags = vec!["-T", "fields", "-E", "separator=;"];
    flags.extend(wanted.iter().flat_map(|field| ["-e", field]));
    let printed = tshark::tshark(frames, &flags);
    let marks: Vec<_> = printed
        .lines()
        .map(|line| {
            let cells: Vec<_> = line.split(';').map(|cell| !cell.is_empty()).collect();
            assert!(!cells[2], "an error of the dissector: {line}");
            (cells[0], cells[1])
        })
        .collect();
    assert_eq!(marks.len(), frames.len());
    marks
}

/// The rows of all tables of fields in a section, also of fields without a place of their own.
fn table_rows(section: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut is_table = false;
    for line in section.lines() {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        match cells[..] {
            ["", "offset", "bytes", "field", ..] => is_table = true,
            ["", offset, bytes, field, ..] if is_table && !offset.starts_with('-') => {
                rows.push((offset.to_owned(), bytes.to_owned(), field.to_owned()));
            }
            ["", ..] if cells.len() > 1 => {}
            _ => is_table = false,
        }
    }
    rows
}

/// The name in the dissector of a row of the document. Most have one name in all messages, so that
/// one filter finds them in all; `payload` is another protocol.
fn name_of(kind: Kind, row: &str) -> String {
    match (kind, row) {
        (_, "labels") => "v2x.label".into(),
        // The pace is in the same bytes.
        (_, "interval") => "v2x.interval_ms".into(),
        (_, "padding") => "v2x.label_padding".into(),
        (_, "payload") => "eth".into(),
        (Kind::Withdrawal, "rsus") => "v2x.rsu".into(),
        (Kind::Announcement, "groups") => "v2x.group".into(),
        (Kind::Announcement, "macs") => "v2x.group.mac".into(),
        (Kind::Announcement, "vlan" | "count") => format!("v2x.group.{row}"),
        (Kind::Fragment, "id" | "total" | "index" | "count" | "part") => {
            format!("v2x.fragment.{row}")
        }
        _ => format!("v2x.{row}"),
    }
}

#[test]
fn every_field_of_the_document_is_shown_where_it_stands() {
    let document = source("../docs/wire-format.md");
    let shown = shown();
    for kind in Kind::ALL {
        let rows = table_rows(&section(&document, kind).1);
        assert!(rows.len() > 3, "{}: {rows:?}", kind.name());
        let mut seen = BTreeSet::from(["eth".to_owned()]);
        for (vector, shown) in &shown {
            if Kind::peek(&vector.frame[14..]) != Ok(kind) {
                continue;
            }
            seen.extend(shown.keys().cloned());
            for (offset, bytes, row) in &rows {
                let (Ok(offset), Ok(bytes)) = (offset.parse::<u64>(), bytes.parse::<u64>()) else {
                    continue;
                };
                if 14 + offset >= vector.frame.len() as u64 {
                    // A heartbeat need not say where its sender is.
                    continue;
                }
                let mut name = name_of(kind, row);
                let is_flood = shown.get("v2x.flags.flood").is_some_and(|is| is[0].text == "1");
                match &name[..] {
                    // A group begins where the one before it ends.
                    "v2x.group.vlan" | "v2x.group.count" => continue,
                    "v2x.taken_at" if !is_flood => continue,
                    "v2x.relays" if is_flood => name = "v2x.hop_limit".into(),
                    _ => {}
                }
                let places = shown.get(&name).map(Vec::as_slice).unwrap_or_default();
                assert!(
                    places.iter().any(|at| (at.pos, at.len) == (14 + offset, bytes)),
                    "{} in {}.hex: {name} should be {bytes} bytes at {}, and the dissector has \
                     {places:?}",
                    kind.name(),
                    vector.name,
                    14 + offset
                );
            }
        }
        for (_, _, row) in &rows {
            let name = name_of(kind, row);
            assert!(
                seen.contains(&name),
                "{}: no vector shows the row {row} as {name}",
                kind.name()
            );
        }
    }
}

#[test]
fn every_value_is_what_the_parser_says() {
    for (vector, mut shown) in shown() {
        let message = Message::parse(&vector.frame, ETHERTYPE_DEFAULT).unwrap();
        let kind = message.packet.kind();
        let length = message.packet.wire_len().to_string();
        let flags = format!("{:#04x}", vector.frame[15]);
        let prefix = ["2", &kind.code().to_string(), &flags, "0", &length].map(str::to_owned);
        let expected = PREFIX
            .into_iter()
            .zip(prefix.map(|value| vec![value]))
            .chain(meaning::of(&message.packet));
        for (name, values) in expected {
            let shown = shown.remove(name).unwrap_or_default();
            let texts: Vec<_> = shown.into_iter().map(|shown| shown.text).collect();
            assert_eq!(texts, values, "{name} in {}.hex", vector.name);
        }
        shown.retain(|name, _| !ALWAYS_ZERO.contains(&&name[..]));
        assert!(shown.is_empty(), "{}.hex: shown, and not of the parser: {shown:?}", vector.name);
    }
}

#[test]
fn frames_of_clients_go_on_to_the_dissector_of_ethernet() {
    for name in ["to_upstream", "to_downstream", "to_downstream_flood", "to_downstream_labels"] {
        let frame = vector(name);
        let message = Message::try_from(&frame[..]).unwrap();
        let node_lib::messages::PacketType::Data(data) = message.packet else { panic!("{name}") };
        let begin = frame.len() - data.payload().len();
        let layers = layers(&captured([frame]), &[]);
        let places: Vec<_> = each(&layers[0]["eth_raw"]).map(|raw| raw[1].as_u64()).collect();
        assert_eq!(places, [Some(0), Some(begin as u64)], "{name}");
    }
    let read = tshark::tshark(
        &captured([vector("to_upstream"), vector("to_downstream"), vector("to_downstream_labels")]),
        &[
            "-T",
            "fields",
            "-E",
            "separator=;",
            "-e",
            "icmp.type",
            "-e",
            "arp.opcode",
            "-e",
            "vlan.id",
        ],
    );
    assert_eq!(read.lines().collect::<Vec<_>>(), ["8;;", ";2;100", ";;100"]);
}

#[test]
fn what_is_cut_is_malformed_and_what_the_capture_cut_is_not() {
    let vectors = read::all();
    let cut = |is_whole_on_air: bool| -> Vec<Captured> {
        let lens = vectors.iter().flat_map(|vector| {
            (14..vector.frame.len()).map(move |len| Captured {
                bytes: vector.frame[..len].to_vec(),
                len: if is_whole_on_air { vector.frame.len() } else { len },
                at_us: 0,
            })
        });
        lens.collect()
    };
    for (frame, marks) in cut(false).iter().zip(marks(&cut(false))) {
        assert_eq!(marks, (true, false), "{:02x?}", frame.bytes);
    }
    for (frame, marks) in cut(true).iter().zip(marks(&cut(true))) {
        assert_eq!(marks, (false, true), "{:02x?}", frame.bytes);
    }
}

#[test]
fn one_flipped_bit_is_judged_as_the_parser_judges_it() {
    let mut frames = Vec::new();
    for read::Vector { frame, .. } in read::all() {
        for bit in 14 * 8..frame.len() * 8 {
            let mut flipped = frame.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            frames.push(flipped);
        }
    }
    let judged: Vec<_> = frames.iter().map(|frame| judged(frame)).collect();
    assert!(judged.iter().any(Result::is_ok) && judged.iter().any(Result::is_err));
    let marks = marks(&captured(frames.iter().cloned()));
    for ((frame, judged), mark) in frames.iter().zip(judged).zip(marks) {
        assert_eq!(mark, (judged.is_err(), false), "{judged:?}: {frame:02x?}");
    }
}

/// Values of one byte that lie at and beside the ends of ranges: one flipped bit does not find them
/// all.
#[test]
fn every_byte_of_interest_is_judged_as_the_parser_judges_it() {
    let mut frames = Vec::new();
    for read::Vector { frame, .. } in read::all() {
        for at in 14..frame.len().min(14 + 72) {
            for value in [0, 1, 2, 3, 7, 8, 9, 14, 15, 16, 32, 33, 39, 64, 65, 119, 120, 254, 255] {
                let mut changed = frame.clone();
                changed[at] = value;
                frames.push(changed);
            }
        }
    }
    let marks = marks(&captured(frames.iter().cloned()));
    for (frame, mark) in frames.iter().zip(marks) {
        let judged = judged(frame);
        assert_eq!(mark, (judged.is_err(), false), "{judged:?}: {frame:02x?}");
    }
}

/// Bounds of what repeats: just within them, and just beyond.
#[test]
fn as_many_as_there_may_be_is_judged_as_the_parser_judges_it() {
    let made = |name: &str, head_len: usize, tail: &[u8], patch: &[(usize, u8)]| {
        let mut frame = [&vector(name)[..14 + head_len], tail].concat();
        let length = u16::try_from(head_len + tail.len()).unwrap().to_be_bytes();
        frame[16..18].copy_from_slice(&length);
        for (at, value) in patch {
            frame[14 + at] = *value;
        }
        frame
    };
    let mut frames = Vec::new();
    for relays in 14..18_u8 {
        let labels = vec![7; 2 * (usize::from(relays) - 1)];
        frames.push(made("announcement_ack", 32, &labels, &[(31, relays)]));
        let padding = vec![0; labels.len() % 4];
        let rest = [labels, padding, vec![2; 14]].concat();
        frames.push(made("to_downstream", 22, &rest, &[(16, relays)]));
    }
    for count in 63..67_u8 {
        frames.push(made("withdrawal", 16, &vec![2; 6 * usize::from(count)], &[(14, count)]));
    }
    for (vlan, count) in [(0, 229), (0, 230), (0, 231), (4094, 1), (4095, 1), (1, 0)] {
        let group = [u16::to_be_bytes(vlan), u16::to_be_bytes(count)].concat();
        let macs = vec![2; 6 * usize::from(count)];
        frames.push(made("announcement_empty", 46, &[group, macs].concat(), &[]));
    }
    let judged: Vec<_> = frames.iter().map(|frame| judged(frame)).collect();
    assert_eq!(judged.iter().filter(|judged| judged.is_ok()).count(), 4 + 2 + 3);
    let marks = marks(&captured(frames));
    for (index, (judged, mark)) in judged.iter().zip(marks).enumerate() {
        assert_eq!(mark, (judged.is_err(), false), "{index}: {judged:?}");
    }
}

#[test]
fn padding_is_shown_and_too_much_of_it_is_malformed() {
    let frame = vector("probe");
    let (mut padded, mut too_long) = (frame.clone(), frame.clone());
    padded.resize(60, 0xff);
    too_long.resize(61, 0xff);
    assert_eq!(marks(&captured([padded.clone(), too_long])), [(false, false), (true, false)]);
    let layers = layers(&captured([padded]), &[]);
    let padding = &fields(messages(&layers[0])[0])["v2x.padding"][0];
    assert_eq!((padding.pos, padding.len), (frame.len() as u64, 60 - frame.len() as u64));
}

#[test]
fn a_bundle_is_taken_apart() {
    let (up, down) = (vector("to_upstream"), vector("to_downstream_labels"));
    let mut bundled = Vec::new();
    bundle::emit([&up[..], &down[..], &up[..]], &mut bundled);
    let layers = layers(&captured([bundled.clone()]), &[]);
    let [outer] = messages(&layers[0])[..] else { panic!("one bundle") };
    let inner = messages(outer);
    assert_eq!(fields(outer)["v2x.type"][0].text, "10");
    let seqs: Vec<_> = inner.iter().map(|m| fields(m)["v2x.seq"][0].text.clone()).collect();
    assert_eq!(seqs, ["256", "65539", "256"]);
    assert_eq!(each(&layers[0]["eth"]).count(), 4, "the frame's own, and those of three clients");

    // The length of the second is wrong: the first is there, and the rest is not.
    let second = 18 + up.len() - 14;
    let mut broken = bundled.clone();
    broken[second + 3] = 0xff;
    assert_eq!(marks(&captured([broken.clone(), bundled])), [(true, false), (false, false)]);
    let layers = tshark::layers(&captured([broken]), &[]);
    assert_eq!(messages(messages(&layers[0])[0]).len(), 1);
}

/// A message in parts, as they come from one neighbour, this long after each other.
fn parts(frame: &[u8], apart_us: u32) -> Vec<Captured> {
    let (header, message) = frame.split_at(14);
    let places = PartPlace::all(message.len(), 60).unwrap();
    places
        .map(|place| {
            let part = &message[place.range()];
            let fragment = Fragment { priority: 0, id: 7, place, part };
            let flat: Vec<u8> = (&fragment).into();
            let at_us = u32::from(place.index) * apart_us;
            Captured { at_us, ..Captured::from([header, &flat].concat()) }
        })
        .collect()
}

#[test]
fn parts_of_a_message_are_put_together_in_any_order() {
    let frame = vector("to_upstream");
    let whole = |mut frames: Vec<Captured>, flags: &[&str]| -> Vec<Option<Value>> {
        for (index, frame) in frames.iter_mut().enumerate() {
            frame.at_us = frame.at_us.max(u32::try_from(index).unwrap());
        }
        let layers = layers(&frames, flags);
        layers.iter().map(|layers| messages(layers).get(1).copied().cloned()).collect()
    };
    let in_order = parts(&frame, 1000);
    assert_eq!(in_order.len(), 3);
    let backwards: Vec<_> = in_order.iter().rev().cloned().map(|f| f.bytes.into()).collect();
    for frames in [in_order.clone(), backwards] {
        for flags in [&[][..], &["-2"]] {
            let found = whole(frames.clone(), flags);
            assert!(found[0].is_none() && found[1].is_none(), "{flags:?}");
            let message = fields(found[2].as_ref().expect("the message is whole"));
            assert_eq!(message["v2x.seq"][0].text, "256");
        }
    }
    // Somebody else's part with that id, one that comes twice, and one that comes too late.
    let mut strange = in_order.clone();
    strange[2].bytes[11] ^= 1;
    assert!(whole(strange, &[]).iter().all(Option::is_none));
    let twice = [&in_order[..2], &in_order[1..]].concat();
    assert_eq!(whole(twice, &[]).iter().flatten().count(), 1);
    assert!(whole(parts(&frame, 150_000), &[]).iter().all(Option::is_none));

    let read = tshark::tshark(
        &in_order,
        &[
            "-2",
            "-T",
            "fields",
            "-E",
            "separator=;",
            "-e",
            "v2x.reassembled_in",
            "-e",
            "v2x.fragment.frame",
            "-e",
            "icmp.type",
        ],
    );
    assert_eq!(read.lines().collect::<Vec<_>>(), ["3;;", "3;;", ";1,2,3;8"]);
}

#[test]
fn the_ethertype_can_be_set() {
    let mut other = vector("probe");
    other[12..14].copy_from_slice(&[0x88, 0xb6]);
    let frames = captured([vector("probe"), other]);
    let seen = |flags: &[&str]| -> Vec<bool> {
        let layers = layers(&frames, flags);
        layers.iter().map(|layers| !messages(layers).is_empty()).collect()
    };
    assert_eq!(seen(&[]), [true, false]);
    assert_eq!(seen(&["-o", "v2x.ethertype:0x88b6"]), [false, true]);
    assert_eq!(seen(&["-o", "v2x.ethertype:0x88b5-0x88b6"]), [true, true]);
}

/// A filter names fields and what they are to be: a field alone is there in every message of its
/// type.
#[test]
fn the_filter_that_operating_shows_finds_goodbyes_and_nothing_else() {
    let text = include_str!("../../../docs/operating.md");
    let (_, rest) = text.split_once(" -Y '").unwrap();
    let (filter, _) = rest.split_once('\'').unwrap();
    let vectors = read::all();
    let frames = captured(vectors.iter().map(|vector| vector.frame.clone()));
    let read = tshark::tshark(&frames, &["-Y", filter, "-T", "fields", "-e", "frame.number"]);
    let number = |line: &str| line.parse::<usize>().unwrap();
    let found: Vec<_> = read.lines().map(|line| vectors[number(line) - 1].name.clone()).collect();
    assert_eq!(found, ["heartbeat_reply_goodbye"], "{filter}");
}

/// The link over UDP multicast carries whole frames in datagrams.
#[test]
fn frames_in_datagrams_are_found() {
    let frame = vector("heartbeat_relayed");
    let builder = etherparse::PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [1, 0, 0x5e, 1, 2, 3])
        .ipv4([192, 0, 2, 1], [239, 118, 122, 98], 1)
        .udp(40_000, node_lib::device::udp::PORT_DEFAULT);
    let mut datagram = Vec::new();
    builder.write_to_vec(&mut datagram, &frame).unwrap();
    let layers = layers(&captured([datagram]), &[]);
    assert_eq!(fields(messages(&layers[0])[0])["v2x.hello"][0].text, "4242");
}
