//! How closely an OBU watches its upstream, and when it asks others for a proof.

use node_lib::Mac;

use super::beats::beat;
use super::better::behind_a;
use crate::talk::{A, B, C, CAMERA, Heard, RSU, SERVER, Talk, US, attached, last};

#[test]
fn who_becomes_upstream_on_an_old_proof_is_asked_at_once() {
    let mut t = behind_a();
    for _ in 0..30 {
        beat(&mut t, &[(A, 2), (B, 2)]);
    }
    // From here on B is heard, and does not hear us.
    for _ in 0..8 {
        t.seq += 1;
        t.hear(t.now, A, Heard::heartbeat(t.seq, 2));
        t.hear(t.now, B, Heard::heartbeat(t.seq, 2));
        t.tap(CAMERA, SERVER);
        pass_answering(&mut t, 100, &[(A, 2)]);
    }
    t.clear();
    let then = t.now;
    t.hear(then, A, Heard::Withdrawal { goodbye: false });
    assert_eq!(t.obu.attachment(), attached(RSU, B, 3), "its proof still counts");
    t.tap(CAMERA, SERVER);
    t.pass(then + 5);
    assert!(t.asked().contains(&B), "asked before it is late");
    while t.obu.attachment().is_some() && t.now < then + 300 {
        t.pass(t.now + 5);
    }
    // As long as from being late to being given up, and not 225 ms.
    assert_eq!(t.now - then, 105);
}

#[test]
fn a_better_neighbour_that_does_not_hear_us_is_not_taken() {
    let mut t = behind_a();
    for _ in 0..100 {
        t.hear(t.now, B, Heard::heartbeat(t.seq, 1));
        beat(&mut t, &[(A, 2)]);
    }
    assert_eq!(t.obu.attachment(), attached(RSU, A, 3));
}

/// For so many ms these answer within 5 ms what they are asked.
fn pass_answering(t: &mut Talk, ms: u64, heard: &[(Mac, u8)]) {
    for _ in 0..ms / 5 {
        t.pass(t.now + 5);
        for (who, hops) in heard {
            if let Some(nonce) = t.last_probe(*who) {
                t.hear(t.now, *who, Heard::answer(nonce, t.seq, *hops));
                t.acknowledge_all();
                t.clear();
            }
        }
    }
}

#[test]
fn who_has_something_to_send_asks_a_better_neighbour_and_who_has_not_waits_for_its_turn() {
    // Of three hundred OBUs each may ask once in fifteen seconds to keep its candidates proven. To
    // be heard often enough, and better for three seconds, is what B has to be in any case.
    let takes_b_soon = |speaks: bool| {
        let mut t = Talk::new();
        t.obus = 300;
        t.settle(A, 2);
        for n in 0..110 {
            if speaks {
                t.tap(CAMERA, SERVER);
            }
            let heard = [(A, 2), (B, 1)];
            let heard = if n < 60 { &heard[..1] } else { &heard };
            t.seq += 1;
            for (who, hops) in heard {
                t.hear(t.now, *who, Heard::heartbeat(t.seq, *hops));
            }
            pass_answering(&mut t, 100, heard);
            t.acknowledge_all();
        }
        t.obu.attachment() == attached(RSU, B, 2)
    };
    assert!(takes_b_soon(true));
    assert!(!takes_b_soon(false));
}

#[test]
fn a_better_neighbour_that_does_not_answer_is_asked_now_and_then_in_a_crowd() {
    let mut t = behind_a();
    t.obus = 100;
    let mut asked = 0;
    for _ in 0..100 {
        t.tap(CAMERA, SERVER);
        t.seq += 1;
        t.hear(t.now, A, Heard::heartbeat(t.seq, 2));
        t.hear(t.now, B, Heard::heartbeat(t.seq, 1));
        for _ in 0..20 {
            asked += t.asked().iter().filter(|whom| **whom == B).count();
            t.clear();
            pass_answering(&mut t, 5, &[(A, 2)]);
        }
    }
    // Ever more rarely, up to once a second.
    assert!((10..=15).contains(&asked), "{asked} in ten seconds");
}

/// On a full channel heartbeats in a row get lost all the time.
#[test]
fn a_better_neighbour_whose_heartbeats_get_lost_now_and_then_is_taken_all_the_same() {
    let mut t = behind_a();
    for _ in 0..60 {
        beat(&mut t, &[(A, 5)]);
    }
    for n in 0..60 {
        let is_lost = n % 10 >= 8;
        let heard = [(A, 5), (B, 1)];
        beat(&mut t, if is_lost { &heard[..1] } else { &heard });
    }
    assert_eq!(t.obu.attachment(), attached(RSU, B, 2));
}

/// All asked it at once, and it did not get round to answering.
#[test]
fn a_better_neighbour_that_did_not_answer_once_is_asked_again_and_taken() {
    let mut t = behind_a();
    for n in 0..160 {
        t.tap(CAMERA, SERVER);
        t.seq += 1;
        t.hear(t.now, A, Heard::heartbeat(t.seq, 5));
        t.hear(t.now, B, Heard::heartbeat(t.seq, 1));
        let heard = [(A, 5), (B, 1)];
        pass_answering(&mut t, 100, if n < 60 { &heard[..1] } else { &heard });
        t.acknowledge_all();
    }
    assert_eq!(t.obu.attachment(), attached(RSU, B, 2));
}

#[test]
fn what_others_send_through_us_is_reason_to_ask_as_soon_as_what_our_clients_send() {
    let mut t = behind_a();
    t.hear(t.now, C, Heard::Reply { origin: C, seq: 1, hops: 0 });
    beat(&mut t, &[(A, 2)]);
    let heard = t.now;
    t.pass(heard + 30);
    t.up(C, C, 16);
    t.clear();
    t.pass(heard + 119);
    assert_eq!(t.asked(), []);
    t.pass(heard + 125);
    assert_eq!(t.asked(), [A]);
}

#[test]
fn in_a_crowd_neighbours_towards_another_rsu_are_not_asked_before_there_was_time_to_find_the_last()
{
    let asked_after = |obus| {
        let mut t = Talk::new();
        t.obus = obus;
        t.settle(A, 1);
        for _ in 0..20 {
            beat(&mut t, &[(A, 1)]);
        }
        let lost = t.now;
        t.rsu = Mac([2, 0, 0, 0, 0, 0x11]);
        t.clear();
        t.hear(lost, B, Heard::heartbeat(1, 1));
        t.hear(lost, A, Heard::Withdrawal { goodbye: false });
        while !t.asked().contains(&B) {
            t.pass(t.now + 1);
            if t.now.is_multiple_of(100) {
                t.hear(t.now, B, Heard::heartbeat(1 + ((t.now - lost) / 100) as u32, 1));
            }
            assert!(t.now < lost + 1000);
        }
        t.now - lost
    };
    assert!(asked_after(1) <= 1, "{}", asked_after(1));
    assert!((220..=280).contains(&asked_after(200)), "{}", asked_after(200));
}

#[test]
fn what_comes_down_is_reason_to_watch_the_upstream_closely() {
    for (comes_down, asked) in [(true, vec![A]), (false, vec![])] {
        let mut t = behind_a();
        t.pass(t.now + 90);
        if comes_down {
            t.down(A, last(US), 1);
        }
        beat(&mut t, &[(A, 2)]);
        t.pass(t.now + 121);
        assert_eq!(t.asked(), asked);
    }
}
