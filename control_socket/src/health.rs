//! What is wrong with a node, and the cure: [`problems`].

use node_lib::Timestamp;
use node_lib::control::snapshot::{KnownRoute, NodeRole, Obstacle, RouteStanding, View, span_ms};
use serde::{Deserialize, Serialize};

use crate::record::{Fault, Moment};

/// A node that started so lately may still be looking for a way.
const STARTING_MS: u64 = 2000;

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthProblem {
    /// One word or two, for programs.
    pub kind: String,
    /// What, with the figures.
    pub text: String,
    /// What to do about it.
    pub cure: String,
    /// Nothing gets through.
    pub is_fatal: bool,
    /// Of what is noticed now and then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noticed: Option<Noticed>,
}

/// When something was noticed, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noticed {
    /// The number of the event that was the first.
    pub event: u64,
    /// The first time, in milliseconds since 1970, as dates are now.
    pub since_unix_ms: u64,
    /// The last time.
    pub last_unix_ms: u64,
    /// How often.
    pub times: u64,
}

impl HealthProblem {
    fn new(kind: &str, is_fatal: bool, text: impl Into<String>, cure: impl Into<String>) -> Self {
        let kind = kind.to_owned();
        Self { kind, text: text.into(), cure: cure.into(), is_fatal, noticed: None }
    }

    /// It is another, and not the same noticed again.
    fn differs(&self, other: &Self) -> bool {
        let first = |problem: &Self| problem.noticed.map(|noticed| noticed.event);
        let Self { kind, text, cure, is_fatal, noticed: _ } = self;
        (kind, text, cure, is_fatal) != (&other.kind, &other.text, &other.cure, &other.is_fatal)
            || first(self) != first(other)
    }
}

/// Whether something began, ended or became something else; what is noticed again is no news.
pub fn is_news(before: &[HealthProblem], now: &[HealthProblem]) -> bool {
    before.len() != now.len() || before.iter().zip(now).any(|(before, now)| before.differs(now))
}

/// Everything that is wrong with a node, the worst first. `now`: when the view was made.
pub fn problems<'a>(
    view: &View,
    faults: impl Iterator<Item = &'a Fault>,
    now: Moment,
) -> Vec<HealthProblem> {
    let mut found = Vec::new();
    interfaces(view, &mut found);
    match view.node.role {
        NodeRole::Obu => upstream(view, &mut found),
        NodeRole::Rsu if view.alone.is_some() => alone(view, false, &mut found),
        _ => {}
    }
    let lately = faults.filter(|fault| fault.is_there(now.clock));
    found.extend(lately.map(|fault| of_fault(fault, now)));
    found.sort_by_key(|problem| !problem.is_fatal);
    found
}

/// A start that is not in its state file, and why: so until the next one, as only a start writes
/// there.
pub fn unsaved_start(why: &str) -> HealthProblem {
    let text = format!("this start is counted by the clock: {why}");
    let cure = "let the disk take files again; until the next start do not set the clock back, or \
                others ignore that start";
    HealthProblem::new("unsaved-start", false, text, cure)
}

fn interfaces(view: &View, found: &mut Vec<HealthProblem>) {
    let (radio, tap) = (&view.radio, &view.tap);
    if !radio.is_up {
        let text = format!("radio {} is down or gone", radio.name);
        let cure = format!("ip link set dev {} up; then look at its driver and cable", radio.name);
        found.push(HealthProblem::new("radio-down", true, text, cure));
    }
    if !tap.is_up {
        let text = format!("TAP {} is down, gone or out of its bridge: no LAN", tap.name);
        let cure = format!("ip link set dev {} up; with --bridge, put it back into it", tap.name);
        found.push(HealthProblem::new("no-lan", view.node.role == NodeRole::Rsu, text, cure));
    }
    if let Some(port) = &view.wider_port {
        let most = tap.mtu_bytes.map(|mtu| format!(" of {mtu}")).unwrap_or_default();
        let text = format!(
            "port {} of the bridge has an MTU of {}, TAP {} one{most}: the bridge drops longer \
             frames and tells nobody",
            port.name, port.mtu_bytes, tap.name
        );
        let cure = "give all ports, and all hosts behind them, the MTU of the TAP (ip link)";
        found.push(HealthProblem::new("wider-port", false, text, cure));
    }
    if view.is_radio_full {
        let text = "frames wait because the radio has no room".to_owned();
        found.push(HealthProblem::new(
            "radio-full",
            false,
            text,
            "send less, or use a faster radio",
        ));
    }
}

