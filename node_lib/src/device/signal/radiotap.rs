//! What stands in front of a frame on a monitor interface (<https://www.radiotap.org>), and who
//! sent the frame behind it.
//!
//! | offset | bytes | field | meaning |
//! |-------:|------:|-------|---------|
//! | 0 | 1 | version | 0 |
//! | 1 | 1 | pad | |
//! | 2 | 2 | length | of the whole header, little-endian as all of it |
//! | 4 | 4 | present | bit *n*: field *n* is there; bit 31: another such word follows |
//!
//! Then the fields of the first word in the order of their bits, each aligned to its own size from
//! the start of the header. The antenna signal is field 5, so that nothing behind it need be known:
//!
//! | bit | bytes | aligned to | field |
//! |----:|------:|-----------:|-------|
//! | 0 | 8 | 8 | time |
//! | 1 | 1 | 1 | flags; 0x40: wrong checksum |
//! | 2 | 1 | 1 | rate |
//! | 3 | 4 | 2 | channel |
//! | 4 | 2 | 1 | hopping |
//! | 5 | 1 | 1 | antenna signal, dBm, two's complement |
//!
//! Words that follow describe single antennas, or are a vendor's; the first word's signal is that
//! of all antennas together (`ieee80211_add_rx_radiotap_header` in mac80211).

use super::reports::Sample;
use crate::mac::Mac;

/// The version of the format there has ever been.
const VERSION: u8 = 0;
/// Up to the end of the first word of presence.
const FIXED_LEN: usize = 8;
/// Another word of presence follows.
const EXTENDED: u32 = 1 << 31;
/// Size of each field up to the signal; also its alignment, but for those of two parts.
const FIELDS: [(usize, usize); 6] = [(8, 8), (1, 1), (1, 1), (4, 2), (2, 1), (1, 1)];
/// Bit of the flags.
const FLAGS: usize = 1;
/// Bit of the antenna signal.
const SIGNAL: usize = 5;
/// In the flags: the frame's checksum is wrong.
const BAD_FCS: u8 = 0x40;

/// A frame of a monitor interface is not what the format says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RadiotapError {
    /// It ends within the header.
    #[error("radiotap: {have} bytes where the header has {need}")]
    Length {
        /// Bytes there should be.
        need: usize,
        /// Bytes there are.
        have: usize,
    },
    /// Its version is another.
    #[error("radiotap: version {0}, expected 0")]
    Version(u8),
    /// The 802.11 header behind it is cut off.
    #[error("802.11: {have} bytes where the header has {need}")]
    Frame {
        /// Bytes there should be.
        need: usize,
        /// Bytes there are.
        have: usize,
    },
}

/// What one frame tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameSignal {
    /// Who came in how strong.
    Sample(Sample),
    /// The checksum is wrong, so that the sender's address may be as well.
    BadFcs,
    /// No sender (acknowledgements have none), or no signal (our own frames, on their way out).
    Nothing,
}

/// Reads the beginning of a frame as a monitor interface gives it; the rest may be cut off.
///
/// # Errors
/// It is shorter than its own headers, or of another version.
pub fn read(bytes: &[u8]) -> Result<FrameSignal, RadiotapError> {
    let short = |need| RadiotapError::Length { need, have: bytes.len() };
    let Some(&[version, _, len0, len1, p0, p1, p2, p3]) = bytes.first_chunk::<FIXED_LEN>() else {
        return Err(short(FIXED_LEN));
    };
    if version != VERSION {
        return Err(RadiotapError::Version(version));
    }
    let len = usize::from(u16::from_le_bytes([len0, len1]));
    let (header, frame) = bytes.split_at_checked(len).ok_or(short(len))?;
    let first = u32::from_le_bytes([p0, p1, p2, p3]);
    // The fields begin behind the last word of presence.
    let (mut present, mut at) = (first, FIXED_LEN);
    while present & EXTENDED != 0 {
        let word = header.get(at..).and_then(|rest| rest.first_chunk());
        present = u32::from_le_bytes(*word.ok_or(short(at + size_of::<u32>()))?);
        at += size_of::<u32>();
    }
    let (mut flags, mut signal) = (0, None);
    for (bit, (size, align)) in FIELDS.into_iter().enumerate() {
        if first & 1 << bit == 0 {
            continue;
        }
        at = at.next_multiple_of(align);
        let &byte = header.get(at..at + size).and_then(<[u8]>::first).ok_or(short(at + size))?;
        match bit {
            FLAGS => flags = byte,
            SIGNAL => signal = Some(byte.cast_signed()),
            _ => {}
        }
        at += size;
    }
    if flags & BAD_FCS != 0 {
        return Ok(FrameSignal::BadFcs);
    }
    let sample = match (signal, transmitter(frame)?) {
        (Some(dbm), Some(from)) => Sample::new(from, dbm),
        _ => None,
    };
    Ok(sample.map_or(FrameSignal::Nothing, FrameSignal::Sample))
}

