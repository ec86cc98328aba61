//! [`ClientFile`]: who is behind the TAP, written down beside the state file for the next start.
//!
//! ```text
//! v2x-clients 1
//! at 1764022145 5123 6f0c3a52-5b0e-4c1e-9d8e-0b7c1f2a9d11
//! 0 02:00:00:00:00:07 12
//! crc32 5f3c0a91
//! ```
//!
//! The second line says when: seconds since 1970, seconds of uptime, and the boot id of the
//! machine. Then a line for each client: VLAN, MAC, and seconds since its last frame. The checksum
//! is that of all lines before.
//!
//! It is a help and never a condition. One that is missing, damaged or too old is left out, and one
//! that cannot be written is a warning; the node runs without. How old it is the machine's uptime
//! tells, whatever becomes of the clock; after the machine itself has restarted, the time of day.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Duration;

use tracing::{info, warn};

use super::boot;
use crate::control::node::Node;
use crate::device;
use crate::mac::Mac;
use crate::messages::control::announcement::Client;
use crate::start::boot::EPOCH;
use crate::start::clients::{self, AGE_MAX, CLIENTS_MAX, Notes, Remembered};
use crate::time::Timestamp;

const HEADING: &str = "v2x-clients 1";

/// Longest file looked at; 512 clients take some 16 KiB.
const FILE_LEN_MAX: u64 = 64 * 1024;

/// The last note gets this long at the end of a daemon.
const FINISH_WITHIN: Duration = Duration::from_millis(500);

/// Where clients are written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFile {
    path: PathBuf,
}

/// A file that tells no clients, and why.
#[derive(Debug, thiserror::Error)]
#[error("client file {}: {problem}", path.display())]
pub struct ClientFileError {
    path: PathBuf,
    problem: Problem,
}

#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("cannot {operation}: {source}")]
    Io { operation: &'static str, source: io::Error },
    #[error("it is no file")]
    NotAFile,
    #[error("it is longer than {FILE_LEN_MAX} bytes")]
    TooLong,
    #[error("it is cut off or damaged: the checksum in its last line is not that of the rest")]
    Damaged,
    #[error("its first line is not {HEADING:?}: another version wrote it, or it is something else")]
    Heading,
    #[error("line {line}: expected {expected}")]
    Line { line: usize, expected: &'static str },
    #[error("it is {} minutes old, and clients are remembered for 60", age.as_secs() / 60)]
    TooOld { age: Duration },
    #[error("the clock of this machine does not tell how old it is: it was set back, or never set")]
    Undated,
}

/// When something is or was written, by all clocks there are.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Moment {
    since_1970: Duration,
    uptime: Duration,
    /// Tells one start of the machine from another; empty if it does not tell.
    machine: String,
}

impl Moment {
    fn now() -> Self {
        let machine = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let machine = machine.trim().to_owned();
        Self { since_1970: boot::wall_clock(), uptime: device::boottime(), machine }
    }

    /// The time from `earlier` to this. `None` if nothing tells.
    fn since(&self, earlier: &Self) -> Option<Duration> {
        let by_uptime = self.uptime.checked_sub(earlier.uptime);
        if let Some(elapsed) = by_uptime
            && !self.machine.is_empty()
            && self.machine == earlier.machine
        {
            return Some(elapsed);
        }
        let by_clock = self.since_1970.checked_sub(earlier.since_1970);
        by_clock.filter(|_| earlier.since_1970 >= EPOCH)
    }
}

impl ClientFile {
    /// That of the node with this state file.
    pub fn beside(state_file: &Path) -> Self {
        let mut path = state_file.as_os_str().to_owned();
        path.push(".clients");
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Who is still remembered; nobody if there is no file.
    pub fn read(&self) -> Result<Vec<Remembered>, ClientFileError> {
        self.load(&Moment::now()).map_err(|problem| self.error(problem))
    }

    fn error(&self, problem: Problem) -> ClientFileError {
        ClientFileError { path: self.path.clone(), problem }
    }

    fn load(&self, now: &Moment) -> Result<Vec<Remembered>, Problem> {
        let error = |source| Problem::Io { operation: "read it", source };
        // A pipe would make us wait for somebody who writes into it.
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&self.path);
        let file = match opened {
            Ok(file) => file,
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(error(source)),
        };
        if !file.metadata().map_err(error)?.is_file() {
            return Err(Problem::NotAFile);
        }
        let mut bytes = Vec::new();
        file.take(FILE_LEN_MAX + 1).read_to_end(&mut bytes).map_err(error)?;
        if bytes.len() as u64 > FILE_LEN_MAX {
            return Err(Problem::TooLong);
        }
        let (written, noted) = parse(&String::from_utf8_lossy(&bytes))?;
        let age = now.since(&written).ok_or(Problem::Undated)?;
        if age >= AGE_MAX {
            return Err(Problem::TooOld { age });
        }
        Ok(clients::after(noted, age))
    }

