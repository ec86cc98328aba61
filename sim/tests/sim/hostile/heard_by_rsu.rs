//! What an RSU hears from a forger in its cell.

use std::time::Duration;

use node_lib::control::event::Event;
use node_lib::messages::control::Control;
use node_lib::messages::control::announcement::{Announcement, Client, Clients, client_digest};
use node_lib::messages::control::heartbeat::{Heartbeat, HeartbeatReply};
use node_lib::messages::data::{Destination, ToDownstream, ToUpstream};
use node_lib::messages::way::{LABELS_MAX, RELAYS_MAX};
use node_lib::messages::{Cost, Label, Message, PacketType, Rhythm, Way};
use node_lib::{Boot, Mac, NodeId, Order, Seq, Start};
use sim::topology::Graph;
use sim::{Guest, Link, NodeIndex, Role};

use super::script::{Script, forger, frame};
use crate::common::{Town, at, broken, ms, radio, rider_mac, run_all, seeds, wrong};

const RSU: usize = 0;
/// Attached directly, to a rider that never speaks.
const NEAR: NodeIndex = NodeIndex(1);
/// Attached through [`NEAR`], to a rider that never speaks.
const FAR: NodeIndex = NodeIndex(2);
const FORGER: Mac = Mac([2, 0, 0, 0, 0xee, 0xee]);

/// When the forger sends.
const FROM: u64 = 4000;
const TO: u64 = 7000;

/// After the last of many forged words nothing is lost: a few intervals.
const HEALED: Duration = ms(300);

fn id(n: usize) -> NodeId {
    radio(n).into()
}

/// A town of an RSU, a vehicle, another behind it, and the forger, whom all hear. Every boot count
/// in it is 1, as the forger knows.
fn town(seed: u64, script: Script) -> Town {
    let world = Town::world_of_first_starts(seed);
    let graph = Graph::new(3, [(0, 1), (1, 2)]);
    let mut town = Town::in_world(world, &graph, &[RSU], Link::CLEAN);
    let forger = town.world.add_node(Role::Obu, FORGER, forger(FORGER, script));
    for n in 0..3 {
        town.world.link(NodeIndex(n), forger, Link::CLEAN);
    }
    town
}

/// A frame to the RSU every so often while the forger sends.
fn repeated(every: Duration, mut make: impl FnMut(u32) -> Vec<u8>) -> Script {
    let steps = u128::from(TO - FROM) * 1000 / every.as_micros();
    (0..steps as u32).map(|n| (at(FROM) + every * n, make(n))).collect()
}

fn reply(obu: NodeId, order: Order, epoch: u32) -> HeartbeatReply {
    HeartbeatReply {
        rsu: id(RSU),
        origin: obu,
        order,
        epoch,
        via: id(RSU),
        digest: 0,
        clients: 0,
        within_ds: 13,
        at_risk_10ms: 0,
        answers: Seq(0),
        held_100us: 0,
        mtu: 1500,
        hops: 0,
        goodbye: false,
        standby: false,
        acknowledge: false,
    }
}

fn announced(obu: NodeId, order: Order, epoch: u32, set: &[Client], standby: bool) -> Vec<u8> {
    let mut groups = Vec::new();
    Clients::encode(set, &mut groups);
    let announcement = Announcement {
        rsu: id(RSU),
        origin: obu,
        order,
        epoch,
        via: id(RSU),
        digest: client_digest(set),
        part: 0,
        parts: 1,
        within_ds: 13,
        at_risk_10ms: 0,
        mtu: 1500,
        hops: 0,
        standby,
        clients: Clients::parse(&groups).unwrap(),
    };
    frame(FORGER, radio(RSU), announcement)
}

fn client(mac: Mac) -> Client {
    Client { vlan: 0, mac }
}

fn stranger(n: u32) -> NodeId {
    let [_, a, b, c] = n.to_be_bytes();
    NodeId([2, 9, 9, a, b, c])
}

