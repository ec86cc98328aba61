//! OBUs and relays that fall silent or say goodbye.

use node_lib::control::event::Event;
use node_lib::control::node::Node;
use node_lib::messages::control::heartbeat::HeartbeatReply;

use super::seen::{moves, past, sent_to};
use crate::talk::{A, B, CAMERA, RELAY, SERVER, SIGN, Talk, US, id};

/// Attaches A behind the relay. Its last word, in which the next is promised within so many tenths
/// of a second, comes at 1 s.
fn promises(within_ds: u16) -> Talk {
    let mut t = Talk::new();
    t.announce(A, US, 1, &[CAMERA]);
    t.pass(1000);
    let said = t.words(A, 1, &[CAMERA]);
    t.bring(A, HeartbeatReply { within_ds, ..t.reply_of(&said) }.into());
    t.events();
    t
}

#[test]
fn an_obu_is_gone_after_three_times_what_it_promised_and_five_seconds_at_least() {
    // No OBU makes us wait for longer than 80 s, which is 800 intervals: 1,024 OBUs share 24
    // replies a second.
    let most = 240_000;
    for (within_ds, gone_after) in [
        (1, 5000),
        (13, 5000),
        (17, 5100),
        (30, 9000),
        (100, 30_000),
        (800, most),
        (801, most),
        (u16::MAX, most),
    ] {
        let mut t = promises(within_ds);
        t.pass(1000 + gone_after - 1);
        assert_eq!((t.events(), t.rsu.attached().len()), (vec![], 1), "{within_ds}");
        assert_eq!(sent_to(&mut t, CAMERA), [past(&[], A)], "{within_ds}");
        // This is looked at once a second.
        t.pass(1000 + gone_after + 1000);
        assert_eq!(t.events(), [Event::ObuDetached { obu: id(A) }], "{within_ds}");
        assert_eq!(t.rsu.attached().len(), 0, "{within_ds}");
    }
}

#[test]
fn an_obu_whose_clients_speak_is_there_though_its_words_are_lost() {
    let mut t = promises(13);
    for second in 2..20 {
        t.pass(1000 * second);
        t.up(A, CAMERA, SERVER);
    }
    assert_eq!((t.events(), t.rsu.attached().len()), (vec![], 1));
}

#[test]
fn who_is_behind_a_relay_that_fell_silent_is_not_sent_to_and_each_frame_is_counted() {
    for is_attached in [false, true] {
        let mut t = Talk::new();
        if is_attached {
            t.announce(RELAY, US, 1, &[]);
        } else {
            t.relay(RELAY, US);
        }
        t.announce(A, RELAY, 1, &[CAMERA]);
        t.announce(B, A, 1, &[SIGN]);
        // Both are heard through the relay, which itself says no word.
        for second in 1..=6 {
            t.pass(1000 * second);
            t.reply(A, 1, &[CAMERA], false);
            t.reply(B, 1, &[SIGN], false);
            if second == 4 {
                let way = past(&[RELAY, A], B);
                assert_eq!(sent_to(&mut t, SIGN), [way], "three times 1.3 s and more");
            }
        }
        for (client, counted) in [(CAMERA, 1), (SIGN, 2)] {
            assert_eq!(sent_to(&mut t, client), [], "attached: {is_attached}");
            assert_eq!(t.rsu.counters().drop_no_route, counted);
        }
        let hops = |t: &Talk| t.rsu.attached().iter().map(|known| known.hops).collect::<Vec<_>>();
        assert_eq!(hops(&t), [None, None]);
        // One word of A, and both are reached.
        moves(&mut t, A, US, &[CAMERA]);
        assert_eq!(sent_to(&mut t, SIGN), [past(&[A], B)]);
        assert_eq!(hops(&t), [Some(1), Some(2)]);
    }
}

#[test]
fn who_is_behind_a_relay_that_says_goodbye_is_reached_through_it_for_the_moment_it_lingers() {
    let mut t = Talk::new();
    t.announce(RELAY, US, 1, &[]);
    t.announce(A, RELAY, 1, &[CAMERA]);
    t.reply(RELAY, 1, &[], true);
    t.pass(200);
    assert_eq!(sent_to(&mut t, CAMERA), [past(&[RELAY], A)]);
}
