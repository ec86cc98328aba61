//! The medium process: sockets and standard input around a [`SharedMedium`].
//!
//! A node asks its radio to send control before data (`SO_PRIORITY`), and one with queues per class
//! does (IEEE 802.11 §10.2.4.2). A veth pair forgets the priority, so the medium tells control by
//! the type of the message. It has a socket for it, so that data that waits here takes no room from
//! it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::Instant;

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use node_lib::Mac;
use node_lib::device::packet;

use super::monitor::MonitorDevice;
use super::shared::QueueClass;
use super::{LinkStatistics, MediumAnswer, MediumRequest, SharedMedium};
use crate::arena::sys::PromiscuousSocket;

/// Frames taken from one radio before the others have their turn.
const BURST_MAX: usize = 64;
/// The longest frame: what a veth pair with the largest MTU carries, with a VLAN tag.
const FRAME_MAX: usize = 65_535 + 18;

/// Carries frames until standard input ends.
pub fn serve(seed: u64) -> Result<()> {
    let mut medium = SharedMedium::new(seed);
    let mut ends = Ends::default();
    let mut typed = Vec::new();
    let mut buf = vec![0; FRAME_MAX];
    loop {
        let ready = wait(&ends.radios, medium.poll_timeout())?;
        let now = Instant::now();
        let Ends { radios, monitors } = &mut ends;
        let radios = &*radios;
        medium.handle_timeout(now, &mut |to, frame, dbm| {
            deliver(radios, monitors, to, frame, dbm);
        });
        let mut carry_from = |name: &str, class, queue: &PromiscuousSocket| {
            carry(now, (name, class), queue, &mut buf, &mut medium, radios, monitors);
        };
        let mut with_data = ready.radios.iter();
        loop {
            // Before each burst of data, not only once: another radio may have had something to
            // say.
            radios
                .iter()
                .for_each(|(name, radio)| carry_from(name, QueueClass::Control, &radio.control));
            let Some(name) = with_data.next() else { break };
            if let Some(radio) = radios.get(name) {
                carry_from(name, QueueClass::Data, &radio.data);
            }
        }
        if ready.input && !obey(&mut typed, &mut medium, &mut ends)? {
            return Ok(());
        }
    }
}

/// What one radio has sent and is not yet on its way, up to [`BURST_MAX`] frames.
fn carry(
    now: Instant,
    (from, class): (&str, QueueClass),
    queue: &PromiscuousSocket,
    buf: &mut [u8],
    medium: &mut SharedMedium,
    radios: &BTreeMap<String, Radio>,
    monitors: &mut BTreeMap<String, MonitorDevice>,
) {
    for _ in 0..BURST_MAX {
        // An error: the radio is down, and comes back by itself; or it was deleted, and this socket
        // stays silent until the radio is attached again.
        let Ok(Some(frame)) = queue.recv(buf) else { return };
        medium.send(now, from, class, frame, &mut |to, frame, dbm| {
            deliver(radios, monitors, to, frame, dbm);
        });
    }
}

/// The medium's end of one radio.
#[derive(Debug)]
struct Radio {
    control: PromiscuousSocket,
    /// Everything else; what is delivered goes through it too.
    data: PromiscuousSocket,
}

impl Radio {
    fn open(interface: &str) -> io::Result<Self> {
        let open = |control| PromiscuousSocket::open_filtered(interface, &packet::filter(control));
        Ok(Self { control: open(true)?, data: open(false)? })
    }
}

/// The medium's end of each radio, by name.
#[derive(Debug, Default)]
struct Ends {
    radios: BTreeMap<String, Radio>,
    monitors: BTreeMap<String, MonitorDevice>,
}

struct Ready {
    input: bool,
    /// Radios with data; control is looked for in any case.
    radios: Vec<String>,
}

