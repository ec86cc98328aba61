//! [`LogSink`]: log lines go through a bounded, lossy queue to a thread of their own.
//!
//! Whoever logs never waits for whoever reads. A pipe nobody reads, a pipe that was closed, a disk
//! that is full: each costs lines, never a frame. Lost lines are counted, and the count stands in
//! the log at the place where they are missing, as soon as the log takes lines again.
//!
//! Not `tracing-appender`: when its queue is full at exit its guard uses `println!`, which blocks
//! on the same pipe for ever or, if that is closed, panics; and what it cannot write it forgets.

use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer as FormatWriter;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};

use crate::args::LogFormat;

/// Bytes that wait at most, some two thousand lines; the newest line is lost when it does not fit.
const WAITING_MAX: usize = 256 << 10;

/// Room for lines that is kept when all are written. What a blocked log needed goes back.
const KEPT: usize = 16 << 10;

/// How long the end of the program waits for the last lines to be written.
const FLUSH_MAX: Duration = Duration::from_millis(500);

/// Wait before a sink that has no room right now is tried again.
const RETRY: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
struct Waiting {
    /// Whole lines.
    lines: Vec<u8>,
    /// Lines that had no room since the writer last looked.
    lost: u64,
    /// The writer is at work on lines it took out.
    is_writing: bool,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// Rung when there are lines, and when there are none any more.
    changed: Condvar,
}

impl Shared {
    /// The queue is whole between any two operations on it.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes log lines, from any thread, without ever waiting for them to be written.
#[derive(Clone, Debug)]
pub struct LogSink(Arc<Shared>);

impl LogSink {
    /// Starts the thread that writes to `out`. Lines about lost lines have this format.
    pub fn start(out: impl Write + Send + 'static, format: LogFormat) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let sink = Self(Arc::clone(&shared));
        let write = move || write_lines(&shared, out, format);
        thread::Builder::new().name("log".to_owned()).spawn(write)?;
        Ok(sink)
    }

