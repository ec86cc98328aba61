//! What an OBU tells its RSU of itself: announcements until they are acknowledged, replies that renew
//! the way back and let the RSU compare sets.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod talk;

use node_lib::Mac;
use node_lib::control::event::Event;
use node_lib::control::node::Node;
use node_lib::messages::control::ack::AckStatus;
use node_lib::messages::control::announcement::{Client, client_digest};

use talk::{A, B, CAMERA, Heard, RSU, SERVER, Talk, attached, id};

/// Attached through A, and acknowledged.
fn known() -> Talk {
    let mut t = Talk::settled_behind(A);
    t.acknowledge(A);
    t.events();
    t.clear();
    t
}

fn client(mac: Mac) -> Client {
    Client { vlan: 0, mac }
}

/// When announcements went out until then, in milliseconds. What was sent is forgotten.
fn announced_at(t: &mut Talk, until: u64) -> Vec<u64> {
    let mut times = Vec::new();
    while t.now < until {
        t.clear();
        t.live_until(t.now + 1);
        times.extend((0..t.announcements()).map(|_| t.now));
    }
    t.clear();
    times
}

#[test]
fn what_nobody_acknowledges_is_repeated_ever_more_rarely_and_not_for_ever() {
    let mut t = known();
    t.tap(CAMERA, SERVER);
    let times = announced_at(&mut t, 10_000);
    assert_eq!(times.len(), 12, "{times:?}");
    let pauses: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses[0] <= 26, "the first repetition comes at once: {pauses:?}");
    for doubling in pauses.windows(2).take(4) {
        assert!(doubling[1] * 10 >= doubling[0] * 11, "{pauses:?}");
    }
    assert!(pauses[4..].iter().all(|pause| (239..=401).contains(pause)), "{pauses:?}");
}

#[test]
fn an_rsu_that_lost_all_of_them_asks_after_the_next_reply_and_is_told() {
    let mut t = known();
    t.tap(CAMERA, SERVER);
    announced_at(&mut t, 10_000);
    t.clear();
    t.live_until(12_000);
    let reply = *t.replies_sent().first().expect("a reply within two seconds");
    assert_eq!(reply.digest, client_digest(&[client(CAMERA)]));
    let asks = Heard::Ack { epoch: 0, status: AckStatus::SendAll, digest: reply.digest };
    t.hear(t.now, A, asks);
    assert_eq!(t.sent_announcement().2, [client(CAMERA)]);
}

#[test]
fn an_rsu_that_asks_for_what_is_on_its_way_is_not_sent_it_twice() {
    let mut t = Talk::settled_behind(A);
    t.pass(t.now + 3);
    t.clear();
    let asks = || Heard::Ack { epoch: 0, status: AckStatus::SendAll, digest: 0 };
    t.hear(t.now, A, asks());
    assert_eq!(t.announcements(), 0, "the repetition comes by itself");
}

#[test]
fn new_clients_are_gathered_for_a_moment_and_announced_together() {
    let mut t = known();
    t.tap(CAMERA, Mac::BROADCAST);
    t.pass(t.now + 30);
    t.tap(SERVER, Mac::BROADCAST);
    assert_eq!(t.announcements(), 0);
    t.pass(t.now + 30);
    assert_eq!(
        (t.announcements(), t.sent_announcement().2),
        (1, vec![client(CAMERA), client(SERVER)])
    );
}

#[test]
fn an_answer_to_an_older_announcement_acknowledges_nothing() {
    let mut t = Talk::settled_behind(A);
    let (_, epoch, _) = t.sent_announcement();
    let digest = client_digest(&[]);
    let accepted = |epoch, digest| Heard::Ack { epoch, status: AckStatus::Accepted, digest };
    t.events();
    t.hear(t.now, A, accepted(epoch - 1, digest));
    t.hear(t.now, A, accepted(epoch, digest ^ 1));
    assert_eq!(t.events(), []);
    t.clear();
    t.pass(t.now + 60);
    assert!(t.announcements() > 0, "it goes on");
    let attempts = 1 + t.announcements() as u32;
    t.hear(t.now, A, accepted(epoch, digest));
    let rsu = id(RSU);
    let [Event::Acknowledged { attempts: counted, .. }] = t.events()[..] else { panic!() };
    assert!(counted >= attempts, "{counted} for {rsu}");
}

