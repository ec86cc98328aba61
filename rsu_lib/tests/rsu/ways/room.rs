//! Relays that only others need keep their places when the table of OBUs is full.

use node_lib::control::node::Node;
use node_lib::messages::control::ack::AckStatus;

use super::seen::{OTHER, answers, past, sent_to, stranger};
use crate::talk::{A, CAMERA, RELAY, Talk, US, id};

#[test]
fn relays_on_standby_keep_their_places_in_a_full_table_however_many_strangers_come() {
    let mut t = Talk::new();
    // These have been unheard for longest, and have the lowest ids.
    t.relay(RELAY, US);
    t.relay(OTHER, RELAY);
    t.announce(A, OTHER, 1, &[CAMERA]);
    t.pass(10);
    for n in 0..1021 {
        t.stand_by(stranger(n), 1, &[]);
    }
    assert_eq!(t.rsu.counters().evicted, 0);
    for n in 1021..4000 {
        if n % 2 == 0 {
            t.stand_by(stranger(n), 1, &[]);
        } else {
            t.announce(stranger(n), US, 1, &[]);
        }
    }
    assert!(t.rsu.counters().evicted >= 1021, "the table was full");
    assert!(t.rsu.counters().obus_refused > 0, "and in the end of those that are not pushed out");
    assert_eq!(sent_to(&mut t, CAMERA), [past(&[RELAY, OTHER], A)]);
}

#[test]
fn a_relay_on_standby_that_is_asked_for_its_place_keeps_it_with_a_word() {
    let mut t = Talk::new();
    t.relay(RELAY, US);
    t.announce(A, RELAY, 1, &[CAMERA]);
    for n in 0..1022 {
        t.announce(stranger(n), US, 1, &[]);
    }
    t.pass(1500);
    let mut asked = 0;
    for round in 0..20 {
        t.clear();
        t.announce(stranger(2000), US, 1, &[]);
        for (status, (to, obu, _)) in answers(&t) {
            if obu == id(RELAY) {
                assert_eq!((status, to), (AckStatus::SendAll, RELAY));
                asked += 1;
                t.relay(RELAY, US);
            }
        }
        t.reply(A, 1, &[CAMERA], false);
        t.pass(1600 + 100 * round);
    }
    assert!(asked > 0, "nobody asked it");
    assert_eq!(sent_to(&mut t, CAMERA), [past(&[RELAY], A)]);
}
