//! Writing a recording into one file, at leisure: what the tools do, in the form the name asks for.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use node_lib::Timestamp;

use crate::block::{BlockKind, Head};
use crate::header::RecordingHeader;
use crate::record::Record;
use crate::{encode, json};

/// Payload from which on a block is written.
const ENOUGH: usize = 128 << 10;

/// A file on its way.
#[derive(Debug)]
pub struct FileWriter {
    out: BufWriter<File>,
    form: Form,
}

#[derive(Debug)]
enum Form {
    Lines,
    Blocks { payload: Vec<u8>, records: u32, sequence: u64, first: Timestamp, last: Timestamp },
}

impl FileWriter {
    /// Makes the file, which must not be there, and writes the header. A name that ends in `.jsonl`
    /// gets JSON lines.
    pub fn create(path: &Path, header: &RecordingHeader) -> io::Result<Self> {
        let mut out = BufWriter::new(crate::segment::create(path)?);
        let form = if path.extension().is_some_and(|extension| extension == json::EXTENSION) {
            json::write_header(&mut out, header)?;
            Form::Lines
        } else {
            let payload = header.emit();
            out.write_all(&Head::of_header().emit(&payload))?;
            out.write_all(&payload)?;
            let (first, last) = (Timestamp::ZERO, Timestamp::ZERO);
            Form::Blocks { payload: Vec::new(), records: 0, sequence: 0, first, last }
        };
        Ok(Self { out, form })
    }

    /// So many blocks are missing here.
    pub fn gap(&mut self, blocks: u64) -> io::Result<()> {
        self.flush()?;
        match &mut self.form {
            Form::Lines => json::write_gap(&mut self.out, blocks),
            Form::Blocks { sequence, .. } => {
                *sequence = sequence.saturating_add(blocks);
                Ok(())
            }
        }
    }

    /// The next record.
    pub fn record(&mut self, record: &Record<'_>) -> io::Result<()> {
        match &mut self.form {
            Form::Lines => return json::write_record(&mut self.out, record),
            Form::Blocks { payload, records, first, last, .. } => {
                if *records == 0 {
                    *first = record.at;
                }
                encode::record(payload, *first, record);
                *records += 1;
                *last = record.at;
                if payload.len() < ENOUGH {
                    return Ok(());
                }
            }
        }
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        let Form::Blocks { payload, records, sequence, first, last } = &mut self.form else {
            return Ok(());
        };
        if *records == 0 {
            return Ok(());
        }
        let head = Head {
            kind: BlockKind::Records,
            records: *records,
            sequence: *sequence,
            first: *first,
            last: *last,
        };
        self.out.write_all(&head.emit(payload))?;
        self.out.write_all(payload)?;
        payload.clear();
        *records = 0;
        *sequence += 1;
        Ok(())
    }

    /// Writes what is left.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        self.out.flush()?;
        self.out.get_ref().sync_data()
    }
}
