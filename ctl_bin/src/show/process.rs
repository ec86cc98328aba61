//! The process: `stats`, `config`.

use control_socket::message::{Origin, Topics};
use node_lib::control::snapshot::View;

use crate::text::{UNKNOWN, table};

pub(super) fn stats(view: &View, prefix: Option<&str>, zero: bool) -> String {
    let mut rows = Vec::new();
    for (group, counts) in view.counters.iter() {
        for (name, count) in &counts.0 {
            if (zero || *count > 0) && prefix.is_none_or(|prefix| name.starts_with(prefix)) {
                rows.push(vec![group.to_owned(), name.to_string(), count.to_string()]);
            }
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
            _ => UNKNOWN,
        };
        vec![setting.name.clone(), setting.values.join(","), from.to_owned()]
    });
    table(&["setting", "value", "from"], 3, rows.collect())
}