/// Sends to both vehicles all the time. Nothing may be lost but from [`FROM`] until `heals_within`
/// after the forger's last frame; with `during`, the longest gap meanwhile.
fn holds(
    test: &str,
    script: impl Fn() -> Script + Sync,
    heals_within: Duration,
    during: Option<Duration>,
) {
    run_all(test, seeds(8), |seed| {
        let mut town = town(seed, script());
        // The riders say one word each, so that they are known, and are silent from then on.
        for node in [NEAR, FAR] {
            town.up(node, at(1000), ms(10), 1);
        }
        let every = ms(20);
        let flows = [NEAR, FAR].map(|node| (town.down(node, at(3000), every, 450), node));
        town.world.run_until(at(12_500)).map_err(broken)?;
        for (flow, node) in flows {
            let end = script().last().map_or(at(FROM), |(at, _)| *at);
            let before = town.gap_down(flow, node, at(3000), at(FROM));
            let after = town.gap_down(flow, node, end + heals_within, at(11_900));
            let meanwhile = town.gap_down(flow, node, at(FROM), end);
            if before.max(after) > every * 2 || during.is_some_and(|most| meanwhile > most) {
                let what =
                    format!("{node:?}: {before:?}, {meanwhile:?} meanwhile, {after:?} after");
                return Err(wrong(&town, what));
            }
        }
        Ok(())
    });
}

#[test]
fn replies_for_a_vehicle_take_its_frames_only_while_they_come() {
    for order in [Order::new(1, 500), Order::new(1, 500_000), Order::new(u32::MAX, u32::MAX - 99)] {
        let test = "replies_for_a_vehicle_take_its_frames_only_while_they_come";
        let script = || {
            repeated(ms(50), |n| {
                let order = Order { seq: Seq(order.seq.0 + n), ..order };
                frame(FORGER, radio(RSU), reply(id(1 + n as usize % 2), order, 1))
            })
        };
        holds(test, script, HEALED, None);
        // Above whatever the vehicle answers.
        let rising = || {
            repeated(ms(50), |n| {
                let order = Order { seq: Seq(order.seq.0 + n), ..order };
                frame(FORGER, radio(RSU), reply(id(1 + n as usize % 2), order, 1 + n))
            })
        };
        holds(test, rising, HEALED, None);
    }
}

/// A relay sends to whoever says that it is the vehicle, and to the vehicle. What the forger says
/// of its upstream, the vehicle's next word corrects.
#[test]
fn replies_forged_to_a_relay_take_a_vehicles_frames_only_while_they_come() {
    let test = "replies_forged_to_a_relay_take_a_vehicles_frames_only_while_they_come";
    for ahead in [900, 500_000] {
        for via in [id(1), FORGER.into()] {
            let script = || {
                repeated(ms(50), |n| {
                    let forged = reply(id(2), Order::new(1, ahead + n), 1);
                    frame(FORGER, radio(1), HeartbeatReply { via, ..forged })
                })
            };
            let at_once = (via == id(1)).then_some(ms(40));
            holds(test, script, if at_once.is_some() { Duration::ZERO } else { HEALED }, at_once);
        }
    }
}

