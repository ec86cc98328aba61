//! Records to MessagePack, by hand: a frame costs a few stores and one copy, and never an
//! allocation where the block has room.

use node_lib::control::event::Event;
use node_lib::control::node::LinkEvent;
use node_lib::control::pin::Pin;
use node_lib::control::ping::Ping;
use node_lib::control::positions::Located;
use node_lib::start::clients::Remembered;
use node_lib::{Mac, Timestamp};
use rmp::{Marker, encode};

use crate::event::{self, Value};
use crate::record::{Frame, Record, What};

/// First item of a record.
pub(crate) mod kind {
    pub(crate) const FROM_RADIO: u8 = 0;
    pub(crate) const FROM_TAP: u8 = 1;
    pub(crate) const UNACKNOWLEDGED: u8 = 2;
    pub(crate) const SIGNAL: u8 = 3;
    pub(crate) const LINK: u8 = 4;
    pub(crate) const TIMEOUT: u8 = 5;
    pub(crate) const SHUTDOWN: u8 = 6;
    pub(crate) const CLIENTS: u8 = 7;
    pub(crate) const FORGET_CLIENTS: u8 = 8;
    pub(crate) const FROM_TAP_LATE: u8 = 9;
    pub(crate) const PING: u8 = 10;
    pub(crate) const POSITION: u8 = 11;
    pub(crate) const PIN: u8 = 12;
    pub(crate) const TO_RADIO: u8 = 16;
    pub(crate) const TO_TAP: u8 = 17;
    pub(crate) const PASSED_TO_RADIO: u8 = 18;
    pub(crate) const PASSED_TO_TAP: u8 = 19;
    pub(crate) const EVENT: u8 = 20;
    pub(crate) const MARK: u8 = 32;
    pub(crate) const LOST: u8 = 33;
    /// Added to that of a frame that went in: it was passed on as it came.
    pub(crate) const AND_PASSED_ON: u8 = 64;
}

/// Code of a link event.
pub(crate) mod link {
    pub(crate) const UP: u8 = 0;
    pub(crate) const DOWN: u8 = 1;
    pub(crate) const ADDRESS: u8 = 2;
    pub(crate) const MTU: u8 = 3;
    pub(crate) const LAN_UP: u8 = 4;
    pub(crate) const LAN_DOWN: u8 = 5;
    pub(crate) const CHANNEL_BUSY: u8 = 6;
}

/// A record without its bytes takes no more room than this, an event excepted. One of a frame that
/// was passed on has 27 at most: a block is younger than a second, and a length has 32 bits.
pub(crate) const OVERHEAD_MAX: usize = 32;

/// A client in a record of clients.
pub(crate) const CLIENT_LEN: usize = 16;

/// An event takes no more room than this.
pub(crate) const EVENT_MAX: usize = 512;

/// Puts MessagePack at the end of a block. Memory takes everything, so none of these can fail.
trait Put {
    fn begin(&mut self, items: u32, kind: u8, since: u64);
    fn array(&mut self, items: u32);
    fn uint(&mut self, value: u64);
    fn int(&mut self, value: i64);
    fn bin(&mut self, bytes: &[u8]);
    fn text(&mut self, text: &str);
    fn nil(&mut self);
}

impl Put for Vec<u8> {
    #[inline]
    fn begin(&mut self, items: u32, kind: u8, since: u64) {
        self.array(items);
        self.uint(kind.into());
        self.uint(since);
    }

    #[inline]
    fn array(&mut self, items: u32) {
        let _ = encode::write_array_len(self, items);
    }

    #[inline]
    fn uint(&mut self, value: u64) {
        let _ = encode::write_uint(self, value);
    }

    fn int(&mut self, value: i64) {
        let _ = encode::write_sint(self, value);
    }

    #[inline]
    fn bin(&mut self, bytes: &[u8]) {
        let _ = encode::write_bin(self, bytes);
    }

    fn text(&mut self, text: &str) {
        let _ = encode::write_str(self, text);
    }

    fn nil(&mut self) {
        let _ = encode::write_nil(self);
    }
}

/// Microseconds since the first of the block.
#[inline]
pub(crate) fn since(base: Timestamp, at: Timestamp) -> u64 {
    at.as_micros().saturating_sub(base.as_micros())
}

/// What a record of a frame begins with, in one piece: numbers are as wide as they may get. `None`:
/// one is wider.
#[inline]
fn begin_frame(items: u8, kind: u8, since: u64, len: u32) -> Option<[u8; 10]> {
    let [t0, t1, t2, t3] = u32::try_from(since).ok()?.to_be_bytes();
    let [l0, l1] = u16::try_from(len).ok()?.to_be_bytes();
    let (array, time, word) = (Marker::FixArray(items), Marker::U32, Marker::U16);
    Some([array.to_u8(), kind, time.to_u8(), t0, t1, t2, t3, word.to_u8(), l0, l1])
}

