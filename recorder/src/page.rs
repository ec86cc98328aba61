//! A recording as one web page: [`write()`]. The node is run again, and looked at every so often;
//! the page has a time bar, and shows what the page of a living node shows.
//!
//! What the loop counts, the interfaces and the bundles, is not recorded and so not shown: the
//! counters are those of the node.

use std::io::{self, Write};
use std::time::Duration;

use control_socket::health::problems;
use control_socket::message::Topics;
use control_socket::record::{Change, Happened, History, Moment};
use node_lib::Timestamp;
use node_lib::control::event::Event;
use node_lib::control::node::{LinkEvent, Node};
use node_lib::control::snapshot::{InterfaceState, View, span_ms};

use crate::header::RecordingHeader;
use crate::read::{ReadError, Recording};
use crate::record::{Record, What};
use crate::replay::{self, Outcome, ReplayError};

/// The most looks a page has: an hour of them, one a second, makes some ten megabytes.
pub const LOOKS_MAX: u64 = 5000;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The recording cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It cannot be replayed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// It is too long.
    #[error("more than {LOOKS_MAX} looks: expected a longer --every, or a part of the recording")]
    TooMany,
    /// It cannot be written.
    #[error("cannot write the page: {0}")]
    Write(#[from] io::Error),
}

/// What `--every` takes.
pub(crate) fn every(text: &str) -> Result<Duration, String> {
    let expected = || format!("{text:?}: expected seconds from 0.05 to 3600");
    let seconds: f64 = text.parse().map_err(|_| expected())?;
    if !(0.05..=3600.0).contains(&seconds) {
        return Err(expected());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Writes the page. Returns how many looks are on it.
///
/// # Errors
/// The recording cannot be replayed, or is too long, or the page cannot be written.
pub fn write(
    recording: &Recording,
    every: Duration,
    out: &mut impl Write,
) -> Result<(u64, Outcome), PageError> {
    let [before, after] = web_page::around_recording();
    out.write_all(before.as_bytes())?;
    let node = replay::make(recording.header())?;
    let mut watcher = Watcher::new(recording.header(), every, out);
    let (outcome, node) = replay::watch(recording, node, |record, node| watcher.see(record, node))?;
    // What happened since the last look would not be seen.
    watcher.look(watcher.last, &*node)?;
    let looks = watcher.looks;
    out.write_all(after.as_bytes())?;
    Ok((looks, outcome))
}

/// Looks at the node when it is time to, and keeps what happens in between.
struct Watcher<'a, W> {
    header: &'a RecordingHeader,
    every: Duration,
    out: &'a mut W,
    next: Timestamp,
    /// The last record.
    last: Timestamp,
    looks: u64,
    history: History,
    events: Vec<Happened>,
    changes: Vec<Change>,
    is_radio_up: bool,
    is_lan_up: bool,
}

impl<'a, W: Write> Watcher<'a, W> {
    fn new(header: &'a RecordingHeader, every: Duration, out: &'a mut W) -> Self {
        Self {
            header,
            every,
            out,
            next: header.created(),
            last: header.created(),
            looks: 0,
            history: History::default(),
            events: Vec::new(),
            changes: Vec::new(),
            is_radio_up: true,
            is_lan_up: true,
        }
    }

    fn see(&mut self, record: &Record<'_>, node: &dyn Node) -> Result<(), PageError> {
        self.last = record.at;
        match &record.what {
            What::Event(event) => self.note(record.at, event, node),
            What::Link(LinkEvent::Up) => self.is_radio_up = true,
            What::Link(LinkEvent::Down) => self.is_radio_up = false,
            What::Link(LinkEvent::LanUp) => self.is_lan_up = true,
            What::Link(LinkEvent::LanDown) => self.is_lan_up = false,
            _ => {}
        }
        // What an input brought about comes after it: it is seen before the next one.
        let is_time = record.at >= self.next && !record.what.is_output();
        if is_time { self.look(record.at, node) } else { Ok(()) }
    }

    fn note(&mut self, at: Timestamp, event: &Event, node: &dyn Node) {
        let is_change = matches!(event, Event::UpstreamChanged { .. });
        let routes = if is_change { node.snapshot(at).routes } else { Vec::new() };
        let happened = self.history.note(self.moment(at), event, &routes);
        self.changes.extend(self.history.change_told(&happened).cloned());
        self.events.push(happened);
    }

    fn look(&mut self, at: Timestamp, node: &dyn Node) -> Result<(), PageError> {
        if self.looks >= LOOKS_MAX {
            return Err(PageError::TooMany);
        }
        let moment = self.moment(at);
        let start = self.header.start();
        let interface = |name: &str, is_up| InterfaceState {
            name: name.to_owned(),
            is_up,
            ..InterfaceState::default()
        };
        let mut view = View::default();
        view.uptime_ms = span_ms(at.since(self.header.created()));
        view.node = node.snapshot(at);
        view.radio = interface(&self.header.radio, self.is_radio_up);
        view.radio.mac = Some(start.radio_mac);
        view.tap = interface(&self.header.tap, self.is_lan_up);
        view.counters.node = node.counters().iter().collect();
        let found = problems(&view, self.history.faults(), moment);
        let topics = Topics {
            at_unix_ms: moment.unix_ms,
            node: view.node.id,
            role: view.node.role,
            problems: Some(found),
            view: Some(view),
            events: Some(std::mem::take(&mut self.events)),
            changes: Some(std::mem::take(&mut self.changes)),
            ..Topics::default()
        };
        let text = serde_json::to_string(&topics).map_err(io::Error::from)?;
        let comma = if self.looks == 0 { "" } else { ",\n" };
        // Nothing in it may end the element of the page that it stands in.
        write!(self.out, "{comma}{}", text.replace('<', "\\u003c"))?;
        self.looks += 1;
        self.next = at + self.every;
        Ok(())
    }

    fn moment(&self, at: Timestamp) -> Moment {
        let unix_ms = self.header.began_unix_ns / 1_000_000 + span_ms(at.since(Timestamp::ZERO));
        Moment { unix_ms, clock: at }
    }
}
