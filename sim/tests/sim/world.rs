//! The simulated world itself, watched with a node so simple that every outcome is plain: it floods
//! what comes out of its TAP. Its broken forms show that each checker sees what it is there for.

use std::collections::BTreeSet;
use std::time::Duration;

use node_lib::control::counters::Counters;
use node_lib::control::deadline::Deadline;
use node_lib::control::event::Event;
use node_lib::control::node::{LinkEvent, Node, Replies};
use node_lib::{Boot, Mac, NodeId, Timestamp};
use sim::topology::Graph;
use sim::{
    ClientIndex, Counting, Factory, Fault, Flow, FrameKind, Link, NodeIndex, Packet, Place, Role,
    Rule, Stats, Target, World,
};

#[test]
fn a_flood_reaches_every_client_once() {
    let (mut world, clients) = flooders(&Graph::grid(3, 3), Link::CLEAN, Habit::Good);
    let flow = world.add_flow(Flow::steady(clients[0], Target::Everyone, at(10), ms(10), 5));
    world.run_until(at(1000)).unwrap();
    let log = world.flow(flow).unwrap();
    assert_eq!(log.receivers().collect::<Vec<_>>(), clients[1..]);
    assert!(log.receivers().all(|client| log.received(client) == 5));
    // Each of nine nodes sends each of five frames once.
    assert_eq!(world.stats().of(FrameKind::TO_DOWNSTREAM).frames, 45);
    assert_eq!(world.stats_of(NodeIndex(4)).data().frames, 5);
}

#[test]
fn frames_take_as_long_as_their_links_and_no_longer() {
    let link = Link { delay: ms(3), jitter: Duration::ZERO, ..Link::CLEAN };
    let (mut world, clients) = flooders(&Graph::chain(4), link, Habit::Good);
    let flow = world.add_flow(Flow::once(clients[0], Target::Client(clients[3]), at(10)));
    world.run_until(at(18)).unwrap();
    assert_eq!(world.flow(flow).unwrap().received(clients[3]), 0);
    world.run_until(at(19)).unwrap();
    assert_eq!(world.flow(flow).unwrap().received_at(clients[3], 0), Some(at(19)));
}

/// A world is a value of its own: begun here and ended on another thread, beside others, it does
/// the same to the byte.
#[test]
fn worlds_run_on_several_threads_at_a_time() {
    const fn assert_send<T: Send>() {}
    const { assert_send::<World>() };
    let begin = |seed| {
        let link = Link::lossy(0.2);
        let (mut world, clients) =
            flooders_in(World::new(seed), &Graph::grid(3, 3), link, Habit::Good);
        world.add_flow(Flow::steady(clients[0], Target::Everyone, at(10), ms(10), 50));
        world.run_until(at(200)).unwrap();
        world
    };
    let end = |mut world: World| {
        world.run_until(at(1000)).unwrap();
        world.trace_hash()
    };
    let here: Vec<u64> = (0..4).map(|seed| end(begin(seed))).collect();
    let threads: Vec<_> = (0..4)
        .map(|seed| {
            let world = begin(seed);
            std::thread::spawn(move || end(world))
        })
        .collect();
    let there: Vec<u64> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_eq!(here, there);
}

#[test]
fn a_node_is_seen_as_what_it_is() {
    let (mut world, clients) = flooders(&Graph::chain(2), Link::CLEAN, Habit::Good);
    world.add_flow(Flow::steady(clients[0], Target::Everyone, at(0), ms(10), 3));
    world.run_until(at(100)).unwrap();
    let seen = world.node_as::<Flooder>(NodeIndex(1)).map(|flooder| flooder.seen.len());
    assert_eq!(seen, Some(3));
    assert!(world.node_as::<obu_lib::Obu>(NodeIndex(1)).is_none());
    world.apply(Fault::Crash(NodeIndex(1)));
    assert!(world.node_as::<Flooder>(NodeIndex(1)).is_none());
}

