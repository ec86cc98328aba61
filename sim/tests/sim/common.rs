//! What the simulations of real nodes share: a [`Town`] to run them in, many runs side by side, and
//! words for a failure that make it easy to see again.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]
#![allow(clippy::panic, reason = "this is how a test fails")]

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use node_lib::control::event::{Attachment, Cause, Event};
use node_lib::{Mac, Timestamp};
use obu_lib::Obu;
use rsu_lib::Rsu;
use sim::topology::Graph;
use sim::{
    ClientIndex, Counting, Dice, Factory, Flow, FlowIndex, LanIndex, Link, NodeIndex, Place, Role,
    Target, Violation, World,
};

/// Time between two heartbeats, by default.
pub const HEARTBEAT: Duration = ms(100);

pub const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub const fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// Radio MAC, and so id, of the `n`-th node.
pub fn radio(n: usize) -> Mac {
    address(0, n)
}

/// The client behind the `n`-th node.
pub fn rider_mac(n: usize) -> Mac {
    address(1, n)
}

pub const HOST_MAC: Mac = Mac([2, 0, 0, 2, 0, 1]);

fn address(group: u8, n: usize) -> Mac {
    let [high, low] = u16::try_from(n + 1).unwrap().to_be_bytes();
    Mac([2, 0, 0, group, high, low])
}

/// An OBU with default settings.
pub fn obu(n: usize) -> Factory {
    obu_with(n, |_| ())
}

/// An OBU with some settings changed.
pub fn obu_with(n: usize, change: impl Fn(&mut obu_lib::Config) + Send + 'static) -> Factory {
    Box::new(move |start, now| {
        debug_assert_eq!(start.radio_mac, radio(n), "the node it is for");
        let mut config = obu_lib::Settings::default().config(start);
        change(&mut config);
        Box::new(Obu::new(config, now))
    })
}

/// An RSU with default settings.
pub fn rsu(n: usize) -> Factory {
    Box::new(move |start, now| {
        debug_assert_eq!(start.radio_mac, radio(n), "the node it is for");
        Box::new(Rsu::new(rsu_lib::Settings::default().config(start), now))
    })
}

/// Real nodes: RSUs on one LAN with one host, and OBUs with one rider each.
pub struct Town {
    pub world: World,
    pub lan: LanIndex,
    pub host: ClientIndex,
    pub riders: BTreeMap<NodeIndex, ClientIndex>,
}

impl Town {
    /// Linked as in `graph`; the nodes in `rsus` are RSUs.
    pub fn new(seed: u64, graph: &Graph, rsus: &[usize], link: Link) -> Self {
        Self::in_world(World::new(seed), graph, rsus, link)
    }

    /// A world whose nodes start at once and count 1, 2, 3: with state files, and clocks that were
    /// never set. For tests that must know a boot count beforehand.
    pub fn world_of_first_starts(seed: u64) -> World {
        let mut world = World::new(seed);
        world.count_starts(Counting::StateFile);
        world.set_time_of_day(Duration::ZERO);
        world
    }

    /// As [`Town::new`], in this world.
    pub fn in_world(mut world: World, graph: &Graph, rsus: &[usize], link: Link) -> Self {
        if trace_file().is_some() {
            world.keep_trace();
        }
        let lan = world.add_lan();
        let host = world.add_client(HOST_MAC, Place::Lan(lan));
        let mut riders = BTreeMap::new();
        for n in 0..graph.nodes() {
            if rsus.contains(&n) {
                let node = world.add_node(Role::Rsu, radio(n), rsu(n));
                world.plug(node, lan);
            } else {
                let node = world.add_node(Role::Obu, radio(n), obu(n));
                riders.insert(node, world.add_client(rider_mac(n), Place::Tap(node)));
            }
        }
        world.link_all(graph, link);
        Self { world, lan, host, riders }
    }