    /// Writes a new file and puts it in place of the old one: whenever the power fails, one of the
    /// two is there whole.
    fn write(&self, clients: &[Remembered]) -> Result<(), ClientFileError> {
        let error = |operation| move |source| self.error(Problem::Io { operation, source });
        let mut temporary = self.path.as_os_str().to_owned();
        temporary.push(".new");
        let temporary = PathBuf::from(temporary);
        let mut file = File::create(&temporary).map_err(error("create a new one beside it"))?;
        file.write_all(emit(&Moment::now(), clients).as_bytes())
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&temporary, &self.path))
            .map_err(error("replace it"))
    }
}

fn emit(now: &Moment, clients: &[Remembered]) -> String {
    let Moment { since_1970, uptime, machine } = now;
    let machine = if machine.is_empty() { "-" } else { machine };
    let mut text =
        format!("{HEADING}\nat {} {} {machine}\n", since_1970.as_secs(), uptime.as_secs());
    for Remembered { client: Client { vlan, mac }, silent_for } in clients {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{vlan} {mac} {}", silent_for.as_secs());
    }
    let checksum = crc32fast::hash(text.as_bytes());
    let _ = writeln!(text, "crc32 {checksum:08x}");
    text
}

fn parse(text: &str) -> Result<(Moment, Vec<Remembered>), Problem> {
    if !text.starts_with(HEADING) {
        return Err(Problem::Heading);
    }
    let body = text.trim_end_matches('\n');
    let (body, last) = body.rfind('\n').map_or(("", body), |end| body.split_at(end + 1));
    let checksum = last.strip_prefix("crc32 ").and_then(|hex| u32::from_str_radix(hex, 16).ok());
    if checksum != Some(crc32fast::hash(body.as_bytes())) {
        return Err(Problem::Damaged);
    }
    let mut lines = body.lines().enumerate().skip(1).map(|(index, line)| (index + 1, line));
    let (line, at) = lines.next().unwrap_or_default();
    let moment = moment(at)
        .ok_or(Problem::Line { line, expected: "\"at\", two times in seconds, and a boot id" })?;
    let mut clients = Vec::new();
    for (line, text) in lines {
        let expected = "VLAN, MAC and a time in seconds";
        let error = Problem::Line { line, expected };
        if clients.len() == CLIENTS_MAX {
            return Err(Problem::Line { line, expected: "512 clients at most" });
        }
        clients.push(client(text).ok_or(error)?);
    }
    Ok((moment, clients))
}

fn moment(line: &str) -> Option<Moment> {
    let mut fields = line.split(' ');
    let is_moment = fields.next() == Some("at");
    let mut seconds = || Some(Duration::from_secs(fields.next()?.parse().ok()?));
    let (since_1970, uptime) = (seconds()?, seconds()?);
    let machine = fields.next().map(|machine| if machine == "-" { "" } else { machine });
    let machine = machine?.to_owned();
    (is_moment && fields.next().is_none()).then_some(Moment { since_1970, uptime, machine })
}

fn client(line: &str) -> Option<Remembered> {
    let mut fields = line.split(' ');
    let vlan = fields.next()?.parse().ok().filter(|vlan| *vlan < 4096)?;
    let mac: Mac = fields.next()?.parse().ok()?;
    let silent_for = Duration::from_secs(fields.next()?.parse().ok()?);
    let is_whole = fields.next().is_none() && mac.is_unicast();
    is_whole.then_some(Remembered { client: Client { vlan, mac }, silent_for })
}

/// Notes the clients of a node while it runs, on a thread of its own: a disk may be slow, or hang.
#[derive(Debug)]
pub(super) struct Keeper {
    notes: Notes,
    to_writer: SyncSender<Vec<Remembered>>,
    ended: Receiver<()>,
    /// The last note was not written.
    is_lost: Arc<AtomicBool>,
}

