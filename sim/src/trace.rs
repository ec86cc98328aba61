//! What happened, line by line: [`Trace`]. The same seed writes the same bytes.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::hash::{Hash, Hasher};
use std::io::{self, Write as _};

use crate::fault::Fault;
use crate::frame::FrameKind;
use node_lib::control::event::Event;
use node_lib::mac::Mac;
use node_lib::time::Timestamp;

/// One line of a trace.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) time: Timestamp,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Fault(Fault),
    Started { node: usize, boot: u32 },
    Stopped { node: usize },
    Sent { node: usize, kind: FrameKind, to: Mac, len: usize, crc: u32 },
    Lost { from: usize, to: usize, crc: u32 },
    Heard { node: usize, from: usize, kind: FrameKind, crc: u32 },
    IntoTap { node: usize, len: usize, crc: u32 },
    OutOfTap { node: usize, len: usize, crc: u32 },
    Received { client: usize, flow: u32, number: u32 },
    Event { node: usize, event: Event },
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.time)?;
        match &self.what {
            What::Fault(fault) => write!(f, "fault {fault}"),
            What::Started { node, boot } => write!(f, "n{node} starts, boot {boot}"),
            What::Stopped { node } => write!(f, "n{node} stops"),
            What::Sent { node, kind, to, len, crc } => {
                write!(f, "n{node} sends {kind} to {to}, {len} B {crc:08x}")
            }
            What::Lost { from, to, crc } => write!(f, "n{to} misses {crc:08x} from n{from}"),
            What::Heard { node, from, kind, crc } => {
                write!(f, "n{node} hears {kind} {crc:08x} from n{from}")
            }
            What::IntoTap { node, len, crc } => write!(f, "n{node} tap in, {len} B {crc:08x}"),
            What::OutOfTap { node, len, crc } => write!(f, "n{node} tap out, {len} B {crc:08x}"),
            What::Received { client, flow, number } => {
                write!(f, "client {client} receives flow {flow} number {number}")
            }
            What::Event { node, event } => write!(f, "n{node} {event:?}"),
        }
    }
}

/// FNV-1a, 64 bits: unlike the hasher of the standard library it is the same in every version.
#[derive(Clone, Debug)]
struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    /// Whole words at once: a byte at a time costs a third of a simulation.
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    }
}

/// The last lines, a hash over all of them and, if asked for, their text: in memory, or written as
/// it comes.
pub(super) struct Trace {
    last: VecDeque<Line>,
    hash: Fnv,
    text: Option<String>,
    to: Option<Box<dyn io::Write + Send>>,
    /// Why it is written no more.
    error: Option<io::Error>,
}

/// Lines shown with a violation.
const LAST_MAX: usize = 60;

impl Trace {
    pub(super) fn new() -> Self {
        Self {
            last: VecDeque::with_capacity(LAST_MAX),
            hash: Fnv(0xcbf2_9ce4_8422_2325),
            text: None,
            to: None,
            error: None,
        }
    }

    /// Writes the text from here on.
    pub(super) fn write_to(&mut self, to: Box<dyn io::Write + Send>) {
        self.to = Some(to);
    }

    /// Ends writing. The error is the first there was: after it nothing was written.
    pub(super) fn end_writing(&mut self) -> io::Result<()> {
        let flushed = self.to.take().map_or(Ok(()), |mut to| to.flush());
        self.error.take().map_or(flushed, Err)
    }

    pub(super) fn keep_text(&mut self) {
        self.text.get_or_insert_default();
    }

