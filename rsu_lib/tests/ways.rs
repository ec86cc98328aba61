//! The tree of upstreams: which way answers and frames take down to an OBU, which words change it,
//! and which do not.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod talk;

use node_lib::control::event::Event;
use node_lib::control::node::Node;
use node_lib::messages::control::Control;
use node_lib::messages::control::ack::AckStatus;
use node_lib::messages::control::announcement::{Announcement, Clients, client_digest};
use node_lib::messages::control::heartbeat::HeartbeatReply;
use node_lib::messages::data::Destination;
use node_lib::messages::way::Next;
use node_lib::messages::{Label, Way};
use node_lib::{Mac, NodeId, Order};

use talk::{
    A, B, C, CAMERA, RELAY, SERVER, SIGN, STRANGER, Talk, US, WITHIN_DS, all_except, id, inner,
};

/// Another relay.
const OTHER: Mac = Mac([2, 0, 0, 0, 0, 0x1f]);

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

/// What the relays find on this way, each in its turn.
fn steps(way: Way<'_>) -> Vec<Next> {
    let mut steps = Vec::new();
    let mut left = way;
    while let Some((next, beyond)) = left.next() {
        steps.push(next);
        left = beyond;
    }
    steps
}

/// Whom a frame was sent to, whom it is for, and what the relays find on its way.
type Sent = (Mac, NodeId, Vec<Next>);

/// To this OBU past these relays and no others.
fn past(relays: &[Mac], obu: Mac) -> Sent {
    let first = *relays.first().unwrap_or(&obu);
    let labels = relays.iter().skip(1).map(|relay| Next::Labelled(Label::of(id(*relay))));
    (first, id(obu), labels.chain(relays.first().map(|_| Next::Destination)).collect())
}

/// How clients' frames were sent down, each to one OBU.
fn sent(t: &Talk) -> Vec<Sent> {
    let way = |destination| match destination {
        Destination::Node { id, way } => (id, steps(way)),
        other => panic!("{other:?}"),
    };
    let sent = t.sent_down().into_iter().map(|(to, destination)| (to, way(destination)));
    sent.map(|(to, (obu, steps))| (to, obu, steps)).collect()
}

/// How a frame from the LAN for this client is sent down now.
fn sent_to(t: &mut Talk, client: Mac) -> Vec<Sent> {
    t.clear();
    t.tap(SERVER, client);
    sent(t)
}

/// Which words were answered, and how the answers were sent down.
fn answers(t: &Talk) -> Vec<(AckStatus, Sent)> {
    t.each(|to, control| match control {
        Control::AnnouncementAck(ack) => Some((ack.status, (to, ack.destination, steps(ack.way)))),
        _ => None,
    })
}

/// The next word of an attached OBU with these clients: that this is its upstream, and that it
/// wants to hear that the RSU knows. Nobody has heard it yet.
fn word(t: &mut Talk, obu: Mac, via: Mac, macs: &[Mac]) -> HeartbeatReply {
    let said = t.words(obu, 1, macs);
    let hops = u8::from(via != US);
    HeartbeatReply { via: id(via), hops, acknowledge: true, ..t.reply_of(&said) }
}