fn alone(view: &View, is_fatal: bool, found: &mut Vec<HealthProblem>) {
    let Some(likely) = &view.alone else { return };
    let ethertypes: Vec<_> = view.other_ethertypes.iter().map(|e| format!("{e:#06x}")).collect();
    let cure = if ethertypes.is_empty() {
        "check range, channel, mode and network of the radios".to_owned()
    } else {
        format!("give all nodes the same --ethertype; others use {}", ethertypes.join(", "))
    };
    found.push(HealthProblem::new(
        "alone",
        is_fatal,
        format!("nobody has been heard: {likely}"),
        cure,
    ));
}

fn upstream(view: &View, found: &mut Vec<HealthProblem>) {
    let node = &view.node;
    if let Some(attached) = &node.attached {
        if attached.is_unanswered {
            let text = format!("RSU {} does not answer what we say", attached.rsu);
            let cure = "look at the RSU: v2xctl obus there shows whether it knows this node";
            found.push(HealthProblem::new("unanswered", true, text, cure));
        } else if !attached.is_acknowledged && attached.since_ms > STARTING_MS {
            let text = format!("RSU {} has not acknowledged our clients", attached.rsu);
            let cure = "v2xctl obus at the RSU shows what it knows of this node";
            found.push(HealthProblem::new("unacknowledged", false, text, cure));
        }
        return;
    }
    if view.alone.is_some() {
        return alone(view, true, found);
    }
    let cure = "v2xctl upstreams shows each neighbour and why it is not used";
    let text = if node.neighbours.is_empty() {
        "no upstream: no neighbour is heard".to_owned()
    } else if node.routes.is_empty() {
        format!("no upstream: {} neighbours, and none knows an RSU", node.neighbours.len())
    } else {
        let whys: Vec<_> = node.routes.iter().map(why_not).collect();
        format!("no upstream: {}", whys.join("; "))
    };
    found.push(HealthProblem::new("no-upstream", true, text, cure));
}

/// Why this RSU is not used.
pub fn why_not(route: &KnownRoute) -> String {
    let rsu = route.rsu;
    match route.standing {
        RouteStanding::Quiet => {
            let left = route.quiet_for_ms.unwrap_or(0);
            format!("RSU {rsu}: we have just started, and listen for another {left} ms")
        }
        RouteStanding::NoUpstream => {
            let of =
                |obstacle| route.candidates.iter().filter(move |c| c.obstacles.contains(obstacle));
            let counted = OBSTACLES.iter().filter_map(|obstacle| {
                let count = of(obstacle).count();
                (count > 0).then(|| format!("{count} {obstacle}"))
            });
            let counted: Vec<_> = counted.collect();
            if counted.is_empty() {
                format!("RSU {rsu}: no neighbour advertises a way any more")
            } else {
                format!(
                    "RSU {rsu}: of {} neighbours {}",
                    route.candidates.len(),
                    counted.join(", ")
                )
            }
        }
        standing => format!("RSU {rsu}: {standing}"),
    }
}

const OBSTACLES: [Obstacle; 7] = [
    Obstacle::Leaving,
    Obstacle::OneWay,
    Obstacle::ThroughUs,
    Obstacle::Quiet,
    Obstacle::Stale,
    Obstacle::Infeasible,
    Obstacle::Late,
];