    /// Frames from the rider of `node` to the host.
    pub fn up(
        &mut self,
        node: NodeIndex,
        start: Timestamp,
        every: Duration,
        count: u32,
    ) -> FlowIndex {
        let to = Target::Client(self.host);
        self.world.add_flow(Flow::steady(self.riders[&node], to, start, every, count))
    }

    /// Frames from the host to the rider of `node`.
    pub fn down(
        &mut self,
        node: NodeIndex,
        start: Timestamp,
        every: Duration,
        count: u32,
    ) -> FlowIndex {
        let to = Target::Client(self.riders[&node]);
        self.world.add_flow(Flow::steady(self.host, to, start, every, count))
    }

    /// Frames of an [`Town::up`] flow that arrived.
    pub fn arrived_up(&self, flow: FlowIndex) -> usize {
        self.world.flow(flow).unwrap().received(self.host)
    }

    /// Frames of a [`Town::down`] flow that arrived.
    pub fn arrived_down(&self, flow: FlowIndex, node: NodeIndex) -> usize {
        self.world.flow(flow).unwrap().received(self.riders[&node])
    }

    /// Longest gap in an [`Town::up`] flow.
    pub fn gap_up(&self, flow: FlowIndex, from: Timestamp, to: Timestamp) -> Duration {
        self.world.flow(flow).unwrap().longest_gap(self.host, from, to)
    }

    /// Longest gap in a [`Town::down`] flow.
    pub fn gap_down(
        &self,
        flow: FlowIndex,
        node: NodeIndex,
        from: Timestamp,
        to: Timestamp,
    ) -> Duration {
        self.world.flow(flow).unwrap().longest_gap(self.riders[&node], from, to)
    }

    /// OBUs that can reach an RSU over present links, with their distance.
    pub fn reachable(&self) -> Vec<(NodeIndex, usize)> {
        let hops = self.world.hops_to_rsu();
        self.riders.keys().filter_map(|&node| Some((node, hops[node.0]?))).collect()
    }

    /// Changes of upstream after `from`, and why; the first route after none is none.
    pub fn changes(&self, from: Timestamp) -> Vec<(Timestamp, NodeIndex, Cause)> {
        let changes = self.world.events().iter().filter_map(|(time, node, event)| match event {
            Event::UpstreamChanged { from: Some(_), cause, .. } => Some((*time, *node, *cause)),
            _ => None,
        });
        changes.filter(|(time, ..)| *time >= from).collect()
    }

    /// The neighbour `node` sends through.
    pub fn upstream(&self, node: NodeIndex) -> Option<NodeIndex> {
        let Attachment { upstream, .. } = self.world.attachment(node)?;
        (0..).take(1000).map(NodeIndex).find(|n| radio(n.0).0 == upstream.0)
    }
}

/// What went wrong in one run.
pub type Wrong = Box<dyn std::error::Error + Send + Sync>;

/// A failure in words, with the last lines of the trace.
pub fn wrong(town: &Town, what: String) -> Wrong {
    let trace = town.world.last_lines().join("\n    ");
    format!("    {trace}\n{what}, at {}", town.world.now()).into()
}

/// A checker's complaint, as a failure.
pub fn broken(violation: Box<Violation>) -> Wrong {
    violation.to_string().into()
}

/// `V2X_SIM_SEED`: this seed and no other.
pub fn only_seed() -> Option<u64> {
    std::env::var("V2X_SIM_SEED").ok().map(|text| text.parse().expect("V2X_SIM_SEED: a number"))
}

/// `V2X_SIM_RUNS`: how many runs, instead of the quick number.
pub fn runs(quick: u64) -> u64 {
    let text = std::env::var("V2X_SIM_RUNS").ok();
    text.map_or(quick, |text| text.parse().expect("V2X_SIM_RUNS: a number"))
}

/// The seeds to run: the one asked for, or from 0 to [`runs`].
pub fn seeds(quick: u64) -> Range<u64> {
    match only_seed() {
        Some(seed) => seed..seed + 1,
        None => 0..runs(quick),
    }
}

