//! What an OBU tells its RSU of itself: its clients and its upstream until they are acknowledged,
//! and replies that let the RSU compare.

use std::collections::BTreeSet;
use std::time::Duration;

use node_lib::control::event::Event;
use node_lib::control::node::{Node, Replies};
use node_lib::messages::control::ack::AckStatus;
use node_lib::messages::control::announcement::{Client, client_digest};
use node_lib::messages::control::heartbeat::HeartbeatReply;
use node_lib::start::clients::Remembered;
use node_lib::{Mac, Seq, Timestamp};

use crate::talk::{self, A, B, C, CAMERA, Heard, RSU, SERVER, Talk, Word, attached, id};

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
    assert!((59..=101).contains(&pauses[0]), "40 ms for each of two hops: {pauses:?}");
    for doubling in pauses.windows(2).take(2) {
        assert!(doubling[1] * 10 >= doubling[0] * 11, "{pauses:?}");
    }
    assert!(pauses[2..].iter().all(|pause| (239..=401).contains(pause)), "{pauses:?}");
}

/// Somebody says that this client is here, and was heard ten seconds ago.
fn remember(t: &mut Talk, mac: Mac) {
    let known = Remembered { client: client(mac), silent_for: Duration::from_secs(10) };
    let now = Timestamp::from_millis(t.now);
    t.obu.handle_clients(now, &[known], &mut Replies::new());
}

#[test]
fn a_client_of_an_earlier_start_is_in_the_first_announcement() {
    let mut t = Talk::new();
    remember(&mut t, CAMERA);
    t.settle(A, 1);
    t.pass(t.now + 3);
    assert_eq!(t.sent_announcement().2, [client(CAMERA)]);
}

#[test]
fn a_client_the_bridge_tells_of_later_is_announced_as_if_it_had_spoken() {
    let mut t = known();
    remember(&mut t, CAMERA);
    t.live_until(t.now + 60);
    assert_eq!(t.sent_announcement().2, [client(CAMERA)]);
    t.acknowledge(A);
    t.clear();
    remember(&mut t, CAMERA);
    t.live_until(t.now + 500);
    assert_eq!(t.announcements(), 0, "that is known");
}

#[test]
fn a_remembered_client_that_speaks_elsewhere_is_not_announced_any_more() {
    let mut t = Talk::new();
    // The one that sends what comes down.
    remember(&mut t, SERVER);
    t.settle(A, 1);
    t.acknowledge(A);
    t.clear();
    t.down(A, talk::all_but(id(B), 7), 1);
    t.live_until(t.now + 60);
    assert_eq!(t.sent_announcement().2, []);
    assert_eq!(t.obu.clients(Timestamp::from_millis(t.now)), []);
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

/// The answer of our RSU to a word with this epoch and sequence.
fn answer(t: &mut Talk, epoch: u32, seq: u32, status: AckStatus) {
    let digest = client_digest(&[]);
    let (to, rsu, via, seq) = (A, RSU, A, Seq(seq));
    let word =
        Word { to, rsu, via, epoch, seq, digest, part: (0, 1), standby: false, is_set: false };
    t.answer(A, word, status);
}

#[test]
fn an_answer_to_a_word_we_never_said_makes_us_go_above_it_at_once() {
    for status in [AckStatus::Accepted, AckStatus::Known, AckStatus::SendAll] {
        for (epoch, ahead, now) in [(0, 0, 1), (0, 1, 2), (1, 0, 3), (63, 0, 65), (64, 0, 2)] {
            let mut t = known();
            let said = t.said.0;
            let seq = if epoch == 0 { said + ahead } else { 0 };
            let before = 1;
            answer(&mut t, before + epoch, seq, status);
            let announced: Vec<_> = t.announced().iter().map(|(_, _, epoch, _)| *epoch).collect();
            let is_ours = epoch == 0 && ahead == 0;
            let expected = if is_ours && status != AckStatus::SendAll { vec![] } else { vec![now] };
            assert_eq!(announced, expected, "{status:?}, epoch {epoch} more, {ahead} ahead");
        }
    }
}

#[test]
fn whoever_invents_answers_does_not_make_us_speak_all_the_time() {
    let mut t = known();
    for n in 0..80 {
        let epoch = t.announced().last().map_or(1, |(_, _, epoch, _)| *epoch);
        answer(&mut t, epoch + 1, 0, AckStatus::Known);
        t.pass(t.now + 1);
        let epochs: BTreeSet<_> = t.announced().iter().map(|(_, _, epoch, _)| *epoch).collect();
        assert_eq!(epochs.len(), 1 + n / 40, "after {n} ms");
    }
}

#[test]
fn a_new_upstream_before_the_rsu_knows_all_is_announced_with_a_higher_epoch() {
    let mut t = Talk::settled_behind(A);
    // The RSU does not know them any more: all is announced, and not answered yet.
    t.acknowledge(A);
    t.prove_beside_a(B);
    t.hear(t.now, A, Heard::Ack { epoch: 0, status: AckStatus::SendAll, digest: 0 });
    let (_, first, _) = t.sent_announcement();
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
    assert_eq!(parts.iter().map(|(word, _)| word.part).collect::<Vec<_>>()[..2], [(0, 2), (1, 2)]);
    let named: Vec<_> = parts[..2].iter().flat_map(|(_, clients)| clients.clone()).collect();
    assert_eq!(named, clients);
    assert!(parts.iter().all(|(word, _)| word.digest == client_digest(&clients)));
    t.answer(A, parts[0].0, AckStatus::Accepted);
    assert_eq!(t.events(), [], "half of it is not known");
    t.clear();
    t.live_until(t.now + 200);
    assert!(!t.words().is_empty() && t.words().iter().all(|word| word.part == (1, 2)));
    t.answer(A, parts[1].0, AckStatus::Accepted);
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
            if reply.acknowledge {
                t.acknowledge(A);
            }
        }
        if t.now.is_multiple_of(100) {
            last_beat = t.now;
        }
    }
    assert!((8..=13).contains(&replies), "{replies}");
}

