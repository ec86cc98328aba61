//! The tree that the words make: ways of any length, circles that are refused, relays that move.

use node_lib::Mac;
use node_lib::control::event::Event;
use node_lib::control::node::Node;
use node_lib::messages::control::ack::AckStatus;
use node_lib::messages::control::announcement::{Announcement, Clients, client_digest};
use node_lib::messages::control::heartbeat::HeartbeatReply;

use super::seen::{OTHER, answers, moves, past, sent_to, word};
use crate::talk::{A, B, C, CAMERA, RELAY, SERVER, SIGN, STRANGER, Talk, US, WITHIN_DS, id, inner};

/// The OBU so many hops away in a [`chain`].
fn hop(n: u8) -> Mac {
    Mac([2, 0, 0, 0, 6, n])
}

/// Registers OBUs one behind the other. The last one, so many hops away, is attached with the
/// camera; the others are on standby. Returns them, the nearest first.
fn chain(t: &mut Talk, hops: u8) -> Vec<Mac> {
    let upstream = |n| if n == 1 { US } else { hop(n - 1) };
    for n in 1..hops {
        t.relay(hop(n), upstream(n));
    }
    t.clear();
    t.announce(hop(hops), upstream(hops), 1, &[CAMERA]);
    (1..=hops).map(hop).collect()
}

/// A neighbour of the RSU brings it the announcement of an OBU with this upstream.
fn announces(t: &mut Talk, obu: Mac, (via, by): (Mac, Mac), epoch: u32, macs: &[Mac]) {
    let said = t.words(obu, epoch, macs);
    let mut groups = Vec::new();
    Clients::encode(&said.clients, &mut groups);
    let announcement = Announcement {
        rsu: id(US),
        origin: id(obu),
        order: said.order,
        epoch,
        via: id(via),
        digest: client_digest(&said.clients),
        part: 0,
        parts: 1,
        within_ds: WITHIN_DS,
        at_risk_10ms: 0,
        mtu: 1500,
        hops: u8::from(by != obu),
        standby: false,
        clients: Clients::parse(&groups).unwrap(),
    };
    t.hear(by, US, announcement.into());
}

#[test]
fn answers_and_frames_name_the_relays_in_order_and_go_to_the_first() {
    for hops in [1, 2, 3, 4, 16] {
        let mut t = Talk::new();
        let all = chain(&mut t, hops);
        let (obu, relays) = all.split_last().unwrap();
        assert_eq!(answers(&t), [(AckStatus::Accepted, past(relays, *obu))], "{hops} hops");
        assert_eq!(sent_to(&mut t, CAMERA), [past(relays, *obu)], "{hops} hops");
        let attached: Vec<_> =
            t.rsu.attached().iter().map(|known| (known.obu, known.hops)).collect();
        assert_eq!(attached, [(id(*obu), Some(hops))]);
    }
}

#[test]
fn labels_stand_in_the_frame_behind_the_header_and_are_padded_to_four_bytes() {
    let mut t = Talk::new();
    chain(&mut t, 3);
    sent_to(&mut t, CAMERA);
    let (_, frame) = &t.sent[0];
    assert_eq!(frame[14 + 16], 2, "relays yet to pass");
    // By Python's zlib.crc32, the checksum of 02:00:00:00:06:02 is 0x445ec602.
    assert_eq!(frame[14 + 22..14 + 26], [0xc6, 0x02, 0, 0]);
    assert_eq!(frame[14 + 26..], inner(SERVER, CAMERA));
}

#[test]
fn what_is_seventeen_hops_away_is_not_sent_to_but_counted_and_reported_once_in_ten_seconds() {
    let mut t = Talk::new();
    let all = chain(&mut t, 17);
    let far = all[16];
    t.announce(all[15], all[14], 1, &[SIGN]);
    assert_eq!(answers(&t), [(AckStatus::Accepted, past(&all[..15], all[15]))], "sixteen are");
    assert_eq!(t.rsu.counters().drop_hop_limit, 1, "the answer to the other one");
    t.clear();
    for second in 0..9 {
        assert_eq!(sent_to(&mut t, CAMERA), []);
        assert_eq!(sent_to(&mut t, SIGN), [past(&all[..15], all[15])]);
        for relay in &all[..15] {
            t.reply_on_standby(*relay, 1, &[]);
        }
        t.reply(all[15], 1, &[SIGN], false);
        t.reply(far, 1, &[CAMERA], false);
        t.pass(1000 * (second + 1));
    }
    assert_eq!(t.rsu.counters().drop_hop_limit, 1 + 9);
    let told = t.events().into_iter().filter(|event| matches!(event, Event::TooFar { .. }));
    assert_eq!(told.collect::<Vec<_>>(), [Event::TooFar { obu: id(far), hops_max: 16 }]);
    let hops: Vec<_> = t.rsu.attached().iter().map(|known| known.hops).collect();
    assert_eq!(hops, [Some(16), None]);
    // It comes a hop nearer.
    moves(&mut t, far, all[14], &[CAMERA]);
    assert_eq!(sent_to(&mut t, CAMERA), [past(&all[..15], far)]);
}

