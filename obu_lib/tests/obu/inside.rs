//! What an OBU says of itself to those who look inside, told as a conversation.

use node_lib::control::event::{Cause, Event};
use node_lib::control::node::{LinkEvent, Node, Replies};
use node_lib::control::snapshot::{ClientPort, NodeRole, Obstacle, RouteStanding};
use node_lib::{Mac, Timestamp};

use crate::talk::{A, B, C, CAMERA, Heard, OTHER_RSU, RSU, SERVER, Talk, US, id};

/// Attached through A and acknowledged; B is one hop from the RSU as well, and never answered.
fn behind_a_beside_b() -> Talk {
    let mut t = Talk::settled_behind(A);
    t.acknowledge(A);
    t.hear(t.now, B, Heard::heartbeat(4, 1));
    t
}

#[test]
fn an_attached_obu_says_where_through_whom_and_how_well() {
    let mut t = behind_a_beside_b();
    t.hear(t.now, C, Heard::Probe { boot: 1 });
    t.hear(t.now, C, Heard::Reply { origin: C, seq: 4, hops: 0 });
    let before = t.now;
    t.pass(before + 30);
    let seen = t.look();
    assert_eq!((seen.id, seen.role, seen.boot), (id(US), NodeRole::Obu, Some(1)));
    let air = seen.air.unwrap();
    assert_eq!((air.mac, air.mtu_bytes, air.is_up, air.is_full), (US, 1500, true, Some(false)));
    let attached = seen.attached.unwrap();
    assert_eq!((attached.rsu, attached.upstream, attached.upstream_mac), (id(RSU), id(A), A));
    assert_eq!((attached.hops, attached.mtu_bytes), (2, 1500));
    assert!(attached.is_acknowledged && !attached.is_unanswered && !attached.is_doubted);
    assert!((30..200).contains(&attached.since_ms), "{attached:?}");

    let neighbour = |mac| seen.neighbours.iter().find(|neighbour| neighbour.mac == mac).unwrap();
    assert_eq!((neighbour(A).is_upstream, neighbour(A).is_child), (true, false));
    assert_eq!((neighbour(C).is_upstream, neighbour(C).is_child), (false, true));
    assert!(neighbour(A).proven_ms.is_some() && neighbour(B).proven_ms.is_none());
    assert!(seen.neighbours.is_sorted_by_key(|neighbour| neighbour.mac));
    let [child] = &seen.children[..] else { panic!("{:?}", seen.children) };
    assert_eq!((child.id, &child.towards[..]), (id(C), &[id(RSU)][..]));
}

#[test]
fn each_way_to_an_rsu_says_what_keeps_it_from_being_used() {
    let mut t = behind_a_beside_b();
    t.hear(t.now, RSU, Heard::heartbeat(5, 0));
    let seen = t.look();
    assert_eq!(seen.routes, t.obu.routes(Timestamp::from_millis(t.now)));
    let [route] = &seen.routes[..] else { panic!("{:?}", seen.routes) };
    assert_eq!((route.rsu, route.standing), (id(RSU), RouteStanding::InUse));
    assert_eq!((route.upstream, route.hops), (Some(id(A)), Some(2)));
    assert_eq!((route.boot, route.seq, route.interval_ms), (1, 5, 100));
    assert_eq!((route.shunned_for_ms, route.is_contested), (None, false));
    let ids: Vec<_> = route.candidates.iter().map(|candidate| candidate.id).collect();
    assert_eq!(ids, [A, RSU, B].map(id), "usable ones first, then the best first");
    let [a, rsu, b] = &route.candidates[..] else { panic!("{ids:?}") };
    assert!(a.is_used && a.obstacles.is_empty() && a.margin.is_none());
    for other in [rsu, b] {
        assert!(!other.is_used && other.obstacles == [Obstacle::OneWay], "{other:?}");
    }
    assert!(rsu.margin.unwrap() > 0.0, "nearer: {rsu:?}");
    // A neighbour of the RSU has it for its upstream; the RSU itself has none.
    assert_eq!([a, rsu, b].map(|candidate| candidate.via), [Some(id(RSU)), None, Some(id(RSU))]);
    assert_eq!([a, rsu, b].map(|candidate| candidate.hops), [2, 1, 2]);
}

