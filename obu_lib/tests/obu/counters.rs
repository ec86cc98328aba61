//! What an OBU does not pass on, it counts under its cause.

use node_lib::control::node::Node;
use node_lib::control::radio::HOP_LIMIT;
use node_lib::messages::control::ack::{AckStatus, AnnouncementAck};
use node_lib::messages::control::announcement::{Announcement, Clients};
use node_lib::messages::control::heartbeat::HeartbeatReply;
use node_lib::messages::{Label, Way};
use node_lib::{Mac, Order, Seq};

use crate::talk::{self, A, B, C, Heard, RSU, Talk, US, id, next};

/// We are the last relay.
fn one_relay() -> Way<'static> {
    Way::new(1, &[]).unwrap()
}

/// Behind A; C is behind us.
fn relay() -> Talk {
    let mut t = Talk::settled_behind(A);
    t.hear(t.now, C, Heard::Reply { origin: C, seq: 1, hops: 0 });
    t.clear();
    t
}

/// What this does to the counters of what came in and did not go on.
fn counts(t: &mut Talk, act: impl FnOnce(&mut Talk)) -> Vec<(&'static str, u64)> {
    let before = t.obu.counters().clone();
    act(t);
    let pairs = t.obu.counters().iter().zip(before.iter());
    let changed = pairs.filter(|(now, then)| now.1 != then.1);
    let is_drop = |(name, _): &(&str, u64)| name.starts_with("drop_");
    changed.map(|(now, then)| (now.0, now.1 - then.1)).filter(is_drop).collect()
}

/// With so many relays left on its way, the OBU asked among them.
fn ack<'a>(destination: Mac, way: Way<'a>) -> AnnouncementAck<'a> {
    AnnouncementAck {
        destination: id(destination),
        rsu: id(RSU),
        epoch: 1,
        seq: Seq(1),
        digest: 0,
        part: 0,
        parts: 1,
        status: AckStatus::Accepted,
        way,
    }
}

fn announcement(origin: Mac, hops: u8) -> Announcement<'static> {
    Announcement {
        rsu: id(RSU),
        origin: id(origin),
        order: Order::new(1, 9),
        epoch: 1,
        via: id(if origin == US { A } else { US }),
        digest: 0,
        part: 0,
        parts: 1,
        within_ds: 13,
        at_risk_10ms: 0,
        mtu: 1500,
        hops,
        standby: false,
        clients: Clients::EMPTY,
    }
}

#[test]
fn what_has_one_addressee_is_foreign_when_everybody_gets_it() {
    let said = [
        Heard::Reply { origin: B, seq: 1, hops: 0 },
        Heard::Ack { epoch: 1, status: AckStatus::SendAll, digest: 0 },
    ];
    let mut t = relay();
    for heard in said {
        let counted = counts(&mut t, |t| t.hear_broadcast(t.now, C, heard));
        assert_eq!(counted, [("drop_foreign", 1)]);
    }
    let all = announcement(B, 0);
    let counted = counts(&mut t, |t| t.hear_packet(C, Mac::BROADCAST, all.into()));
    assert_eq!(counted, [("drop_foreign", 1)]);
    assert_eq!(t.sent_to(), []);
    let counted = counts(&mut t, |t| t.down(A, next(B), 1));
    assert_eq!(counted, [("drop_no_route", 1)], "nor is a way to B learnt");
}

#[test]
fn what_has_come_as_far_as_anything_may_is_not_passed_on() {
    for (hops, counted) in [(HOP_LIMIT - 1, vec![]), (HOP_LIMIT, vec![("drop_hop_limit", 1)])] {
        let mut t = relay();
        let sent_to = if counted.is_empty() { vec![A] } else { vec![] };
        let reply = Heard::Reply { origin: B, seq: 1, hops };
        assert_eq!(counts(&mut t, |t| t.hear(t.now, C, reply)), counted);
        assert_eq!(t.sent_to(), sent_to);
        t.clear();
        let said = announcement(B, hops);
        assert_eq!(counts(&mut t, |t| t.hear_packet(C, US, said.into())), counted);
        assert_eq!(t.sent_to(), sent_to);
    }
    // On its way down, what has no relay left is for us or for nobody.
    let mut t = relay();
    let said = ack(C, Way::END);
    let counted = counts(&mut t, |t| t.hear_packet(A, US, said.into()));
    assert_eq!((counted, t.sent_to()), (vec![("drop_hop_limit", 1)], vec![]));
}