impl Keeper {
    pub(super) fn start(file: ClientFile, now: Timestamp) -> Self {
        let (to_writer, to_write) = mpsc::sync_channel(1);
        let (end, ended) = mpsc::channel();
        let is_lost = Arc::new(AtomicBool::new(false));
        let lost = Arc::clone(&is_lost);
        let path = file.path.clone();
        let writer = move || {
            write_all(&file, &to_write, &lost);
            // Who has waited long enough does not hear it.
            let _ = end.send(());
        };
        if let Err(cause) = std::thread::Builder::new().name("clients".to_owned()).spawn(writer) {
            warn!(file = %path.display(), %cause, "no thread to write clients down");
        }
        Self { notes: Notes::new(now), to_writer, ended, is_lost }
    }

    pub(super) fn deadline(&self) -> Timestamp {
        self.notes.deadline()
    }

    pub(super) fn drive(&mut self, now: Timestamp, node: &impl Node) {
        if now < self.notes.deadline() {
            return;
        }
        if self.is_lost.swap(false, Ordering::Relaxed) {
            self.notes.lose();
        }
        if let Some(clients) = self.notes.drive(now, || node.clients(now)) {
            // The one before is still being written.
            if self.to_writer.try_send(clients).is_err() {
                self.notes.lose();
            }
        }
    }

    /// Notes them a last time, and waits a moment for it.
    pub(super) fn finish(self, now: Timestamp, node: &impl Node) {
        let Self { to_writer, ended, .. } = self;
        let _ = to_writer.try_send(node.clients(now));
        drop(to_writer);
        let _ = ended.recv_timeout(FINISH_WITHIN);
    }
}

