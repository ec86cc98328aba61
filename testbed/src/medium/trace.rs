//! How well radios hear each other as time goes by: [`MediumLinkTrace`].
//!
//! As a file, a trace is comma-separated with a header line. Further columns are ignored.
//!
//! | column       | unit | meaning                                                            |
//! |--------------|------|--------------------------------------------------------------------|
//! | `time_s`     | s    | when this begins to hold, from the start of the trace              |
//! | `from`, `to` |      | names of the radios; each direction has rows of its own            |
//! | `loss`       |      | share of frames lost, 0 to 1; 1: out of range                      |
//! | `delay_us`   | µs   | time from one antenna to the other                                 |
//! | `signal_dbm` | dBm  | mean strength of the frames that arrive; may be empty or missing   |
//! | `signal_sd_db` | dB | their standard deviation; 0 if empty or missing                    |
//!
//! A row holds until the next row of the same two names. Two radios without a row never hear each
//! other.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use simulator::links::LinkRow;

use super::SignalStrength;

/// One direction of one link from a moment on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MediumLinkStep {
    /// From when on, counted from the start of the trace.
    pub time: Duration,
    /// The sender.
    pub from: String,
    /// The receiver.
    pub to: String,
    /// Share of frames lost, 0 to 1.
    pub loss: f64,
    /// Time from one antenna to the other.
    pub delay: Duration,
    /// How strong frames come in, if the trace says it.
    #[serde(default)]
    pub signal: Option<SignalStrength>,
}

/// Changes of links, in the order of their times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MediumLinkTrace {
    steps: Vec<MediumLinkStep>,
}

impl MediumLinkTrace {
    /// A trace of these steps, in any order; of two at the same time the first comes first.
    pub fn new(mut steps: Vec<MediumLinkStep>) -> Self {
        steps.sort_by_key(|step| step.time);
        Self { steps }
    }

    /// Reads a file. An error names the line and the field.
    pub fn open(path: &Path) -> Result<Self> {
        let read = || Self::read(File::open(path)?);
        read().with_context(|| path.display().to_string())
    }

    /// Reads the text of a file. An error names the line and the field.
    pub fn read(text: impl io::Read) -> Result<Self> {
        let mut steps = Vec::new();
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text);
        let mut rows = reader.deserialize::<LinkRow>();
        while let Some(row) = rows.next() {
            let line = rows.reader().position().line().saturating_sub(1);
            steps.push(step_of(row?).with_context(|| format!("line {line}"))?);
        }
        Ok(Self::new(steps))
    }

    /// Writes the text of a file.
    pub fn write(&self, to: impl io::Write) -> Result<()> {
        let mut writer = csv::Writer::from_writer(to);
        for step in &self.steps {
            writer.serialize(LinkRow {
                time_s: step.time.as_secs_f64(),
                from: step.from.clone(),
                to: step.to.clone(),
                loss: step.loss,
                delay_us: step.delay.as_secs_f64() * 1e6,
                signal_dbm: step.signal.map(|signal| signal.dbm),
                signal_sd_db: step.signal.map(|signal| signal.sd_db),
            })?;
        }
        Ok(writer.flush()?)
    }

    /// The same links, and nobody knows how strong frames come in.
    pub fn without_signal(&self) -> Self {
        let steps = self.steps.iter().map(|step| MediumLinkStep { signal: None, ..step.clone() });
        Self { steps: steps.collect() }
    }

    /// Whether any step says how strong frames come in.
    pub fn tells_signal(&self) -> bool {
        self.steps.iter().any(|step| step.signal.is_some())
    }

    /// All steps, the earliest first.
    pub fn steps(&self) -> &[MediumLinkStep] {
        &self.steps
    }

    /// The time of the last step.
    pub fn end(&self) -> Duration {
        self.steps.last().map_or(Duration::ZERO, |step| step.time)
    }

    /// Names of all radios, each once, in the order of the alphabet.
    pub fn radios(&self) -> Vec<&str> {
        let both = |step| {
            let MediumLinkStep { from, to, .. }: &MediumLinkStep = step;
            [from.as_str(), to.as_str()]
        };
        let mut names: Vec<_> = self.steps.iter().flat_map(both).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The trace between two times, as if it began at the first: what holds there stands at its
    /// beginning.
    pub fn between(&self, start: Duration, end: Duration) -> Self {
        let mut holding: BTreeMap<(&str, &str), &MediumLinkStep> = BTreeMap::new();
        for step in self.steps.iter().take_while(|step| step.time <= start) {
            holding.insert((&step.from, &step.to), step);
        }
        let first = holding
            .into_values()
            .map(|step| MediumLinkStep { time: Duration::ZERO, ..step.clone() });
        let later = self.steps.iter().filter(|step| step.time > start && step.time <= end);
        let later = later.map(|step| MediumLinkStep { time: step.time - start, ..step.clone() });
        Self { steps: first.chain(later).collect() }
    }
}

