//! Blocks: records go to disk many at a time, and each such piece says by itself whether it is
//! whole.
//!
//! | offset | bytes | field | meaning |
//! |-------:|------:|-------|---------|
//! |  0 | 4 | magic | `V2XB` |
//! |  4 | 1 | version | [`VERSION`] |
//! |  5 | 1 | kind | 0: the [header](crate::header) of the file, its first block; 1: records |
//! |  6 | 2 | reserved | zero |
//! |  8 | 4 | length | of what follows these 44 bytes, at most [`PAYLOAD_MAX`] |
//! | 12 | 4 | records | how many; a frame with how it was passed on is two |
//! | 16 | 8 | sequence | one more than that of the block before; a gap is a block that could not be written |
//! | 24 | 8 | first | microseconds on the node's clock; times in the block count from here |
//! | 32 | 8 | last | likewise, of the last record |
//! | 40 | 4 | CRC | CRC-32 (IEEE) of the 40 bytes before and of what follows |
//!
//! All numbers are big-endian. A file ends where no whole block begins any more: so a recording is
//! readable up to its last whole block whenever, and however, its writer ended. In a file that
//! still grows four zeros stand where the next block will begin, if anything stands there: what is
//! behind them is of before.

use std::io::{self, Read};

use node_lib::Timestamp;

/// Version of the format of blocks and records.
pub const VERSION: u8 = 1;

/// Bytes before the records.
pub const HEAD_LEN: usize = 44;

/// Longest payload anybody reads: a damaged length must not ask for all memory.
pub const PAYLOAD_MAX: usize = 4 << 20;

/// What stands behind the last block of a file that grows over an older one.
pub(crate) const END: [u8; 4] = [0; 4];

const MAGIC: [u8; 4] = *b"V2XB";
const CRC_AT: usize = 40;

/// What a block is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// Says whose recording this is.
    Header,
    /// Holds records.
    Records,
}

/// What is said about the records of a block in front of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// What it is for.
    pub kind: BlockKind,
    /// How many records.
    pub records: u32,
    /// Which block.
    pub sequence: u64,
    /// Time of the first record.
    pub first: Timestamp,
    /// Time of the last record.
    pub last: Timestamp,
}

impl Head {
    /// What stands in front of a header.
    pub(crate) const fn of_header() -> Self {
        let (first, last) = (Timestamp::ZERO, Timestamp::ZERO);
        Self { kind: BlockKind::Header, records: 0, sequence: 0, first, last }
    }

    /// The bytes in front of `payload`.
    pub fn emit(&self, payload: &[u8]) -> [u8; HEAD_LEN] {
        let mut out = [0; HEAD_LEN];
        let kind = match self.kind {
            BlockKind::Header => 0,
            BlockKind::Records => 1,
        };
        let len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        let fields: [&[u8]; 8] = [
            &MAGIC,
            &[VERSION, kind, 0, 0],
            &len.to_be_bytes(),
            &self.records.to_be_bytes(),
            &self.sequence.to_be_bytes(),
            &self.first.as_micros().to_be_bytes(),
            &self.last.as_micros().to_be_bytes(),
            &[],
        ];
        let mut rest = &mut out[..];
        for field in fields {
            let Some((place, after)) = rest.split_at_mut_checked(field.len()) else { break };
            place.copy_from_slice(field);
            rest = after;
        }
        let (front, crc) = out.split_at_mut(CRC_AT);
        crc.copy_from_slice(&checksum(front, payload).to_be_bytes());
        out
    }
}

fn checksum(front: &[u8], payload: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(front);
    crc.update(payload);
    crc.finalize()
}

