//! The thread that reads: a gpsd, or a file with what one said. It may wait as long as it likes:
//! nobody waits for it.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use control_socket::feed::Backoff;
use node_lib::Timestamp;
use tracing::{debug, info, warn};

use super::Shared;
use super::lines::Lines;
use super::tpv;

/// What has a gpsd send its reports (gpsd_json(5), "?WATCH").
const WATCH: &[u8] = b"?WATCH={\"enable\":true,\"json\":true};\n";

/// How long to wait for what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waits {
    /// Before a gpsd that is gone is tried again, at first and at most: it comes back with the
    /// machine it is on, and asking twice a minute costs nothing.
    pub(super) retry: (Duration, Duration),
    /// A gpsd that says nothing for so long is tried anew: it may be gone without a word. One
    /// without a receiver is silent too, and does not mind.
    pub(super) silence: Duration,
    /// For a connection.
    pub(super) connect: Duration,
    /// Between two looks at whether it is still wanted.
    pub(super) look: Duration,
}

impl Waits {
    pub(super) const DEFAULT: Self = Self {
        retry: (Duration::from_millis(500), Duration::from_secs(30)),
        silence: Duration::from_secs(30),
        connect: Duration::from_secs(3),
        look: Duration::from_millis(250),
    };
}

/// Addresses of a name that are tried.
const ADDRESSES_MAX: usize = 8;

/// Tells when to end: as soon as the other side is dropped.
#[derive(Debug)]
pub(super) struct Stop(pub(super) Receiver<Infallible>);

impl Stop {
    /// Waits, unless it is time to end. Returns whether to go on.
    fn wait(&self, span: Duration) -> bool {
        matches!(self.0.recv_timeout(span), Err(RecvTimeoutError::Timeout))
    }

    fn goes_on(&self) -> bool {
        self.wait(Duration::ZERO)
    }
}

/// Listens to a gpsd until it is stopped, over the ends of connections.
pub(super) fn follow(host: &str, port: u16, shared: &Shared, waits: Waits, stop: &Stop) {
    let (least, most) = waits.retry;
    let mut backoff = Backoff::new(least, most);
    let mut is_told = false;
    loop {
        let mut is_heard = false;
        let Err(fault) = listen(host, port, shared, waits, stop, &mut is_heard) else { return };
        if is_heard {
            backoff.reset();
        }
        // Once for each time it goes: the rest stands in the status.
        if is_heard || !is_told {
            warn!(gpsd = %shared.source, %fault, "nothing is heard from gpsd: it is tried again");
        } else {
            debug!(gpsd = %shared.source, %fault, "nothing is heard from gpsd");
        }
        is_told = true;
        shared.lock().fail(fault);
        if !stop.wait(backoff.wait()) {
            return;
        }
    }
}

/// One connection. Ends well only when it is stopped; the error says why there is nothing to hear.
fn listen(
    host: &str,
    port: u16,
    shared: &Shared,
    waits: Waits,
    stop: &Stop,
    is_heard: &mut bool,
) -> Result<(), String> {
    let mut stream = connect(host, port, waits.connect)?;
    let failed = |error: io::Error| error.to_string();
    stream.set_read_timeout(Some(waits.look)).map_err(failed)?;
    stream.set_write_timeout(Some(waits.connect)).map_err(failed)?;
    stream.write_all(WATCH).map_err(failed)?;
    let (mut lines, mut bytes) = (Lines::default(), [0; 4096]);
    let mut heard_at = shared.now();
    while stop.goes_on() {
        match stream.read(&mut bytes) {
            Ok(0) => return Err("it closed the connection".to_owned()),
            Ok(count) => {
                heard_at = shared.now();
                lines.push(bytes.get(..count).unwrap_or_default(), |line| {
                    let is_of_gpsd = shared.take(heard_at, line);
                    if is_of_gpsd && !*is_heard {
                        *is_heard = true;
                        info!(gpsd = %shared.source, "gpsd is heard");
                    }
                    true
                });
            }
            Err(error) if is_nothing(&error) => {
                if shared.now().since(heard_at) > waits.silence {
                    return Err(format!("it says nothing for {} s", waits.silence.as_secs_f64()));
                }
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}

fn is_nothing(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

fn connect(host: &str, port: u16, within: Duration) -> Result<TcpStream, String> {
    let addresses = (host, port).to_socket_addrs().map_err(|error| error.to_string())?;
    let addresses: Vec<SocketAddr> = addresses.take(ADDRESSES_MAX).collect();
    let mut last = "its name has no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, within) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error.to_string(),
        }
    }
    Err(last)
}

/// Plays a file once, each report as long after the first as it was then.
pub(super) fn replay(file: File, shared: &Shared, stop: &Stop) {
    let fault = match play(file, shared, stop) {
        Ok(false) => return,
        Ok(true) => "the file has ended".to_owned(),
        Err(error) => format!("the file cannot be read: {error}"),
    };
    info!(file = %shared.source, %fault, "nothing more is told of the position");
    shared.lock().fail(fault);
}

/// Returns whether it came to the end.
fn play(mut file: File, shared: &Shared, stop: &Stop) -> io::Result<bool> {
    // The time of the first report that has one, and when it was played.
    let mut first: Option<(u64, Timestamp)> = None;
    each_line(&mut file, |line| {
        let mut goes_on = true;
        if let Some(Ok(Some(report))) = line.map(tpv::parse)
            && let Some(at) = report.at_unix_ms
        {
            let (from, begun) = *first.get_or_insert_with(|| (at, shared.now()));
            let due = begun + Duration::from_millis(at.saturating_sub(from));
            goes_on = stop.wait(due.since(shared.now()));
        }
        // A file without times is not held up by any of them.
        goes_on = goes_on && stop.goes_on();
        if goes_on {
            shared.take(shared.now(), line);
        }
        goes_on
    })
}

/// Hands out the lines of a file as long as it is told to go on; `None` for one that is too long.
/// The last one need not have an end. Returns whether it was told to go on to the end of the file.
fn each_line(file: &mut File, mut take: impl FnMut(Option<&[u8]>) -> bool) -> io::Result<bool> {
    let (mut lines, mut bytes) = (Lines::default(), [0; 4096]);
    let mut goes_on = true;
    while goes_on {
        let count = match file.read(&mut bytes) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let piece = if count == 0 { b"\n" } else { bytes.get(..count).unwrap_or_default() };
        lines.push(piece, |line| {
            goes_on = take(line);
            goes_on
        });
        if count == 0 {
            break;
        }
    }
    Ok(goes_on)
}

/// Looks whether it is a file that could be played, and opens it. The error says what was expected.
pub(super) fn open(path: &Path) -> Result<File, String> {
    let is_file = std::fs::metadata(path).map(|file| file.is_file());
    if !is_file.map_err(|error| error.to_string())? {
        return Err("expected a file".to_owned());
    }
    let mut file = File::open(path).map_err(|error| error.to_string())?;
    let is_report = |line: Option<&[u8]>| matches!(line.map(tpv::parse), Some(Ok(Some(_))));
    if each_line(&mut file, |line| !is_report(line)).map_err(|error| error.to_string())? {
        return Err("expected lines of gpsd, as gpspipe -w writes them: none is a report of \
                    class TPV"
            .to_owned());
    }
    File::open(path).map_err(|error| error.to_string())
}
