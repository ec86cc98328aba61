//! The loop that drives a node, with a node and devices made for the purpose.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::pin::pin;
use std::sync::mpsc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use nix::sys::socket::{MsgFlags, recvmsg, setsockopt, sockopt};
use node_lib::control::counters::Counters;
use node_lib::control::event::Event;
use node_lib::control::next_hop::NextHop;
use node_lib::control::node::{LinkEvent, Node, Replies, ReplyType};
use node_lib::control::snapshot::{Role, Route, Snapshot};
use node_lib::device::memory::{self, Memory};
use node_lib::device::signal::{Reports, Sample};
use node_lib::device::{
    Burst, Device, DeviceCounters, DeviceError, Link, LinkChange, Links, Outgoing, Problem,
    Received, Sent, Side, StaticLinks,
};
use node_lib::messages::bundle;
use node_lib::messages::control::announcement::Client;
use node_lib::runtime::clients::ClientFile;
use node_lib::runtime::clock::Clock;
use node_lib::runtime::command::{Command, Commands, Remote};
use node_lib::runtime::inside::{self, Inside};
use node_lib::runtime::{Exit, Runtime};
use node_lib::start::clients::Remembered;
use node_lib::transport::DRAIN_TURNS;
use node_lib::transport::mtu::TapMtu;
use node_lib::transport::outbox;
use node_lib::transport::tap_wait::TAP_LATE;
use node_lib::{Mac, NodeId, Timestamp};

#[test]
fn replies_go_out_in_order_each_as_one_frame() {
    let mut node = Script::new(|call, out| {
        if matches!(call, Call::Wire(_)) {
            out.tap(|flat| flat.extend_from_slice(&[1; 20]));
            out.push(ReplyType::Wire(vec![vec![2; 14], vec![3; 6]]));
            out.wire(|flat| flat.extend_from_slice(&[4; 20]));
            out.push(ReplyType::Tap((0..30).map(|n| vec![n]).collect()));
        }
    });
    let mut bench = Bench::new();
    put(&mut bench.air, &[0; 60]);
    bench.run(&mut node, &mut StaticLinks, Duration::from_millis(50));
    assert_eq!(take(&mut bench.air), [[vec![2; 14], vec![3; 6]].concat(), vec![4; 20]]);
    assert_eq!(take(&mut bench.host), [vec![1; 20], (0..30).collect()]);
}

#[test]
fn what_the_radio_holds_is_heard_before_a_deadline_is_handled() {
    let mut node = Script::new(|_, _| {});
    // Long past: the process has been asleep.
    node.deadline = Some(Timestamp::ZERO);
    let mut bench = Bench::new();
    for _ in 0..300 {
        put(&mut bench.air, &[0; 60]);
    }
    bench.run(&mut node, &mut StaticLinks, Duration::from_millis(50));
    let calls = node.calls.borrow();
    let first = calls.iter().position(|call| *call == Call::Timeout).expect("a timeout");
    let heard = calls.iter().take(first).filter(|call| matches!(call, Call::Wire(_))).count();
    assert_eq!(heard, 300);
}

#[test]
fn a_radio_that_never_drains_holds_back_neither_the_deadline_nor_the_tap() {
    let mut node = Script::new(|_, _| {});
    node.deadline = Some(Timestamp::ZERO);
    let mut bench = Bench::new();
    put(&mut bench.host, &[9; 60]);
    let mut radio = Flood::default();
    bench.run_with(&mut node, &mut radio, &mut StaticLinks, Duration::from_millis(50));
    let calls = node.calls.borrow();
    let before = |wanted: &dyn Fn(&Call) -> bool| {
        let first = calls.iter().position(wanted).expect("it happened");
        calls.iter().take(first).filter(|call| matches!(call, Call::Wire(_))).count()
    };
    // One frame comes before the first full burst.
    assert!(before(&|call| matches!(call, Call::Tap(_))) <= 1 + 64);
    assert!(before(&|call| *call == Call::Timeout) <= 1 + 64 * (DRAIN_TURNS as usize + 1));
}

#[test]
fn where_control_is_kept_apart_no_data_holds_back_a_deadline() {
    let mut node = Script::new(|_, _| {});
    node.deadline = Some(Timestamp::ZERO);
    // Seventy control frames are more than a burst: all of them are heard first.
    let (control, mut air) = memory::pair(1500).unwrap();
    for _ in 0..70 {
        put(&mut air, &[2; 60]);
    }
    let mut radio = Apart { control, data: Flood::default() };
    let mut bench = Bench::new();
    bench.run_with(&mut node, &mut radio, &mut StaticLinks, Duration::from_millis(50));
    let calls = node.calls.borrow();
    let first = calls.iter().position(|call| *call == Call::Timeout).expect("a timeout");
    let heard = |byte| {
        let wire = calls.iter().take(first).filter_map(|call| match call {
            Call::Wire(frame) => frame.first(),
            _ => None,
        });
        wire.filter(|first| **first == byte).count()
    };
    assert_eq!(heard(2), 70);
    assert!(heard(1) <= 1 + 2 * 64, "{} data frames before the deadline", heard(1));
}

#[test]
fn control_does_not_wait_for_a_burst_of_full_bundles() {
    let (control, air) = memory::pair(1500).unwrap();
    let air = RefCell::new(air);
    let heard = Cell::new(0);
    let mut node = Script::new(|call, _| {
        if matches!(call, Call::Wire(_)) {
            heard.set(heard.get() + 1);
            // More than a millisecond for a turn, after which control is looked for.
            std::thread::sleep(Duration::from_micros(50));
            // The first bundles tell how many messages there are in one.
            if heard.get() == 1200 {
                put(&mut air.borrow_mut(), &[2; 60]);
            }
        }
    });
    let bundle = bundle_of(&vec![data_frame(1, 60, 1); 16]);
    let mut radio = Apart { control, data: Flood { frame: bundle, ..Flood::default() } };
    let mut bench = Bench::new();
    bench.run_with(&mut node, &mut radio, &mut StaticLinks, Duration::from_millis(1500));
    let calls = node.calls.borrow();
    let at = calls.iter().filter(|call| matches!(call, Call::Wire(_)));
    let at = at.take_while(|call| **call != Call::Wire(vec![2; 60])).count();
    assert!(at < 1200 + 3 * 64, "{} messages were heard before control", at - 1200);
}

