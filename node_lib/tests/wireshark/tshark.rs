//! Writes a capture and has tshark read it with our dissector.

use std::collections::BTreeMap;
use std::process::{Command, Output};

use serde_json::Value;

const DISSECTOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/wireshark/v2x.lua");

/// A frame as it stands in a capture.
#[derive(Clone, Debug)]
pub(crate) struct Captured {
    pub(crate) bytes: Vec<u8>,
    /// As it was on the air; more than there are bytes where the capture cut it short.
    pub(crate) len: usize,
    /// When.
    pub(crate) at_us: u32,
}

impl From<Vec<u8>> for Captured {
    fn from(bytes: Vec<u8>) -> Self {
        Self { len: bytes.len(), bytes, at_us: 0 }
    }
}

/// The classic format: a header, and in front of each frame its time and its two lengths.
fn pcap(frames: &[Captured]) -> Vec<u8> {
    const MAGIC: u32 = 0xa1b2_c3d4;
    const VERSION: u32 = 2 | 4 << 16;
    const SNAP_LEN: u32 = 65_535;
    const ETHERNET: u32 = 1;
    let mut file: Vec<u8> =
        [MAGIC, VERSION, 0, 0, SNAP_LEN, ETHERNET].map(u32::to_le_bytes).concat();
    for Captured { bytes, len, at_us } in frames {
        let len = [bytes.len(), *len].map(|len| u32::try_from(len).unwrap());
        let record = [at_us / 1_000_000, at_us % 1_000_000, len[0], len[1]];
        file.extend(record.map(u32::to_le_bytes).concat());
        file.extend(bytes);
    }
    file
}

/// What tshark prints about these frames.
pub(crate) fn tshark(frames: &[Captured], flags: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let capture = directory.path().join("frames.pcap");
    std::fs::write(&capture, pcap(frames)).unwrap();
    let Output { status, stdout, stderr } = Command::new("tshark")
        // Nobody's settings and plugins.
        .env("WIRESHARK_CONFIG_DIR", directory.path())
        .env("HOME", directory.path())
        .args(["-n", "-X", &format!("lua_script:{DISSECTOR}"), "-r"])
        .arg(capture)
        .args(flags)
        .output()
        .unwrap_or_else(|error| {
            panic!("tshark: {error}; install it with `make setup`, or the package tshark")
        });
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "tshark: {stderr}");
    assert!(!stderr.contains("Lua"), "{stderr}");
    String::from_utf8(stdout).unwrap()
}

/// The protocols of each frame: name, and what is shown of it.
pub(crate) fn layers(frames: &[Captured], flags: &[&str]) -> Vec<Value> {
    let all = [&["-T", "json", "-x", "--no-duplicate-keys"], flags].concat();
    let packets: Vec<Value> = serde_json::from_str(&tshark(frames, &all)).unwrap();
    packets.into_iter().map(|mut packet| packet["_source"]["layers"].take()).collect()
}

/// The messages in a frame, each with what is shown of it: our protocol, as often as it occurs.
pub(crate) fn messages(layers: &Value) -> Vec<&Value> {
    each(&layers["v2x"]).collect()
}

/// A value, or all values in a list.
pub(crate) fn each(value: &Value) -> impl Iterator<Item = &Value> {
    let one = (!value.is_array() && !value.is_null()).then_some(value);
    one.into_iter().chain(value.as_array().into_iter().flatten())
}

/// One field as it is shown: its text, and where its bytes stand in the frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) text: String,
    pub(crate) pos: u64,
    pub(crate) len: u64,
}

/// Every field of our protocol in one message, by name, in the order of the bytes. Not those of
/// messages in it.
pub(crate) fn fields(message: &Value) -> BTreeMap<String, Vec<Shown>> {
    let mut found: BTreeMap<String, Vec<Shown>> = BTreeMap::new();
    collect(message, &mut found);
    found
}

fn collect(value: &Value, found: &mut BTreeMap<String, Vec<Shown>>) {
    for object in each(value).filter_map(Value::as_object) {
        for (name, value) in object {
            // What is below a field stands beside it, or in its place if it has no text.
            if name.ends_with("_tree") || name == "v2x.group" {
                collect(value, found);
            }
            let Some(raw) = object.get(&format!("{name}_raw")) else { continue };
            if !name.starts_with("v2x.") {
                continue;
            }
            // One field is a list of what is known of it, several are a list of such lists.
            let places = if raw[0].is_array() { raw.as_array() } else { None };
            let places = places.map_or_else(|| vec![raw], |several| several.iter().collect());
            let texts: Vec<_> = each(value).collect();
            assert_eq!(texts.len(), places.len(), "{name}");
            let shown = texts.into_iter().zip(places).map(|(text, place)| Shown {
                text: text.as_str().unwrap_or_default().to_owned(),
                pos: place[1].as_u64().unwrap(),
                len: place[2].as_u64().unwrap(),
            });
            found.entry(name.clone()).or_default().extend(shown);
        }
    }
}