#[test]
fn loss_and_doubling_come_out_as_asked() {
    let (mut world, clients) = flooders(&Graph::chain(2), Link::lossy(0.1), Habit::Good);
    let flow = world.add_flow(Flow::steady(clients[0], Target::Everyone, at(0), ms(1), 10_000));
    world.run_until(at(11_000)).unwrap();
    let received = world.flow(flow).unwrap().received(clients[1]);
    assert!((8_900..9_100).contains(&received), "{received}");

    let twice = Link { duplicate: 1.0, ..Link::CLEAN };
    let (mut world, clients) = flooders(&Graph::chain(2), twice, Habit::Good);
    world.add_flow(Flow::once(clients[0], Target::Everyone, at(0)));
    world.run_until(at(100)).unwrap();
    assert_eq!(heard(&world, NodeIndex(1)), 2);
}

#[test]
fn what_is_cut_passes_nothing_until_it_heals() {
    let (mut world, clients) = flooders(&Graph::chain(2), Link::CLEAN, Habit::Good);
    let [a, b] = [NodeIndex(0), NodeIndex(1)];
    let there = world.add_flow(Flow::steady(clients[0], Target::Everyone, at(0), ms(10), 40));
    let back = world.add_flow(Flow::steady(clients[1], Target::Everyone, at(0), ms(10), 40));
    world.at(at(95), Fault::CutOneWay(a, b));
    world.at(at(195), Fault::Cut(a, b));
    world.at(at(295), Fault::Heal(a, b));
    world.run_until(at(1000)).unwrap();
    let log = world.flow(there).unwrap();
    assert_eq!(log.longest_gap(clients[1], at(0), at(400)), ms(200));
    let log = world.flow(back).unwrap();
    assert_eq!(log.longest_gap(clients[0], at(0), at(400)), ms(100));
}

#[test]
fn a_cut_takes_what_is_under_way() {
    let (mut world, clients) = flooders(&Graph::chain(2), Link::CLEAN, Habit::Good);
    world.add_flow(Flow::once(clients[0], Target::Everyone, at(10)));
    world.at(Timestamp::from_micros(10_400), Fault::Cut(NodeIndex(0), NodeIndex(1)));
    world.run_until(at(100)).unwrap();
    assert_eq!(heard(&world, NodeIndex(1)), 0);
}

#[test]
fn the_oracle_knows_who_can_reach_an_rsu() {
    let (mut world, _) = flooders(&Graph::chain(4), Link::CLEAN, Habit::Good);
    let [r, a, b, c] = [0, 1, 2, 3].map(NodeIndex);
    assert_eq!(world.hops_to_rsu(), [Some(0), Some(1), Some(2), Some(3)]);
    assert_eq!([r, a, c].map(|node| world.hearers(node)), [vec![a], vec![r, b], vec![b]]);
    world.apply(Fault::CutOneWay(c, b));
    assert_eq!(world.hops_to_rsu(), [Some(0), Some(1), Some(2), None]);
    world.apply(Fault::Isolate(a));
    assert_eq!(world.hops_to_rsu(), [Some(0), None, None, None]);
    world.apply(Fault::Rejoin(a));
    world.apply(Fault::RadioDown(b));
    assert_eq!(world.hops_to_rsu(), [Some(0), Some(1), None, None]);
    world.apply(Fault::Crash(r));
    assert_eq!(world.hops_to_rsu(), [None; 4]);
}

