//! Who looks inside a loop that runs: what is shown, how often, and what is missed.

use std::time::{Duration, Instant};

use node_lib::control::event::Event;
use node_lib::control::node::Node;
use node_lib::device::{LinkChange, LinkState, Links, Side, StaticLinks};
use node_lib::runtime::Exit;
use node_lib::runtime::command::{Command, Remote};
use node_lib::runtime::inside::{self, Inside};
use node_lib::{Mac, NodeId};

use crate::bench::{Bench, put, radio_link};
use crate::devices::ScriptedLinks;
use crate::script::Script;

/// What those on another thread do who look inside a loop, which ends when they have looked.
fn look_inside<T: Send + 'static>(
    node: &mut impl Node,
    bench: &mut Bench,
    look: impl AsyncFnOnce(Inside) -> T + Send + 'static,
) -> T {
    look_inside_beside(node, bench, &mut StaticLinks, look)
}

/// The same beside interfaces that change.
fn look_inside_beside<T: Send + 'static>(
    node: &mut impl Node,
    bench: &mut Bench,
    links: &mut impl Links,
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
    assert_eq!(bench.run_until(node, links, attended), Exit::Clean);
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
fn the_mtu_of_the_tap_is_shown_as_it_is_whoever_set_it() {
    let shown = |links: &mut ScriptedLinks| {
        let mut bench = Bench::new();
        let look = async |inside: Inside| {
            tokio::time::sleep(Duration::from_millis(30)).await;
            inside.view().await.unwrap().tap.mtu_bytes
        };
        look_inside_beside(&mut Script::new(|_, _| {}), &mut bench, links, look)
    };
    assert_eq!(shown(&mut ScriptedLinks::new([])), Some(1500));
    let link = Some(LinkState { mtu: 1400, ..radio_link() });
    let change = LinkChange { side: Side::Tap, link };
    assert_eq!(shown(&mut ScriptedLinks::new([change])), Some(1400));
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
