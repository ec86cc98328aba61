//! A recording as pcapng, for Wireshark: frames with interface, direction and nanoseconds, and what
//! the node decided as comments on the frames that made it decide.
//!
//! Frames stand as the node saw them: those in a bundle each by itself, and before small ones are
//! put together. A decision that no frame made (a deadline, a signal) is a comment on the first
//! frame the node sent upon it, or on the next there is. At the end it is on the last.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use node_lib::Timestamp;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};

use crate::event;
use crate::header::RecordingHeader;
use crate::read::{FileReport, Item, ReadError, Recording};
use crate::record::{Frame, Record, What};

/// Why an export failed.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The recording cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The capture cannot be written.
    #[error("the capture cannot be written: {0}")]
    Write(#[from] io::Error),
    /// The library that writes it refuses.
    #[error("the capture cannot be written: {0}")]
    Format(PcapError),
}

impl From<PcapError> for ExportError {
    fn from(error: PcapError) -> Self {
        match error {
            PcapError::IoError(error) => Self::Write(error),
            other => Self::Format(other),
        }
    }
}

const RADIO: u32 = 0;
const TAP: u32 = 1;
/// `epb_flags`, the lowest two bits.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;
/// Decimal digits of a second.
const NANOSECONDS: u8 = 9;

/// Writes a capture. Returns how many frames are in it, and what was found in each file.
pub fn pcapng(
    recording: &Recording,
    out: impl Write,
) -> Result<(u64, Vec<FileReport>), ExportError> {
    let header = recording.header();
    let section = SectionHeaderBlock {
        endianness: Endianness::native(),
        major_version: 1,
        minor_version: 0,
        section_length: -1,
        options: vec![
            SectionHeaderOption::UserApplication(header.software.clone().into()),
            SectionHeaderOption::Comment(about(header).into()),
        ],
    };
    let mut out = PcapNgWriter::with_section_header(out, section)?;
    for (name, mac) in [(&header.radio, Some(header.radio_mac)), (&header.tap, header.tap_mac)] {
        let mut options = vec![
            InterfaceDescriptionOption::IfName(name.clone().into()),
            InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
        ];
        if let Some(mac) = mac {
            options.push(InterfaceDescriptionOption::IfMacAddr(mac.to_vec().into()));
        }
        out.write_pcapng_block(InterfaceDescriptionBlock {
            linktype: DataLink::ETHERNET,
            // Some are whole, others not; each says how long it was.
            snaplen: 0,
            options,
        })?;
    }
    let began = Duration::from_nanos(header.began_unix_ns);
    let mut capture =
        Capture { out, began, step: Vec::new(), last: None, comments: Vec::new(), frames: 0 };
    let reports = recording.read(|item| {
        match item {
            Item::Header(_) => {}
            Item::Gap(blocks) => capture.comment(format!("{blocks} blocks are missing here")),
            Item::Record(record) => capture.record(record)?,
        }
        Ok::<_, ExportError>(true)
    })?;
    Ok((capture.finish()?, reports))
}

fn about(header: &RecordingHeader) -> String {
    let (role, id) = (header.role.as_str(), header.start().id);
    format!(
        "{role} {id}, boot {}, seed {:#x}, settings {}",
        header.boot, header.seed, header.settings
    )
}

struct Capture<W: Write> {
    out: PcapNgWriter<W>,
    began: Duration,
    /// The frames of this step: what went in, if that was a frame, then what came out.
    step: Vec<EnhancedPacketBlock<'static>>,
    /// The last frame of the steps before.
    last: Option<EnhancedPacketBlock<'static>>,
    /// For the next frame.
    comments: Vec<String>,
    frames: u64,
}

impl<W: Write> Capture<W> {
    fn record(&mut self, record: &Record<'_>) -> Result<(), ExportError> {
        let at = record.at;
        if record.what.is_input() {
            self.end_step()?;
        }
        match &record.what {
            What::FromRadio(frame) => self.frame(at, RADIO, INBOUND, frame),
            What::FromTap(frame) | What::FromTapLate(frame) => self.frame(at, TAP, INBOUND, frame),
            What::ToRadio(frame) => self.frame(at, RADIO, OUTBOUND, frame),
            What::ToTap(frame) => self.frame(at, TAP, OUTBOUND, frame),
            What::Unacknowledged(frame) => {
                self.comment("the radio gave this frame up: nobody acknowledged it".to_owned());
                self.frame(at, RADIO, OUTBOUND, frame);
            }
            What::Event(happened) => self.comment(event::describe(happened)),
            What::Mark(text) => self.comment(format!("mark: {text}")),
            What::Lost(count) => self.comment(format!("{count} records are missing here")),
            What::Link(event) => self.comment(format!("{at} link: {event:?}")),
            What::Shutdown => self.comment(format!("{at} the node is told to stop")),
            What::ForgetClients(None) => self.comment(format!("{at} clients are forgotten")),
            What::ForgetClients(Some(mac)) => {
                self.comment(format!("{at} client {mac} is forgotten"))
            }
            What::Clients(clients) => {
                self.comment(format!("{at} the node is told of {} clients", clients.len()));
            }
            What::Pin(pin) => self.comment(format!("{at} an operator pins: {pin:?}")),
            What::Ping(ping) => self.comment(format!("{at} an operator asks for {}", ping.target)),
            What::Timeout | What::Signal { .. } | What::Position(_) => {}
        }
        Ok(())
    }

    fn frame(&mut self, at: Timestamp, interface_id: u32, direction: u32, frame: &Frame<'_>) {
        let comments = self.comments.drain(..);
        let mut options: Vec<_> =
            comments.map(|text| EnhancedPacketOption::Comment(text.into())).collect();
        options.push(EnhancedPacketOption::Flags(direction));
        self.step.push(EnhancedPacketBlock {
            interface_id,
            timestamp: self.began + at.since(Timestamp::ZERO),
            original_len: frame.len,
            data: Cow::Owned(frame.bytes.to_vec()),
            options,
        });
    }

    /// On the first frame of the step, or the next there is.
    fn comment(&mut self, text: String) {
        match self.step.first_mut() {
            Some(first) => first.options.push(EnhancedPacketOption::Comment(text.into())),
            None => self.comments.push(text),
        }
    }

    fn end_step(&mut self) -> Result<(), ExportError> {
        for frame in std::mem::take(&mut self.step) {
            if let Some(before) = self.last.replace(frame) {
                self.write(before)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, frame: EnhancedPacketBlock<'static>) -> Result<(), ExportError> {
        self.out.write_pcapng_block(frame)?;
        self.frames += 1;
        Ok(())
    }

    fn finish(mut self) -> Result<u64, ExportError> {
        self.end_step()?;
        if let Some(mut last) = self.last.take() {
            // What was decided after the last frame of all.
            let comments = self.comments.drain(..);
            last.options.extend(comments.map(|text| EnhancedPacketOption::Comment(text.into())));
            self.write(last)?;
        }
        self.out.get_mut().flush()?;
        Ok(self.frames)
    }
}