    /// Waits until everything is written, for half a second at most.
    pub fn flush(&self) {
        let until = Instant::now() + FLUSH_MAX;
        let mut waiting = self.0.lock();
        while !waiting.lines.is_empty() || waiting.is_writing {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let woken = self.0.changed.wait_timeout(waiting, left);
            waiting = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// A line is written in one piece by who formats it.
impl Write for LogSink {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut waiting = self.0.lock();
        if waiting.lines.len() + line.len() > WAITING_MAX {
            waiting.lost += 1;
        } else {
            waiting.lines.extend_from_slice(line);
        }
        drop(waiting);
        self.0.changed.notify_all();
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for LogSink {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// The writing thread. It ends with the process.
fn write_lines(shared: &Shared, mut out: impl Write, format: LogFormat) {
    let mut lines = Vec::new();
    // Lines that were taken out and could not be written, and nobody has read of that yet.
    let mut unwritten = 0;
    // What was written last ended in the middle of a line.
    let mut is_cut = false;
    loop {
        let dropped = {
            let mut waiting = shared.lock();
            waiting.is_writing = false;
            shared.changed.notify_all();
            while waiting.lines.is_empty() {
                waiting = shared.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
            waiting.is_writing = true;
            std::mem::swap(&mut waiting.lines, &mut lines);
            std::mem::take(&mut waiting.lost)
        };
        if is_cut && write_all(&mut out, b"\n").is_ok() {
            is_cut = false;
        }
        if unwritten > 0 && !is_cut && write_all(&mut out, &loss(unwritten, format)).is_ok() {
            unwritten = 0;
        }
        if let Err(written) = write_all(&mut out, &lines) {
            let (done, rest) = lines.split_at_checked(written).unwrap_or_default();
            unwritten += rest.iter().filter(|byte| **byte == b'\n').count() as u64;
            is_cut |= done.last().is_some_and(|byte| *byte != b'\n');
        }
        if dropped > 0 && (unwritten > 0 || write_all(&mut out, &loss(dropped, format)).is_err()) {
            unwritten += dropped;
        }
        lines.clear();
        lines.shrink_to(KEPT);
    }
}

/// Writes everything, however long it takes. If that cannot be done, says how much was.
fn write_all(out: &mut impl Write, bytes: &[u8]) -> Result<(), usize> {
    let mut done = 0;
    while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
        match out.write(rest) {
            Ok(0) => return Err(done),
            Ok(written) => done += written,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Another program made a terminal we share non-blocking.
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(RETRY),
            Err(_) => return Err(done),
        }
    }
    Ok(())
}

/// A log line about lines that are missing before it.
fn loss(lines: u64, format: LogFormat) -> Vec<u8> {
    let mut time = String::new();
    // Writing to a `String` cannot fail.
    let _ = SystemTime.format_time(&mut FormatWriter::new(&mut time));
    let what = "log lines are missing here: nobody read them, or they could not be written";
    let target = module_path!();
    let line = match format {
        LogFormat::Text => format!("{time}  WARN {target}: {what} lines={lines}\n"),
        LogFormat::Json => format!(
            "{{\"timestamp\":\"{time}\",\"level\":\"WARN\",\"message\":\"{what}\",\
             \"lines\":{lines},\"target\":\"{target}\"}}\n"
        ),
    };
    line.into_bytes()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// What it does with each write is told from outside: take it, or fail.
    struct Told {
        answers: Receiver<bool>,
        wrote: Sender<String>,
    }

    impl Write for Told {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match self.answers.recv() {
                Ok(true) => {
                    let _ = self.wrote.send(String::from_utf8_lossy(bytes).into_owned());
                    Ok(bytes.len())
                }
                _ => Err(ErrorKind::StorageFull.into()),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn told(format: LogFormat) -> (LogSink, Sender<bool>, Receiver<String>) {
        let ((answer, answers), (wrote, written)) = (channel(), channel());
        (LogSink::start(Told { answers, wrote }, format).unwrap(), answer, written)
    }

    const LINE_LEN: usize = 1000;

    /// The writer has taken the first line out and waits for its answer: so many have to wait.
    fn blocked_before(lines: usize) -> (LogSink, Sender<bool>, Receiver<String>) {
        let (mut sink, answer, written) = told(LogFormat::Text);
        sink.write_all(b"first\n").unwrap();
        while !sink.0.lock().is_writing {
            thread::yield_now();
        }
        let line = [b"x".repeat(LINE_LEN - 1), b"\n".to_vec()].concat();
        for _ in 0..lines {
            sink.write_all(&line).unwrap();
        }
        (sink, answer, written)
    }

    #[test]
    fn whoever_logs_does_not_wait_and_what_had_no_room_is_counted() {
        let (sink, answer, written) = blocked_before(WAITING_MAX / LINE_LEN + 7);
        assert!(sink.0.lock().lines.len() <= WAITING_MAX);
        // Nobody reads, and the program ends all the same.
        sink.flush();
        (0..3).for_each(|_| answer.send(true).unwrap());
        assert_eq!(written.recv().unwrap(), "first\n");
        assert_eq!(written.recv().unwrap().len(), WAITING_MAX / LINE_LEN * LINE_LEN);
        assert!(written.recv().unwrap().ends_with("lines=7\n"));
    }

    #[test]
    fn the_room_that_a_blocked_log_needed_is_not_kept() {
        let (mut sink, answer, written) = blocked_before(WAITING_MAX / LINE_LEN);
        assert!(sink.0.lock().lines.capacity() > KEPT);
        answer.send(true).unwrap();
        assert_eq!(written.recv().unwrap(), "first\n");
        // Both take turns: one is written while the other waits.
        for _ in 0..2 {
            answer.send(true).unwrap();
            written.recv().unwrap();
            sink.flush();
            assert!(sink.0.lock().lines.capacity() <= KEPT);
            sink.write_all(b"next\n").unwrap();
        }
    }

    #[test]
    fn what_could_not_be_written_is_counted_where_it_is_missing() {
        let (mut sink, answer, written) = told(LogFormat::Json);
        answer.send(false).unwrap();
        sink.write_all(b"a\nb\nc\n").unwrap();
        sink.flush();
        (0..2).for_each(|_| answer.send(true).unwrap());
        sink.write_all(b"d\n").unwrap();
        let missing = written.recv().unwrap();
        assert!(missing.contains("\"lines\":3,"), "{missing}");
        assert_eq!(written.recv().unwrap(), "d\n");
    }

    #[test]
    fn a_flush_waits_for_the_last_line() {
        let (mut sink, answer, written) = told(LogFormat::Text);
        answer.send(true).unwrap();
        sink.write_all(b"last\n").unwrap();
        sink.flush();
        assert_eq!(written.try_recv().as_deref(), Ok("last\n"));
    }
}