#[test]
fn what_the_radio_gave_up_is_told_frame_by_frame_and_answered() {
    let mut node = Script::new(|call, out| {
        if let Call::Unacknowledged(frame) = call {
            out.wire(|flat| flat.extend_from_slice(&frame[90..110]));
        }
    });
    node.wants_unacknowledged = true;
    let (one, two) = (data_frame(1, 100, 1), data_frame(1, 100, 2));
    let mut radio = Telling::new();
    radio.give_up(&data_frame(1, 100, 3));
    radio.give_up(&bundle_of(&[one.clone(), two.clone()]));
    let mut bench = Bench::new();
    bench.run_with(&mut node, &mut radio, &mut StaticLinks, Duration::from_millis(50));
    let told = [data_frame(1, 100, 3), one, two];
    let unacknowledged =
        node.calls.borrow().iter().filter_map(Call::as_unacknowledged).collect::<Vec<_>>();
    assert_eq!(unacknowledged, told);
    assert_eq!(radio.sent, told.map(|frame| frame[90..110].to_vec()));
    assert!(node.polled.get() < 30, "{} turns for nothing", node.polled.get());
}

#[test]
fn a_radio_that_gives_up_much_holds_back_no_deadline() {
    let mut node = Script::new(|_, _| {});
    node.wants_unacknowledged = true;
    // One is always due.
    node.deadline = Some(Timestamp::ZERO);
    node.again_after = Some(Duration::ZERO);
    let mut radio = Telling::new();
    (0..200).for_each(|n| radio.give_up(&data_frame(1, 60, n)));
    let mut bench = Bench::new();
    bench.run_with(&mut node, &mut radio, &mut StaticLinks, Duration::from_secs(1));
    let calls = node.calls.borrow();
    let told = calls.split(|call| *call == Call::Timeout).map(<[Call]>::len);
    assert_eq!(told.clone().sum::<usize>(), 200);
    assert!(told.max() <= Some(64), "so many frames before a deadline");
}

#[test]
fn a_radio_is_not_asked_for_what_the_node_does_not_want() {
    let mut node = Script::new(|_, _| {});
    let mut radio = Telling::new();
    Bench::new().run_with(&mut node, &mut radio, &mut StaticLinks, Duration::from_millis(5));
    assert!(!radio.is_wanted);
    node.wants_unacknowledged = true;
    Bench::new().run_with(&mut node, &mut radio, &mut StaticLinks, Duration::from_millis(5));
    assert!(radio.is_wanted);
}

#[test]
fn deadlines_are_kept_without_any_traffic() {
    let mut node = Script::new(|_, _| {});
    node.deadline = Some(Timestamp::from_millis(5));
    node.again_after = Some(Duration::from_millis(10));
    let mut bench = Bench::new();
    bench.run(&mut node, &mut StaticLinks, Duration::from_secs(1));
    let timeouts = node.calls.borrow().iter().filter(|call| **call == Call::Timeout).count();
    assert!((5..=101).contains(&timeouts), "{timeouts} timeouts in a second, one due every 10 ms");
}

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

/// What those on another thread do who look inside a loop, which ends when they have looked.
fn look_inside<T: Send + 'static>(
    node: &mut impl Node,
    bench: &mut Bench,
    look: impl AsyncFnOnce(Inside) -> T + Send + 'static,
) -> T {
    let remote = Remote::new();
    let (attended, inside) = inside::attend(remote.clone());
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let seen = runtime.block_on(look(inside));
        remote.send(Command::Stop);
        seen
    });
    assert_eq!(bench.run_until(node, &mut StaticLinks, attended), Exit::Clean);
    thread.join().unwrap()
}

#[test]
fn who_looks_inside_is_shown_the_node_and_what_is_around_it() {
    let mut node = Script::new(|_, _| {});
    node.counters.relayed = 7;
    let mut bench = Bench::new();
    put(&mut bench.air, &[0; 60]);
    let view = look_inside(&mut node, &mut bench, async |inside| {
        tokio::time::sleep(Duration::from_millis(30)).await;
        inside.view().await.unwrap()
    });
    assert_eq!(view.node.id, node.id());
    assert_eq!((view.radio.mac, view.radio.mtu_bytes), (Some(radio_link().mac), Some(1500)));
    assert!(view.radio.is_up && view.tap.is_up && !view.is_radio_full);
    assert_eq!(view.counters.node.get("relayed"), Some(7));
    assert_eq!(view.counters.radio.get("rx_frames"), Some(1));
    assert!(view.uptime_ms >= 10, "{}", view.uptime_ms);
}

#[test]
fn however_many_look_inside_they_are_shown_few_views() {
    let mut node = Script::new(|_, _| {});
    let began = Instant::now();
    let shown = look_inside(&mut node, &mut Bench::new(), async |inside| {
        let viewers = (0..200).map(|_| {
            let inside = inside.clone();
            async move {
                for _ in 0..50 {
                    inside.view().await.unwrap();
                }
                50
            }
        });
        futures_util::future::join_all(viewers).await.into_iter().sum::<u32>()
    });
    assert_eq!(shown, 10_000);
    let most = began.elapsed().as_millis() / inside::VIEW_EVERY.as_millis() + 2;
    assert!(u128::from(node.looked.get()) <= most, "{} of at most {most}", node.looked.get());
}

#[test]
fn whoever_forgets_clients_is_told_how_many_and_the_node_may_say_so() {
    let mut node = Script::new(|_, _| {});
    let mut bench = Bench::new();
    let forgotten = look_inside(&mut node, &mut bench, async |inside| {
        let one = inside.forget_clients(Some(Mac([2; 6]))).await.unwrap();
        (one, inside.forget_clients(None).await.unwrap())
    });
    assert_eq!(forgotten, (1, 7));
}

