//! How well everybody hears everybody as time goes by: a table another medium can replay
//! ([`write()`]).
//!
//! | column       | unit | meaning                                                  |
//! |--------------|------|----------------------------------------------------------|
//! | `time_s`     | s    | from when on this holds                                  |
//! | `from`, `to` |      | nodes, by name; each direction has rows of its own       |
//! | `loss`       |      | share of frames lost, each sent once, 0 to 1             |
//! | `delay_us`   | µs   | time from one antenna to the other                       |
//! | `signal_dbm` | dBm  | mean strength of the frames that are received; else empty |
//! | `signal_sd_db` | dB | their standard deviation                                 |
//!
//! There is a row at every look for each pair in range, and one with `loss` 1 when a pair gets out
//! of range. Traffic and contention are not in it: frames of the daemons that replay it make their
//! own.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::time::Duration;

use csv::Writer;
use node_lib::Timestamp;
use serde::{Deserialize, Serialize};
use sim::{Delivery, NodeIndex, Strength, World};

use crate::cast::Cast;
use crate::scenario::{Scenario, Span};
use crate::stage::{Stage, Suite};

/// A row of the table. Further columns are ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkRow {
    /// From when on it holds, in seconds.
    pub time_s: f64,
    /// The sender.
    pub from: String,
    /// The receiver.
    pub to: String,
    /// Share of frames lost, 0 to 1.
    pub loss: f64,
    /// Time from one antenna to the other, in microseconds.
    pub delay_us: f64,
    /// Mean strength of the frames that arrive, in dBm; `None` if it is not known.
    #[serde(default)]
    pub signal_dbm: Option<f64>,
    /// Their standard deviation, in dB.
    #[serde(default)]
    pub signal_sd_db: Option<f64>,
}

/// Writes the table for a whole scenario.
///
/// # Errors
/// It cannot be written.
pub fn write(
    scenario: &Scenario,
    cast: &Cast,
    seed: u64,
    every: Span,
    to: impl Write,
) -> io::Result<()> {
    let mut quiet = cast.clone();
    quiet.flows.clear();
    quiet.clients.clear();
    let mut world = Stage::new(scenario, &quiet, seed, Suite::Silence).world;
    let mut table = Writer::from_writer(to);
    table.write_record([
        "time_s",
        "from",
        "to",
        "loss",
        "delay_us",
        "signal_dbm",
        "signal_sd_db",
    ])?;
    let end = scenario.duration.after_start();
    let delay_us = DELAY.as_micros().to_string();
    let mut in_range = BTreeSet::new();
    let mut time = Timestamp::ZERO;
    loop {
        // Nodes that say nothing break no rules.
        if world.run_until(time).is_err() {
            break;
        }
        let now = links(&world, scenario.radio.reports_signal.unwrap_or(true));
        let mut row = |(from, to): (usize, usize), loss: f64, strength: Option<Strength>| {
            let name = |node| cast.name(NodeIndex(node));
            let seconds = time.as_micros() as f64 / 1e6;
            let db = |value: Option<f64>| value.map(tenths).unwrap_or_default();
            table.write_record([
                &seconds.to_string(),
                name(from),
                name(to),
                &rounded(loss).to_string(),
                &delay_us,
                &db(strength.map(|strength| strength.mean_dbm)),
                &db(strength.map(|strength| strength.deviation_db)),
            ])
        };
        for pair in in_range.iter().filter(|pair| !now.contains_key(pair)) {
            row(*pair, 1.0, None)?;
        }
        for (pair, (loss, strength)) in &now {
            row(*pair, *loss, *strength)?;
        }
        in_range = now.into_keys().collect();
        if time >= end {
            break;
        }
        time = (time + every.0).min(end);
    }
    table.flush()
}

/// Loss and strength of every pair in range, both directions.
fn links(world: &World, tells_signal: bool) -> BTreeMap<(usize, usize), (f64, Option<Strength>)> {
    let heard = world.deliveries().into_iter();
    let heard = heard.map(|Delivery { from, to, share, strength }| {
        ((from.0, to.0), (1.0 - share, strength.filter(|_| tells_signal)))
    });
    heard.collect()
}

/// To a tenth of a decibel: receivers tell whole ones.
fn tenths(db: f64) -> String {
    ((db * 10.0).round() / 10.0).to_string()
}

/// What a short frame needs at 6 Mbit/s, preamble included, with the mean wait for a free medium.
/// The time light takes is nothing beside it.
const DELAY: Duration = Duration::from_micros(300);

/// To a millionth: enough for any medium, and short.
fn rounded(share: f64) -> f64 {
    (share * 1e6).round() / 1e6
}
