//! Which heartbeats of an RSU an OBU believes: those of its present count, and another one's when
//! that is silent.

use node_lib::Order;
use node_lib::control::node::Node;

use crate::talk::{A, Heard, RSU, Talk, attached, id};

/// Behind A, idle; heartbeat 5 was just heard and passed on.
fn settled() -> Talk {
    let mut t = Talk::settled_behind(A);
    t.pass(500);
    t.beat(A, 1);
    t.pass(520);
    t.acknowledge(A);
    assert_eq!(t.obu.advertised_for(id(RSU)).unwrap().order, Order::new(1, 5));
    t.clear();
    t
}

fn says(t: &mut Talk, ms: u64, boot: u32, seq: u32) -> bool {
    let before = t.obu.counters().drop_doubtful;
    t.hear(ms, A, Heard::Heartbeat { boot, seq, hops: 1, via: None });
    t.obu.counters().drop_doubtful == before
}

#[test]
fn a_number_is_of_the_present_count_as_far_as_heartbeats_may_have_been_missed() {
    let is_believed = |ms, seq| says(&mut settled(), ms, 1, seq);
    // Eight by which one way may be faster than another, and two for each interval since the last.
    assert!(is_believed(550, 5 + 8) && !is_believed(550, 5 + 9));
    assert!(is_believed(600, 5 + 10) && !is_believed(600, 5 + 11));
    assert!(is_believed(700, 5 + 12) && !is_believed(700, 5 + 13));
    assert!(!is_believed(719, 5000) && is_believed(721, 5000), "late: it may have started again");
}

#[test]
fn heartbeats_that_come_two_seconds_late_are_no_other_count() {
    let mut t = Talk::settled_behind(A);
    for beat in 5..30 {
        t.pass(beat * 100);
        t.beat(A, 1);
        t.answer_probes_of(A);
    }
    t.pass(t.now + 50);
    let advertised = t.obu.advertised_for(id(RSU));
    // Nothing new for so long that an earlier count would be believed.
    for (ms, seq) in [(3200, 9), (3250, 11), (3300, 12), (3350, 13)] {
        assert!(says(&mut t, ms, 1, seq));
    }
    assert_eq!(t.obu.advertised_for(id(RSU)), advertised);
    assert!(says(&mut t, 3360, 1, advertised.unwrap().order.seq.0 - 20));
    assert!(!says(&mut t, 3370, 1, advertised.unwrap().order.seq.0 - 21));
}

#[test]
fn so_are_two_seconds_when_heartbeats_follow_each_other_faster() {
    let mut t = settled();
    t.rhythm.tick_ms = 10;
    for beat in 1..300_u32 {
        assert!(says(&mut t, 500 + u64::from(beat) * 10, 1, 5 + beat));
    }
    // Those to come are late for longer than one of another count would have to be.
    let silence = t.now + 100;
    assert!(says(&mut t, silence, 1, 304 - 200), "two seconds behind");
    assert!(!says(&mut t, silence + 1, 1, 304 - 201));
}

#[test]
fn they_are_the_same_two_seconds_when_the_rsu_sends_fewer_of_them() {
    let mut t = settled();
    t.rhythm.pace = 2;
    for beat in 2..30_u32 {
        assert!(says(&mut t, u64::from(beat) * 400, 1, 4 * beat));
    }
    let now = t.now;
    assert!(says(&mut t, now, 1, 116 - 20), "two seconds behind");
    assert!(!says(&mut t, now + 1, 1, 116 - 21));
}

#[test]
fn a_later_count_is_believed_at_its_second_word_when_the_present_one_misses_a_heartbeat() {
    let mut t = settled();
    assert!(!says(&mut t, 560, 2, 1) && !says(&mut t, 619, 2, 2), "not late yet");
    assert!(says(&mut t, 621, 2, 3));
    assert_eq!(t.obu.attachment(), attached(RSU, A, 2));
    t.pass(680);
    assert_eq!(t.heartbeats().last().unwrap().order, Order::new(2, 3));
    assert!(t.announcements() > 0, "it has forgotten us");
    let mut t = settled();
    assert!(!says(&mut t, 560, 2, 1) && !says(&mut t, 621, 2, 1), "the same word is no second one");
    assert!(!says(&mut t, 625, 3, 1), "nor is that of yet another start");
}

#[test]
fn a_later_count_is_not_believed_while_the_present_one_goes_on() {
    let mut t = settled();
    for n in 1..30 {
        assert!(!says(&mut t, 500 + n * 100 - 10, 7, n as u32));
        assert!(says(&mut t, 500 + n * 100, 1, 5 + n as u32));
    }
    assert_eq!(t.obu.attachment(), attached(RSU, A, 2));
}

#[test]
fn an_earlier_count_is_believed_when_the_later_is_silent_and_all_that_was_said_is_taken_back() {
    let mut t = settled();
    for (ms, seq) in [(600, 900), (700, 901), (799, 902)] {
        assert!(!says(&mut t, ms, 0, seq));
    }
    t.clear();
    assert!(says(&mut t, 801, 0, 903));
    assert_eq!(t.obu.advertised_for(id(RSU)), None);
    t.pass(850);
    assert_eq!(t.withdrawals(), 3);
    t.clear();
    // Whoever heard us counts on it for 350 ms at most.
    for n in 1..=10 {
        says(&mut t, 800 + n * 100, 0, 903 + n as u32);
        if let Some(nonce) = t.last_probe(A) {
            t.hear(t.now, A, Heard::Heartbeat { boot: 0, seq: 903 + n as u32, hops: 1, via: None });
            t.hear(t.now, A, Heard::AnswerOf { boot: 0, nonce, seq: 903 + n as u32 });
        }
        t.pass(800 + n * 100 + 30);
    }
    assert_eq!(t.obu.attachment(), attached(RSU, A, 2));
    assert_eq!(t.heartbeats().last().unwrap().order, Order::new(0, 913));
}
