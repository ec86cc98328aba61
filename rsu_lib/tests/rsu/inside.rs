//! What an RSU says of itself to those who look inside.

use node_lib::Timestamp;
use node_lib::control::node::{Interface, LinkEvent, Node};

use crate::talk::{A, CAMERA, Talk};

/// Lets the RSU do what it planned until then: what was due, and where what it then gave goes.
fn planned(t: &mut Talk, until_ms: u64) -> Vec<(&'static str, Vec<Interface>)> {
    let until = Timestamp::from_millis(until_ms);
    let mut done = Vec::new();
    while let Some(due) = t.rsu.deadline().filter(|due| due.at <= until) {
        assert_eq!(t.rsu.poll_timeout(), Some(due.at));
        t.rsu.handle_timeout(due.at, &mut t.out);
        let given = t.out.take().into_iter().map(|reply| reply.interface());
        done.push((due.reason, given.collect()));
    }
    t.now = until_ms;
    done
}

#[test]
fn an_rsu_says_why_it_wants_to_be_called() {
    let mut t = Talk::new();
    t.pass(50);
    t.announce(A, A, 1, &[CAMERA]);
    let done = planned(&mut t, 900);
    let of = |reason: &str| -> Vec<&[Interface]> {
        done.iter().filter(|(why, _)| *why == reason).map(|(_, given)| &given[..]).collect()
    };
    let (heartbeats, named) = (of("send a heartbeat"), of("name clients to the LAN"));
    assert!(heartbeats.len() > 6 && heartbeats.iter().all(|given| *given == [Interface::Radio]));
    assert_eq!(named, [[Interface::Tap]; 2], "twice more, after it was named at once");
    assert_eq!(heartbeats.len() + named.len(), done.len(), "{done:?}");
}

#[test]
fn what_an_rsu_does_next_is_told_with_everything_else() {
    let mut t = Talk::new();
    t.pass(50);
    let due = t.rsu.deadline().unwrap();
    let waits_for = t.rsu.snapshot(t.at()).waits_for.unwrap();
    assert_eq!((&*waits_for.reason, due.reason), ("send a heartbeat", "send a heartbeat"));
    assert_eq!(u128::from(waits_for.in_ms), due.at.since(t.at()).as_millis());
    t.rsu.handle_shutdown(t.at(), &mut t.out);
    assert_eq!(t.rsu.snapshot(t.at()).waits_for.unwrap().reason, "say goodbye");
}

#[test]
fn an_rsu_says_how_full_the_air_is_of_heartbeats() {
    let mut t = Talk::new();
    t.pass(3000);
    let air = t.rsu.snapshot(t.at()).air.unwrap();
    // Its own.
    assert!(air.heartbeats_per_s.is_some_and(|n| (8.0..=12.0).contains(&n)), "{air:?}");
    assert_eq!(air.is_full, Some(false));
}

#[test]
fn an_rsu_says_how_busy_its_channel_is_and_how_rarely_it_sends_for_that() {
    let mut t = Talk::new();
    let says = |t: &mut Talk| {
        let air = t.rsu.snapshot(t.at()).air.unwrap();
        (air.interval_ms, air.busy_percent)
    };
    t.pass(500);
    assert_eq!(says(&mut t), (Some(100), None), "its radio does not tell");
    for _ in 0..3 {
        let now = t.at();
        t.rsu.handle_link(now, LinkEvent::ChannelBusy(80), &mut t.out);
        t.pass(1000);
    }
    assert_eq!(says(&mut t), (Some(200), Some(80)));
}