/// With the candidates it is every neighbour: whoever asks why it has no upstream misses none.
#[test]
fn a_neighbour_that_stands_in_no_route_advertises_no_way() {
    let mut t = behind_a_beside_b();
    t.hear(t.now, C, Heard::Probe { boot: 1 });
    t.hear(t.now, C, Heard::Reply { origin: C, seq: 4, hops: 0 });
    let without_way = |t: &Talk| {
        let seen = t.look();
        let ways = seen.without_way().map(|neighbour| (neighbour.mac, neighbour.obstacles()));
        ways.collect::<Vec<_>>()
    };
    let child = || (C, vec![Obstacle::NoWay, Obstacle::ThroughUs]);
    assert_eq!(without_way(&t), [child()]);
    for left in [A, B] {
        t.hear(t.now, left, Heard::Withdrawal { goodbye: false });
    }
    let no_way = |mac| (mac, vec![Obstacle::NoWay]);
    assert_eq!(without_way(&t), [no_way(A), no_way(B), child()]);
    assert!(t.look().routes[0].candidates.is_empty());
}

#[test]
fn an_rsu_without_a_proven_neighbour_has_no_upstream_and_another_is_not_better() {
    let mut t = behind_a_beside_b();
    t.rsu = OTHER_RSU;
    t.hear(t.now, B, Heard::heartbeat(1, 3));
    let standing = |t: &Talk| {
        let routes = t.look().routes;
        routes.into_iter().find(|route| route.rsu == id(OTHER_RSU)).unwrap().standing
    };
    assert_eq!(standing(&t), RouteStanding::NoUpstream);
    t.prove_towards(OTHER_RSU, B, 3);
    assert_eq!(standing(&t), RouteStanding::NotBetter);
}

#[test]
fn before_its_quiet_period_is_over_it_says_how_long_it_still_listens() {
    let mut t = Talk::new();
    t.hear(100, A, Heard::heartbeat(1, 1));
    let seen = t.look();
    assert_eq!((seen.attached.is_none(), seen.routes[0].standing), (true, RouteStanding::Quiet));
    assert!(seen.routes[0].quiet_for_ms.unwrap() > 0);
}

#[test]
fn nobody_is_in_range_of_a_radio_that_is_down() {
    let mut t = behind_a_beside_b();
    assert_eq!(t.look().neighbours.len(), 2);
    t.link(LinkEvent::Down);
    let seen = t.look();
    assert_eq!((seen.neighbours, seen.attached), (Vec::new(), None));
    assert!(!seen.air.unwrap().is_up);
}

#[test]
fn clients_are_shown_with_their_port_and_forgotten_by_address_or_all() {
    let mut t = behind_a_beside_b();
    t.tap(CAMERA, SERVER);
    t.tap(SERVER, CAMERA);
    let known = |t: &Talk| t.look().clients.iter().map(|client| client.mac).collect::<Vec<_>>();
    assert_eq!(known(&t), [CAMERA, SERVER]);
    assert!(
        t.look()
            .clients
            .iter()
            .all(|client| client.port == ClientPort::Tap && client.obu.is_none())
    );
    let forget = |t: &mut Talk, which| {
        let now = Timestamp::from_millis(t.now);
        t.obu.forget_clients(now, which, &mut Replies::new())
    };
    assert_eq!(forget(&mut t, Some(Mac([2, 0, 0, 0, 9, 9]))), 0);
    assert_eq!(forget(&mut t, Some(CAMERA)), 1);
    assert_eq!(known(&t), [SERVER]);
    t.tap(CAMERA, SERVER);
    assert_eq!(forget(&mut t, None), 2);
    assert_eq!(known(&t), []);
}

/// A vehicle that left a jam does not keep its manners for long.
#[test]
fn without_heartbeats_the_crowd_halves_each_second() {
    let mut t = Talk::new();
    t.obus = 120;
    t.settle(A, 1);
    let obus = |t: &Talk| t.look().air.unwrap().obus.unwrap();
    assert_eq!(obus(&t), 120);
    let mut seen = vec![120];
    for _ in 0..8 {
        t.pass(t.now + 1000);
        if obus(&t) != *seen.last().unwrap() {
            seen.push(obus(&t));
        }
    }
    assert_eq!(seen.get(1..4), Some(&[60, 30, 15][..]), "{seen:?}");
}

