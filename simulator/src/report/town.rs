//! A run as one web page ([`write()`]): where everybody is, who sends through whom, and what each
//! could choose from and why, with a time bar. It is the page of a living node, and of a recording.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use control_socket::record::{History, Moment};
use node_lib::control::snapshot::{KnownCandidate, KnownRoute, Obstacle, RouteStanding, span_ms};
use node_lib::{Mac, NodeId, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};
use sim::{NodeIndex, Role, Violation, World};

use super::plots::map::places;
use crate::cast::{Cast, radio_mac};
use crate::scenario::Scenario;
use crate::stage::{self, Stage, Suite};

/// All looks of a page take no more than this: a browser on a phone still opens it. When they do,
/// every second one goes, and from then on looks are half as frequent.
pub const LOOKS_BYTES_MAX: usize = 24 << 20;

/// Candidates shown of a vehicle for each RSU: the one in use, and the cheapest.
const CANDIDATES_MAX: usize = 6;

/// Changes of upstream, and other events, shown of each node: the last ones.
const HAPPENED_MAX: usize = 24;

/// What is played.
#[derive(Clone, Copy)]
pub struct PlayedRun<'a> {
    /// What it is called.
    pub name: &'a str,
    /// What happens.
    pub scenario: &'a Scenario,
    /// Who takes part.
    pub cast: &'a Cast,
    /// Its seed.
    pub seed: u64,
}

/// What was written.
#[derive(Debug)]
pub struct Written {
    /// Looks on the page.
    pub looks: usize,
    /// Time from one to the next, in the end.
    pub every: Duration,
    /// Hash over the trace of the run, as the results of `v2xsim run` have it.
    pub trace_hash: u64,
    /// The rule that was broken, and ended the run, with the name of who did it.
    pub broken: Option<(Box<Violation>, String)>,
}

/// Runs a scenario once and writes the page.
///
/// # Errors
/// It cannot be written.
pub fn write(town: &PlayedRun<'_>, every: Duration, out: &mut impl Write) -> io::Result<Written> {
    write_within(LOOKS_BYTES_MAX, town, every, out)
}

/// The same with so many bytes for looks.
///
/// # Errors
/// As [`write()`].
pub fn write_within(
    bytes_max: usize,
    town: &PlayedRun<'_>,
    every: Duration,
    out: &mut impl Write,
) -> io::Result<Written> {
    let PlayedRun { scenario, cast, seed, .. } = *town;
    let Stage { mut world, .. } = Stage::new(scenario, cast, seed, Suite::Daemons);
    let mut looks = Looks { kept: Vec::new(), bytes: 0, bytes_max, every };
    let mut histories: BTreeMap<NodeIndex, History> = BTreeMap::new();
    let (end, mut at, mut broken) = (stage::end(scenario), Timestamp::ZERO, None);
    loop {
        let ended = world.run_until(at);
        for (time, node, event) in world.take_events() {
            let moment = Moment { unix_ms: unix_ms(time), clock: time };
            histories.entry(node).or_default().note(moment, &event, &[]);
        }
        looks.push(&look(cast, &world))?;
        if let Err(violation) = ended {
            let name = cast.name(violation.node).to_owned();
            broken = Some((violation, name));
            break;
        }
        if at >= end {
            break;
        }
        at = (at + looks.every).min(end);
    }
    let said = broken.as_ref().map(|(violation, name)| format!("{name}: {violation}"));
    let [before, after] = web_page::around_town();
    out.write_all(before.as_bytes())?;
    // Nothing in it may end the element of the page that it stands in.
    let mut put = |text: &str| out.write_all(text.replace('<', "\\u003c").as_bytes());
    put("{\"looks\":[")?;
    for (index, look) in looks.kept.iter().enumerate() {
        put(if index == 0 { "" } else { ",\n" })?;
        put(look)?;
    }
    put("],\n")?;
    let head = serde_json::to_string(&head(town, &histories, said.as_deref()))?;
    // An object goes on where the looks end.
    put(head.strip_prefix('{').unwrap_or(&head))?;
    out.write_all(after.as_bytes())?;
    let (looks, every) = (looks.kept.len(), looks.every);
    Ok(Written { looks, every, trace_hash: world.trace_hash(), broken })
}

/// What there is to play, within bounds.
struct Looks {
    kept: Vec<String>,
    bytes: usize,
    bytes_max: usize,
    every: Duration,
}

impl Looks {
    fn push(&mut self, look: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_string(look)?;
        self.bytes += text.len();
        self.kept.push(text);
        while self.bytes > self.bytes_max && self.kept.len() > 2 {
            let mut is_odd = true;
            self.kept.retain(|_| {
                is_odd = !is_odd;
                !is_odd
            });
            self.bytes = self.kept.iter().map(String::len).sum();
            self.every *= 2;
        }
        Ok(())
    }
}