/// An attached OBU with these clients has another upstream, and says so.
fn moves(t: &mut Talk, obu: Mac, via: Mac, macs: &[Mac]) {
    t.moves(obu, via);
    let word = word(t, obu, via, macs);
    t.bring(obu, word.into());
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

/// Made up, or just many.
fn stranger(n: u16) -> Mac {
    Mac([2, 0, 0, 9, (n >> 8) as u8, n as u8])
}

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

/// An upstream that A did not name, in a word that is so many numbers ahead of its last.
fn forge(t: &mut Talk, ahead: u32) -> u32 {
    t.relay(RELAY, US);
    t.announce(A, US, 1, &[CAMERA]);
    let last = t.seq;
    let forged = HeartbeatReply {
        order: Order::new(1, last + ahead),
        acknowledge: false,
        ..word(t, A, RELAY, &[CAMERA])
    };
    t.hear(RELAY, US, forged.into());
    t.seq = last;
    assert_eq!(sent_to(t, CAMERA), [past(&[RELAY], A)], "it is believed");
    assert_eq!(answers(t), [(AckStatus::Known, past(&[], A))], "A is told where it is");
    t.clear();
    last
}

#[test]
fn a_forged_upstream_a_few_numbers_ahead_lasts_until_the_obus_own_words_are_newer() {
    for ahead in 1..=4 {
        let mut t = Talk::new();
        forge(&mut t, ahead);
        for _ in 0..ahead {
            t.reply(A, 1, &[CAMERA], false);
        }
        assert_eq!(sent_to(&mut t, CAMERA), [past(&[RELAY], A)], "{ahead}");
        t.reply(A, 1, &[CAMERA], false);
        assert_eq!(sent_to(&mut t, CAMERA), [past(&[], A)], "{ahead}");
    }
}

#[test]
fn an_obu_for_whom_somebody_names_an_upstream_far_ahead_hears_of_it_at_its_next_word() {
    for ahead in [5, 6, 7, 8, 1000] {
        let mut t = Talk::new();
        forge(&mut t, ahead);
        t.pass(t.now + 100);
        t.clear();
        t.reply(A, 1, &[CAMERA], false);
        assert_eq!(answers(&t), [(AckStatus::SendAll, past(&[], A))], "{ahead}: the way A says");
        // It announces itself, and repeats that until it hears an answer: five times in 300 ms.
        let mut epoch = 1;
        for _ in 0..5 {
            t.clear();
            t.announce(A, US, epoch, &[CAMERA]);
            for (status, sent) in answers(&t).into_iter().filter(|(_, (to, ..))| *to == A) {
                assert_eq!(sent, past(&[], A));
                epoch += u32::from(status == AckStatus::StaleEpoch);
            }
        }
        assert_eq!(sent_to(&mut t, CAMERA), [past(&[], A)], "{ahead}");
    }
}

/// A, and behind it B, of whom both the next word names another upstream, or says what `forge`
/// makes of it.
fn forged(forge: impl Fn(HeartbeatReply) -> HeartbeatReply) -> Talk {
    let mut t = Talk::new();
    t.relay(RELAY, US);
    t.announce(A, US, 1, &[CAMERA]);
    t.announce(B, A, 1, &[SIGN]);
    t.clear();
    let word = forge(word(&mut t, A, RELAY, &[CAMERA]));
    t.hear(RELAY, US, HeartbeatReply { acknowledge: false, ..word }.into());
    t
}

#[test]
fn an_obu_is_told_where_it_was_with_the_first_frame_for_it_or_for_one_behind_it() {
    for (client, sent) in [(CAMERA, past(&[RELAY], A)), (SIGN, past(&[RELAY, A], B))] {
        let mut t = forged(|word| word);
        assert_eq!(answers(&t), []);
        assert_eq!(sent_to(&mut t, client), std::slice::from_ref(&sent));
        let told = t.each(|to, control| match control {
            Control::AnnouncementAck(ack) => Some((to, ack.status, ack.epoch, ack.seq.0)),
            _ => None,
        });
        assert_eq!(told, [(A, AckStatus::Known, 1, t.seq)]);
        assert_eq!(sent_to(&mut t, client), [sent]);
        assert_eq!(answers(&t), [], "once");
    }
}

#[test]
fn who_has_clients_that_speak_is_told_only_if_a_frame_of_theirs_comes_another_way() {
    for (by, told) in [(RELAY, vec![]), (A, vec![(AckStatus::Known, past(&[], A))])] {
        let mut t = Talk::new();
        t.relay(RELAY, US);
        t.announce(A, US, 1, &[CAMERA]);
        t.up(A, CAMERA, SERVER);
        let word = word(&mut t, A, RELAY, &[CAMERA]);
        t.hear(RELAY, US, HeartbeatReply { acknowledge: false, ..word }.into());
        sent_to(&mut t, CAMERA);
        assert_eq!(answers(&t), [], "its next frame will tell");
        t.clear();
        t.moves(A, if by == A { US } else { by });
        t.up(A, CAMERA, SERVER);
        assert_eq!(answers(&t), told);
        sent_to(&mut t, CAMERA);
        assert_eq!(answers(&t), [], "once");
    }
}

#[test]
fn whose_clients_have_fallen_silent_is_told_all_the_same() {
    let mut t = Talk::new();
    t.relay(RELAY, US);
    t.announce(A, US, 1, &[CAMERA]);
    t.up(A, CAMERA, SERVER);
    for (ms, told) in [(1000, 0), (1099, 0), (1100, 1)] {
        t.pass(t.now / 10_000 * 10_000 + ms);
        if ms == 1000 {
            let word = word(&mut t, A, RELAY, &[CAMERA]);
            t.hear(RELAY, US, HeartbeatReply { acknowledge: false, ..word }.into());
        }
        sent_to(&mut t, CAMERA);
        assert_eq!(answers(&t).len(), told, "{ms} ms after its frame");
    }
}

#[test]
fn who_has_said_a_word_since_is_not_told_where_it_was() {
    for (ms, told) in [(u64::from(WITHIN_DS) * 100 - 1, 1), (u64::from(WITHIN_DS) * 100, 0)] {
        let mut t = forged(|word| word);
        t.pass(t.now + ms);
        sent_to(&mut t, CAMERA);
        assert_eq!(answers(&t).len(), told, "after {ms} ms");
    }
}

#[test]
fn an_obu_whose_clients_are_gone_with_a_word_is_told_at_once() {
    let gone = |word| HeartbeatReply { standby: true, ..word };
    let t = forged(gone);
    assert_eq!(answers(&t), [(AckStatus::Known, past(&[], A))]);
    // Told just now, it is told again when that is over, though no frame shows that it is missed.
    let mut t = forged(gone);
    t.announce(A, US, 2, &[CAMERA]);
    let standby = gone(word(&mut t, A, RELAY, &[CAMERA]));
    let again = HeartbeatReply { epoch: 2, acknowledge: false, ..standby };
    t.clear();
    t.hear(RELAY, US, again.into());
    assert_eq!(answers(&t), []);
    t.pass(t.now + 250);
    assert_eq!(answers(&t), [(AckStatus::Known, past(&[], A))]);
}

#[test]
fn of_an_obu_and_its_relay_that_were_both_elsewhere_the_relay_is_told_first() {
    let mut t = forged(|word| word);
    let b = word(&mut t, B, RELAY, &[SIGN]);
    t.hear(RELAY, US, HeartbeatReply { acknowledge: false, ..b }.into());
    let told = |t: &mut Talk| {
        sent_to(t, SIGN);
        answers(t).into_iter().map(|(_, told)| told).collect::<Vec<_>>()
    };
    assert_eq!(told(&mut t), [past(&[], A)]);
    t.pass(t.now + 49);
    assert_eq!(told(&mut t), []);
    t.announce(A, US, 2, &[CAMERA]);
    t.pass(t.now + 51);
    assert_eq!(told(&mut t), [past(&[RELAY], A)], "it was there, as far as is known");
    t.pass(t.now + 50);
    assert_eq!(told(&mut t), [past(&[A], B)]);
}

#[test]
fn a_jump_is_taken_back_by_one_word_above_what_the_obu_is_told() {
    for (epoch, is_believed) in [(1, false), (2, true)] {
        let mut t = Talk::new();
        t.relay(RELAY, US);
        t.announce(A, US, 1, &[CAMERA]);
        let seq = t.seq;
        let word = word(&mut t, A, RELAY, &[CAMERA]);
        for n in 1..3 {
            t.pass(t.now + 50);
            t.clear();
            let order = Order::new(900, n);
            let jump = HeartbeatReply { order, epoch: 70, acknowledge: false, ..word };
            t.hear(RELAY, US, jump.into());
        }
        assert_eq!(t.acks(), [(A, AckStatus::StaleEpoch, 1)], "which of its words is known");
        t.seq = seq;
        t.clear();
        t.announce(A, US, epoch, &[CAMERA]);
        assert_eq!(!answers(&t).is_empty(), is_believed);
        let way = if is_believed { past(&[], A) } else { past(&[RELAY], A) };
        assert_eq!(sent_to(&mut t, CAMERA), [way], "{epoch}");
    }
}

#[test]
fn a_copy_of_a_word_and_one_that_was_overtaken_change_no_way() {
    let mut t = Talk::new();
    t.relay(RELAY, US);
    t.relay(OTHER, US);
    t.announce(A, US, 1, &[CAMERA]);
    let overtaken = word(&mut t, A, RELAY, &[CAMERA]);
    let last = word(&mut t, A, OTHER, &[CAMERA]);
    t.hear(OTHER, US, last.into());
    sent_to(&mut t, CAMERA);
    t.clear();
    t.hear(RELAY, US, overtaken.into());
    assert_eq!((answers(&t), sent_to(&mut t, CAMERA)), (vec![], vec![past(&[OTHER], A)]));
    // The last one once more.
    t.hear(OTHER, US, last.into());
    assert_eq!((answers(&t), sent_to(&mut t, CAMERA)), (vec![], vec![past(&[OTHER], A)]));
}

#[test]
fn of_two_words_with_one_number_the_second_changes_no_way_and_who_said_it_is_asked() {
    for (by, via, hops) in [(RELAY, RELAY, 1), (C, US, 0)] {
        let mut t = Talk::new();
        t.relay(RELAY, US);
        t.relay(OTHER, US);
        t.announce(A, US, 1, &[CAMERA]);
        let last = word(&mut t, A, OTHER, &[CAMERA]);
        t.hear(OTHER, US, last.into());
        t.clear();
        t.hear(by, US, HeartbeatReply { via: id(via), hops, ..last }.into());
        assert_eq!(
            answers(&t).iter().map(|(status, _)| *status).collect::<Vec<_>>(),
            [AckStatus::SendAll]
        );
        assert_eq!(sent_to(&mut t, CAMERA), [past(&[OTHER], A)]);
    }
}

#[test]
fn a_word_far_from_all_before_changes_a_way_only_when_it_is_repeated_and_the_obu_is_silent() {
    for is_silent in [false, true] {
        let mut t = Talk::new();
        t.relay(RELAY, US);
        t.announce(A, US, 1, &[CAMERA]);
        let ours = t.seq;
        t.clear();
        for (n, at) in [0, 49, 50].into_iter().enumerate() {
            t.pass(1000 + at);
            if !is_silent {
                t.seq = ours + n as u32;
                t.reply(A, 1, &[CAMERA], false);
            }
            assert_eq!(sent_to(&mut t, CAMERA), [past(&[], A)], "{at} ms");
            let order = Order::new(1, ours + 5000 + n as u32);
            let far = HeartbeatReply { order, ..word(&mut t, A, RELAY, &[CAMERA]) };
            t.hear(RELAY, US, far.into());
            if at < 50 || !is_silent {
                assert_eq!(answers(&t), []);
            }
        }
        let way = if is_silent { past(&[RELAY], A) } else { past(&[], A) };
        assert_eq!(sent_to(&mut t, CAMERA), [way]);
    }
}

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

#[test]
fn a_flood_says_after_which_heartbeat_it_was_taken_and_goes_out_once() {
    let mut t = Talk::new();
    t.relay(RELAY, US);
    t.announce(A, US, 1, &[CAMERA]);
    t.announce(B, RELAY, 1, &[SIGN]);
    t.announce(C, B, 1, &[]);
    t.pass(450);
    let last = t.heartbeats().last().unwrap().1.order.seq;
    let unknown = Mac([2, 0, 0, 0, 1, 99]);
    for group in
        [Mac::BROADCAST, Mac([1, 0, 0x5e, 1, 1, 1]), Mac([0x33, 0x33, 0, 0, 0, 1]), unknown]
    {
        t.clear();
        t.tap(SERVER, group);
        let to_all = (Mac::BROADCAST, all_except(NodeId::NONE, last.0));
        assert_eq!((t.sent_down(), t.taps.len()), (vec![to_all], 0), "{group}");
        t.clear();
        t.up(C, STRANGER, group);
        let to_others = (Mac::BROADCAST, all_except(id(C), last.0));
        assert_eq!((t.sent_down(), t.taps[0][..6].to_vec()), (vec![to_others], group.0.to_vec()));
    }
    // The next heartbeat, and the next flood.
    t.pass(t.now + 120);
    t.clear();
    t.tap(SERVER, Mac::BROADCAST);
    assert_eq!(t.sent_down(), [(Mac::BROADCAST, all_except(NodeId::NONE, last.0 + 1))]);
}

#[test]
fn a_flood_goes_by_unicast_while_there_is_one_child_however_many_are_behind_it() {
    let mut t = Talk::new();
    t.relay(RELAY, US);
    t.announce(A, RELAY, 1, &[CAMERA]);
    t.announce(B, RELAY, 1, &[SIGN]);
    t.announce(C, US, 1, &[]);
    let flooded = |t: &mut Talk| {
        t.clear();
        t.tap(SERVER, Mac::BROADCAST);
        t.sent_down().into_iter().map(|(to, _)| to).collect::<Vec<_>>()
    };
    assert_eq!(flooded(&mut t), [Mac::BROADCAST]);
    moves(&mut t, C, B, &[]);
    assert_eq!(flooded(&mut t), [RELAY]);
    moves(&mut t, C, US, &[]);
    assert_eq!(flooded(&mut t), [Mac::BROADCAST]);
    t.reply(C, 1, &[], true);
    assert_eq!(flooded(&mut t), [RELAY]);
}

#[test]
fn a_flood_for_whom_there_is_no_way_is_counted_and_one_for_nobody_is_not() {
    let mut t = Talk::new();
    t.tap(SERVER, Mac::BROADCAST);
    assert_eq!(t.rsu.counters().drop_no_route, 0);
    // Its relay has not said who its upstream is.
    t.announce(A, RELAY, 1, &[CAMERA]);
    assert_eq!(t.rsu.counters().drop_no_route, 1, "the answer");
    t.clear();
    t.tap(SERVER, Mac::BROADCAST);
    t.tap(SERVER, STRANGER);
    assert_eq!((t.sent_down(), t.rsu.counters().drop_no_route), (vec![], 3));
    t.up(A, CAMERA, Mac::BROADCAST);
    assert_eq!(t.rsu.counters().drop_no_route, 3, "it is for nobody else");
}

#[test]
fn a_stranger_beside_us_is_asked_at_its_first_frame_and_one_behind_a_relay_at_its_first_word() {
    let mut t = Talk::new();
    t.relay(RELAY, US);
    t.clear();
    t.up(A, CAMERA, SERVER);
    assert_eq!(answers(&t), [(AckStatus::SendAll, past(&[], A))]);
    // A frame does not say which way it came.
    t.clear();
    t.moves(B, RELAY);
    t.up(B, SIGN, SERVER);
    assert_eq!((answers(&t), t.taps.len()), (vec![], 1), "its frame is carried all the same");
    t.reply(B, 1, &[SIGN], false);
    assert_eq!(answers(&t), [(AckStatus::SendAll, past(&[RELAY], B))]);
    t.clear();
    t.announce(B, RELAY, 1, &[SIGN]);
    assert_eq!(answers(&t), [(AckStatus::Accepted, past(&[RELAY], B))]);
}

#[test]
fn strangers_that_cannot_be_asked_take_no_question_from_those_that_can() {
    let mut t = Talk::new();
    t.relay(RELAY, US);
    t.clear();
    for n in 0..100 {
        t.moves(stranger(n), RELAY);
        t.up(stranger(n), CAMERA, SERVER);
    }
    t.up(A, SIGN, SERVER);
    assert_eq!(answers(&t), [(AckStatus::SendAll, past(&[], A))]);
    assert_eq!((t.taps.len(), t.rsu.counters().drop_no_route), (101, 0), "no frame was dropped");
}

#[test]
fn who_left_and_sends_a_frame_again_is_asked_the_way_it_was() {
    let mut t = Talk::new();
    t.relay(RELAY, US);
    t.announce(A, RELAY, 1, &[CAMERA]);
    t.reply(A, 1, &[CAMERA], true);
    t.pass(400);
    t.clear();
    t.up(A, CAMERA, SERVER);
    assert_eq!(answers(&t), [(AckStatus::SendAll, past(&[RELAY], A))]);
}
