//! How long it takes until every node that can has a route that works, by topology and rule: from
//! switching everything on, and from the cut of the link that most depend on.
//!
//! The table: `cargo test -p sim --test sim convergence:: -- --nocapture`.

use std::collections::BTreeMap;
use std::time::Duration;

use node_lib::Timestamp;
use node_lib::start::boot;
use obu_lib::{Config, Ranking};
use sim::Dice;
use sim::topology::Graph;
use sim::{Fault, Flow, Link, NodeIndex, Place, Role, Target, World};

use crate::common::{
    HOST_MAC, Wrong, at, broken, ms, obu_with, percentile, radio, rider_mac, rsu, run_all, seeds,
};

/// Everything is on and settled by then, and the link is cut.
const CUT_AT: Timestamp = at(3_000);

const GIVEN_UP_AFTER_MS: u64 = 4_000;

/// One in twenty frames on the radio is lost in the second table.
const LOSSES: [f64; 2] = [0.0, 0.05];

type Change = fn(&mut Config);

const RULES: [(&str, Change); 4] = [
    ("all rules", |_| ()),
    ("hops only", |config| config.settings.policy.ranking = Ranking::Hops),
    ("no candidates", |config| config.settings.cached_candidates = 0),
    ("no suppression", |config| config.settings.policy.suppression = false),
];

/// What is measured of one run: from the start, and from the cut where the graph survives one.
#[derive(Clone, Copy, Debug)]
struct Times {
    start: Duration,
    cut: Option<Duration>,
}

/// Node 0 is the RSU in all of them.
fn topologies(seed: u64) -> Vec<(&'static str, Graph)> {
    let mut dice = Dice::new(seed, 1);
    let diamond = Graph::new(4, [(0, 1), (0, 2), (1, 3), (2, 3)]);
    // The RSU is one of the leaves.
    let star = |nodes: usize| Graph::new(nodes, (0..nodes).map(|leaf| (leaf, 1)));
    // Six neighbours on average.
    let mut random =
        |nodes: usize| Graph::random_connected(nodes, 4.0 / (nodes as f64 - 1.0), &mut dice);
    vec![
        ("line of 5", Graph::chain(5)),
        ("line of 10", Graph::chain(10)),
        ("line of 15", Graph::chain(15)),
        ("ring of 10", Graph::ring(10)),
        ("ring of 16", Graph::ring(16)),
        ("diamond of 4", diamond),
        ("star of 10", star(10)),
        ("star of 50", star(50)),
        ("grid 3 x 3", Graph::grid(3, 3)),
        ("grid 5 x 5", Graph::grid(5, 5)),
        ("grid 8 x 8", Graph::grid(8, 8)),
        ("random, 10", random(10)),
        ("random, 30", random(30)),
        ("random, 60", random(60)),
        ("cell of 40", Graph::complete(40)),
    ]
}

/// Real nodes on this graph, each OBU with a client that sends 20 frames a second to the host.
fn world(seed: u64, graph: &Graph, link: Link, change: Change) -> World {
    let mut world = World::new(seed);
    let lan = world.add_lan();
    let host = world.add_client(HOST_MAC, Place::Lan(lan));
    let root = world.add_node(Role::Rsu, radio(0), rsu(0));
    world.plug(root, lan);
    for n in 1..graph.nodes() {
        let node = world.add_node(Role::Obu, radio(n), obu_with(n, change));
        let rider = world.add_client(rider_mac(n), Place::Tap(node));
        let to = Target::Client(host);
        world.add_flow(Flow::steady(rider, to, at(1000 + n as u64), ms(50), 120));
    }
    world.link_all(graph, link);
    world
}

/// The neighbour each node sends through.
fn upstreams(world: &World, nodes: usize) -> BTreeMap<usize, usize> {
    let by_id: BTreeMap<_, _> = (0..nodes).map(|n| (radio(n).0, n)).collect();
    let upstream = |n| Some((n, *by_id.get(&world.attachment(NodeIndex(n))?.upstream.0)?));
    (1..nodes).filter_map(upstream).collect()
}

/// Whether this way leads to the RSU over links that are there.
fn leads(upstreams: &BTreeMap<usize, usize>, graph: &Graph, node: usize) -> bool {
    let mut way = std::iter::successors(Some(node), |n| upstreams.get(n).copied());
    let steps: Vec<usize> = way.by_ref().take(graph.nodes() + 1).collect();
    steps.last() == Some(&0) && steps.windows(2).all(|step| graph.is_linked(step[0], step[1]))
}

