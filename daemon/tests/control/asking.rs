//! Requests: what is answered, what is refused, and how many may ask.

use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use control_socket::client::{ClientError, SocketClient};
use control_socket::message::{
    Access, Ask, CLIENTS_MAX, PinAsk, PingAsk, REQUEST_MAX, RefusalKind, SUBSCRIPTIONS_MAX, SetAsk,
    Topic,
};
use node_lib::Mac;
use node_lib::control::snapshot::NodeRole;
use node_lib::device::{Burst, Device, Outgoing};
use node_lib::runtime::Exit;

use crate::scene::{ID, PATIENCE, line, raw, refusal, runs};

#[test]
fn a_client_is_greeted_and_gets_what_it_asks_for_and_no_more() {
    let scene = runs();
    let mut client = scene.client();
    let hello = client.hello();
    assert_eq!((&*hello.name, hello.access), ("rsu0", Access::ReadOnly));
    assert_eq!(hello.pid, std::process::id());
    let topics = client.ask(Ask::Get(vec![Topic::View, Topic::Log])).unwrap();
    assert_eq!((topics.node, topics.role), (ID, NodeRole::Rsu));
    assert_eq!(topics.view.unwrap().node.id, ID);
    assert_eq!(topics.log.as_deref(), Some("info"));
    assert!(topics.events.is_none() && topics.changes.is_none() && topics.problems.is_none());
    assert_eq!(client.ask(Ask::Get(vec![Topic::Problems])).unwrap().problems, Some(vec![]));
}

#[test]
fn only_the_read_write_socket_changes_anything() {
    let scene = runs();
    for ask in [Ask::FlushClients(None), Ask::SetLog("debug".to_owned())] {
        assert_eq!(refusal(scene.client().ask(ask)), RefusalKind::ReadOnly);
    }
    let mut client = SocketClient::connect(&scene.rw()).unwrap();
    assert_eq!(client.hello().access, Access::ReadWrite);
    assert_eq!(client.ask(Ask::FlushClients(Some(Mac([2; 6])))).unwrap().flushed, Some(3));
    let set = client.ask(Ask::SetLog("warn,node_lib=debug".to_owned())).unwrap();
    assert_eq!(set.log.as_deref(), Some("warn,node_lib=debug"));
    assert_eq!(refusal(client.ask(Ask::SetLog("loud".to_owned()))), RefusalKind::Invalid);
}

#[test]
fn what_a_program_does_not_have_is_refused_with_the_reason() {
    let scene = runs();
    let set = |name: &str, value: &str| {
        Ask::Set(SetAsk { name: name.to_owned(), value: value.to_owned() })
    };
    let pin = |mac, vlan| Ask::PinClient(PinAsk { mac, vlan, obu: ID });
    let ping = |target, hop_limit, within_ms| Ask::Ping(PingAsk { target, hop_limit, within_ms });
    for ask in [
        Ask::Reload,
        Ask::RecordStart(None),
        Ask::RecordStop,
        Ask::RecordMark("x".to_owned()),
        ping(Mac([2; 6]), 1, 1),
        pin(Mac([2; 6]), 0),
        Ask::UnpinClients(None),
        set("log", "info"),
    ] {
        assert_eq!(refusal(scene.client().ask(ask)), RefusalKind::ReadOnly);
    }
    // To look what a reload would do changes nothing.
    assert_eq!(refusal(scene.client().ask(Ask::Check)), RefusalKind::Unable);
    let mut client = SocketClient::connect(&scene.rw()).unwrap();
    assert_eq!(refusal(client.ask(Ask::Reload)), RefusalKind::Unable);
    assert_eq!(refusal(client.ask(Ask::RecordStart(None))), RefusalKind::Unable);
    assert_eq!(refusal(client.ask(set("mtu", "1400"))), RefusalKind::Invalid);
    assert_eq!(refusal(client.ask(set("log", "loud"))), RefusalKind::Invalid);
    let (one, all) = (Mac([2; 6]), Mac([0xff; 6]));
    let most = node_lib::messages::MAX_HOPS;
    for bad in [
        ping(all, 1, 100),
        ping(one, 0, 100),
        ping(one, most + 1, 100),
        ping(one, 1, 0),
        ping(one, 1, 10_001),
        pin(all, 0),
        pin(one, 4095),
    ] {
        let text = format!("{bad:?}");
        assert_eq!(refusal(client.ask(bad)), RefusalKind::Invalid, "{text}");
    }
    // The node of this test has no place for pins.
    assert_eq!(refusal(client.ask(pin(one, 0))), RefusalKind::Unable);
    assert!(client.ask(set("log", "debug")).is_ok());
    let log = client.ask(Ask::Get(vec![Topic::Log])).unwrap().log;
    assert_eq!(log.as_deref(), Some("debug"));
}