/// Five vehicles hear each other. Each is told, as if by the two after it, that these are one node
/// that is its child; then one frame for that node comes, whose way leads on and on to it.
#[test]
fn vehicles_that_are_said_to_be_each_others_children_make_no_storm_of_one_frame() {
    let test = "vehicles_that_are_said_to_be_each_others_children_make_no_storm_of_one_frame";
    run_all(test, seeds(4), |seed| {
        let child = stranger(7);
        let vehicle = |n: usize| radio(1 + n % 5);
        let mut script = Script::new();
        for n in 0..5 {
            for next in [n + 1, n + 2] {
                let word = reply(child, Order::new(1, 1), 1);
                script.push((at(FROM), frame(vehicle(next), vehicle(n), word)));
            }
        }
        let labels = [Label::of(child).0; LABELS_MAX];
        let way = Way::new(RELAYS_MAX, &labels).unwrap();
        let down = ToDownstream {
            destination: Destination::Node { id: child, way },
            source: id(RSU),
            boot: 1,
            seq: Seq(1_000_000),
            priority: 0,
            payload: &[2; 60],
        };
        script.push((at(FROM + 10), frame(radio(RSU), vehicle(0), down)));
        let world = Town::world_of_first_starts(seed);
        let mut town = Town::in_world(world, &Graph::complete(6), &[RSU], Link::CLEAN);
        let forger = town.world.add_node(Role::Obu, FORGER, forger(FORGER, script));
        town.world.hold_to_rules(false);
        for n in 0..6 {
            town.world.link(NodeIndex(n), forger, Link::CLEAN);
        }
        town.world.run_until(at(FROM + 1000)).map_err(broken)?;
        let relayed = |n| town.world.node(NodeIndex(n)).map_or(0, |node| node.counters().relayed);
        let sent: u64 = (1..6).map(relayed).sum();
        if sent > u64::from(RELAYS_MAX) {
            return Err(wrong(&town, format!("one frame was sent {sent} times")));
        }
        Ok(())
    });
}

#[test]
fn an_announcement_with_a_forged_count_cuts_a_vehicle_only_while_it_comes() {
    for (boot, epoch, standby) in [
        (1, 2, false),
        (1, u32::MAX, false),
        (u32::MAX, 1, false),
        (1, 2, true),
        (u32::MAX, 1, true),
    ] {
        let test = "an_announcement_with_a_forged_count_cuts_a_vehicle_only_while_it_comes";
        let script = || {
            repeated(ms(50), |n| {
                let set = [client(Mac([2, 0, 7, 7, 7, 7]))];
                let order = Order::new(boot, 900 + n);
                announced(id(1 + n as usize % 2), order, epoch, &set, standby)
            })
        };
        holds(test, script, HEALED, None);
        let once = || script()[..2].to_vec();
        holds(test, once, HEALED, None);
    }
}

/// The last word of each vehicle before the forger sends.
fn last_words(seed: u64) -> [HeartbeatReply; 2] {
    let mut town = town(seed, Script::new());
    for node in [NEAR, FAR] {
        town.up(node, at(1000), ms(10), 1);
    }
    town.world.keep_air();
    town.world.run_until(at(FROM)).unwrap();
    [NEAR, FAR].map(|node| {
        let mut words = town.world.air().iter().filter_map(|sent| {
            let PacketType::Control(Control::HeartbeatReply(reply)) =
                Message::try_from(&sent.frame[..]).ok()?.packet
            else {
                return None;
            };
            (reply.origin == radio(node.0).into()).then_some(reply)
        });
        words.next_back().unwrap()
    })
}

/// What somebody else says in a vehicle's name, so many numbers after its last word. What it takes
/// from the vehicle, the vehicle has back before ten frames of its client are missing.
fn is_taken_back(test: &str, forge: impl Fn(HeartbeatReply) -> Vec<u8> + Sync) {
    for ahead in [1, 2, 5, 900] {
        let healed = run_all(test, seeds(8), |seed| {
            let last = last_words(seed)[seed as usize % 2];
            let order = Order { seq: Seq(last.order.seq.0 + ahead), ..last.order };
            let forged = forge(HeartbeatReply { order, via: id(RSU), hops: 0, ..last });
            let mut town = town(seed, vec![(at(FROM), forged)]);
            for node in [NEAR, FAR] {
                town.up(node, at(1000), ms(10), 1);
            }
            let flows = [NEAR, FAR].map(|node| (town.down(node, at(3000), ms(20), 450), node));
            town.world.run_until(at(12_500)).map_err(broken)?;
            let lost = flows.map(|(flow, node)| {
                let flow = town.world.flow(flow).unwrap();
                flow.last_lost(town.riders[&node], at(3000), at(11_900))
            });
            let healed = lost.into_iter().flatten().max().map(|last| last.since(at(FROM)));
            match healed {
                Some(healed) if healed > ms(200) => {
                    Err(wrong(&town, format!("{ahead} ahead: cut off for {healed:?}")))
                }
                _ => Ok(healed),
            }
        });
        println!("{ahead} ahead: {:?}", healed.iter().max());
    }
}