/// `V2X_SIM_SHOW`: how many failures are listed, one line each.
fn failures_shown() -> usize {
    let text = std::env::var("V2X_SIM_SHOW").ok();
    text.map_or(20, |text| text.parse().expect("V2X_SIM_SHOW: a number"))
}

/// Long runs say how far they are after so many seeds.
const SHOW_EVERY: usize = 20_000;

/// Runs `run` for every seed, on all cores, and gives back what it found in the order of seeds.
/// Fails with the first failures and how to see them again.
#[track_caller]
pub fn run_all<T: Send>(
    test: &str,
    seeds: Range<u64>,
    run: impl Fn(u64) -> Result<T, Wrong> + Sync,
) -> Vec<T> {
    let all: Vec<u64> = seeds.collect();
    let (next, finished) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        let mut done = Vec::new();
        while let Some(&seed) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((seed, run(seed)));
            let so_far = finished.fetch_add(1, Ordering::Relaxed) + 1;
            if so_far % SHOW_EVERY == 0 {
                eprintln!("{test}: {so_far} of {}", all.len());
            }
        }
        done
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut done: Vec<(u64, Result<T, Wrong>)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    done.sort_by_key(|(seed, _)| *seed);
    let failed: Vec<(u64, &Wrong)> =
        done.iter().filter_map(|(seed, result)| Some((*seed, result.as_ref().err()?))).collect();
    if let Some((first, wrong)) = failed.first() {
        eprintln!("{wrong}\nto see it again:");
        eprintln!("  V2X_SIM_SEED={first} cargo test -p sim {test} -- --nocapture");
        for (seed, wrong) in failed.iter().skip(1).take(failures_shown()) {
            let text = wrong.to_string();
            let last = text.lines().rfind(|line| !line.starts_with("    ")).unwrap_or_default();
            eprintln!("seed {seed}: {last}");
        }
        panic!("{} of {} runs failed, seed {first} first", failed.len(), done.len());
    }
    done.into_iter().filter_map(|(_, result)| result.ok()).collect()
}

/// The value below which this share of `sorted` lies.
pub fn percentile(sorted: &[Duration], share: f64) -> Duration {
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * share).round() as usize).copied().unwrap_or_default()
}

/// p50, p99 and the largest, in words.
pub fn spread(mut spans: Vec<Duration>) -> String {
    spans.sort_unstable();
    let [p50, p99, max] = [0.5, 0.99, 1.0].map(|share| percentile(&spans, share).as_millis());
    format!("p50 {p50} ms, p99 {p99} ms, max {max} ms over {} runs", spans.len())
}

/// `V2X_SIM_TRACE`: a file for the whole trace of the one seed asked for.
fn trace_file() -> Option<String> {
    only_seed().and_then(|_| std::env::var("V2X_SIM_TRACE").ok())
}

impl Drop for Town {
    fn drop(&mut self) {
        if let Some(path) = trace_file() {
            std::fs::write(&path, self.world.trace_text()).expect("V2X_SIM_TRACE: a file");
        }
    }
}

/// What a forger makes of a frame: in half of all another sender, one of so many, and up to three
/// places with other bytes, some as long as an id. `change` makes one byte of what it was and a
/// random one.
pub fn scribble(
    frame: &mut [u8],
    senders: u64,
    dice: &mut Dice,
    mut change: impl FnMut(u8, u8, &mut Dice) -> u8,
) {
    if dice.chance(0.5) {
        let sender = dice.below(senders).to_be_bytes();
        frame[6..12].copy_from_slice(&[2, 0, 9, 9, sender[6], sender[7]]);
    }
    for _ in 0..dice.index(4) {
        let place = 14 + dice.index(frame.len() - 14);
        let bytes = dice.next_u64().to_be_bytes();
        let len = [1, 2, 6][dice.index(3)];
        for (byte, random) in frame[place..].iter_mut().zip(&bytes[..len]) {
            *byte = change(*byte, *random, dice);
        }
    }
}