#[test]
fn a_loop_that_has_ended_tells_whoever_still_looks() {
    let (attended, inside) = inside::attend(Remote::new());
    drop(attended);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(runtime.block_on(inside.view()), Err(inside::Stopped));
    assert_eq!(runtime.block_on(inside.forget_clients(None)), Err(inside::Stopped));
}

#[test]
fn who_reads_events_too_slowly_is_told_how_many_it_missed() {
    let mut node = Script::new(|_, _| {});
    let event = |n: u32| Event::ObuDetached { obu: NodeId([2, 0, 0, 0, (n >> 8) as u8, n as u8]) };
    let all = inside::EVENTS_MAX as u32 + 88;
    node.happened.borrow_mut().extend((0..all).map(event));
    let remote = Remote::new();
    let (attended, inside) = inside::attend(remote.clone());
    let mut listener = inside.events();
    remote.send(Command::Stop);
    Bench::new().run_until(&mut node, &mut StaticLinks, attended);
    let missed = listener.try_recv().unwrap_err();
    assert_eq!(missed, tokio::sync::broadcast::error::TryRecvError::Lagged(88));
    for n in 88..all {
        assert_eq!(listener.try_recv().unwrap().event, event(n));
    }
    assert!(listener.try_recv().is_err());
}

#[test]
fn changes_of_the_radio_become_link_events_and_set_the_tap_mtu() {
    let link = radio_link();
    let radio = |link: Option<Link>| LinkChange { side: Side::Radio, link };
    let other = Mac([2, 0, 0, 0, 0, 2]);
    let mut links = ScriptedLinks::new([
        radio(Some(Link { up: false, ..link.clone() })),
        radio(Some(link.clone())),
        radio(Some(Link { mtu: 1400, ..link.clone() })),
        radio(None),
        radio(Some(Link { index: 8, mac: other, up: false, ..link.clone() })),
        radio(Some(Link { index: 8, mac: other, ..link.clone() })),
        // Deleted and re-created between two looks.
        radio(Some(Link { index: 9, mac: other, ..link.clone() })),
        // Too small for any TAP: said, and survived.
        radio(Some(Link { index: 9, mac: other, mtu: 90, up: true })),
    ]);
    let mut node = Script::new(|_, _| {});
    Bench::new().run(&mut node, &mut links, Duration::from_millis(50));
    let seen: Vec<_> = node
        .calls
        .borrow()
        .iter()
        .filter_map(|call| match call {
            Call::Link(event) => Some(*event),
            _ => None,
        })
        .collect();
    use LinkEvent::{AddressChanged, Down, MtuChanged, Up};
    assert_eq!(
        seen,
        [
            Down,
            Up,
            MtuChanged(1400),
            Down,
            AddressChanged(other),
            MtuChanged(1500),
            Up,
            Down,
            Up,
            MtuChanged(90),
        ]
    );
    assert_eq!(links.tap_mtus, [1500, 1500]);
}

#[test]
fn a_tap_that_is_down_or_gone_is_a_lan_that_is_down_and_told_once() {
    let tap = |up: Option<bool>| {
        let link = up.map(|up| Link { up, ..radio_link() });
        LinkChange { side: Side::Tap, link }
    };
    let states = [Some(true), Some(false), None, Some(false), Some(true), None, Some(true)];
    let mut links = ScriptedLinks::new(states.map(tap));
    let mut node = Script::new(|_, _| {});
    Bench::new().run(&mut node, &mut links, Duration::from_millis(50));
    let calls = node.calls.borrow();
    let seen: Vec<_> = calls.iter().filter(|call| matches!(call, Call::Link(_))).collect();
    use LinkEvent::{LanDown, LanUp};
    let expected = [LanDown, LanUp, LanDown, LanUp].map(Call::Link);
    assert_eq!(seen, expected.iter().collect::<Vec<_>>());
}

#[test]
fn a_tap_mtu_the_operator_fixed_stays_and_one_that_no_longer_fits_is_left_alone() {
    let link = radio_link();
    let change = |mtu| LinkChange { side: Side::Radio, link: Some(Link { mtu, ..link.clone() }) };
    let mut links = ScriptedLinks::new([change(1600), change(180)]);
    let mut bench = Bench::new();
    bench.tap_mtu.fixed = Some(1400);
    bench.run(&mut Script::new(|_, _| {}), &mut links, Duration::from_millis(50));
    assert_eq!(links.tap_mtus, [1400]);
}

#[test]
fn a_radio_that_is_down_at_the_start_is_told_to_the_node() {
    let mut node = Script::new(|_, _| {});
    let mut bench = Bench::new();
    bench.link.up = false;
    bench.run(&mut node, &mut StaticLinks, Duration::from_millis(20));
    assert_eq!(node.calls.borrow().first(), Some(&Call::Link(LinkEvent::Down)));
}

#[test]
fn a_tap_that_is_gone_is_re_created_and_configured_anew() {
    let mut links = ScriptedLinks::new([]);
    let mut node = Script::new(|_, _| {});
    let mut bench = Bench::new();
    let mut tap = Mortal { refusals: 2, ..Mortal::default() };
    bench.run_all(
        &mut node,
        &mut bench_radio(),
        &mut tap,
        &mut links,
        Remote::new(),
        Some(Duration::from_millis(900)),
    );
    // 100 ms, then 200, then 400.
    assert_eq!((tap.attempts, tap.alive), (3, true));
    assert_eq!(links.tap_mtus, [1500]);
}

