//! Links over time, from a file: [`LinkFile`]. It is what [`crate::links`] and `v2xtrace links`
//! write, and what the medium of the testbed replays.
//!
//! A row of `time_s,from,to,loss,delay_us` holds until the next row of the same two nodes; two
//! nodes without a row never hear each other. `signal_dbm` and `signal_sd_db` may follow, and may
//! be empty. Further columns are ignored.

use std::path::Path;
use std::time::Duration;

use node_lib::Timestamp;
use sim::{LinkStep, LinkTrace, NodeIndex, Strength};

use crate::cast::Member;
use crate::links::LinkRow;

/// Rows of a file, in its order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LinkFile {
    rows: Vec<(u64, LinkRow)>,
}

impl LinkFile {
    /// Reads a file. An error says where and why.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let mut reader =
            csv::ReaderBuilder::new().trim(csv::Trim::All).from_path(path).map_err(|error| {
                match error.into_kind() {
                    csv::ErrorKind::Io(error) => error.to_string(),
                    other => format!("{other:?}"),
                }
            })?;
        let mut rows = Vec::new();
        // The first line has the names of the columns.
        for (line, row) in (2..).zip(reader.deserialize::<LinkRow>()) {
            rows.push((line, row.map_err(|error| error.to_string())?));
        }
        Ok(Self { rows })
    }

    /// The same for these nodes.
    pub(crate) fn of(&self, nodes: &[Member]) -> Result<LinkTrace, String> {
        let mut trace = LinkTrace::new();
        for (line, row) in &self.rows {
            let wrong = |what: String| format!("line {line}: {what}");
            let node = |name: &str| {
                let index = nodes.iter().position(|node| node.name == name);
                index.map(NodeIndex).ok_or_else(|| {
                    wrong(format!("\"{name}\"; expected the name of a node of the scenario"))
                })
            };
            let [time, delay] = [("time_s", row.time_s), ("delay_us", row.delay_us / 1e6)].map(
                |(column, seconds)| {
                    Duration::try_from_secs_f64(seconds)
                        .map_err(|_| wrong(format!("{column}: no time")))
                },
            );
            let strength = row.signal_dbm.map(|mean_dbm| Strength {
                mean_dbm,
                deviation_db: row.signal_sd_db.unwrap_or(0.0),
            });
            let step =
                LinkStep { time: Timestamp::ZERO + time?, loss: row.loss, delay: delay?, strength };
            let (from, to) = (node(&row.from)?, node(&row.to)?);
            trace.push(from, to, step).map_err(|error| wrong(error.to_string()))?;
        }
        Ok(trace)
    }
}