    pub(super) fn add(&mut self, time: Timestamp, what: What) {
        let line = Line { time, what };
        line.hash_into(&mut self.hash);
        if let Some(text) = &mut self.text {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{line}");
        }
        if let Some(to) = &mut self.to
            && let Err(error) = writeln!(to, "{line}")
        {
            self.error = Some(error);
            self.to = None;
        }
        if self.last.len() == LAST_MAX {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash.finish()
    }

    pub(super) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    pub(super) fn last(&self) -> Vec<String> {
        self.last.iter().map(Line::to_string).collect()
    }
}

impl Line {
    fn hash_into(&self, hash: &mut Fnv) {
        self.time.hash(hash);
        let words = match &self.what {
            What::Started { node, boot } => [1, *node as u64, u64::from(*boot), 0],
            What::Stopped { node } => [2, *node as u64, 0, 0],
            What::Sent { node, crc, len, .. } => [3, *node as u64, *len as u64, u64::from(*crc)],
            What::Lost { from, to, crc } => [4, *from as u64, *to as u64, u64::from(*crc)],
            What::Heard { node, from, crc, .. } => [5, *node as u64, *from as u64, u64::from(*crc)],
            What::IntoTap { node, len, crc } => [6, *node as u64, *len as u64, u64::from(*crc)],
            What::OutOfTap { node, len, crc } => [7, *node as u64, *len as u64, u64::from(*crc)],
            What::Received { client, flow, number } => {
                [8, *client as u64, u64::from(*flow), u64::from(*number)]
            }
            // Rare enough to be written out.
            What::Fault(_) | What::Event { .. } => {
                hash.write(self.to_string().as_bytes());
                return;
            }
        };
        for word in words {
            hash.write_u64(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Takes so many bytes.
    struct Paper {
        written: Arc<Mutex<Vec<u8>>>,
        room: usize,
    }

    impl io::Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut written = self.written.lock().unwrap();
            let fits = bytes.len().min(self.room.saturating_sub(written.len()));
            if fits == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            written.extend_from_slice(&bytes[..fits]);
            Ok(fits)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn line(node: usize) -> What {
        What::Started { node, boot: 1 }
    }

    #[test]
    fn keeps_the_last_lines_and_the_text_if_asked() {
        let mut trace = Trace::new();
        trace.add(Timestamp::ZERO, line(0));
        assert_eq!(trace.text(), "");
        trace.keep_text();
        for node in 1..=LAST_MAX {
            trace.add(Timestamp::from_millis(1), line(node));
        }
        assert_eq!(trace.last().len(), LAST_MAX);
        assert_eq!(trace.last()[0], "0.001000 s n1 starts, boot 1");
        assert_eq!(trace.text().lines().count(), LAST_MAX);
    }

    #[test]
    fn writes_lines_as_they_come_until_it_cannot() {
        let mut trace = Trace::new();
        let written = Arc::<Mutex<Vec<u8>>>::default();
        trace.write_to(Box::new(Paper { written: written.clone(), room: 1000 }));
        trace.add(Timestamp::ZERO, line(0));
        trace.add(Timestamp::from_millis(1), line(1));
        assert_eq!(trace.text(), "");
        trace.end_writing().unwrap();
        trace.add(Timestamp::from_millis(2), line(2));
        let text = "0.000000 s n0 starts, boot 1\n0.001000 s n1 starts, boot 1\n";
        assert_eq!(std::mem::take(&mut *written.lock().unwrap()), text.as_bytes());
        // There is room for one line.
        trace.write_to(Box::new(Paper { written: written.clone(), room: 30 }));
        for node in 0..3 {
            trace.add(Timestamp::ZERO, line(node));
        }
        assert_eq!(trace.end_writing().unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(
            std::mem::take(&mut *written.lock().unwrap())
                .starts_with(b"0.000000 s n0 starts, boot 1\n")
        );
        trace.end_writing().unwrap();
    }

    #[test]
    fn the_hash_follows_content_and_order() {
        let hash = |nodes: &[usize]| {
            let mut trace = Trace::new();
            for &node in nodes {
                trace.add(Timestamp::ZERO, line(node));
            }
            trace.hash()
        };
        assert_eq!(hash(&[1, 2]), hash(&[1, 2]));
        assert_ne!(hash(&[1, 2]), hash(&[2, 1]));
        assert_ne!(hash(&[1]), hash(&[1, 1]));
    }
}