/// The other vehicle.
fn other(obu: NodeId) -> NodeId {
    if obu == id(1) { id(2) } else { id(1) }
}

/// Of the vehicle's own upstream nothing but this changes: frames may go on, or be lost until it
/// says its next word.
#[test]
fn a_word_that_is_forged_to_be_the_next_takes_a_vehicles_frames_for_a_moment() {
    let test = "a_word_that_is_forged_to_be_the_next_takes_a_vehicles_frames_for_a_moment";
    let to_rsu = |reply| frame(FORGER, radio(RSU), reply);
    is_taken_back(test, to_rsu);
    for via in [Some(FORGER.into()), Some(stranger(7)), None] {
        is_taken_back(test, |last| {
            let via = via.unwrap_or(other(last.origin));
            to_rsu(HeartbeatReply { via, hops: 1, ..last })
        });
    }
    is_taken_back(test, |last| to_rsu(HeartbeatReply { epoch: last.epoch + 64, ..last }));
    is_taken_back(test, |last| to_rsu(HeartbeatReply { acknowledge: true, ..last }));
    is_taken_back(test, |last| to_rsu(HeartbeatReply { within_ds: 1, mtu: 120, ..last }));
    is_taken_back(test, |last| to_rsu(HeartbeatReply { within_ds: u16::MAX, ..last }));
}

#[test]
fn a_word_that_is_forged_to_be_a_farewell_takes_a_vehicles_frames_for_a_moment() {
    let test = "a_word_that_is_forged_to_be_a_farewell_takes_a_vehicles_frames_for_a_moment";
    for hops in [0, 1] {
        for (goodbye, standby) in [(true, false), (false, true)] {
            is_taken_back(test, |last| {
                let via = if hops == 0 { id(RSU) } else { other(last.origin) };
                let reply = HeartbeatReply { via, hops, goodbye, standby, ..last };
                frame(FORGER, radio(RSU), reply)
            });
        }
    }
}

#[test]
fn another_set_that_is_forged_takes_a_vehicles_frames_for_a_moment() {
    let test = "another_set_that_is_forged_takes_a_vehicles_frames_for_a_moment";
    let set = [client(Mac([2, 0, 7, 7, 7, 7]))];
    for (more, standby) in [(0, false), (0, true), (3, false), (64, true)] {
        is_taken_back(test, |last| {
            announced(last.origin, last.order, last.epoch + more, &set, standby)
        });
    }
}

/// The OBU and its relay lose their ways at once: the relay's is found first.
#[test]
fn words_forged_for_a_vehicle_and_its_relay_take_their_frames_for_a_moment() {
    let test = "words_forged_for_a_vehicle_and_its_relay_take_their_frames_for_a_moment";
    let healed = run_all(test, seeds(8), |seed| {
        let words = last_words(seed).map(|last| {
            let order = Order { seq: Seq(last.order.seq.0 + 1), ..last.order };
            let forged = HeartbeatReply { order, via: id(RSU), hops: 0, ..last };
            (at(FROM), frame(FORGER, radio(RSU), forged))
        });
        let mut town = town(seed, words.to_vec());
        for node in [NEAR, FAR] {
            town.up(node, at(1000), ms(10), 1);
        }
        // To the far one alone.
        let flow = town.down(FAR, at(3000), ms(20), 450);
        town.world.run_until(at(12_500)).map_err(broken)?;
        let flow = town.world.flow(flow).unwrap();
        let lost = flow.last_lost(town.riders[&FAR], at(3000), at(11_900));
        match lost.map(|last| last.since(at(FROM))) {
            Some(healed) if healed > ms(300) => Err(wrong(&town, format!("{healed:?}"))),
            healed => Ok(healed),
        }
    });
    assert!(healed.iter().any(Option::is_some), "nothing was taken");
}

