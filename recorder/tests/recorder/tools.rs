//! The tools, as a user types them: `v2xtrace` on recordings of a real pair of nodes.

use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::time::Duration;

use node_lib::control::node::{LinkEvent, Node, Replies, ReplyType};
use node_lib::{Mac, Start, Timestamp};
use obu_lib::Obu;
use pcap_file::pcapng::PcapNgReader;
use pcap_file::pcapng::blocks::Block;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use recorder::header::{RecordingHeader, Role};
use recorder::record::{Record, What};
use recorder::{Limits, Recorded, Recorder};
use rsu_lib::Rsu;
use tempfile::TempDir;

use crate::common;

/// A second is half an hour into 2026.
const BEGAN: u64 = 1_767_225_600_000_000_123;

/// An OBU and an RSU live for two seconds; the OBU is recorded. Its radio goes down towards the
/// end.
fn drive(snap: u32) -> TempDir {
    drive_of(Role::Obu, snap)
}

/// The same, where one or the other is recorded.
fn drive_of(role: Role, snap: u32) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let (obu_mac, rsu_mac) = (Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]));
    let (car, host) = (Mac([2, 0, 0, 0, 1, 1]), Mac([2, 0, 0, 0, 1, 2]));
    let start_of = |mac| Start { tap_mac: Some(Mac([2, 0, 0, 0, 9, 9])), ..Start::new(mac) };
    let (obu_start, rsu_start) = (start_of(obu_mac), start_of(rsu_mac));
    let obu_settings = obu_lib::Settings::default();
    let rsu_settings = rsu_lib::Settings::default();
    let header = match role {
        Role::Obu => RecordingHeader::new(role, &obu_start, Timestamp::ZERO, &obu_settings),
        Role::Rsu => RecordingHeader::new(role, &rsu_start, Timestamp::ZERO, &rsu_settings),
    };
    let header = RecordingHeader { snap, began_unix_ns: BEGAN, ..header.unwrap() };
    let recorder = Recorder::start(directory.path(), header, Limits::default()).unwrap();
    let tap_of = |who| (who == role).then(|| recorder.tap());
    let obu = Obu::new(obu_settings.config(&obu_start), Timestamp::ZERO);
    let mut obu = Recorded::new(obu, tap_of(Role::Obu));
    let rsu = Rsu::new(rsu_settings.config(&rsu_start), Timestamp::ZERO);
    let mut rsu = Recorded::new(rsu, tap_of(Role::Rsu));
    let mut out = Replies::new();
    let frame = |to: Mac, from: Mac| {
        let mut frame = [&to.0[..], &from.0, &[8, 0]].concat();
        frame.resize(200, 0x55);
        frame
    };
    for millis in 0..2000 {
        let now = Timestamp::from_millis(millis);
        let mut to_obu = lent(&[], &mut out, |out| rsu.handle_timeout(now, out));
        let mut to_rsu = lent(&[], &mut out, |out| obu.handle_timeout(now, out));
        if millis % 20 == 7 {
            let frame = frame(host, car);
            to_rsu.extend(lent(&frame, &mut out, |out| obu.handle_tap(now, &frame, out)));
        }
        if millis % 30 == 8 {
            let frame = frame(car, host);
            to_obu.extend(lent(&frame, &mut out, |out| rsu.handle_tap(now, &frame, out)));
        }
        while !(to_rsu.is_empty() && to_obu.is_empty()) {
            for frame in std::mem::take(&mut to_rsu) {
                to_obu.extend(lent(&frame, &mut out, |out| rsu.handle_wire(now, &frame, out)));
            }
            for frame in std::mem::take(&mut to_obu) {
                to_rsu.extend(lent(&frame, &mut out, |out| obu.handle_wire(now, &frame, out)));
            }
        }
        if millis == 1900 {
            obu.handle_link(now, LinkEvent::Down, &mut out);
            out.take();
        }
        while obu.poll_event().is_some() {}
        while rsu.poll_event().is_some() {}
    }
    recorder.finish();
    directory
}