#[test]
fn a_radio_that_is_full_stops_the_tap_and_nothing_else() {
    let mut node = Script::new(|call, out| match call {
        Call::Wire(frame) => out.tap_frame(frame),
        Call::Tap(frame) => out.wire_around(frame, |_| {}),
        _ => {}
    });
    let mut bench = Bench::new();
    for _ in 0..900 {
        put(&mut bench.host, &[9; 60]);
    }
    for _ in 0..300 {
        put(&mut bench.air, &[8; 60]);
    }
    let inner = std::mem::replace(&mut bench.radio, bench_radio());
    let mut radio = Stalled { inner, full_until: None };
    bench.run_with(&mut node, &mut radio, &mut StaticLinks, outbox::AGE_MAX * 5 / 2);
    let from_tap = |node: &Script<_>| {
        let calls = node.calls.borrow();
        calls.iter().filter(|call| matches!(call, Call::Tap(_) | Call::TapLate(_))).count()
    };
    // A frame or a burst at the start, and each time what waited has become too old.
    let read = from_tap(&node);
    assert!((1..=3 * 64).contains(&read), "{read} frames read from the TAP");
    assert_eq!(take(&mut bench.host).len(), 300, "the other way is open");
    assert!(take(&mut bench.air).is_empty());
    radio.full_until = Some(Instant::now());
    bench.run_with(&mut node, &mut radio, &mut StaticLinks, Duration::from_millis(50));
    assert_eq!(from_tap(&node), 900);
    assert_eq!(take(&mut bench.air).len(), 900 - read);
}

#[test]
fn what_was_left_in_the_tap_for_long_is_late_until_the_tap_is_read_to_its_end() {
    let mut bench = Bench::new();
    for _ in 0..200 {
        put(&mut bench.host, &[9; 60]);
    }
    let mut host = std::mem::replace(&mut bench.host, bench_radio());
    let mut node = Script::new(move |call, out| match call {
        Call::Tap(frame) | Call::TapLate(frame) => out.wire_around(frame, |_| {}),
        Call::Timeout => put(&mut host, &[7; 60]),
        _ => {}
    });
    let is_free = TAP_LATE * 3 / 2;
    node.deadline = Some(Timestamp::ZERO + is_free + outbox::AGE_MAX * 4);
    let inner = std::mem::replace(&mut bench.radio, bench_radio());
    let mut radio = Stalled { inner, full_until: Some(Instant::now() + is_free) };
    let span = is_free + outbox::AGE_MAX * 6;
    bench.run_with(&mut node, &mut radio, &mut StaticLinks, span);
    let calls = node.calls.into_inner();
    let late = calls.iter().filter(|call| matches!(call, Call::TapLate(_))).count();
    let first = calls.iter().take_while(|call| matches!(call, Call::Tap(_))).count();
    assert_eq!(late, 200 - first, "{first} were read before");
    assert!((1..=64).contains(&first), "{first} were read before");
    assert_eq!(calls[200..], [Call::Timeout, Call::Tap(vec![7; 60])]);
}

#[test]
fn a_frame_passed_on_is_sent_from_where_it_lies_and_copies_keep_their_content() {
    let mut node = Script::new(|call, out| {
        let Call::Wire(_) = call else { return };
        out.wire(|flat| flat.extend_from_slice(&[1; 14]));
    });
    node.pass = Some(|frame, out| {
        out.wire_around(&frame[4..], |head| head.extend_from_slice(&[2; 40]));
        out.tap_frame(&frame[4..]);
        out.wire_around(&frame[4..], |head| head.extend_from_slice(&[3; 40]));
    });
    let mut bench = Bench::new();
    for n in 0..3 {
        put(&mut bench.air, &[n; 60]);
    }
    bench.run(&mut node, &mut StaticLinks, Duration::from_millis(50));
    let around = |head: u8, n: u8| [[head; 40].as_slice(), &[n; 56]].concat();
    let expected = (0..3).flat_map(|n| [around(2, n), around(3, n), vec![1; 14]]);
    assert_eq!(take(&mut bench.air), expected.collect::<Vec<_>>());
    assert_eq!(take(&mut bench.host), [[0; 56], [1; 56], [2; 56]]);
}

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
            out.wire_around(frame, |head| head.extend_from_slice(&[9; 40]));
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

/// A data frame to neighbour `to`: its message has `len` bytes, and `number` behind the prefix.
fn data_frame(to: u8, len: u16, number: u8) -> Vec<u8> {
    let mut frame = vec![to; 14];
    frame.extend_from_slice(&[0x28, 0]);
    frame.extend_from_slice(&len.to_be_bytes());
    frame.resize(14 + usize::from(len), number);
    frame
}

/// One frame with the messages of all of these.
fn bundle_of(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    bundle::emit(frames.iter().map(Vec::as_slice), &mut out);
    out
}

#[test]
fn small_frames_that_wait_together_leave_in_one_as_far_as_the_radio_takes_it() {
    let heads: [(u8, u16); 7] =
        [(1, 400), (1, 400), (2, 100), (1, 700), (1, 700), (1, 700), (1, 1400)];
    let frames: Vec<_> = (0..).zip(heads).map(|(n, (to, len))| data_frame(to, len, n)).collect();
    let all = frames.clone();
    let sent = |bundles: bool, narrow: Option<NextHop>| {
        let all = all.clone();
        let mut node = Script::new(move |call, out| {
            let Call::Tap(frame) = call else { return };
            narrow.iter().for_each(|hop| out.keep_short(*hop));
            out.wire(|flat| flat.extend_from_slice(&all[usize::from(frame[0])]));
        });
        let mut bench = Bench { bundles, ..Bench::new() };
        (0..7).for_each(|n| put(&mut bench.host, &[n; 60]));
        bench.run(&mut node, &mut StaticLinks, Duration::from_millis(50));
        take(&mut bench.air)
    };
    assert_eq!(sent(false, None), frames);
    // The first is gone before the loop has seen that it is not alone.
    let together = bundle_of(&frames[3..5]);
    let expected = [&frames[0], &frames[1], &frames[2], &together, &frames[5], &frames[6]];
    assert!(expected.iter().all(|frame| frame.len() <= 1514));
    let expected = expected.map(Vec::clone);
    assert_eq!(sent(true, None), expected);
    // Those two together are a packet of 1,404 bytes.
    let hop = |mac, mtu| NextHop { mac: Mac([mac; 6]), mtu };
    assert_eq!(sent(true, Some(hop(1, 1404))), expected);
    assert_eq!(sent(true, Some(hop(1, 1403))), frames);
    assert_eq!(sent(true, Some(hop(2, 200))), expected, "somebody else");
}