#[test]
fn who_announces_the_clients_of_others_gets_nothing() {
    let test = "who_announces_the_clients_of_others_gets_nothing";
    let script = || {
        let set = [client(rider_mac(1)), client(rider_mac(2))];
        repeated(ms(50), |n| announced(FORGER.into(), Order::new(1, n), 1 + n, &set, false))
    };
    holds(test, script, Duration::ZERO, Some(ms(40)));
}

#[test]
fn a_goodbye_that_a_vehicle_did_not_say_is_taken_back_at_once() {
    let test = "a_goodbye_that_a_vehicle_did_not_say_is_taken_back_at_once";
    let script = || {
        repeated(ms(500), |n| {
            let order = Order::new(1, 900 + n);
            let reply = HeartbeatReply { goodbye: true, ..reply(id(1 + n as usize % 2), order, 1) };
            frame(FORGER, radio(RSU), reply)
        })
    };
    holds(test, script, ms(100), None);
    let once = || script()[..2].to_vec();
    holds(test, once, ms(100), None);
}

#[test]
fn made_up_obus_do_not_push_out_those_that_are_attached() {
    let test = "made_up_obus_do_not_push_out_those_that_are_attached";
    let replies = || {
        repeated(Duration::from_micros(500), |n| {
            // Every other says that it is a relay.
            let standby = n % 2 == 1;
            let reply = HeartbeatReply { standby, ..reply(stranger(n), Order::new(1, 1), 1) };
            frame(FORGER, radio(RSU), reply)
        })
    };
    holds(test, replies, Duration::ZERO, Some(ms(40)));
    let announcements = || {
        repeated(ms(1), |n| {
            let set: Vec<_> =
                (0..20).map(|k| client(Mac([2, 8, 8, (n >> 8) as u8, n as u8, k]))).collect();
            announced(stranger(n), Order::new(1, 1), 1, &set, false)
        })
    };
    holds(test, announcements, Duration::ZERO, Some(ms(40)));
    let data = || {
        repeated(ms(1), |n| {
            let mut payload = vec![2, 0, 0, 2, 0, 1];
            payload.extend_from_slice(&[2, 8, 8, 0, (n >> 8) as u8, n as u8, 0x88, 0xb6]);
            payload.resize(60, 0);
            let data = ToUpstream {
                destination: id(RSU),
                source: stranger(n),
                hop_limit: 15,
                boot: 1,
                seq: Seq(1),
                again: false,
                priority: 0,
                payload: &payload,
            };
            frame(FORGER, radio(RSU), data)
        })
    };
    holds(test, data, Duration::ZERO, Some(ms(40)));
}

#[test]
fn heartbeats_of_the_rsus_own_id_do_not_take_its_boot_count_to_the_end() {
    let test = "heartbeats_of_the_rsus_own_id_do_not_take_its_boot_count_to_the_end";
    let heartbeat = |boot, seq, hops| Heartbeat {
        rsu: id(RSU),
        order: Order::new(boot, seq),
        rhythm: Rhythm::each(100),
        obus: 0,
        sender: if hops == 0 { id(RSU) } else { FORGER.into() },
        sender_boot: Boot(boot),
        hello: seq,
        via: if hops == 0 { NodeId::NONE } else { id(RSU) },
        cost: Cost::ONE,
        mtu: 1500,
        hop_limit: 15,
        hops,
        children: 0,
        stride: 0,
        position: None,
    };
    for (boot, hops) in [(u32::MAX, 0), (u32::MAX, 1), (1_000_000, 0), (1_000_000, 1)] {
        run_all(test, seeds(2), |seed| {
            // To the RSU alone: what vehicles make of such heartbeats is another matter.
            let to = radio(RSU);
            let script = repeated(ms(100), |n| frame(FORGER, to, heartbeat(boot, n, hops)));
            let mut town = town(seed, script);
            town.world.keep_air();
            town.world.run_until(at(9000)).map_err(broken)?;
            let events = town.world.events().iter();
            let conflicts = events.filter(|(_, node, _)| *node == NodeIndex(RSU)).count();
            let boots: Vec<u32> = own_boots(&town);
            let raised = boots.iter().filter(|b| **b > 1).count();
            if conflicts > 10 || boots.iter().any(|b| *b > 1_000_001) {
                return Err(wrong(
                    &town,
                    format!("{conflicts} events, {raised} raised: {boots:?}"),
                ));
            }
            Ok(())
        });
    }
}

