//! [`Rates`]: counters of two views to what happens each second.

use std::collections::BTreeMap;

use node_lib::control::snapshot::View;

/// What is counted, and how fast it grows.
#[derive(Debug, Default)]
pub(super) struct Rates {
    uptime_ms: u64,
    counts: BTreeMap<String, u64>,
    per_second: BTreeMap<String, f64>,
}

impl Rates {
    /// Another view, or the same again.
    pub(super) fn note(&mut self, view: &View) {
        if view.uptime_ms == self.uptime_ms {
            return;
        }
        // One that is younger was made by another start.
        let span_ms = view.uptime_ms.checked_sub(self.uptime_ms);
        let counts: BTreeMap<_, _> = view
            .counters
            .iter()
            .flat_map(|(of, counts)| {
                counts.0.iter().map(move |(name, count)| (format!("{of}.{name}"), *count))
            })
            .collect();
        self.per_second = match span_ms {
            Some(span_ms) if self.uptime_ms > 0 => counts
                .iter()
                .filter_map(|(name, count)| {
                    let grown = count.checked_sub(*self.counts.get(name)?)?;
                    Some((name.clone(), grown as f64 * 1000.0 / span_ms as f64))
                })
                .collect(),
            _ => BTreeMap::new(),
        };
        (self.counts, self.uptime_ms) = (counts, view.uptime_ms);
    }

    /// How fast this counter grows; `None` until that is known.
    pub(super) fn of(&self, name: &str) -> Option<f64> {
        self.per_second.get(name).copied()
    }

    /// What was dropped: name, how often, and how fast. The fastest first, then the most.
    pub(super) fn drops(&self) -> Vec<(&str, u64, Option<f64>)> {
        let is_drop =
            |name: &str| name.contains("drop") || DROPS.iter().any(|ending| name.ends_with(ending));
        let counted = self.counts.iter().filter(|(name, count)| **count > 0 && is_drop(name));
        let mut drops: Vec<_> =
            counted.map(|(name, count)| (name.as_str(), *count, self.of(name))).collect();
        drops.sort_by(|(_, a, at), (_, b, bt)| {
            bt.unwrap_or(0.0).total_cmp(&at.unwrap_or(0.0)).then(b.cmp(a))
        });
        drops
    }
}

/// How the names of counters end that count what was lost, beside those with "drop" in them.
const DROPS: [&str; 6] = ["_lost", "_full", "_errors", "_oversize", "_malformed", "_timed_out"];

#[cfg(test)]
mod tests {
    use super::*;

    fn view(uptime_ms: u64, dropped: u64) -> View {
        let mut view = View::default();
        view.uptime_ms = uptime_ms;
        view.counters.node = [("relayed", 10), ("drop_hop_limit", dropped)].into_iter().collect();
        view
    }

    #[test]
    fn rates_come_with_the_second_view_and_not_over_a_restart() {
        let mut rates = Rates::default();
        rates.note(&view(5000, 3));
        assert_eq!(rates.of("node.drop_hop_limit"), None);
        assert_eq!(rates.drops(), [("node.drop_hop_limit", 3, None)]);
        rates.note(&view(7000, 13));
        assert_eq!(rates.of("node.drop_hop_limit"), Some(5.0));
        // The same view again changes nothing.
        rates.note(&view(7000, 13));
        assert_eq!(rates.of("node.drop_hop_limit"), Some(5.0));
        rates.note(&view(100, 1));
        assert_eq!(rates.of("node.drop_hop_limit"), None);
    }
}