#[test]
fn what_we_said_ourselves_coming_back_is_dropped() {
    let mut t = relay();
    let reply = Heard::Reply { origin: US, seq: 99, hops: 1 };
    assert_eq!(counts(&mut t, |t| t.hear(t.now, C, reply)), [("drop_reflected", 1)]);
    let said = announcement(US, 1);
    let counted = counts(&mut t, |t| t.hear_packet(C, US, said.into()));
    assert_eq!((counted, t.sent_to()), (vec![("drop_reflected", 1)], vec![]));
}

#[test]
fn an_acknowledgement_for_nobody_behind_us_has_no_route_and_never_goes_back() {
    let mut t = relay();
    for (from, destination) in [(A, B), (C, C)] {
        let counted =
            counts(&mut t, |t| t.hear_packet(from, US, ack(destination, one_relay()).into()));
        assert_eq!((counted, t.sent_to()), (vec![("drop_no_route", 1)], vec![]));
    }
}

#[test]
fn questions_beyond_the_budget_are_not_answered() {
    let mut t = relay();
    let counted = counts(&mut t, |t| {
        for _ in 0..1000 {
            t.hear(t.now, C, Heard::ProbeFor { rsu: RSU });
        }
    });
    let answered = t.answers() as u64;
    assert!((1..100).contains(&answered), "{answered}");
    assert_eq!(counted, [("drop_rate_limit", 1000 - answered)]);
}

#[test]
fn of_questions_to_all_sixteen_wait_for_an_answer_and_one_of_each_node() {
    let mut t = relay();
    let counted = counts(&mut t, |t| {
        for n in 0..20 {
            for _ in 0..2 {
                t.hear_broadcast(t.now, Mac([2, 0, 0, 0, 4, n]), Heard::Probe { boot: 1 });
            }
        }
    });
    assert_eq!(counted, [("drop_rate_limit", 40 - 16)]);
    t.pass(t.now + 10);
    assert_eq!(t.answers(), 16);
}

#[test]
fn events_that_nobody_reads_are_lost_and_counted() {
    let mut t = Talk::new();
    // Somebody with our id is reported every ten seconds, and 256 events are kept.
    for n in 0..300 {
        t.hear(n * 10_000, C, Heard::Impostor);
    }
    assert_eq!((t.obu.counters().events_lost, t.events().len()), (300 - 256, 256));
}

#[test]
fn a_way_to_ourselves_as_rsu_is_nobodys() {
    let mut t = relay();
    t.rsu = US;
    t.hear(t.now, B, Heard::heartbeat(1, 0));
    t.pass(t.now + 1000);
    assert!(t.asked().iter().all(|who| *who != B), "{:?}", t.asked());
    assert_eq!(t.obu.upstream_for(id(US)), None);
}

#[test]
fn what_is_passed_on_has_one_hop_more_behind_it_and_one_relay_less_before_it() {
    let mut t = relay();
    t.hear(t.now, C, Heard::Reply { origin: C, seq: 2, hops: 3 });
    let [reply] = t.replies_sent()[..] else { panic!("not one reply") };
    assert_eq!(reply, HeartbeatReply { hops: 4, ..talk::heard::reply(C, RSU, 2, 3, false) });
    let labels = [Label::of(id(C)), Label::of(id(B))].map(|label| label.0);
    t.hear_packet(A, US, ack(B, Way::new(3, &labels).unwrap()).into());
    t.hear_packet(A, US, ack(C, one_relay()).into());
    assert_eq!(t.acks_sent(), [(C, 2), (C, 0)]);
}