/// How long after `from` every node that can has a route, in steps of a millisecond.
fn settled_after(world: &mut World, graph: &Graph, from: Timestamp) -> Result<Duration, Wrong> {
    let hops = graph.hops_to([0]);
    let able: Vec<usize> = (1..graph.nodes()).filter(|n| hops[*n].is_some()).collect();
    for passed in (1..=GIVEN_UP_AFTER_MS).map(ms) {
        world.run_until(from + passed).map_err(broken)?;
        let upstreams = upstreams(world, graph.nodes());
        if able.iter().all(|n| leads(&upstreams, graph, *n)) {
            return Ok(passed);
        }
    }
    Err(format!("not every node has a route {GIVEN_UP_AFTER_MS} ms after {from}").into())
}

/// The link in use that most nodes depend on, of those without which the graph still hangs
/// together.
fn trunk(world: &World, graph: &Graph) -> Option<(usize, usize)> {
    let upstreams = upstreams(world, graph.nodes());
    let mut users: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for node in 1..graph.nodes() {
        let way = std::iter::successors(Some(node), |n| upstreams.get(n).copied());
        let steps: Vec<usize> = way.take(graph.nodes()).collect();
        for step in steps.windows(2) {
            *users.entry((step[0], step[1])).or_default() += 1;
        }
    }
    let mut by_users: Vec<_> = users.into_iter().map(|(link, users)| (users, link)).collect();
    by_users.sort_unstable_by(|a, b| b.cmp(a));
    by_users.into_iter().map(|(_, link)| link).find(|(a, b)| {
        let mut without = graph.clone();
        without.unlink(*a, *b);
        without.is_connected()
    })
}

fn measure(seed: u64, graph: &Graph, link: Link, change: Change) -> Result<Times, Wrong> {
    let mut world = world(seed, graph, link, change);
    let start = settled_after(&mut world, graph, Timestamp::ZERO)?;
    world.run_until(CUT_AT).map_err(broken)?;
    let Some((a, b)) = trunk(&world, graph) else { return Ok(Times { start, cut: None }) };
    world.at(CUT_AT, Fault::Cut(NodeIndex(a), NodeIndex(b)));
    let mut left = graph.clone();
    left.unlink(a, b);
    let cut = settled_after(&mut world, &left, CUT_AT)?;
    Ok(Times { start, cut: Some(cut) })
}

/// Median and largest, in milliseconds.
fn cell(mut spans: Vec<Duration>) -> String {
    spans.sort_unstable();
    let [p50, max] = [0.5, 1.0].map(|share| percentile(&spans, share).as_millis());
    if spans.is_empty() { "-".to_owned() } else { format!("{p50} / {max}") }
}

#[test]
fn every_node_that_can_has_a_route_soon_after_the_start_and_after_a_cut() {
    let test = "every_node_that_can_has_a_route_soon_after_the_start_and_after_a_cut";
    let names: Vec<&str> = topologies(0).iter().map(|(name, _)| *name).collect();
    for loss in LOSSES {
        let link = Link { loss, ..Link::CLEAN };
        let done = run_all(test, seeds(6), |seed| {
            let mut all = Vec::new();
            for (name, graph) in topologies(seed) {
                for (rule, change) in RULES {
                    let times = measure(seed, &graph, link, change);
                    all.push(times.map_err(|wrong| format!("{name}, {rule}: {wrong}"))?);
                }
            }
            Ok(all)
        });
        println!("\n{loss} of frames lost, {} seeds; ms, median / longest", done.len());
        let heads: Vec<&str> = RULES.iter().map(|(rule, _)| *rule).collect();
        println!("| topology | from the start: {} | from a cut: {0} |", heads.join(" | "));
        for (row, name) in names.iter().enumerate() {
            let of = |rule: usize| done.iter().map(move |all| all[row * RULES.len() + rule]);
            let starts = (0..RULES.len()).map(|rule| cell(of(rule).map(|t| t.start).collect()));
            let cuts = (0..RULES.len()).map(|rule| cell(of(rule).filter_map(|t| t.cut).collect()));
            let cells: Vec<String> = starts.chain(cuts).collect();
            println!("| {name} | {} |", cells.join(" | "));
            // The goals are three intervals for a way round a cut, and the time a relay looks for
            // one before it tells those behind it; and an end of every start. That is the wait for
            // the boot count, the quiet period of 350 ms, a question per hop, and one interval
            // more. In it those move whose first way was so long that nobody could come after them.
            let room = if loss > 0.0 { 3 } else { 1 };
            let [start, cut] = [
                of(0).map(|times| times.start).max().unwrap_or_default(),
                of(0).filter_map(|times| times.cut).max().unwrap_or_default(),
            ];
            assert!(
                start <= boot::UNIT + ms(600) * room,
                "{name}, {loss} lost: {start:?} from the start"
            );
            assert!(cut <= ms(300 + 20) * room, "{name}, {loss} lost: {cut:?} from the cut");
        }
    }
}