/// A row of failures is one warning.
fn write_all(file: &ClientFile, to_write: &Receiver<Vec<Remembered>>, is_lost: &AtomicBool) {
    let mut is_failing = false;
    while let Ok(clients) = to_write.recv() {
        match file.write(&clients) {
            Ok(()) if is_failing => info!(file = %file.path.display(), "clients are written again"),
            Ok(()) => {}
            Err(error) => {
                is_lost.store(true, Ordering::Relaxed);
                if !is_failing {
                    warn!(%error, "clients are not written down: a restart will not know them");
                }
                is_failing = true;
                continue;
            }
        }
        is_failing = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn moment(minutes: u32, uptime: u32, machine: &str) -> Moment {
        let since_1970 = EPOCH + MINUTE * minutes;
        Moment { since_1970, uptime: MINUTE * uptime, machine: machine.to_owned() }
    }

    fn nth(n: u8, silent_secs: u64) -> Remembered {
        let client = Client { vlan: u16::from(n) * 16, mac: Mac([2, 0, 0, 0, 0, n]) };
        Remembered { client, silent_for: Duration::from_secs(silent_secs) }
    }

    fn scratch(name: &str) -> (tempfile::TempDir, ClientFile) {
        let directory = tempfile::tempdir().unwrap();
        let file = ClientFile::beside(&directory.path().join(name));
        (directory, file)
    }

    #[test]
    fn what_is_written_is_read_again() {
        let (_directory, file) = scratch("boots");
        assert_eq!(file.read().unwrap(), [], "there is none yet");
        file.write(&[nth(7, 40), nth(3, 5)]).unwrap();
        assert!(file.path().ends_with("boots.clients"));
        let read: Vec<_> = file.read().unwrap().into_iter().map(|known| known.client).collect();
        assert_eq!(read, [nth(3, 5).client, nth(7, 40).client]);
        file.write(&[]).unwrap();
        assert_eq!(file.read().unwrap(), []);
        let many: Vec<_> = (0..512).map(|n| nth(7, n)).collect();
        assert!((emit(&Moment::now(), &many).len() as u64) < FILE_LEN_MAX);
        file.write(&many).unwrap();
        assert_eq!(file.read().unwrap().len(), 512);
    }

    #[test]
    fn the_file_is_as_documented() {
        let text = emit(&moment(1, 2, "here"), &[nth(1, 12)]);
        let body = "v2x-clients 1\nat 1704067260 120 here\n16 02:00:00:00:00:01 12\n";
        assert_eq!(text, format!("{body}crc32 {:08x}\n", crc32fast::hash(body.as_bytes())));
        assert_eq!(parse(&text).unwrap(), (moment(1, 2, "here"), vec![nth(1, 12)]));
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_found() {
        let text = emit(&moment(1, 2, "here"), &[nth(1, 12), nth(2, 3)]);
        for end in 0..text.len() - 1 {
            assert!(parse(&text[..end]).is_err(), "cut to {end} bytes");
        }
        for at in 0..text.len() - 1 {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8_lossy(&bytes);
            // In the checksum a letter may stand for the same digit.
            assert!(parse(&changed).is_err(), "byte {at}: {changed}");
        }
    }

    #[test]
    fn a_file_with_something_else_in_it_says_what_was_expected() {
        let (_directory, file) = scratch("boots");
        let sealed = |body: &str| format!("{body}crc32 {:08x}\n", crc32fast::hash(body.as_bytes()));
        let at = format!("{HEADING}\nat 1704067260 120 -\n");
        let too_many = "0 02:00:00:00:00:01 1\n".repeat(513);
        for (content, expected) in [
            (String::new(), "first line"),
            ("yesterday\n".to_owned(), "first line"),
            ("v2x-clients 2\n".to_owned(), "first line"),
            (at.clone(), "cut off or damaged"),
            (sealed(&format!("{HEADING}\n")), "line 0: expected \"at\""),
            (sealed(&format!("{HEADING}\nat 1 2\n")), "line 2: expected \"at\""),
            (sealed(&format!("{at}4096 02:00:00:00:00:01 1\n")), "line 3: expected VLAN"),
            (sealed(&format!("{at}0 ff:ff:ff:ff:ff:ff 1\n")), "line 3: expected VLAN"),
            (sealed(&format!("{at}0 02:00:00:00:00:01 -1\n")), "line 3: expected VLAN"),
            (sealed(&format!("{at}0 02:00:00:00:00:01 1 2\n")), "line 3: expected VLAN"),
            (sealed(&format!("{at}{too_many}")), "line 515: expected 512"),
            ("x".repeat(70_000), "longer than 65536"),
        ] {
            fs::write(file.path(), &content).unwrap();
            let error = file.read().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(error.contains("boots.clients"), "{error}");
        }
        fs::remove_file(file.path()).unwrap();
        fs::create_dir(file.path()).unwrap();
        assert!(file.read().unwrap_err().to_string().contains("no file"));
        assert!(file.write(&[]).unwrap_err().to_string().contains("cannot replace it"));
        let nowhere = ClientFile::beside(Path::new("/proc/nowhere/boots"));
        assert!(nowhere.write(&[]).unwrap_err().to_string().contains("create a new one"));
    }

    #[test]
    fn the_age_is_that_of_the_machine_and_after_its_restart_that_of_the_clock() {
        let written = moment(1000, 50, "a");
        for (now, age) in [
            (moment(1000, 60, "a"), Some(10)),
            // The clock was set, to another year or back.
            (moment(900_000, 60, "a"), Some(10)),
            (moment(0, 60, "a"), Some(10)),
            (moment(1020, 1, "b"), Some(20)),
            (moment(1020, 60, "b"), Some(20)),
            (moment(999, 1, "b"), None),
            // The uptime of a container that was told another.
            (moment(1030, 40, "a"), Some(30)),
        ] {
            assert_eq!(now.since(&written), age.map(|minutes| MINUTE * minutes), "{now:?}");
        }
        let unset = Moment { since_1970: MINUTE, ..written.clone() };
        assert_eq!(moment(1, 1, "b").since(&unset), None);
        let unknown = Moment { machine: String::new(), ..written };
        assert_eq!(
            Moment { uptime: MINUTE * 60, ..unknown.clone() }.since(&unknown),
            Some(Duration::ZERO)
        );
    }

    #[test]
    fn a_file_that_is_too_old_or_of_unknown_age_tells_nobody() {
        let (_directory, file) = scratch("boots");
        let written = emit(&moment(1000, 50, "a"), &[nth(1, 600), nth(2, 0)]);
        fs::write(file.path(), written).unwrap();
        let load = |now| file.load(&now).map_err(|problem| problem.to_string());
        assert_eq!(load(moment(1000, 55, "a")), Ok(vec![nth(2, 300), nth(1, 900)]));
        assert_eq!(load(moment(1000, 105, "a")), Ok(vec![nth(2, 3300)]));
        assert!(load(moment(1000, 110, "a")).unwrap_err().contains("60 minutes old"));
        assert!(load(moment(1, 1, "b")).unwrap_err().contains("set back, or never set"));
    }
}
