//! [`SocketClient`]: asks a daemon and listens to it, one line at a time.

use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::message::{
    ANSWER_MAX, AnswerLine, Ask, Hello, Refusal, Reply, RequestLine, Topics, Update, VERSION,
};

/// A daemon that says nothing for so long does not answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a daemon could not be asked. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// There is no socket.
    #[error("{}: no such socket: is the daemon running, with --control or its \
             default?", .0.display())]
    Missing(PathBuf),
    /// There is one, and nobody behind it.
    #[error("{}: nobody answers: the daemon has ended without a goodbye; start it \
             again", .0.display())]
    Dead(PathBuf),
    /// It is somebody else's.
    #[error("{}: permission denied: be root, or in the group of the socket (ls -l)", .0.display())]
    Forbidden(PathBuf),
    /// Another version.
    #[error(
        "{}: the daemon speaks version {theirs} of the protocol and this program version \
         {VERSION}: use the v2xctl of the daemon's release",
        path.display()
    )]
    Version {
        /// Where.
        path: PathBuf,
        /// What it speaks.
        theirs: u32,
    },
    /// Not a control socket.
    #[error("{}: this is no control socket of a daemon: it said {said:?}", path.display())]
    Foreign {
        /// Where.
        path: PathBuf,
        /// The beginning of what came.
        said: String,
    },
    /// The daemon does not do it.
    #[error("{}: {}", path.display(), refusal.text)]
    Refused {
        /// Where.
        path: PathBuf,
        /// Why.
        refusal: Refusal,
    },
    /// The connection broke.
    #[error("{}: {source}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
}

/// A connection to a daemon.
#[derive(Debug)]
pub struct SocketClient {
    path: PathBuf,
    lines: BufReader<UnixStream>,
    hello: Hello,
    next_id: u64,
    /// A line that has begun.
    partial: Vec<u8>,
}

impl SocketClient {
    /// Connects to the socket at `path`.
    ///
    /// # Errors
    /// Nobody is there, or nobody we understand.
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        let owned = || path.to_owned();
        let stream = UnixStream::connect(path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => ClientError::Missing(owned()),
            io::ErrorKind::ConnectionRefused => ClientError::Dead(owned()),
            io::ErrorKind::PermissionDenied => ClientError::Forbidden(owned()),
            _ => ClientError::Io { path: owned(), source },
        })?;
        let io = |source| ClientError::Io { path: owned(), source };
        stream.set_read_timeout(Some(PATIENCE)).map_err(io)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(io)?;
        let mut lines = BufReader::new(stream);
        let mut line = Vec::new();
        read_line(&mut lines, &mut line).map_err(io)?;
        let foreign = || {
            let said = String::from_utf8_lossy(&line).chars().take(80).collect();
            ClientError::Foreign { path: owned(), said }
        };
        let first: serde_json::Value = serde_json::from_slice(&line).map_err(|_| foreign())?;
        if let Some(refusal) = first.get("error").cloned() {
            let refusal = serde_json::from_value(refusal).map_err(|_| foreign())?;
            return Err(ClientError::Refused { path: owned(), refusal });
        }
        let theirs = first.get("v2x_control").and_then(serde_json::Value::as_u64);
        let theirs = u32::try_from(theirs.ok_or_else(foreign)?).unwrap_or(u32::MAX);
        if theirs != VERSION {
            return Err(ClientError::Version { path: owned(), theirs });
        }
        let hello = serde_json::from_value(first).map_err(|_| foreign())?;
        Ok(Self { path: owned(), lines, hello, next_id: 1, partial: Vec::new() })
    }

    /// Who it is.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Asks, and waits for the answer. Updates that come meanwhile are dropped: use one client for
    /// each subscription.
    ///
    /// # Errors
    /// The daemon refuses, or the connection broke.
    pub fn ask(&mut self, ask: Ask) -> Result<Topics, ClientError> {
        let id = self.next_id;
        self.next_id += 1;
        let mut line = serde_json::to_vec(&RequestLine { id, ask })
            .map_err(|error| self.broken(io::Error::other(error)))?;
        line.push(b'\n');
        self.lines.get_mut().write_all(&line).map_err(|source| self.broken(source))?;
        loop {
            if let Reply::Answer(AnswerLine { id: of, ok, error }) = self.read()?
                && (of == id || of == 0)
            {
                return match (ok, error) {
                    (Some(topics), None) => Ok(*topics),
                    (_, Some(refusal)) => {
                        Err(ClientError::Refused { path: self.path.clone(), refusal })
                    }
                    (None, None) => Err(self.broken(io::Error::other("an answer without content"))),
                };
            }
        }
    }

    /// Waits for the next update of a subscription, however long it takes.
    ///
    /// # Errors
    /// The connection broke, or the daemon has ended.
    pub fn next_update(&mut self) -> Result<Update, ClientError> {
        self.lines.get_mut().set_read_timeout(None).map_err(|source| self.broken(source))?;
        loop {
            if let Reply::Update(update) = self.read()? {
                return Ok(update);
            }
        }
    }

    /// Sends a line as it is.
    pub(crate) fn send(&mut self, line: &[u8]) -> Result<(), ClientError> {
        self.lines.get_mut().write_all(line).map_err(|source| self.broken(source))
    }

    /// The next line of the daemon; `None` if none has come in this time.
    pub(crate) fn next_reply(&mut self, patience: Duration) -> Result<Option<Reply>, ClientError> {
        // None at all would mean to wait for ever.
        let patience = patience.max(Duration::from_millis(1));
        let set = self.lines.get_mut().set_read_timeout(Some(patience));
        set.map_err(|source| self.broken(source))?;
        match self.read_line() {
            Err(ClientError::Io { source, .. }) if is_timeout(&source) => Ok(None),
            Err(error) => Err(error),
            Ok(line) => self.reply(&line).map(Some),
        }
    }

    fn read(&mut self) -> Result<Reply, ClientError> {
        match self.read_line() {
            Ok(line) => self.reply(&line),
            Err(ClientError::Io { source, .. }) => Err(self.broken(source)),
            Err(error) => Err(error),
        }
    }

    fn reply(&self, line: &[u8]) -> Result<Reply, ClientError> {
        serde_json::from_slice(line).map_err(|error| self.broken(io::Error::other(error)))
    }

    /// What has come of a line stays when the rest does not come in time.
    fn read_line(&mut self) -> Result<Vec<u8>, ClientError> {
        let read = read_line(&mut self.lines, &mut self.partial);
        read.map_err(|source| ClientError::Io { path: self.path.clone(), source })?;
        Ok(std::mem::take(&mut self.partial))
    }

    fn broken(&self, source: io::Error) -> ClientError {
        let source = match source {
            _ if is_timeout(&source) => io::Error::other("the daemon does not answer"),
            _ => source,
        };
        ClientError::Io { path: self.path.clone(), source }
    }
}

fn read_line(lines: &mut BufReader<UnixStream>, line: &mut Vec<u8>) -> io::Result<()> {
    let room = ANSWER_MAX.saturating_sub(line.len());
    lines.take(room as u64).read_until(b'\n', line)?;
    match line.pop() {
        Some(b'\n') => Ok(()),
        None => Err(io::Error::other("the daemon has ended")),
        Some(_) => Err(io::Error::other("the daemon ended in the middle of a line")),
    }
}

/// Nothing came in time.
fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