#[test]
fn what_comes_in_one_is_handled_as_if_it_had_come_alone() {
    let mut node = Script::new(|_, _| {});
    // Passing on from where it lies would write over a frame's neighbours.
    node.pass = Some(|frame, out| {
        out.wire_around(&frame[18..], |head| head.extend_from_slice(&[9; 40]));
        out.tap_frame(&frame[18..]);
    });
    let frames: Vec<_> = (0..100).map(|n| data_frame(1, 22, n)).collect();
    let mut bench = Bench { bundles: false, ..Bench::new() };
    put(&mut bench.air, &frames[0]);
    put(&mut bench.air, &bundle_of(&frames[1..60]));
    put(&mut bench.air, &bundle_of(&frames[60..99]));
    put(&mut bench.air, &frames[99]);
    bench.run(&mut node, &mut StaticLinks, Duration::from_millis(50));
    let heard: Vec<_> = frames.iter().cloned().map(Call::Wire).collect();
    assert_eq!(*node.calls.borrow(), heard);
    let inner = frames.iter().map(|frame| frame[18..].to_vec());
    assert_eq!(take(&mut bench.host), inner.clone().collect::<Vec<_>>());
    let passed = inner.map(|inner| [vec![9; 40], inner].concat());
    assert_eq!(take(&mut bench.air), passed.collect::<Vec<_>>());
}

#[test]
fn a_bundle_in_the_place_of_a_frame_that_was_lent_is_not_lent_itself() {
    let mut node = Script::new(|_, _| {});
    node.pass = Some(|frame, out| {
        // Of the TAP's frames there is no answer that would end the loan.
        if frame[14] == 0x28 {
            out.tap_frame(&frame[18..]);
        }
    });
    let frames: Vec<_> = (0..10).map(|n| data_frame(1, 100, n)).collect();
    let bundle = bundle_of(&frames);
    let mut bench = Bench::new();
    let (_, far) = memory::pair(1500).unwrap();
    let mut air = std::mem::replace(&mut bench.air, far);
    put(&mut bench.host, &[0; 1500]);
    let late = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        put(&mut air, &bundle);
    });
    bench.run(&mut node, &mut StaticLinks, Duration::from_millis(150));
    late.join().unwrap();
    let inner = frames.iter().map(|frame| frame[18..].to_vec());
    assert_eq!(take(&mut bench.host), inner.collect::<Vec<_>>());
}

#[test]
fn of_a_malformed_bundle_the_node_gets_what_can_be_read() {
    let frames = [data_frame(1, 30, 7), data_frame(1, 30, 8)];
    let mut cut = bundle_of(&frames);
    cut[18 + 30 + 3] = 31;
    let mut unopened = bundle_of(&frames);
    unopened[15] = 1;
    let mut node = Script::new(|_, _| {});
    let mut bench = Bench::new();
    put(&mut bench.air, &cut);
    put(&mut bench.air, &unopened);
    bench.run(&mut node, &mut StaticLinks, Duration::from_millis(50));
    let [first, _] = frames;
    assert_eq!(*node.calls.borrow(), [Call::Wire(first), Call::Wire(unopened)]);
}

#[test]
fn what_is_measured_beside_the_loop_reaches_the_node() {
    let (tell, told) = mpsc::channel();
    let mut node = Script::new(|_, _| {});
    node.on_signal = Some(tell);
    let mut bench = Bench::new();
    let mut links = MeasuredLinks(Reports::default());
    let (reports, remote) = (links.0.clone(), Remote::new());
    let stop = remote.clone();
    let driver = std::thread::spawn(move || {
        let from = |n: u16| Mac([2, 0, 0, 0, (n >> 8) as u8, n as u8]);
        let heard = |n| (0..n).for_each(|_| told.recv().unwrap());
        // As many as there is room for: the loop takes them all although it is rung once.
        reports.add((0..256).map(|n| Sample { from: from(n), dbm: -70 }));
        heard(256);
        reports.add([Sample { from: from(7), dbm: -71 }]);
        heard(1);
        stop.send(Command::Stop);
    });
    bench.run_until(&mut node, &mut links, remote);
    driver.join().unwrap();
    let told = node.calls.borrow();
    let told: Vec<_> = told.iter().filter(|call| matches!(call, Call::Signal(..))).collect();
    assert_eq!(told.len(), 257);
    assert_eq!(told[256], &Call::Signal(Mac([2, 0, 0, 0, 0, 7]), -71));
}

/// Interfaces that never change, on a radio that tells how strong others come in.
struct MeasuredLinks(Reports);

impl Links for MeasuredLinks {
    fn poll_change(&mut self, _: &mut Context<'_>) -> Poll<LinkChange> {
        Poll::Pending
    }
    fn configure_tap(&mut self, _: usize) {}
    fn poll_signal(&mut self, cx: &mut Context<'_>) -> Poll<Sample> {
        self.0.poll(cx)
    }
}

/// Who is known of an earlier start comes before anything else, what the bridge tells when it does,
/// and at the end all are written down for the next start.
#[test]
fn clients_are_told_and_noted() {
    let directory = tempfile::tempdir().unwrap();
    let file = ClientFile::beside(&directory.path().join("boots"));
    let nth = |n| Remembered {
        client: Client { vlan: 0, mac: Mac([2, 0, 0, 0, 0, n]) },
        silent_for: Duration::from_secs(n.into()),
    };
    let mut node = Script::new(|_, _| {});
    node.clients = vec![nth(1), nth(2)];
    let mut bench = Bench::new();
    put(&mut bench.air, &[0; 60]);
    let mut links = ScriptedLinks::new([]);
    links.clients = VecDeque::from([vec![nth(2)]]);
    bench.remembered = vec![nth(1)];
    bench.client_file = Some(file.clone());
    let stop = Remote::new();
    stop.send(Command::Stop);
    assert_eq!(bench.run_until(&mut node, &mut links, stop), Exit::Clean);
    let told = [Call::Clients(vec![nth(1)]), Call::Clients(vec![nth(2)])];
    assert_eq!(node.calls.borrow()[..2], told);
    let noted: Vec<_> = file.read().unwrap().iter().map(|known| known.client).collect();
    assert_eq!(noted, [nth(1).client, nth(2).client]);
}

