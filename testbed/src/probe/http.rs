//! The HTTP endpoint of the daemons: a [`Connection`] to it, and its [events](EventStream).

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::arena::netns::Netns;
use crate::topology::world::Testbed;

/// Where the daemons listen: each has a namespace of its own.
pub const PORT: u16 = 8080;

/// An answer that takes longer is none.
const PATIENCE: Duration = Duration::from_secs(10);

/// Gives every daemon of the testbed an endpoint at its next start.
pub fn enable(bed: &Testbed) {
    for node in bed.nodes() {
        node.extra_args.borrow_mut().extend(["--http".to_owned(), PORT.to_string()]);
    }
}

/// A connection that stays open from one question to the next.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    /// Connects to the daemon in a namespace.
    pub fn open(ns: &Netns) -> Result<Self> {
        let address = (Ipv4Addr::LOCALHOST, PORT);
        let stream = ns.run(|| Ok(TcpStream::connect(address)?))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Asks for a path. Returns status and body.
    pub fn get(&mut self, path: &str) -> Result<(u16, String)> {
        self.get_of(path, "localhost")
    }

    /// The same, of whoever this host is.
    pub fn get_of(&mut self, path: &str, host: &str) -> Result<(u16, String)> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        self.stream.get_mut().write_all(request.as_bytes())?;
        let (mut status, mut len) = (None, 0);
        let mut line = String::new();
        loop {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                bail!("{path}: the connection ended in the middle of an answer");
            }
            let text = line.trim_end();
            if status.is_none() {
                status = Some(text.split(' ').nth(1).context(path.to_owned())?.parse()?);
            } else if text.is_empty() {
                break;
            } else if let Some((name, value)) = text.split_once(": ")
                && name.eq_ignore_ascii_case("content-length")
            {
                len = value.parse()?;
            }
        }
        let mut body = vec![0; len];
        self.stream.read_exact(&mut body)?;
        Ok((status.context("a status")?, String::from_utf8(body)?))
    }
}

/// What `/events` says, message by message.
#[derive(Debug)]
pub struct EventStream {
    stream: BufReader<TcpStream>,
}

impl EventStream {
    /// Begins to listen to the daemon in a namespace.
    pub fn open(ns: &Netns) -> Result<Self> {
        let Connection { mut stream } = Connection::open(ns)?;
        stream.get_mut().write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        let mut line = String::new();
        stream.read_line(&mut line)?;
        ensure!(line.starts_with("HTTP/1.1 200 "), "/events: {line}");
        Ok(Self { stream })
    }

    /// The next message: its kind, and what it says.
    pub fn message(&mut self) -> Result<(String, Value)> {
        let mut kind = String::new();
        let mut line = String::new();
        loop {
            line.clear();
            if self.stream.read_line(&mut line).context("/events is silent")? == 0 {
                bail!("/events has ended");
            }
            // Between them are the head and lines of the chunks.
            match line.trim_end().split_once(": ") {
                Some(("event", is)) => is.clone_into(&mut kind),
                Some(("data", data)) => return Ok((kind, serde_json::from_str(data)?)),
                _ => {}
            }
        }
    }
}