/// Checks what a row of the file says.
fn step_of(row: LinkRow) -> Result<MediumLinkStep> {
    let LinkRow { time_s, from, to, loss, delay_us, signal_dbm, signal_sd_db } = row;
    let span = |name, value: f64, unit: f64| {
        Duration::try_from_secs_f64(value * unit).with_context(|| format!("{name} {value}"))
    };
    ensure!(!from.is_empty() && !to.is_empty(), "from or to is empty");
    ensure!(from != to, "from and to are both {from}");
    ensure!((0.0..=1.0).contains(&loss), "loss {loss} is not between 0 and 1");
    let (time, delay) = (span("time_s", time_s, 1.0)?, span("delay_us", delay_us, 1e-6)?);
    let signal = signal_dbm.map(|dbm| SignalStrength { dbm, sd_db: signal_sd_db.unwrap_or(0.0) });
    if let Some(SignalStrength { dbm, sd_db }) = signal {
        ensure!((-120.0..0.0).contains(&dbm), "signal_dbm {dbm} is not between -120 and 0");
        ensure!((0.0..=30.0).contains(&sd_db), "signal_sd_db {sd_db} is not between 0 and 30");
    }
    Ok(MediumLinkStep { time, from, to, loss, delay, signal })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
time_s,from,to,loss,delay_us
0,obu1,rsu1,0.25,500
0.1,obu1,rsu1,1,0
0.05,rsu1,obu1,0,12.5
";

    #[test]
    fn a_file_is_read_in_the_order_of_its_times_and_written_as_it_was_read() {
        let trace = MediumLinkTrace::read(TEXT.as_bytes()).unwrap();
        let times: Vec<_> = trace.steps().iter().map(|step| step.time.as_millis()).collect();
        assert_eq!(times, [0, 50, 100]);
        let first = &trace.steps()[0];
        assert_eq!((first.loss, first.delay), (0.25, Duration::from_micros(500)));
        assert_eq!(trace.steps()[1].delay, Duration::from_nanos(12_500));
        assert_eq!(trace.radios(), ["obu1", "rsu1"]);
        assert_eq!(trace.end(), Duration::from_millis(100));
        let mut written = Vec::new();
        trace.write(&mut written).unwrap();
        assert_eq!(MediumLinkTrace::read(&written[..]).unwrap(), trace);
    }

    #[test]
    fn more_columns_and_other_orders_of_columns_are_read_too() {
        let text = "to,from,rssi_dbm,loss,delay_us,time_s\nb, a ,-80,0.5,0,2\n";
        let trace = MediumLinkTrace::read(text.as_bytes()).unwrap();
        let step = &trace.steps()[0];
        assert_eq!((step.from.as_str(), step.to.as_str(), step.loss), ("a", "b", 0.5));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let complaint = |row: &str| {
            let text = format!("{TEXT}{row}\n");
            format!("{:#}", MediumLinkTrace::read(text.as_bytes()).unwrap_err())
        };
        for (row, expected) in [
            ("1,a,b,1.5,0", "line 5: loss 1.5 is not between 0 and 1"),
            ("1,a,b,NaN,0", "line 5: loss NaN is not between 0 and 1"),
            ("-1,a,b,0,0", "line 5: time_s -1"),
            ("1,a,b,0,-3", "line 5: delay_us -3"),
            ("1,a,a,0,0", "line 5: from and to are both a"),
            ("1,,b,0,0", "line 5: from or to is empty"),
            ("1,a,b,much,0", "line: 5"),
            ("1,a,b,0", "line: 5"),
        ] {
            let said = complaint(row);
            assert!(said.contains(expected), "{row}: {said}");
        }
        let said = format!(
            "{:#}",
            MediumLinkTrace::read(&b"time_s,from,to,loss\n0,a,b,0\n"[..]).unwrap_err()
        );
        assert!(said.contains("delay_us"), "{said}");
    }

    #[test]
    fn signal_is_read_where_it_is_said_and_written_as_it_was_read() {
        let text = "time_s,from,to,loss,delay_us,signal_dbm,signal_sd_db\n\
            0,a,b,0,0,-71.5,4\n1,a,b,1,0,,\n2,a,b,0,0,-80,\n";
        let trace = MediumLinkTrace::read(text.as_bytes()).unwrap();
        let signals: Vec<_> = trace.steps().iter().map(|step| step.signal).collect();
        let signal = |dbm, sd_db| Some(SignalStrength { dbm, sd_db });
        assert_eq!(signals, [signal(-71.5, 4.0), None, signal(-80.0, 0.0)]);
        let mut written = Vec::new();
        trace.write(&mut written).unwrap();
        assert_eq!(MediumLinkTrace::read(&written[..]).unwrap(), trace);
        assert!(trace.tells_signal() && !trace.without_signal().tells_signal());
        let complaint = |row: &str| {
            let text = format!("time_s,from,to,loss,delay_us,signal_dbm,signal_sd_db\n{row}\n");
            format!("{:#}", MediumLinkTrace::read(text.as_bytes()).unwrap_err())
        };
        let said = complaint("0,a,b,0,0,5,1");
        assert!(said.contains("line 2: signal_dbm 5 is not between -120 and 0"), "{said}");
        let said = complaint("0,a,b,0,0,-50,-1");
        assert!(said.contains("line 2: signal_sd_db -1 is not between 0 and 30"), "{said}");
    }

    #[test]
    fn a_part_begins_with_what_holds_there() {
        let trace = MediumLinkTrace::read(TEXT.as_bytes()).unwrap();
        let ms = Duration::from_millis;
        let part = trace.between(ms(60), ms(100));
        let steps: Vec<_> =
            part.steps().iter().map(|s| (s.time.as_millis(), s.from.as_str(), s.loss)).collect();
        assert_eq!(steps, [(0, "obu1", 0.25), (0, "rsu1", 0.0), (40, "obu1", 1.0)]);
    }
}