#[test]
fn forwarding_a_frame_allocates_nothing() {
    let mut node = Script::new(|call, out| match call {
        Call::Wire(frame) => out.tap(|flat| flat.extend_from_slice(frame)),
        Call::Tap(frame) => out.wire(|flat| flat.extend_from_slice(frame)),
        _ => {}
    });
    node.record = false;
    let mut bench = Bench::new();
    let mut traffic = |rounds: u32| {
        let Bench { radio, air, tap, host, tap_mtu, link, .. } = &mut bench;
        let runtime = Runtime {
            clock: Clock::start(),
            radio: link.clone(),
            tap_mtu: *tap_mtu,
            bundles: true,
            coalesce: Duration::ZERO,
            busy_poll: Duration::ZERO,
            announcements: Vec::new(),
            remembered: Vec::new(),
            client_file: None,
        };
        let (mut links, mut remote) = (StaticLinks, Remote::new());
        let running = runtime.start(&mut node, radio, tap, &mut links, &mut remote);
        let mut running = running.unwrap();
        let mut burst = Burst::new(64);
        let mut before = 0;
        for round in 0..rounds {
            if round == 100 {
                before = ALLOCATIONS.get();
            }
            for _ in 0..20 {
                air.send(&[Outgoing::new(&[5; 1400])]);
                host.send(&[Outgoing::new(&[6; 200])]);
            }
            assert_eq!(running.turn(Some(Duration::ZERO)).unwrap(), None);
            host.recv(&mut burst);
            air.recv(&mut burst);
        }
        ALLOCATIONS.get() - before
    };
    assert_eq!(traffic(1100), 0, "allocations while 40000 frames were forwarded");
    assert!(bench.tap.counters().tx_frames > 15_000, "{:?}", bench.tap.counters());
}

// ---------------------------------------------------------------------------------------------

/// What the loop asked of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Call {
    Wire(Vec<u8>),
    Tap(Vec<u8>),
    TapLate(Vec<u8>),
    Link(LinkEvent),
    Timeout,
    Shutdown,
    Clients(Vec<Remembered>),
    Signal(Mac, i8),
    Unacknowledged(Vec<u8>),
}

impl Call {
    fn as_unacknowledged(&self) -> Option<Vec<u8>> {
        if let Self::Unacknowledged(frame) = self { Some(frame.clone()) } else { None }
    }
}

/// A node that writes down what it is asked and answers by a closure.
struct Script<F> {
    calls: RefCell<Vec<Call>>,
    answer: F,
    deadline: Option<Timestamp>,
    /// The next deadline after one was handled.
    again_after: Option<Duration>,
    linger: Duration,
    /// How often the loop asked for the deadline: at least once a turn.
    polled: Cell<u32>,
    counters: Counters,
    record: bool,
    wants_unacknowledged: bool,
    /// Who is behind its TAP, as it says.
    clients: Vec<Remembered>,
    scratch: Call,
    /// Told of each strength.
    on_signal: Option<mpsc::Sender<()>>,
    /// What has happened to it.
    happened: RefCell<VecDeque<Event>>,
    /// How often somebody looked inside.
    looked: Cell<u32>,
    /// Done first, with the frame itself and not a copy of it.
    pass: Option<fn(&[u8], &mut Replies)>,
}

impl<F: FnMut(&Call, &mut Replies)> Script<F> {
    fn new(answer: F) -> Self {
        Self {
            calls: RefCell::default(),
            answer,
            deadline: None,
            again_after: None,
            linger: Duration::ZERO,
            polled: Cell::new(0),
            counters: Counters::default(),
            record: true,
            wants_unacknowledged: false,
            clients: Vec::new(),
            scratch: Call::Timeout,
            on_signal: None,
            happened: RefCell::default(),
            looked: Cell::new(0),
            pass: None,
        }
    }

    fn call(&mut self, call: Call, out: &mut Replies) {
        (self.answer)(&call, out);
        if self.record {
            self.calls.borrow_mut().push(call);
        }
    }

    /// As `call`, for a frame, and without an allocation when nothing is recorded.
    fn call_frame(&mut self, make: fn(Vec<u8>) -> Call, frame: &[u8], out: &mut Replies) {
        if let Some(pass) = self.pass {
            pass(frame, out);
        }
        if self.record {
            return self.call(make(frame.to_vec()), out);
        }
        let mut bytes = match std::mem::replace(&mut self.scratch, Call::Timeout) {
            Call::Wire(bytes) | Call::Tap(bytes) => bytes,
            _ => Vec::new(),
        };
        bytes.clear();
        bytes.extend_from_slice(frame);
        self.scratch = make(bytes);
        (self.answer)(&self.scratch, out);
    }
}