#[test]
fn a_node_that_starts_again_has_a_higher_boot_count_and_a_seed_of_its_own() {
    let (mut world, _) = flooders(&Graph::chain(2), Link::CLEAN, Habit::Good);
    let first = world.boot(NodeIndex(1)).unwrap();
    world.keep_trace();
    world.at(at(10), Fault::Restart(NodeIndex(1), ms(5)));
    world.at(at(20), Fault::Shutdown(NodeIndex(0)));
    world.run_until(at(100)).unwrap();
    let lines: Vec<&str> = world.trace_text().lines().collect();
    assert_eq!(
        lines,
        [
            "0.010000 s fault restart n1 after 5 ms",
            "0.010000 s n1 stops",
            "0.015000 s fault start n1",
            &format!("0.015000 s n1 starts, boot {}", first.0 + 1),
            "0.020000 s fault shut down n0",
            "0.027000 s n0 stops",
        ]
    );
    assert!(world.node(NodeIndex(0)).is_none());
}

#[test]
fn a_lan_joins_the_taps_plugged_into_it() {
    let mut world = World::new(1);
    world.count_starts(Counting::StateFile);
    let [r, s] = [1, 2].map(|n| world.add_node(Role::Rsu, mac(n), flooder(n, Habit::Good)));
    let lan = world.add_lan();
    world.plug(r, lan);
    world.plug(s, lan);
    let host = world.add_client(client_mac(1), Place::Lan(lan));
    let car = world.add_node(Role::Obu, mac(3), flooder(3, Habit::Good));
    let rider = world.add_client(client_mac(2), Place::Tap(car));
    world.link(car, r, Link::CLEAN);
    let up = world.add_flow(Flow::steady(rider, Target::Client(host), at(10), ms(10), 3));
    let down = world.add_flow(Flow::steady(host, Target::Client(rider), at(15), ms(10), 3));
    world.run_until(at(100)).unwrap();
    assert_eq!(world.flow(up).unwrap().received(host), 3);
    assert_eq!(world.flow(down).unwrap().received(rider), 3);
    // The switch learned from the first frame on which port the rider is.
    assert_eq!(world.stats_of(s).data().frames, 1);
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let run = |seed| {
        let (mut world, clients) = flooders_in(
            World::new(seed),
            &Graph::grid(3, 3),
            Link { duplicate: 0.1, ..Link::lossy(0.2) },
            Habit::Good,
        );
        world.keep_trace();
        world.add_flow(Flow::steady(clients[0], Target::Everyone, at(0), ms(3), 100));
        world.at(at(50), Fault::Restart(NodeIndex(4), ms(20)));
        world.run_until(at(1000)).unwrap();
        (world.trace_hash(), world.trace_text().to_owned())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).0, run(2).0);
    let hashes: BTreeSet<u64> = (0..50).map(|seed| run(seed).0).collect();
    assert_eq!(hashes.len(), 50);
}

#[test]
fn every_checker_sees_what_it_is_there_for() {
    for (habit, rule) in [
        (Habit::NoDedup, Rule::FloodedTwice),
        (Habit::Loop, Rule::VisitedTwice),
        (Habit::KeepsHopLimit, Rule::HopLimit),
        (Habit::HandsOverTwice, Rule::Doubled),
        (Habit::HandsOverAll, Rule::WrongDelivery),
        (Habit::Reflects, Rule::Echo),
        (Habit::SendsBack, Rule::Echo),
        (Habit::Truncates, Rule::Malformed),
        (Habit::Spins, Rule::Spin),
    ] {
        let (mut world, clients) = flooders(&Graph::ring(3), Link::CLEAN, habit);
        world.add_flow(Flow::once(clients[0], Target::Everyone, at(10)));
        let violation = world.run_until(at(1000)).unwrap_err();
        assert_eq!(violation.rule, rule, "{habit:?}: {violation}");
        assert!(violation.to_string().contains("seed 7"), "{violation}");
        assert!(world.run_until(at(2000)).is_err(), "stands still");
    }
}

#[test]
fn a_node_that_spins_is_shown_with_its_reason() {
    let (mut world, _) = flooders(&Graph::ring(3), Link::CLEAN, Habit::Spins);
    let violation = world.run_until(at(1000)).unwrap_err();
    assert!(violation.detail.ends_with(WHY_IT_SPINS), "{violation}");
}

