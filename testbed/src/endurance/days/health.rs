//! What daemons take from the machine and what they say, looked at again and again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::daemons::usage::Usage;
use crate::topology::world::TestbedNode;

/// Younger daemons are still filling their tables.
const WARM_AFTER: Duration = Duration::from_secs(3);
/// Descriptors above those of a warm daemon: what is open for a moment, such as a radio being
/// reopened.
const DESCRIPTORS_MORE: usize = 4;
/// No daemon needs more resident memory with all its tables full (11 MiB with a million clients).
const RESIDENT_MAX: u64 = 24 << 20;
/// By how much the memory of a daemon that no file stands behind may grow from the second quarter
/// of its life to the last. Its tables were full before. What grows all the same is in
/// `docs/testing.md`.
const GROWTH_MAX: u64 = 256 << 10;
/// From then on nearly all that is kept to be used again is there.
const SETTLED_AFTER: Duration = Duration::from_mins(10);
/// By how much it may grow from then on, likewise.
const SETTLED_GROWTH_MAX: u64 = 128 << 10;
/// Looks at a daemon before its growth is judged.
const LOOKS_MIN: usize = 24;
/// Lines a node may log in a minute in which nothing happens to anybody.
const LINES_PER_MINUTE: u64 = 60;
/// Lines a node may log for each fault anywhere.
const LINES_PER_FAULT: u64 = 20;
/// Complaints kept of each kind.
const SAID_MAX: usize = 3;

/// One node, over all its lives.
#[derive(Debug, Default)]
pub struct Patient {
    pid: u32,
    born: Option<Instant>,
    /// Its tables were filled once: one that has started again begins with empty ones.
    was_full: bool,
    /// Memory without a file behind it at each look at the present life, when it was warm.
    anonymous: Vec<u64>,
    /// How many of these were before it was settled.
    unsettled: usize,
    /// Open descriptors at the first such look, and the most since.
    descriptors: Option<(usize, usize)>,
    log_at: u64,
    lines: u64,
    /// Of the longest of the lives that are over.
    longest: (usize, Chart),
    complained: BTreeMap<&'static str, usize>,
}

/// What was measured of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chart {
    /// Memory without a file behind it when it was warm and at the end, bytes.
    pub anonymous: Option<(u64, u64)>,
    /// Descriptors when it was warm, and the most.
    pub descriptors: Option<(usize, usize)>,
    /// Lines logged, over all lives.
    pub lines: u64,
}

impl Patient {
    /// Looks at a node. What is wrong with it now.
    pub fn look(&mut self, node: &TestbedNode, run: Duration, faults: u64) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        self.read_log(node, &mut wrong)?;
        let allowed = LINES_PER_MINUTE * (run.as_secs() / 60 + 1) + LINES_PER_FAULT * faults;
        if self.lines > allowed {
            let what = format!("{} lines logged, {allowed} allowed", self.lines);
            self.complain("log", what, &mut wrong);
        }
        if let Ok(daemon) = node.daemon() {
            self.measure(daemon.pid(), &mut wrong);
        }
        Ok(wrong.into_iter().map(|what| format!("{}: {what}", node.name())).collect())
    }

    /// What was measured so far, of the longest life.
    pub fn chart(&self) -> Chart {
        let present = self.present();
        if self.anonymous.len() >= self.longest.0 {
            return present;
        }
        Chart { lines: self.lines, ..self.longest.1.clone() }
    }

    fn present(&self) -> Chart {
        let anonymous = self.anonymous.first().copied().zip(self.anonymous.last().copied());
        Chart { anonymous, descriptors: self.descriptors, lines: self.lines }
    }

    fn measure(&mut self, pid: u32, wrong: &mut Vec<String>) {
        if self.pid != pid {
            let (log_at, lines) = (self.log_at, self.lines);
            let complained = std::mem::take(&mut self.complained);
            let longest = if self.anonymous.len() > self.longest.0 {
                (self.anonymous.len(), self.present())
            } else {
                std::mem::take(&mut self.longest)
            };
            let (born, was_full) = (Some(Instant::now()), self.pid == 0);
            *self =
                Self { pid, born, was_full, log_at, lines, longest, complained, ..Self::default() };
        }
        // One that has just ended is found by its exit status.
        let (Ok(usage), Ok(open)) = (Usage::of(pid), descriptors(pid)) else { return };
        if usage.resident > RESIDENT_MAX {
            let what = format!("{} KiB of memory", usage.resident / 1024);
            self.complain("memory", what, wrong);
        }
        self.note(usage.anonymous, open, wrong);
    }

    fn note(&mut self, anonymous: u64, open: usize, wrong: &mut Vec<String>) {
        let Some(age) = self.born.map(|born| born.elapsed()).filter(|age| *age >= WARM_AFTER)
        else {
            return;
        };
        let (warm, most) = self.descriptors.unwrap_or((open, open));
        self.descriptors = Some((warm, most.max(open)));
        if open > warm + DESCRIPTORS_MORE {
            let what = format!("{open} descriptors, {warm} when it was warm");
            self.complain("descriptors", what, wrong);
        }
        self.anonymous.push(anonymous);
        if age < SETTLED_AFTER {
            self.unsettled = self.anonymous.len();
        }
        if let Some((early, late)) = self.growth().filter(|_| self.was_full) {
            let what = format!("memory grew from {} to {} KiB", early / 1024, late / 1024);
            self.complain("growth", what, wrong);
        }
    }

    /// From what to what it grew, if that is too much.
    fn growth(&self) -> Option<(u64, u64)> {
        let settled = self.anonymous.get(self.unsettled..)?;
        let grew_by = |looks, max| quarters(looks).filter(|(early, late)| *late > early + max);
        grew_by(&self.anonymous, GROWTH_MAX).or_else(|| grew_by(settled, SETTLED_GROWTH_MAX))
    }

    fn read_log(&mut self, node: &TestbedNode, wrong: &mut Vec<String>) -> Result<()> {
        let mut log = BufReader::new(File::open(node.log_path())?);
        log.seek(SeekFrom::Start(self.log_at))?;
        let mut line = String::new();
        // A line without its end is being written, and read the next time.
        while log.read_line(&mut line)? > 0 && line.ends_with('\n') {
            self.log_at += line.len() as u64;
            self.lines += 1;
            if is_alarming(&line) {
                self.complain("said", line.trim_end().to_owned(), wrong);
            }
            line.clear();
        }
        Ok(())
    }

    /// Says something, unless it was said often enough.
    fn complain(&mut self, about: &'static str, what: String, wrong: &mut Vec<String>) {
        let times = self.complained.entry(about).or_default();
        *times += 1;
        if *times <= SAID_MAX {
            wrong.push(what);
        }
    }
}