/// Boot counts under which the RSU sent heartbeats.
fn own_boots(town: &Town) -> Vec<u32> {
    let mut boots = Vec::new();
    for sent in town.world.air() {
        let Ok(message) = Message::try_from(&sent.frame[..]) else { continue };
        if message.from == radio(RSU)
            && let PacketType::Control(Control::Heartbeat(heartbeat)) = message.packet
            && boots.last() != Some(&heartbeat.order.boot.0)
        {
            boots.push(heartbeat.order.boot.0);
        }
    }
    boots
}

#[test]
fn two_rsus_with_one_id_do_not_duel() {
    run_all("two_rsus_with_one_id_do_not_duel", seeds(8), |seed| {
        let world = Town::world_of_first_starts(seed);
        let mut town = Town::in_world(world, &Graph::new(2, [(0, 1)]), &[RSU], Link::CLEAN);
        let make = |start: &Start, now| -> Box<dyn Guest> {
            let start = Start { id: id(RSU), boot: Boot(900), ..*start };
            let config = rsu_lib::Settings::default().config(&start);
            Box::new(rsu_lib::Rsu::new(config, now))
        };
        let other = town.world.add_node(Role::Rsu, Mac([2, 0, 0, 0, 0xee, 1]), Box::new(make));
        town.world.plug(other, town.lan);
        for n in 0..2 {
            town.world.link(NodeIndex(n), other, Link::CLEAN);
        }
        let flow = town.up(NEAR, at(5000), ms(20), 1200);
        town.world.keep_air();
        town.world.run_until(at(30_000)).map_err(broken)?;
        let reports = |node| {
            let is_conflict = |e: &Event| matches!(e, Event::IdConflict { .. });
            let events = town.world.events().iter();
            events.filter(|(_, n, event)| *n == node && is_conflict(event)).count()
        };
        let reported = [NodeIndex(RSU), other].map(reports);
        let changes = town.changes(at(5000)).len();
        let (boots, arrived) = (own_boots(&town), town.arrived_up(flow));
        let is_quiet = reported.iter().all(|n| (1..=4).contains(n)) && changes <= 2;
        // What the vehicle relays may be of its own past, for all the older one knows: it goes
        // above once.
        if !is_quiet || !matches!(boots[..], [1] | [1, 901]) || arrived < 1190 {
            let what = format!("{reported:?} reports, {changes} changes, {boots:?}, {arrived}");
            return Err(wrong(&town, what));
        }
        Ok(())
    });
}

#[test]
fn made_up_obus_do_not_fill_the_log() {
    let set = [client(Mac([2, 8, 8, 8, 8, 8]))];
    let script = repeated(ms(1), |n| announced(stranger(n), Order::new(1, 1), 1, &set, false));
    let mut town = town(1, script);
    town.world.run_until(at(20_000)).unwrap();
    let events = town.world.events().iter().filter(|(_, node, _)| *node == NodeIndex(RSU));
    let count = events.count();
    assert!(count < 2 * (64 + 200), "{count} events for 3,000 made-up OBUs");
}