/// Asks a node to handle a frame that is on loan, as with the loop of the daemons, for only what it
/// passes on so is cut. What it sends by radio.
fn lent(frame: &[u8], out: &mut Replies, handle: impl FnOnce(&mut Replies)) -> Vec<Vec<u8>> {
    out.lend(0, frame, 64);
    handle(out);
    let wire = |reply: &ReplyType| match reply {
        ReplyType::WireFlat(flat) => Some(flat.clone()),
        _ => None,
    };
    let mut sent: Vec<_> = out.as_slice().iter().filter_map(wire).collect();
    sent.extend(
        out.loans()
            .iter()
            .filter_map(|loan| Some([out.head(loan)?, frame.get(loan.payload.clone())?].concat())),
    );
    out.recycle();
    sent
}

fn trace(line: &[&str]) -> (i32, String) {
    let out = Process::new(env!("CARGO_BIN_EXE_v2xtrace")).args(line).output().unwrap();
    let text = [&out.stdout[..], &out.stderr].concat();
    (out.status.code().unwrap(), String::from_utf8(text).unwrap())
}

fn only(directory: &Path) -> PathBuf {
    let files = common::files(directory);
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn info_verify_and_replay_of_a_recording() {
    let directory = drive(0);
    let place = text(directory.path());
    let (code, said) = trace(&["info", place]);
    assert_eq!(code, 0, "{said}");
    for words in
        ["obu 02:00:00:00:00:01, boot 1", "\"hello_history\":10", "can be replayed", "from_tap"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    let (code, said) = trace(&["verify", place]);
    assert!(code == 0 && said.starts_with("whole "), "{code} {said}");
    let (code, said) = trace(&["replay", place]);
    assert!(code == 0 && said.contains("outputs the same"), "{code} {said}");
    let (code, said) = trace(&["replay", "/no/such/place"]);
    assert!(code == 2 && said.contains("/no/such/place"), "{code} {said}");
}

#[test]
fn a_page_shows_the_node_as_it_was() {
    let directory = drive(0);
    let place = text(directory.path());
    let page = directory.path().join("drive.html");
    let (code, said) = trace(&["page", place, "-o", text(&page), "--every", "0.1"]);
    assert!(code == 0 && said.contains("looks"), "{code} {said}");
    let page = std::fs::read_to_string(&page).unwrap();
    let data = page.split("id=\"recording\">").nth(1).unwrap().split("</script>").next().unwrap();
    let looks: serde_json::Value = serde_json::from_str(data).unwrap();
    let looks = looks.as_array().unwrap();
    assert!((18..=21).contains(&looks.len()), "two seconds, ten a second: {}", looks.len());
    assert_eq!(looks[0]["at_unix_ms"], BEGAN / 1_000_000);
    let rsu = "02:00:00:00:00:02";
    let middle = &looks[10]["view"]["node"];
    assert_eq!(
        (&middle["attached"]["rsu"], &middle["id"]),
        (&rsu.into(), &"02:00:00:00:00:01".into())
    );
    assert!(middle["routes"][0]["candidates"][0]["cost"].is_number(), "{middle}");
    assert!(looks[10]["view"]["counters"]["node"]["tap_to_wire"].as_u64().unwrap() > 20);
    // The way and why, once each, and what went wrong at the end.
    let changes = looks.iter().flat_map(|look| look["changes"].as_array().unwrap());
    let causes: Vec<_> = changes.map(|change| change["cause"].as_str().unwrap()).collect();
    assert_eq!(causes[0], "first", "{causes:?}");
    assert!(causes.contains(&"link-down"), "{causes:?}");
    let last = looks.last().unwrap();
    assert_eq!(last["view"]["radio"]["is_up"], false);
    assert!(last["problems"].as_array().unwrap().iter().any(|p| p["kind"] == "radio-down"));
    for (line, said) in [
        (&["page", place, "-o", "/nonexistent/x.html"][..], "/nonexistent/x.html"),
        (&["page", place, "-o", "x.html", "--every", "0"], "expected seconds from 0.05"),
    ] {
        let (code, text) = trace(line);
        assert!(code == 2 && text.contains(said), "{code} {text}");
    }
}

#[test]
fn json_lines_are_the_same_recording() {
    let directory = drive(0);
    let file = only(directory.path());
    let lines = directory.path().join("lines.jsonl");
    let (code, said) = trace(&["export", text(&file), "-o", text(&lines)]);
    assert_eq!(code, 0, "{said}");
    let back = directory.path().join("back.v2xr");
    assert_eq!(trace(&["cut", text(&lines), "-o", text(&back)]).0, 0);
    for other in [&lines, &back] {
        let (code, said) = trace(&["diff", text(&file), text(other)]);
        assert!(code == 0 && said.starts_with("the same"), "{said}");
        let (code, said) = trace(&["replay", text(other)]);
        assert!(code == 0 && said.contains("outputs the same"), "{said}");
    }
    // Somebody edits it: what is not the same any more is named.
    let edited = std::fs::read_to_string(&lines).unwrap();
    let place = edited.find("\"record\":\"to_radio\"").unwrap();
    let data = place + edited[place..].find("\"data\":\"").unwrap() + 8 + 40;
    let digit = if &edited[data..=data] == "0" { "1" } else { "0" };
    let edited = format!("{}{digit}{}", &edited[..data], &edited[data + 1..]);
    std::fs::write(&lines, edited).unwrap();
    let (code, said) = trace(&["replay", text(&lines)]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("first difference") && said.contains("differ from byte 20 on"), "{said}");
    let (code, said) = trace(&["diff", text(&file), text(&lines)]);
    assert!(code == 1 && said.contains("first difference"), "{said}");
}

#[test]
fn a_file_that_has_no_header_yet_is_left_out_and_named() {
    let directory = drive(0);
    let file = only(directory.path());
    let bytes = std::fs::read(&file).unwrap();
    let name = format!("{}.part", text(&file).replace("-000000.v2xr", "-000001.v2xr"));
    let part = Path::new(&name);
    let place = text(directory.path());
    let outputs = tempfile::tempdir().unwrap();
    let output = |name: &str| text(&outputs.path().join(name)).to_owned();
    let named = format!("left out {name}: ends before its header does");
    // As kill -9 leaves it right after it was made, a power cut within the header, and before any
    // of the bytes was on disk. Only what has bytes may have lost some.
    for (begun, is_whole) in [(&bytes[..0], true), (&bytes[..60], false), (&[0; 700], false)] {
        std::fs::write(part, begun).unwrap();
        let (cut, capture) = (output("cut.v2xr"), output("capture.pcapng"));
        let (page, lines) = (output("page.html"), output("all.jsonl"));
        for (code, line) in [
            (0, &["info", place][..]),
            (i32::from(!is_whole), &["verify", place]),
            (0, &["replay", place]),
            (0, &["cut", place, "-o", &cut]),
            (0, &["export", place, "-o", &capture]),
            (0, &["export", place, "-o", &lines]),
            (0, &["page", place, "-o", &page]),
            (0, &["diff", place, text(&file)]),
        ] {
            let (got, said) = trace(line);
            assert_eq!(got, code, "{} bytes, {line:?}: {said}", begun.len());
            assert!(said.contains(&named), "{} bytes, {line:?}: {said}", begun.len());
        }
        for made in [cut, capture, page, lines] {
            std::fs::remove_file(made).unwrap();
        }
        // Alone it is no recording.
        for command in ["info", "verify", "replay", "repair"] {
            let (code, said) = trace(&[command, &name]);
            assert!(code == 2 && said.contains("ends before its header does"), "{code} {said}");
        }
    }
    // One that is something else is an error, whatever stands beside it.
    std::fs::write(part, b"something else").unwrap();
    let (code, said) = trace(&["info", place]);
    assert!(code == 2 && said.contains("no recording: no block begins here"), "{code} {said}");
    // So is a finished file that ends early: its header was on disk before it got this name.
    std::fs::remove_file(part).unwrap();
    std::fs::write(part.with_extension(""), &bytes[..60]).unwrap();
    let (code, said) = trace(&["info", place]);
    assert!(code == 2 && said.contains("no recording: ends in the middle"), "{code} {said}");
}

#[test]
fn what_is_torn_is_repaired_up_to_the_last_whole_block() {
    let directory = drive(0);
    let file = only(directory.path());
    let bytes = std::fs::read(&file).unwrap();
    let torn = directory.path().join("torn.v2xr.part");
    std::fs::write(&torn, &bytes[..bytes.len() - 1]).unwrap();
    let (code, said) = trace(&["verify", text(&torn)]);
    assert!(code == 1 && said.contains("ends in the middle of a block"), "{said}");
    let (code, said) = trace(&["repair", text(&torn)]);
    assert_eq!(code, 0, "{said}");
    let whole = directory.path().join("torn.v2xr");
    let (code, said) = trace(&["verify", text(&whole)]);
    assert!(code == 0 && said.starts_with("whole "), "{said}");
    let (records, _) = common::read(&[file]);
    let (restored, _) = common::read(std::slice::from_ref(&whole));
    assert!(restored.len() > records.len() / 3 && restored.len() < records.len());
    assert!(restored[..] == records[..restored.len()]);
    // What is there is not written over.
    assert_eq!(trace(&["repair", text(&torn)]).0, 2);
    let (code, said) = trace(&["replay", text(&whole)]);
    assert!(code == 0, "{said}");
}

#[test]
fn a_copy_says_where_it_stopped() {
    let directory = drive(0);
    let file = only(directory.path());
    let mut bytes = std::fs::read(&file).unwrap();
    let torn = directory.path().join("torn.v2xr.part");
    std::fs::write(&torn, &bytes[..bytes.len() - 1]).unwrap();
    // The last byte is of the last block's records.
    *bytes.last_mut().unwrap() ^= 1;
    let damaged = directory.path().join("damaged.v2xr");
    std::fs::write(&damaged, bytes).unwrap();
    for (n, (from, expected)) in [(&torn, 0), (&damaged, 1), (&file, 0)].into_iter().enumerate() {
        for (command, form) in [("cut", "v2xr"), ("export", "jsonl"), ("export", "pcapng")] {
            let copy = directory.path().join(format!("copy{n}.{command}.{form}"));
            let (code, said) = trace(&[command, text(from), "-o", text(&copy)]);
            assert_eq!(code, expected, "{said}");
            let is_said = said.contains("left out what follows byte");
            assert_eq!(is_said, from != &file, "{said}");
            assert!(!is_said || said.contains(text(from)), "{said}");
        }
    }
}

#[test]
fn a_cut_has_its_records_and_is_not_taken_for_the_whole() {
    let directory = drive(0);
    let file = only(directory.path());
    let part = directory.path().join("part.v2xr");
    let (code, said) =
        trace(&["cut", text(&file), "-o", text(&part), "--from", "0.5", "--to", "1.25"]);
    assert_eq!(code, 0, "{said}");
    let (records, _) = common::read(&[file]);
    let (cut, _) = common::read(std::slice::from_ref(&part));
    let range = Timestamp::from_millis(500)..=Timestamp::from_millis(1250);
    let expected: Vec<_> = records.into_iter().filter(|r| range.contains(&r.at)).collect();
    assert!(!expected.is_empty() && cut == expected);
    let (code, said) = trace(&["replay", text(&part)]);
    assert!(code == 2 && said.contains("beginning is missing"), "{said}");
}

#[test]
fn a_recording_with_a_snap_length_says_so_and_can_be_replayed() {
    let directory = drive(100);
    let place = text(directory.path());
    let (_, said) = trace(&["info", place]);
    assert!(said.contains("100 bytes of clients' frames"), "{said}");
    assert!(said.contains("can be replayed"), "{said}");
    let (code, said) = trace(&["replay", place]);
    assert_eq!(code, 0, "{said}");
    let capture = directory.path().join("a.pcapng");
    assert_eq!(trace(&["export", place, "-o", text(&capture)]).0, 0);
}

#[test]
fn a_capture_has_every_frame_with_time_direction_interface_and_reason() {
    let directory = drive(0);
    let file = only(directory.path());
    let capture = directory.path().join("a.pcapng");
    let (code, said) = trace(&["export", text(&file), "-o", text(&capture)]);
    assert_eq!(code, 0, "{said}");
    let (records, _) = common::read(&[file]);
    let expected: Vec<_> = records
        .iter()
        .filter_map(|record| {
            let (interface, direction) = match record.what {
                What::FromRadio(_) => (0, 1),
                What::FromTap(_) => (1, 1),
                What::ToRadio(_) => (0, 2),
                What::ToTap(_) => (1, 2),
                _ => return None,
            };
            let time = Duration::from_nanos(BEGAN) + record.at.since(Timestamp::ZERO);
            Some((interface, direction, time, record.what.frame().unwrap().bytes.to_vec()))
        })
        .collect();
    let (mut found, mut comments) = (Vec::new(), Vec::new());
    let mut reader = PcapNgReader::new(std::fs::File::open(&capture).unwrap()).unwrap();
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.unwrap() else { continue };
        let mut direction = 0;
        for option in &packet.options {
            match option {
                EnhancedPacketOption::Flags(flags) => direction = *flags,
                EnhancedPacketOption::Comment(text) => comments.push(text.to_string()),
                _ => {}
            }
        }
        found.push((packet.interface_id, direction, packet.timestamp, packet.data.to_vec()));
    }
    assert!(found == expected, "{} frames, {} expected", found.len(), expected.len());
    let events = records.iter().filter(|r| matches!(r.what, What::Event(_))).count();
    let told = comments.iter().filter(|text| !text.contains("link:")).count();
    assert_eq!(told, events, "{comments:?}");
    assert!(comments.iter().any(|text| text.contains("cause=first")), "{comments:?}");
    assert!(comments.iter().any(|text| text.contains("cause=link-down")), "{comments:?}");
}

/// What Wireshark makes of it: each frame with its time, interface and direction, how long it was
/// and how much of it there is.
fn read_by_tshark(capture: &Path) -> Vec<String> {
    let mut command = Process::new("tshark");
    command.args(["-n", "-r", text(capture), "-T", "fields"]);
    for field in ["time_epoch", "interface_name", "packet_flags_direction", "len", "cap_len"] {
        command.args(["-e", &format!("frame.{field}")]);
    }
    let out = command.output();
    let out =
        out.unwrap_or_else(|error| panic!("tshark is needed (apt-get install tshark): {error}"));
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let decode = |line: &str| {
        // Directions are numbers in some versions and in hexadecimal in others.
        line.replace("\t0x00000001\t", "\t1\t")
            .replace("\t0x00000002\t", "\t2\t")
            .replace("\t0x01\t", "\t1\t")
            .replace("\t0x02\t", "\t2\t")
    };
    String::from_utf8(out.stdout).unwrap().lines().map(decode).collect()
}

/// The same, as the recording says it.
fn frame_of(record: &Record<'_>) -> Option<String> {
    let way = match record.what {
        What::FromRadio(_) => "radio\t1",
        What::FromTap(_) => "tap\t1",
        What::ToRadio(_) => "radio\t2",
        What::ToTap(_) => "tap\t2",
        _ => return None,
    };
    let time = Duration::from_nanos(BEGAN) + record.at.since(Timestamp::ZERO);
    let (s, ns) = (time.as_secs(), time.subsec_nanos());
    let frame = record.what.frame()?;
    Some(format!("{s}.{ns:09}\t{way}\t{}\t{}", frame.len, frame.bytes.len()))
}

/// `tshark` is that of the package of that name.
#[test]
fn tshark_reads_what_the_recording_says() {
    for (role, snap) in [(Role::Obu, 0), (Role::Obu, 100), (Role::Rsu, 0), (Role::Rsu, 100)] {
        let directory = drive_of(role, snap);
        let file = only(directory.path());
        let capture = directory.path().join("a.pcapng");
        assert_eq!(trace(&["export", text(&file), "-o", text(&capture)]).0, 0);
        let (records, _) = common::read(&[file]);
        let expected: Vec<String> = records.iter().filter_map(frame_of).collect();
        assert_eq!(read_by_tshark(&capture), expected, "{role:?}, {snap} bytes");
        // In all ways there are, and cut only where that was asked for.
        for way in ["radio\t1", "tap\t1", "radio\t2", "tap\t2"] {
            assert!(expected.iter().filter(|frame| frame.contains(way)).count() > 20, "{way}");
        }
        let mut frames = records.iter().filter_map(|record| record.what.frame());
        let is_cut = frames.any(|frame| frame.bytes.len() < frame.len as usize);
        assert_eq!(is_cut, snap > 0, "{role:?}");
    }
}
