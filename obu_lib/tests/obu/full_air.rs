//! Where the air is full of heartbeats: who holds back, and who waits for whom.

use node_lib::Mac;
use node_lib::messages::flags::STRIDE_MAX;

use crate::talk::{A, C, CAMERA, Heard, RSU, SERVER, Talk};

/// One hop from an RSU that so many relays repeat, farther away than we are.
fn beat_among(t: &mut Talk, relays: u8) {
    t.pass(t.now + 50);
    t.beat(RSU, 0);
    if let Some(nonce) = t.last_probe(RSU) {
        t.hear(t.now, RSU, Heard::answer(nonce, t.seq, 0));
        t.forget_probes();
    }
    t.pass(t.now + 50);
    for n in 0..relays {
        t.hear(t.now, Mac([2, 0, 0, 0, 4, n]), Heard::heartbeat(t.seq, 3));
    }
}

fn among(relays: u8) -> Talk {
    let mut t = Talk::new();
    t.settle(RSU, 0);
    (0..40).for_each(|_| beat_among(&mut t, relays));
    t.clear();
    t
}

/// Number and stride of each heartbeat we relay within the next forty.
fn brought(t: &mut Talk, relays: u8) -> Vec<(u32, u8)> {
    (0..40).for_each(|_| beat_among(t, relays));
    t.heartbeats().iter().map(|heartbeat| (heartbeat.order.seq.0, heartbeat.stride)).collect()
}

#[test]
fn among_few_an_idle_relay_brings_every_heartbeat() {
    let brought = brought(&mut among(8), 8);
    assert!((39..=40).contains(&brought.len()), "{brought:?}");
    assert!(brought.iter().all(|(_, stride)| *stride == 0), "{brought:?}");
}

#[test]
fn in_full_air_an_idle_relay_brings_every_fourth_and_says_so() {
    let brought = brought(&mut among(20), 20);
    assert_eq!(brought.len(), 10, "{brought:?}");
    assert!(brought.iter().all(|(seq, stride)| seq % 4 == 0 && *stride == STRIDE_MAX));
}

#[test]
fn with_the_first_frame_it_brings_all_or_every_second_of_a_crowd() {
    // Whatever its RSU says: it may be one of many that have few OBUs each.
    for (obus, relays, each) in [(1, 14, 1), (200, 14, 1), (1, 20, 2), (200, 20, 2)] {
        let mut t = among(relays);
        t.obus = obus;
        (0..10).for_each(|_| beat_among(&mut t, relays));
        t.tap(CAMERA, SERVER);
        (0..4).for_each(|_| beat_among(&mut t, relays));
        t.clear();
        let brought = brought(&mut t, relays);
        let case = format!("{obus} OBUs, {relays} relays: {brought:?}");
        assert!((40 / each - 1..=40 / each).contains(&brought.len()), "{case}");
        assert!(brought.iter().all(|(seq, stride)| seq % (1 << stride) == 0), "{case}");
        assert!(brought.iter().all(|(_, stride)| 1 << stride == each), "{case}");
    }
}

/// A link to the upstream.
#[derive(Clone, Copy, PartialEq)]
enum Link {
    /// Others send through us; many of its heartbeats got lost.
    Lossy,
    /// None did, and nobody sends through us.
    Unused,
    /// None did, and others send through us.
    Steady,
}

/// For how many milliseconds after its last heartbeat an upstream of this stride is believed that
/// answers nothing, where so many others are heard.
fn believed_for(stride: u8, others: u8, link: Link) -> u64 {
    let mut t = Talk::new();
    // In a crowd a silent upstream is asked only once.
    t.obus = 200;
    t.stride = stride;
    t.is_lossy = link == Link::Lossy;
    t.settle(A, 1);
    for seq in (5..=112).filter(|seq| seq % (1 << stride) == 0) {
        t.pass(u64::from(seq) * 100);
        t.seq = seq - 1;
        if link != Link::Lossy || stride > 0 || seq % 4 != 2 {
            t.beat(A, 1);
        }
        hear_others(&mut t, others);
        if link != Link::Unused {
            t.hear(t.now, C, Heard::Reply { origin: C, seq, hops: 0 });
        }
        t.answer_probes_of(A);
        if t.announcements() > 0 {
            t.acknowledge(A);
            t.clear();
        }
    }
    let last = t.now;
    while t.obu.attachment().is_some() {
        t.pass(t.now + 5);
        if (t.now - last).is_multiple_of(100) {
            hear_others(&mut t, others);
        }
    }
    t.now - last
}

/// It is asked 20 to 70 ms after that, and has 50 ms to answer.
#[test]
fn where_few_are_heard_two_heartbeats_may_stay_away() {
    for link in [Link::Lossy, Link::Unused] {
        for (stride, for_ms) in [(0, 270..=325), (1, 470..=525), (STRIDE_MAX, 870..=925)] {
            let believed = believed_for(stride, 2, link);
            assert!(for_ms.contains(&believed), "stride {stride}: {believed}");
        }
    }
}

#[test]
fn among_many_four_may_and_nobody_is_borne_with_for_longer_than_remembered() {
    for (link, stride, for_ms) in [
        (Link::Unused, 0, 470..=525),
        (Link::Unused, 1, 870..=925),
        (Link::Unused, STRIDE_MAX, 1300..=1305),
        // Of a link that loses a quarter three, and four of one that loses half or more.
        (Link::Lossy, 0, 370..=425),
        (Link::Lossy, 1, 870..=925),
        (Link::Lossy, STRIDE_MAX, 1300..=1305),
    ] {
        let believed = believed_for(stride, 20, link);
        assert!(for_ms.contains(&believed), "stride {stride}: {believed}");
    }
}

#[test]
fn no_more_than_chance_explains_may_where_others_send_through_us() {
    for others in [2, 20] {
        for (stride, for_ms) in [(0, 270..=325), (1, 270..=325), (STRIDE_MAX, 470..=525)] {
            let believed = believed_for(stride, others, Link::Steady);
            assert!(for_ms.contains(&believed), "stride {stride}, {others} others: {believed}");
        }
    }
}

/// So many others, further away, each with the heartbeat A brought last.
fn hear_others(t: &mut Talk, others: u8) {
    for n in 0..others {
        t.hear(t.now, Mac([2, 0, 0, 0, 5, n]), Heard::heartbeat(t.seq, 3));
    }
}

#[test]
fn who_starts_where_the_air_is_full_takes_back_what_it_may_have_said() {
    let withdrawals = |stride, others| {
        let mut t = Talk::new();
        t.stride = stride;
        for n in 1..=6 {
            t.seq = n as u32;
            t.hear(n * 50, Mac([2, 0, 0, 0, 4, n as u8]), Heard::heartbeat(t.seq, 2));
            hear_others(&mut t, others);
        }
        t.pass(340);
        t.withdrawals()
    };
    assert_eq!(withdrawals(0, 0), 0);
    assert_eq!(withdrawals(STRIDE_MAX, 0), 3, "others hold back");
    assert_eq!(withdrawals(0, 14), 3, "full of heartbeats");
}