impl<F: FnMut(&Call, &mut Replies)> Node for Script<F> {
    fn id(&self) -> NodeId {
        NodeId([2, 0, 0, 0, 0, 1])
    }
    fn handle_wire(&mut self, _: Timestamp, frame: &[u8], out: &mut Replies) {
        self.call_frame(Call::Wire, frame, out);
    }
    fn handle_tap(&mut self, _: Timestamp, frame: &[u8], out: &mut Replies) {
        self.call_frame(Call::Tap, frame, out);
    }
    fn handle_tap_late(&mut self, _: Timestamp, frame: &[u8], out: &mut Replies) {
        self.call_frame(Call::TapLate, frame, out);
    }
    fn handle_link(&mut self, _: Timestamp, event: LinkEvent, out: &mut Replies) {
        self.call(Call::Link(event), out);
    }
    fn handle_clients(&mut self, _: Timestamp, clients: &[Remembered], out: &mut Replies) {
        if !clients.is_empty() {
            self.call(Call::Clients(clients.to_vec()), out);
        }
    }
    fn clients(&self, _: Timestamp) -> Vec<Remembered> {
        self.clients.clone()
    }
    fn handle_signal(&mut self, _: Timestamp, from: Mac, dbm: i8) {
        self.on_signal.iter().for_each(|tell| tell.send(()).unwrap());
        self.calls.borrow_mut().push(Call::Signal(from, dbm));
    }
    fn handle_unacknowledged(&mut self, _: Timestamp, frame: &[u8], out: &mut Replies) {
        self.call_frame(Call::Unacknowledged, frame, out);
    }
    fn wants_unacknowledged(&self) -> bool {
        self.wants_unacknowledged
    }
    fn handle_timeout(&mut self, now: Timestamp, out: &mut Replies) {
        self.deadline = self.again_after.map(|span| now + span);
        self.call(Call::Timeout, out);
    }
    fn poll_timeout(&self) -> Option<Timestamp> {
        self.polled.set(self.polled.get() + 1);
        self.deadline
    }
    fn handle_shutdown(&mut self, _: Timestamp, out: &mut Replies) {
        self.call(Call::Shutdown, out);
    }
    fn linger(&self) -> Duration {
        self.linger
    }
    fn counters(&self) -> &Counters {
        &self.counters
    }
    fn snapshot(&self, _: Timestamp) -> Snapshot {
        self.looked.set(self.looked.get() + 1);
        Snapshot::of(self.id(), Role::Other)
    }
    fn routes(&self, _: Timestamp) -> Vec<Route> {
        Vec::new()
    }
    fn forget_clients(&mut self, _: Timestamp, which: Option<Mac>, out: &mut Replies) -> usize {
        out.wire(|flat| flat.extend_from_slice(&[8; 20]));
        if which.is_some() { 1 } else { 7 }
    }
    fn poll_event(&mut self) -> Option<Event> {
        self.happened.borrow_mut().pop_front()
    }
}

/// A node's two devices and what is at the other end of them.
struct Bench {
    radio: Memory,
    air: Memory,
    tap: Memory,
    host: Memory,
    tap_mtu: TapMtu,
    link: Link,
    bundles: bool,
    coalesce: Duration,
    busy_poll: Duration,
    remembered: Vec<Remembered>,
    client_file: Option<ClientFile>,
}

fn radio_link() -> Link {
    Link { index: 7, mac: Mac([2, 0, 0, 0, 0, 1]), mtu: 1500, up: true }
}

fn bench_radio() -> Memory {
    memory::pair(1500).unwrap().0
}

impl Bench {
    fn new() -> Self {
        let (radio, air) = memory::pair(1500).unwrap();
        let (tap, host) = memory::pair(1500).unwrap();
        let (tap_mtu, link) = (TapMtu::default(), radio_link());
        let (coalesce, busy_poll) = (Duration::ZERO, Duration::ZERO);
        Self {
            radio,
            air,
            tap,
            host,
            tap_mtu,
            link,
            bundles: true,
            coalesce,
            busy_poll,
            remembered: Vec::new(),
            client_file: None,
        }
    }

    fn run(&mut self, node: &mut impl Node, links: &mut impl Links, span: Duration) {
        let mut radio = std::mem::replace(&mut self.radio, bench_radio());
        self.run_with(node, &mut radio, links, span);
        self.radio = radio;
    }

    fn run_with(
        &mut self,
        node: &mut impl Node,
        radio: &mut impl Device,
        links: &mut impl Links,
        span: Duration,
    ) {
        let mut tap = std::mem::replace(&mut self.tap, bench_radio());
        self.run_all(node, radio, &mut tap, links, Remote::new(), Some(span));
        self.tap = tap;
    }

    fn run_until(
        &mut self,
        node: &mut impl Node,
        links: &mut impl Links,
        commands: impl Commands,
    ) -> Exit {
        let mut radio = std::mem::replace(&mut self.radio, bench_radio());
        let mut tap = std::mem::replace(&mut self.tap, bench_radio());
        let exit = self.run_all(node, &mut radio, &mut tap, links, commands, None);
        exit.expect("the loop ended by itself")
    }

    fn run_all(
        &mut self,
        node: &mut impl Node,
        radio: &mut impl Device,
        tap: &mut impl Device,
        links: &mut impl Links,
        mut commands: impl Commands,
        span: Option<Duration>,
    ) -> Option<Exit> {
        let runtime = Runtime {
            clock: Clock::start(),
            radio: self.link.clone(),
            tap_mtu: self.tap_mtu,
            bundles: self.bundles,
            coalesce: self.coalesce,
            busy_poll: self.busy_poll,
            announcements: Vec::new(),
            remembered: self.remembered.clone(),
            client_file: self.client_file.clone(),
        };
        let running = runtime.start(node, radio, tap, links, &mut commands);
        let mut running = running.unwrap();
        let end = Instant::now() + span.unwrap_or(Duration::from_secs(20));
        loop {
            let left = end.checked_duration_since(Instant::now())?;
            if let Some(exit) = running.turn(Some(left)).unwrap() {
                return Some(exit);
            }
        }
    }
}

fn put(end: &mut Memory, frame: &[u8]) {
    assert_eq!(end.send(&[Outgoing::new(frame)]), Sent::All);
    assert_eq!(end.counters().tx_full, 0);
}

fn take(end: &mut Memory) -> Vec<Vec<u8>> {
    let mut burst = Burst::new(1000);
    end.recv(&mut burst);
    burst.frames().map(<[u8]>::to_vec).collect()
}

/// A radio with more frames than anybody can read.
#[derive(Default)]
struct Flood {
    /// All are like this; empty: 60 bytes of 1.
    frame: Vec<u8>,
    counters: DeviceCounters,
}