/// The same, with the length of what is kept of the frame, which is to be written behind it.
#[inline]
fn begin_kept(out: &mut Vec<u8>, items: u8, kind: u8, since: u64, len: u32, kept: usize) {
    if let (Some(begin), Ok(kept)) = (begin_frame(items, kind, since, len), u16::try_from(kept)) {
        let [a, b, c, d, e, f, g, h, i, j] = begin;
        let [k0, k1] = kept.to_be_bytes();
        out.extend_from_slice(&[a, b, c, d, e, f, g, h, i, j, Marker::Bin16.to_u8(), k0, k1]);
    } else {
        out.begin(items.into(), kind, since);
        out.uint(len.into());
        let _ = encode::write_bin_len(out, u32::try_from(kept).unwrap_or(u32::MAX));
    }
}

/// A frame of one of the five kinds, `len` bytes long, of which these two parts are kept.
#[inline]
pub fn frame(out: &mut Vec<u8>, kind: u8, since: u64, len: u32, head: &[u8], payload: &[u8]) {
    begin_kept(out, 4, kind, since, len, head.len() + payload.len());
    if !head.is_empty() {
        out.extend_from_slice(head);
    }
    out.extend_from_slice(payload);
}

/// How a frame was passed on that did nothing else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassedOn<'a> {
    /// To the radio, behind this header; else to the TAP.
    pub(crate) head: Option<&'a [u8]>,
    /// From this byte on, to its end.
    pub(crate) start: usize,
}

/// A frame that went in and was passed on, `len` bytes long, of which these are kept.
#[inline]
pub(crate) fn frame_passed_on(
    out: &mut Vec<u8>,
    kind: u8,
    since: u64,
    (len, kept): (u32, &[u8]),
    to: PassedOn<'_>,
) {
    begin_kept(out, 6, kind | kind::AND_PASSED_ON, since, len, kept.len());
    out.extend_from_slice(kept);
    match (to.head, to.head.map(|head| u8::try_from(head.len()))) {
        (Some(head), Some(Ok(len))) => {
            out.extend_from_slice(&[Marker::Bin8.to_u8(), len]);
            out.extend_from_slice(head);
        }
        (Some(head), _) => out.bin(head),
        (None, _) => out.push(Marker::Null.to_u8()),
    }
    match u8::try_from(to.start) {
        // Written as itself.
        Ok(start @ 0..0x80) => out.push(start),
        _ => out.uint(to.start as u64),
    }
}

/// What a record of a frame begins with, however wide its numbers are.
#[inline]
fn begin_sized(out: &mut Vec<u8>, items: u8, kind: u8, since: u64, len: u32) {
    match begin_frame(items, kind, since, len) {
        Some(begin) => out.extend_from_slice(&begin),
        None => {
            out.begin(items.into(), kind, since);
            out.uint(len.into());
        }
    }
}

/// The last frame, passed on to the radio behind this header.
#[inline]
pub(crate) fn passed_to_radio(out: &mut Vec<u8>, since: u64, len: u32, head: &[u8], start: usize) {
    begin_sized(out, 5, kind::PASSED_TO_RADIO, since, len);
    out.bin(head);
    out.uint(start as u64);
}

/// The last frame, passed on to the TAP.
#[inline]
pub(crate) fn passed_to_tap(out: &mut Vec<u8>, since: u64, len: u32, start: usize) {
    begin_sized(out, 4, kind::PASSED_TO_TAP, since, len);
    out.uint(start as u64);
}

pub(crate) fn signal(out: &mut Vec<u8>, since: u64, from: Mac, dbm: i8) {
    out.begin(4, kind::SIGNAL, since);
    out.bin(&from.0);
    out.int(dbm.into());
}

pub(crate) fn link_event(out: &mut Vec<u8>, since: u64, event: LinkEvent) {
    out.begin(4, kind::LINK, since);
    let (code, mac, number) = match event {
        LinkEvent::Up => (link::UP, None, None),
        LinkEvent::Down => (link::DOWN, None, None),
        LinkEvent::AddressChanged(mac) => (link::ADDRESS, Some(mac), None),
        LinkEvent::MtuChanged(mtu) => (link::MTU, None, Some(mtu)),
        LinkEvent::LanUp => (link::LAN_UP, None, None),
        LinkEvent::LanDown => (link::LAN_DOWN, None, None),
        LinkEvent::ChannelBusy(percent) => (link::CHANNEL_BUSY, None, Some(percent.into())),
    };
    out.uint(code.into());
    match (mac, number) {
        (Some(mac), _) => out.bin(&mac.0),
        (None, Some(number)) => out.uint(number as u64),
        (None, None) => out.nil(),
    }
}