/// A line no healthy daemon writes, whatever happens around it.
fn is_alarming(line: &str) -> bool {
    line.contains("\"level\":\"ERROR\"") || line.contains("panicked") || line.contains("SIGABRT")
}

/// The medians of the second and the last quarter, when there is enough to judge by.
fn quarters(all: &[u64]) -> Option<(u64, u64)> {
    let quarter = all.len() / 4;
    if all.len() < LOOKS_MIN {
        return None;
    }
    let median = |part: &[u64]| {
        let mut sorted = part.to_vec();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied()
    };
    Some((median(all.get(quarter..2 * quarter)?)?, median(all.get(all.len() - quarter..)?)?))
}

fn descriptors(pid: u32) -> std::io::Result<usize> {
    Ok(std::fs::read_dir(format!("/proc/{pid}/fd"))?.count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warm() -> Patient {
        let born = Instant::now().checked_sub(2 * WARM_AFTER);
        Patient { born, was_full: true, ..Patient::default() }
    }

    #[test]
    fn a_flat_life_is_healthy_and_slow_leaks_are_not() {
        let mut patient = warm();
        let mut wrong = Vec::new();
        for n in 0..100 {
            patient.note((2 << 20) + 4096 * (n % 7), 15 + (n % 3) as usize, &mut wrong);
        }
        assert_eq!(wrong, Vec::<String>::new());
        let mut patient = warm();
        for n in 0..100 {
            patient.note((2 << 20) + n * 8_000, 15, &mut wrong);
        }
        assert!(wrong[0].contains("memory grew"), "{wrong:?}");
        wrong.clear();
        let mut settled = warm();
        for n in 0_u64..200 {
            if n == 100 {
                assert_eq!(wrong, Vec::<String>::new(), "what it takes at first");
                settled.born = Instant::now().checked_sub(SETTLED_AFTER);
            }
            let memory = (2 << 20) + n * 1_500 + n.saturating_sub(100) * 1_300;
            settled.note(memory, 15, &mut wrong);
        }
        assert!(wrong[0].contains("memory grew"), "{wrong:?}");
        wrong.clear();
        let mut patient = warm();
        for open in 15..25 {
            patient.note(2 << 20, open, &mut wrong);
        }
        assert!(wrong[0].contains("descriptors, 15"), "{wrong:?}");
        assert_eq!(wrong.len(), SAID_MAX);
    }

    #[test]
    fn errors_and_panics_are_alarming_and_warnings_are_not() {
        assert!(is_alarming("{\"level\":\"ERROR\",\"message\":\"x\"}"));
        assert!(is_alarming("thread 'main' panicked at src/main.rs"));
        assert!(!is_alarming("{\"level\":\"WARN\",\"message\":\"x\"}"));
    }
}
