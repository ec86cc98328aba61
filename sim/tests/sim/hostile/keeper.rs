//! A relay that advertises well, answers every question and passes on clients' frames, but keeps to
//! itself what vehicles and RSUs tell each other.

use std::time::Duration;

use node_lib::control::counters::Counters;
use node_lib::control::event::Event;
use node_lib::control::node::{LinkEvent, Node, Replies};
use node_lib::messages::control::Control;
use node_lib::messages::{Message, PacketType};
use node_lib::{Mac, NodeId, Timestamp};
use sim::topology::Graph;
use sim::{Factory, Guest, Link, NodeIndex, Role};

use crate::common::{Town, at, broken, ms, obu, percentile, radio, run_all, seeds, wrong};

const RSU: usize = 0;
/// The relay over the worse links.
const HONEST: usize = 1;
const VICTIM: NodeIndex = NodeIndex(2);
const OTHER_RSU: usize = 3;
const KEEPER: usize = 4;

/// An OBU that passes on no words from a moment on.
fn keeper(n: usize, from: Timestamp) -> Factory {
    let make = obu(n);
    Box::new(move |start, now| Box::new(Keeper { obu: make(start, now), from }))
}

struct Keeper {
    obu: Box<dyn Guest>,
    from: Timestamp,
}

/// Whose word it is, or who is answered.
fn word_of(frame: &[u8]) -> Option<NodeId> {
    match Message::try_from(frame).ok()?.packet {
        PacketType::Control(Control::HeartbeatReply(reply)) => Some(reply.origin),
        PacketType::Control(Control::Announcement(announcement)) => Some(announcement.origin),
        PacketType::Control(Control::AnnouncementAck(ack)) => Some(ack.destination),
        _ => None,
    }
}

impl Node for Keeper {
    fn id(&self) -> NodeId {
        self.obu.id()
    }

    fn handle_wire(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        let is_kept = now >= self.from && word_of(frame).is_some_and(|whose| whose != self.id());
        if !is_kept {
            self.obu.handle_wire(now, frame, out);
        }
    }

    fn handle_signal(&mut self, now: Timestamp, from: Mac, dbm: i8) {
        self.obu.handle_signal(now, from, dbm);
    }

    fn handle_tap(&mut self, now: Timestamp, frame: &[u8], out: &mut Replies) {
        self.obu.handle_tap(now, frame, out);
    }

    fn handle_link(&mut self, now: Timestamp, event: LinkEvent, out: &mut Replies) {
        self.obu.handle_link(now, event, out);
    }

    fn handle_timeout(&mut self, now: Timestamp, out: &mut Replies) {
        self.obu.handle_timeout(now, out);
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        self.obu.poll_timeout()
    }

    fn handle_shutdown(&mut self, now: Timestamp, out: &mut Replies) {
        self.obu.handle_shutdown(now, out);
    }

    fn linger(&self) -> Duration {
        self.obu.linger()
    }

    fn counters(&self) -> &Counters {
        self.obu.counters()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.obu.poll_event()
    }
}

/// The victim behind the keeper over clean links, and behind an honest relay over worse ones; with
/// another RSU in reach of the honest relay alone, or without.
fn town(seed: u64, keeps_from: Timestamp, has_other_rsu: bool) -> Town {
    let world = Town::world_of_first_starts(seed);
    let rsus: &[usize] = if has_other_rsu { &[RSU, OTHER_RSU] } else { &[RSU] };
    let graph = Graph::new(3 + usize::from(has_other_rsu), [(0, 1), (1, 2)]);
    let mut town = Town::in_world(world, &graph, rsus, Link::lossy(0.1));
    if has_other_rsu {
        town.world.link(NodeIndex(OTHER_RSU), NodeIndex(HONEST), Link::lossy(0.3));
    }
    let keeper = town.world.add_node(Role::Obu, radio(KEEPER), keeper(KEEPER, keeps_from));
    town.world.let_forge(keeper);
    for n in [NodeIndex(RSU), VICTIM] {
        town.world.link(n, keeper, Link::CLEAN);
    }
    town
}

/// No town takes longer: of 1,500 the worst takes 4.4 s.
const LONGEST: Duration = Duration::from_secs(5);

/// How long the victim's client, that says nothing after its first word, is cut off from `from` on.
/// In nineteen of twenty towns no longer than `most`, and in none for long: answers get lost over
/// the honest relay as well. Where the slowest twentieth begins is chance among few towns: two
/// paces of the same seven questions had it at 160 and 460 ms in 120 towns, and at 160 and 180 in
/// 1,000.
fn cut_off(test: &str, keeps_from: Timestamp, from: Timestamp, most: Duration) {
    for has_other_rsu in [false, true] {
        let mut gaps = run_all(test, seeds(600), |seed| {
            let mut town = town(seed, keeps_from, has_other_rsu);
            town.up(VICTIM, at(1000), ms(10), 1);
            let end = at(30_000);
            let count = (end.since(from).as_millis() / 20) as u32;
            let flow = town.down(VICTIM, from, ms(20), count);
            town.world.run_until(end + ms(500)).map_err(broken)?;
            let gap = town.gap_down(flow, VICTIM, from, end);
            let changes = town.changes(from);
            let here = changes.iter().filter(|(_, node, _)| *node == VICTIM).count();
            if here > 6 {
                return Err(wrong(&town, format!("cut off for {gap:?}, {here} changes")));
            }
            Ok(gap)
        });
        gaps.sort_unstable();
        let usual = percentile(&gaps, 0.95);
        let longest = gaps.last().copied().unwrap_or_default();
        println!("another RSU: {has_other_rsu}, cut off for {usual:?}, {longest:?} at most");
        assert!(usual <= most, "another RSU: {has_other_rsu}, cut off for {usual:?}");
        assert!(longest <= LONGEST, "another RSU: {has_other_rsu}, cut off for {longest:?}");
    }
}

#[test]
fn a_relay_that_keeps_words_to_itself_is_left_for_another_to_the_same_rsu() {
    let test = "a_relay_that_keeps_words_to_itself_is_left_for_another_to_the_same_rsu";
    cut_off(test, at(0), at(4000), ms(400));
}

#[test]
fn a_relay_that_begins_to_keep_words_is_left_before_the_rsu_forgets_the_vehicle() {
    let test = "a_relay_that_begins_to_keep_words_is_left_before_the_rsu_forgets_the_vehicle";
    cut_off(test, at(5000), at(4000), ms(700));
}