pub(crate) fn clients(out: &mut Vec<u8>, since: u64, clients: &[Remembered]) {
    out.begin(3, kind::CLIENTS, since);
    let len = clients.len() * CLIENT_LEN;
    let _ = encode::write_bin_len(out, u32::try_from(len).unwrap_or(u32::MAX));
    for Remembered { client, silent_for } in clients {
        out.extend_from_slice(&client.vlan.to_be_bytes());
        out.extend_from_slice(&client.mac.0);
        let silent_us = u64::try_from(silent_for.as_micros()).unwrap_or(u64::MAX);
        out.extend_from_slice(&silent_us.to_be_bytes());
    }
}

pub(crate) fn forget_clients(out: &mut Vec<u8>, since: u64, which: Option<Mac>) {
    out.begin(3, kind::FORGET_CLIENTS, since);
    match which {
        Some(mac) => out.bin(&mac.0),
        None => out.nil(),
    }
}

pub(crate) fn pin(out: &mut Vec<u8>, since: u64, pin: Pin) {
    out.begin(5, kind::PIN, since);
    let (vlan, mac, obu) = match pin {
        Pin::Put { client, obu } => (client.vlan, Some(client.mac), Some(obu)),
        Pin::Take(which) => (0, which, None),
    };
    out.uint(vlan.into());
    match mac {
        Some(mac) => out.bin(&mac.0),
        None => out.nil(),
    }
    match obu {
        Some(obu) => out.bin(&obu.0),
        None => out.nil(),
    }
}

pub(crate) fn ping(out: &mut Vec<u8>, since: u64, ping: Ping) {
    out.begin(5, kind::PING, since);
    out.bin(&ping.target.0);
    out.uint(ping.hop_limit.into());
    out.uint(ping.nonce.into());
}

pub(crate) fn position(out: &mut Vec<u8>, since: u64, located: Option<Located>) {
    out.begin(6, kind::POSITION, since);
    let Some(Located { at, is_fixed }) = located else {
        (0..4).for_each(|_| out.nil());
        return;
    };
    out.int(at.latitude_e7().into());
    out.int(at.longitude_e7().into());
    match at.accuracy_dm() {
        Some(accuracy) => out.uint(accuracy.into()),
        None => out.nil(),
    }
    out.uint(is_fixed.into());
}

pub(crate) fn bare(out: &mut Vec<u8>, kind: u8, since: u64) {
    out.begin(2, kind, since);
}

/// What an operator wants to know.
pub fn event(out: &mut Vec<u8>, since: u64, event: &Event) {
    let (shape, values) = event::take_apart(event);
    out.begin(4, kind::EVENT, since);
    out.uint(shape.code.into());
    out.array(u32::try_from(values.len()).unwrap_or_default());
    for value in &values {
        match value {
            Value::Nil => out.nil(),
            Value::Uint(value) => out.uint(*value),
            Value::Mac(mac) => out.bin(&mac.0),
            Value::Word(word) => out.text(word),
        }
    }
}

pub(crate) fn mark(out: &mut Vec<u8>, since: u64, text: &str) {
    out.begin(3, kind::MARK, since);
    out.text(text);
}

pub(crate) fn lost(out: &mut Vec<u8>, since: u64, count: u64) {
    out.begin(3, kind::LOST, since);
    out.uint(count);
}

