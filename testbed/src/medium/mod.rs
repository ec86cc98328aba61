//! The radio medium: a process between the radios of all nodes.
//!
//! Each radio is one end of a veth pair; the other end is in the medium's namespace. What a radio
//! sends is delivered to every radio that hears it, whatever its destination address, as on air.
//!
//! The process ([`serve`]) is told what to do in JSON, one [`MediumRequest`] per line, and answers
//! each with one [`MediumAnswer`]; [`MediumProcess`] is the other side of that conversation.

mod monitor;
mod quality;
mod serve;
mod shared;
mod trace;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use nix::sys::signal;
use nix::unistd::Pid;
use node_lib::Mac;
use serde::{Deserialize, Serialize};

pub use quality::{Counters, HELD_BACK, QUEUE_BYTES, Quality, RETRY_AFTER, SignalStrength};
pub use serve::serve;
pub use shared::SharedMedium;
pub use trace::{MediumLinkStep, MediumLinkTrace};

use crate::arena::netns::Netns;

/// What the medium can be told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum MediumRequest {
    /// A radio's far end appeared, perhaps again.
    Attach {
        /// The radio, and the name of the interface.
        radio: String,
        /// The radio's address.
        mac: [u8; 6],
    },
    /// Give a radio a monitor interface: create it here, down, and say its name.
    Monitor {
        /// The radio.
        radio: String,
    },
    /// `to` hears `from` from now on, this well.
    Link {
        /// The sender.
        from: String,
        /// The receiver.
        to: String,
        /// What happens on the way.
        quality: Quality,
    },
    /// Change links from now on as a trace says, instead of the one being played if there is one.
    Play {
        /// What the trace does not say: everything but loss, delay and signal.
        base: Quality,
        /// The trace.
        steps: Vec<MediumLinkStep>,
    },
    /// Tell what happened so far.
    Statistics,
}

/// What the medium says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MediumAnswer {
    /// It is done.
    Done,
    /// The interface that was created.
    Created(String),
    /// It cannot be done.
    Failed(String),
    /// One entry per direction of a link.
    Statistics(Vec<LinkStatistics>),
}

/// What happened on one direction of one link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkStatistics {
    /// The sender.
    pub from: String,
    /// The receiver.
    pub to: String,
    /// What happened, in frames.
    pub counters: Counters,
}

/// A running medium process and the namespace it works in.
#[derive(Debug)]
pub struct MediumProcess {
    ns: Netns,
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl MediumProcess {
    /// Starts `testbed medium` in a namespace of its own.
    pub fn start(program: &Path, seed: u64) -> Result<Self> {
        let ns = Netns::create("medium")?;
        let mut command = Command::new(program);
        command.args(["medium", "--seed", &seed.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = ns
            .run(|| Ok(command.spawn()?))
            .with_context(|| format!("start {} medium", program.display()))?;
        let (Some(requests), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("the medium has no pipes");
        };
        Ok(Self { ns, child, requests, answers: BufReader::new(answers) })
    }

    /// The namespace where the far ends of radios belong.
    pub fn ns(&self) -> &Netns {
        &self.ns
    }

    /// Starts carrying for a radio whose far end was just created here under the radio's name.
    pub fn attach(&mut self, radio: &str, mac: Mac) -> Result<()> {
        self.ask(&MediumRequest::Attach { radio: radio.to_owned(), mac: mac.0 }).map(drop)
    }

    /// Creates a monitor interface for a radio, in this namespace and down, and says its name.
    /// Frames that arrive at the radio appear there with a radiotap header, where links say how
    /// strong.
    pub fn monitor(&mut self, radio: &str) -> Result<String> {
        match self.ask(&MediumRequest::Monitor { radio: radio.to_owned() })? {
            MediumAnswer::Created(name) => Ok(name),
            other => bail!("the medium answers {other:?} when asked for a monitor interface"),
        }
    }

    /// Lets `to` hear `from`, this well.
    pub fn link(&mut self, from: &str, to: &str, quality: Quality) -> Result<()> {
        let (from, to) = (from.to_owned(), to.to_owned());
        self.ask(&MediumRequest::Link { from, to, quality }).map(drop)
    }

    /// Changes links as a trace says, which begins now. The medium keeps the times by itself.
    ///
    /// A step sets loss, delay and signal of its link; the rest of the quality is `base`.
    pub fn play(&mut self, trace: &MediumLinkTrace, base: Quality) -> Result<()> {
        self.ask(&MediumRequest::Play { base, steps: trace.steps().to_vec() }).map(drop)
    }

    /// What happened on every link so far.
    pub fn statistics(&mut self) -> Result<Vec<LinkStatistics>> {
        match self.ask(&MediumRequest::Statistics)? {
            MediumAnswer::Statistics(statistics) => Ok(statistics),
            other => bail!("the medium answers {other:?} when asked for statistics"),
        }
    }

    /// What happened in one direction so far.
    pub fn counters(&mut self, from: &str, to: &str) -> Result<Counters> {
        let all = self.statistics()?;
        let link = all.into_iter().find(|link| link.from == from && link.to == to);
        link.map(|link| link.counters).with_context(|| format!("{to} never heard {from}"))
    }

    /// Stops the medium where it is, as a machine does that has no time for it, or lets it go on.
    /// What radios send meanwhile waits, as far as there is room.
    pub fn stall(&self, is_stalled: bool) -> Result<()> {
        let signal = if is_stalled { signal::SIGSTOP } else { signal::SIGCONT };
        let pid = Pid::from_raw(self.child.id().try_into().context("a process id")?);
        signal::kill(pid, signal).context("signal the medium")
    }

    fn ask(&mut self, request: &MediumRequest) -> Result<MediumAnswer> {
        let mut line = serde_json::to_string(request)?;
        line.push('\n');
        self.requests.write_all(line.as_bytes()).context("the medium has ended")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        match serde_json::from_str(&answer).context("the medium has ended")? {
            MediumAnswer::Failed(why) => bail!("medium: {why} ({request:?})"),
            answer => Ok(answer),
        }
    }
}

impl Drop for MediumProcess {
    fn drop(&mut self) {
        // It has nothing to say goodbye to.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