/// What is said once. Nodes are numbers in all else: places in this list of them.
fn head(
    town: &PlayedRun<'_>,
    histories: &BTreeMap<NodeIndex, History>,
    broken: Option<&str>,
) -> Value {
    let PlayedRun { name, cast, seed, .. } = *town;
    let id = |index| NodeId::from(radio_mac(index));
    let role = |role| if role == Role::Rsu { "rsu" } else { "obu" };
    let nodes = cast.nodes.iter().enumerate();
    let nodes: Vec<_> =
        nodes.map(|(index, node)| json!([id(index), node.name, role(node.role)])).collect();
    let (mut changes, mut events) = (BTreeMap::new(), BTreeMap::new());
    for (node, history) in histories {
        changes.insert(node.0.to_string(), last(history.changes()));
        events.insert(node.0.to_string(), last(history.events()));
    }
    json!({
        "name": name, "seed": seed, "broken": broken, "nodes": nodes,
        "changes": changes, "events": events,
    })
}

fn last<T>(all: Vec<T>) -> Vec<T> {
    let more = all.len().saturating_sub(HAPPENED_MAX);
    all.into_iter().skip(more).collect()
}

/// Everybody at a moment.
#[derive(Serialize)]
struct Look {
    /// Milliseconds since the beginning.
    at: u64,
    nodes: Vec<NodeRow>,
}

/// Which node, metres east and north, its upstream, its RSU, hops to it, and its routes.
type NodeRow = (usize, f64, f64, Option<usize>, Option<usize>, Option<u8>, Vec<RouteRow>);

/// RSU, standing, age of the news, OBUs there, candidates.
type RouteRow = (Option<usize>, RouteStanding, u64, u16, Vec<CandidateRow>);

/// Which neighbour, whether in use, obstacles, hops, cost and its three parts, margin, what is
/// needed and for how long it was better, how it is heard, its upstream.
type CandidateRow = (
    Option<usize>,
    u8,
    Vec<Obstacle>,
    u8,
    [f64; 4],
    (Option<f64>, Option<f64>, Option<u64>),
    (u64, Option<f64>, Option<f64>, Option<f64>, Option<u64>, f64),
    Option<usize>,
);

fn look(cast: &Cast, world: &World) -> Look {
    let places = places(cast, world);
    let number = |id: NodeId| cast.node_of(Mac(id.0)).map(|node| node.0);
    let there = places.iter().filter_map(|(&node, place)| {
        let (running, clock) = (world.node(node)?, world.clock(node)?);
        let attachment = world.attachment(node);
        let routes = running.routes(clock);
        let routes = routes.iter().filter(|route| !route.candidates.is_empty());
        Some::<NodeRow>((
            node.0,
            tenth(place.x_m),
            tenth(place.y_m),
            attachment.and_then(|to| number(to.upstream)),
            attachment.and_then(|to| number(to.rsu)),
            attachment.map(|to| to.hops),
            routes.map(|route| route_row(route, number)).collect(),
        ))
    });
    Look { at: unix_ms(world.now()), nodes: there.collect() }
}

fn route_row(route: &KnownRoute, number: impl Fn(NodeId) -> Option<usize>) -> RouteRow {
    let mut candidates: Vec<&KnownCandidate> = route.candidates.iter().collect();
    let rank = |one: &KnownCandidate| (!one.is_used, !one.obstacles.is_empty());
    candidates.sort_by(|a, b| rank(a).cmp(&rank(b)).then(a.cost.total_cmp(&b.cost)));
    candidates.truncate(CANDIDATES_MAX);
    let row = |one: &&KnownCandidate| {
        (
            number(one.id),
            u8::from(one.is_used),
            one.obstacles.clone(),
            one.hops,
            [one.cost, one.advertised_cost, one.link_cost, one.relay_cost].map(hundredth),
            (one.margin.map(hundredth), one.margin_needed.map(hundredth), one.better_for_ms),
            (
                one.heard_ms,
                one.heard_ratio.map(hundredth),
                one.signal_dbm.map(tenth),
                one.signal_ahead_dbm.map(tenth),
                one.proven_ms,
                hundredth(one.strain_nat),
            ),
            one.via.and_then(&number),
        )
    };
    let candidates = candidates.iter().map(row).collect();
    (number(route.rsu), route.standing, route.heard_ms, route.obus, candidates)
}

fn tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn hundredth(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

fn unix_ms(at: Timestamp) -> u64 {
    span_ms(at.since(Timestamp::ZERO))
}
