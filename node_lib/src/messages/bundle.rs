//! The bundle: data messages that were waiting for the same neighbour, in one frame.
//!
//! | offset | bytes | field    | meaning                                                              |
//! |-------:|------:|----------|----------------------------------------------------------------------|
//! |      0 |     1 | type     | `0x2a`                                                               |
//! |      1 |     1 | flags    | none                                                                 |
//! |      2 |     2 | length   | 4 + the messages                                                     |
//! |      4 |       | messages | data messages, each from its prefix on, one right behind the other   |
//!
//! A small frame costs a host more for the system calls than for its bytes, and a radio for getting
//! on the air. On a 10 MHz channel at 6 Mbit/s its preamble (40 µs) and the shortest gap before it
//! (AIFS of best effort, 110 µs) take as long as 112 bytes. So what waits together goes together,
//! as in an A-MSDU (IEEE 802.11-2020 §9.3.2.2), and nothing ever waits for company.
//!
//! It is not a message to a node. Whoever drives one opens the frame ([`Messages`]) and hands over
//! what is in it, each message behind the frame's Ethernet header as if it had come alone. A node
//! that is given a bundle refuses it as a type it does not know.

use std::ops::Range;

use super::prefix::{self, VERSION};
use super::{ETHERNET_HEADER_LEN, Kind, ParseError, data};

/// The type code.
pub const CODE: u8 = 10;

/// Length before the first message.
pub const HEADER_LEN: usize = prefix::LEN;

const MESSAGE: &str = "Bundle";
const FIRST_BYTE: u8 = VERSION << 4 | CODE;
/// Where the first message begins in a frame.
const FIRST_OFFSET: usize = ETHERNET_HEADER_LEN + HEADER_LEN;

/// Whether a whole frame says that it is a bundle.
#[inline]
pub fn is_bundle(frame: &[u8]) -> bool {
    frame.get(ETHERNET_HEADER_LEN) == Some(&FIRST_BYTE)
}

/// Whether this message, from its prefix on, may be in a bundle.
fn is_data(message: &[u8]) -> bool {
    const DATA: [u8; 2] =
        [VERSION << 4 | Kind::ToUpstream.code(), VERSION << 4 | Kind::ToDownstream.code()];
    message.first().is_some_and(|first| DATA.contains(first))
}

/// How many of these frames, from the first on, fit into one bundle of at most `frame_max` bytes,
/// Ethernet header included: data messages behind the same header. One means: none but itself.
pub fn fitting<'a>(frame_max: usize, frames: impl IntoIterator<Item = &'a [u8]>) -> usize {
    let mut frames = frames.into_iter();
    let Some((header, first)) = frames.next().and_then(split) else { return 1 };
    let mut len = FIRST_OFFSET + first.len();
    let others = frames.take_while(|frame| {
        let Some((other, message)) = split(frame) else { return false };
        len += message.len();
        len <= frame_max && other == header && is_data(message)
    });
    if is_data(first) { 1 + others.count() } else { 1 }
}

/// Appends one frame with what is in all of these, which must be [fitting].
pub fn emit<'a>(frames: impl IntoIterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    let start = out.len();
    for (header, message) in frames.into_iter().filter_map(split) {
        if out.len() == start {
            out.extend_from_slice(header);
            out.extend_from_slice(&[FIRST_BYTE, 0, 0, 0]);
        }
        out.extend_from_slice(message);
    }
    let length = out.len().saturating_sub(start + ETHERNET_HEADER_LEN);
    let length = u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes();
    if let Some(field) = out.get_mut(start + ETHERNET_HEADER_LEN + 2..start + FIRST_OFFSET) {
        field.copy_from_slice(&length);
    }
}

fn split(frame: &[u8]) -> Option<(&[u8], &[u8])> {
    frame.split_at_checked(ETHERNET_HEADER_LEN)
}

/// Goes through the messages in a bundle. Knows only where they are, so that the frame may be
/// written to meanwhile, behind what is still to come.
#[derive(Clone, Debug)]
pub struct Messages {
    next: usize,
    end: usize,
}

impl Messages {
    /// Judges the prefix of a whole frame. Padding is ignored as it is behind any message.
    pub fn open(frame: &[u8]) -> Result<Self, ParseError> {
        let bytes = frame.get(ETHERNET_HEADER_LEN..).unwrap_or_default();
        let &[FIRST_BYTE, flags, l0, l1, ..] = bytes else {
            let have = bytes.first().map_or(0, |first| first & 0x0f);
            return Err(match bytes.len() {
                0..HEADER_LEN => truncated(HEADER_LEN, bytes.len()),
                _ => ParseError::Type { message: MESSAGE, need: CODE, have },
            });
        };
        if flags >> 6 != 0 {
            return Err(ParseError::Envelope { message: MESSAGE, slot: flags >> 6 });
        }
        if flags != 0 {
            return Err(ParseError::Flags { message: MESSAGE, need: 0, have: flags });
        }
        let length = usize::from(u16::from_be_bytes([l0, l1]));
        if length < HEADER_LEN {
            return Err(ParseError::Length { message: MESSAGE, need: HEADER_LEN, have: length });
        }
        if bytes.len() < length {
            return Err(truncated(length, bytes.len()));
        }
        if bytes.len() > length && bytes.len() > prefix::MIN_BODY_LEN {
            let (need, have) = (length, bytes.len());
            return Err(ParseError::TrailingBytes { message: MESSAGE, need, have });
        }
        Ok(Self { next: FIRST_OFFSET, end: ETHERNET_HEADER_LEN + length })
    }