/// Any record, in a block that begins at `base`.
pub fn record(out: &mut Vec<u8>, base: Timestamp, record: &Record<'_>) {
    let since = since(base, record.at);
    let mut put = |kind, kept: &Frame<'_>| frame(out, kind, since, kept.len, &[], &kept.bytes);
    match &record.what {
        What::FromRadio(frame) => put(kind::FROM_RADIO, frame),
        What::FromTap(frame) => put(kind::FROM_TAP, frame),
        What::FromTapLate(frame) => put(kind::FROM_TAP_LATE, frame),
        What::Unacknowledged(frame) => put(kind::UNACKNOWLEDGED, frame),
        What::ToRadio(frame) => put(kind::TO_RADIO, frame),
        What::ToTap(frame) => put(kind::TO_TAP, frame),
        What::Signal { from, dbm } => signal(out, since, *from, *dbm),
        What::Link(event) => link_event(out, since, *event),
        What::Timeout => bare(out, kind::TIMEOUT, since),
        What::Shutdown => bare(out, kind::SHUTDOWN, since),
        What::Clients(told) => clients(out, since, told),
        What::ForgetClients(which) => forget_clients(out, since, *which),
        What::Pin(wanted) => pin(out, since, *wanted),
        What::Ping(asked) => ping(out, since, *asked),
        What::Position(located) => position(out, since, *located),
        What::Event(happened) => event(out, since, happened),
        What::Mark(text) => mark(out, since, text),
        What::Lost(count) => lost(out, since, *count),
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unwrap_used,
        reason = "a test may panic"
    )]

    use super::*;
    use crate::decode::{DecodeError, Records};

    #[test]
    fn a_frame_begins_with_numbers_of_one_width() {
        let mut out = Vec::new();
        frame(&mut out, kind::FROM_RADIO, 258, 5, &[7], &[8, 9]);
        let expected = [0x94, 0, 0xce, 0, 0, 1, 2, 0xcd, 0, 5, 0xc5, 0, 3, 7, 8, 9];
        assert_eq!(out, expected);
    }

    #[test]
    fn a_frame_that_was_passed_on_is_two_records() {
        let (kept, long) = ([8, 9, 10], [6; 300]);
        let heads: [Option<&[u8]>; 4] = [None, Some(&[]), Some(&[7; 40]), Some(&long)];
        for head in heads {
            for (start, len) in [(0, 5), (2, 5), (5, 5), (127, 1_400), (128, 1_400), (300, 66_000)]
            {
                for since in [258, 1 << 32] {
                    let mut out = Vec::new();
                    let to = PassedOn { head, start };
                    frame_passed_on(&mut out, kind::FROM_TAP, since, (len, &kept), to);
                    bare(&mut out, kind::TIMEOUT, since);
                    let records = Records::new(&out, Timestamp::ZERO);
                    let read: Vec<_> = records.map(|record| record.unwrap()).collect();
                    assert!(read.iter().all(|record| record.at.as_micros() == since));
                    let [taken, passed, last] = &read[..] else { panic!("{read:?}") };
                    let whole = Frame { len, bytes: kept[..].into() };
                    assert_eq!(taken.what, What::FromTap(whole));
                    let bare = head.unwrap_or_default();
                    let payload = kept.get(start..).unwrap_or_default();
                    let len =
                        len + u32::try_from(bare.len()).unwrap() - u32::try_from(start).unwrap();
                    let frame = Frame { len, bytes: [bare, payload].concat().into() };
                    let expected = match head {
                        Some(_) => What::ToRadio(frame),
                        None => What::ToTap(frame),
                    };
                    assert_eq!(passed.what, expected);
                    assert_eq!(last.what, What::Timeout);
                }
            }
        }
    }

    #[test]
    fn only_a_frame_that_went_in_can_be_passed_on() {
        for kind in [kind::TO_RADIO, kind::TIMEOUT, kind::EVENT, kind::LOST] {
            let mut out = Vec::new();
            frame_passed_on(&mut out, kind, 0, (1, &[1]), PassedOn { head: None, start: 0 });
            let read: Vec<_> = Records::new(&out, Timestamp::ZERO).collect();
            let wrong = kind | kind::AND_PASSED_ON;
            assert_eq!(read, [Err(DecodeError::Kind(wrong))]);
        }
        // An item that a later version appended, and that is not there.
        let torn = [0x97, kind::AND_PASSED_ON, 0, 0, 0xc4, 0, 0xc0, 0];
        let read: Vec<_> = Records::new(&torn, Timestamp::ZERO).collect();
        assert_eq!(read, [Err(DecodeError::Short)], "nothing comes behind an error");
        let mut out = Vec::new();
        let beyond = PassedOn { head: None, start: 2 };
        frame_passed_on(&mut out, kind::FROM_TAP, 0, (1, &[1]), beyond);
        assert!(matches!(Records::new(&out, Timestamp::ZERO).next(), Some(Err(_))));
    }

    #[test]
    fn frames_of_any_length_at_any_time_come_back() {
        for since in [0, u64::from(u32::MAX), 1 << 32] {
            for len in [0usize, 65_535, 65_536] {
                let bytes = vec![7; len];
                let size = u32::try_from(len).unwrap();
                let mut out = Vec::new();
                frame(&mut out, kind::FROM_RADIO, since, size, &[], &bytes);
                passed_to_radio(&mut out, since, size, &[], 0);
                passed_to_tap(&mut out, since, size, 0);
                let read: Vec<_> =
                    Records::new(&out, Timestamp::ZERO).map(|record| record.unwrap()).collect();
                assert_eq!(read.len(), 3);
                for record in read {
                    assert_eq!(record.at.as_micros(), since);
                    let is_same = record.what.frame() == Some(&Frame::from(&bytes[..]));
                    assert!(is_same, "{len} bytes at {since}");
                }
            }
        }
    }
}
