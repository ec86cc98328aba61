//! What happened: `handovers`, `why`, `events`.

use control_socket::message::Topics;
use control_socket::record::{CHOICES_KEPT, Change};
use control_socket::table::gap_classes;
use control_socket::why::rule;
use node_lib::control::event::Attachment;
use node_lib::control::snapshot::View;
use serde_json::Value;

use super::around;
use crate::names::Names;
use crate::text::{UNKNOWN, known, table, time};

fn changes(topics: &Topics) -> &[Change] {
    topics.changes.as_deref().unwrap_or_default()
}

fn gap_ms(change: &Change) -> Option<u64> {
    change.cost.map(|cost| node_lib::control::snapshot::span_ms(cost.gap))
}

fn place(names: &Names, at: Option<Attachment>) -> String {
    match at {
        None => "none".to_owned(),
        Some(Attachment { rsu, upstream, .. }) if rsu == upstream => names.node(rsu),
        Some(Attachment { rsu, upstream, hops }) => {
            format!("{} via {} ({hops} hops)", names.node(rsu), names.node(upstream))
        }
    }
}

pub(super) fn handovers(names: &Names, topics: &Topics) -> String {
    let rows = changes(topics).iter().map(|change| {
        let of_cost = |count: fn(&node_lib::control::event::HandOver) -> u64| {
            known(change.cost.as_ref().map(count))
        };
        vec![
            time(change.at_unix_ms),
            place(names, change.from),
            place(names, change.to),
            change.cost.map_or(change.cause, |cost| cost.cause).to_string(),
            change.number.to_string(),
            change.silence_ms.to_string(),
            known(gap_ms(change)),
            of_cost(|cost| cost.lost),
            of_cost(|cost| cost.at_risk),
            of_cost(|cost| cost.doubled),
        ]
    });
    let header =
        ["time", "from", "to", "cause", "id", "silence_ms", "gap_ms", "lost", "at_risk", "doubled"];
    table(&header, 4, rows.collect())
}

pub(super) fn histogram(topics: &Topics) -> String {
    let rows = gap_classes(changes(topics)).into_iter().map(|(most, count)| {
        let upto = if most == u64::MAX { "more".to_owned() } else { format!("to {most}") };
        vec![upto, count.to_string(), "#".repeat(count.min(60))]
    });
    let mut text = table(&["gap_ms", "count", ""], 1, rows.collect());
    let open = changes(topics).iter().filter(|change| change.cost.is_none()).count();
    if open > 0 {
        text += &format!("{open} changes without a gap: the first of all, or not over\n");
    }
    text
}

pub(super) fn why_now(names: &Names, topics: &Topics, view: &View) -> String {
    let node = &view.node;
    let mut text = match (&node.attached, changes(topics).last()) {
        (Some(attached), Some(last)) => format!(
            "attached to {} because of change {}: {}\n",
            place(
                names,
                Some(Attachment {
                    rsu: attached.rsu,
                    upstream: attached.upstream,
                    hops: attached.hops,
                })
            ),
            last.number,
            rule(last)
        ),
        (None, Some(last)) => {
            format!("attached to no RSU since change {}: {}\n", last.number, rule(last))
        }
        (_, None) => "no change of upstream yet\n".to_owned(),
    };
    for route in &node.routes {
        if route.standing != node_lib::control::snapshot::RouteStanding::InUse {
            text += &format!("{}\n", control_socket::health::why_not(route));
        }
    }
    let there_are = around::upstreams(names, &node.routes, node.without_way());
    text + "\nnow there are:\n" + &there_are
}