#[test]
fn a_world_that_is_told_so_goes_on_and_counts_broken_rules() {
    let (mut world, clients) = flooders(&Graph::ring(3), Link::CLEAN, Habit::HandsOverTwice);
    world.go_on_when_broken();
    let flow = world.add_flow(Flow::steady(clients[0], Target::Everyone, at(10), ms(10), 5));
    world.run_until(at(1000)).unwrap();
    assert_eq!(world.now(), at(1000));
    assert_eq!(world.flow(flow).unwrap().sent().len(), 5);
    // Each of two nodes hands over each of five frames once too often.
    assert_eq!(world.breaches(), 10);
    let first = world.violation().unwrap();
    assert_eq!((first.rule, first.time < at(20)), (Rule::Doubled, true), "{first}");
    // One that never lets time pass cannot go on.
    let (mut world, _) = flooders(&Graph::ring(3), Link::CLEAN, Habit::Spins);
    world.go_on_when_broken();
    assert_eq!(world.run_until(at(1000)).unwrap_err().rule, Rule::Spin);
}

#[test]
fn nothing_sent_means_nothing_counted() {
    assert_eq!(World::new(0).stats(), Stats::default());
}

// Helpers.

const WHY_IT_SPINS: &str = "do nothing at all";

/// What is wrong with a [`Flooder`].
#[derive(Clone, Copy, Debug, PartialEq)]
enum Habit {
    Good,
    /// Relays a flood each time it hears it.
    NoDedup,
    /// Sends data to the next node of the ring instead of flooding it, for ever.
    Loop,
    /// Relays with the hop limit it heard.
    KeepsHopLimit,
    HandsOverTwice,
    /// Hands over what is addressed to another node.
    HandsOverAll,
    /// Hands its own clients' frames back to them.
    Reflects,
    /// Sends data back to whom it came from.
    SendsBack,
    /// Sends half a header.
    Truncates,
    /// Always wants to be woken now.
    Spins,
}

/// Floods every frame from its TAP as type 9, relays every flood once and hands it to its TAP.
/// What it does not flood it sends as type 8.
struct Flooder {
    n: u8,
    habit: Habit,
    boot: Boot,
    seq: u32,
    seen: BTreeSet<Packet>,
    counters: Counters,
}

const FLOOD: u8 = 8;

/// Bytes in front of the inner frame: Ethernet header and data header, with a flood's moment
/// behind.
const fn header_len(is_flood: bool) -> usize {
    14 + 22 + 4 * is_flood as usize
}

impl Flooder {
    fn next(&self) -> Mac {
        mac(self.n % 3 + 1)
    }
}

impl Node for Flooder {
    fn id(&self) -> NodeId {
        mac(self.n).into()
    }

    fn handle_wire(&mut self, _: Timestamp, frame: &[u8], out: &mut Replies) {
        let Some((packet, limit)) = Packet::of(frame) else { return };
        let is_new = self.seen.insert(packet);
        if !(is_new || matches!(self.habit, Habit::NoDedup | Habit::Loop)) {
            return;
        }
        let inner = &frame[header_len(packet.is_flood)..];
        if is_new && (packet.is_flood || self.habit == Habit::HandsOverAll) {
            out.tap(|flat| flat.extend_from_slice(inner));
            if self.habit == Habit::HandsOverTwice {
                out.tap(|flat| flat.extend_from_slice(inner));
            }
        }
        let limit =
            if self.habit == Habit::KeepsHopLimit { limit } else { limit.saturating_sub(1) };
        let to = match self.habit {
            Habit::SendsBack => Mac(frame[6..12].try_into().unwrap()),
            _ if packet.is_flood => Mac::BROADCAST,
            _ => self.next(),
        };
        if limit > 0 {
            out.wire(|flat| {
                flat.extend_from_slice(frame);
                flat[..6].copy_from_slice(&to.0);
                flat[6..12].copy_from_slice(&mac(self.n).0);
                flat[30] = limit;
            });
        }
    }

