//! The process: `stats`, `config`, `record`.

use control_socket::message::{Origin, Reloaded, Topics};
use node_lib::control::snapshot::View;

use crate::text::{UNKNOWN, table};

/// Zeros are left out unless they are wanted: a person looks for what counts.
pub(super) fn stats(view: &View, zero: bool) -> String {
    let mut rows = Vec::new();
    for (group, counts) in view.counters.iter() {
        for (name, count) in counts.0.iter().filter(|(_, count)| zero || *count > 0) {
            rows.push(vec![group.to_owned(), name.to_string(), count.to_string()]);
        }
    }
    table(&["of", "counter", "count"], 2, rows)
}

pub(super) fn config(topics: &Topics) -> String {
    let rows = topics.config.iter().flatten().map(|setting| {
        let from = match setting.from {
            Origin::Flag => "flag",
            Origin::Environment => "environment",
            Origin::File => "file",
            Origin::Default => "default",
            Origin::Socket => "v2xctl",
            _ => UNKNOWN,
        };
        vec![setting.name.clone(), setting.values.join(","), from.to_owned()]
    });
    table(&["setting", "value", "from"], 3, rows.collect())
}

/// What became of the configuration file, or would.
pub(super) fn reloaded(topics: &Topics, is_done: bool) -> String {
    let Some(Reloaded { taken, waiting }) = &topics.reloaded else { return String::new() };
    if taken.is_empty() && waiting.is_empty() {
        return "nothing to change\n".to_owned();
    }
    let mut text = String::new();
    for key in taken {
        text += &format!("{key}: {}\n", if is_done { "changed" } else { "would change at once" });
    }
    for key in waiting {
        text += &format!("{key}: waits for the next start of the daemon\n");
    }
    text
}

pub(super) fn recording(topics: &Topics) -> String {
    let Some(recording) = &topics.recording else { return String::new() };
    let Some(directory) = &recording.directory else { return "off\n".to_owned() };
    let state = match (recording.is_on, recording.is_from_start) {
        (true, true) => "on, since the start of the node: can be replayed",
        (true, false) => "on, begun while the node ran: cannot be replayed",
        (false, _) => "off",
    };
    let count = |name| recording.counters.get(name).unwrap_or(0);
    let mut text = format!(
        "{state}\n{directory}: {} records, {} bytes on disk, {} moments kept\n",
        count("records"),
        count("bytes"),
        count("frozen")
    );
    let lost = count("lost") + count("lost_on_disk");
    if lost > 0 {
        text += &format!("{lost} records lost: the disk is full, or slower than the traffic\n");
    }
    text
}