/// Of RSUs that are known besides ours only the nearest are kept ready to go to.
#[test]
fn of_the_other_rsus_the_cheapest_are_asked() {
    const OTHERS: [(Mac, Mac, u8); 5] = [
        (Mac([2, 0, 0, 0, 0, 0x21]), Mac([2, 0, 0, 0, 0, 0x31]), 5),
        (Mac([2, 0, 0, 0, 0, 0x22]), Mac([2, 0, 0, 0, 0, 0x32]), 4),
        (Mac([2, 0, 0, 0, 0, 0x23]), Mac([2, 0, 0, 0, 0, 0x33]), 3),
        (Mac([2, 0, 0, 0, 0, 0x24]), Mac([2, 0, 0, 0, 0, 0x34]), 2),
        (Mac([2, 0, 0, 0, 0, 0x25]), Mac([2, 0, 0, 0, 0, 0x35]), 1),
    ];
    let mut t = behind_a_beside_b();
    let mut asked = std::collections::BTreeMap::<Mac, usize>::new();
    for beat in 0..1200 {
        t.pass(t.now + 50);
        t.rsu = RSU;
        t.beat(A, 1);
        for (rsu, relay, hops) in OTHERS {
            t.rsu = rsu;
            t.hear(t.now, relay, Heard::heartbeat(beat + 1, hops));
            if let Some(nonce) = t.last_probe(relay) {
                t.hear(t.now, relay, Heard::answer(nonce, beat + 1, hops));
                t.forget_sent_to(relay);
                // Who is new is asked once; later only those that are kept ready are.
                if beat >= 40 {
                    *asked.entry(relay).or_default() += 1;
                }
            }
        }
        t.rsu = RSU;
    }
    let of = |hops: u8| {
        let (_, relay, _) = OTHERS.into_iter().find(|(.., other)| *other == hops).unwrap();
        asked.get(&relay).copied().unwrap_or_default()
    };
    assert!([1, 2, 3].into_iter().all(|hops| of(hops) > 0), "{asked:?}");
    assert_eq!((of(4), of(5)), (0, 0), "{asked:?}");
}

/// Lets the OBU do what it planned until then: what was due, and what came of it.
fn planned(t: &mut Talk, until_ms: u64) -> Vec<(&'static str, Vec<Event>)> {
    let until = Timestamp::from_millis(until_ms);
    let (mut out, mut done) = (Replies::new(), Vec::new());
    while let Some(due) = t.obu.deadline().filter(|due| due.at <= until) {
        assert_eq!(t.obu.poll_timeout(), Some(due.at));
        t.obu.handle_timeout(due.at, &mut out);
        done.push((due.reason, t.events()));
    }
    t.now = until_ms;
    done
}

#[test]
fn an_obu_says_why_it_wants_to_be_called() {
    let mut t = behind_a_beside_b();
    t.events();
    // Nobody says anything any more, while frames go up.
    t.tap(CAMERA, SERVER);
    let until = t.now + 400;
    let done = planned(&mut t, until);
    let first = |reason: &str| done.iter().position(|(why, _)| *why == reason);
    let asked = first("ask an upstream that is late").expect("it is asked");
    let again = first("ask an upstream that does not answer").expect("it is asked again");
    let dead = first("leave an upstream that is dead").expect("it is left");
    assert!(asked < again && again < dead, "{done:?}");
    let left = |events: &[Event]| {
        let is_left =
            |event: &Event| matches!(event, Event::UpstreamChanged { cause: Cause::Dead, .. });
        events.iter().any(is_left)
    };
    assert_eq!(done.iter().position(|(_, events)| left(events)), Some(dead), "{done:?}");
}

#[test]
fn what_an_obu_does_next_is_told_with_everything_else() {
    let mut t = behind_a_beside_b();
    let due = t.obu.deadline().unwrap();
    let waits_for = t.look().waits_for.unwrap();
    assert_eq!(waits_for.reason, due.reason);
    assert_eq!(
        u128::from(waits_for.in_ms),
        due.at.since(Timestamp::from_millis(t.now)).as_millis()
    );
    t.shut_down();
    assert_eq!(t.look().waits_for.unwrap().reason, "say goodbye");
}