#[test]
fn what_is_no_request_is_refused_and_the_next_one_answered() {
    let scene = runs();
    let mut client = raw(&scene.path());
    assert_eq!(line(&mut client)["v2x_control"], 1);
    for bad in ["", "x", "[]", "{\"id\":1}", "{\"id\":-1,\"get\":[]}", "{\"id\":1,\"get\":[\"x\"]}"]
    {
        writeln!(client.get_mut(), "{bad}").unwrap();
        let answer = line(&mut client);
        assert_eq!(answer["error"]["kind"], "malformed", "{bad:?}: {answer}");
        assert!(answer["error"]["text"].as_str().unwrap().contains("expected"), "{answer}");
    }
    client.get_mut().write_all(&[0xff, 0xfe, b'\n']).unwrap();
    assert_eq!(line(&mut client)["error"]["kind"], "malformed");
    // In two pieces, with a pause.
    client.get_mut().write_all(b"{\"id\":7,").unwrap();
    std::thread::sleep(Duration::from_millis(50));
    client.get_mut().write_all(b"\"get\":[\"log\"]}\n").unwrap();
    let answer = line(&mut client);
    assert_eq!((&answer["id"], &answer["ok"]["log"]), (&7.into(), &"info".into()));
}

#[test]
fn a_line_without_end_ends_the_connection() {
    let scene = runs();
    let mut client = raw(&scene.path());
    line(&mut client);
    client.get_mut().write_all(&vec![b' '; REQUEST_MAX + 1]).unwrap();
    assert_eq!(line(&mut client)["error"]["kind"], "too-long");
    assert_eq!(client.read(&mut [0; 1]).unwrap_or(0), 0, "the end");
}

#[test]
fn so_many_clients_are_served_and_one_more_is_told() {
    let scene = runs();
    let mut clients: Vec<_> = (0..CLIENTS_MAX).map(|_| scene.client()).collect();
    match SocketClient::connect(&scene.path()) {
        Err(ClientError::Refused { refusal, .. }) => {
            assert_eq!(refusal.kind, RefusalKind::TooMany);
        }
        other => panic!("{other:?}"),
    }
    clients[0].ask(Ask::Get(vec![])).unwrap();
    for id in 0..SUBSCRIPTIONS_MAX {
        clients[1].ask(Ask::Subscribe(vec![])).unwrap_or_else(|e| panic!("{id}: {e}"));
    }
    assert_eq!(refusal(clients[1].ask(Ask::Subscribe(vec![]))), RefusalKind::TooMany);
}

#[test]
fn the_place_of_a_client_that_goes_is_free_again() {
    let scene = runs();
    for _ in 0..2 * CLIENTS_MAX {
        // The daemon may not have noticed yet that those before have gone.
        let until = Instant::now() + PATIENCE;
        while let Err(error) = SocketClient::connect(&scene.path()) {
            assert!(Instant::now() < until, "{error}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn a_thousand_requests_a_second_cost_no_frame() {
    let scene = runs();
    let asked = AtomicUsize::new(0);
    let frames = 2000;
    let path = scene.path();
    let until = Instant::now() + Duration::from_secs(2);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = SocketClient::connect(&path).unwrap();
                while Instant::now() < until {
                    client.ask(Ask::Get(vec![Topic::View])).unwrap();
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut arrived = 0;
        let mut burst = Burst::new(64);
        for n in 0..frames {
            scene.host.borrow_mut().send(&[Outgoing::new(&[n as u8 & 0x7f; 100])]);
            std::thread::sleep(Duration::from_millis(1));
            scene.air.borrow_mut().recv(&mut burst);
            arrived += burst.len();
        }
        let end = Instant::now() + Duration::from_secs(10);
        while arrived < frames && Instant::now() < end {
            scene.air.borrow_mut().recv(&mut burst);
            arrived += burst.len();
        }
        assert_eq!(arrived, frames);
    });
    let asked = asked.into_inner();
    println!("{asked} requests in two seconds");
    assert!(asked > 0);
}

#[test]
fn at_a_clean_end_clients_are_left_and_the_sockets_are_gone() {
    let mut scene = runs();
    let mut client = scene.client();
    client.ask(Ask::Subscribe(vec![Topic::Events])).unwrap();
    assert_eq!(scene.stop(), Exit::Clean);
    assert!(client.next_update().is_err());
    assert!(!scene.path().exists() && !scene.rw().exists());
}
