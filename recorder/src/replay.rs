//! The same node again: what went in goes in, and what comes out must be what came out, to the
//! byte.
//!
//! A replay needs the recording from the making of the node on, whole: no record lost, no file of
//! the ring removed. It is as fast as the node is, and stops at the first difference.
//!
//! With a snap length what is not there of a client's frame is zeros, and of what comes out that
//! was passed on from there, length and the bytes that were kept are compared.

use std::collections::VecDeque;
use std::fmt;

use node_lib::control::event::Event;
use node_lib::control::node::{Interface, Node, Replies};
use node_lib::messages::message::Message;
use obu_lib::Obu;
use rsu_lib::Rsu;

use crate::event;
use crate::header::{RecordingHeader, Role};
use crate::read::{Item, ReadError, Recording};
use crate::record::{Frame, Record, What};

/// Why a recording cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It was begun while the node ran.
    #[error(
        "it was begun while the node ran: a replay begins where the node was made (--record); \
         export and diff work from anywhere"
    )]
    Begun,
    /// Its settings are those of another version.
    #[error("its settings are not those of this version: {0}")]
    Settings(#[from] serde_json::Error),
    /// Files of the ring are gone.
    #[error(
        "its beginning is missing ({0} blocks): a replay begins where the node was made; \
         export and diff work from anywhere"
    )]
    Beginning(u64),
}

/// What a replay showed.
#[derive(Debug)]
pub struct Outcome {
    /// Records looked at.
    pub records: u64,
    /// Of these, what went in.
    pub inputs: u64,
    /// Frames and events that came out, equal to the byte.
    pub outputs: u64,
    /// Where it is not the same any more.
    pub difference: Option<Difference>,
    /// Why it could not go on to the end though all was the same so far.
    pub ended: Option<String>,
}

/// The first difference.
#[derive(Debug)]
pub struct Difference {
    /// Number of the record, from 0.
    pub record: u64,
    /// What had gone in.
    pub input: Record<'static>,
    /// What came out then.
    pub recorded: Option<Record<'static>>,
    /// What came out now.
    pub replayed: Option<Record<'static>>,
}

/// The node of a recording, made as it was then.
pub fn make(header: &RecordingHeader) -> Result<Box<dyn Node>, ReplayError> {
    let (start, created) = (header.start(), header.created());
    Ok(match header.role {
        Role::Obu => {
            let settings: obu_lib::Settings = serde_json::from_value(header.settings.clone())?;
            Box::new(Obu::new(settings.config(&start), created))
        }
        Role::Rsu => {
            let settings: rsu_lib::Settings = serde_json::from_value(header.settings.clone())?;
            Box::new(Rsu::new(settings.config(&start), created))
        }
    })
}

/// Replays a recording with the node it is of.
pub fn replay(recording: &Recording) -> Result<Outcome, ReplayError> {
    replay_with(recording, make(recording.header())?)
}

/// Replays a recording with this node, which is to be the one it is of.
pub fn replay_with(recording: &Recording, node: Box<dyn Node>) -> Result<Outcome, ReplayError> {
    Ok(watch(recording, node, |_, _| Ok::<_, ReplayError>(()))?.0)
}