impl Device for Flood {
    fn name(&self) -> &str {
        "flood"
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    fn recv(&mut self, burst: &mut Burst) -> Received {
        let like = if self.frame.is_empty() { &[1; 60][..] } else { &self.frame };
        burst.reset(like.len());
        while !burst.is_enough() {
            burst.vacant().unwrap()[..like.len()].copy_from_slice(like);
            burst.commit(like.len());
        }
        Received::More
    }
    fn send(&mut self, _: &[Outgoing<'_>]) -> Sent {
        Sent::All
    }
    fn counters(&mut self) -> &DeviceCounters {
        &self.counters
    }
}

/// A radio with as much data, and control apart from it.
struct Apart {
    control: Memory,
    data: Flood,
}

impl Device for Apart {
    fn name(&self) -> &str {
        "apart"
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    fn control_descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.control.descriptor()
    }
    fn recv(&mut self, burst: &mut Burst) -> Received {
        self.data.recv(burst)
    }
    fn recv_control(&mut self, burst: &mut Burst) -> Received {
        self.control.recv(burst)
    }
    fn send(&mut self, _: &[Outgoing<'_>]) -> Sent {
        Sent::All
    }
    fn counters(&mut self) -> &DeviceCounters {
        self.data.counters()
    }
}

/// A radio that hears nothing, and tells what it gave up as a packet socket does: on the error
/// queue of its descriptor, until that is read. It is a UDP socket, whose datagrams come back from
/// where nobody listens.
struct Telling {
    socket: UdpSocket,
    is_wanted: bool,
    sent: Vec<Vec<u8>>,
    counters: DeviceCounters,
}

impl Telling {
    fn new() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        setsockopt(&socket, sockopt::Ipv4RecvErr, &true).unwrap();
        socket.set_nonblocking(true).unwrap();
        Self { socket, is_wanted: false, sent: Vec::new(), counters: DeviceCounters::default() }
    }

    fn give_up(&self, frame: &[u8]) {
        let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        // The error of the datagram before may be told in place of sending this one.
        while self.socket.send_to(frame, nobody).is_err() {}
    }
}

impl Device for Telling {
    fn name(&self) -> &str {
        "telling"
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
    fn recv(&mut self, burst: &mut Burst) -> Received {
        burst.reset(0);
        // As a packet socket does: the error that waits is taken by whoever reads.
        let _ = self.socket.recv(&mut [0]);
        Received::Drained
    }
    fn want_unacknowledged(&mut self) {
        self.is_wanted = true;
    }
    fn recv_unacknowledged(&mut self, burst: &mut Burst) -> Received {
        burst.reset(1500);
        while !burst.is_enough() {
            let mut parts = [IoSliceMut::new(burst.vacant().unwrap())];
            let fd = self.socket.as_raw_fd();
            match recvmsg::<()>(fd, &mut parts, None, MsgFlags::MSG_ERRQUEUE) {
                Ok(message) => {
                    let len = message.bytes;
                    burst.commit(len);
                }
                Err(_) => return Received::Drained,
            }
        }
        Received::More
    }
    fn send(&mut self, frames: &[Outgoing<'_>]) -> Sent {
        self.sent.extend(frames.iter().map(|frame| frame.bytes.to_vec()));
        Sent::All
    }
    fn counters(&mut self) -> &DeviceCounters {
        &self.counters
    }
}

/// A radio that hears, and has no room to send.
struct Stalled {
    inner: Memory,
    /// `None`: for good.
    full_until: Option<Instant>,
}

impl Device for Stalled {
    fn name(&self) -> &str {
        "stalled"
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inner.descriptor()
    }
    fn recv(&mut self, burst: &mut Burst) -> Received {
        self.inner.recv(burst)
    }
    fn send(&mut self, frames: &[Outgoing<'_>]) -> Sent {
        let is_free = self.full_until.is_some_and(|at| Instant::now() >= at);
        if is_free { self.inner.send(frames) } else { Sent::Full(0) }
    }
    fn counters(&mut self) -> &DeviceCounters {
        self.inner.counters()
    }
}

/// A TAP that is dead at first, and refuses to be revived a few times.
#[derive(Default)]
struct Mortal {
    refusals: u32,
    attempts: u32,
    alive: bool,
    counters: DeviceCounters,
}

impl Device for Mortal {
    fn name(&self) -> &str {
        "mortal"
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    fn recv(&mut self, burst: &mut Burst) -> Received {
        burst.reset(64);
        if self.alive || self.attempts > 0 { Received::Drained } else { Received::Gone }
    }
    fn send(&mut self, _: &[Outgoing<'_>]) -> Sent {
        Sent::All
    }
    fn reopen(&mut self) -> Result<(), DeviceError> {
        self.attempts += 1;
        self.alive = self.attempts > self.refusals;
        if self.alive {
            return Ok(());
        }
        Err(DeviceError {
            interface: "mortal".into(),
            operation: "create the TAP",
            source: Problem::Busy,
        })
    }
    fn counters(&mut self) -> &DeviceCounters {
        &self.counters
    }
}

/// Reports these changes, one per look, and writes down what the TAP is told.
struct ScriptedLinks {
    changes: VecDeque<LinkChange>,
    clients: VecDeque<Vec<Remembered>>,
    tap_mtus: Vec<usize>,
}

impl ScriptedLinks {
    fn new(changes: impl IntoIterator<Item = LinkChange>) -> Self {
        let changes = changes.into_iter().collect();
        Self { changes, clients: VecDeque::new(), tap_mtus: Vec::new() }
    }
}

impl Links for ScriptedLinks {
    fn poll_change(&mut self, _: &mut Context<'_>) -> Poll<LinkChange> {
        match self.changes.pop_front() {
            Some(change) => Poll::Ready(change),
            None => Poll::Pending,
        }
    }
    fn poll_clients(&mut self, _: &mut Context<'_>) -> Poll<Vec<Remembered>> {
        self.clients.pop_front().map_or(Poll::Pending, Poll::Ready)
    }
    fn configure_tap(&mut self, mtu: usize) {
        self.tap_mtus.push(mtu);
    }
}

/// Counts the allocations of each thread, so that tests do not count each other's.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: forwards to the system's allocator; the counter is a plain thread-local without
// destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