/// Of the one change that is left.
pub(super) fn why_then(names: &Names, topics: &Topics) -> String {
    let Some(change) = changes(topics).first() else { return String::new() };
    let mut text = format!(
        "change {} at {}: from {} to {}\n{}\n",
        change.number,
        time(change.at_unix_ms),
        place(names, change.from),
        place(names, change.to),
        rule(change)
    );
    if let Some(cost) = &change.cost {
        text += &format!(
            "it cost a gap of {} ms; {} frames lost, {} at risk, {} doubled, {} sent twice\n",
            node_lib::control::snapshot::span_ms(cost.gap),
            cost.lost,
            cost.at_risk,
            cost.doubled,
            cost.sent_twice
        );
    }
    if change.routes.is_empty() {
        return text
            + &format!(
                "what there was to choose from is kept of the last {CHOICES_KEPT} changes\n"
            );
    }
    // Of those that led nowhere nothing is kept.
    let there_were = around::upstreams(names, &change.routes, [].iter());
    text + "\nthere were, right after the decision:\n" + &there_were
}

pub(crate) fn events(names: &Names, topics: &Topics) -> String {
    let mut text = String::new();
    for happened in topics.events.iter().flatten() {
        let fields = match serde_json::to_value(&happened.event) {
            Ok(Value::Object(fields)) => fields,
            _ => continue,
        };
        text += &format!(
            "{} {:>6}  {}",
            time(happened.at_unix_ms),
            happened.number,
            happened.event.kind()
        );
        for (name, value) in fields.iter().filter(|(name, _)| *name != "event") {
            text += &format!("  {name}={}", shown(names, value));
        }
        text.push('\n');
    }
    text
}

/// A value of an event: names for ids, and what is in an object side by side.
fn shown(names: &Names, value: &Value) -> String {
    match value {
        Value::Null => UNKNOWN.to_owned(),
        Value::String(text) => text.parse().map_or_else(|_| text.clone(), |mac| names.mac(mac)),
        Value::Object(fields) => {
            let fields =
                fields.iter().map(|(name, value)| format!("{name}:{}", shown(names, value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(" "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

    use std::time::Duration;

    use control_socket::table::TableKind;
    use node_lib::NodeId;
    use node_lib::control::event::{Cause, HandOver};

    use super::*;

    fn change(number: u64, gap: Option<u64>) -> Change {
        let rsu = NodeId([2, 0, 0, 0, 0, 1]);
        let from = Attachment { rsu, upstream: rsu, hops: 1 };
        let cost = gap.map(|gap| HandOver {
            from,
            to: Some(from),
            cause: Cause::Dead,
            is_settled: true,
            gap: Duration::from_millis(gap),
            lost: 2,
            at_risk: 0,
            doubled: 0,
            sent_twice: 0,
        });
        Change {
            number,
            at_unix_ms: 0,
            from: Some(from),
            to: Some(from),
            cause: Cause::Dead,
            silence_ms: 230,
            cost,
            routes: Vec::new(),
        }
    }

    fn topics(changes: Vec<Change>) -> Topics {
        let view = Some(View::default());
        Topics { changes: Some(changes), view, ..Topics::default() }
    }

    #[test]
    fn every_gap_is_in_one_class() {
        let gaps = [Some(0), Some(1), Some(10), Some(51), Some(5000), None];
        let topics = topics(gaps.into_iter().map(|gap| change(0, gap)).collect());
        let counts: Vec<_> =
            gap_classes(changes(&topics)).into_iter().map(|(_, count)| count).collect();
        assert_eq!(counts, [1, 2, 0, 1, 0, 0, 0, 1]);
        assert!(histogram(&topics).contains("1 changes without a gap"));
    }

    #[test]
    fn a_past_change_is_explained_and_an_unknown_one_names_those_there_are() {
        let topics = || topics(vec![change(4, Some(170)), change(9, None)]);
        let one = TableKind::Why(Some(4)).narrowed(topics()).unwrap();
        let said = why_then(&Names::default(), &one);
        assert!(said.contains("silent for 230 ms") && said.contains("gap of 170 ms"), "{said}");
        assert!(said.contains("is kept of the last 32 changes"), "{said}");
        let said = TableKind::Why(Some(5)).narrowed(topics()).unwrap_err().to_string();
        assert!(said.contains("4, 9"), "{said}");
    }
}
