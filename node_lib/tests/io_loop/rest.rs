//! How a loop waits: it rests between bursts, or looks for an answer without sleeping.

use std::sync::mpsc;
use std::time::Duration;

use node_lib::Timestamp;
use node_lib::device::StaticLinks;
use node_lib::device::memory;
use node_lib::runtime::Exit;
use node_lib::runtime::command::{Command, Remote};

use crate::bench::{Bench, put, take};
use crate::script::{Call, Script};

#[test]
fn a_loop_that_rests_between_bursts_hears_everything_and_then_waits_to_be_woken() {
    let mut node = Script::new(|call, out| {
        if let Call::Wire(frame) = call {
            out.tap(|flat| flat.extend_from_slice(frame));
        }
    });
    node.deadline = Some(Timestamp::from_millis(30));
    let mut bench = Bench { coalesce: Duration::from_millis(1), ..Bench::new() };
    (0..200).for_each(|n| put(&mut bench.air, &[n; 60]));
    bench.run(&mut node, &mut StaticLinks, Duration::from_millis(300));
    assert_eq!(take(&mut bench.host).len(), 200);
    assert!(node.calls.borrow().contains(&Call::Timeout), "a deadline is kept after it");
    let polled = node.polled.get();
    assert!(polled < 100, "asked {polled} times in 300 ms: it rests on without traffic");
}

#[test]
fn a_loop_that_looks_for_an_answer_hears_it_keeps_deadlines_and_obeys() {
    let (tell, told) = mpsc::channel();
    let mut node = Script::new(|_, _| tell.send(()).unwrap());
    node.pass = Some(|frame, out| {
        if frame[0] == 6 {
            out.wire_around(0, frame, |head| head.extend_from_slice(&[9; 40]));
        }
    });
    node.deadline = Some(Timestamp::from_millis(20));
    // Nothing but what happens meanwhile ends it.
    let mut bench = Bench { busy_poll: Duration::from_secs(3600), ..Bench::new() };
    let mut air = std::mem::replace(&mut bench.air, memory::pair(1500).unwrap().1);
    let mut host = std::mem::replace(&mut bench.host, memory::pair(1500).unwrap().1);
    let remote = Remote::new();
    let operator = remote.clone();
    put(&mut host, &[6; 60]);
    let others = std::thread::spawn(move || {
        let heard = |n| (0..n).for_each(|_| told.recv().unwrap());
        heard(2);
        put(&mut host, &[6; 60]);
        heard(1);
        put(&mut air, &[7; 60]);
        // Of two that come at once either side may be read first.
        heard(1);
        put(&mut host, &[6; 60]);
        heard(1);
        operator.send(Command::Stop);
        (told, air)
    });
    assert_eq!(bench.run_until(&mut node, &mut StaticLinks, remote), Exit::Clean);
    let (_told, mut air) = others.join().unwrap();
    assert_eq!(take(&mut air).len(), 3, "questions on the air");
    let (question, answer) = (Call::Tap(vec![6; 60]), Call::Wire(vec![7; 60]));
    let calls = node.calls.borrow();
    // Where the start took long, the deadline is the first to be due.
    assert!(calls[..2].contains(&question) && calls[..2].contains(&Call::Timeout), "{calls:?}");
    assert_eq!(calls[2..], [question.clone(), answer, question, Call::Shutdown]);
}