/// The RSU measures the round trip by it.
#[test]
fn the_first_reply_through_another_upstream_says_how_long_ago_the_heartbeat_came() {
    let mut t = known();
    t.tap(CAMERA, SERVER);
    t.pass(t.now + 60);
    t.acknowledge(A);
    t.prove_beside_a(B);
    let seq = t.beat(A, 1);
    t.hear(t.now, B, Heard::heartbeat(seq, 1));
    t.pass(t.now + 70);
    t.tap(CAMERA, SERVER);
    t.clear();
    t.hear(t.now, A, Heard::Withdrawal { goodbye: false });
    assert_eq!(t.obu.attachment(), attached(RSU, B, 2));
    t.pass(t.now + 5);
    let said = t.replies_sent();
    let first = said.iter().find(|reply| reply.via == id(B)).expect("it says so at once");
    assert_eq!((first.answers.0, first.held_100us / 100), (seq, 7), "{first:?}");
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

/// A has no way any more, and B is upstream.
fn b_takes_over(t: &mut Talk) {
    t.prove_beside_a(B);
    t.clear();
    t.hear(t.now, A, Heard::Withdrawal { goodbye: false });
    assert_eq!(t.obu.attachment(), attached(RSU, B, 2));
}

/// Known behind A with this epoch; then A has no way any more, and B is upstream.
fn moved_to_b() -> (Talk, u32) {
    let mut t = Talk::settled_behind(A);
    t.acknowledge(A);
    // A client speaks: it matters how we are reached.
    t.clear();
    t.tap(CAMERA, SERVER);
    t.pass(t.now + 55);
    let (_, epoch, _) = t.sent_announcement();
    t.acknowledge(A);
    b_takes_over(&mut t);
    t.events();
    (t, epoch)
}

fn is_acknowledged(t: &mut Talk) -> bool {
    t.events().iter().any(|event| matches!(event, Event::Acknowledged { .. }))
}

/// So long, in which these bring heartbeats and answer what they are asked.
fn live_with(t: &mut Talk, others: &[Mac], ms: u64) {
    let until = t.now + ms;
    while t.now < until {
        t.pass((t.now / 10 + 1) * 10);
        t.seq += u32::from(t.now.is_multiple_of(100));
        for who in others {
            if t.now.is_multiple_of(100) {
                t.hear(t.now, *who, Heard::heartbeat(t.seq, 1));
            }
            if let Some(nonce) = t.last_probe(*who) {
                t.hear(t.now, *who, Heard::answer(nonce, t.seq, 1));
            }
        }
        t.forget_probes();
    }
}

#[test]
fn a_new_upstream_at_the_same_rsu_is_said_in_one_short_word() {
    let (t, epoch) = moved_to_b();
    let [word] = t.words()[..] else { panic!("{:?}", t.words()) };
    assert_eq!((word.to, word.rsu, word.via, word.epoch), (B, RSU, B, epoch));
    assert!(!word.is_set && !word.standby, "no clients: the RSU knows them");
}

#[test]
fn a_new_upstream_is_repeated_until_an_answer_to_that_word_says_that_it_is_known() {
    for status in [AckStatus::Accepted, AckStatus::Known] {
        let (mut t, epoch) = moved_to_b();
        let first = t.words()[0];
        let before = first.seq.0 - 1;
        let others = [
            Word { seq: Seq(before), ..first },
            Word { epoch: epoch - 1, ..first },
            Word { digest: first.digest ^ 1, ..first },
        ];
        for other in others {
            t.answer(B, other, status);
            assert!(!is_acknowledged(&mut t), "{other:?}");
            t.clear();
            live_with(&mut t, &[B], 400);
            assert!(!t.words().is_empty(), "it goes on");
            assert!(t.words().iter().all(|word| (word.via, word.is_set) == (B, false)));
        }
        // An answer to its first word is one, though it was repeated since.
        t.answer(B, first, status);
        assert!(is_acknowledged(&mut t), "{status:?}");
        t.clear();
        live_with(&mut t, &[B], 2000);
        assert_eq!((t.words(), t.announcements()), (vec![], 0));
    }
}

#[test]
fn a_new_upstream_that_nobody_acknowledges_is_not_repeated_for_ever() {
    let (mut t, epoch) = moved_to_b();
    live_with(&mut t, &[B], 10_000);
    assert_eq!((t.words().len(), t.announcements()), (12, 0));
    assert!(t.words().windows(2).all(|pair| pair[0].seq < pair[1].seq));
    // What comes about once a second says it as well.
    t.clear();
    live_with(&mut t, &[B], 1500);
    let replies = t.replies_sent();
    let is_right = |r: &HeartbeatReply| (r.via, r.epoch, r.acknowledge) == (id(B), epoch, false);
    assert!(!replies.is_empty() && replies.iter().all(is_right), "{replies:?}");
}

#[test]
fn an_answer_to_what_was_said_before_the_last_change_ends_nothing() {
    let (mut t, epoch) = moved_to_b();
    let of_b = t.words()[0];
    // Back to A before the RSU has answered.
    live_with(&mut t, &[A, B], 800);
    t.clear();
    t.hear(t.now, B, Heard::Withdrawal { goodbye: false });
    assert_eq!(t.obu.attachment(), attached(RSU, A, 2));
    let of_a = t.words()[0];
    assert_eq!((of_a.via, of_a.epoch, of_a.is_set), (A, epoch, false));
    t.events();
    t.answer(A, of_b, AckStatus::Accepted);
    assert!(!is_acknowledged(&mut t), "the RSU believes that B is our upstream");
    t.answer(A, of_a, AckStatus::Accepted);
    assert!(is_acknowledged(&mut t));
}

#[test]
fn an_rsu_that_has_lost_our_clients_when_it_hears_of_a_new_upstream_gets_them_once() {
    let (mut t, epoch) = moved_to_b();
    let word = t.words()[0];
    t.clear();
    t.answer(B, word, AckStatus::SendAll);
    t.answer(B, word, AckStatus::SendAll);
    let [all] = t.words()[..] else { panic!("{:?}", t.words()) };
    assert_eq!((all.via, all.epoch, all.is_set), (B, epoch, true));
    t.answer(B, all, AckStatus::Known);
    assert!(!is_acknowledged(&mut t), "that it knows our upstream says nothing of our clients");
    t.answer(B, all, AckStatus::Accepted);
    assert!(is_acknowledged(&mut t));
}

#[test]
fn what_was_only_mentioned_is_repeated_as_anything_else_once_clients_speak() {
    let mut t = known();
    b_takes_over(&mut t);
    assert_eq!(t.words(), [], "nothing goes this way, and it is mentioned");
    t.clear();
    t.tap(CAMERA, SERVER);
    // Before the RSU can have answered others speak, and each time it is seen to what is due.
    for _ in 0..15 {
        t.pass(t.now + 1);
        t.hear(t.now, C, Heard::ProbeFor { rsu: RSU });
    }
    assert_eq!(t.words().len(), 1, "{:?}", t.words());
    let inside = t.look();
    assert!(inside.attached.is_some_and(|to| !to.is_unanswered), "the RSU has had 15 ms");
}