/// Why there is no further block in a file.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// It ends in the middle of one: its writer was ended, or the disk was full.
    #[error("ends in the middle of a block")]
    Torn,
    /// These bytes are not a block.
    #[error("no block begins here")]
    NoBlock,
    /// Another version wrote it.
    #[error("format version {0}: expected {VERSION}")]
    Version(u8),
    /// Its bytes are not those that were written.
    #[error("the checksum of a block is wrong")]
    Checksum,
    /// Its records make no sense though the checksum is right.
    #[error("a record cannot be read: {0}")]
    Record(#[from] crate::decode::DecodeError),
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads blocks one after the other.
#[derive(Debug)]
pub struct BlockReader<R> {
    input: R,
    payload: Vec<u8>,
    good: u64,
    is_growing: bool,
}

impl<R: Read> BlockReader<R> {
    /// Reads from here on.
    pub fn new(input: R) -> Self {
        Self { input, payload: Vec::new(), good: 0, is_growing: false }
    }

    /// Reads what is still written, or was when its writer ended: zeros are its end.
    pub fn growing(input: R) -> Self {
        Self { is_growing: true, ..Self::new(input) }
    }

    /// Bytes of all blocks so far that were whole.
    pub fn good(&self) -> u64 {
        self.good
    }

    /// The next block; `None` at the end of a file that ends with a whole one.
    pub fn next_block(&mut self) -> Result<Option<(Head, &[u8])>, Fault> {
        let mut head = [0; HEAD_LEN];
        match read_up_to(&mut self.input, &mut head)? {
            0 => return Ok(None),
            have if self.is_growing && have >= END.len() && head.starts_with(&END) => {
                return Ok(None);
            }
            HEAD_LEN => {}
            have => {
                let have = head.get(..have.min(MAGIC.len())).unwrap_or_default();
                return Err(if MAGIC.starts_with(have) { Fault::Torn } else { Fault::NoBlock });
            }
        }
        let (known, len) = parse(&head)?;
        self.payload.resize(len, 0);
        if read_up_to(&mut self.input, &mut self.payload)? < len {
            return Err(Fault::Torn);
        }
        let (front, crc) = head.split_at(CRC_AT);
        if checksum(front, &self.payload).to_be_bytes() != crc {
            return Err(Fault::Checksum);
        }
        self.good += (HEAD_LEN + len) as u64;
        Ok(Some((known, &self.payload)))
    }
}

fn parse(head: &[u8; HEAD_LEN]) -> Result<(Head, usize), Fault> {
    // The pattern must cover all bytes: the compiler checks the table above.
    let [m0, m1, m2, m3, version, kind, _, _, rest @ ..] = *head;
    if [m0, m1, m2, m3] != MAGIC {
        return Err(Fault::NoBlock);
    }
    if version != VERSION {
        return Err(Fault::Version(version));
    }
    let kind = match kind {
        0 => BlockKind::Header,
        1 => BlockKind::Records,
        _ => return Err(Fault::NoBlock),
    };
    let mut rest = &rest[..];
    let len = usize::try_from(number::<4>(&mut rest)).unwrap_or(usize::MAX);
    if len > PAYLOAD_MAX {
        return Err(Fault::NoBlock);
    }
    let records = u32::try_from(number::<4>(&mut rest)).unwrap_or(u32::MAX);
    let [sequence, first, last] = [(); 3].map(|()| number::<8>(&mut rest));
    let [first, last] = [first, last].map(Timestamp::from_micros);
    Ok((Head { kind, records, sequence, first, last }, len))
}

fn number<const N: usize>(rest: &mut &[u8]) -> u64 {
    let Some((bytes, after)) = rest.split_first_chunk::<N>() else { return 0 };
    *rest = after;
    bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// Fills `buffer` as far as there is something.
fn read_up_to(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut have = 0;
    while let Some(room) = buffer.get_mut(have..).filter(|room| !room.is_empty()) {
        match input.read(room) {
            Ok(0) => break,
            Ok(more) => have += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(have)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_has_the_bytes_of_the_table() {
        let head = Head {
            kind: BlockKind::Records,
            records: 2,
            sequence: 3,
            first: Timestamp::from_micros(4),
            last: Timestamp::from_micros(5),
        };
        let bytes = head.emit(&[9, 9]);
        let expected = [
            &b"V2XB"[..],
            &[1, 1, 0, 0],
            &2u32.to_be_bytes(),
            &2u32.to_be_bytes(),
            &3u64.to_be_bytes(),
            &4u64.to_be_bytes(),
            &5u64.to_be_bytes(),
        ];
        assert_eq!(bytes[..CRC_AT], expected.concat());
        let file = [&bytes[..], &[9, 9]].concat();
        let mut reader = BlockReader::new(&file[..]);
        assert_eq!(reader.next_block().unwrap(), Some((head, &[9, 9][..])));
        assert!(reader.next_block().unwrap().is_none());
        assert_eq!(reader.good(), 46);
    }

    #[test]
    fn any_changed_byte_is_noticed() {
        let head = Head {
            kind: BlockKind::Records,
            records: 1,
            sequence: 7,
            first: Timestamp::ZERO,
            last: Timestamp::ZERO,
        };
        let file = [&head.emit(b"abc")[..], b"abc"].concat();
        for place in 0..file.len() {
            let mut damaged = file.clone();
            damaged[place] ^= 0x10;
            let mut reader = BlockReader::new(&damaged[..]);
            assert!(reader.next_block().is_err(), "byte {place}");
            assert_eq!(reader.good(), 0);
        }
    }
}
