//! Who stops a loop from outside, and how soon it listens.

use std::collections::VecDeque;
use std::pin::pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use node_lib::device::StaticLinks;
use node_lib::runtime::Exit;
use node_lib::runtime::command::{Command, Commands, Remote};

use crate::bench::{Bench, put, take};
use crate::script::{Call, Script};

#[test]
fn stopping_says_goodbye_lingers_and_keeps_driving() {
    let mut node = Script::new(|call, out| {
        if matches!(call, Call::Shutdown | Call::Wire(_)) {
            out.wire(|flat| flat.extend_from_slice(&[0xbb; 20]));
        }
    });
    node.linger = Duration::from_millis(60);
    let mut bench = Bench::new();
    let remote = Remote::new();
    remote.send(Command::Report);
    remote.send(Command::Stop);
    put(&mut bench.air, &[0; 60]);
    let begun = Instant::now();
    assert_eq!(bench.run_until(&mut node, &mut StaticLinks, remote), Exit::Clean);
    assert!(begun.elapsed() >= Duration::from_millis(60));
    assert_eq!(take(&mut bench.air).len(), 2);
}

#[test]
fn asked_twice_it_stops_at_once() {
    let mut node = Script::new(|_, _| {});
    node.linger = Duration::from_secs(3600);
    let remote = Remote::new();
    remote.send(Command::Stop);
    remote.send(Command::Stop);
    assert_eq!(Bench::new().run_until(&mut node, &mut StaticLinks, remote), Exit::Forced);
}

#[test]
fn a_remote_wakes_a_loop_that_sleeps() {
    let mut node = Script::new(|_, _| {});
    let remote = Remote::new();
    let sender = remote.clone();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(30));
        sender.send(Command::Stop);
    });
    assert_eq!(Bench::new().run_until(&mut node, &mut StaticLinks, remote), Exit::Clean);
    thread.join().unwrap();
}

/// Answers as everything does that tokio watches: at the cost of the budget of the task that asks.
struct Watched(VecDeque<Command>);

impl Commands for Watched {
    fn poll_command(&mut self, cx: &mut Context<'_>) -> Poll<Command> {
        ready!(pin!(tokio::task::consume_budget()).poll(cx));
        self.0.pop_front().map_or(Poll::Pending, Poll::Ready)
    }
}

#[test]
fn a_long_life_in_one_task_does_not_make_the_loop_deaf() {
    let mut node = Script::new(|_, _| {});
    // More answers than tokio gives a task before it has to return to its executor.
    let mut commands = VecDeque::from(vec![Command::Report; 300]);
    commands.push_back(Command::Stop);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let run = async { Bench::new().run_until(&mut node, &mut StaticLinks, Watched(commands)) };
    assert_eq!(runtime.block_on(run), Exit::Clean);
}