/// Frame control, duration and receiver address: the least an 802.11 frame has.
const SHORTEST: usize = 10;

/// Types of frames (IEEE 802.11-2020, table 9-1).
const CONTROL: u8 = 1;
const EXTENSION: u8 = 3;
/// Control frames with the address of their transmitter behind that of the receiver: beamforming
/// report poll, VHT NDP announcement, block acknowledgement and the request for it, PS-Poll, RTS,
/// CF-End.
const CONTROL_WITH_TRANSMITTER: [u8; 8] = [4, 5, 8, 9, 10, 11, 14, 15];

/// Who sent an 802.11 frame over the last hop (address 2); `None` if the frame does not say.
fn transmitter(frame: &[u8]) -> Result<Option<Mac>, RadiotapError> {
    let short = |need| RadiotapError::Frame { need, have: frame.len() };
    let control = *frame.first().filter(|_| frame.len() >= SHORTEST).ok_or(short(SHORTEST))?;
    let (kind, subtype) = (control >> 2 & 0b11, control >> 4);
    let is_there = match kind {
        CONTROL => CONTROL_WITH_TRANSMITTER.contains(&subtype),
        kind => kind != EXTENSION,
    };
    if !is_there {
        return Ok(None);
    }
    let need = SHORTEST + 6;
    let address = frame.get(SHORTEST..).and_then(|rest| rest.first_chunk()).ok_or(short(need))?;
    Ok(Some(Mac(*address)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FROM: Mac = Mac([0x02, 0x0b, 0, 0, 1, 7]);

    /// A QoS data frame to a group, as 802.11p has it.
    fn frame(control: u8) -> Vec<u8> {
        let mut frame = vec![control, 0, 0, 0];
        frame.extend([0xff; 6]);
        frame.extend(FROM.0);
        frame.extend([0xff; 6]);
        frame.extend([0; 10]);
        frame
    }

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16);
        digits.chunks(2).map(|pair| byte(pair).unwrap()).collect()
    }

    fn told(header: &str) -> Result<FrameSignal, RadiotapError> {
        read(&[hex(header), frame(0x88)].concat())
    }

    fn sample(dbm: i8) -> Result<FrameSignal, RadiotapError> {
        Ok(FrameSignal::Sample(Sample { from: FROM, dbm }))
    }

    #[test]
    fn the_signal_is_found_behind_whatever_stands_before_it() {
        // Signal alone.
        assert_eq!(told("00 00 09 00 20000000 c4"), sample(-60));
        // Flags, rate, channel (aligned to 2), signal, antenna: as ath9k has it.
        assert_eq!(told("00 00 11 00 2e080000 10 0c 0c17 4001 b5 00 00"), sample(-75));
        // A hole in front of the channel, behind the rate or the flags alone.
        assert_eq!(told("00 00 11 00 2c000000 0c 00 0c17 4001 a6 0000"), sample(-90));
        assert_eq!(told("00 00 10 00 2a000000 10 00 0c17 4001 a6 00"), sample(-90));
        // Hopping: two bytes, aligned to one.
        assert_eq!(told("00 00 0c 00 32000000 10 0102 a6"), sample(-90));
    }

    #[test]
    fn words_of_presence_are_passed_over_before_the_time_is_aligned() {
        // mac80211 with two antennas: three words of presence, then time (aligned to 8 from the
        // start of the header), flags, rate, channel, signal, receiver flags; then each antenna's.
        let header = "00 00 26 00 2f4000a0 200800a0 20080000 \
            1122334455667788 10 02 6c09 a000 c9 00 0000 c9 00 c4 01";
        assert_eq!(told(header), sample(-55));
        // Two words: a hole of four bytes in front of the time.
        let header = "00 00 1c 00 21000080 00000000 eeeeeeee 1122334455667788 c9 eeeeee";
        assert_eq!(told(header), sample(-55));
    }

    #[test]
    fn what_has_no_signal_or_no_sender_tells_nothing() {
        assert_eq!(told("00 00 08 00 00000000"), Ok(FrameSignal::Nothing));
        assert_eq!(told("00 00 09 00 20000000 00"), Ok(FrameSignal::Nothing), "0 dBm: not known");
        assert_eq!(told("00 00 0a 00 22000000 40 c4"), Ok(FrameSignal::BadFcs));
        let header = hex("00 00 09 00 20000000 c4");
        let of = |control: u8| read(&[header.clone(), frame(control)].concat());
        // ACK, CTS, control wrapper, trigger; a DMG beacon.
        for control in [0xd4, 0xc4, 0x74, 0x24, 0x0c] {
            assert_eq!(of(control), Ok(FrameSignal::Nothing), "{control:#04x}");
        }
        // Beacon, probe request, data, null, RTS, block ack request, block ack, PS-Poll.
        for control in [0x80, 0x40, 0x08, 0x48, 0xb4, 0x84, 0x94, 0xa4] {
            assert_eq!(of(control), sample(-60), "{control:#04x}");
        }
        // RTS with a wider channel signalled in the group bit of its sender.
        let mut rts = frame(0xb4);
        rts[10] |= 1;
        assert_eq!(read(&[header, rts].concat()), Ok(FrameSignal::Nothing));
    }

    #[test]
    fn what_is_cut_off_or_of_another_version_says_so() {
        let whole = [hex("00 00 11 00 2e080000 10 0c 0c17 4001 b5 00 00"), frame(0x88)].concat();
        for len in 0..17 + 16 {
            assert!(read(&whole[..len]).is_err(), "{len} bytes");
        }
        for len in 17 + 16..whole.len() {
            assert!(read(&whole[..len]).is_ok(), "{len} bytes");
        }
        let said = |header| told(header).unwrap_err().to_string();
        assert_eq!(said("01 00 09 00 20000000 c4"), "radiotap: version 1, expected 0");
        assert_eq!(said("00 00 08 00 20000000 c4"), "radiotap: 41 bytes where the header has 9");
        assert_eq!(said("00 00 08 00 200000a0"), "radiotap: 40 bytes where the header has 12");
        let short = read(&hex("00 00 09 00 20000000 c4 d400")).unwrap_err();
        assert_eq!(short.to_string(), "802.11: 2 bytes where the header has 10");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..96)) {
            let _ = read(&bytes);
        }

        /// Written field by field as the format says, and found again.
        #[test]
        fn the_signal_is_read_whatever_else_is_present(
            mut first in any::<u32>(),
            words in proptest::collection::vec(any::<u32>(), 0..5),
            dbm in -127_i8..0,
            tail in 0_usize..20,
        ) {
            first = (first | 1 << SIGNAL) & !EXTENDED;
            let mut presence = vec![first];
            presence.extend(words.iter().map(|word| word & !EXTENDED));
            let last = presence.len() - 1;
            presence[..last].iter_mut().for_each(|word| *word |= EXTENDED);
            let mut bytes = vec![0, 0, 0, 0];
            presence.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
            for (bit, (size, align)) in FIELDS.into_iter().enumerate() {
                if first & 1 << bit != 0 {
                    bytes.resize(bytes.len().next_multiple_of(align), 0xee);
                    let fill = if bit == SIGNAL { dbm.cast_unsigned() } else { 0 };
                    bytes.resize(bytes.len() + size, fill);
                }
            }
            bytes.resize(bytes.len() + tail, 0xee);
            let len = u16::try_from(bytes.len()).unwrap();
            bytes[2..4].copy_from_slice(&len.to_le_bytes());
            bytes.extend(frame(0x08));
            prop_assert_eq!(read(&bytes), sample(dbm));
        }
    }
}