    fn handle_tap(&mut self, _: Timestamp, frame: &[u8], out: &mut Replies) {
        self.seq += 1;
        let is_flood = !matches!(self.habit, Habit::Loop | Habit::HandsOverAll | Habit::SendsBack);
        let to = if is_flood { Mac::BROADCAST } else { self.next() };
        out.wire(|flat| {
            flat.extend_from_slice(&to.0);
            flat.extend_from_slice(&mac(self.n).0);
            let (kind, flags) = if is_flood { (0x29, FLOOD) } else { (0x28, 0) };
            flat.extend_from_slice(&[0x88, 0xb5, kind, flags]);
            let length = header_len(is_flood) - 14 + frame.len();
            flat.extend_from_slice(&(length as u16).to_be_bytes());
            flat.extend_from_slice(&[0xee; 6]);
            flat.extend_from_slice(&mac(self.n).0);
            flat.extend_from_slice(&[15, self.boot.0 as u8]);
            flat.extend_from_slice(&self.seq.to_be_bytes());
            if is_flood {
                flat.extend_from_slice(&[0; 4]);
            }
            flat.extend_from_slice(frame);
            if self.habit == Habit::Truncates {
                flat.truncate(13);
            }
        });
        if let [.., reply] = out.as_slice()
            && let node_lib::control::node::ReplyType::WireFlat(flat) = reply
            && let Some((packet, _)) = Packet::of(flat)
        {
            self.seen.insert(packet);
        }
        if self.habit == Habit::Reflects {
            out.tap(|flat| flat.extend_from_slice(frame));
        }
    }

    fn handle_link(&mut self, _: Timestamp, _: LinkEvent, _: &mut Replies) {}
    fn handle_timeout(&mut self, _: Timestamp, _: &mut Replies) {}

    fn poll_timeout(&self) -> Option<Timestamp> {
        (self.habit == Habit::Spins).then_some(Timestamp::ZERO)
    }

    fn deadline(&self) -> Option<Deadline> {
        self.poll_timeout().map(|at| Deadline::new(at, WHY_IT_SPINS))
    }

    fn handle_shutdown(&mut self, _: Timestamp, _: &mut Replies) {}

    fn linger(&self) -> Duration {
        ms(7)
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

fn flooder(n: u8, habit: Habit) -> Factory {
    Box::new(move |start, _| {
        let (boot, seq, seen, counters) = (start.boot, 0, BTreeSet::new(), Counters::default());
        Box::new(Flooder { n, habit, boot, seq, seen, counters })
    })
}

/// Node 0 is the RSU; each node has one client.
fn flooders(graph: &Graph, link: Link, habit: Habit) -> (World, Vec<ClientIndex>) {
    flooders_in(World::new(7), graph, link, habit)
}

fn flooders_in(
    mut world: World,
    graph: &Graph,
    link: Link,
    habit: Habit,
) -> (World, Vec<ClientIndex>) {
    world.count_starts(Counting::StateFile);
    let mut clients = Vec::new();
    for n in 0..graph.nodes() {
        let role = if n == 0 { Role::Rsu } else { Role::Obu };
        let n = u8::try_from(n).unwrap() + 1;
        let node = world.add_node(role, mac(n), flooder(n, habit));
        clients.push(world.add_client(client_mac(n), Place::Tap(node)));
    }
    world.link_all(graph, link);
    (world, clients)
}

/// Data frames `node` heard, as the trace tells it.
fn heard(world: &World, node: NodeIndex) -> usize {
    let start = format!("{node} hears to-downstream");
    world.last_lines().iter().filter(|line| line.contains(&start)).count()
}

fn mac(n: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, n])
}

fn client_mac(n: u8) -> Mac {
    Mac([2, 0, 0, 0, 1, n])
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