#[test]
fn an_upstream_that_closes_a_circle_of_two_is_refused_and_taken_when_the_other_has_moved() {
    let mut t = Talk::new();
    t.announce(A, US, 1, &[CAMERA]);
    t.announce(B, A, 1, &[SIGN]);
    // B has moved beside the RSU and A behind B. What A says of it comes first.
    let first = word(&mut t, A, B, &[CAMERA]);
    t.clear();
    t.hear(B, US, first.into());
    assert_eq!((answers(&t), t.rsu.counters().edges_refused), (vec![], 1));
    announces(&mut t, A, (B, B), 2, &[CAMERA]);
    assert_eq!(
        (answers(&t), t.rsu.counters().edges_refused),
        (vec![], 2),
        "in an announcement too"
    );
    assert_eq!(sent_to(&mut t, CAMERA), [past(&[], A)], "as it was before");
    assert_eq!(sent_to(&mut t, SIGN), [past(&[A], B)]);
    t.clear();
    moves(&mut t, B, US, &[SIGN]);
    t.hear(B, US, first.into());
    let accepted = [past(&[], B), past(&[B], A)].map(|sent| (AckStatus::Accepted, sent));
    assert_eq!((answers(&t), t.rsu.counters().edges_refused), (accepted.to_vec(), 2));
    assert_eq!(sent_to(&mut t, CAMERA), [past(&[B], A)]);
    assert_eq!(sent_to(&mut t, SIGN), [past(&[], B)]);
}

#[test]
fn an_upstream_that_closes_a_circle_of_three_is_refused_and_taken_when_another_has_moved() {
    let mut t = Talk::new();
    t.announce(A, US, 1, &[CAMERA]);
    t.relay(B, A);
    t.announce(C, B, 1, &[SIGN]);
    let first = word(&mut t, A, C, &[CAMERA]);
    t.clear();
    t.hear(C, US, first.into());
    assert_eq!((answers(&t), t.rsu.counters().edges_refused), (vec![], 1));
    assert_eq!(sent_to(&mut t, SIGN), [past(&[A, B], C)]);
    moves(&mut t, C, US, &[SIGN]);
    t.hear(C, US, first.into());
    assert_eq!(t.rsu.counters().edges_refused, 1);
    assert_eq!(sent_to(&mut t, SIGN), [past(&[], C)]);
    assert_eq!(sent_to(&mut t, CAMERA), [past(&[C], A)]);
    // B said nothing. It is behind A all the same.
    t.clear();
    t.moves(A, C);
    t.reply_on_standby(B, 2, &[]);
    let asked = HeartbeatReply { standby: true, ..word(&mut t, B, A, &[]) };
    t.hear(C, US, HeartbeatReply { epoch: 2, ..asked }.into());
    assert_eq!(answers(&t), [(AckStatus::Known, past(&[C, A], B))]);
}

#[test]
fn an_obu_that_is_new_and_behind_itself_is_not_registered() {
    let mut t = Talk::new();
    t.relay(B, A);
    t.clear();
    announces(&mut t, A, (B, B), 1, &[CAMERA]);
    assert_eq!((answers(&t), t.rsu.counters().edges_refused), (vec![], 1));
    assert_eq!((t.rsu.attached().len(), t.rsu.clients_of(id(A))), (0, vec![]));
    t.relay(B, US);
    t.clear();
    announces(&mut t, A, (B, B), 1, &[CAMERA]);
    assert_eq!(answers(&t), [(AckStatus::Accepted, past(&[B], A))]);
    // One that names itself says nothing that has a meaning.
    let itself = word(&mut t, A, A, &[CAMERA]);
    t.clear();
    t.hear(B, US, itself.into());
    assert_eq!((answers(&t), t.rsu.counters().drop_malformed), (vec![], 1));
    assert_eq!(sent_to(&mut t, CAMERA), [past(&[B], A)]);
}

#[test]
fn one_word_of_a_relay_moves_the_ways_to_all_behind_it() {
    for is_attached in [false, true] {
        let mut t = Talk::new();
        t.relay(OTHER, US);
        if is_attached {
            t.announce(RELAY, US, 1, &[]);
        } else {
            t.relay(RELAY, US);
        }
        t.announce(A, RELAY, 1, &[CAMERA]);
        t.announce(B, RELAY, 1, &[SIGN]);
        t.announce(C, B, 1, &[STRANGER]);
        assert_eq!(sent_to(&mut t, STRANGER), [past(&[RELAY, B], C)]);
        let heard = t.rsu.counters().ctl_rx_frames;
        t.clear();
        let status = if is_attached {
            moves(&mut t, RELAY, OTHER, &[]);
            AckStatus::Accepted
        } else {
            t.relay(RELAY, OTHER);
            AckStatus::Known
        };
        assert_eq!(answers(&t), [(status, past(&[OTHER], RELAY))], "and is answered the new way");
        assert_eq!(t.rsu.counters().ctl_rx_frames, heard + 1);
        for (client, way) in [
            (CAMERA, past(&[OTHER, RELAY], A)),
            (SIGN, past(&[OTHER, RELAY], B)),
            (STRANGER, past(&[OTHER, RELAY, B], C)),
        ] {
            assert_eq!(sent_to(&mut t, client), [way]);
        }
    }
}