/// The same, and shows the node as it is after each record. Returns it as it was at the end.
///
/// # Errors
/// It cannot be replayed, or whoever watches has had enough.
pub fn watch<E: From<ReplayError> + From<ReadError>>(
    recording: &Recording,
    node: Box<dyn Node>,
    mut show: impl FnMut(&Record<'_>, &dyn Node) -> Result<(), E>,
) -> Result<(Outcome, Box<dyn Node>), E> {
    let header = recording.header();
    if header.part > 0 {
        return Err(ReplayError::Begun.into());
    }
    let mut run = Run {
        node,
        out: Replies::new(),
        waiting: VecDeque::new(),
        input: None,
        outcome: Outcome { records: 0, inputs: 0, outputs: 0, difference: None, ended: None },
    };
    let reports = recording.read(|item| match item {
        Item::Header(_) => Ok(true),
        Item::Gap(blocks) if run.outcome.records == 0 => {
            Err(E::from(ReplayError::Beginning(blocks)))
        }
        Item::Gap(blocks) => {
            run.outcome.ended = Some(format!("{blocks} blocks are missing here"));
            Ok(false)
        }
        Item::Record(record) => {
            let goes_on = run.step(record);
            show(record, &*run.node)?;
            Ok(goes_on)
        }
    })?;
    let mut faults = reports.iter().filter_map(|report| report.fault.as_ref());
    let fault = faults.next_back().map(|fault| format!("the recording {fault}"));
    let ended = run.outcome.ended.take().or(fault);
    // A writer that was killed may have been between an input and what came of it.
    let cut = || {
        (!run.waiting.is_empty()).then(|| "after the last input, before what came of it".to_owned())
    };
    let ended = if run.outcome.difference.is_none() { ended.or_else(cut) } else { ended };
    run.outcome.ended = ended;
    Ok((run.outcome, run.node))
}

/// What came out, and is to be compared.
#[derive(Debug)]
enum Output {
    ToRadio(Vec<u8>),
    ToTap(Vec<u8>),
    Event(Event),
}

struct Run {
    node: Box<dyn Node>,
    out: Replies,
    waiting: VecDeque<Output>,
    input: Option<Record<'static>>,
    outcome: Outcome,
}

impl Run {
    /// Does what the record says, or compares. Says whether to go on.
    fn step(&mut self, record: &Record<'_>) -> bool {
        let go = match &record.what {
            What::Mark(_) => true,
            What::Lost(count) => {
                self.outcome.ended = Some(format!("{count} records were lost here"));
                false
            }
            what if what.is_output() => self.compare(record),
            _ => self.expect_nothing_more() && self.feed(record),
        };
        self.outcome.records += 1;
        go
    }

    fn feed(&mut self, record: &Record<'_>) -> bool {
        let (now, out) = (record.at, &mut self.out);
        match &record.what {
            What::FromRadio(frame) => self.node.handle_wire(now, &frame.filled(), out),
            What::FromTap(frame) => self.node.handle_tap(now, &frame.filled(), out),
            What::FromTapLate(frame) => self.node.handle_tap_late(now, &frame.filled(), out),
            What::Unacknowledged(frame) => {
                self.node.handle_unacknowledged(now, &frame.filled(), out);
            }
            What::Signal { from, dbm } => self.node.handle_signal(now, *from, *dbm),
            What::Link(event) => self.node.handle_link(now, *event, out),
            What::Timeout => self.node.handle_timeout(now, out),
            What::Shutdown => self.node.handle_shutdown(now, out),
            What::Clients(clients) => self.node.handle_clients(now, clients, out),
            What::Ping(ping) => self.node.handle_ping(now, *ping, out),
            What::Position(located) => self.node.handle_position(now, *located),
            What::Pin(pin) => {
                // A refusal changes nothing.
                let _ = self.node.pin_clients(now, *pin, out);
            }
            What::ForgetClients(which) => {
                self.node.forget_clients(now, *which, out);
            }
            _ => {}
        }
        self.outcome.inputs += 1;
        self.input = Some(record.clone().into_owned());
        let replies = self.out.take().into_iter().map(|reply| match reply.interface() {
            Interface::Radio => Output::ToRadio(reply.into_frame()),
            Interface::Tap => Output::ToTap(reply.into_frame()),
        });
        self.waiting.extend(replies);
        while let Some(event) = self.node.poll_event() {
            self.waiting.push_back(Output::Event(event));
        }
        true
    }

    fn compare(&mut self, record: &Record<'_>) -> bool {
        let found = self.waiting.pop_front();
        let is_same = match (&record.what, &found) {
            (What::ToRadio(frame), Some(Output::ToRadio(bytes)))
            | (What::ToTap(frame), Some(Output::ToTap(bytes))) => {
                frame.len as usize == bytes.len() && bytes.starts_with(&frame.bytes)
            }
            (What::Event(event), Some(Output::Event(now))) => event == now,
            _ => false,
        };
        if is_same {
            self.outcome.outputs += 1;
        } else {
            self.differs(Some(record.clone().into_owned()), found);
        }
        is_same
    }

    /// Before the next thing goes in, everything that came out must have been compared.
    fn expect_nothing_more(&mut self) -> bool {
        let more = self.waiting.pop_front();
        let is_same = more.is_none();
        if !is_same {
            self.differs(None, more);
        }
        is_same
    }

    fn differs(&mut self, recorded: Option<Record<'static>>, found: Option<Output>) {
        // The first record has nothing before it: then it is what went in, as far as anybody can
        // say.
        let input = self.input.clone().or_else(|| recorded.clone());
        let Some(input) = input else { return };
        let at = input.at;
        let replayed = found.map(|found| {
            let frame = |bytes: Vec<u8>| {
                let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                Frame { len, bytes: bytes.into() }
            };
            let what = match found {
                Output::ToRadio(bytes) => What::ToRadio(frame(bytes)),
                Output::ToTap(bytes) => What::ToTap(frame(bytes)),
                Output::Event(event) => What::Event(event),
            };
            Record { at, what }
        });
        let record = self.outcome.records;
        self.outcome.difference = Some(Difference { record, input, recorded, replayed });
    }
}

/// A record in words, with the message in it if it is one of ours.
pub fn describe(record: &Record<'_>) -> String {
    let mut text = format!("{} {}", record.at, record.what.name());
    match &record.what {
        What::ToRadio(frame) | What::FromRadio(frame) | What::Unacknowledged(frame) => {
            text += &format!(" {} bytes", frame.len);
            match Message::try_from(&*frame.bytes) {
                Ok(message) => text += &format!(" {message:?}"),
                Err(_) => text += &format!(" {}", crate::text::Hex(&frame.bytes)),
            }
        }
        What::ToTap(frame) | What::FromTap(frame) | What::FromTapLate(frame) => {
            text += &format!(" {frame:?}")
        }
        What::Signal { from, dbm } => text += &format!(" {from} {dbm} dBm"),
        What::Link(event) => text += &format!(" {event:?}"),
        What::Event(event) => text += &format!(" {}", event::describe(event)),
        What::Mark(mark) => text += &format!(" {mark}"),
        What::Lost(count) => text += &format!(" {count} records"),
        What::Clients(clients) => text += &format!(" {clients:?}"),
        What::ForgetClients(which) => text += &format!(" {which:?}"),
        What::Pin(pin) => text += &format!(" {pin:?}"),
        What::Ping(ping) => text += &format!(" {ping:?}"),
        What::Position(Some(located)) => text += &format!(" {located:?}"),
        What::Position(None) => text += " not known",
        What::Timeout | What::Shutdown => {}
    }
    text
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |record: &Option<Record<'_>>| match record {
            Some(record) => describe(record),
            None => "nothing".to_owned(),
        };
        writeln!(f, "first difference at record {}, {}", self.record, self.input.at)?;
        writeln!(f, "  in:       {}", describe(&self.input))?;
        writeln!(f, "  recorded: {}", line(&self.recorded))?;
        write!(f, "  replayed: {}", line(&self.replayed))?;
        let frame = |record: &Option<Record<'static>>| {
            record.as_ref().and_then(|record| record.what.frame()).map(|frame| frame.bytes.to_vec())
        };
        if let (Some(then), Some(now)) = (frame(&self.recorded), frame(&self.replayed)) {
            let same = then.iter().zip(&now).take_while(|(then, now)| then == now).count();
            if same < then.len().max(now.len()) {
                write!(f, "\n  the frames differ from byte {same} on")?;
            }
        }
        Ok(())
    }
}