    /// Which bytes of the frame are the next message. After an error nothing more can be found.
    pub fn next_in(&mut self, frame: &[u8]) -> Option<Result<Range<usize>, ParseError>> {
        let rest = frame.get(self.next..self.end).filter(|rest| !rest.is_empty())?;
        let judged = judge(rest);
        let begin = self.next;
        self.next = judged.as_ref().map_or(self.end, |length| begin + length);
        Some(judged.map(|length| begin..begin + length))
    }
}

/// Length of the data message that `rest` begins with.
fn judge(rest: &[u8]) -> Result<usize, ParseError> {
    let &[first, _, l0, l1, ..] = rest else {
        return Err(truncated(prefix::LEN, rest.len()));
    };
    if !is_data(rest) {
        return Err(ParseError::Type {
            message: MESSAGE,
            need: Kind::ToUpstream.code(),
            have: first & 0x0f,
        });
    }
    let length = usize::from(u16::from_be_bytes([l0, l1]));
    match length {
        0..data::HEADER_LEN => {
            Err(ParseError::Length { message: MESSAGE, need: data::HEADER_LEN, have: length })
        }
        _ if length > rest.len() => Err(truncated(length, rest.len())),
        _ => Ok(length),
    }
}

const fn truncated(need: usize, have: usize) -> ParseError {
    ParseError::Truncated { message: MESSAGE, need, have }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A data frame to neighbour `to` whose message has `len` bytes, all but its prefix `fill`.
    fn data_frame(to: u8, len: u16, fill: u8) -> Vec<u8> {
        let mut frame = vec![to; ETHERNET_HEADER_LEN];
        frame.push(0x28);
        frame.push(0);
        frame.extend_from_slice(&len.to_be_bytes());
        frame.resize(ETHERNET_HEADER_LEN + usize::from(len), fill);
        frame
    }

    fn slices(frames: &[Vec<u8>]) -> impl Iterator<Item = &[u8]> {
        frames.iter().map(Vec::as_slice)
    }

    fn bundle(frames: &[Vec<u8>]) -> Vec<u8> {
        let mut out = Vec::new();
        emit(slices(frames), &mut out);
        out
    }

    /// Every message in a bundle, and the error that ended it.
    fn opened(frame: &[u8]) -> (Vec<Vec<u8>>, Option<ParseError>) {
        let mut messages = match Messages::open(frame) {
            Ok(messages) => messages,
            Err(error) => return (Vec::new(), Some(error)),
        };
        let mut found = Vec::new();
        while let Some(next) = messages.next_in(frame) {
            match next {
                Ok(range) => found.push(frame[range].to_vec()),
                Err(error) => {
                    assert!(messages.next_in(frame).is_none(), "an error is the end");
                    return (found, Some(error));
                }
            }
        }
        (found, None)
    }

    #[test]
    fn what_goes_in_comes_out() {
        let frames = [data_frame(1, 40, 7), data_frame(1, 22, 8), data_frame(1, 100, 9)];
        let bundle = bundle(&frames);
        assert!(is_bundle(&bundle) && !is_bundle(&frames[0]));
        assert_eq!(bundle.len(), 14 + 4 + 162);
        assert_eq!(bundle[..18], [[1; 14].as_slice(), &[0x2a, 0, 0, 166]].concat());
        let messages = frames.iter().map(|frame| frame[14..].to_vec()).collect();
        assert_eq!(opened(&bundle), (messages, None));
    }

    #[test]
    fn only_data_for_the_same_neighbour_goes_together_as_far_as_it_fits() {
        let small = data_frame(1, 40, 0);
        let with = |other: Vec<u8>| fitting(1514, slices(&[small.clone(), other, small.clone()]));
        assert_eq!(with(small.clone()), 3);
        assert_eq!(with(data_frame(2, 40, 0)), 1, "another neighbour");
        let mut control = small.clone();
        control[14] = 0x22;
        assert_eq!(with(control.clone()), 1, "control");
        assert_eq!(fitting(1514, slices(&[control, small.clone()])), 1);
        assert_eq!(with(vec![1; 10]), 1, "no frame at all");
        assert_eq!(with(data_frame(1, 1500 - 40 - 4, 0)), 2, "to the last byte");
        assert_eq!(with(data_frame(1, 1500 - 40 - 3, 0)), 1, "a byte too many");
        assert_eq!(fitting(1514, []), 1);
    }

    #[test]
    fn padding_is_ignored_in_the_smallest_frame_only() {
        let mut padded = bundle(&[data_frame(1, 22, 7)]);
        padded.resize(60, 0xff);
        assert_eq!(opened(&padded).1, None);
        padded.push(0xff);
        let (none, error) = opened(&padded);
        assert!(none.is_empty() && matches!(error, Some(ParseError::TrailingBytes { .. })));
    }

    #[test]
    fn what_is_malformed_ends_it_and_what_came_before_counts() {
        let good = bundle(&[data_frame(1, 30, 7), data_frame(1, 30, 8)]);
        let second = 18 + 30;
        let broken = |at: usize, value: u8| {
            let mut frame = good.clone();
            frame[at] = value;
            let (found, error) = opened(&frame);
            (found.len(), error.expect("it is malformed").to_string())
        };
        for (at, value, before, need) in [
            (14, 0x28, 0, "type"),
            (15, 0x40, 0, "key slot"),
            (15, 0x01, 0, "flags"),
            (17, 3, 0, "length"),
            (17, 200, 0, "200"),
            (second, 0x22, 1, "type"),
            (second + 3, 21, 1, "22"),
            (second + 3, 31, 1, "31"),
        ] {
            let (found, error) = broken(at, value);
            assert_eq!(found, before, "{at}: {error}");
            assert!(error.to_lowercase().contains(need), "{at}: {error}");
        }
        for len in 0..good.len() {
            let (found, error) = opened(&good[..len]);
            assert!(found.is_empty() && error.is_some(), "cut to {len}");
        }
    }
}
