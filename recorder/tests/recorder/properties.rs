//! What is written is what is read, in either form; whatever a file was cut to, its whole blocks
//! are there.

use node_lib::Timestamp;
use proptest::prelude::*;
use recorder::block::{BlockKind, Head};
use recorder::decode::Records;
use recorder::encode;
use recorder::header::RecordingHeader;
use recorder::json::{self, Line};
use recorder::write::FileWriter;

use crate::common;

proptest! {
    #[test]
    fn records_come_back_from_messagepack(records in common::records(30)) {
        let base = records.first().map_or(Timestamp::ZERO, |record| record.at);
        let mut bytes = Vec::new();
        for record in &records {
            encode::record(&mut bytes, base, record);
        }
        let read: Result<Vec<_>, _> = Records::new(&bytes, base).collect();
        prop_assert_eq!(read.unwrap(), records);
    }

    #[test]
    fn records_come_back_from_json_lines_and_from_there_to_the_same_messagepack(
        records in common::records(20)
    ) {
        let mut text = Vec::new();
        for record in &records {
            json::write_record(&mut text, record).unwrap();
        }
        let text = String::from_utf8(text).unwrap();
        let mut read = Vec::new();
        for line in text.lines() {
            match json::parse(line).unwrap() {
                Line::Record(record) => read.push(record),
                other => panic!("{other:?}"),
            }
        }
        prop_assert_eq!(&read, &records);
        let packed = |records: &[_]| {
            let mut bytes = Vec::new();
            records.iter().for_each(|record| encode::record(&mut bytes, Timestamp::ZERO, record));
            bytes
        };
        prop_assert_eq!(packed(&read), packed(&records));
    }

    #[test]
    fn bytes_that_are_no_records_are_an_error_and_nothing_worse(
        bytes in prop::collection::vec(any::<u8>(), 0..200)
    ) {
        let read = Records::new(&bytes, Timestamp::ZERO).collect::<Vec<_>>();
        // An error is the last thing there is.
        for record in read.iter().rev().skip(1) {
            prop_assert!(record.is_ok());
        }
    }

    #[test]
    fn changed_bytes_are_an_error_and_nothing_worse(
        records in common::records(8), place in any::<prop::sample::Index>(), byte in any::<u8>()
    ) {
        let mut bytes = Vec::new();
        records.iter().for_each(|record| encode::record(&mut bytes, Timestamp::ZERO, record));
        if !bytes.is_empty() {
            *place.get_mut(&mut bytes[..]) = byte;
        }
        let _ = Records::new(&bytes, Timestamp::ZERO).count();
    }
}

#[test]
fn a_header_comes_back_in_either_form() {
    let directory = tempfile::tempdir().unwrap();
    let header = RecordingHeader { began_unix_ns: u64::MAX, segment: 3, ..common::header() };
    for name in ["a.v2xr", "a.jsonl"] {
        let path = directory.path().join(name);
        FileWriter::create(&path, &header).unwrap().finish().unwrap();
        assert_eq!(recorder::read::header_of(&path).unwrap(), header, "{name}");
    }
}

/// Every length a file can be cut to: what is read is the records of all blocks that are whole,
/// neither fewer nor more.
#[test]
fn every_truncation_leaves_the_whole_blocks() {
    let directory = tempfile::tempdir().unwrap();
    let whole = directory.path().join("whole.v2xr");
    FileWriter::create(&whole, &common::header()).unwrap().finish().unwrap();
    let mut file = std::fs::read(&whole).unwrap();
    let header_len = file.len();
    // (end of the block, records up to there)
    let mut ends = vec![(header_len, 0)];
    for sequence in 0..4u64 {
        let mut payload = Vec::new();
        let first = Timestamp::from_millis(sequence * 10);
        for _ in 0..=sequence {
            encode::frame(&mut payload, 0, 0, 20, &[1; 10], &[2; 10]);
        }
        let records = sequence as u32 + 1;
        let head = Head { kind: BlockKind::Records, records, sequence, first, last: first };
        file.extend_from_slice(&head.emit(&payload));
        file.extend_from_slice(&payload);
        let before = ends.last().unwrap().1;
        ends.push((file.len(), before + records as usize));
    }
    let path = directory.path().join("cut.v2xr");
    for len in 0..=file.len() {
        std::fs::write(&path, &file[..len]).unwrap();
        if len < header_len {
            assert!(recorder::read::header_of(&path).is_err(), "{len} bytes");
            continue;
        }
        let (records, reports) = common::read(std::slice::from_ref(&path));
        let (end, expected) = *ends.iter().rfind(|(end, _)| *end <= len).unwrap();
        assert_eq!(records.len(), expected, "{len} bytes");
        assert_eq!(reports[0].good, end as u64, "{len} bytes");
        assert_eq!(reports[0].fault.is_none(), end == len, "{len} bytes");
    }
}

#[test]
fn what_a_later_version_appends_is_passed_over() {
    // [timeout, 5, {"x": [1, "two", nil]}]
    let mut bytes = vec![0x93, 5, 5, 0x81, 0xa1, b'x', 0x93, 1, 0xa3, b't', b'w', b'o', 0xc0];
    encode::frame(&mut bytes, 0, 9, 2, &[], &[1, 2]);
    let read: Result<Vec<_>, _> = Records::new(&bytes, Timestamp::ZERO).collect();
    assert_eq!(read.unwrap().len(), 2);
}
