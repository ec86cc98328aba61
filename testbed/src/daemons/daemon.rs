//! One `obu` or `rsu` process in a namespace, its log and its end.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, gettid};
use serde_json::Value;

use crate::arena::netns::Netns;
use crate::daemons::usage::Usage;
use crate::wait::wait_until;

/// A running daemon.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    log: PathBuf,
    /// Length of the log when this daemon started: what stands before is from earlier ones.
    log_from: u64,
}

/// One line of a daemon's JSON log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogEvent(Value);

impl Daemon {
    /// Starts `program` in `ns`; standard output and error are appended to `log`.
    pub fn start(ns: &Netns, program: &Path, args: &[String], log: &Path) -> Result<Self> {
        Self::start_with(ns, program, args, log, None, Duration::ZERO)
    }

    /// The same with standard error elsewhere, if that is said, and with `CLOCK_MONOTONIC` and
    /// `CLOCK_BOOTTIME` so far ahead, in a time namespace of its own.
    pub fn start_with(
        ns: &Netns,
        program: &Path,
        args: &[String],
        log: &Path,
        stderr: Option<Stdio>,
        clock_ahead: Duration,
    ) -> Result<Self> {
        let out = OpenOptions::new().create(true).append(true).open(log)?;
        let log_from = out.metadata()?.len();
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).stdout(out.try_clone()?);
        command.stderr(stderr.unwrap_or_else(|| out.into()));
        let child = ns
            .run(|| {
                if !clock_ahead.is_zero() {
                    children_live_ahead(clock_ahead).context("time namespace")?;
                }
                Ok(command.spawn()?)
            })
            .with_context(|| format!("start {}", program.display()))?;
        Ok(Self { child, log: log.to_owned(), log_from })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where its log is.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Sends a signal to this daemon only.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.child.id()).context("process id")?;
        kill(Pid::from_raw(pid), signal).context("signal")
    }

    /// What it has taken from the machine since it was started.
    pub fn usage(&self) -> Result<Usage> {
        Usage::of(self.child.id()).with_context(|| format!("usage of {}", self.log.display()))
    }

    /// How often it went to sleep since it was started.
    pub fn sleeps(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        Ok(line.context("/proc/PID/status")?.trim().parse()?)
    }

    /// The exit status, once it has ended.
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Waits for its end. Past `timeout` it is killed, and that is an error.
    pub fn wait(&mut self, timeout: Duration) -> Result<ExitStatus> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if start.elapsed() > timeout {
                let threads = threads(self.child.id());
                self.child.kill()?;
                self.child.wait()?;
                bail!("the daemon did not end within {timeout:?} and was killed; {threads}");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Asks for a goodbye and waits for it; anything but a clean exit is an error.
    pub fn terminate(&mut self) -> Result<()> {
        self.signal(Signal::SIGTERM)?;
        let status = self.wait(EXIT_WITHIN)?;
        if !status.success() {
            bail!("after SIGTERM the daemon ended with {status}");
        }
        Ok(())
    }

    /// Ends it without a goodbye, as a crash or a power cut would.
    pub fn kill(&mut self) -> Result<()> {
        self.signal(Signal::SIGKILL)?;
        let status = self.wait(EXIT_WITHIN)?;
        if status.signal() != Some(Signal::SIGKILL as i32) {
            bail!("the daemon had already ended: {status}");
        }
        Ok(())
    }

    /// What it logged so far. Anything but JSON, such as a panic message, is not an event.
    pub fn events(&self) -> Result<Vec<LogEvent>> {
        let mut log = File::open(&self.log).with_context(|| self.log.display().to_string())?;
        log.seek(SeekFrom::Start(self.log_from))?;
        let text = io::read_to_string(log)?;
        Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).map(LogEvent).collect())
    }

    /// Waits for an event with this message and, if given, this field.
    pub fn wait_for_event(
        &self,
        message: &str,
        timeout: Duration,
        accept: impl Fn(&LogEvent) -> bool,
    ) -> Result<LogEvent> {
        let what = format!("\"{message}\" in {}", self.log.display());
        wait_until(&what, timeout, || {
            Ok(self.events()?.into_iter().find(|event| event.message() == message && accept(event)))
        })
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Puts the processes that the calling thread starts from now on into a time namespace.
fn children_live_ahead(ahead: Duration) -> Result<()> {
    unshare(CloneFlags::from_bits_retain(libc::CLONE_NEWTIME))?;
    let secs = ahead.as_secs();
    // Only there, not below `task`: a thread's id is a name in /proc like that of a process.
    std::fs::write(
        format!("/proc/{}/timens_offsets", gettid()),
        format!("monotonic {secs} 0\nboottime {secs} 0\n"),
    )?;
    Ok(())
}

/// How long a daemon may take from signal to exit.
const EXIT_WITHIN: Duration = Duration::from_secs(3);

/// What each thread of a process waits for, as far as the kernel tells.
fn threads(pid: u32) -> String {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let told = tasks.map(|task| {
        let read = |name| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let (status, stack) = (read("status"), read("stack"));
        let of = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            line.map(|value| value.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        let place = stack.lines().next().unwrap_or_default().trim();
        let (name, state) = (of("Name:").unwrap_or_default(), of("State:").unwrap_or_default());
        let waiting = of("SigPnd:").unwrap_or_default();
        let (shared, blocked) =
            (of("ShdPnd:").unwrap_or_default(), of("SigBlk:").unwrap_or_default());
        format!(
            "{name}: {state}, {place}, in {}, pending {waiting} {shared}, blocked {blocked}",
            read("syscall").split_whitespace().take(4).collect::<Vec<_>>().join(" ")
        )
    });
    told.collect::<Vec<_>>().join("; ")
}

impl LogEvent {
    /// What happened.
    pub fn message(&self) -> &str {
        self.field("message").and_then(Value::as_str).unwrap_or_default()
    }

    /// When it was logged.
    pub fn time(&self) -> Result<SystemTime> {
        let text = self.0.get("timestamp").and_then(Value::as_str).context("no timestamp")?;
        humantime::parse_rfc3339(text).with_context(|| format!("timestamp {text}"))
    }

    /// A field of the event.
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.0.get("fields").unwrap_or(&self.0).get(name)
    }

    /// A field as text, whatever its JSON type; `"none"` when it is absent.
    pub fn text(&self, name: &str) -> String {
        match self.field(name) {
            None | Some(Value::Null) => "none".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }
    }
}

/// The end of a log, for a person to read.
pub fn tail(log: &Path, lines: usize) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let all: Vec<&str> = text.lines().collect();
    all.get(all.len().saturating_sub(lines)..).unwrap_or_default().join("\n")
}