/// With the figures of the first time: were they those of the last, it would be told as another
/// each time it is noticed.
fn of_fault(fault: &Fault, now: Moment) -> HealthProblem {
    let Fault { times, first, began, noticed } = fault;
    let figures = match serde_json::to_value(&first.event) {
        Ok(serde_json::Value::Object(fields)) => {
            let fields = fields.iter().filter(|(name, _)| *name != "event");
            let fields = fields.map(|(name, value)| match value {
                serde_json::Value::String(text) => format!("{name} {text}"),
                other => format!("{name} {other}"),
            });
            fields.collect::<Vec<_>>().join(", ")
        }
        _ => String::new(),
    };
    let kind = first.event.kind();
    let word = kind.to_lowercase().replace(' ', "-");
    let date = |then: Timestamp| now.unix_ms.saturating_sub(span_ms(now.clock.since(then)));
    let (since_unix_ms, last_unix_ms) = (date(*began), date(*noticed));
    let noticed = Noticed { event: first.number, since_unix_ms, last_unix_ms, times: *times };
    let cure = first.event.cure().unwrap_or("see the log");
    HealthProblem {
        noticed: Some(noticed),
        ..HealthProblem::new(&word, false, format!("{kind} ({figures})"), cure)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "a test may panic")]

    use node_lib::NodeId;
    use node_lib::control::event::Event;
    use node_lib::control::snapshot::Snapshot;

    use super::*;
    use crate::record::{Happened, History};

    fn view(role: NodeRole) -> View {
        let mut view = View::default();
        view.node = Snapshot::of(NodeId([2, 0, 0, 0, 0, 9]), role);
        (view.radio.is_up, view.tap.is_up) = (true, true);
        view
    }

    fn at(unix_ms: u64) -> Moment {
        Moment { unix_ms, clock: Timestamp::from_millis(unix_ms) }
    }

    fn kinds(view: &View) -> Vec<(String, bool)> {
        let found = problems(view, [].iter(), at(0));
        found.into_iter().map(|problem| (problem.kind, problem.is_fatal)).collect()
    }

    #[test]
    fn a_road_side_unit_is_well_alone_and_ill_without_a_lan() {
        let mut rsu = view(NodeRole::Rsu);
        assert_eq!(kinds(&rsu), []);
        rsu.tap.is_up = false;
        assert_eq!(kinds(&rsu), [("no-lan".to_owned(), true)]);
    }

    #[test]
    fn a_vehicle_without_upstream_says_why() {
        let mut obu = view(NodeRole::Obu);
        assert_eq!(kinds(&obu), [("no-upstream".to_owned(), true)]);
        obu.alone = Some("others use EtherType 0x88b6 (--ethertype)".to_owned());
        obu.other_ethertypes = vec![0x88b6];
        let found = problems(&obu, [].iter(), at(0));
        assert_eq!((found.len(), &*found[0].kind), (1, "alone"));
        assert!(found[0].cure.contains("0x88b6"), "{found:?}");
    }

    #[test]
    fn a_start_that_the_clock_counts_keeps_nothing_back() {
        let found = unsaved_start("state file /s/boots: no space");
        assert_eq!((&*found.kind, found.is_fatal), ("unsaved-start", false));
        assert!(found.text.ends_with("by the clock: state file /s/boots: no space"), "{found:?}");
        assert!(found.cure.contains("clock back"), "{found:?}");
    }

    #[test]
    fn a_fault_is_told_until_it_is_long_ago() {
        let obu = view(NodeRole::Rsu);
        let event = Event::IdConflict { mac: node_lib::Mac([2; 6]) };
        let first = Happened { number: 1, at_unix_ms: 1000, event };
        let (began, noticed) = (Timestamp::from_millis(1000), Timestamp::from_millis(4000));
        let fault = Fault { times: 3, first, began, noticed };
        let found = problems(&obu, std::iter::once(&fault), at(5000));
        assert_eq!(found[0].text, "another node uses our node id (mac 02:02:02:02:02:02)");
        let noticed = Noticed { event: 1, since_unix_ms: 1000, last_unix_ms: 4000, times: 3 };
        assert_eq!(found[0].noticed, Some(noticed));
        assert!(found[0].cure.contains("--node-id"), "{found:?}");
        let found = |now| problems(&obu, std::iter::once(&fault), now);
        assert_eq!((found(at(4000 + 599_999)).len(), found(at(4000 + 600_000)).len()), (1, 0));
        // Somebody sets the clock, a year back or ahead: it is as long ago as before.
        for unix_ms in [0, 40_000_000_000] {
            assert_eq!(found(Moment { unix_ms, ..at(4000 + 599_999) }).len(), 1);
            assert_eq!(found(Moment { unix_ms, ..at(4000 + 600_000) }).len(), 0);
        }
    }

    #[test]
    fn a_fault_is_news_when_it_begins_and_not_when_it_is_noticed_again() {
        let obu = view(NodeRole::Rsu);
        let mut history = History::default();
        let mut told = Vec::new();
        let mut looks = |at: &[u64], mac: u8, now_unix_ms: u64| {
            for at in at {
                history.note(
                    self::at(*at),
                    &Event::IdConflict { mac: node_lib::Mac([mac; 6]) },
                    &[],
                );
            }
            let now = problems(&obu, history.faults(), self::at(now_unix_ms));
            let is_news = is_news(&told, &now);
            told = now;
            is_news
        };
        assert!(!looks(&[], 0, 500), "there is nothing");
        assert!(looks(&[1000], 2, 1500), "it begins");
        assert!(!looks(&[], 0, 2500), "it grows older");
        assert!(!looks(&[3000, 3100], 4, 3500), "it is noticed again, with other figures");
        assert!(!looks(&[], 0, 3100 + 599_999), "it is still there");
        assert!(looks(&[], 0, 3100 + 600_000), "it ends");
        assert!(looks(&[800_000], 2, 800_500), "it begins again");
        // Between two looks one ended and another of its kind began.
        assert!(looks(&[1_400_000], 2, 1_400_001), "it is another one");
    }
}
