//! What an OBU makes of how strong its neighbours come in.

use node_lib::Timestamp;
use node_lib::control::event::Cause;
use node_lib::control::node::Node;

use crate::hand_over::{acknowledge_there, beat_of_both, between_two_rsus, records};
use crate::talk::{A, C, Heard, OTHER_RSU, RSU, Talk, attached};

/// The signal of our RSU falls by 10 dB a second, that of the other one rises as fast; nothing is
/// lost. Reported as drivers do: now and then, and not with the frames. Ends with the change of
/// RSU, or when ours is 40 dB weaker.
fn one_fades_and_the_other_comes(t: &mut Talk, reported: bool) {
    for step in 0..40_i8 {
        beat_of_both(t);
        if reported {
            let now = Timestamp::from_millis(t.now);
            t.obu.handle_signal(now, RSU, -50 - step);
            t.obu.handle_signal(now, OTHER_RSU, -90 + step);
        }
        if t.obu.attachment() == attached(OTHER_RSU, OTHER_RSU, 1) {
            return;
        }
        acknowledge_there(t);
    }
}

#[test]
fn a_signal_reported_beside_the_frames_predicts_who_will_be_stronger_before_anything_is_lost() {
    let mut t = between_two_rsus();
    one_fades_and_the_other_comes(&mut t, true);
    assert_eq!(t.obu.attachment(), attached(OTHER_RSU, OTHER_RSU, 1));
    acknowledge_there(&mut t);
    for _ in 0..5 {
        beat_of_both(&mut t);
    }
    let [record] = records(&mut t)[..] else { panic!("not one record") };
    assert_eq!((record.cause, record.gap.as_millis(), record.lost), (Cause::Predicted, 0, 0));
}

#[test]
fn without_a_signal_nothing_is_predicted() {
    let mut t = between_two_rsus();
    one_fades_and_the_other_comes(&mut t, false);
    assert_eq!(t.obu.attachment(), attached(RSU, RSU, 1));
}

/// For three seconds our RSU comes in at `from_dbm`, and falls by `fall_dbm_s` until it is as weak
/// as `floor_dbm`. The other one stays at `there_dbm`, but for one frame as weak as that. Nothing
/// is lost.
fn ours_falls(t: &mut Talk, floor_dbm: i8, from_dbm: i8, fall_dbm_s: i8, there_dbm: i8) {
    for step in 0..30_i8 {
        beat_of_both(t);
        let now = Timestamp::from_millis(t.now);
        t.obu.handle_signal(now, RSU, floor_dbm.max(from_dbm - fall_dbm_s * step / 10));
        t.obu.handle_signal(now, OTHER_RSU, if step == 0 { floor_dbm } else { there_dbm });
        acknowledge_there(t);
    }
}

#[test]
fn a_link_whose_signal_will_be_weaker_than_any_that_is_heard_is_left_before_anything_is_lost() {
    let mut t = between_two_rsus();
    ours_falls(&mut t, -93, -81, 4, -89);
    assert_eq!(t.obu.attachment(), attached(OTHER_RSU, OTHER_RSU, 1), "-93 dBm after 3 s");
    let [record] = records(&mut t)[..] else { panic!("not one record") };
    assert_eq!((record.cause, record.lost), (Cause::Predicted, 0));
}

#[test]
fn a_link_that_will_end_is_not_left_for_another_that_will() {
    let mut t = between_two_rsus();
    for step in 0..30_i8 {
        beat_of_both(&mut t);
        let now = Timestamp::from_millis(t.now);
        t.obu.handle_signal(now, RSU, -81 - 4 * step / 10);
        t.obu.handle_signal(now, OTHER_RSU, -81 - 4 * step / 10);
        acknowledge_there(&mut t);
        assert_eq!(t.obu.attachment(), attached(RSU, RSU, 1), "{step}");
    }
}

#[test]
fn a_link_that_is_far_from_its_end_is_left_for_nobody_however_strong() {
    for (floor, from, fall, there, what) in [
        (-93, -70, 4, -50, "-82 dBm in the end"),
        (-93, -91, 0, -50, "weak, and does not fall"),
        (-80, -80, 0, -75, "the weakest of all, and does not fall"),
    ] {
        let mut t = between_two_rsus();
        ours_falls(&mut t, floor, from, fall, there);
        assert_eq!(t.obu.attachment(), attached(RSU, RSU, 1), "{what}");
    }
}

#[test]
fn where_the_radio_fades_a_link_is_left_for_one_much_stronger_long_before_its_line_ends() {
    for (off_db, there) in [(0, attached(RSU, RSU, 1)), (2, attached(OTHER_RSU, OTHER_RSU, 1))] {
        let mut t = between_two_rsus();
        for step in 0..30_i8 {
            beat_of_both(&mut t);
            let now = Timestamp::from_millis(t.now);
            let off = if step % 2 == 0 { off_db } else { -off_db };
            t.obu.handle_signal(now, RSU, -70 + off);
            t.obu.handle_signal(now, OTHER_RSU, -50 + off);
            acknowledge_there(&mut t);
        }
        assert_eq!(t.obu.attachment(), there, "{off_db} dB off the line");
    }
}

#[test]
fn the_signal_of_somebody_who_never_spoke_is_nobodys() {
    let mut t = between_two_rsus();
    for step in 0..30 {
        let now = Timestamp::from_millis(t.now);
        t.obu.handle_signal(now, C, -30);
        t.obu.handle_signal(now, RSU, -90);
        beat_of_both(&mut t);
        assert_eq!(t.obu.attachment(), attached(RSU, RSU, 1), "{step}");
    }
}

/// Attached through A, we hear the RSU itself from now on, at -82 dBm and weaker by so much each
/// second. Whether we go there within three seconds and a half.
fn goes_to_an_rsu_that_falls_by(dbm_s: i8) -> bool {
    let mut t = Talk::settled_behind(A);
    t.acknowledge(A);
    for step in -50..35_i8 {
        t.pass(t.now + 100);
        let seq = t.beat(A, 1);
        t.answer_probes_of(A);
        if step < 0 {
            continue;
        }
        t.hear(t.now, RSU, Heard::heartbeat(seq, 0));
        if let Some(nonce) = t.last_probe(RSU) {
            t.hear(t.now, RSU, Heard::answer(nonce, seq, 0));
        }
        let now = Timestamp::from_millis(t.now);
        t.obu.handle_signal(now, A, -80);
        t.obu.handle_signal(now, RSU, -82 - dbm_s * step / 10);
        if t.obu.attachment() == attached(RSU, RSU, 1) {
            return true;
        }
    }
    false
}

#[test]
fn nobody_goes_to_a_better_neighbour_whose_link_will_end() {
    assert!(goes_to_an_rsu_that_falls_by(0));
    assert!(!goes_to_an_rsu_that_falls_by(3));
}