#[test]
fn an_rsu_that_knows_a_lower_epoch_changes_nothing() {
    let mut t = Talk::settled_behind(A);
    let (_, epoch, _) = t.sent_announcement();
    t.clear();
    t.hear(t.now, A, Heard::Ack { epoch: epoch - 1, status: AckStatus::StaleEpoch, digest: 0 });
    t.pass(t.now + 60);
    assert!(t.announced().iter().all(|(_, _, of, _)| *of == epoch));
    // The same one as ours, of before our restart, is no lower one.
    t.hear(t.now, A, Heard::Ack { epoch, status: AckStatus::StaleEpoch, digest: 0 });
    t.pass(t.now + 1);
    assert_eq!(t.announced().last().map(|(_, _, of, _)| *of), Some(epoch + 1));
}

#[test]
fn each_new_way_has_a_higher_epoch() {
    let mut t = Talk::settled_behind(A);
    let (_, first, _) = t.sent_announcement();
    let seq = t.beat(A, 1);
    t.hear(t.now, B, Heard::heartbeat(seq, 1));
    t.prove(B, seq, 1);
    t.clear();
    t.hear(t.now, A, Heard::Withdrawal { goodbye: false });
    assert_eq!(t.obu.attachment(), attached(RSU, B, 2));
    assert_eq!(t.announced(), [(B, RSU, first + 1, false)]);
}

#[test]
fn of_a_set_in_several_parts_only_those_not_acknowledged_are_repeated() {
    let mut t = known();
    let clients: Vec<Client> =
        (0..400_u16).map(|n| client(Mac([2, 0, 0, 3, (n >> 8) as u8, n as u8]))).collect();
    clients.iter().for_each(|client| drop(t.tap(client.mac, Mac::BROADCAST)));
    t.clear();
    t.live_until(t.now + 60);
    let parts = t.parts_sent();
    assert_eq!(parts.iter().map(|part| part.part).collect::<Vec<_>>()[..2], [(0, 2), (1, 2)]);
    let named: Vec<_> = parts[..2].iter().flat_map(|part| part.clients.clone()).collect();
    assert_eq!(named, clients);
    assert!(parts.iter().all(|part| part.digest == client_digest(&clients)));
    t.answer_part(A, &parts[0], AckStatus::Accepted);
    assert_eq!(t.events(), [], "half of it is not known");
    t.clear();
    t.live_until(t.now + 200);
    assert!(!t.parts_sent().is_empty() && t.parts_sent().iter().all(|part| part.part == (1, 2)));
    t.answer_part(A, &parts[1], AckStatus::Accepted);
    assert!(matches!(t.events()[..], [Event::Acknowledged { .. }]));
    t.clear();
    t.live_until(t.now + 500);
    assert_eq!(t.announcements(), 0);
}

#[test]
fn a_reply_about_once_a_second_says_what_was_heard_and_how_long_ago() {
    let mut t = known();
    t.tap(CAMERA, SERVER);
    t.pass(t.now + 60);
    t.acknowledge(A);
    let (_, epoch, _) = t.sent_announcement();
    t.live_until(t.now / 100 * 100 + 100);
    let (mut replies, start) = (0, t.now);
    let mut last_beat = t.now;
    while t.now < start + 10_000 {
        t.clear();
        t.live_until(t.now + 1);
        for reply in t.replies_sent() {
            replies += 1;
            let held = t.now - last_beat;
            assert_eq!((reply.rsu, reply.origin), (id(RSU), t.obu.id()));
            assert_eq!((reply.epoch, reply.clients), (epoch, 1));
            assert_eq!(reply.digest, client_digest(&[client(CAMERA)]));
            let since = u64::from(reply.held_100us) / 10;
            // It may be heard some milliseconds after it was sent: time goes in steps here.
            let is_last = reply.answers.0 == t.seq && since.abs_diff(held) <= 10;
            assert!(is_last || held <= 10, "{reply:?}, heartbeat {} {held} ms ago", t.seq);
            assert!(!reply.goodbye && !reply.standby);
        }
        if t.now.is_multiple_of(100) {
            last_beat = t.now;
        }
    }
    assert!((8..=13).contains(&replies), "{replies}");
}

#[test]
fn replies_and_announcements_share_one_order_that_only_grows() {
    let mut t = known();
    t.live_until(3000);
    t.tap(CAMERA, SERVER);
    t.live_until(6000);
    let orders = t.orders_sent();
    assert!(orders.len() >= 4, "{orders:?}");
    assert!(orders.windows(2).all(|pair| pair[0] < pair[1]), "{orders:?}");
}