fn wait(radios: &BTreeMap<String, Radio>, deadline: Option<Instant>) -> Result<Ready> {
    let stdin = io::stdin();
    let of_data = radios.values().map(|radio| radio.data.as_fd());
    let of_control = radios.values().map(|radio| radio.control.as_fd());
    let sources = std::iter::once(stdin.as_fd()).chain(of_data).chain(of_control);
    let mut polled: Vec<_> = sources.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
    let timeout = deadline.map(|at| at.saturating_duration_since(Instant::now()));
    match ppoll(&mut polled, timeout.map(TimeSpec::from_duration), None) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(error) => return Err(error).context("poll"),
    }
    let mut is_ready = polled.iter().map(|fd| fd.any().unwrap_or(false));
    let input = is_ready.next().unwrap_or(false);
    let radios = radios.keys().zip(is_ready).filter(|(_, ready)| *ready);
    Ok(Ready { input, radios: radios.map(|(name, _)| name.clone()).collect() })
}

/// A frame that cannot be handed over is lost, as it would be at a receiver that is off.
fn deliver(
    radios: &BTreeMap<String, Radio>,
    monitors: &mut BTreeMap<String, MonitorDevice>,
    to: &str,
    frame: &[u8],
    dbm: Option<i8>,
) {
    if let Some((monitor, dbm)) = monitors.get_mut(to).zip(dbm) {
        monitor.hear(frame, dbm);
    }
    if let Some(radio) = radios.get(to) {
        let _ = radio.data.send(frame);
    }
}

/// Handles what was typed. `false` when the conversation is over.
fn obey(typed: &mut Vec<u8>, medium: &mut SharedMedium, ends: &mut Ends) -> Result<bool> {
    let mut chunk = [0; 64 * 1024];
    // Not through `Stdin`, whose buffer would hide requests from `poll`.
    let n = File::from(io::stdin().as_fd().try_clone_to_owned()?)
        .read(&mut chunk)
        .context("read requests")?;
    if n == 0 {
        return Ok(false);
    }
    typed.extend_from_slice(chunk.get(..n).unwrap_or_default());
    while let Some(end) = typed.iter().position(|byte| *byte == b'\n') {
        let line: Vec<u8> = typed.drain(..=end).collect();
        let answer = match serde_json::from_slice(&line) {
            Ok(request) => answer(request, medium, ends),
            Err(error) => MediumAnswer::Failed(error.to_string()),
        };
        let mut line = serde_json::to_vec(&answer)?;
        line.push(b'\n');
        let mut stdout = io::stdout().lock();
        stdout.write_all(&line)?;
        stdout.flush()?;
    }
    Ok(true)
}

fn answer(request: MediumRequest, medium: &mut SharedMedium, ends: &mut Ends) -> MediumAnswer {
    match request {
        MediumRequest::Attach { radio, mac } => match Radio::open(&radio) {
            Ok(end) => {
                medium.attach(&radio, Mac(mac));
                ends.radios.insert(radio, end);
                MediumAnswer::Done
            }
            Err(error) => MediumAnswer::Failed(format!("{radio}: {error}")),
        },
        MediumRequest::Monitor { radio } => match MonitorDevice::create() {
            Ok((monitor, name)) => {
                ends.monitors.insert(radio, monitor);
                MediumAnswer::Created(name)
            }
            Err(error) => MediumAnswer::Failed(format!("monitor of {radio}: {error}")),
        },
        MediumRequest::Link { from, to, quality } => {
            medium.link(&from, &to, quality);
            MediumAnswer::Done
        }
        MediumRequest::Play { base, steps } => {
            medium.play(Instant::now(), base, &steps);
            MediumAnswer::Done
        }
        MediumRequest::Statistics => MediumAnswer::Statistics(
            medium
                .counters()
                .map(|(from, to, counters)| {
                    let (from, to) = (from.to_owned(), to.to_owned());
                    LinkStatistics { from, to, counters }
                })
                .collect(),
        ),
    }
}
